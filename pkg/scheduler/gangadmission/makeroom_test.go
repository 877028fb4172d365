// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/evict"
	"github.com/muster-project/muster/test/wrappers"
)

// rankedGang creates a PodGroup of pods of the priority, with one GPU each, of which so many are needed.
func (c *cluster) rankedGang(name string, priority int32, minimum, pods int) *cluster {
	c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(int32(minimum)).Obj())
	for _, w := range members(name, pods) {
		c.pod(w.Priority(priority))
	}
	return c
}

// evicted returns the pods that were deleted, sorted.
func (c *cluster) evicted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, w := range c.writes {
		if name, ok := strings.CutPrefix(w, "delete "); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestAGangTakesSurplusBeforeWholeGangs(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(4)).node(wrappers.MakeNode("n1").GPUs(4)).
		rankedGang("spare", 0, 2, 4).run().wholeOf("spare", 4).rankedGang("small", 0, 4, 4).wholeOf("small", 4)
	c.rankedGang("high", 100, 2, 2).wholeOf("high", 2)
	if got := c.evicted(); !slices.Equal(got, []string{"spare-2", "spare-3"}) {
		t.Errorf("evicted %v, want what is above the minimum", got)
	}
	if told := c.eventsWith("Preempted"); !strings.Contains(fmt.Sprint(told), "it is above the minimum of PodGroup spare") || strings.Contains(fmt.Sprint(told), "as a whole") {
		t.Errorf("told is %q", told)
	}
	c.rankedGang("more", 100, 3, 3).wholeOf("more", 3)
	// Two pods of the other gang's minimum are not enough: the gang of four ends, and nothing of the other one.
	if got := c.evicted(); !slices.Equal(got, []string{"small-0", "small-1", "small-2", "small-3", "spare-2", "spare-3"}) {
		t.Errorf("evicted %v, want the smallest gang that makes enough room", got)
	}
	c.eventually("nothing is reserved", func() bool { return c.gangs.registry.Reservations().Len() == 0 })
}

