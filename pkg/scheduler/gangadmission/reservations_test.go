// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

func keepsFor(d time.Duration) clusterOption {
	return func(_ *cluster, _ *bool, args *config.GangAdmissionArgs) { args.ReplacementTimeout.Duration = d }
}

// updated runs gang a with pods a-x and a-y, of leaves x and y, with 4 GPUs each, on the one node. Its PodGroup records
// that pods are being replaced. It returns when the registry knows that the gang is bound: the API server knows it
// before the scheduler does.
func updated(t *testing.T, options ...clusterOption) *cluster {
	c := newCluster(t, options...).node(wrappers.MakeNode("n0").GPUs(8)).run()
	group := wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).SubGroup("x", 1).SubGroup("y", 1)
	c.groups.Put(group.Obj())
	c.pod(wrappers.MakePod("a-x", "ml").Gang("a").SubGroup("x").GPUs(4).Priority(10),
		wrappers.MakePod("a-y", "ml").Gang("a").SubGroup("y").GPUs(4).Priority(10)).wholeOf("a", 2)
	c.says(group)
	return c.eventually("the bindings are seen", func() bool {
		f, _ := c.gangs.registry.Facts(key("a"))
		return f.Admitted
	})
}

func (c *cluster) says(group *wrappers.PodGroupWrapper) {
	c.t.Helper()
	c.groups.Put(group.Annotation(v2alpha2.ReplacingAnnotation, "true").Obj())
	c.eventually("the annotation is seen", func() bool {
		f, ok := c.gangs.registry.Facts(key(group.Obj().Name))
		return ok && f.Group.Annotations[v2alpha2.ReplacingAnnotation] != ""
	})
}

// rival creates a gang of one pod with 4 GPUs and the given priority, and waits until it is refused.
func (c *cluster) rival(name string, priority int32) *cluster {
	c.t.Helper()
	c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(1).Obj())
	return c.pod(wrappers.MakePod(name+"-0", "ml").Gang(name).GPUs(4).Priority(priority)).refused(name)
}

// plain creates a pod without a gang, with 4 GPUs, and waits until its cycle has failed.
func (c *cluster) plain(name string, priority int32) *cluster {
	c.t.Helper()
	never := corev1.PreemptNever
	c.pod(wrappers.MakePod(name, "ml").GPUs(4).Priority(priority).Spec(func(s *corev1.PodSpec) { s.PreemptionPolicy = &never }))
	return c.eventually(name+" refused", func() bool { return c.isUnscheduled(name) })
}

// isUnscheduled reports whether the pod's status records that it is not scheduled.
func (c *cluster) isUnscheduled(name string) bool {
	pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, name, metav1.GetOptions{})
	return err == nil && slices.ContainsFunc(pod.Status.Conditions, func(cond corev1.PodCondition) bool {
		return cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse
	})
}

// leaves deletes a bound pod, and waits until all components have observed it and evaluated which pods it may help.
func (c *cluster) leaves(pod string) *cluster {
	c.t.Helper()
	c.deletePod(pod)
	return c.eventually(pod+" gone", func() bool {
		nodes := c.sched.Cache.Dump().Nodes
		n := 0
		for _, info := range nodes {
			for _, p := range info.GetPods() {
				if p.GetPod().Name == pod {
					n++
				}
			}
		}
		if n == 0 {
			c.gangs.wakeReady(klog.Background())
		}
		return n == 0
	})
}

// replace creates a pod of leaf x.
func (c *cluster) replace(name string) *cluster {
	return c.pod(wrappers.MakePod(name, "ml").Gang("a").SubGroup("x").GPUs(4).Priority(10))
}

// replaceOn creates a pod of leaf x that fits only on one node.
func (c *cluster) replaceOn(name, node string) *cluster {
	return c.pod(wrappers.MakePod(name, "ml").Gang("a").SubGroup("x").GPUs(4).Priority(10).NodeSelector("only", node).Toleration("only"))
}

func (c *cluster) attemptsOf(pod string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.popped {
		if p == pod {
			n++
		}
	}
	return n
}

func (c *cluster) isBound(pod string) func() bool {
	return func() bool { return slices.Contains(c.boundOf(pod), pod) }
}

