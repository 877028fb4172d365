// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

func TestOwnership(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "new", CreationTimestamp: metav1.NewTime(began)}}
	group := &v1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: "s-0-g", UID: "group"}}
	meta := func(owner []metav1.OwnerReference, uid string, age time.Duration) metav1.ObjectMeta {
		m := metav1.ObjectMeta{OwnerReferences: owner, CreationTimestamp: metav1.NewTime(began.Add(-age))}
		if uid != "" {
			m.Annotations = map[string]string{v1alpha1.AnnotationPodCliqueSetUID: uid}
		}
		return m
	}
	ofSet := func(uid string) []metav1.OwnerReference { return ownedBy("PodCliqueSet", "s", uid) }
	ofGroup := func(uid string) []metav1.OwnerReference { return ownedBy("PodCliqueScalingGroup", "s-0-g", uid) }
	ofClique := func(uid string) []metav1.OwnerReference { return ownedBy("PodClique", "s-0-a", uid) }

	cliques := map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"owned by the set":                                      {meta(ofSet("new"), "new", 0), true},
		"owned by the set, with a forged annotation":            {meta(ofSet("new"), "old", 0), true},
		"owned by a deleted set":                                {meta(ofSet("old"), "old", time.Hour), false},
		"owned by a deleted set, with a forged annotation":      {meta(ofSet("old"), "new", time.Hour), false},
		"owned by a group of the set":                           {meta(ofGroup("group"), "", time.Hour), true},
		"owned by an unknown group, created for the set":        {meta(ofGroup("gone"), "new", 0), true},
		"owned by an unknown group, created for a deleted set":  {meta(ofGroup("gone"), "old", 0), false},
		"owned by an unknown group, of an earlier version":      {meta(ofGroup("gone"), "", 0), true},
		"owned by an unknown group, created before the set was": {meta(ofGroup("gone"), "", time.Second), false},
		"without an owner":                                      {meta(nil, "new", 0), false},
		"owned by something else":                               {meta(ownedBy("Deployment", "s", "new"), "new", 0), false},
	}
	own := OwnershipOf(set, []*v1alpha1.PodCliqueScalingGroup{group}, nil)
	for name, tc := range cliques {
		if got := own.HasClique(&v1alpha1.PodClique{ObjectMeta: tc.meta}); got != tc.want {
			t.Errorf("PodClique %s: %t", name, got)
		}
	}

	present, former := &v1alpha1.PodClique{ObjectMeta: meta(ofSet("new"), "new", 0)}, &v1alpha1.PodClique{ObjectMeta: meta(ofSet("old"), "old", time.Hour)}
	present.UID, former.UID = "present", "former"
	all := []*v1alpha1.PodClique{former, present}
	own = OwnershipOf(set, nil, all)
	pods := map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"of a PodClique":                                      {meta(ofClique("present"), "", time.Hour), true},
		"of a PodClique of a deleted set":                     {meta(ofClique("former"), "new", 0), false},
		"of a PodClique that is gone":                         {meta(ofClique("gone"), "new", 0), true},
		"of a PodClique that is gone with its set":            {meta(ofClique("gone"), "old", 0), false},
		"of a PodClique that is gone, of an earlier version":  {meta(ofClique("gone"), "", 0), true},
		"of a PodClique that is gone, created before the set": {meta(ofClique("gone"), "", time.Second), false},
		"without an owner":                                    {meta(nil, "new", 0), false},
		"of something else, which has the labels of the set":  {meta(ownedBy("ReplicaSet", "s", "new"), "new", 0), false},
	}
	for name, tc := range pods {
		pod := &corev1.Pod{ObjectMeta: tc.meta}
		if got := own.HasPod(pod); got != tc.want {
			t.Errorf("pod %s: %t", name, got)
		}
		if got := len(own.Pods([]*corev1.Pod{pod})) == 1; got != tc.want {
			t.Errorf("pod %s is among those of the set: %t", name, got)
		}
	}
	if got := own.Cliques(all); len(got) != 1 || got[0] != present {
		t.Errorf("PodCliques of the set: %v", got)
	}
}

// What the status of a scaling group records explains that PodCliques are gone.
func TestSetUnitIsExplained(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for name, tc := range map[string]struct {
		says, recorded string // attempts of the group replica
		exists         bool   // its PodClique
		available      bool   // the recorded attempt was available
		behind         bool   // the group has not been told the attempt of the set
		explained      bool
		replacing      bool
	}{
		"of the recorded attempt":                                     {says: "1", recorded: "1", exists: true},
		"of an earlier attempt":                                       {says: "", recorded: "1", exists: true, explained: true},
		"of a later attempt, because the status was lost":             {says: "2", recorded: "1", exists: true},
		"gone, and replaced":                                          {says: "", recorded: "1", explained: true, replacing: true},
		"gone, never replaced":                                        {says: "", recorded: ""},
		"gone, of the recorded attempt":                               {says: "1", recorded: "1", replacing: true},
		"gone, and the recorded attempt has been available":           {says: "1", recorded: "1", available: true},
		"gone, in an attempt of the set that the group does not know": {says: "1", recorded: "1", behind: true},
	} {
		set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "set"}}
		group := &v1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: "s-0-g", UID: "group", OwnerReferences: ownedBy("PodCliqueSet", "s", "set"),
			Labels: map[string]string{v1alpha1.LabelPodCliqueSetReplicaIndex: "0", v1alpha1.LabelTemplateName: "g"}}}
		group.Spec.Replicas, group.Spec.CliqueNames = 1, []string{"a"}
		if tc.recorded != "" {
			group.Status.ReplicaAttempts = []v1alpha1.ReplicaAttempt{{Index: 0, Attempt: 1}}
		}
		if tc.available {
			group.Status.ReplicaAttempts[0].AvailableAt = &now
		}
		if tc.behind {
			set.Status.ReplicaAttempts = []v1alpha1.ReplicaAttempt{{Index: 0, Attempt: 1}}
		}
		attempt := map[string]string{v1alpha1.AnnotationPodCliqueScalingGroupAttempt: tc.says}
		var cliques []*v1alpha1.PodClique
		if tc.exists {
			cliques = append(cliques, &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "s-0-g-0-a", UID: types.UID("a"), Annotations: attempt,
				Labels:          map[string]string{v1alpha1.LabelPodCliqueScalingGroupReplicaIndex: "0"},
				OwnerReferences: ownedBy("PodCliqueScalingGroup", "s-0-g", "group")}})
		}
		pods := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: attempt, OwnerReferences: ownedBy("PodClique", "s-0-g-0-a", "a")}}}
		u := SetUnitFacts(set, 0, []string{"s-0-g-0-a"}, cliques, pods, []*v1alpha1.PodCliqueScalingGroup{group}, nil, nil)
		if u.Replacing != tc.replacing || u.Pods[0].Explained != tc.explained || tc.exists && u.Cliques[0].Explained != tc.explained {
			t.Errorf("%s: %+v", name, u)
		}
	}
}
