// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/wrappers"
)

// stage is a PodClique in a fake API server, with a controller whose cache may be behind.
type stage struct {
	t   *testing.T
	r   *Reconciler
	api client.WithWatch
	// frozen, if not nil, is the cached view of the pods, frozenClique of the PodClique, frozenGroup of the PodGroup.
	frozen       *corev1.PodList
	frozenClique *v1alpha1.PodClique
	frozenGroup  *v2alpha2.PodGroup
	// refuse, if not nil, is called when a pod is created.
	refuse func(*corev1.Pod) error
	// refusePatch, if not nil, is returned once when a pod is patched.
	refusePatch error
	events      *events.FakeRecorder
	clock       *clocktesting.FakePassiveClock
}

// now is the time of the controller's clock.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newStage(t *testing.T, replicas, minimum int32) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, v2alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	clique := wrappers.MakePodClique("a", 0, "w", "ns").UID("clique").Generation(1).CreationTimestamp(now.Add(-time.Hour)).
		Label(v1alpha1.LabelPodTemplateHash, "one").Replicas(replicas).Obj()
	group := wrappers.MakePodGroup("a-0", "ns").SubGroup("a-0-w", minimum).Obj()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	s := &stage{t: t, events: events.NewFakeRecorder(100)}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(clique, group, node).WithStatusSubresource(clique)
	indexer := indexes{builder}
	if err := children.Index(t.Context(), indexer, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	if err := indexPods(t.Context(), indexer); err != nil {
		t.Fatal(err)
	}
	s.api = builder.Build()
	cached := interceptor.NewClient(s.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if clique, ok := o.(*v1alpha1.PodClique); ok && s.frozenClique != nil {
				s.frozenClique.DeepCopyInto(clique)
				return nil
			}
			if group, ok := o.(*v2alpha2.PodGroup); ok && s.frozenGroup != nil {
				s.frozenGroup.DeepCopyInto(group)
				return nil
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if pods, ok := list.(*corev1.PodList); ok && s.frozen != nil {
				s.frozen.DeepCopyInto(pods)
				return nil
			}
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if pod, ok := o.(*corev1.Pod); ok {
				if s.refuse != nil {
					if err := s.refuse(pod); err != nil {
						return err
					}
				}
			}
			o.SetUID("uid-of-" + types.UID(o.GetName())) // the fake API server does not set it
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := s.refusePatch; err != nil {
				s.refusePatch = nil
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
	})
	s.clock = clocktesting.NewFakePassiveClock(now)
	s.r = New(cached, s.api, children.Options{Clock: s.clock})
	s.r.recorder = s.events
	return s
}

// indexes gives the fake client the indexes of the cache.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(o, field, values)
	return nil
}

func (s *stage) reconcile() (ctrl.Result, error) {
	return s.r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a-0-w"}})
}

func (s *stage) mustReconcile() ctrl.Result {
	s.t.Helper()
	result, err := s.reconcile()
	if err != nil {
		s.t.Fatal(err)
	}
	return result
}

// reconcileWithError reconciles, and fails the test if the pass would not be retried.
func (s *stage) reconcileWithError() {
	s.t.Helper()
	if result, err := s.reconcile(); err == nil && result.RequeueAfter == 0 {
		s.t.Fatal("a pass that failed is not retried")
	}
}

func (s *stage) pods() []corev1.Pod {
	s.t.Helper()
	list := &corev1.PodList{}
	if err := s.api.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

func (s *stage) hostnames() []string {
	var names []string
	for _, p := range s.pods() {
		names = append(names, p.Spec.Hostname)
	}
	slices.Sort(names)
	return names
}

func (s *stage) clique() *v1alpha1.PodClique {
	s.t.Helper()
	clique := &v1alpha1.PodClique{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: "ns", Name: "a-0-w"}, clique); err != nil {
		s.t.Fatal(err)
	}
	return clique
}

func (s *stage) scale(replicas int32) {
	s.t.Helper()
	clique := s.clique()
	clique.Spec.Replicas = replicas
	clique.Generation++ // the fake API server does not count it
	if err := s.api.Update(s.t.Context(), clique); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) group() *v2alpha2.PodGroup {
	s.t.Helper()
	group := &v2alpha2.PodGroup{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: "ns", Name: "a-0"}, group); err != nil {
		s.t.Fatal(err)
	}
	return group
}

