// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/test/wrappers"
)

const oldImage = "busybox:1.37"

// rolledCliques are the cliques of chat whose image changes: a standalone one, and both of a scaling group.
var rolledCliques = []string{"frontend", "pleader", "pworker"}

// twoServices returns chat with two replicas whose pods are all ready, with the image of the sample.
func twoServices() scene {
	s := scene{}
	for replica := range 2 {
		for i := range 2 {
			s.serve(replica, "", i, "frontend")
			s.serve(replica, "prefill", i, "pleader")
			s.serve(replica, "prefill", i, "pworker")
		}
		s.serve(replica, "decode", 0, "dleader")
		for range 3 {
			s.serve(replica, "decode", 0, "dworker")
		}
	}
	return s
}

// serve adds a ready pod of a replica of chat: of a clique, in this replica of a scaling group, "" for none.
func (s *scene) serve(replica int, group string, groupReplica int, clique string) {
	pod := wrappers.MakePod(fmt.Sprintf("pod-%d", len(s.pods)), "default").Obj()
	pod.Labels = map[string]string{v1alpha1.LabelPartOf: chat, v1alpha1.LabelPodCliqueSetReplicaIndex: fmt.Sprint(replica),
		v1alpha1.LabelPodClique: naming.PodCliqueName(chat, replica, clique)}
	if group != "" {
		pod.Labels[v1alpha1.LabelPodClique] = naming.MemberPodClique(chat, replica, group, groupReplica, clique)
		pod.Labels[v1alpha1.LabelPodCliqueScalingGroup] = naming.ScalingGroup(chat, replica, group)
		pod.Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex] = fmt.Sprint(groupReplica)
	}
	pod.Spec.Containers = []corev1.Container{{Name: "server", Image: oldImage}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.pods = append(s.pods, pod)
}

// change changes the nth pod of a clique in a replica of chat.
func (s scene) change(replica int, clique string, n int, do func(*corev1.Pod)) {
	found := where(where(s.pods, inReplica(fmt.Sprint(replica))), func(pod *corev1.Pod) bool {
		return strings.HasSuffix(pod.Labels[v1alpha1.LabelPodClique], "-"+clique)
	})
	do(found[n])
}

func unready(pod *corev1.Pod)  { pod.Status.Conditions = nil }
func leaving(pod *corev1.Pod)  { pod.DeletionTimestamp = &metav1.Time{} }
func replaced(pod *corev1.Pod) { pod.Spec.Containers[0].Image = newImage }

