// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

func TestIsOrphanOf(t *testing.T) {
	t.Parallel()
	set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "new"}}
	for name, tc := range map[string]struct {
		change func(*metav1.ObjectMeta)
		want   bool
	}{
		"left": {func(*metav1.ObjectMeta) {}, true},
		"with an owner that does not control": {func(m *metav1.ObjectMeta) {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j", UID: "j"}}
		}, true},
		"controlled by a deleted set":          {func(m *metav1.ObjectMeta) { m.OwnerReferences = ownedBy("PodCliqueSet", "s", "old") }, false},
		"controlled by the set":                {func(m *metav1.ObjectMeta) { m.OwnerReferences = ownedBy("PodCliqueSet", "s", "new") }, false},
		"controlled by something else":         {func(m *metav1.ObjectMeta) { m.OwnerReferences = ownedBy("Deployment", "s", "d") }, false},
		"being deleted":                        {func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"of another set":                       {func(m *metav1.ObjectMeta) { m.Labels[v1alpha1.LabelPartOf] = "other" }, false},
		"of another manager":                   {func(m *metav1.ObjectMeta) { m.Labels[v1alpha1.LabelManagedBy] = "helm" }, false},
		"without labels":                       {func(m *metav1.ObjectMeta) { m.Labels = nil }, false},
		"copied by a user under another name":  {func(m *metav1.ObjectMeta) { m.Name = "s-public" }, false},
		"a member of a deleted scaling group":  {func(m *metav1.ObjectMeta) { m.Labels[v1alpha1.LabelPodCliqueScalingGroup] = "s-0-g" }, false},
		"of a replica that is no more desired": {func(m *metav1.ObjectMeta) { m.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex] = "9" }, true},
	} {
		m := metav1.ObjectMeta{Name: "s-0-w", Labels: naming.PodCliqueLabels("s", 0, "w")}
		tc.change(&m)
		if got := IsOrphanOf(set, &v1alpha1.PodClique{ObjectMeta: m}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// adoptedClique is a PodClique of replica i of the set new, which is told the revision of that number. from is the
// number of the revision from which it is being updated, 0: it is not.
func adoptedClique(i int, attempt, told, from int) *v1alpha1.PodClique {
	hash := func(n int) string { return fmt.Sprintf("r%d", n) }
	c := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{
		Name: naming.PodCliqueName("s", i, "w"), Labels: naming.PodCliqueLabels("s", i, "w"), OwnerReferences: ownedBy("PodCliqueSet", "s", "new"),
		Annotations: withAttempt(map[string]string{v1alpha1.AnnotationGenerationHash: hash(told), v1alpha1.AnnotationRevision: text(int32(told))},
			v1alpha1.AnnotationPodCliqueSetAttempt, int32(attempt))}}
	c.Status.CurrentPodCliqueSetGenerationHash = ptr.To(hash(told))
	if from > 0 {
		c.Status.CurrentPodCliqueSetGenerationHash = nil
		c.Status.UpdateProgress = &v1alpha1.PodCliqueUpdateProgress{PodCliqueSetGenerationHash: hash(told), PreviousGenerationHash: hash(from)}
	}
	return c
}

func TestAdoptionStatus(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	type cliques = []*v1alpha1.PodClique
	scaledOutEarly := adoptedClique(0, 0, 2, 0)
	scaledOutEarly.Status.CurrentPodCliqueSetGenerationHash = ptr.To("r1")
	onDelete := scaledOutEarly.DeepCopy()
	onDelete.Status.UpdateProgress = &v1alpha1.PodCliqueUpdateProgress{PodCliqueSetGenerationHash: "r2", UpdateEndedAt: &now}
	foreign := adoptedClique(0, 7, 3, 0)
	foreign.OwnerReferences[0].UID = "other"
	for name, tc := range map[string]struct {
		cliques  cliques
		podGroup int32 // the attempt of the PodGroup of replica 1, 0: there is none
		training bool
		want     string // attempts; hash; previous hash, current replica, reached replicas
	}{
		"nothing":                                 {want: "; ; "},
		"new":                                     {cliques: cliques{adoptedClique(0, 0, 1, 0), adoptedClique(1, 0, 1, 0)}, want: "; r1; "},
		"attempts":                                {cliques: cliques{adoptedClique(0, 3, 1, 0), adoptedClique(1, 1, 1, 0)}, want: "0:3 1:1; r1; "},
		"a replica is being replaced":             {cliques: cliques{adoptedClique(1, 1, 1, 0)}, podGroup: 2, want: "1:2; r1; "},
		"a replica that is no more desired":       {cliques: cliques{adoptedClique(0, 0, 1, 0), adoptedClique(4, 2, 1, 0)}, want: "; r1; "},
		"a forged attempt":                        {cliques: cliques{adoptedClique(0, 1<<30, 1, 0)}, want: "; r1; "},
		"of another owner":                        {cliques: cliques{foreign, adoptedClique(1, 0, 1, 0)}, want: "; r1; "},
		"updated":                                 {cliques: cliques{adoptedClique(0, 0, 3, 0), adoptedClique(1, 0, 3, 0)}, want: "; r3; "},
		"an update has reached one replica":       {cliques: cliques{adoptedClique(0, 0, 1, 0), adoptedClique(1, 0, 2, 0)}, want: "; r2; r1 - 1"},
		"an update is replacing a replica":        {cliques: cliques{adoptedClique(0, 0, 1, 0), adoptedClique(1, 0, 2, 1)}, want: "; r2; r1 1 1"},
		"the last one":                            {cliques: cliques{adoptedClique(0, 0, 2, 1), adoptedClique(1, 0, 2, 0)}, want: "; r2; r1 0 0-1"},
		"the template changed twice":              {cliques: cliques{adoptedClique(0, 0, 1, 0), adoptedClique(1, 0, 3, 2)}, want: "; r3; r1 1 1"},
		"scaled out before its turn":              {cliques: cliques{scaledOutEarly}, want: "; r2; r1 - "},
		"earlier pods under OnDelete":             {cliques: cliques{onDelete}, want: "; r2; "},
		"a job does not roll":                     {cliques: cliques{adoptedClique(0, 0, 1, 0), adoptedClique(1, 0, 2, 0)}, training: true, want: "; r2; "},
		"it follows a revision that was deleted":  {cliques: cliques{adoptedClique(0, 2, 9, 0)}, want: "0:2; ; "},
		"the PodCliques of a replica are missing": {podGroup: 1, want: "1:1; ; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "new"}, Spec: v1alpha1.PodCliqueSetSpec{Replicas: 2}}
			if tc.training {
				set.Spec.WorkloadType = v1alpha1.WorkloadTypeTraining
			}
			a := Adoption{Cliques: tc.cliques, Revisions: []*Revision{{Hash: "r3", Number: 3}, {Hash: "r2", Number: 2}, {Hash: "r1", Number: 1}}}
			if tc.podGroup > 0 {
				a.PodGroups = []*v2alpha2.PodGroup{{ObjectMeta: metav1.ObjectMeta{Labels: naming.ReplicaLabels("s", 1, "s-1", v1alpha1.ComponentPodGroup),
					OwnerReferences: ownedBy("PodCliqueSet", "s", "new"), Annotations: map[string]string{v1alpha1.AnnotationPodCliqueSetAttempt: text(tc.podGroup)}}}}
			}
			s := a.Status(set, now)
			var attempts []string
			for _, r := range s.ReplicaAttempts {
				attempts = append(attempts, fmt.Sprintf("%d:%d", r.Index, r.Attempt))
			}
			got := strings.Join(attempts, " ") + "; " + ptr.Deref(s.CurrentGenerationHash, "") + "; "
			if p := s.UpdateProgress; p != nil {
				current := "-"
				if p.CurrentlyUpdating != nil {
					current = text(p.CurrentlyUpdating.ReplicaIndex)
				}
				got += p.PreviousGenerationHash + " " + current + " " + p.ReachedIndices
			}
			if got != tc.want {
				t.Errorf("status %q, want %q", got, tc.want)
			}
			if again := a.Status(&v1alpha1.PodCliqueSet{ObjectMeta: set.ObjectMeta, Spec: set.Spec, Status: s}, now); len(again.ReplicaAttempts) != len(s.ReplicaAttempts) {
				t.Errorf("the attempts %v became %v", s.ReplicaAttempts, again.ReplicaAttempts)
			}
		})
	}
}