// require sets the minimum of the clique in the PodGroup.
func (s *stage) require(minimum int32) {
	s.t.Helper()
	group := s.group()
	group.Spec.SubGroups[0].MinMember = &minimum
	s.update(group)
}

// freeze makes the cache show the current pods from now on.
func (s *stage) freeze() { s.frozen = &corev1.PodList{Items: s.pods()} }

func TestACacheThatIsBehindMakesNoSecondPod(t *testing.T) {
	s := newStage(t, 4, 4)
	s.freeze() // no pods
	for range 3 {
		s.mustReconcile()
	}
	want := []string{"a-0-w-0", "a-0-w-1", "a-0-w-2", "a-0-w-3"}
	if diff := cmp.Diff(want, s.hostnames()); diff != "" {
		t.Errorf("pods after three passes that saw none (-want +got):\n%s", diff)
	}

	// Two pods are deleted, which the cache does not show: no pod is created. When it does, each is replaced once.
	s.freeze()
	for _, p := range s.pods()[1:3] {
		if err := s.api.Delete(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
	}
	s.mustReconcile()
	if n := len(s.pods()); n != 2 {
		t.Errorf("%d pods, want 2: the cache shows four", n)
	}
	s.freeze()
	s.mustReconcile()
	s.mustReconcile()
	if diff := cmp.Diff(want, s.hostnames()); diff != "" {
		t.Errorf("pods after the cache has caught up (-want +got):\n%s", diff)
	}
}

// TestACacheThatIsBehindDeletesNothing: a cache that is behind for one kind and not for another, as after a change of
// the leader, must not cause the deletion of a desired pod.
func TestACacheThatIsBehindDeletesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		behind func(*stage)
	}{
		"in the clique, which was scaled out since": {func(s *stage) {
			s.frozenClique = s.clique()
			s.frozenClique.Spec.Replicas = 2
			s.scale(4)
		}},
		"in the clique, whose template was repaired since": {func(s *stage) {
			s.frozenClique = s.clique()
			clique := s.clique()
			clique.Labels[v1alpha1.LabelPodTemplateHash] = "two"
			s.update(clique)
			for _, p := range s.pods() {
				p.Labels[v1alpha1.LabelPodTemplateHash] = "two"
				s.update(&p)
			}
		}},
		"in the pods, which were given nodes since": {func(s *stage) {
			clique := s.clique()
			clique.Labels[v1alpha1.LabelPodTemplateHash] = "two"
			s.update(clique)
			s.freeze()
			for _, p := range s.pods() {
				p.Spec.NodeName = "n"
				s.update(&p)
			}
		}},
		"in the pods, some of which were deleted since": {func(s *stage) {
			s.freeze()
			for _, p := range s.pods()[:2] {
				if err := s.api.Delete(s.t.Context(), &p); err != nil {
					s.t.Fatal(err)
				}
			}
			s.scale(2) // two pods are left, the cache shows four
		}},
		"in the PodGroup, whose minimum was raised since": {func(s *stage) {
			s.frozenGroup = s.group()
			s.require(4)
			s.scale(2)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 4, 1)
			s.mustReconcile()
			tc.behind(s)
			before := s.hostnames()
			for range 3 {
				if _, err := s.reconcile(); err != nil && !apierrors.IsConflict(err) {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(before, s.hostnames()); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}

func (s *stage) update(o client.Object) {
	s.t.Helper()
	if err := s.api.Update(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func TestScalingInWaitsForThePodGroup(t *testing.T) {
	s := newStage(t, 4, 4)
	s.pass(s.pass(0)) // with its first status
	s.scale(2)
	s.mustReconcile()
	if n := len(s.pods()); n != 4 {
		t.Fatalf("%d pods, want 4: the PodGroup still needs them", n)
	}
	if got := s.clique().Status.MinAvailable; got == nil || *got != 2 {
		t.Errorf("the status says minAvailable %v, want 2", got)
	}
	s.require(2)
	s.mustReconcile()
	if diff := cmp.Diff([]string{"a-0-w-0", "a-0-w-1"}, s.hostnames()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestNothingIsMadeBeforeThePodGroupListsIt(t *testing.T) {
	s := newStage(t, 2, 2)
	group := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0"}}
	if err := s.api.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	s.mustReconcile()
	if n := len(s.pods()); n != 0 {
		t.Errorf("%d pods without a PodGroup", n)
	}
}

// TestOrphansAreNotDoubled: pods of a former PodClique of the same name, deleted with --cascade=orphan, block their
// indices. They are reported until a user deletes them, and pods with other indices are created.
func TestOrphansAreNotDoubled(t *testing.T) {
	s := newStage(t, 4, 4)
	orphan := func(index string, change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0-w-" + index + "-older", UID: types.UID("older-" + index), Labels: map[string]string{v1alpha1.LabelPodClique: "a-0-w", v1alpha1.LabelPodIndex: index}},
			Spec:       corev1.PodSpec{Hostname: "a-0-w-" + index},
		}
		change(pod)
		if err := s.api.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	one := orphan("1", func(*corev1.Pod) {})
	orphan("2", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	orphan("3", func(pod *corev1.Pod) { pod.Labels[v1alpha1.LabelPodClique], pod.Spec.Hostname = "b-0-w", "b-0-w-3" })
	for range 3 {
		s.reconcileWithError()
	}
	want := []string{"a-0-w-0", "a-0-w-1", "a-0-w-2", "a-0-w-2", "a-0-w-3", "b-0-w-3"}
	if diff := cmp.Diff(want, s.hostnames()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if c := meta.FindStatusCondition(s.clique().Status.Conditions, v1alpha1.ConditionForeignObject); c == nil || !strings.Contains(c.Message, one.Name) {
		t.Errorf("condition %v", c)
	}
	if err := s.api.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	s.mustReconcile()
	if diff := cmp.Diff(want, s.hostnames()); diff != "" {
		t.Errorf("pods when the orphan is gone (-want +got):\n%s", diff)
	}
	if c := meta.FindStatusCondition(s.clique().Status.Conditions, v1alpha1.ConditionForeignObject); c != nil {
		t.Errorf("condition %v", c)
	}
}

// The cache may show the new PodClique before it shows that the pods of the former one have lost their owner.
func TestOrphansAreNotDoubledByACacheThatIsBehind(t *testing.T) {
	s := newStage(t, 2, 2)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0-w-1-older", Labels: map[string]string{v1alpha1.LabelPodClique: "a-0-w", v1alpha1.LabelPodIndex: "1"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodClique, Name: "a-0-w", UID: "former", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{Hostname: "a-0-w-1"},
	}
	if err := s.api.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	s.frozen = &corev1.PodList{Items: []corev1.Pod{*pod.DeepCopy()}}
	pod.OwnerReferences = nil
	if err := s.api.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if result := s.mustReconcile(); result.RequeueAfter == 0 {
		t.Error("no requeue is scheduled")
	}
	if diff := cmp.Diff([]string{"a-0-w-1"}, s.hostnames()); diff != "" {
		t.Errorf("pods while the cache is behind (-want +got):\n%s", diff)
	}
	s.frozen = nil
	s.reconcileWithError()
	if diff := cmp.Diff([]string{"a-0-w-0", "a-0-w-1"}, s.hostnames()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

// Pods of an earlier PodClique of the name are still terminating: their hostnames are not used for new pods.
func TestPodsOfAFormerPodCliqueKeepTheirIndices(t *testing.T) {
	for name, tc := range map[string]struct {
		ready corev1.ConditionStatus // of the node
		want  []string               // host names after the grace period
		event string
	}{
		"on a node that responds":         {corev1.ConditionTrue, []string{"a-0-w-0", "a-0-w-1"}, v1alpha1.ReasonNameTerminating},
		"on a node that does not respond": {corev1.ConditionUnknown, []string{"a-0-w-0", "a-0-w-1", "a-0-w-1"}, v1alpha1.EventPodLost},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 2, 2)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "former-node"},
				Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: tc.ready}}}}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0-w-1-former", UID: "former-pod", Finalizers: []string{"example.com/lingers"},
					Labels:          map[string]string{v1alpha1.LabelPodClique: "a-0-w", v1alpha1.LabelPodIndex: "1"},
					OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodClique, Name: "a-0-w", UID: "former", Controller: ptr.To(true)}}},
				Spec: corev1.PodSpec{Hostname: "a-0-w-1", NodeName: "former-node"},
			}
			for _, o := range []client.Object{node, pod} {
				if err := s.api.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.api.Delete(t.Context(), pod); err != nil { // the finalizer prevents its removal
				t.Fatal(err)
			}
			if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
				t.Fatal(err)
			}
			s.clock.SetTime(pod.DeletionTimestamp.Add(-30 * time.Second))
			for range 3 {
				s.reconcileWithError()
			}
			if diff := cmp.Diff([]string{"a-0-w-0", "a-0-w-1"}, s.hostnames()); diff != "" {
				t.Fatalf("host names within the grace period (-want +got):\n%s", diff)
			}
			s.clock.SetTime(pod.DeletionTimestamp.Time)
			if _, err := s.reconcile(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.hostnames()); diff != "" {
				t.Errorf("host names after the grace period (-want +got):\n%s", diff)
			}
			if event := <-s.events.Events; !strings.Contains(event, tc.event) {
				t.Errorf("event %q, want %s", event, tc.event)
			}
		})
	}
}

