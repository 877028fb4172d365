// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/evict"
	"github.com/muster-project/muster/test/rounds"
)

// Two gangs preempt at the same moment. There is room for one of them, or for both: as many pods end as those need that
// start, and of different priorities the higher one starts.
func TestTwoPreemptorsAtTheSameMoment(t *testing.T) {
	for name, test := range map[string]struct {
		nodes    int
		priority [2]int32
		starts   []string // nil: one of the two
	}{
		"room for both":           {4, [2]int32{1000, 2000}, []string{"a", "b"}},
		"room for both equals":    {4, [2]int32{1000, 1000}, []string{"a", "b"}},
		"room for the higher":     {3, [2]int32{1000, 2000}, []string{"b"}},
		"room for one of equals":  {3, [2]int32{1000, 1000}, nil},
		"the same two for higher": {2, [2]int32{2000, 1000}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, test.nodes)
			low := c.priorityClass("low", 10)
			classes := map[string]string{"a": c.priorityClass("first", test.priority[0]), "b": c.priorityClass("second", test.priority[1])}
			c.startQuick()
			for _, g := range numbered("low", test.nodes) {
				c.gangOf(g, low, 1, 1, 8)
				c.untilSatisfied(g)
			}
			for _, g := range []string{"a", "b"} {
				c.apply(c.group(g).MinMember(2))
			}
			for _, pod := range []string{"a-0", "b-0", "a-1", "b-1"} { // the gangs become complete one right after the other
				c.create(c.pod(pod, pod[:1], 8).PriorityClass(classes[pod[:1]]))
			}
			want := 2 * max(1, len(test.starts))
			c.until("as many gangs run as can", 30*time.Second, func(pods []*corev1.Pod) bool {
				for _, g := range test.starts {
					if bound(pods, g) != 2 {
						return false
					}
				}
				return bound(pods, "a")+bound(pods, "b") == want
			})
			c.stillSchedules()
			if a, b := c.boundNow("a"), c.boundNow("b"); a+b != want || a == 1 || b == 1 {
				t.Errorf("%d and %d pods of the two gangs are bound, want %d in whole gangs", a, b, want)
			}
			if deleted := c.deletedByScheduler(); len(deleted) != want {
				t.Errorf("pods %v were evicted, want %d", deleted, want)
			}
		})
	}
}

// A victim never ends. The preemptor gives up when the time is over, and takes other room; what it had reserved is free
// for others then.
func TestVictimThatDoesNotEnd(t *testing.T) {
	for name, hasGang := range map[string]bool{"of a gang": true, "without a gang": false} {
		t.Run(name, func(t *testing.T) {
			c, low, high := stuckVictim(t, hasGang, "2s")
			c.gangOf("chat", high, 1, 1, 8)
			c.untilTerminating(1)
			c.untilBound("chat", 1)
			c.untilStatus("chat", "does not preempt any more", func(s v2Status) bool {
				return condition(s, v2alpha2.ConditionPreempting).Status != metav1.ConditionTrue && s.Phase == v2alpha2.PodGroupAdmitted
			})
			if n := c.boundNow("other"); n != 0 {
				t.Errorf("%d pods of the other gang are bound", n)
			}
			c.must(removeFinalizers(c.ctx, c.namespace, "held-0"), "letting the victim end")
			c.create(c.pod("after", "", 8).PriorityClass(low))
			c.untilPodBound("after")
			c.checkEvicted("held-0", "other-0")
		})
	}
}

// The preemptor, or what makes it a gang, is deleted while its victims end: nothing is reserved for it any more.
func TestPreemptorIsDeleted(t *testing.T) {
	for name, remove := range map[string]func(*cluster){
		"all of it":    func(c *cluster) { c.deleteGang("chat") },
		"its pods":     func(c *cluster) { c.delete(numbered("chat", 2)...) },
		"its PodGroup": func(c *cluster) { c.deleteGroup("chat") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2)
			low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
			c.startQuick()
			c.gangOf("train", low, 2, 2, 8, graceSeconds(60))
			c.untilSatisfied("train")
			c.gangOf("chat", high, 2, 2, 8)
			c.untilTerminating(2)
			remove(c)
			for i, victim := range numbered("train", 2) {
				c.delete(victim)
				after := fmt.Sprintf("after-%d", i)
				c.create(c.pod(after, "", 8).PriorityClass(low))
				c.untilPodBound(after)
			}
			c.checkEvicted("train-0", "train-1")
			c.stillSchedules()
		})
	}
}

