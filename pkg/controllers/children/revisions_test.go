// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/wrappers"
)

// podCliqueSet is the set of the tests. It follows the revision two.
func podCliqueSet() *v1alpha1.PodCliqueSet {
	return wrappers.MakePodCliqueSet("a", "ns").UID("a-uid").
		Status(func(s *v1alpha1.PodCliqueSetStatus) { s.CurrentGenerationHash = ptr.To("two") }).Obj()
}

// storedRevision returns the ControllerRevision of a revision of the set, after changes.
func storedRevision(t *testing.T, number int64, hash string, changes ...func(*appsv1.ControllerRevision)) *appsv1.ControllerRevision {
	t.Helper()
	stored, err := (&workload.Revision{Number: number, Hash: hash}).Stored(podCliqueSet())
	if err != nil {
		t.Fatal(err)
	}
	stored.UID = types.UID(stored.Name + "-uid")
	for _, change := range changes {
		change(stored)
	}
	return stored
}

func unreadable(r *appsv1.ControllerRevision)     { r.Data.Raw = []byte(`{"hash":"of another"}`) }
func withoutLabels(r *appsv1.ControllerRevision)  { r.Labels = nil }
func withoutOwner(r *appsv1.ControllerRevision)   { r.OwnerReferences = nil }
func ofAnotherOwner(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "another" }
func leavingRevision(r *appsv1.ControllerRevision) {
	r.DeletionTimestamp, r.Finalizers = ptr.To(metav1.Now()), []string{"test/hold"}
}

// revisionClient returns a client of an API server with the objects; its cache contains those with our label.
func revisionClient(t *testing.T, stored ...*appsv1.ControllerRevision) (*Client, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, s := range stored {
		builder = builder.WithObjects(s)
	}
	if err := Index(t.Context(), indexes{builder}, &appsv1.ControllerRevision{}); err != nil {
		t.Fatal(err)
	}
	api := builder.Build()
	return NewClient(managedOnly{api}, api), api
}

// managedOnly reads from the cache, which contains objects with our label.
type managedOnly struct{ client.Client }

func (c managedOnly) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.Client.List(ctx, list, append(options, client.MatchingLabelsSelector{Selector: ManagedSelector()})...)
}

func (c managedOnly) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, object, options...); err != nil {
		return err
	}
	if object.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.LabelManagedByValue {
		return c.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: "not in the cache"}, object, options...)
	}
	return nil
}

func numbers(revisions []*workload.Revision) string {
	var out []string
	for _, r := range revisions {
		out = append(out, fmt.Sprintf("%d:%s", r.Number, r.Hash))
	}
	return strings.Join(out, " ")
}