func TestRejectedPodsAreReportedOnce(t *testing.T) {
	s := newStage(t, 4, 4)
	var asked atomic.Int32
	s.refuse = func(pod *corev1.Pod) error {
		asked.Add(1)
		if pod.Labels[v1alpha1.LabelPodIndex] >= "2" {
			return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, fmt.Errorf("exceeded quota"))
		}
		return nil
	}
	for range 3 {
		s.reconcileWithError()
	}
	if n := len(s.pods()); n != 2 {
		t.Errorf("%d pods, want 2", n)
	}
	if n := asked.Load(); n != 3+1+1 { // one, then two of which one is rejected; then one per pass
		t.Errorf("%d requests in three passes, want 5", n)
	}
	status := s.clique().Status
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReplicaFailure); c == nil || !strings.Contains(c.Message, "exceeded quota") {
		t.Errorf("condition %v", c)
	}
	close(s.events.Events)
	told := 0
	for range s.events.Events {
		told++
	}
	if told != 1 {
		t.Errorf("%d events, want 1", told)
	}
	s.events.Events = make(chan string, 10)

	s.refuse = nil
	s.mustReconcile()
	if len(s.pods()) != 4 || meta.FindStatusCondition(s.clique().Status.Conditions, v1alpha1.ConditionReplicaFailure) != nil {
		t.Errorf("%d pods, conditions %v", len(s.pods()), s.clique().Status.Conditions)
	}
}