// The preemptor is deleted when one of two victims of a gang was deleted and the deletion of the other is refused for a
// while: the gang has lost a part of its minimum, so it loses the rest.
func TestPreemptorIsDeletedBetweenTwoEvictions(t *testing.T) {
	c := newCluster(t, 2)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick()
	c.gangOf("train", low, 2, 2, 8)
	c.untilSatisfied("train")
	lift := c.refuseDeletions("train-0") // the witness, so that the other one is deleted
	c.gangOf("chat", high, 2, 2, 8)
	c.untilBound("train", 1)
	c.deleteGang("chat")
	lift()
	c.until("nothing of the victim is left", 20*time.Second, func(pods []*corev1.Pod) bool { return bound(pods, "train") == 0 })
	c.checkEvicted("train-0", "train-1")
	c.stillSchedules()
}

// The node of a victim is deleted while the victim ends. The gang starts on a node that is there.
func TestNodeOfAVictimIsGone(t *testing.T) {
	c := newCluster(t, 2)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick()
	c.gangOf("train", low, 2, 2, 8, graceSeconds(60))
	c.untilSatisfied("train")
	gone := c.get("train-0").Spec.NodeName
	c.gangOf("chat", high, 2, 2, 8)
	c.untilTerminating(2)
	c.deleteNode(gone)
	c.addNodes(1)
	c.delete("train-0", "train-1")
	c.untilBound("chat", 2)
	for _, p := range c.pods() {
		if p.Spec.NodeName == gone {
			t.Errorf("pod %s is bound to the node that is gone", p.Name)
		}
	}
	c.untilSatisfied("chat")
	c.checkEvicted("train-0", "train-1")
	c.stillSchedulesAfter("chat")
}

// A PriorityClass is deleted while its gang waits for its victims. Its pods keep their priority.
func TestPriorityClassIsDeletedWhilePreempting(t *testing.T) {
	c := newCluster(t, 2)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick()
	c.gangOf("train", low, 2, 2, 8, graceSeconds(60))
	c.untilSatisfied("train")
	c.apply(c.group("chat").MinMember(2).Priority(high))
	for _, pod := range numbered("chat", 2) {
		c.create(c.pod(pod, "chat", 8).PriorityClass(high))
	}
	c.untilTerminating(2)
	for _, class := range []string{low, high} {
		c.must(cp.Client().SchedulingV1().PriorityClasses().Delete(c.ctx, class, metav1.DeleteOptions{}), "deleting a PriorityClass")
	}
	c.delete("train-0", "train-1")
	c.untilBound("chat", 2)
	c.checkEvicted("train-0", "train-1")
	c.stillSchedulesAfter("chat")
}

// The victims become non-preemptible at a random moment of the preemption: both end, or none does.
func TestPreemptibilityChangesWhilePreempting(t *testing.T) {
	c := newCluster(t, 2)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick()
	random := rand.New(rand.NewPCG(23, 5))
	evicted := 0
	for round := range 2 * rounds.Number() {
		train, chat := fmt.Sprintf("train-%d", round), fmt.Sprintf("chat-%d", round)
		c.gangOf(train, low, 2, 2, 8)
		c.untilSatisfied(train)
		c.gangOf(chat, high, 2, 2, 8)
		if round%2 == 1 {
			c.untilPreempting(chat)
		}
		<-time.After(time.Duration(random.Int64N(int64(50 * time.Millisecond)))) // the instant of the change, not a wait for something
		c.apply(c.group(train).MinMember(2).Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.NonPreemptible }))
		c.untilStatus(chat, "runs or is refused", func(s v2Status) bool {
			return condition(s, v2alpha2.ConditionSatisfied).Status == metav1.ConditionTrue || s.Reason == v2alpha2.ReasonInsufficientGPUs && strings.Contains(s.Summary+condition(s, v2alpha2.ConditionSatisfied).Message, "preemption would not help")
		})
		switch a, b := c.boundNow(train), c.boundNow(chat); {
		case a == 0 && b == 2:
			evicted++
		case a == 2 && b == 0:
		default:
			t.Errorf("%d pods of the victim and %d of the preemptor are bound", a, b)
		}
		c.deleteGang(chat)
		c.deleteGang(train)
	}
	t.Logf("evicted in %d of %d rounds", evicted, 2*rounds.Number())
	c.stillSchedules()
}

