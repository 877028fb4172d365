// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// A replica of a scaling group, two leaves below one sub-group, is replaced on a full cluster while the rest of its
// gang runs and other gangs wait. Its old pods terminate one by one, and its new ones are created one by one. In the
// end the replica is either complete or has no pod bound (docs/decisions, G20).
func TestAReplicaIsReplacedAsAWhole(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rival int32 // its priority; the gang has 10
		whole bool  // the replica is complete again
	}{
		{name: "without a rival", rival: -1, whole: true},
		{name: "a rival of equal priority waits", rival: 10}, // it takes room into which the whole replica does not fit
		{name: "a rival of higher priority waits", rival: 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, 3) // 24 GPUs
			mine := c.priorityClass("mine", 10)
			c.startQuick()
			c.apply(c.group("chat").SubGroup("router", 1).Inner("", "decode", 1).
				Inner("decode", "d0", 2).SubGroupOf("d0", "d0-lead", 1).SubGroupOf("d0", "d0-work", 1))
			pod := func(name, leaf string) *wrappers.PodWrapper {
				return c.pod(name, "chat", 8).SubGroup(leaf).PriorityClass(mine)
			}
			held := func(w *wrappers.PodWrapper) *corev1.Pod {
				p := w.Obj()
				p.Finalizers = []string{"example.com/grace"}
				p.ResourceVersion, p.CreationTimestamp = "", metav1.Time{}
				created, err := cp.Client().CoreV1().Pods(c.namespace).Create(c.ctx, p, metav1.CreateOptions{})
				c.must(err, "creating pod "+p.Name)
				return created
			}
			c.create(pod("router", "router"))
			held(pod("lead-a", "d0-lead"))
			held(pod("work-a", "d0-work"))
			t.Cleanup(func() { c.letGo("lead-a", "work-a") })
			c.untilSatisfied("chat")

			if tc.rival >= 0 {
				class := c.neverPreempting("rival", tc.rival) // otherwise it preempts the gang
				c.apply(c.group("rival").MinMember(1))
				c.create(c.pod("rival", "rival", 8).PriorityClass(class))
				c.untilSays("rival", v2alpha2.ReasonInsufficientGPUs)
			}

			c.delete("lead-a", "work-a") // they terminate
			c.untilStatus("chat", "has taken the replica's admission back", func(s v2Status) bool {
				return !admittedGroup(s, "d0") && !admittedGroup(s, "d0-lead") && !admittedGroup(s, "d0-work") && admittedGroup(s, "router") &&
					condition(s, v2alpha2.ConditionAdmitted).Status == metav1.ConditionTrue
			})
			c.create(pod("lead-b", "d0-lead"))
			c.letGo("lead-a")
			if tc.rival >= 0 {
				c.untilBound("rival", 1)
			} else {
				c.untilSays("chat", v2alpha2.ReasonWaitingForPods, "d0-work lacks 1 of 1")
			}
			c.notBound("lead-b")
			c.create(pod("work-b", "d0-work"))
			c.letGo("work-a")
			if !tc.whole { // 8 GPUs are free, and the replica needs 16
				c.untilSays("chat", v2alpha2.ReasonInsufficientGPUs, "16 nvidia.com/gpu for 2 pods, 8 are free")
				c.notBound("lead-b", "work-b")
				c.delete("rival")
			}
			c.untilPodBound("lead-b", "work-b")
			c.untilStatus("chat", "is whole again", func(s v2Status) bool {
				return s.Phase == v2alpha2.PodGroupAdmitted && admittedGroup(s, "d0") && admittedGroup(s, "d0-lead") && admittedGroup(s, "d0-work")
			})
		})
	}
}

func admittedGroup(s v2Status, name string) bool {
	i := slices.IndexFunc(s.SubGroups, func(g v2alpha2.SubGroupStatus) bool { return g.Name == name })
	return i >= 0 && s.SubGroups[i].Admitted
}

// letGo removes the finalizers of pods that still exist.
func (c *cluster) letGo(names ...string) {
	for _, n := range names {
		none := []byte(`{"metadata":{"finalizers":null}}`)
		_, err := cp.Client().CoreV1().Pods(c.namespace).Patch(context.Background(), n, types.MergePatchType, none, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			c.must(err, "removing the finalizers of "+n)
		}
	}
}