// TestPodsAreGivenTheirLabelsBack: labels that were removed from a pod are restored, and no other pod is created in
// its place.
func TestPodsAreGivenTheirLabelsBack(t *testing.T) {
	s := newStage(t, 2, 2)
	s.mustReconcile()
	pods := s.pods()
	want := pods[0].DeepCopy().Labels
	for name, strip := range map[string]func(*corev1.Pod){
		"one":       func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelPartOf) },
		"its index": func(p *corev1.Pod) { p.Labels[v1alpha1.LabelPodIndex] = "7" },
		"the one that the cache looks for": func(p *corev1.Pod) {
			delete(p.Labels, v1alpha1.LabelManagedBy)
			s.frozen = &corev1.PodList{Items: pods[1:]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := s.pods()[0]
			strip(&pod)
			s.update(&pod)
			s.mustReconcile()
			s.frozen = nil
			if diff := cmp.Diff(want, s.pods()[0].Labels); diff != "" || len(s.pods()) != 2 {
				t.Errorf("%d pods, labels (-want +got):\n%s", len(s.pods()), diff)
			}
		})
	}
}

// TestPodsOfAnEarlierTemplate: pods of an earlier template that were never scheduled are deleted in the turn of their
// clique, and not before; a pod that is deleted for another reason is deleted once.
func TestPodsOfAnEarlierTemplate(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		group       string
		want        string
	}{
		"its turn":                             {map[string]string{v1alpha1.AnnotationRevision: "2", v1alpha1.AnnotationUpdateTurn: "2"}, "", "never-scheduled"},
		"not its turn":                         {map[string]string{v1alpha1.AnnotationRevision: "2"}, "", ""},
		"its turn in an earlier update":        {map[string]string{v1alpha1.AnnotationRevision: "3", v1alpha1.AnnotationUpdateTurn: "2"}, "", ""},
		"OnDelete":                             {map[string]string{v1alpha1.AnnotationRevision: "2", v1alpha1.AnnotationUpdateTurn: "2", v1alpha1.AnnotationUpdateStrategy: "OnDelete"}, "", ""},
		"a member: its group replaces it":      {map[string]string{v1alpha1.AnnotationRevision: "2", v1alpha1.AnnotationUpdateTurn: "2"}, "a-0-g", ""},
		"without annotations of its owner yet": {nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := func(name string, scheduled, outdated bool) lifecycle.Pod {
				return lifecycle.Pod{Name: name, UID: name, Scheduled: scheduled, Ready: scheduled, Outdated: outdated}
			}
			clique := newStage(t, 4, 4).clique()
			clique.Annotations = tc.annotations
			if tc.group != "" {
				clique.Labels[v1alpha1.LabelPodCliqueScalingGroup] = tc.group
			}
			d := (&Reconciler{}).decideUpdate(clique, []lifecycle.Pod{
				pod("new", false, false), pod("never-scheduled", false, true), pod("bound", true, true), pod("deleted-anyway", false, true),
			}, 4, lifecycle.PodDecision{Delete: []lifecycle.Deletion{{Pod: pod("deleted-anyway", false, true), Reason: lifecycle.DeletedScaleIn}}}, now)
			var gone []string
			for _, del := range d.Delete {
				gone = append(gone, del.Pod.Name)
			}
			if got := strings.Join(gone, " "); got != tc.want {
				t.Errorf("deleted: %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPodUrgency(t *testing.T) {
	pod := func(version string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Labels: map[string]string{"a": "1"}}}
		change(p)
		return p
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   children.Urgency
	}{
		"that runs can wait": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, children.Soon},
		"that became ready can wait for others that do": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}, children.Prompt},
		"that is being deleted too": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }, children.Prompt},
		"that got a node can wait, though the API server copies labels of the node": {func(p *corev1.Pod) {
			p.Spec.NodeName, p.Labels[corev1.LabelTopologyZone], p.Labels[corev1.LabelTopologyRegion] = "n", "z", "r"
		}, children.Soon},
		"that ended cannot":                {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, children.Urgent},
		"whose labels were edited neither": {func(p *corev1.Pod) { p.Labels["a"] = "2" }, children.Urgent},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podUrgency(pod("1", func(*corev1.Pod) {}), pod("2", tc.change)); got != tc.want {
				t.Errorf("urgency %d, want %d", got, tc.want)
			}
		})
	}
	same := pod("1", func(*corev1.Pod) {})
	if got := podUrgency(same, same); got != children.Never {
		t.Errorf("a resync has urgency %d", got)
	}
}

