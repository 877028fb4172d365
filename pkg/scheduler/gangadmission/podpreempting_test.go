// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/test/wrappers"
)

// Whom kube-scheduler ends for a pod on nodes of 4 GPUs, by its own table of cases, and where the rules for gangs
// decide otherwise (docs/decisions, G21, G22).
func TestPodsPreemptAsInKubeScheduler(t *testing.T) {
	t.Parallel()
	const low, mid, high = 0, 50, 100
	running := func(name, node string, gpus int64, priority int32) *wrappers.PodWrapper {
		return wrappers.MakePod(name, "ml").GPUs(gpus).Priority(priority).Node(node).Label("of", name)
	}
	since := func(minutes int, w *wrappers.PodWrapper) *wrappers.PodWrapper {
		return w.Status(func(s *corev1.PodStatus) {
			s.StartTime = &metav1.Time{Time: time.Now().Add(-time.Duration(minutes) * time.Minute)}
		})
	}
	is := func(label string, w *wrappers.PodWrapper) *wrappers.PodWrapper { return w.Label("is", label) }
	plain := func(gpus int64) *wrappers.PodWrapper {
		return wrappers.MakePod("p", "ml").GPUs(gpus).Priority(high)
	}
	spread := func(w *wrappers.PodWrapper) *wrappers.PodWrapper {
		return is("spread", w).Spec(func(s *corev1.PodSpec) {
			for _, key := range []string{"zone", corev1.LabelHostname} {
				s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
					MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"is": "spread"}},
				})
			}
		})
	}
	pods := func(list ...*wrappers.PodWrapper) []*wrappers.PodWrapper { return list }
	for name, tc := range map[string]struct {
		pods    []*wrappers.PodWrapper
		p       *wrappers.PodWrapper
		allowed int    // evictions that the budget of the pods with is=guarded allows
		want    string // "<node>: <victims>"; "": nobody ends
	}{
		"all others are as high":                   {pods: pods(running("a", "n0", 4, high), running("b", "n1", 4, high)), p: plain(4)},
		"all others are higher":                    {pods: pods(running("a", "n0", 4, mid), running("b", "n1", 4, mid)), p: plain(4).Priority(low)},
		"not enough when the lower ones have gone": {pods: pods(running("a", "n0", 2, high), running("b", "n0", 2, low), running("c", "n1", 4, high)), p: plain(4)},
		"it never preempts":                        {pods: pods(running("a", "n0", 4, low), running("b", "n1", 4, low)), p: plain(4).NeverPreempts()},
		"the lowest of the highest victims":        {pods: pods(running("a", "n0", 4, mid), running("b", "n1", 4, low)), p: plain(4), want: "n1: b"},
		"a small pod of a lower priority stays":    {pods: pods(running("a", "n0", 1, low), running("b", "n0", 3, mid), running("c", "n1", 4, high)), p: plain(3), want: "n0: b"},
		"victims of two priorities": {
			pods: pods(running("a", "n0", 1, mid), running("b", "n0", 1, low), running("c", "n0", 1, mid), running("d", "n0", 1, high), running("e", "n1", 4, high)),
			p:    plain(3), want: "n0: a+b+c",
		},
		"the fewest pods": {
			pods: pods(running("a", "n0", 2, low), running("b", "n0", 2, low), running("c", "n1", 4, low)), p: plain(4), want: "n1: c",
		},
		// There by the sum of the priorities: one of mid costs less than one of mid and one of low. Here by the number,
		// too.
		"the fewest of one priority and less of a lower one": {
			pods: pods(running("a", "n0", 2, mid), running("b", "n0", 2, low), running("c", "n1", 4, mid)), p: plain(4), want: "n1: c",
		},
		"those that have run for the shortest time": {
			pods: pods(since(60, running("a", "n0", 4, low)), since(5, running("b", "n1", 4, low))), p: plain(4), want: "n1: b",
		},
		// There by the latest start of the earliest victim of the highest priority, here by the time of all victims in
		// sum (docs/decisions, G22).
		"the least work lost in sum": {
			pods: pods(since(10, running("a", "n0", 2, low)), since(1, running("b", "n0", 2, low)), since(9, running("c", "n1", 2, low)), since(8, running("d", "n1", 2, low))),
			p:    plain(4), want: "n0: a+b",
		},
		"a budget that would be violated": {
			pods: pods(is("guarded", running("a", "n0", 4, low)), running("b", "n1", 4, mid)), p: plain(4), want: "n1: b",
		},
		"a budget that allows it": {
			pods: pods(is("guarded", running("a", "n0", 4, low)), running("b", "n1", 4, mid)), p: plain(4), allowed: 1, want: "n0: a",
		},
		"a budget that is violated by one of two": {
			pods: pods(is("guarded", running("a", "n0", 2, low)), is("guarded", running("b", "n0", 2, low)), running("c", "n1", 4, mid)), p: plain(4), allowed: 1, want: "n1: c",
		},
		"a budget does not protect": {
			pods: pods(is("guarded", running("a", "n0", 4, low)), running("b", "n1", 4, high)), p: plain(4), want: "n0: a",
		},
		"a pod that keeps others away": {
			pods: pods(is("apart", running("a", "n0", 1, low)).ApartFrom(corev1.LabelHostname, "is", "apart"), running("b", "n0", 1, mid), running("c", "n1", 4, high)),
			p:    is("apart", plain(1)), want: "n0: a",
		},
		"a pod that it keeps away from": {
			pods: pods(is("apart", running("a", "n0", 1, low)), running("b", "n0", 1, mid), running("c", "n1", 4, high)),
			p:    plain(1).ApartFrom(corev1.LabelHostname, "is", "apart"), want: "n0: a",
		},
		"pods that are to be spread": {
			pods: pods(is("spread", running("a", "n0", 1, mid)), is("spread", running("b", "n0", 1, low)), is("spread", running("c", "n1", 4, low)),
				is("spread", running("d", "n2", 1, high)), is("spread", running("e", "n2", 1, high))),
			p: spread(plain(1)), want: "n0: b",
		},
		"a port that a pod of lower priority has": {
			pods: pods(running("a", "n0", 1, low).HostPort(80), running("b", "n1", 1, high).HostPort(80)), p: plain(1).HostPort(80), want: "n0: a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			nodes := 2
			if strings.Contains(name, "spread") {
				nodes = 3
			}
			for i := range nodes {
				node := fmt.Sprintf("n%d", i)
				c.node(wrappers.MakeNode(node).GPUs(4).Label(corev1.LabelHostname, node).Label("zone", fmt.Sprint(i/2)))
			}
			budget := &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: "guard", Namespace: "ml"},
				Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"is": "guarded"}}},
				Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(tc.allowed)},
			}
			if _, err := c.client.PolicyV1().PodDisruptionBudgets("ml").Create(c.ctx, budget, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			c.pod(tc.pods...).eventually("they are seen", func() bool {
				n := 0
				for _, node := range c.sched.Cache.Dump().Nodes {
					n += len(node.GetPods())
				}
				return n == len(tc.pods)
			})
			failed := c.countFailures()
			if c.run().pod(tc.p); tc.want == "" {
				c.eventually("it is refused", func() bool { return failed.Load() > 0 })
				if got := c.evicted(); len(got) > 0 {
					t.Errorf("%v end", got)
				}
				return
			}
			c.eventually("it runs", c.isBound("p"))
			if got := c.nodeOf("p") + ": " + strings.Join(c.evicted(), "+"); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// The pod may preempt on 150 nodes and looks at 100 of them first. Who ends is the same as if it looked at all, but for
// how long the victim has run.
func TestThePodLooksAtASampleFirst(t *testing.T) {
	t.Parallel()
	const nodes = 150
	guarded := func(w *wrappers.PodWrapper) *wrappers.PodWrapper { return w.Label("is", "guarded") }
	for name, tc := range map[string]struct {
		p     *wrappers.PodWrapper
		usual func(name string) []*wrappers.PodWrapper // on each node but one; nil: a pod of 4 GPUs
		other func(name string) []*wrappers.PodWrapper // on that one, the first is the victim; nil: as usual
	}{
		"a lower priority": {
			other: func(name string) []*wrappers.PodWrapper {
				return []*wrappers.PodWrapper{wrappers.MakePod(name, "ml").GPUs(4).Priority(9)}
			},
		},
		"a lower priority that does not suffice": {
			usual: func(name string) []*wrappers.PodWrapper {
				return []*wrappers.PodWrapper{wrappers.MakePod(name, "ml").GPUs(3).Priority(10), wrappers.MakePod(name+"-low", "ml").GPUs(1)}
			},
			other: func(name string) []*wrappers.PodWrapper {
				return []*wrappers.PodWrapper{wrappers.MakePod(name, "ml").GPUs(4).Priority(9)}
			},
		},
		"a pod above the minimum of its gang": {
			other: func(name string) []*wrappers.PodWrapper {
				return []*wrappers.PodWrapper{wrappers.MakePod(name, "ml").GPUs(4).Priority(10).Gang("elastic")}
			},
		},
		"no budget is violated": {
			usual: func(name string) []*wrappers.PodWrapper {
				return []*wrappers.PodWrapper{guarded(wrappers.MakePod(name, "ml").GPUs(4).Priority(10))}
			},
		},
		"one pod instead of two": {
			usual: func(name string) []*wrappers.PodWrapper {
				return []*wrappers.PodWrapper{wrappers.MakePod(name, "ml").GPUs(2).Priority(10), wrappers.MakePod(name+"-second", "ml").GPUs(2).Priority(10)}
			},
		},
		"fewer GPUs, beside free ones": {
			other: func(name string) []*wrappers.PodWrapper {
				return []*wrappers.PodWrapper{wrappers.MakePod(name, "ml").GPUs(2).Priority(10)}
			},
		},
		"fewer GPUs": {
			p: wrappers.MakePod("p", "ml").GPUs(2).Priority(100),
			other: func(name string) []*wrappers.PodWrapper {
				return []*wrappers.PodWrapper{wrappers.MakePod(name, "ml").GPUs(2).Priority(10), wrappers.MakePod(name+"-higher", "ml").GPUs(2).Priority(100)}
			},
		},
	} {
		for _, at := range []int{0, 60, nodes - 1} { // at least one of them is not in the sample
			t.Run(fmt.Sprintf("%s/%d", name, at), func(t *testing.T) {
				t.Parallel()
				c := newCluster(t)
				c.groups.Put(wrappers.MakePodGroup("elastic", "ml").UID("elastic").Generation(1).MinMember(1).Obj())
				if name == "a pod above the minimum of its gang" {
					c.node(wrappers.MakeNode("own").GPUs(1)).pod(wrappers.MakePod("a-0", "ml").GPUs(1).Priority(10).Gang("elastic").Node("own"))
				}
				usual := func(name string) []*wrappers.PodWrapper {
					return []*wrappers.PodWrapper{wrappers.MakePod(name, "ml").GPUs(4).Priority(10)}
				}
				budget := &policyv1.PodDisruptionBudget{
					ObjectMeta: metav1.ObjectMeta{Name: "guard", Namespace: "ml"},
					Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"is": "guarded"}}},
				}
				if _, err := c.client.PolicyV1().PodDisruptionBudgets("ml").Create(c.ctx, budget, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				total := 0
				for i := range nodes {
					node := fmt.Sprintf("n%03d", i)
					pods := usual
					switch {
					case i == at && tc.other != nil:
						pods = tc.other
					case i != at && tc.usual != nil:
						pods = tc.usual
					}
					c.node(wrappers.MakeNode(node).GPUs(4))
					for _, w := range pods("on-" + node) {
						c.pod(w.Node(node))
						total++
					}
				}
				c.eventually("they are seen", func() bool {
					n := 0
					for _, node := range c.sched.Cache.Dump().Nodes {
						n += len(node.GetPods())
					}
					return n >= total
				})
				if name == "a pod above the minimum of its gang" {
					c.eventually("they are members", func() bool { // of which another handler tells
						f, ok := c.gangs.registry.Facts(key("elastic"))
						return ok && f.Group != nil && f.Pods == 2
					})
				}
				p := tc.p
				if p == nil {
					p = wrappers.MakePod("p", "ml").GPUs(4).Priority(100)
				}
				c.run().pod(p).eventually("it runs", c.isBound("p"))
				if got, want := c.evicted(), fmt.Sprintf("on-n%03d", at); !slices.Equal(got, []string{want}) {
					t.Errorf("%v end, want %s", got, want)
				}
			})
		}
	}
}