// Not parallel: the metrics are those of the process.
func TestMetricsOfPreemptions(t *testing.T) {
	values := func() map[string]float64 {
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, family := range families {
			for _, m := range family.Metric {
				switch family.GetName() {
				case "muster_preemption_victims_total":
					values[m.Label[0].GetValue()] = m.Counter.GetValue()
				case "muster_preemption_duration_seconds":
					values["seconds"], values["preemptions"] = m.Histogram.GetSampleSum(), float64(m.Histogram.GetSampleCount())
				}
			}
		}
		return values
	}
	semi := func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.SemiPreemptible }
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(2)).node(wrappers.MakeNode("n1").GPUs(4)).run()
	c.groups.Put(wrappers.MakePodGroup("tree", "ml").UID("tree").Generation(1).Spec(semi).MinSubGroup(1).SubGroup("a", 1).SubGroup("b", 1).Obj())
	c.groups.Put(wrappers.MakePodGroup("flat", "ml").UID("flat").Generation(1).Spec(semi).MinMember(1).Obj())
	tree := members("tree", 2)
	c.pod(tree[0].SubGroup("a"), tree[1].SubGroup("b")).pod(members("flat", 2)...).wholeOf("tree", 2).wholeOf("flat", 2)
	c.pod(wrappers.MakePod("plain", "ml").GPUs(1)).rankedGang("whole", 0, 1, 1).wholeOf("whole", 1)
	c.eventually("the plain pod runs", func() bool { return len(c.boundOf("plain")) == 1 })
	before := values()
	c.rankedGang("high", 100, 4, 4).wholeOf("high", 4) // one pod of each protected minimum stays
	c.eventually("counted", func() bool { return values()["preemptions"] == before["preemptions"]+1 })
	after := values()
	got := map[string]float64{}
	for name, value := range after {
		if got[name] = value - before[name]; got[name] == 0 {
			delete(got, name)
		}
	}
	if got["seconds"] <= 0 {
		t.Errorf("it took %v s", got["seconds"])
	}
	delete(got, "seconds")
	if diff := cmp.Diff(map[string]float64{"surplus-sub-group": 1, "surplus-pod": 1, "plain-pod": 1, "whole-gang": 1, "preemptions": 1}, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// searchesByResult returns how many searches for victims ended with each result, as the counter and the histogram say.
func searchesByResult(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted, timed := map[string]float64{}, map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			switch family.GetName() {
			case "muster_preemption_decisions_total":
				counted[m.Label[0].GetValue()] = m.Counter.GetValue()
			case "muster_preemption_decision_duration_seconds":
				timed[m.Label[0].GetValue()] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	for result, n := range timed {
		if counted[result] < n { // which is counted first
			t.Errorf("%v searches with result %s, and the time of %v", counted[result], result, n)
		}
	}
	return counted
}

// Each result of a search for victims, and what leads to it. Not parallel: the metrics are those of the process.
func TestResultsOfSearchesAreCounted(t *testing.T) {
	full := func(t *testing.T, gpus int, options ...clusterOption) *cluster {
		return newCluster(t, options...).node(wrappers.MakeNode("n0").GPUs(int64(gpus))).rankedGang("low", 0, gpus, gpus).run().wholeOf("low", gpus)
	}
	for name, tc := range map[string]struct {
		run  func(t *testing.T) *cluster
		want map[string]float64 // -1: at least one
	}{
		"lower priority ends": {
			func(t *testing.T) *cluster { return full(t, 2).rankedGang("high", 100, 2, 2).wholeOf("high", 2) },
			map[string]float64{"decided": 1, "confirmed": 1},
		},
		"the gang is too large": {
			func(t *testing.T) *cluster { return full(t, 2).rankedGang("high", 100, 3, 3).refused("high") },
			map[string]float64{"hopeless": -1},
		},
		"pods are ending": {
			func(t *testing.T) *cluster {
				c := full(t, 2).node(wrappers.MakeNode("n1").GPUs(2)).rankedGang("other", 0, 2, 2).wholeOf("other", 2)
				c.lingering = true
				for _, name := range []string{"other-0", "other-1"} {
					if err := c.client.CoreV1().Pods("ml").Delete(c.ctx, name, metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				c.eventually("the pods are terminating", func() bool {
					f, _ := c.gangs.registry.Facts(key("other"))
					return f.Bound[""] == 0
				})
				return c.rankedGang("high", 100, 2, 2).refused("high")
			},
			map[string]float64{"unneeded": -1},
		},
		"the time is over": {
			func(t *testing.T) *cluster {
				return full(t, 64, func(c *cluster, _ *bool, args *config.GangAdmissionArgs) {
					args.PlanDeadline.Duration, c.clock = 20*time.Millisecond, &passing{}
				}).rankedGang("high", 100, 64, 64).refused("high")
			},
			map[string]float64{"cut": -1}, // many searches with more and more time follow before one decides
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, got := searchesByResult(t), map[string]float64{}
			c := tc.run(t)
			c.eventually("the searches were counted", func() bool {
				for result, n := range searchesByResult(t) {
					if got[result] = n - before[result]; got[result] == 0 {
						delete(got, result)
					} else if tc.want[result] < 0 {
						got[result] = -1
					}
				}
				return len(got) >= len(tc.want)
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("searches by result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNobodyEndsInVain(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(5))
	c.groups.Put(wrappers.MakePodGroup("protected", "ml").UID("protected").Generation(1).MinMember(1).
		Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.NonPreemptible }).Obj())
	c.pod(members("protected", 1)...).rankedGang("low", 0, 4, 4).run().wholeOf("protected", 1).wholeOf("low", 4)
	c.rankedGang("large", 100, 5, 5).refused("large")
	c.eventually("it is said that preemption would not help", func() bool {
		f, _ := c.gangs.registry.Facts(key("large"))
		return f.NoHelp == "the gang would not fit without the 4 pods of lower priority either; 1 more pod of lower priority may not be preempted"
	})
	c.rankedGang("equal", 0, 1, 1).refused("equal")
	if got := c.evicted(); len(got) > 0 {
		t.Errorf("evicted %v", got)
	}
}

// Victims are searched for again after changes that the registry does not observe itself, or not in time.
func TestPreemptionIsTriedAgainWhenItMayHelp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		class  string // of the PodGroup of the victim, whose pod has the priority of the preemptor
		change func(c *cluster) error
	}{
		// The number of pods that fit is 0 before and after it.
		"another pod ends": {"low", func(c *cluster) error { c.deletePod("other"); return nil }},
		"a PriorityClass is created": {"late", func(c *cluster) error {
			_, err := c.client.SchedulingV1().PriorityClasses().Create(c.ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
			return err
		}},
		"a PriorityClass is deleted and created again": {"high", func(c *cluster) error {
			if err := c.client.SchedulingV1().PriorityClasses().Delete(c.ctx, "high", metav1.DeleteOptions{}); err != nil {
				return err
			}
			_, err := c.client.SchedulingV1().PriorityClasses().Create(c.ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}, metav1.CreateOptions{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(4))
			for class, value := range map[string]int32{"low": 0, "high": 100} {
				if _, err := c.client.SchedulingV1().PriorityClasses().Create(c.ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Value: value}, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			c.groups.Put(wrappers.MakePodGroup("victim", "ml").UID("victim").Generation(1).MinMember(1).Priority(tc.class).Obj())
			c.pod(wrappers.MakePod("victim-0", "ml").Gang("victim").GPUs(3).Priority(100)).run().wholeOf("victim", 1)
			needs := int64(3)
			if tc.class == "low" {
				needs = 4
				c.pod(wrappers.MakePod("other", "ml").GPUs(1).Priority(100)).eventually("the other pod runs", func() bool { return len(c.boundOf("other")) == 1 })
			}
			c.groups.Put(wrappers.MakePodGroup("high", "ml").UID("high").Generation(1).MinMember(1).Obj())
			c.pod(wrappers.MakePod("high-0", "ml").Gang("high").GPUs(needs).Priority(100)).refused("high")
			if err := tc.change(c); err != nil {
				t.Fatal(err)
			}
			c.wholeOf("high", 1)
		})
	}
}

// While the victims are being marked room becomes free, or is lost: none of them ends.
func TestVictimsThatAreNotNeededAnyMoreAreSpared(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(c *cluster)
		starts bool
	}{
		"a node is added":      {func(c *cluster) { c.node(wrappers.MakeNode("n1").GPUs(4)) }, true},
		"the node is cordoned": {func(c *cluster) { c.cordon("n0") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			var once sync.Once
			c.onMark = func() { once.Do(func() { tc.change(c) }) }
			c.node(wrappers.MakeNode("n0").GPUs(4)).rankedGang("low", 0, 4, 4).run().wholeOf("low", 4)
			c.rankedGang("high", 100, 4, 4)
			if tc.starts {
				c.wholeOf("high", 4)
			} else {
				c.eventually("the preemption is given up", func() bool {
					f, _ := c.gangs.registry.Facts(key("high"))
					return f.Preempting == nil && f.NoHelp != ""
				})
			}
			if got := c.evicted(); len(got) > 0 {
				t.Errorf("evicted %v", got)
			}
			c.eventually("no victim has a mark", func() bool { return !c.haveMark("low-0", "low-1", "low-2", "low-3") })
		})
	}
}

// cordon makes a node unschedulable.
func (c *cluster) cordon(name string) {
	c.changeNode(name, func(node *corev1.Node) { node.Spec.Unschedulable = true })
	c.eventually("the node is seen as unschedulable", func() bool { return c.sched.Cache.Dump().Nodes[name].Node().Spec.Unschedulable })
}

func (c *cluster) changeNode(name string, change func(*corev1.Node)) {
	node, err := c.client.CoreV1().Nodes().Get(c.ctx, name, metav1.GetOptions{})
	if err == nil {
		change(node)
		_, err = c.client.CoreV1().Nodes().Update(c.ctx, node, metav1.UpdateOptions{})
	}
	if err != nil {
		c.t.Error(err)
	}
}

// haveMark reports whether any of the pods has the mark of a victim.
func (c *cluster) haveMark(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, name, metav1.GetOptions{})
		if err != nil {
			c.t.Error(err)
			return false
		}
		_, marked := evict.PlanOf(pod)
		return marked
	})
}

// The room of victims that take long is not given to others: neither what they free, nor what is free beside them.
func TestRoomOfAPreemptorIsReserved(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.node(wrappers.MakeNode("n0").GPUs(4)).rankedGang("low", 0, 3, 3).run().wholeOf("low", 3)
	c.lingering = true
	c.rankedGang("high", 100, 4, 4).eventually("the victims are terminating", func() bool { return len(c.evicted()) == 3 })
	c.pod(wrappers.MakePod("plain", "ml").GPUs(1).Priority(100)).rankedGang("rival", 100, 1, 1).refused("rival")
	if len(c.boundOf("plain"))+len(c.boundOf("rival")) > 0 {
		t.Error("the free GPU went to a pod of the same priority")
	}
	for _, name := range []string{"low-0", "low-1", "low-2"} {
		c.deletePod(name)
	}
	c.wholeOf("high", 4)
	if len(c.boundOf("plain"))+len(c.boundOf("rival")) > 0 {
		t.Error("room of the victims went to a pod of the same priority")
	}
}

// A plan of lower priority that is not being bound yet, since a volume of a member is not ready, is aborted for a gang
// that needs its room. Pods that run end only if they are needed as well.
func TestPlansOfLowerPriorityAreAborted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		minimum, runs, high int // of the gang of lower priority
		evicted             int
	}{
		"the minimum is being prepared":     {minimum: 4, high: 4},
		"surplus of a gang that runs":       {minimum: 3, runs: 3, high: 1},
		"surplus of a gang that has to end": {minimum: 3, runs: 3, high: 4, evicted: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ready := make(chan struct{})
			release := sync.OnceFunc(func() { close(ready) })
			defer release()
			c := newCluster(t, prepares(func(_ context.Context, pod string) *fwk.Status {
				if pod == "low-3" {
					<-ready
				}
				return nil
			}), func(_ *cluster, _ *bool, args *config.GangAdmissionArgs) { args.BarrierTimeout.Duration = time.Minute })
			c.node(wrappers.MakeNode("n0").GPUs(4)).run().rankedGang("low", 0, tc.minimum, 4)
			c.eventually("its last pod is being prepared", func() bool {
				return len(c.boundOf("low")) == tc.runs && c.gangs.registry.PlanOf("uid-low-3") != nil
			})
			plan := c.gangs.registry.PlanOf("uid-low-3")
			c.rankedGang("high", 100, tc.high, tc.high).eventually("the plan is aborted", func() bool {
				return strings.Contains(plan.Reason(c.gangs.registry), "gang ml/high of higher priority needs the room")
			})
			release()
			c.wholeOf("high", tc.high)
			if got := c.evicted(); len(got) != tc.evicted {
				t.Errorf("evicted %v, want %d pods", got, tc.evicted)
			}
		})
	}
}

