// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// TestCreateWhereTheNameIsTaken: the name belongs to our own object, to a terminating object, or to another owner.
func TestCreateWhereTheNameIsTaken(t *testing.T) {
	owner := func(kind, name, uid string) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}}
	}
	living := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", UID: "other-uid"}}
	now := metav1.Now()
	for name, tc := range map[string]struct {
		there *corev1.Service
		want  string // "": no error; "going", "foreign": NameConflictError
	}{
		"no object": {},
		"ours, the cache was behind": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "a", "a-uid")}}},
		"without an owner": {
			there: &corev1.Service{}, want: "foreign"},
		"of another owner that exists": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "other", "other-uid")}}, want: "foreign"},
		"of another owner that is gone": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "gone", "gone-uid")}}, want: "going"},
		"of an earlier owner of the same name as one that exists": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "other", "earlier-uid")}}, want: "going"},
		"of an earlier owner with our name": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "a", "earlier-uid")}}, want: "going"},
		"of an owner of an unknown kind": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "example.com/v1", Kind: "Thing", Name: "x", UID: "x", Controller: owner("", "", "")[0].Controller}}}}, want: "foreign"},
		"ours, being deleted": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "a", "a-uid"),
				DeletionTimestamp: &now, Finalizers: []string{"test/hold"}}}, want: "going"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(living)
			if tc.there != nil {
				tc.there.Namespace, tc.there.Name = "ns", "a-0"
				builder = builder.WithObjects(tc.there)
			}
			api := builder.Build()
			err := NewClient(api, api).Create(t.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0", OwnerReferences: owner("PodCliqueSet", "a", "a-uid")}})
			conflict := (*NameConflictError)(nil)
			got := ""
			switch {
			case err == nil:
			case !errors.As(err, &conflict):
				t.Fatal(err)
			case conflict.Terminating:
				got = "going"
			default:
				got = "foreign"
			}
			if got != tc.want {
				t.Errorf("Create: %v, want %q", err, tc.want)
			}
			if tc.there != nil {
				after := &corev1.Service{}
				if err := api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a-0"}, after); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.there.OwnerReferences, after.OwnerReferences); diff != "" {
					t.Errorf("the existing object was changed:\n%s", diff)
				}
			}
		})
	}
}

// TestCreateGivesOursTheirLabelsBack: an object that has lost the label by which the cache finds it still belongs to
// us. Its missing labels are restored, and nothing else is changed.
func TestCreateGivesOursTheirLabelsBack(t *testing.T) {
	yes := true
	owner := []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PodClique", Name: "a", UID: "a-uid", Controller: &yes}}
	want := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue, v1alpha1.LabelPartOf: "a", v1alpha1.LabelPodTemplateHash: "new"}
	for name, tc := range map[string]struct{ there, want map[string]string }{
		"all are gone": {nil, want},
		"its labels name another owner": {
			map[string]string{v1alpha1.LabelManagedBy: "helm", v1alpha1.LabelPartOf: "b", v1alpha1.LabelPodTemplateHash: "old"},
			map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue, v1alpha1.LabelPartOf: "b", v1alpha1.LabelPodTemplateHash: "old"}},
		"the cache was behind": {
			map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue},
			map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			pod := func(labels map[string]string) *corev1.Pod {
				return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0", UID: "pod", Labels: labels, OwnerReferences: owner}}
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pod(tc.there)).Build()
			if err := NewClient(api, api).Create(t.Context(), pod(want)); err != nil {
				t.Fatal(err)
			}
			got := &corev1.Pod{}
			if err := api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a-0"}, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreateOrUpdateUncached(t *testing.T) {
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
	unlabelled := role("", "delete")
	unlabelled.Labels = nil
	for name, tc := range map[string]struct {
		there   *rbacv1.Role
		want    []string
		foreign bool
	}{
		"made":                                {want: []string{"get"}},
		"as it should be":                     {there: role("a", "get"), want: []string{"get"}},
		"changed by another client: restored": {there: role("a", "get", "delete"), want: []string{"get"}},
		"left by a deleted owner of the name: adopted": {there: role("", "delete"), want: []string{"get"}},
		"an object of another owner is left alone":     {there: role("b", "delete"), want: []string{"delete"}, foreign: true},
		"one of a user is left alone":                  {there: unlabelled, want: []string{"delete"}, foreign: true},
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
			err := CreateOrUpdateUncached(t.Context(), NewClient(api, api), &rbacv1.Role{}, role("a", "get"))
			if conflict := (*NameConflictError)(nil); errors.As(err, &conflict) != tc.foreign || err != nil && !tc.foreign {
				t.Fatalf("CreateOrUpdateUncached: %v, in the way: want %t", err, tc.foreign)
			}
			got := &rbacv1.Role{}
			if err := api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "r"}, got); err != nil {
				t.Fatal(err)
			}
			if owner := metav1.GetControllerOf(got); !tc.foreign && (owner == nil || owner.UID != "a") {
				t.Errorf("the owner is %+v", owner)
			}
			if diff := cmp.Diff(tc.want, got.Rules[0].Verbs); diff != "" {
				t.Errorf("verbs (-want +got):\n%s", diff)
			}
		})
	}
}

// indexes gives the fake client the indexes of the cache.
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
		want       []types.UID // the remaining owners
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
			if err := NewClient(api, api).Release(t.Context(), owner, 2, &v1alpha1.PodCliqueList{}); err != nil {
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
