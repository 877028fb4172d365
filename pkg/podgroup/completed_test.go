// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/test/wrappers"
)

func TestCompletedStaysWhenPodsAreCleanedUp(t *testing.T) {
	group := wrappers.MakePodGroup("eval", "ml").MinMember(2).Generation(3).Obj()
	built, err := Tree(&group.Spec)
	if err != nil {
		t.Fatal(err)
	}
	ended := gang.Counts{"": 2}
	facts := Facts{Namespace: "ml", Name: "eval", Group: group, Tree: built, Created: ended, Usable: ended, Bound: ended, Admitted: true, Pods: 2, Ended: true}
	group.Status = Status(facts, now)
	if group.Status.Phase != v2alpha2.PodGroupCompleted {
		t.Fatalf("phase %s, want Completed", group.Status.Phase)
	}

	half := gang.Counts{"": 1}
	one := Facts{Namespace: "ml", Name: "eval", Group: group, Tree: built, Created: half, Usable: half, Bound: half, Admitted: true, Pods: 1, Ended: true}
	if diff := cmp.Diff(group.Status, Status(one, metav1.NewTime(now.Add(60e9)))); diff != "" {
		t.Errorf("status of a completed PodGroup of which a pod is left (-before +after):\n%s", diff)
	}

	gone := Facts{Namespace: "ml", Name: "eval", Group: group, Tree: built, Created: gang.Counts{}, Usable: gang.Counts{}, Bound: gang.Counts{}}
	if diff := cmp.Diff(group.Status, Status(gone, metav1.NewTime(now.Add(60e9)))); diff != "" {
		t.Errorf("status of a completed PodGroup whose pods are gone (-before +after):\n%s", diff)
	}

	again := gone
	again.Pods, again.Created = 1, gang.Counts{"": 1}
	if s := Status(again, now); s.Phase != v2alpha2.PodGroupWaiting {
		t.Errorf("phase %s when the next run begins, want Waiting", s.Phase)
	}
}

// All remaining pods have succeeded, but they are too few: another pod failed, and may be created again.
func TestSucceededPodsBelowTheMinimumAreNoCompletion(t *testing.T) {
	group := wrappers.MakePodGroup("eval", "ml").MinMember(2).Generation(3).Obj()
	built, err := Tree(&group.Spec)
	if err != nil {
		t.Fatal(err)
	}
	one := gang.Counts{"": 1}
	facts := Facts{Namespace: "ml", Name: "eval", Group: group, Tree: built, Created: one, Usable: one, Bound: one, Admitted: true, Pods: 1, Ended: true}
	if s := Status(facts, now); s.Phase != v2alpha2.PodGroupDegraded || s.Reason != v2alpha2.ReasonWaitingForPods {
		t.Errorf("phase %s for %s, want Degraded for WaitingForPods", s.Phase, s.Reason)
	}
}