// One pod that never preempts is enough: the gang starts as a whole.
func TestAGangWithAPodThatNeverPreempts(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(4)).rankedGang("low", 0, 4, 4).run().wholeOf("low", 4)
	c.groups.Put(wrappers.MakePodGroup("polite", "ml").UID("polite").Generation(1).MinMember(2).Obj())
	for i, w := range members("polite", 2) {
		w.Priority(100)
		if i == 1 {
			w.NeverPreempts()
		}
		c.pod(w)
	}
	c.refused("polite")
	if got := c.evicted(); len(got) > 0 {
		t.Errorf("evicted %v", got)
	}
}

// A gang that has lost a pod asks all of its pods, those that are bound as well, and the PriorityClass of its PodGroup.
func TestARefillOfAGangThatNeverPreempts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		never, class string
		want         []string
	}{
		"a bound pod never preempts":         {never: "gang-0"},
		"the pod that waits never preempts":  {never: "gang-2"},
		"the PriorityClass of the PodGroup":  {class: "never"},
		"all of them preempt":                {class: "high", want: []string{"low-0", "low-1"}},
		"a pod that is gone never preempted": {never: "gang-1", want: []string{"low-0", "low-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(2))
			never := corev1.PreemptNever
			for _, class := range []*schedulingv1.PriorityClass{
				{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100},
				{ObjectMeta: metav1.ObjectMeta{Name: "never"}, Value: 100, PreemptionPolicy: &never},
			} {
				if _, err := c.client.SchedulingV1().PriorityClasses().Create(c.ctx, class, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			c.groups.Put(wrappers.MakePodGroup("gang", "ml").UID("gang").Generation(1).MinMember(2).Priority(tc.class).Obj())
			pods := members("gang", 3)
			for i, w := range pods {
				if w.Priority(100); tc.never == fmt.Sprintf("gang-%d", i) {
					w.NeverPreempts()
				}
			}
			c.pod(pods[:2]...).run().wholeOf("gang", 2)
			c.node(wrappers.MakeNode("n1").GPUs(2)).rankedGang("low", 0, 2, 2).wholeOf("low", 2)
			c.pod(wrappers.MakePod("top", "ml").GPUs(1).Priority(200).NeverPreempts()) // takes the room that the gang loses
			c.deletePod("gang-1")
			c.eventually("the room is gone", func() bool { return len(c.boundOf("top")) == 1 })
			if c.pod(pods[2]); tc.want != nil {
				c.eventually("the refill is bound", func() bool { return len(c.boundOf("gang-2")) == 1 })
			} else {
				c.refused("gang")
				if f, _ := c.gangs.registry.Facts(key("gang")); f.Preempting != nil {
					t.Errorf("the gang preempts: %+v", f.Preempting)
				}
			}
			if got := c.evicted(); !slices.Equal(got, tc.want) {
				t.Errorf("evicted %v, want %v", got, tc.want)
			}
		})
	}
}

// A pod without a gang preempts by the same ladder as a gang: surplus before a whole gang, which ends on all of its
// nodes.
func TestAPodWithoutAGangEndsWholeUnits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		minimum, want int
	}{
		"one pod above the minimum":         {3, 1},
		"the whole gang, on both its nodes": {4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(2)).node(wrappers.MakeNode("n1").GPUs(2)).
				rankedGang("wide", 0, tc.minimum, 4).run().wholeOf("wide", 4)
			c.pod(wrappers.MakePod("plain", "ml").GPUs(1).Priority(100)).eventually("the pod runs", func() bool { return len(c.boundOf("plain")) == 1 })
			c.eventually("all victims are deleted", func() bool { return len(c.evicted()) >= tc.want })
			if got := c.evicted(); len(got) != tc.want {
				t.Errorf("evicted %v, want %d pods", got, tc.want)
			}
		})
	}
}

