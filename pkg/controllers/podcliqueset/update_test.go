// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// TestPresentRevision: the number of the current revision is greater than all others, and never one that a child has
// of another revision.
func TestPresentRevision(t *testing.T) {
	t.Parallel()
	withImage := func(image string) *v1alpha1.PodCliqueSet {
		s := podCliqueSet(1)
		for _, c := range s.Spec.Template.Cliques {
			c.Spec.PodSpec = *c.Spec.PodSpec.DeepCopy()
			c.Spec.PodSpec.Containers[0].Image = image
		}
		return s
	}
	numbered := func(image string, number int64) *workload.Revision {
		r := workload.NewRevision(withImage(image), "", nil, nil)
		r.Number = number
		return r
	}
	one, two := numbered("one", 1), numbered("two", 2)
	none := ownedObjects{}
	follow := func(o *metav1.ObjectMeta, hash string, number int64) {
		o.Annotations = map[string]string{v1alpha1.AnnotationGenerationHash: hash, v1alpha1.AnnotationRevision: fmt.Sprint(number)}
	}
	cliqueOf := func(hash string, number int64) ownedObjects {
		c := &v1alpha1.PodClique{}
		follow(&c.ObjectMeta, hash, number)
		return ownedObjects{cliques: map[string]*v1alpha1.PodClique{"c": c}}
	}
	memberOf := func(hash string, number int64) ownedObjects {
		c := &v1alpha1.PodClique{}
		follow(&c.ObjectMeta, hash, number)
		return ownedObjects{members: map[string]*v1alpha1.PodClique{"c": c}}
	}
	groupOf := func(hash string, number int64) ownedObjects {
		g := &v1alpha1.PodCliqueScalingGroup{}
		follow(&g.ObjectMeta, hash, number)
		return ownedObjects{groups: map[string]*v1alpha1.PodCliqueScalingGroup{"g": g}}
	}
	type stored = []*workload.Revision
	for name, tc := range map[string]struct {
		image  string
		stored stored
		owned  ownedObjects
		number int64
		hash   string // "": any new hash
	}{
		"the first":             {"one", nil, none, 1, one.Hash},
		"the latest stored one": {"two", stored{two, one}, none, 2, two.Hash},
		"a new one":             {"three", stored{two, one}, none, 3, ""},
		"back to an earlier one: its hash, a new number": {"one", stored{two, one}, none, 3, one.Hash},
		"a child follows it by a greater number":         {"two", stored{two, one}, cliqueOf(two.Hash, 7), 7, two.Hash},
		"a child follows it by a lower number":           {"two", stored{two, one}, cliqueOf(two.Hash, 1), 2, two.Hash},
		"a child follows one that is not stored":         {"two", stored{two, one}, cliqueOf("gone", 2), 3, two.Hash},
		"so does a scaling group":                        {"two", stored{two, one}, groupOf("gone", 4), 5, two.Hash},
		"and a member":                                   {"three", stored{two, one}, memberOf("gone", 8), 9, ""},
		"a child without a revision":                     {"two", stored{two, one}, ownedObjects{cliques: map[string]*v1alpha1.PodClique{"c": {}}}, 2, two.Hash},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := presentRevision(tc.stored, withImage(tc.image), "", tc.owned)
			switch {
			case got.Number != tc.number:
				t.Errorf("its number is %d, want %d", got.Number, tc.number)
			case tc.hash != "" && got.Hash != tc.hash:
				t.Errorf("its hash is %s, want %s", got.Hash, tc.hash)
			case tc.hash == "" && (got.Hash == one.Hash || got.Hash == two.Hash):
				t.Errorf("its hash is that of another: %s", got.Hash)
			}
			if two.Number != 2 || one.Number != 1 {
				t.Error("a stored revision was changed")
			}
		})
	}
}

// cached is the cached view of an API server: lists contain only objects with our label.
type cached struct{ client.Client }

func (c cached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.Client.List(ctx, list, append(options, client.MatchingLabelsSelector{Selector: children.ManagedSelector()})...)
}