func TestReplacementHasTheRoomOfItsPod(t *testing.T) {
	t.Parallel()
	c := updated(t, keepsFor(time.Hour)).rival("b", 10).plain("p", 10)
	before := c.attemptsOf("b-0")
	c.leaves("a-x")
	if kept := c.gangs.registry.Reservations().Len(); kept != 1 {
		t.Fatalf("%d reservations, want one", kept)
	}
	c.gangs.backlog.EvaluatePods(klog.Background()) // runs once a second
	c.plain("late", 10)                             // a new pod finds the room reserved and does not use it
	c.rival("later", 0)
	if n := c.attemptsOf("b-0"); n != before {
		t.Errorf("the rival is tried %d times for room that is reserved", n-before)
	}
	if n := c.attemptsOf("p"); n > 2 { // the stock queue tries it once when a pod is deleted
		t.Errorf("the plain pod is tried %d times", n)
	}
	c.replace("a-new").eventually("replaced", c.isBound("a-new"))
	c.eventually("nothing kept", func() bool { return c.gangs.registry.Reservations().Len() == 0 })
	for _, other := range []string{"b-0", "p", "late", "later-0"} {
		if c.isBound(other)() {
			t.Errorf("%s is bound", other)
		}
	}
}

func TestAnotherLeafOfTheGangDoesNotTakeKeptRoom(t *testing.T) {
	t.Parallel()
	c := updated(t, keepsFor(time.Hour)).leaves("a-x")
	c.pod(wrappers.MakePod("a-surplus", "ml").Gang("a").SubGroup("y").GPUs(4).Priority(10)).refused("a")
	c.replace("a-new").eventually("replaced", c.isBound("a-new"))
	if c.isBound("a-surplus")() {
		t.Error("a pod of another leaf is bound")
	}
}

func TestHigherPriorityTakesKeptRoom(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(c *cluster) string{
		"a gang": func(c *cluster) string { c.rival("b", 11); return "b-0" },
		"a pod":  func(c *cluster) string { c.plain("p", 11); return "p" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := updated(t, keepsFor(time.Hour))
			pod := make(c)
			c.leaves("a-x").eventually("taken", c.isBound(pod))
		})
	}
}

func TestRoomIsFreeForAllInTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lasts time.Duration
		ends  func(c *cluster)
	}{
		"the time is over": {lasts: 4 * time.Second, ends: func(*cluster) {}},
		"the PodGroup no longer has the annotation": {lasts: time.Hour, ends: func(c *cluster) {
			c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).SubGroup("x", 1).SubGroup("y", 1).Obj())
		}},
		"the replacement is bound elsewhere": {lasts: time.Hour, ends: func(c *cluster) {
			c.replaceOn("a-new", "n1").node(wrappers.MakeNode("n1").GPUs(4).Label("only", "n1").Taint("only", "n1"))
			c.eventually("replaced", c.isBound("a-new"))
		}},
	} {
		for what, make := range map[string]func(c *cluster) string{
			"a gang": func(c *cluster) string { c.rival("b", 10); return "b-0" },
			"a pod":  func(c *cluster) string { c.plain("p", 10); return "p" },
			"a pod that came late": func(c *cluster) string {
				return "late"
			},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				c := updated(t, keepsFor(tc.lasts))
				pod := make(c)
				c.leaves("a-x")
				if pod == "late" {
					c.plain(pod, 10)
				}
				if c.isBound(pod)() {
					t.Error("it is bound while the room is reserved")
				}
				tc.ends(c)
				c.eventually("taken", c.isBound(pod))
			})
		}
	}
}

// All pods of a sub-group are replaced, while a rival waits for less room than they free.
func TestAUnitHasTheRoomOfItsPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t, keepsFor(time.Hour)).node(wrappers.MakeNode("n0").GPUs(8)).node(wrappers.MakeNode("n1").GPUs(4)).run()
	group := wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).SubGroup("keep", 1).Inner("", "unit", 2).
		SubGroupOf("unit", "x", 1).SubGroupOf("unit", "y", 1)
	pod := func(name, leaf string) *wrappers.PodWrapper {
		return wrappers.MakePod(name, "ml").Gang("a").SubGroup(leaf).GPUs(4).Priority(10)
	}
	c.groups.Put(group.Obj())
	c.pod(pod("a-keep", "keep"), pod("a-x", "x"), pod("a-y", "y")).wholeOf("a", 3)
	c.says(group)
	c.rival("b", 10).leaves("a-x").leaves("a-y")
	c.pod(pod("a-x2", "x")).rival("later", 10)
	c.pod(pod("a-y2", "y")).eventually("replaced", func() bool { return c.isBound("a-x2")() && c.isBound("a-y2")() })
	if c.isBound("b-0")() || c.isBound("later-0")() {
		t.Error("a rival is bound")
	}
}

// The scheduler's cache and the registry learn of a deletion by handlers that are not synchronized. The room is
// reserved before the first of them shows it as free.
func TestRoomIsKeptBeforeTheCacheForgetsThePod(t *testing.T) {
	t.Parallel()
	c := updated(t, keepsFor(time.Hour))
	pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, "a-x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.sched.Cache.RemovePod(klog.Background(), pod); err != nil { // as the scheduler's handler does
		t.Fatal(err)
	}
	if n := c.gangs.registry.Reservations().Len(); n != 1 {
		t.Fatalf("%d reservations, want one", n)
	}
}