// Pods look at different samples, so that few of them wait for each other's victims on one node.
func TestPodsLookAtDifferentSamples(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i := range 150 {
		node := fmt.Sprintf("n%03d", i)
		c.node(wrappers.MakeNode(node).GPUs(4))
		for k := range 4 {
			c.pod(wrappers.MakePod(fmt.Sprintf("low-%d-%d", i, k), "ml").GPUs(1).Node(node))
		}
	}
	c.run().lingering = true
	for i := range 8 {
		c.pod(wrappers.MakePod(fmt.Sprintf("high-%d", i), "ml").GPUs(1).Priority(100))
	}
	c.eventually("the victims are terminating", func() bool { return len(c.evicted()) >= 8 })
	nodes := map[string]bool{}
	for _, name := range c.evicted() {
		nodes[c.nodeOf(name)] = true
	}
	if len(nodes) < 6 {
		t.Errorf("%v end, on %d nodes only", c.evicted(), len(nodes))
	}
}

// Several pods at the same time end no more than they need, and each gets its room. A gang of a higher priority takes
// the room of some of them, which preempt again.
func TestPodsThatPreemptAtTheSameTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i := range 3 {
		c.node(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(4))
		for k := range 4 {
			c.pod(wrappers.MakePod(fmt.Sprintf("low-%d-%d", i, k), "ml").GPUs(1).Node(fmt.Sprintf("n%d", i)))
		}
	}
	c.run().lingering = true
	for i := range 6 {
		c.pod(wrappers.MakePod(fmt.Sprintf("high-%d", i), "ml").GPUs(1).Priority(100))
	}
	c.eventually("the victims are terminating", func() bool { return len(c.evicted()) >= 6 }).rankedGang("gang", 200, 2, 2).refused("gang")
	victims := c.evicted()
	if len(victims) != 6 {
		t.Errorf("%v end, want 6 pods: %q", victims, c.eventsWith("Preempted"))
	}
	c.mu.Lock()
	c.lingering = false
	c.mu.Unlock()
	for _, name := range victims {
		c.deletePod(name)
	}
	c.wholeOf("gang", 2).eventually("all run", func() bool { return len(c.boundOf("high")) == 6 })
	if got := c.evicted(); len(got) != 8 {
		t.Errorf("%v have ended, want 8 pods", got)
	}
}

