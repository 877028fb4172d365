package children

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// indexes lets the fake client find objects as the cache does.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(o, field, values)
	return nil
}

func TestRelease(t *testing.T) {
	now, yes := metav1.Now(), true
	reference := func(uid types.UID, controller *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodCliqueSet, Name: string(uid), UID: uid, Controller: controller}
	}
	for name, tc := range map[string]struct {
		deleted    *metav1.Time
		finalizers []string
		want       []types.UID // the owners that are left
	}{
		"lives":                     {finalizers: []string{metav1.FinalizerOrphanDependents}, want: []types.UID{"a", "other"}},
		"deleted in the foreground": {deleted: &now, finalizers: []string{metav1.FinalizerDeleteDependents}, want: []types.UID{"a", "other"}},
		"deleted with orphans":      {deleted: &now, finalizers: []string{metav1.FinalizerOrphanDependents}, want: []types.UID{"other"}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			owner := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "a", DeletionTimestamp: tc.deleted, Finalizers: tc.finalizers}}
			clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0-w", OwnerReferences: []metav1.OwnerReference{reference("a", &yes), reference("other", nil)}}}
			foreign := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b-0-w", OwnerReferences: []metav1.OwnerReference{reference("b", &yes)}}}
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(clique, foreign)
			if err := Index(t.Context(), indexes{builder}, &v1alpha1.PodClique{}); err != nil {
				t.Fatal(err)
			}
			api := builder.Build()
			if err := (Maker{Client: api, Live: api}).Release(t.Context(), owner, 2, &v1alpha1.PodCliqueList{}); err != nil {
				t.Fatal(err)
			}
			got := map[string][]types.UID{}
			list := &v1alpha1.PodCliqueList{}
			if err := api.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			for _, c := range list.Items {
				for _, r := range c.OwnerReferences {
					got[c.Name] = append(got[c.Name], r.UID)
				}
			}
			if diff := cmp.Diff(map[string][]types.UID{"a-0-w": tc.want, "b-0-w": {"b"}}, got); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}