// TestAFailingWebhookIsReported: the failure of another program's webhook is reported once, after it has lasted.
func TestAFailingWebhookIsReported(t *testing.T) {
	s := newStage(t, 2, 2)
	s.refuse = func(*corev1.Pod) error {
		return apierrors.NewInternalError(errors.New(`failed calling webhook "mutate.example": connection refused`))
	}
	told := func() *metav1.Condition {
		return meta.FindStatusCondition(s.clique().Status.Conditions, v1alpha1.ConditionReplicaFailure)
	}
	for range 5 {
		s.reconcileWithError()
		s.clock.SetTime(s.clock.Now().Add(2 * time.Second))
		if c := told(); c != nil {
			t.Fatalf("reported after %s: %v", s.clock.Now().Sub(now), c)
		}
	}
	for range 5 {
		s.reconcileWithError()
		s.clock.SetTime(s.clock.Now().Add(20 * time.Second))
	}
	if c := told(); c == nil || c.Reason != v1alpha1.ReasonCreateFailed || !strings.Contains(c.Message, "mutate.example") {
		t.Errorf("condition %v", c)
	}
	if got := s.clique().Status.LastErrors; len(got) != 1 || got[0].Code != v1alpha1.ReasonCreateFailed {
		t.Errorf("lastErrors %v", got)
	}
	if n := len(s.events.Events); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	s.refuse = nil
	s.mustReconcile()
	if c := told(); c != nil || len(s.pods()) != 2 {
		t.Errorf("%d pods, condition %v", len(s.pods()), c)
	}
}