// kill -9 at random moments of a preemption, of victims that end when they are deleted, and of victims that need 2 s.
// Whatever was recorded and done before, the gang starts, one gang of lower priority ends, whole, and no other pod is
// evicted.
func TestKilledWhilePreempting(t *testing.T) {
	for name, slow := range map[string]bool{"victims end immediately": false, "victims need 2 s": true} {
		t.Run(name, func(t *testing.T) {
			const nodes, size = 6, 2
			c := newCluster(t, nodes)
			low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
			random := rand.New(rand.NewPCG(23, 7))
			c.endHeldPods(2 * time.Second)
			var ended []string
			kills := map[string]int{} // by the stage of the preemption
			for round := range rounds.Number() {
				c.startQuick()
				gangs := c.runGangs(fmt.Sprintf("low-%d", round), low, nodes/size, size, slow)
				var victims []string
				for _, g := range gangs {
					victims = append(victims, numbered(g, size)...)
				}
				chat, needed := fmt.Sprintf("chat-%d", round), 1+random.IntN(size)
				c.gangOf(chat, high, needed, needed, 8)
				for kill := range 1 + random.IntN(3) {
					longest := 1500 * time.Millisecond // about as long as the start and a preemption take
					switch short := random.IntN(3) > 0; {
					case short: // more often after the decision; what follows it takes less time
						longest = 40 * time.Millisecond
						if kill > 0 {
							c.restart()
						}
						c.untilPreempting(chat)
					case kill > 0:
						c.must(c.scheduler.Start(), "starting muster-scheduler")
					}
					<-time.After(time.Duration(random.Int64N(int64(longest)))) // the instant of the kill, not a wait for something
					c.scheduler.Kill()
					stage := c.stageOf(chat, victims)
					if kills[stage]++; stage == "bound" {
						break
					}
				}
				c.must(c.scheduler.Start(), "starting muster-scheduler")
				ended = append(ended, c.untilOneGangEnded(chat, needed, gangs, size)...)
				c.endRound(append(gangs, chat)...)
			}
			slices.Sort(ended)
			c.checkEvicted(ended...)
			t.Logf("killed at these stages: %v", kills)
		})
	}
}

// kill -9 while the victims end in a long grace period. The next process keeps their room: pods and gangs of the same
// priority do not get it, however short the timeout is, and nobody else is evicted.
func TestRoomOfVictimsIsKeptAfterARestart(t *testing.T) {
	c := newCluster(t, 3)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick(preemptionTimeout("2s"))
	c.gangOf("train", low, 2, 2, 8, graceSeconds(60))
	c.untilSatisfied("train")
	c.gangOf("other", c.priorityClass("middle", 20), 1, 1, 8)
	c.untilSatisfied("other")
	c.gangOf("chat", high, 2, 2, 8)
	c.untilTerminating(2)
	c.untilEvicting("chat")
	c.restart()
	c.create(c.pod("plain", "", 8).PriorityClass(low))
	c.gangOf("rival", low, 1, 1, 8)
	c.untilReason("rival", v2alpha2.ReasonInsufficientGPUs)
	c.delete("train-0")
	c.createPlain("bystander-0") // waits for the scheduler to have seen the room
	c.untilPodBound("bystander-0")
	c.notBound("plain", "rival-0")
	c.delete("train-1")
	c.untilBound("chat", 2)
	c.notBound("plain", "rival-0")
	c.checkEvicted("train-0", "train-1")
}

// kill -9 between two deletions, and the preemptor is deleted before the next process starts. The victim gang has lost
// a part, so it loses the rest.
func TestPreemptorIsDeletedWhileTheSchedulerIsDown(t *testing.T) {
	for name, remove := range map[string]func(*cluster){
		"its pods":  func(c *cluster) { c.delete(numbered("chat", 2)...) },
		"all of it": func(c *cluster) { c.deleteGang("chat") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2)
			low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
			c.startQuick()
			c.gangOf("train", low, 2, 2, 8)
			c.untilSatisfied("train")
			lift := c.refuseDeletions("train-0")
			c.gangOf("chat", high, 2, 2, 8)
			c.untilBound("train", 1)
			c.untilEvicting("chat")
			c.scheduler.Kill()
			remove(c)
			lift()
			c.restart()
			c.until("nothing of the victim is left", 15*time.Second, func(pods []*corev1.Pod) bool { return bound(pods, "train") == 0 })
			c.checkEvicted("train-0", "train-1")
			c.stillSchedules()
		})
	}
}