func TestLiveRevisions(t *testing.T) {
	t.Parallel()
	type stored = []*appsv1.ControllerRevision
	for name, tc := range map[string]struct {
		stored        stored
		want, orphans string
	}{
		"none":                          {want: ""},
		"the latest first":              {stored: stored{storedRevision(t, 1, "one"), storedRevision(t, 3, "three"), storedRevision(t, 2, "two")}, want: "3:three 2:two 1:one"},
		"with the same number: by hash": {stored: stored{storedRevision(t, 1, "b"), storedRevision(t, 1, "a")}, want: "1:a 1:b"},
		"one cannot be read":            {stored: stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two", unreadable)}, want: "1:one"},
		"one is being deleted":          {stored: stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two", leavingRevision)}, want: "1:one"},
		"one belongs to another set":    {stored: stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two", ofAnotherOwner)}, want: "1:one"},
		"some have no owner":            {stored: stored{storedRevision(t, 1, "one", withoutOwner), storedRevision(t, 2, "two", withoutOwner), storedRevision(t, 3, "three")}, want: "3:three", orphans: "2:two 1:one"},
		"one has neither":               {stored: stored{storedRevision(t, 1, "one", withoutOwner, withoutLabels)}},
		// Otherwise its number would be used again.
		"the current one has lost its labels":                          {stored: stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two", withoutLabels)}, want: "2:two 1:one"},
		"the current one has lost its labels and cannot be read":       {stored: stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two", withoutLabels, unreadable)}, want: "1:one"},
		"the current one has lost its labels and is being deleted":     {stored: stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two", withoutLabels, leavingRevision)}, want: "1:one"},
		"one of that name has no labels, and belongs to another owner": {stored: stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two", withoutLabels, ofAnotherOwner)}, want: "1:one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := revisionClient(t, tc.stored...)
			got, orphans, err := c.LiveRevisions(t.Context(), podCliqueSet())
			if err != nil || numbers(got) != tc.want || numbers(orphans) != tc.orphans {
				t.Errorf("got %q and orphans %q, %v; want %q and %q", numbers(got), numbers(orphans), err, tc.want, tc.orphans)
			}
		})
	}
}

func TestLatestRevision(t *testing.T) {
	t.Parallel()
	type stored = []*appsv1.ControllerRevision
	for name, tc := range map[string]struct {
		stored stored
		want   string
	}{
		"none":                                 {nil, ""},
		"the greatest number":                  {stored{storedRevision(t, 1, "one"), storedRevision(t, 3, "three"), storedRevision(t, 2, "two")}, "3:three"},
		"the latest that can be read":          {stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two"), storedRevision(t, 3, "three", unreadable)}, "2:two"},
		"none can be read":                     {stored{storedRevision(t, 1, "one", unreadable)}, ""},
		"the latest that is not being deleted": {stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two", leavingRevision)}, "1:one"},
		"one of another owner does not count":  {stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two", ofAnotherOwner)}, "1:one"},
		"one without labels is not cached":     {stored{storedRevision(t, 1, "one"), storedRevision(t, 2, "two", withoutLabels)}, "1:one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := revisionClient(t, tc.stored...)
			got, err := c.LatestRevision(t.Context(), podCliqueSet())
			if err != nil {
				t.Fatal(err)
			}
			var all []*workload.Revision
			if got != nil {
				all = append(all, got)
			}
			if numbers(all) != tc.want {
				t.Errorf("got %q, want %q", numbers(all), tc.want)
			}
		})
	}
}

func TestRevisionByHash(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*appsv1.ControllerRevision)
		want   string
		fails  bool
	}{
		"there":             {func(*appsv1.ControllerRevision) {}, "2:two", false},
		"not in the cache":  {withoutLabels, "2:two", false},
		"of another owner":  {ofAnotherOwner, "", false},
		"it cannot be read": {unreadable, "", true},
		"of another hash":   {func(r *appsv1.ControllerRevision) { r.Name = "a-other" }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := revisionClient(t, storedRevision(t, 2, "two", tc.change))
			got, err := c.Revision(t.Context(), podCliqueSet(), "two")
			var all []*workload.Revision
			if got != nil {
				all = append(all, got)
			}
			if numbers(all) != tc.want || (err != nil) != tc.fails {
				t.Errorf("got %q, %v; want %q", numbers(all), err, tc.want)
			}
		})
	}
}

func TestStoreAndDeleteRevision(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		there func(*appsv1.ControllerRevision) // nil: it does not exist
		fails bool
	}{
		"a new one":                           {nil, false},
		"it exists, with its previous number": {func(r *appsv1.ControllerRevision) { r.Revision = 1 }, false},
		"it has lost its labels":              {withoutLabels, false},
		"it cannot be read":                   {unreadable, false},
		"its name is used by another owner":   {ofAnotherOwner, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var there []*appsv1.ControllerRevision
			if tc.there != nil {
				there = append(there, storedRevision(t, 7, "two", tc.there))
			}
			c, api := revisionClient(t, there...)
			err := c.StoreRevision(t.Context(), podCliqueSet(), &workload.Revision{Number: 7, Hash: "two"})
			if tc.fails {
				if err == nil {
					t.Error("it is stored in an object of another owner")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			stored := &appsv1.ControllerRevision{}
			if err := api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: naming.RevisionName("a", "two")}, stored); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(storedRevision(t, 7, "two").Labels, stored.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if read, err := workload.ReadRevision(stored); err != nil || read.Number != 7 {
				t.Errorf("stored is %+v, %v", read, err)
			}

			if err := c.DeleteRevision(t.Context(), podCliqueSet(), &workload.Revision{Hash: "two"}); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("after it was deleted: %v", err)
			}
			if err := c.DeleteRevision(t.Context(), podCliqueSet(), &workload.Revision{Hash: "two"}); err != nil {
				t.Errorf("deleting a deleted revision: %v", err)
			}
		})
	}
}

// TestARevisionThatCannotBeReadIsLoggedOnce: a revision that cannot be read is read in every pass, and logged once. It
// is logged again when another object has its name.
func TestARevisionThatCannotBeReadIsLoggedOnce(t *testing.T) {
	t.Parallel()
	broken := storedRevision(t, 3, "three", unreadable)
	c, api := revisionClient(t, storedRevision(t, 2, "two"), broken)
	var logged []string
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	pass := func() {
		t.Helper()
		if _, err := c.LatestRevision(ctx, podCliqueSet()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.LiveRevisions(ctx, podCliqueSet()); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		pass()
	}
	if len(logged) != 1 || !strings.Contains(logged[0], "a-three") {
		t.Fatalf("after three passes these were logged: %q", logged)
	}
	if err := api.Delete(ctx, broken); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(ctx, storedRevision(t, 4, "three", unreadable, func(r *appsv1.ControllerRevision) { r.UID = "next" })); err != nil {
		t.Fatal(err)
	}
	pass()
	pass()
	if len(logged) != 2 {
		t.Errorf("of another object of that name these were logged: %q", logged[1:])
	}
}