// The room of a pod whose victim takes long is kept from a gang, and from a pod, of a lower priority. Whatever happens
// meanwhile, nobody else ends for it. A pod whose victim never ends takes other room.
func TestThePodWaitsForItsVictim(t *testing.T) {
	t.Parallel()
	c := newCluster(t, func(_ *cluster, _ *bool, args *config.GangAdmissionArgs) {
		args.PreemptionTimeout.Duration = 5 * time.Second
	})
	c.node(wrappers.MakeNode("n0").GPUs(4)).pod(wrappers.MakePod("low-0", "ml").GPUs(3).Node("n0")).run()
	c.lingering = true
	c.pod(wrappers.MakePod("high", "ml").GPUs(4).Priority(100)).eventually("the victim is terminating", func() bool { return len(c.evicted()) == 1 })
	c.eventually("its node is nominated", func() bool {
		pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, "high", metav1.GetOptions{})
		return err == nil && pod.Status.NominatedNodeName == "n0"
	})
	c.rankedGang("rival", 50, 1, 1).refused("rival").pod(wrappers.MakePod("plain", "ml").GPUs(1).Priority(50))
	c.node(wrappers.MakeNode("n1").GPUs(4)).eventually("others use the other node", func() bool { return c.isBound("high")() || len(c.boundOf("rival"))+len(c.boundOf("plain")) == 2 })
	if c.isBound("high")() { // the node that came has room for all of it
		if got := c.evicted(); !slices.Equal(got, []string{"low-0"}) {
			t.Errorf("%v end", got)
		}
		return
	}
	if got := c.evicted(); !slices.Equal(got, []string{"low-0"}) || c.nodeOf("plain") != "n1" || c.nodeOf("rival-0") != "n1" {
		t.Errorf("%v end, others are on %s and %s, want that the room on n0 is kept", got, c.nodeOf("plain"), c.nodeOf("rival-0"))
	}
	c.eventually("it has given up", func() bool { return c.isBound("high")() || len(c.evicted()) == 3 })
}

