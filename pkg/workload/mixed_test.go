// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

func TestMixedReplica(t *testing.T) {
	t.Parallel()
	// member returns a PodClique of replica j with so many pods, of which some were created from the current template;
	// the others follow revision gen-a. Since gen-a, leader and worker have changed.
	member := func(name string, j int, pods, updated int32, changes ...func(*v1alpha1.PodClique)) *v1alpha1.PodClique {
		c := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{v1alpha1.LabelTemplateName: name, v1alpha1.LabelPodCliqueScalingGroupReplicaIndex: strconv.Itoa(j)},
			Annotations: map[string]string{v1alpha1.AnnotationGenerationHash: "gen-b", v1alpha1.AnnotationRevision: "2"}}}
		c.Status = v1alpha1.PodCliqueStatus{Replicas: pods, UpdatedReplicas: updated, ObservedRevision: 2, CurrentPodCliqueSetGenerationHash: ptr.To("gen-a")}
		if pods == updated {
			c.Status.CurrentPodCliqueSetGenerationHash = ptr.To("gen-b")
		}
		for _, change := range changes {
			change(c)
		}
		return c
	}
	changed := func(clique, since string) bool { return clique != "cache" && since == "gen-a" }
	terminating := func(c *v1alpha1.PodClique) { c.DeletionTimestamp = &metav1.Time{} }
	unobserved := func(c *v1alpha1.PodClique) { c.Generation = 2 }
	behind := func(c *v1alpha1.PodClique) { c.Status.ObservedRevision = 1 }
	unknown := func(c *v1alpha1.PodClique) { c.Status.CurrentPodCliqueSetGenerationHash = nil }
	type members = []*v1alpha1.PodClique
	for name, tc := range map[string]struct {
		members members
		want    int
	}{
		"no members":                            {nil, -1},
		"nothing has followed":                  {members{member("leader", 0, 1, 0), member("worker", 0, 3, 0)}, -1},
		"all have followed":                     {members{member("leader", 0, 1, 1), member("worker", 0, 3, 3)}, -1},
		"one replica has followed":              {members{member("leader", 0, 1, 1), member("worker", 0, 3, 3), member("leader", 1, 1, 0), member("worker", 1, 3, 0)}, -1},
		"a worker has followed":                 {members{member("leader", 0, 1, 0), member("worker", 0, 3, 0), member("leader", 1, 1, 0), member("worker", 1, 3, 1, unknown)}, 1},
		"all workers have, and no leader":       {members{member("leader", 1, 1, 0), member("worker", 1, 3, 3), member("leader", 0, 1, 0), member("worker", 0, 3, 3)}, 0},
		"a clique that has not changed":         {members{member("cache", 0, 1, 1), member("worker", 0, 3, 0)}, -1},
		"one that has, beside it":               {members{member("cache", 0, 1, 1), member("leader", 0, 1, 1), member("worker", 0, 3, 0)}, 0},
		"pods that follow no revision together": {members{member("leader", 0, 1, 1), member("worker", 0, 3, 0, unknown)}, -1},
		"the replica is being deleted":          {members{member("leader", 0, 1, 0, terminating), member("worker", 0, 3, 1)}, -1},
		"a status is outdated":                  {members{member("leader", 0, 1, 0, unobserved), member("worker", 0, 3, 1)}, -1},
		"a status is of an earlier revision":    {members{member("leader", 0, 1, 0, behind), member("worker", 0, 3, 1)}, -1},
	} {
		if got := MixedReplica(tc.members, changed); got != tc.want {
			t.Errorf("%s: replica %d, want %d", name, got, tc.want)
		}
	}
}
