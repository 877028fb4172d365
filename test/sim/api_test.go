// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/wrappers"
)

func newTestAPI() (*API, *clocktesting.FakeClock) {
	clock := clocktesting.NewFakeClock(epoch.Add(300 * time.Millisecond))
	return NewAPI(clock), clock
}

// podClique is a PodClique without labels and owner, for tests of the API alone.
func podClique() *v1alpha1.PodClique {
	clique := wrappers.MakePodClique("a", 0, "w", "ns").Obj()
	clique.Labels, clique.OwnerReferences = nil, nil
	return clique
}

func testPod(node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c"}}}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Writes have the results that they have on an API server.
func TestWrites(t *testing.T) {
	ctx := t.Context()
	read := func(t *testing.T, a *API) *v1alpha1.PodClique {
		t.Helper()
		c := podClique()
		must(t, a.Get(ctx, client.ObjectKeyFromObject(c), c))
		return c
	}
	for name, tc := range map[string]struct {
		do   func(t *testing.T, a *API) error
		want func(error) bool // nil: success
		// of the PodClique after the write; generation 0: it is gone
		generation    int64
		replicas      int32
		readyReplicas int32
	}{
		"created again": {
			do:   func(_ *testing.T, a *API) error { return a.Create(ctx, podClique()) },
			want: apierrors.IsAlreadyExists, generation: 1, replicas: 1},
		"an update of the spec raises the generation": {
			do: func(t *testing.T, a *API) error {
				c := read(t, a)
				c.Spec.Replicas = 2
				return a.Update(ctx, c)
			}, generation: 2, replicas: 2},
		"an update of labels does not": {
			do: func(t *testing.T, a *API) error {
				c := read(t, a)
				c.Labels = map[string]string{"x": "y"}
				return a.Update(ctx, c)
			}, generation: 1, replicas: 1},
		"an update leaves the status alone": {
			do: func(t *testing.T, a *API) error {
				c := read(t, a)
				c.Status.ReadyReplicas = 7
				return a.Update(ctx, c)
			}, generation: 1, replicas: 1},
		"an update of the status leaves the spec alone": {
			do: func(t *testing.T, a *API) error {
				c := read(t, a)
				c.Spec.Replicas, c.Status.ReadyReplicas = 5, 7
				return a.Status().Update(ctx, c)
			}, generation: 1, replicas: 1, readyReplicas: 7},
		"an update with an old resourceVersion": {
			do: func(t *testing.T, a *API) error {
				c, stale := read(t, a), read(t, a)
				c.Spec.Replicas = 2
				must(t, a.Update(ctx, c))
				stale.Spec.Replicas = 3
				return a.Update(ctx, stale)
			}, want: apierrors.IsConflict, generation: 2, replicas: 2},
		"an update without a resourceVersion": {
			do:   func(_ *testing.T, a *API) error { return a.Update(ctx, podClique()) },
			want: apierrors.IsBadRequest, generation: 1, replicas: 1},
		"an update of what is not there": {
			do: func(*testing.T, *API) error {
				a, _ := newTestAPI()
				c := podClique()
				c.ResourceVersion = "1"
				return a.Update(ctx, c)
			}, want: apierrors.IsNotFound, generation: 1, replicas: 1},
		"a patch of the status with a lock, on the newest version": {
			do: func(t *testing.T, a *API) error {
				before := read(t, a)
				after := before.DeepCopy()
				after.Status.ReadyReplicas = 7
				return a.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			}, generation: 1, replicas: 1, readyReplicas: 7},
		"a patch of the status with a lock, on an old version": {
			do: func(t *testing.T, a *API) error {
				before, c := read(t, a), read(t, a)
				c.Labels = map[string]string{"x": "y"}
				must(t, a.Update(ctx, c))
				after := before.DeepCopy()
				after.Status.ReadyReplicas = 7
				return a.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			}, want: apierrors.IsConflict, generation: 1, replicas: 1},
		"a merge patch of the metadata alone": {
			do: func(t *testing.T, a *API) error {
				o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0-w"}}
				o.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindPodClique))
				must(t, a.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`))))
				if diff := cmp.Diff(map[string]string{"x": "y"}, read(t, a).Labels); diff != "" {
					return errors.New(diff)
				}
				return nil
			}, generation: 1, replicas: 1},
		"a merge patch that names another UID": {
			do: func(_ *testing.T, a *API) error {
				return a.Patch(ctx, podClique(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"uid":"other","labels":{"x":"y"}}}`)))
			}, want: apierrors.IsConflict, generation: 1, replicas: 1},
		"a strategic merge patch of a custom resource": {
			do: func(_ *testing.T, a *API) error {
				return a.Patch(ctx, podClique(), client.RawPatch(types.StrategicMergePatchType, []byte(`{}`)))
			}, want: apierrors.IsUnsupportedMediaType, generation: 1, replicas: 1},
		"a deletion": {do: func(_ *testing.T, a *API) error { return a.Delete(ctx, podClique()) }},
		"a deletion of what has another UID": {do: func(_ *testing.T, a *API) error {
			return a.Delete(ctx, podClique(), client.Preconditions{UID: ptr.To(types.UID("x"))})
		}, want: apierrors.IsConflict, generation: 1, replicas: 1},
		"a deletion of an old version": {
			do: func(_ *testing.T, a *API) error {
				return a.Delete(ctx, podClique(), client.Preconditions{ResourceVersion: ptr.To("0")})
			}, want: apierrors.IsConflict, generation: 1, replicas: 1},
		"a deletion of what has a finalizer raises the generation": {
			do: func(t *testing.T, a *API) error {
				c := read(t, a)
				c.Finalizers = []string{"test/hold"}
				must(t, a.Update(ctx, c))
				return a.Delete(ctx, c)
			}, generation: 2, replicas: 1},
		"a finalizer that is added too late": {
			do: func(t *testing.T, a *API) error {
				c := read(t, a)
				c.Finalizers = []string{"test/hold"}
				must(t, a.Update(ctx, c))
				must(t, a.Delete(ctx, c))
				c = read(t, a)
				c.Finalizers = append(c.Finalizers, "test/late")
				return a.Update(ctx, c)
			}, want: apierrors.IsForbidden, generation: 2, replicas: 1},
		"the last finalizer that goes": {
			do: func(t *testing.T, a *API) error {
				c := read(t, a)
				c.Finalizers = []string{"test/hold"}
				must(t, a.Update(ctx, c))
				must(t, a.Delete(ctx, c))
				c = read(t, a)
				c.Finalizers = nil
				return a.Update(ctx, c)
			}},
		"a write that admission refuses": {
			do: func(t *testing.T, a *API) error {
				a.Refuse = func(verb Verb, _ client.Object) error {
					return apierrors.NewForbidden(v1alpha1.Resource("podcliques"), "a-0-w", fmt.Errorf("%s is refused", verb))
				}
				return a.Delete(ctx, podClique())
			}, want: apierrors.IsForbidden, generation: 1, replicas: 1},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := newTestAPI()
			must(t, a.Create(ctx, podClique()))
			err := tc.do(t, a)
			if tc.want == nil && err != nil || tc.want != nil && !tc.want(err) {
				t.Errorf("error %v", err)
			}
			got := podClique()
			if err := a.Get(ctx, client.ObjectKeyFromObject(got), got); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			} else if err != nil {
				got = &v1alpha1.PodClique{}
			}
			if diff := cmp.Diff([]any{tc.generation, tc.replicas, tc.readyReplicas}, []any{got.Generation, got.Spec.Replicas, got.Status.ReadyReplicas}); diff != "" {
				t.Errorf("generation, replicas and ready replicas (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPIServerSetsDefaults(t *testing.T) {
	a, clock := newTestAPI()
	first := podClique()
	first.Status.ReadyReplicas = 3
	must(t, a.Create(t.Context(), first))
	if !first.CreationTimestamp.Time.Equal(epoch) || first.UID == "" || first.Generation != 1 || first.ResourceVersion == "" || first.Status.ReadyReplicas != 0 {
		t.Errorf("created at %s with UID %q, generation %d, version %q, %d ready", first.CreationTimestamp, first.UID, first.Generation, first.ResourceVersion, first.Status.ReadyReplicas)
	}
	must(t, a.Delete(t.Context(), first))
	clock.Step(time.Second)
	second := podClique()
	must(t, a.Create(t.Context(), second))
	if second.UID == first.UID || !second.CreationTimestamp.Time.Equal(epoch.Add(time.Second)) {
		t.Errorf("the second of its name has UID %q as %q, and was created at %s", second.UID, first.UID, second.CreationTimestamp)
	}
	written := second.ResourceVersion
	must(t, a.Update(t.Context(), second))
	if second.ResourceVersion != written {
		t.Errorf("an update that changes nothing made version %s of %s", second.ResourceVersion, written)
	}
}

func TestDeletionOfPods(t *testing.T) {
	for name, tc := range map[string]struct {
		node      string
		phase     corev1.PodPhase
		finalizer bool
		options   []client.DeleteOption
		gone      bool
		grace     int64
	}{
		"one that is not bound":              {gone: true},
		"one that is bound":                  {node: "n", grace: 30},
		"one that is bound, with less grace": {node: "n", options: []client.DeleteOption{client.GracePeriodSeconds(5)}, grace: 5},
		"one that is bound, by force":        {node: "n", options: []client.DeleteOption{client.GracePeriodSeconds(0)}, gone: true},
		"one that Failed":                    {node: "n", phase: corev1.PodFailed, gone: true},
		"one with a finalizer, not bound":    {finalizer: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			a, _ := newTestAPI()
			pod := testPod(tc.node)
			if tc.finalizer {
				pod.Finalizers = []string{"test/hold"}
			}
			must(t, a.Create(ctx, pod))
			if tc.phase != "" {
				pod.Status.Phase = tc.phase
				must(t, a.Status().Update(ctx, pod))
			}
			must(t, a.Delete(ctx, pod, tc.options...))
			err := a.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			if apierrors.IsNotFound(err) != tc.gone {
				t.Fatalf("gone: %v, want %t", err, tc.gone)
			}
			if !tc.gone && (*pod.DeletionGracePeriodSeconds != tc.grace || !pod.DeletionTimestamp.Time.Equal(epoch.Add(seconds(tc.grace)))) {
				t.Errorf("grace %d until %s, want %d", *pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp, tc.grace)
			}
		})
	}
}

