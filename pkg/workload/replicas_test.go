// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/test/wrappers"
)

func namedPodClique(i int, clique string) *v1alpha1.PodClique {
	return observedOnce(wrappers.MakePodClique("s", i, clique, "ns"))
}

func memberPodClique(j int, clique string) *v1alpha1.PodClique {
	return observedOnce(wrappers.MakeMemberPodClique("s", 0, "g", j, clique, "ns"))
}

// observedOnce returns a PodClique of 5 pods, created with 3, whose status is up to date.
func observedOnce(w *wrappers.PodCliqueWrapper) *v1alpha1.PodClique {
	return w.UID("uid").Generation(4).Annotation(v1alpha1.AnnotationInitialReplicas, "3").Replicas(5).
		Status(func(s *v1alpha1.PodCliqueStatus) {
			*s = v1alpha1.PodCliqueStatus{ObservedGeneration: 4, Replicas: 5, ScheduledReplicas: 4, ReadyReplicas: 3, UpdatedReplicas: 2,
				MinAvailable: ptr.To[int32](2)}
		}).Obj()
}

func TestClique(t *testing.T) {
	t.Parallel()
	want := lifecycle.Clique{Name: "s-0-g-1-worker", Template: "worker", Group: "s-0-g", GroupReplica: 1, UID: "uid", Observed: true,
		Replicas: 5, MinAvailable: 2, Pods: 5, Scheduled: 4, Ready: 3, Updated: 2}
	if diff := cmp.Diff(want, CliqueFacts(memberPodClique(1, "worker"))); diff != "" {
		t.Errorf("member (-want +got):\n%s", diff)
	}
	c := namedPodClique(0, "worker")
	c.Generation, c.DeletionTimestamp = 5, &metav1.Time{Time: time.Unix(1, 0)}
	want.Name, want.Group, want.GroupReplica, want.Observed, want.Terminating = "s-0-worker", "", -1, false, true
	if diff := cmp.Diff(want, CliqueFacts(c)); diff != "" {
		t.Errorf("standalone, terminating, status behind (-want +got):\n%s", diff)
	}
}

func TestMinimumWithoutItsAnnotation(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "-1", "99999999999"} {
		c := memberPodClique(0, "a")
		c.Annotations[v1alpha1.AnnotationInitialReplicas] = text
		if got := Minimum(c).AtCreation; got != 5 {
			t.Errorf("%q: %d, want the present replicas", text, got)
		}
		c.Annotations[v1alpha1.AnnotationTemplateReplicas] = text
		if got := TemplateReplicas(c); got != -1 {
			t.Errorf("%q: template replicas %d", text, got)
		}
	}
}

