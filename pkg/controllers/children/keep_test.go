package children

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

func TestKeepUncached(t *testing.T) {
	role := func(owner types.UID, verbs ...string) *rbacv1.Role {
		r := &rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue}},
			Rules:      []rbacv1.PolicyRule{{Verbs: verbs}},
		}
		if owner != "" {
			yes := true
			r.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodCliqueSet, Name: string(owner), UID: owner, Controller: &yes}}
		}
		return r
	}
	for name, tc := range map[string]struct {
		there   *rbacv1.Role
		want    []string
		foreign bool
	}{
		"made":                          {want: []string{"get"}},
		"as it should be":               {there: role("a", "get"), want: []string{"get"}},
		"changed by somebody: mended":   {there: role("a", "get", "delete"), want: []string{"get"}},
		"somebody else's is left alone": {there: role("", "delete"), want: []string{"delete"}, foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{rbacv1.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if tc.there != nil {
				builder = builder.WithObjects(tc.there)
			}
			api := builder.Build()
			err := KeepUncached(t.Context(), Maker{Client: api, Live: api}, &rbacv1.Role{}, role("a", "get"))
			if inTheWay := (*InTheWay)(nil); errors.As(err, &inTheWay) != tc.foreign || err != nil && !tc.foreign {
				t.Fatalf("KeepUncached: %v, in the way: want %t", err, tc.foreign)
			}
			got := &rbacv1.Role{}
			if err := api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "r"}, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Rules[0].Verbs); diff != "" {
				t.Errorf("verbs (-want +got):\n%s", diff)
			}
		})
	}
}
