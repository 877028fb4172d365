// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/wrappers"
)

// podCliqueSet returns a set of a standalone clique and a scaling group, both with an autoscaler.
func podCliqueSet(replicas int32) *v1alpha1.PodCliqueSet {
	s := wrappers.MakePodCliqueSet("a", "ns").UID("a-uid").Replicas(replicas).
		Clique("front", 1, wrappers.AutoScaling(5)).Clique("worker", 2).ScalingGroup("g", 0, 0, "worker").Obj()
	s.Spec.Template.PodCliqueScalingGroupConfigs[0].ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 5}
	v1alpha1.SetDefaults(s, "")
	return s
}

// made returns the objects that a set owns once all desired objects have been created.
func made(s *v1alpha1.PodCliqueSet) ownedObjects {
	f := ownedObjects{
		podGroups: map[string]*v2alpha2.PodGroup{}, cliques: map[string]*v1alpha1.PodClique{}, groups: map[string]*v1alpha1.PodCliqueScalingGroup{},
		members: map[string]*v1alpha1.PodClique{}, services: map[string]*corev1.Service{}, hpas: map[string]*autoscalingv2.HorizontalPodAutoscaler{},
	}
	revision := workload.NewRevision(s, "", nil, nil)
	for i := range int(s.Spec.Replicas) {
		r := wantedReplica(s, revision, i, f, f.children(), nil)
		f.podGroups[r.podGroup.Name], f.services[r.service.Name] = r.podGroup, r.service
		for _, c := range r.cliques {
			f.cliques[c.Name] = c
		}
		for _, g := range r.groups {
			f.groups[g.Name] = g
		}
		for _, h := range r.hpas {
			f.hpas[h.Name] = h
		}
	}
	return f
}

func TestUnwanted(t *testing.T) {
	for name, tc := range map[string]struct {
		now    *v1alpha1.PodCliqueSet
		change func(ownedObjects)
		want   [][]string // by replica, the PodGroup first, then the others, sorted
	}{
		"all objects are desired": {now: podCliqueSet(3)},
		"replicas are deleted as a whole, the highest first": {
			now: podCliqueSet(1),
			want: [][]string{
				{"PodGroup a-2", "HorizontalPodAutoscaler a-2-front", "HorizontalPodAutoscaler a-2-g", "PodClique a-2-front", "PodCliqueScalingGroup a-2-g", "Service a-2"},
				{"PodGroup a-1", "HorizontalPodAutoscaler a-1-front", "HorizontalPodAutoscaler a-1-g", "PodClique a-1-front", "PodCliqueScalingGroup a-1-g", "Service a-1"},
			},
		},
		"an autoscaler that is no longer in the template": {
			now: func() *v1alpha1.PodCliqueSet {
				s := podCliqueSet(3)
				s.Spec.Template.Cliques[0].Spec.ScaleConfig = nil
				return s
			}(),
			want: [][]string{{"HorizontalPodAutoscaler a-2-front"}, {"HorizontalPodAutoscaler a-1-front"}, {"HorizontalPodAutoscaler a-0-front"}},
		},
		"the PodGroup of a replica that is scaled to nothing": {
			now: podCliqueSet(3),
			change: func(f ownedObjects) {
				f.cliques["a-1-front"].Spec.Replicas, f.groups["a-1-g"].Spec.Replicas = 0, 0
			},
			want: [][]string{{"PodGroup a-1"}},
		},
		"an object without a replica, after the replicas": {
			now: podCliqueSet(2),
			change: func(f ownedObjects) {
				f.cliques["odd"] = &v1alpha1.PodClique{TypeMeta: f.cliques["a-0-front"].TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: "odd"}}
			},
			want: [][]string{
				{"PodGroup a-2", "HorizontalPodAutoscaler a-2-front", "HorizontalPodAutoscaler a-2-g", "PodClique a-2-front", "PodCliqueScalingGroup a-2-g", "Service a-2"},
				{"PodClique odd"},
			},
		},
		"a terminating object is not deleted again": {
			now: podCliqueSet(2),
			change: func(f ownedObjects) {
				now := metav1.Now()
				for _, o := range []metav1.Object{f.cliques["a-2-front"], f.groups["a-2-g"], f.podGroups["a-2"]} {
					o.SetDeletionTimestamp(&now)
				}
			},
			want: [][]string{{"HorizontalPodAutoscaler a-2-front", "HorizontalPodAutoscaler a-2-g", "Service a-2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := made(podCliqueSet(3))
			if tc.change != nil {
				tc.change(f)
			}
			var got [][]string
			var names [][]child
			for i := range int(tc.now.Spec.Replicas) {
				names = append(names, wantedReplica(tc.now, workload.NewRevision(tc.now, "", nil, nil), i, f, f.children(), nil).names())
			}
			for _, r := range unwantedObjects(names, f) {
				var names []string
				for _, o := range r.rest {
					names = append(names, fmt.Sprintf("%s %s", o.GetObjectKind().GroupVersionKind().Kind, o.GetName()))
				}
				slices.Sort(names)
				if r.podGroup != nil {
					names = append([]string{"PodGroup " + r.podGroup.Name}, names...)
				}
				got = append(got, names)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unwanted (-want +got):\n%s", diff)
			}
		})
	}
}