// TestARevisionThatLostItsLabels: a ControllerRevision that has lost its labels is not in the cache, but still belongs
// to the set: its labels are restored, it keeps its number, and the next revision gets another number.
func TestARevisionThatLostItsLabels(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := podCliqueSet(0)
	s.Kind, s.APIVersion = v1alpha1.KindPodCliqueSet, v1alpha1.SchemeGroupVersion.String()
	present := workload.NewRevision(s, "", nil, nil)
	present.Number = 4
	s.Status.CurrentGenerationHash = &present.Hash
	stored, err := present.Stored(s)
	if err != nil {
		t.Fatal(err)
	}
	labels := stored.Labels
	stored.Labels = nil
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s, stored).WithStatusSubresource(s).
		WithIndex(&appsv1.ControllerRevision{}, "controller.uid", func(o client.Object) []string {
			return []string{string(metav1.GetControllerOf(o).UID)}
		}).Build()
	r := &Reconciler{client: cached{api}, live: api, children: children.NewClient(cached{api}, api), recorder: events.NewFakeRecorder(10)}
	revisionOf := func() *workload.Revision {
		t.Helper()
		live := &v1alpha1.PodCliqueSet{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(s), live); err != nil {
			t.Fatal(err)
		}
		_, revision, err := r.withRevision(t.Context(), live, ownedObjects{}, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	if got := revisionOf(); got.Number != 4 || got.Hash != present.Hash {
		t.Errorf("the present revision is %d, %s", got.Number, got.Hash)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(labels, stored.Labels); diff != "" {
		t.Errorf("its labels (-want +got):\n%s", diff)
	}

	stored.Labels = nil
	if err := api.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	edited := &v1alpha1.PodCliqueSet{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(s), edited); err != nil {
		t.Fatal(err)
	}
	edited.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
	if err := api.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	if got := revisionOf(); got.Number != 5 || got.Hash == present.Hash {
		t.Errorf("after an edit the present revision is %d, %s", got.Number, got.Hash)
	}
}

// TestTrimRevisions: the current revision and the latest nine others are kept.
func TestTrimRevisions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stored  int // numbered from 1
		present int64
		want    []int64
	}{
		"few stay":                         {3, 4, []int64{1, 2, 3}},
		"nine and the current one":         {9, 10, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"the oldest is deleted":            {10, 11, []int64{2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"all superfluous ones are deleted": {12, 13, []int64{4, 5, 6, 7, 8, 9, 10, 11, 12}},
		"the current one is an early one":  {12, 1, []int64{1, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			if err := appsv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			builder, s := fake.NewClientBuilder().WithScheme(scheme), podCliqueSet(1)
			var revisions []*workload.Revision
			revision := func(n int64) *workload.Revision { return &workload.Revision{Number: n, Hash: fmt.Sprint("hash", n)} }
			for n := int64(tc.stored); n > 0; n-- {
				revisions = append(revisions, revision(n))
				stored, err := revision(n).Stored(s)
				if err != nil {
					t.Fatal(err)
				}
				builder = builder.WithObjects(stored)
			}
			api := builder.Build()
			r := &Reconciler{client: api, live: api, children: children.NewClient(api, api)}
			if err := r.trimRevisions(t.Context(), s, revision(tc.present), revisions, ownedObjects{}); err != nil {
				t.Fatal(err)
			}
			left := &appsv1.ControllerRevisionList{}
			if err := api.List(t.Context(), left, client.InNamespace("ns")); err != nil {
				t.Fatal(err)
			}
			got := map[int64]bool{}
			for _, l := range left.Items {
				got[l.Revision] = true
			}
			want := map[int64]bool{}
			for _, n := range tc.want {
				want[n] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("remaining revisions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideUpdateIsNotForTraining(t *testing.T) {
	t.Parallel()
	for kind, want := range map[v1alpha1.WorkloadType]bool{v1alpha1.WorkloadTypeInference: true, "": true, v1alpha1.WorkloadTypeTraining: false} {
		s := podCliqueSet(0)
		s.Spec.WorkloadType = kind
		if d := (&Reconciler{}).decideUpdate(s, nil, nil, nil, "", time.Unix(0, 0)); (d != nil) != want {
			t.Errorf("%q: %+v", kind, d)
		}
	}
}

func TestReportUpdate(t *testing.T) {
	t.Parallel()
	began, now := metav1.NewTime(time.Unix(0, 0)), metav1.NewTime(time.Unix(60, 0))
	none := func(*v1alpha1.PodCliqueSet) {}
	open := func(s *v1alpha1.PodCliqueSet) {
		s.Status.UpdateProgress = &v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: began}
	}
	over := func(s *v1alpha1.PodCliqueSet) {
		s.Status.UpdateProgress = &v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: began, UpdateEndedAt: &now}
	}
	overOnDelete := func(s *v1alpha1.PodCliqueSet) {
		over(s)
		s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
	}
	stalled := func(s *v1alpha1.PodCliqueSet) {
		open(s)
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUpdateStalled}}
	}
	stuck := &lifecycle.SetUpdateDecision{UpdateDecision: lifecycle.UpdateDecision{
		State: lifecycle.UpdateState{Reason: lifecycle.UpdateStalled, Message: "no room"}}}
	calm := &lifecycle.SetUpdateDecision{}
	for name, tc := range map[string]struct {
		before, after func(*v1alpha1.PodCliqueSet)
		d             *lifecycle.SetUpdateDecision
		want          []string
	}{
		"Training":              {open, over, nil, nil},
		"no progress":           {open, open, calm, nil},
		"there was none":        {none, none, calm, nil},
		"it is over":            {open, over, calm, []string{"Normal UpdateCompleted All replicas match the current template"}},
		"it was over":           {over, over, calm, nil},
		"it began and is over":  {none, over, calm, nil},
		"the strategy ended it": {open, overOnDelete, calm, []string{"Normal UpdateCompleted The update has ended, because the strategy is OnDelete now: pods follow when they are deleted"}},
		"a replica is done":     {open, open, &lifecycle.SetUpdateDecision{Done: ptr.To(0)}, []string{"Normal ReplicaUpdated Replica 0 is available with the current template"}},
		"the last one is done": {open, over, &lifecycle.SetUpdateDecision{Done: ptr.To(0)},
			[]string{"Normal ReplicaUpdated Replica 0 is available with the current template", "Normal UpdateCompleted All replicas match the current template"}},
		"it has stalled": {open, open, stuck, []string{"Warning UpdateStalled The update has stalled: no room"}},
		"it had stalled": {stalled, stalled, stuck, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := events.NewFakeRecorder(10)
			before, after := podCliqueSet(1), podCliqueSet(1)
			tc.before(before)
			tc.after(after)
			(&Reconciler{recorder: recorder}).reportUpdate(before, after, tc.d)
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