func TestBindingOfPods(t *testing.T) {
	ctx := t.Context()
	a, _ := newTestAPI()
	pod := testPod("")
	must(t, a.Create(ctx, pod))
	if err := a.bind(client.ObjectKeyFromObject(pod), "other", "n", nil); !apierrors.IsConflict(err) {
		t.Errorf("bound by another UID: %v", err)
	}
	must(t, a.bind(client.ObjectKeyFromObject(pod), pod.UID, "n", map[string]string{"x": "y"}))
	if err := a.bind(client.ObjectKeyFromObject(pod), pod.UID, "m", nil); !apierrors.IsConflict(err) {
		t.Errorf("bound again: %v", err)
	}
	must(t, a.Get(ctx, client.ObjectKeyFromObject(pod), pod))
	if pod.Spec.NodeName != "n" || pod.Annotations["x"] != "y" || pod.Generation != 1 {
		t.Errorf("node %q, annotations %v, generation %d", pod.Spec.NodeName, pod.Annotations, pod.Generation)
	}
}

// The garbage collector acts by the propagation policy with which an owner is deleted.
func TestGarbageCollection(t *testing.T) {
	for name, tc := range map[string]struct {
		policy metav1.DeletionPropagation
		want   []string // the objects that remain, with their owners
	}{
		"background": {policy: metav1.DeletePropagationBackground, want: []string{"shared of other"}},
		"foreground": {policy: metav1.DeletePropagationForeground, want: []string{"shared of other"}},
		"orphan":     {policy: metav1.DeletePropagationOrphan, want: []string{"child", "shared of other"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			c := New(t, Options{WithoutControllers: true})
			service := func(name string, owners ...client.Object) *corev1.Service {
				s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
				for _, o := range owners {
					s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{Kind: v1alpha1.KindPodClique, Name: o.GetName(), UID: o.GetUID()})
				}
				return s
			}
			owner, other := podClique(), podClique()
			other.Name = "other"
			c.Create(owner)
			c.Create(other)
			c.Create(service("child", owner))
			c.Create(service("shared", owner, other))
			c.Settle()
			c.Delete(owner, client.PropagationPolicy(tc.policy))
			c.Settle()
			if err := c.API.Get(ctx, client.ObjectKeyFromObject(owner), owner); !apierrors.IsNotFound(err) {
				t.Errorf("the owner is there still: %v", err)
			}
			got := []string{}
			for _, s := range All[*corev1.Service](c) {
				text := s.Name
				for _, ref := range s.OwnerReferences {
					text += " of " + ref.Name
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListsBySelectorAndMetadata(t *testing.T) {
	ctx := context.Background()
	a, _ := newTestAPI()
	for i := range 3 {
		pod := testPod("")
		pod.Name = fmt.Sprintf("p%d", i)
		pod.Labels = map[string]string{"even": fmt.Sprint(i%2 == 0)}
		must(t, a.Create(ctx, pod))
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	must(t, a.List(ctx, list, client.InNamespace("ns"), client.MatchingLabels{"even": "true"}))
	if len(list.Items) != 2 || list.Items[0].Name != "p0" || list.Items[1].Name != "p2" {
		t.Errorf("listed %v", list.Items)
	}
	if err := a.List(ctx, &corev1.PodList{}, client.MatchingFields{"spec.nodeName": "n"}); !apierrors.IsBadRequest(err) {
		t.Errorf("an index of a cache was asked for: %v", err)
	}
}