func TestGroupReplicas(t *testing.T) {
	t.Parallel()
	group := wrappers.MakeScalingGroup("s", 0, "g", "ns").Replicas(2).Cliques("worker", "leader", "big-worker").Obj()
	lost := memberPodClique(1, "leader")
	delete(lost.Labels, v1alpha1.LabelPodCliqueScalingGroupReplicaIndex)
	got := GroupReplicasFacts(group, nil, []*v1alpha1.PodClique{
		memberPodClique(10, "worker"), memberPodClique(1, "big-worker"), memberPodClique(0, "worker"), memberPodClique(0, "leader"), memberPodClique(0, "big-worker"), lost})
	names := func(cs []lifecycle.Clique) []string {
		var names []string
		for _, c := range cs {
			names = append(names, c.Name)
		}
		return names
	}
	type replica struct {
		Index            int
		Members, Missing []string
	}
	var brief []replica
	for _, r := range got {
		brief = append(brief, replica{r.Index, names(r.Members), r.Missing})
	}
	want := []replica{
		{0, []string{"s-0-g-0-big-worker", "s-0-g-0-leader", "s-0-g-0-worker"}, nil},
		{1, []string{"s-0-g-1-big-worker"}, []string{"leader", "worker"}}, // big-worker is not worker
		{10, []string{"s-0-g-10-worker"}, []string{"big-worker", "leader"}},
	}
	if diff := cmp.Diff(want, brief); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSetReplicas(t *testing.T) {
	t.Parallel()
	set := wrappers.MakePodCliqueSet("s", "ns").Replicas(2).Clique("b", 1).Clique("a", 1).Clique("worker", 1).ScalingGroup("g", 0, 0, "worker").
		Status(func(s *v1alpha1.PodCliqueSetStatus) { s.CurrentGenerationHash = ptr.To("present") }).Obj()
	set.Spec.Template.Cliques = slices.Insert(set.Spec.Template.Cliques, 1, nil)
	group := wrappers.MakeScalingGroup("s", 0, "g", "ns").Generation(2).Replicas(3).MinAvailable(2).
		Status(func(s *v1alpha1.PodCliqueScalingGroupStatus) {
			*s = v1alpha1.PodCliqueScalingGroupStatus{ObservedGeneration: 1, ScheduledReplicas: 3, AvailableReplicas: 2, UpdatedReplicas: 1}
		}).Obj()
	got := SetReplicasFacts(set, 4, nil,
		[]*v1alpha1.PodClique{namedPodClique(0, "b"), namedPodClique(1, "a"), namedPodClique(0, "a"), namedPodClique(2, "a"), memberPodClique(0, "worker")},
		[]*v1alpha1.PodCliqueScalingGroup{group})
	want := []lifecycle.SetReplica{
		{Index: 0, Revision: 4, Generation: "present", Cliques: []lifecycle.Clique{CliqueFacts(namedPodClique(0, "a")), CliqueFacts(namedPodClique(0, "b"))},
			Groups: []lifecycle.ScalingGroup{{Name: "s-0-g", Template: "g", HasMembers: true, Replicas: 3, MinAvailable: 2, ScheduledReplicas: 3, AvailableReplicas: 2, UpdatedReplicas: 1}}},
		{Index: 1, Revision: 4, Generation: "present", Cliques: []lifecycle.Clique{CliqueFacts(namedPodClique(1, "a"))}, Missing: []string{"b", "g"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTroubleOfSetReplicas: the trouble of a replica is that of its first child by name, including members of scaling
// groups.
func TestTroubleOfSetReplicas(t *testing.T) {
	t.Parallel()
	failing := func(kind, message string) []metav1.Condition {
		return []metav1.Condition{
			{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Message: "not reported"},
			{Type: kind, Status: metav1.ConditionTrue, Message: message}}
	}
	a, b, worker := namedPodClique(0, "a"), namedPodClique(0, "b"), memberPodClique(0, "worker")
	b.Status.Conditions = failing(v1alpha1.ConditionReplicaFailure, "no quota")
	worker.Status.Conditions = failing(v1alpha1.ConditionForeignObject, "in the way")
	group := wrappers.MakeScalingGroup("s", 1, "g", "ns").Status(func(s *v1alpha1.PodCliqueScalingGroupStatus) {
		s.Conditions = failing(v1alpha1.ConditionReplicaFailure, "refused")
	}).Obj()
	set := wrappers.MakePodCliqueSet("s", "ns").Replicas(3).Obj()
	var got []string
	for _, r := range SetReplicasFacts(set, 1, nil, []*v1alpha1.PodClique{worker, b, a}, []*v1alpha1.PodCliqueScalingGroup{group}) {
		got = append(got, r.Trouble)
	}
	want := []string{"PodClique s-0-b: no quota", "PodCliqueScalingGroup s-1-g: refused", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLeaf(t *testing.T) {
	t.Parallel()
	pg := &v2alpha2.PodGroup{
		Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "a", MinMember: ptr.To[int32](3)}, {Name: "g"}}},
	}
	type answer struct {
		Min    int32
		Listed bool
	}
	for name, want := range map[string]answer{"a": {3, true}, "g": {0, true}, "x": {}} {
		n, listed := LeafOf(pg, name)
		if got := (answer{n, listed}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if _, listed := LeafOf(nil, "a"); listed {
		t.Error("a PodGroup that does not exist lists something")
	}
}

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestPodFacts(t *testing.T) {
	t.Parallel()
	clique := namedPodClique(0, "a")
	clique.Labels[v1alpha1.LabelPodTemplateHash], clique.Status.CurrentPodTemplateHash = "h", ptr.To("before")
	pod := func(changes ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", CreationTimestamp: metav1.NewTime(t0),
				OwnerReferences: []metav1.OwnerReference{{Kind: v1alpha1.KindPodClique, Name: "s-0-a", Controller: ptr.To(true)}},
				Labels:          map[string]string{v1alpha1.LabelPodIndex: "4", v1alpha1.LabelPodTemplateHash: "h"}},
			Spec: corev1.PodSpec{Hostname: "s-0-a-4"},
		}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	running := func(p *corev1.Pod) {
		p.Spec.NodeName = "n"
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: t0.Add(time.Minute)},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(t0.Add(2 * time.Minute))}}}
	}
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	base := lifecycle.Pod{Name: "p", UID: "u", Index: 4, Created: t0, Tolerates: new(time.Duration)}
	alive := base
	alive.Scheduled, alive.Running, alive.Node = true, true, "n"
	ready := func(p *lifecycle.Pod) { p.Ready, p.ReadySince = true, t0.Add(2*time.Minute) }
	tolerating := func(seconds int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, TolerationSeconds: &seconds}}
		}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want func(*lifecycle.Pod)
	}{
		"pending": {pod(), func(p *lifecycle.Pod) { *p = base }},
		"ready":   {pod(running), ready},
		"not ready": {pod(running, func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }),
			func(*lifecycle.Pod) {}},
		"without an owner": {pod(func(p *corev1.Pod) { p.OwnerReferences = nil }),
			func(p *lifecycle.Pod) { *p = base; p.Orphan = true }},
		"gated": {pod(func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} }),
			func(p *lifecycle.Pod) { *p = base; p.Gated, p.Cause = true, "it has the scheduling gate x" }},
		"of another template": {pod(running, func(p *corev1.Pod) { p.Labels[v1alpha1.LabelPodTemplateHash] = "old" }),
			func(p *lifecycle.Pod) { ready(p); p.Outdated = true }},
		"without the hash of its template": {pod(running, func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelPodTemplateHash) }), ready},
		"without the hash of its template, which its name proves": {pod(running, func(p *corev1.Pod) {
			delete(p.Labels, v1alpha1.LabelPodTemplateHash)
			p.Name = naming.PodName(clique.Name, string(clique.UID), "before", 4, "")
		}), func(p *lifecycle.Pod) {
			ready(p)
			p.Name, p.Outdated = naming.PodName(clique.Name, string(clique.UID), "before", 4, ""), true
		}},
		"failed, its containers contain the time": {pod(running, failed, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(t0.Add(5 * time.Minute))}}},
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(t0.Add(3 * time.Minute))}}}}
		}), func(p *lifecycle.Pod) {
			p.Running, p.Ended, p.Failed, p.EndedAt, p.Lived = false, true, true, t0.Add(5*time.Minute), 4*time.Minute
		}},
		"evicted, its conditions contain the time": {pod(running, failed),
			func(p *lifecycle.Pod) {
				p.Running, p.Ended, p.Failed, p.EndedAt, p.Lived = false, true, true, t0.Add(2*time.Minute), time.Minute
			}},
		"failed, without a time": {pod(failed),
			func(p *lifecycle.Pod) { *p = base; p.Ended, p.Failed, p.EndedAt = true, true, t0 }},
		"terminating on a node that does not respond": {pod(running, func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Spec.NodeName = &metav1.Time{Time: t0.Add(time.Hour)}, "gone"
		}), func(p *lifecycle.Pod) {
			p.Terminating, p.Unreachable, p.GraceEnds, p.LostNode, p.Node = true, true, t0.Add(time.Hour), "gone", "gone"
		}},
		"not ready on a node that does not respond": {pod(running, func(p *corev1.Pod) {
			p.Status.Conditions, p.Spec.NodeName = nil, "gone"
		}), func(p *lifecycle.Pod) { p.LostNode, p.Node = "gone", "gone" }},
		"ready on a node that does not respond": {pod(running, func(p *corev1.Pod) { p.Spec.NodeName = "gone" }),
			func(p *lifecycle.Pod) { p.LostNode, p.Node = "gone", "gone" }},
		"bound to a node that does not respond": {pod(func(p *corev1.Pod) { p.Spec.NodeName = "gone" }),
			func(p *lifecycle.Pod) { *p = base; p.Scheduled, p.LostNode, p.Node = true, "gone", "gone" }},
		"ended on a node that does not respond": {pod(running, failed, func(p *corev1.Pod) { p.Spec.NodeName = "gone" }),
			func(p *lifecycle.Pod) {
				p.Node = "gone"
				p.Running, p.Ended, p.Failed, p.EndedAt, p.Lived = false, true, true, t0.Add(2*time.Minute), time.Minute
			}},
		"tolerates such a node for a while":             {pod(tolerating(300)), func(p *lifecycle.Pod) { *p = base; p.Tolerates = ptr.To(5 * time.Minute) }},
		"tolerates it for longer than a Duration holds": {pod(tolerating(math.MaxInt64)), func(p *lifecycle.Pod) { *p = base; p.Tolerates = nil }},
		"terminating, never scheduled": {pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: t0} }),
			func(p *lifecycle.Pod) { *p = base; p.Terminating, p.Stopped, p.GraceEnds = true, true, t0 }},
		"its index label was removed": {pod(running, func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelPodIndex) }),
			ready},
		"its index label was changed": {pod(running, func(p *corev1.Pod) { p.Labels[v1alpha1.LabelPodIndex] = "9" }),
			ready},
		"another hostname: the index is read from the label": {pod(running, func(p *corev1.Pod) { p.Spec.Hostname = "s-0-a-04" }),
			ready},
		"neither contains an index": {pod(running, func(p *corev1.Pod) { p.Spec.Hostname, p.Labels[v1alpha1.LabelPodIndex] = "s-0-a-b-4", "x" }),
			func(p *lifecycle.Pod) { ready(p); p.Index = -1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := alive
			tc.want(&want)
			got := CliquePodsFacts(clique, []*corev1.Pod{tc.pod}, isGone)
			if diff := cmp.Diff([]lifecycle.Pod{want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreachableNode(t *testing.T) {
	t.Parallel()
	node := func(ready corev1.ConditionStatus, taints ...string) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key})
		}
		return n
	}
	for name, tc := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"ready":                         {node(corev1.ConditionTrue), false},
		"not ready, but it responds":    {node(corev1.ConditionFalse, corev1.TaintNodeNotReady), false},
		"unknown":                       {node(corev1.ConditionUnknown), true},
		"tainted as unreachable":        {node(corev1.ConditionFalse, corev1.TaintNodeUnreachable), true},
		"gone":                          {nil, true},
		"new, without a condition":      {&corev1.Node{}, false},
		"tainted as something else too": {node(corev1.ConditionTrue, "x"), false},
	} {
		if got := UnreachableNode(tc.node); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestStartOrderOfATemplate(t *testing.T) {
	t.Parallel()
	template := &v1alpha1.PodCliqueSetTemplateSpec{
		StartupType:                  ptr.To(v1alpha1.CliqueStartupTypeExplicit),
		Cliques:                      []*v1alpha1.PodCliqueTemplateSpec{{Name: "a"}, nil, {Name: "b", Spec: v1alpha1.PodCliqueSpec{StartsAfter: []string{"a"}}}},
		PodCliqueScalingGroupConfigs: []v1alpha1.PodCliqueScalingGroupConfig{{Name: "g", CliqueNames: []string{"b"}, MinAvailable: ptr.To[int32](2)}},
	}
	want := lifecycle.StartOrder{Explicit: true, GroupMinimum: map[string]int32{"g": 2},
		Cliques: []lifecycle.OrderedClique{{Name: "a"}, {Name: "b", StartsAfter: []string{"a"}, Group: "g"}}}
	if diff := cmp.Diff(want, StartOrder(template)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestIndicesOfManyReplicasAreReadOnce: a Training workload may have thousands of replicas, of which every other one
// has succeeded.
func TestIndicesOfManyReplicasAreReadOnce(t *testing.T) {
	const n = 1000
	set := &v1alpha1.PodCliqueSet{Spec: v1alpha1.PodCliqueSetSpec{Replicas: n, WorkloadType: v1alpha1.WorkloadTypeTraining}}
	var succeeded []int
	for i := 0; i < n; i += 2 {
		succeeded = append(succeeded, i)
	}
	set.Status.SucceededIndices = lifecycle.Indices(succeeded...).String()
	if allocations := testing.AllocsPerRun(1, func() { SetReplicasFacts(set, 1, nil, nil, nil) }); allocations > 5*n {
		t.Errorf("the facts of %d replicas take %.0f allocations, want a few for each", n, allocations)
	}
}
