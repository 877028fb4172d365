// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
)

func ownedBy(kind, name, uid string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}}
}

func TestSetUnit(t *testing.T) {
	t.Parallel()
	set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "set"}}
	set.Status.ReplicaAttempts = []v1alpha1.ReplicaAttempt{{Index: 0, Attempt: 2}}
	clique := func(name, uid string, owner []metav1.OwnerReference, attempts ...string) *v1alpha1.PodClique {
		c := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), OwnerReferences: owner, Annotations: map[string]string{}}}
		for i, key := range []string{v1alpha1.AnnotationPodCliqueSetAttempt, v1alpha1.AnnotationPodCliqueScalingGroupAttempt}[:len(attempts)] {
			c.Annotations[key] = attempts[i]
		}
		return c
	}
	pod := func(name string, owner []metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owner,
			Annotations: map[string]string{v1alpha1.AnnotationPodCliqueSetAttempt: "1"}}}
	}
	cliques := []*v1alpha1.PodClique{
		clique("s-0-a", "a", ownedBy("PodCliqueSet", "s", "set"), "2"),
		clique("s-0-g-0-b", "b", ownedBy("PodCliqueScalingGroup", "s-0-g", "group"), "2", "5"),
		clique("s-0-orphan", "o", nil),
		clique("s-0-theirs", "t", ownedBy("PodCliqueSet", "another", "x")),
	}
	pods := []*corev1.Pod{
		pod("of-a", ownedBy("PodClique", "s-0-a", "a")),
		pod("of-one-that-is-gone", ownedBy("PodClique", "s-0-c", "c")),
		pod("without-an-owner", nil),
		pod("of-the-orphan", ownedBy("PodClique", "s-0-orphan", "o")),
	}
	group := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationPodCliqueSetAttempt: "1"}}}
	group.Status.Conditions = []metav1.Condition{{Type: v2alpha2.ConditionAdmitted, Status: metav1.ConditionTrue}}

	got := SetUnitFacts(set, 0, []string{"s-0-a", "s-0-g-0-b", "s-0-c"}, cliques, pods, nil, group, func(string) bool { return false })
	second, first := lifecycle.Attempt{Set: 2}, lifecycle.Attempt{Set: 1}
	want := lifecycle.Unit{
		Attempt: second, Wanted: []string{"s-0-a", "s-0-g-0-b", "s-0-c"},
		Cliques: []lifecycle.UnitClique{{Name: "s-0-a", UID: "a", Attempt: second}, {Name: "s-0-g-0-b", UID: "b", Attempt: second}},
		Pods: []lifecycle.UnitPod{{Name: "of-a", Clique: "s-0-a", CliqueUID: "a", Attempt: second},
			{Name: "of-one-that-is-gone", Clique: "s-0-c", CliqueUID: "c", Attempt: first}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unit (-want +got):\n%s", diff)
	}
	group.Annotations[v1alpha1.AnnotationPodCliqueSetAttempt] = "2"
	if !SetUnitFacts(set, 0, nil, nil, nil, nil, group, nil).Admitted {
		t.Error("the PodGroup of this attempt is admitted, the unit is not")
	}
}

func TestGroupAttempt(t *testing.T) {
	t.Parallel()
	group := &v1alpha1.PodCliqueScalingGroup{}
	group.Status.ReplicaAttempts = []v1alpha1.ReplicaAttempt{{Index: 1, Attempt: 3}}
	if got := GroupAttempt(group, 1); got != (lifecycle.Attempt{Group: 3}) {
		t.Errorf("attempt %+v", got)
	}
	// The set has a new attempt, and the group's status belongs to the previous one.
	group.Annotations = map[string]string{v1alpha1.AnnotationPodCliqueSetAttempt: "1"}
	if got := GroupAttempt(group, 1); got != (lifecycle.Attempt{Set: 1}) {
		t.Errorf("attempt %+v, want the status ignored", got)
	}
	group.Annotations[v1alpha1.AnnotationPodCliqueSetAttempt] = "broken"
	if got := GroupAttempt(group, 1); got != (lifecycle.Attempt{Group: 3}) {
		t.Errorf("attempt %+v, want an invalid annotation ignored", got)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	clique := func(name, attempt string) *v1alpha1.PodClique {
		return &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.AnnotationPodCliqueSetAttempt: attempt}}}
	}
	going := clique("a", "1")
	going.DeletionTimestamp = &now
	for name, tc := range map[string]struct {
		cliques []*v1alpha1.PodClique
		want    bool
	}{
		"all of this attempt":  {[]*v1alpha1.PodClique{clique("a", "1"), clique("b", "1")}, true},
		"one is missing":       {[]*v1alpha1.PodClique{clique("a", "1")}, false},
		"one too many":         {[]*v1alpha1.PodClique{clique("a", "1"), clique("b", "1"), clique("c", "1")}, false},
		"one has another name": {[]*v1alpha1.PodClique{clique("a", "1"), clique("c", "1")}, false},
		"one is earlier":       {[]*v1alpha1.PodClique{clique("a", "1"), clique("b", "0")}, false},
		"one is being deleted": {[]*v1alpha1.PodClique{going, clique("b", "1")}, false},
	} {
		if got := IsUnitComplete(lifecycle.Attempt{Set: 1}, []string{"a", "b"}, tc.cliques); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
