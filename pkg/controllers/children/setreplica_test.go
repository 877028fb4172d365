// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/naming"
)

// TestPodCliquesAreListedAfterTheirPods: the PodCliques of a replica are deleted one after the other, and the pods of
// the first are gone when the second is deleted. A list in between must not contain the second PodClique without the
// pods of the first, which would look as if the first had been deleted alone.
func TestPodCliquesAreListedAfterTheirPods(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: naming.OfSetReplica("s", 0)}
	}
	worker, pod := &v1alpha1.PodClique{ObjectMeta: meta("worker")}, &corev1.Pod{ObjectMeta: meta("leader-0")}
	lists := 0
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(worker, pod).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if lists++; lists == 2 {
				for _, o := range []client.Object{worker, pod} {
					if err := api.Delete(ctx, o); err != nil {
						t.Error(err)
					}
				}
			}
			return api.List(ctx, list, options...)
		},
	}).Build()
	cliques, pods, err := NewClient(api, api).LiveSetReplica(t.Context(), "ns", "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	hasWorker := slices.ContainsFunc(cliques, func(c *v1alpha1.PodClique) bool { return c.Name == "worker" })
	if lists != 2 || hasWorker && len(pods) == 0 {
		t.Errorf("after %d lists: the second PodClique is there %t, and %d pods of the first", lists, hasWorker, len(pods))
	}
}