// Each claim of the rollout fails for a scene that violates it.
func TestClaimsOfARollout(t *testing.T) {
	t.Parallel()
	promises := map[string]func(scene) bool{
		"chat-0 unchanged": unchanged(newImage), "highest first": highestFirst(newImage), "whole replicas": wholeReplicas,
		"decode": decodeServes, "17 serve": atLeast(17), "20 serve": serving(20).holds,
	}
	for name, tc := range map[string]struct {
		change func(scene)
		broken []string
	}{
		"all serve": {func(scene) {}, nil},
		"a unit of each kind of chat-1 leaves": {func(s scene) {
			s.change(1, "frontend", 0, leaving)
			s.change(1, "pleader", 1, leaving)
			s.change(1, "pworker", 1, leaving)
		}, []string{"20 serve"}},
		"a worker is replaced without its leader": {func(s scene) { s.change(1, "pworker", 1, replaced) }, []string{"whole replicas"}},
		"chat-0 goes first": {func(s scene) { s.change(0, "frontend", 0, leaving) },
			[]string{"20 serve", "chat-0 unchanged", "highest first"}},
		"chat-0 begins before chat-1 is done": {func(s scene) {
			s.change(1, "frontend", 0, replaced)
			s.change(0, "frontend", 0, replaced)
		}, []string{"chat-0 unchanged", "highest first"}},
		"chat-0 begins when chat-1 is done": {func(s scene) {
			for _, clique := range rolledCliques {
				s.change(1, clique, 0, replaced)
				s.change(1, clique, 1, replaced)
			}
			s.change(0, "frontend", 0, leaving)
		}, []string{"20 serve", "chat-0 unchanged"}},
		"decode is touched": {func(s scene) { s.change(1, "dworker", 2, leaving) }, []string{"20 serve", "decode"}},
		"four are not ready": {func(s scene) {
			s.change(1, "frontend", 0, unready)
			s.change(1, "pleader", 0, unready)
			s.change(1, "pworker", 0, unready)
			s.change(1, "dworker", 0, unready)
		}, []string{"17 serve", "20 serve", "decode"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := twoServices()
			tc.change(s)
			var broken []string
			for promise, holds := range promises {
				if !holds(s) {
					broken = append(broken, promise)
				}
			}
			slices.Sort(broken)
			if diff := cmp.Diff(tc.broken, broken); diff != "" {
				t.Errorf("broken promises (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRolledOut(t *testing.T) {
	t.Parallel()
	done := func() scene {
		s := twoServices()
		for replica := range 2 {
			for _, clique := range rolledCliques {
				s.change(replica, clique, 0, replaced)
				s.change(replica, clique, 1, replaced)
			}
		}
		set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: chat, Generation: 2}}
		set.Spec.Replicas = 2
		set.Status = v1alpha1.PodCliqueSetStatus{ObservedGeneration: 2, UpdatedReplicas: 2,
			UpdateProgress: &v1alpha1.PodCliqueSetUpdateProgress{UpdateEndedAt: &metav1.Time{}},
			Conditions:     []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, ObservedGeneration: 2, Reason: v1alpha1.ReasonUpdateComplete}}}
		s.sets = []*v1alpha1.PodCliqueSet{set}
		return s
	}
	if !rolledOut().holds(done()) {
		t.Error("a complete rollout is not one")
	}
	if got, want := updateOf(done().set(chat)), ", 2/2 updated, UpdateComplete"; got != want {
		t.Errorf("updateOf = %q, want %q", got, want)
	}
	for name, change := range map[string]func(scene){
		"a pod of the old image": func(s scene) {
			s.change(0, "pworker", 1, func(p *corev1.Pod) { p.Spec.Containers[0].Image = oldImage })
		},
		"a pod that is not ready":  func(s scene) { s.change(0, "dworker", 1, unready) },
		"one updated replica":      func(s scene) { s.sets[0].Status.UpdatedReplicas = 1 },
		"an outdated status":       func(s scene) { s.sets[0].Status.ObservedGeneration = 1 },
		"an update in progress":    func(s scene) { s.sets[0].Status.UpdateProgress.UpdateEndedAt = nil },
		"a condition that is True": func(s scene) { s.sets[0].Status.Conditions[0].Status = metav1.ConditionTrue },
	} {
		s := done()
		change(s)
		if rolledOut().holds(s) {
			t.Errorf("rolled out with %s", name)
		}
	}
}

// A claim that did not hold in one scene fails the step, even if it holds again when the step ends.
func TestThroughoutClaimFailsAfterOneViolation(t *testing.T) {
	t.Parallel()
	o := &observer{changed: make(chan struct{})}
	calls := 0
	o.throughout([]claim{{"always", func(scene) bool { return true }}, {"but once", func(scene) bool { calls++; return calls != 2 }}})
	for range 3 {
		o.look(scene{})
	}
	if o.broken != "but once" {
		t.Errorf("the broken claim is %q", o.broken)
	}
	o.throughout(nil)
	if o.broken != "" {
		t.Errorf("the next step begins with the broken claim %q", o.broken)
	}
}

// The claims of a step have to hold only after those that have to hold first did.
func TestFirstClaims(t *testing.T) {
	t.Parallel()
	o := &observer{stores: map[reflect.Type]toolscache.Store{}, changed: make(chan struct{})}
	for _, object := range watched {
		o.stores[reflect.TypeOf(object)] = toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	}
	scenes := 0
	tell := func(scene) {
		if scenes++; scenes > 1 { // the second scene follows when the step has acted
			o.note()
		}
	}
	s := step{
		first:  []claim{{"the fourth scene", func(scene) bool { return scenes == 4 }}},
		claims: []claim{{"an odd number of scenes", func(scene) bool { return scenes%2 == 1 }}},
	}
	if _, err := o.play(t.Context(), s, func(context.Context) error { return nil }, tell); err != nil || scenes != 5 {
		t.Errorf("ended after %d scenes: %v", scenes, err)
	}
}