// A gang that may not end as a whole is left alone, on however many nodes it is.
func TestAPodWithoutAGangTakesNoProtectedMinimum(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(1)).node(wrappers.MakeNode("n1").GPUs(1))
	c.groups.Put(wrappers.MakePodGroup("wide", "ml").UID("wide").Generation(1).MinMember(2).
		Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.SemiPreemptible }).Obj())
	c.pod(members("wide", 2)...).run().wholeOf("wide", 2)
	failed := c.countFailures()
	c.pod(wrappers.MakePod("plain", "ml").GPUs(1).Priority(100)).eventually("the pod was refused", func() bool { return failed.Load() > 0 })
	if got := c.evicted(); len(got) > 0 {
		t.Errorf("evicted %v", got)
	}
}

// A gang whose pods end for a pod without a gang ends as a whole, or not at all, although requests about one of its
// pods are refused for a while.
func TestAPodWithoutAGangEndsNoPartOfAMinimum(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		verb   string
		spares bool // nobody ends while they are refused
		beside bool // a pod without a gang has to end, too; then all of them are on one node
	}{
		"a deletion is refused":                    {verb: "delete"},
		"a mark is refused":                        {verb: "patch", spares: true},
		"a mark is refused, with one without gang": {verb: "patch", spares: true, beside: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, gpus, victims := newCluster(t), int64(2), 4
			if tc.beside {
				gpus, victims = 5, 5
				c.node(wrappers.MakeNode("n0").GPUs(5)).rankedGang("wide", 0, 4, 4).run().wholeOf("wide", 4)
				c.pod(wrappers.MakePod("other", "ml").GPUs(1)).eventually("the other pod runs", func() bool { return len(c.boundOf("other")) == 1 })
			} else {
				c.node(wrappers.MakeNode("n0").GPUs(2)).node(wrappers.MakeNode("n1").GPUs(2)).rankedGang("wide", 0, 4, 4).run().wholeOf("wide", 4)
			}
			var refused atomic.Int32
			var lifted atomic.Bool
			c.client.PrependReactor(tc.verb, "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				name := ""
				switch a := a.(type) {
				case clienttesting.DeleteAction:
					name = a.GetName()
				case clienttesting.PatchAction:
					name = a.GetName()
				}
				if name != "wide-3" || lifted.Load() {
					return false, nil, nil
				}
				refused.Add(1)
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), name, nil)
			})
			c.pod(wrappers.MakePod("plain", "ml").GPUs(gpus).Priority(100))
			c.eventually("requests were refused", func() bool { return refused.Load() >= 2 })
			if got := c.evicted(); tc.spares && len(got) > 0 {
				t.Errorf("evicted %v, and wide-3 cannot end", got)
			}
			lifted.Store(true)
			c.eventually("the pod runs", func() bool { return len(c.boundOf("plain")) == 1 })
			c.eventually("all victims have ended", func() bool { return len(c.evicted()) == victims })
			c.eventually("each pod and the gang have an event", func() bool { return len(c.eventsWith("Preempted")) >= victims+1 })
			for _, e := range c.eventsWith("Preempted") {
				want := "Preempted by pod ml/plain (priority 100) on node n"
				if strings.HasPrefix(e, "wide: ") {
					want = "by pod ml/plain (priority 100 over 0): all 4 pods"
				}
				if !strings.Contains(e, want) {
					t.Errorf("event %q, want %q", e, want)
				}
			}
		})
	}
}

// If the preemptor is deleted while its victims are being marked, none of them ends, and the marks are taken back.
func TestNobodyEndsForAPodThatIsDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(2)).node(wrappers.MakeNode("n1").GPUs(2)).
		rankedGang("wide", 0, 4, 4).run().wholeOf("wide", 4)
	var once sync.Once
	c.onMark = func() {
		once.Do(func() {
			c.deletePod("plain")
			c.pod(members("later", 1)...) // the registry sees events of pods in their order
			c.eventually("this is observed", func() bool { f, _ := c.gangs.registry.Facts(key("later")); return f.Pods == 1 })
		})
	}
	c.pod(wrappers.MakePod("plain", "ml").GPUs(1).Priority(100))
	c.eventually("all marks are taken back", func() bool {
		n := 0
		for i := range 4 {
			pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, fmt.Sprintf("wide-%d", i), metav1.GetOptions{})
			if err == nil && slices.ContainsFunc(pod.Status.Conditions, func(x corev1.PodCondition) bool {
				return x.Type == corev1.DisruptionTarget && x.Status == corev1.ConditionFalse
			}) {
				n++
			}
		}
		return n == 4
	})
	if got := c.evicted(); len(got) > 0 {
		t.Errorf("evicted %v", got)
	}
}
