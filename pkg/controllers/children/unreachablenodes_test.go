// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-project/muster/test/wrappers"
)

// TestStillUnreachable: a node does not respond if neither the cache nor the API server say that it does. A node that
// responds according to the cache is not read from the API server, and no node is read twice.
func TestStillUnreachable(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	node := func(name string, responds bool) client.Object {
		n := wrappers.MakeNode(name).Obj()
		if !responds {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
		}
		return n
	}
	var read []string
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		node("responds", true), node("lost", false), node("responds-again", false), node("deleted", false), node("lost-a-moment-ago", true)).Build()
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		node("responds", true), node("lost", false), node("responds-again", true), node("lost-a-moment-ago", false)).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			read = append(read, key.Name)
			return c.Get(ctx, key, into, options...)
		}}).Build()
	unreachable := NewClient(cache, live).StillUnreachable(t.Context())
	got := map[string]bool{}
	for range 2 {
		for _, name := range []string{"responds", "lost", "responds-again", "deleted", "deleted-long-ago", "lost-a-moment-ago"} {
			got[name] = unreachable(name)
		}
	}
	want := map[string]bool{"responds": false, "lost": true, "responds-again": false, "deleted": true, "deleted-long-ago": true, "lost-a-moment-ago": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unreachable (-want +got):\n%s", diff)
	}
	slices.Sort(read)
	if diff := cmp.Diff([]string{"deleted", "deleted-long-ago", "lost", "responds-again"}, read); diff != "" {
		t.Errorf("read from the API server (-want +got):\n%s", diff)
	}
}