// TestEndedPodsAreRecordedBeforeTheyAreDeleted: the history of ended pods is in the status before the counted pods are
// deleted.
func TestEndedPodsAreRecordedBeforeTheyAreDeleted(t *testing.T) {
	s := newStage(t, 2, 2)
	s.pass(s.pass(0))
	pod := s.pods()[1]
	pod.Status.Phase = corev1.PodFailed
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(s.clock.Now())}}
	if err := s.api.Status().Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	s.frozenClique = s.clique()
	changed := s.clique()
	changed.Annotations = map[string]string{v1alpha1.AnnotationPodCliqueSetAttempt: "1"}
	s.update(changed)
	s.reconcileWithError() // the write of the status conflicts
	if n := len(s.pods()); n != 2 {
		t.Fatalf("%d pods: one was deleted before that was recorded", n)
	}
	s.frozenClique = nil
	s.mustReconcile()
	want := []v1alpha1.EndedPods{{Index: 1, Count: 1, LastEndedAt: metav1.NewTime(s.clock.Now().Truncate(time.Second))}}
	if diff := cmp.Diff(want, s.clique().Status.EndedPods); diff != "" || len(s.pods()) != 1 {
		t.Errorf("%d pods, history (-want +got):\n%s", len(s.pods()), diff)
	}
}

// TestReadinessIsDatedByTheClockOfTheController: a kubelet whose clock is a day ahead has no say in it, and nothing is
// remembered of a PodClique that is gone.
func TestReadinessIsDatedByTheClockOfTheController(t *testing.T) {
	s := newStage(t, 1, 1)
	s.pass(s.pass(0))
	pod := s.pods()[0]
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(24 * time.Hour))}}
	if err := s.api.Status().Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	readySince := func() time.Time {
		t.Helper()
		s.mustReconcile()
		pods, _ := s.r.sightings.Of(s.clique(), nil).Date(workload.CliquePodsFacts(s.clique(), []*corev1.Pod{&pod}, nil), nil, s.clock.Now())
		return pods[0].ReadySince
	}
	seen := s.clock.Now()
	for range 2 {
		if got := readySince(); !got.Equal(seen) {
			t.Errorf("ready since %s, want %s", got, seen)
		}
		s.clock.SetTime(seen.Add(time.Hour))
	}
	if err := s.api.Delete(t.Context(), s.clique()); err != nil {
		t.Fatal(err)
	}
	s.mustReconcile()
	if n := s.r.sightings.Len(); n != 0 {
		t.Errorf("%d PodCliques are remembered", n)
	}
}

// TestAConflictOnAFinalizerIsRetried: a conflict does not mean that another pod has the name. Otherwise the finalizer
// would stay, and the pod and the job would hang.
func TestAConflictOnAFinalizerIsRetried(t *testing.T) {
	for name, tc := range map[string]struct {
		replaced bool // another pod has the name
		want     int  // finalizers, after the pass that fails and the next one
	}{
		"the same pod":                   {false, 0},
		"another pod has the name: left": {true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 1, 1)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "one", Finalizers: []string{v1alpha1.FinalizerPodTracking}}}
			if err := s.api.Create(t.Context(), pod.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			if tc.replaced {
				pod.UID = "an earlier one"
			}
			s.refusePatch = apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("changed"))
			err := s.r.releasePod(t.Context(), pod)
			if got := apierrors.IsConflict(err); got == tc.replaced {
				t.Errorf("error %v", err)
			}
			if err != nil {
				err = s.r.releasePod(t.Context(), pod)
			}
			left := &corev1.Pod{}
			if getErr := s.api.Get(t.Context(), client.ObjectKeyFromObject(pod), left); err != nil || getErr != nil || len(left.Finalizers) != tc.want {
				t.Errorf("finalizers %v, errors %v, %v", left.Finalizers, err, getErr)
			}
		})
	}
}