func TestAdoptionIsOf(t *testing.T) {
	t.Parallel()
	job := func() *v1alpha1.PodCliqueSet {
		set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "new"}}
		set.Spec.WorkloadType, set.Spec.Replicas = v1alpha1.WorkloadTypeTraining, 2
		set.Spec.Template.Cliques = []*v1alpha1.PodCliqueTemplateSpec{{Name: "w"}}
		set.Spec.Template.Cliques[0].Spec.Replicas = 3
		set.Spec.Template.Cliques[0].Spec.PodSpec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
		return set
	}
	for name, tc := range map[string]struct {
		change func(set *v1alpha1.PodCliqueSet, clique *v1alpha1.PodClique)
		want   bool
	}{
		"the same job": {func(*v1alpha1.PodCliqueSet, *v1alpha1.PodClique) {}, true},
		"a changed job": {func(s *v1alpha1.PodCliqueSet, _ *v1alpha1.PodClique) {
			s.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "main:2"
		}, false},
		"a job of fewer replicas": {func(s *v1alpha1.PodCliqueSet, _ *v1alpha1.PodClique) { s.Spec.Replicas = 1 }, false},
		"a job of fewer pods": {func(s *v1alpha1.PodCliqueSet, _ *v1alpha1.PodClique) {
			s.Spec.Template.Cliques[0].Spec.Replicas = 2
		}, false},
		"a service of fewer replicas and pods": {func(s *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) {
			s.Spec.WorkloadType, c.Annotations = "", nil
			s.Spec.Replicas, s.Spec.Template.Cliques[0].Spec.Replicas = 1, 2
		}, true},
		"a service with another minimum": {func(s *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) {
			s.Spec.WorkloadType, c.Annotations = "", nil
			s.Spec.Template.Cliques[0].Spec.MinAvailable = ptr.To(int32(2))
		}, false},
		"a service with another role": {func(s *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) {
			s.Spec.WorkloadType, c.Annotations, c.Spec.RoleName = "", nil, "v"
		}, false},
		"a service with another order": {func(s *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) {
			s.Spec.WorkloadType, c.Annotations = "", nil
			s.Spec.Template.Cliques[0].Spec.StartsAfter = []string{"v"}
		}, false},
		"a service without the clique": {func(s *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) {
			s.Spec.WorkloadType, c.Annotations = "", nil
			s.Spec.Template.Cliques[0].Name = "x"
		}, false},
		"a service with the clique in a scaling group": {func(s *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) {
			s.Spec.WorkloadType, c.Annotations = "", nil
			s.Spec.Template.PodCliqueScalingGroupConfigs = []v1alpha1.PodCliqueScalingGroupConfig{{Name: "g", CliqueNames: []string{"w"}}}
		}, false},
		"a job that has failed": {func(_ *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) {
			c.Annotations[v1alpha1.AnnotationWorkloadFailed] = string(lifecycle.MaxRestartsExceeded)
		}, false},
		"a service after a job": {func(s *v1alpha1.PodCliqueSet, _ *v1alpha1.PodClique) { s.Spec.WorkloadType = "" }, false},
		"a job after a service": {func(_ *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) { c.Annotations = nil }, false},
		"a changed service": {func(s *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) {
			s.Spec.WorkloadType, c.Annotations = "", nil
			s.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "main:2"
		}, true},
	} {
		set, clique := job(), adoptedClique(1, 0, 1, 0)
		clique.Spec.Replicas = 3
		clique.Annotations[v1alpha1.AnnotationWorkloadType] = string(v1alpha1.WorkloadTypeTraining)
		a := Adoption{Revisions: []*Revision{{Hash: "of a job that was refused"}, NewRevision(set, "muster-scheduler", nil, nil)}, Cliques: []*v1alpha1.PodClique{clique}}
		clique.Annotations[v1alpha1.AnnotationGenerationHash] = a.Revisions[1].Hash
		tc.change(set, clique)
		if got := a.IsOf(set, "muster-scheduler"); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
