// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// heard is a queue that records the requests added to it.
type heard struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	now, soon []string
}

func (h *heard) Add(r reconcile.Request)                       { h.now = append(h.now, r.Name) }
func (h *heard) AddAfter(r reconcile.Request, _ time.Duration) { h.soon = append(h.soon, r.Name) }

func TestChangeHandler(t *testing.T) {
	pod := func(owner, version string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", ResourceVersion: version}}
		if owner != "" {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindPodClique, Name: owner, UID: types.UID(owner), Controller: &yes}}
		}
		return p
	}
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		now, soon     []string
	}{
		"a change: its owner": {pod("a", "1"), pod("a", "2"), nil, []string{"a"}},
		"a resync: no owner":  {pod("a", "1"), pod("a", "1"), nil, nil},
		"an owner is removed: the former owner, immediately": {pod("a", "1"), pod("", "2"), []string{"a"}, nil},
		"the owner changes: both owners":                     {pod("a", "1"), pod("b", "2"), []string{"b", "a"}, nil},
		"an owner is added: the new owner":                   {pod("", "1"), pod("b", "2"), []string{"b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &heard{}
			ChangeHandler{Map: Owner(v1alpha1.KindPodClique), Urgency: SpecOrStatusChanged}.Handler().Update(t.Context(),
				event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, queue)
			if diff := cmp.Diff([][]string{tc.now, tc.soon}, [][]string{queue.now, queue.soon}); diff != "" {
				t.Errorf("requests now and soon (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpecChanged(t *testing.T) {
	meta := func(generation int64, version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Generation: generation, ResourceVersion: version}
	}
	for name, tc := range map[string]struct {
		before, after client.Object
		want          Urgency
	}{
		"the status of a PodClique": {
			&v1alpha1.PodClique{ObjectMeta: meta(1, "1")}, &v1alpha1.PodClique{ObjectMeta: meta(1, "2"), Status: v1alpha1.PodCliqueStatus{Replicas: 1}}, Never},
		"its spec": {&v1alpha1.PodClique{ObjectMeta: meta(1, "1")}, &v1alpha1.PodClique{ObjectMeta: meta(2, "2")}, Urgent},
		"the spec of a Service, which has no generation": {
			&corev1.Service{ObjectMeta: meta(0, "1")}, &corev1.Service{ObjectMeta: meta(0, "2"), Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "b"}}}, Urgent},
		"the status of a Service": {
			&corev1.Service{ObjectMeta: meta(0, "1")},
			&corev1.Service{ObjectMeta: meta(0, "2"), Status: corev1.ServiceStatus{Conditions: []metav1.Condition{{Type: "x"}}}}, Never},
		"the spec of an autoscaler": {
			&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta(0, "1")},
			&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta(0, "2"), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 1}}, Urgent},
		"the status of an autoscaler": {
			&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta(0, "1")},
			&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta(0, "2"), Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 1}}, Never},
		"a Role, of which only the metadata is watched": {
			&metav1.PartialObjectMetadata{ObjectMeta: meta(0, "1")}, &metav1.PartialObjectMetadata{ObjectMeta: meta(0, "2")}, Urgent},
		"a resync of a Role": {
			&metav1.PartialObjectMetadata{ObjectMeta: meta(0, "1")}, &metav1.PartialObjectMetadata{ObjectMeta: meta(0, "1")}, Never},
	} {
		if got := SpecChanged(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestSpecOrStatusChanged(t *testing.T) {
	clique := func(version string, ready int32, conditions ...metav1.Condition) *v1alpha1.PodClique {
		return &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}, Status: v1alpha1.PodCliqueStatus{ReadyReplicas: ready, Conditions: conditions}}
	}
	group := func(version string, conditions ...metav1.Condition) *v1alpha1.PodCliqueScalingGroup {
		return &v1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}, Status: v1alpha1.PodCliqueScalingGroupStatus{Conditions: conditions}}
	}
	is := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message}
	}
	for name, tc := range map[string]struct {
		before, after client.Object
		want          Urgency
	}{
		"a resync": {clique("1", 1), clique("1", 1), Never},
		"a number": {clique("1", 1, is(v1alpha1.ConditionAvailable, metav1.ConditionFalse, "1 pod is ready")),
			clique("2", 2, is(v1alpha1.ConditionAvailable, metav1.ConditionFalse, "2 pods are ready")), Soon},
		"pods that are bound":                       {clique("1", 0), clique("2", 0, is(v1alpha1.ConditionPodCliqueScheduled, metav1.ConditionTrue, "")), Soon},
		"the first status of an unavailable object": {clique("1", 0), clique("2", 0, is(v1alpha1.ConditionAvailable, metav1.ConditionFalse, "")), Soon},
		"available":            {clique("1", 0), clique("2", 2, is(v1alpha1.ConditionAvailable, metav1.ConditionTrue, "")), Prompt},
		"unavailable":          {clique("1", 2, is(v1alpha1.ConditionAvailable, metav1.ConditionTrue, "")), clique("2", 1, is(v1alpha1.ConditionAvailable, metav1.ConditionFalse, "")), Prompt},
		"a group is available": {group("1"), group("2", is(v1alpha1.ConditionAvailable, metav1.ConditionTrue, "")), Prompt},
		"a breach":             {group("1"), group("2", is(v1alpha1.ConditionMinAvailableBreached, metav1.ConditionTrue, "")), Prompt},
		"trouble":              {clique("1", 0), clique("2", 0, is(v1alpha1.ConditionReplicaFailure, metav1.ConditionTrue, "quota")), Prompt},
		"other trouble":        {clique("1", 0, is(v1alpha1.ConditionReplicaFailure, metav1.ConditionTrue, "quota")), clique("2", 0, is(v1alpha1.ConditionReplicaFailure, metav1.ConditionTrue, "webhook")), Prompt},
		"its deletion":         {clique("1", 0), &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2", DeletionTimestamp: &metav1.Time{}}}, Urgent},
	} {
		if got := SpecOrStatusChanged(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
