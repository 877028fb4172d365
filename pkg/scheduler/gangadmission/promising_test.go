// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/test/fakeapi"
	"github.com/muster-project/muster/test/wrappers"
)

// reservesSoon lets room be reserved for gangs that have waited for a second.
func reservesSoon(_ *cluster, _ *bool, args *config.GangAdmissionArgs) {
	args.ReservationAfter.Duration = time.Second
}

// TestAGangWithAnExtenderDoesNotBlockReservations: it is promised none, and the gang behind it has its turn.
func TestAGangWithAnExtenderDoesNotBlockReservations(t *testing.T) {
	t.Parallel()
	extender := &fakeapi.Extender{Answer: func(_ string, _ *corev1.Pod, nodes []string) any {
		return fakeapi.Accepted(nodes, func(string) string { return "" })
	}}
	c := newCluster(t, reservesSoon, extended(extender, managesWidgets)).node(wrappers.MakeNode("n0").GPUs(8)).run()
	c.pod(wrappers.MakePod("on-n0", "ml").GPUs(8)).eventually("on-n0 bound", c.isBound("on-n0"))
	c.withWidgets("odd", 1)
	c.refused("odd")
	c.groups.Put(wrappers.MakePodGroup("big", "ml").UID("big").Generation(1).MinMember(1).Obj())
	c.pod(wrappers.MakePod("big-0", "ml").Gang("big").GPUs(8)).refused("big")
	c.eventually("room is promised", func() bool {
		f, _ := c.gangs.registry.Facts(key("big"))
		return f.Promised != nil && len(f.Promised.Nodes) == 1
	})
}

// TestAGangIsPromisedRoom: a gang needs both nodes, on which pods run. When it has waited for a second, what becomes
// free is kept for it; what it cannot use is not.
func TestAGangIsPromisedRoom(t *testing.T) {
	t.Parallel()
	c := newCluster(t, reservesSoon).node(wrappers.MakeNode("n0").GPUs(8)).node(wrappers.MakeNode("n1").GPUs(8)).run()
	for _, name := range []string{"on-n0", "on-n1"} {
		c.pod(wrappers.MakePod(name, "ml").GPUs(8)).eventually(name+" bound", c.isBound(name))
	}
	c.groups.Put(wrappers.MakePodGroup("big", "ml").UID("big").Generation(1).MinMember(2).Obj())
	c.pod(wrappers.MakePod("big-0", "ml").Gang("big").GPUs(8), wrappers.MakePod("big-1", "ml").Gang("big").GPUs(8)).refused("big")
	c.eventually("room on two nodes is promised", func() bool {
		f, _ := c.gangs.registry.Facts(key("big"))
		return f.Promised != nil && len(f.Promised.Nodes) == 2
	})
	c.leaves("on-n0")
	c.plain("small", 0)
	c.rival("gang", 0)
	c.pod(wrappers.MakePod("cpu", "ml").CPU("1")).eventually("a pod without GPUs is bound", c.isBound("cpu"))
	c.pod(wrappers.MakePod("high", "ml").Priority(5).GPUs(4).Spec(func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever })).
		eventually("a pod of a higher priority is bound", c.isBound("high"))
	c.deletePod("high")
	c.leaves("on-n1")
	c.wholeOf("big", 2)
}

// TestAPromiseLeavesANodeThatIsCordoned: at once, although nothing has become free.
func TestAPromiseLeavesANodeThatIsCordoned(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Node){
		"cordoned": func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"tainted": func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "broken", Effect: corev1.TaintEffectNoSchedule})
		},
		"smaller": func(n *corev1.Node) { n.Status.Allocatable[wrappers.GPUResource] = resource.MustParse("7") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, reservesSoon).node(wrappers.MakeNode("n0").GPUs(8)).node(wrappers.MakeNode("n1").GPUs(8)).run()
			for _, pod := range []string{"on-n0", "on-n1"} {
				c.pod(wrappers.MakePod(pod, "ml").GPUs(8).Spec(func(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = new(int64(3600)) })).
					eventually(pod+" bound", c.isBound(pod))
			}
			c.groups.Put(wrappers.MakePodGroup("big", "ml").UID("big").Generation(1).MinMember(1).Obj())
			c.pod(wrappers.MakePod("big-0", "ml").Gang("big").GPUs(8)).refused("big")
			promised := func() string {
				f, _ := c.gangs.registry.Facts(key("big"))
				if f.Promised == nil {
					return ""
				}
				return strings.Join(f.Promised.Nodes, ",")
			}
			c.eventually("room is promised", func() bool { return promised() != "" })
			first := promised()
			c.changeNode(first, change)
			c.eventually("room on the other node is promised", func() bool { return promised() != "" && promised() != first })
			c.cordon("n0")
			c.cordon("n1")
			c.eventually("no room is promised", func() bool { return promised() == "" })
		})
	}
}

// TestWhatPodsReturnIsNotKeptTwice: the CPUs that a gang needs are those of the pod for which it waits, so a pod may
// use those that are free, but no more.
func TestWhatPodsReturnIsNotKeptTwice(t *testing.T) {
	t.Parallel()
	c := newCluster(t, reservesSoon).node(wrappers.MakeNode("n0").GPUs(8).Capacity(corev1.ResourceCPU, "16")).run()
	c.pod(wrappers.MakePod("on-n0", "ml").GPUs(8).CPU("12")).eventually("on-n0 bound", c.isBound("on-n0"))
	c.groups.Put(wrappers.MakePodGroup("big", "ml").UID("big").Generation(1).MinMember(1).Obj())
	c.pod(wrappers.MakePod("big-0", "ml").Gang("big").GPUs(8).CPU("13")).refused("big")
	c.eventually("room is promised", func() bool {
		f, _ := c.gangs.registry.Facts(key("big"))
		return f.Promised != nil && len(f.Promised.Nodes) == 1
	})
	c.pod(wrappers.MakePod("passes", "ml").CPU("3")).eventually("a pod that leaves one CPU is bound", c.isBound("passes"))
	c.pod(wrappers.MakePod("waits", "ml").CPU("1")).eventually("a pod that needs the last one waits", func() bool { return c.isUnscheduled("waits") })
	c.leaves("on-n0")
	c.wholeOf("big", 1)
	if c.isBound("waits")() {
		t.Error("the pod has the CPU that is kept")
	}
}