// kill -9 between two deletions for a pod without a gang, which records no plan. The next process deletes the rest of
// the gang, on other nodes, and nothing else, also if the pod is gone by then.
func TestKilledWhileAPodPreempts(t *testing.T) {
	for name, remove := range map[string]func(*cluster){
		"the pod waits": func(*cluster) {},
		"it is deleted": func(c *cluster) { c.delete("urgent") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 4)
			low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
			c.startQuick()
			c.gangOf("train", low, 3, 3, 8)
			c.untilSatisfied("train")
			c.gangOf("other", c.priorityClass("middle", 20), 1, 1, 8)
			c.untilSatisfied("other")
			lift := c.refuseDeletions("train-0")
			c.create(c.pod("urgent", "", 8).PriorityClass(high))
			c.until("a part of the gang has ended, and the rest is marked", 30*time.Second, func(pods []*corev1.Pod) bool {
				left := bound(pods, "train")
				return 0 < left && left < 3 && slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && evict.IsWitness(p) })
			})
			c.scheduler.Kill()
			remove(c)
			lift()
			c.restart()
			c.until("nothing of the victim is left", 15*time.Second, func(pods []*corev1.Pod) bool { return bound(pods, "train") == 0 })
			c.checkEvicted(numbered("train", 3)...)
			c.untilBound("other", 1)
		})
	}
}

// The mark of one victim is refused for a while: none is deleted. Then all of them end.
func TestMarkOfAVictimIsRefused(t *testing.T) {
	c := newCluster(t, 2)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick()
	c.gangOf("train", low, 2, 2, 8)
	c.untilSatisfied("train")
	lift := c.refuseMarks("train-1")
	c.gangOf("chat", high, 2, 2, 8)
	c.untilReason("chat", v2alpha2.ReasonInsufficientGPUs)
	c.stillSchedules()
	c.checkEvicted() // the other victim could not be marked
	lift()
	c.untilBound("chat", 2)
	c.untilBound("train", 0)
	c.checkEvicted("train-0", "train-1")
}

// The priority of the preemptor falls below that of its victims while they end: they are gone whole, and
// the gang starts in their room, because nobody else needs it.
func TestPriorityOfThePreemptorChanges(t *testing.T) {
	c := newCluster(t, 2)
	low, middle, high := c.priorityClass("low", 10), c.priorityClass("middle", 20), c.priorityClass("high", 1000)
	c.startQuick()
	c.gangOf("train", middle, 2, 2, 8, graceSeconds(60))
	c.untilSatisfied("train")
	c.gangOf("chat", high, 2, 2, 8)
	c.untilTerminating(2)
	c.apply(c.group("chat").MinMember(2).Priority(low))
	c.delete("train-0", "train-1")
	c.untilBound("chat", 2)
	c.checkEvicted("train-0", "train-1")
	c.stillSchedulesAfter("chat")
}

// The spec of the preemptor's PodGroup is edited while the victims end, in a way that does not change what it needs.
// The room stays reserved: no pod of lower priority gets it, to be evicted again.
func TestRoomOfVictimsIsKeptWhenThePodGroupIsEdited(t *testing.T) {
	c := newCluster(t, 2)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick()
	c.gangOf("train", low, 2, 2, 8, graceSeconds(60))
	c.untilSatisfied("train")
	c.gangOf("chat", high, 2, 2, 8)
	c.untilTerminating(2)
	c.untilEvicting("chat")
	c.apply(c.group("chat").MinMember(2).Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.NonPreemptible }))
	c.untilStatus("chat", "reflects the edit", func(s v2Status) bool { return s.ObservedGeneration == 2 })
	c.create(c.pod("plain", "", 8).PriorityClass(low))
	c.delete("train-0")
	c.createPlain("bystander-0") // waits for the scheduler to have seen the room
	c.untilPodBound("bystander-0")
	c.notBound("plain")
	c.delete("train-1")
	c.untilBound("chat", 2)
	c.checkEvicted("train-0", "train-1")
}

// While a gang waits for a victim that does not end, it names that one.
func TestVictimThatDoesNotEndIsNamed(t *testing.T) {
	for name, hasGang := range map[string]bool{"of a gang": true, "without a gang": false} {
		t.Run(name, func(t *testing.T) {
			c, _, high := stuckVictim(t, hasGang, "12s")
			c.patience = 12 * time.Second
			c.gangOf("chat", high, 1, 1, 8)
			c.untilTerminating(1)
			c.untilStatus("chat", "names the pod that does not end", func(s v2Status) bool {
				return strings.Contains(condition(s, v2alpha2.ConditionPreempting).Message, "pod held-0 should have ended by now")
			})
		})
	}
}