// Two pods are to end on a node for two others. When the first one has ended, the filters still count the pod that
// waits for the second one, which has the same priority. Nobody else ends meanwhile, nothing is searched for, and no
// eviction counts as in vain. It is not parallel: it reads metrics.
func TestThePodWaitsForTheVictimsOfOthersOnItsNode(t *testing.T) {
	c := newCluster(t)
	inVain := func() (sum float64) {
		for _, m := range []metrics.CounterMetric{preemptionsEnded.WithLabelValues(string(evictions.Wasted)), preemptions.WithLabelValues(string(unneeded))} {
			n, err := testutil.GetCounterMetricValue(m)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		return sum
	}
	before := inVain()
	c.node(wrappers.MakeNode("n0").GPUs(4)).pod(wrappers.MakePod("low-0", "ml").GPUs(2).Node("n0"), wrappers.MakePod("low-1", "ml").GPUs(2).Node("n0"))
	c.lingering = true
	failed := c.countFailures()
	c.run().pod(wrappers.MakePod("high-0", "ml").GPUs(2).Priority(100)).eventually("the first one is terminating", func() bool { return len(c.evicted()) == 1 })
	first := c.evicted()[0]
	c.pod(wrappers.MakePod("high-1", "ml").GPUs(2).Priority(100)).eventually("both are", func() bool { return len(c.evicted()) == 2 })
	c.mu.Lock()
	c.lingering = false
	c.mu.Unlock()
	tried := failed.Load()
	c.deletePod(first)
	c.eventually("it is tried twice, the second time when it must see the room", func() bool { return failed.Load() >= tried+2 })
	for _, name := range []string{"low-0", "low-1"} {
		if name != first {
			c.deletePod(name)
		}
	}
	c.eventually("both run", func() bool { return len(c.boundOf("high")) == 2 })
	if got := c.evicted(); len(got) != 2 {
		t.Errorf("%v have ended, want two pods", got)
	}
	if n := inVain() - before; n > 0 {
		t.Errorf("%v evictions in vain and searches without need", n)
	}
}

// A pod that waits for no victims, and may not preempt, gives up the node on which it was nominated: the room is of use
// for others.
func TestThePodThatMayNotPreemptIsNotNominated(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.node(wrappers.MakeNode("n0").GPUs(4)).pod(wrappers.MakePod("peer", "ml").GPUs(1).Priority(100).Node("n0"))
	nominated := wrappers.MakePod("high", "ml").GPUs(4).Priority(100).Status(func(s *corev1.PodStatus) { s.NominatedNodeName = "n0" })
	// A pod that was refused before is woken by the next event, as in kube-scheduler.
	c.pod(nominated).run().eventually("it is not nominated", func() bool {
		pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, "high", metav1.GetOptions{})
		return err == nil && pod.Status.NominatedNodeName == ""
	})
	c.pod(wrappers.MakePod("low", "ml").GPUs(3)).eventually("a pod of lower priority runs", c.isBound("low"))
}

// A gang that is being bound cannot be preempted yet. No event wakes the pod when it is bound, but it preempts then.
func TestThePodPreemptsAGangThatWasBeingBound(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	release, posted := make(chan struct{}), make(chan string, 2)
	c.answer = func(_ context.Context, pod string) error {
		if strings.HasPrefix(pod, "low") {
			posted <- pod
			<-release
		}
		return nil
	}
	failed := c.countFailures()
	c.node(wrappers.MakeNode("other").GPUs(1)).pod(wrappers.MakePod("other", "ml").GPUs(1).Node("other")) // of a lower priority, and of no use
	c.node(wrappers.MakeNode("n0").GPUs(2)).run().gang("low", 2)
	<-posted
	<-posted
	tried := failed.Load()
	c.pod(wrappers.MakePod("high", "ml").GPUs(2).Priority(100)).eventually("it is refused", func() bool { return failed.Load() > tried })
	if got := c.evicted(); len(got) > 0 {
		t.Fatalf("%v end while they are being bound", got)
	}
	close(release)
	c.eventually("it runs", c.isBound("high"))
}
