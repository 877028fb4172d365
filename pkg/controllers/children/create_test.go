package children

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/desired"
)

// A name that is taken: by our own object, by one that goes, or by somebody's.
func TestCreateWhereTheNameIsTaken(t *testing.T) {
	owner := func(kind, name, uid string) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}}
	}
	living := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", UID: "other-uid"}}
	now := metav1.Now()
	for name, tc := range map[string]struct {
		there *corev1.Service
		want  string // "": no error; "going", "foreign": InTheWay
	}{
		"nothing there": {},
		"ours, the cache was behind": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "a", "a-uid")}}},
		"nobody's": {
			there: &corev1.Service{}, want: "foreign"},
		"somebody's who lives": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "other", "other-uid")}}, want: "foreign"},
		"somebody's who is gone": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "gone", "gone-uid")}}, want: "going"},
		"an earlier namesake's of somebody who lives": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "other", "earlier-uid")}}, want: "going"},
		"our earlier namesake's": {
			there: &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner("PodCliqueSet", "a", "earlier-uid")}}, want: "going"},
		"of a kind that we do not know": {
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
			err := Maker{Client: api, Live: api}.Create(t.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0", OwnerReferences: owner("PodCliqueSet", "a", "a-uid")}})
			inTheWay := (*InTheWay)(nil)
			got := ""
			switch {
			case err == nil:
			case !errors.As(err, &inTheWay):
				t.Fatal(err)
			case inTheWay.Going:
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
					t.Errorf("what was there was changed:\n%s", diff)
				}
			}
		})
	}
}

func TestWhatIsToldAndWhatIsRetried(t *testing.T) {
	pods := corev1.Resource("pods")
	foreign := &InTheWay{Kind: "Service", Name: "a-0"}
	going := &InTheWay{Kind: "Service", Name: "a-0", Going: true}
	refused := apierrors.NewForbidden(pods, "p", errors.New("exceeded quota"))
	for name, tc := range map[string]struct {
		err   error
		told  []desired.Problem
		retry bool          // with backoff
		after time.Duration // else
	}{
		"nothing": {},
		"a refusal is told and retried": {
			err: fmt.Errorf("creating pod 0: %w", refused), retry: true,
			told: []desired.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonCreateRefused,
				Message: "creating pod 0: " + refused.Error()}},
		},
		"somebody's object is told and retried": {
			err: foreign, retry: true,
			told: []desired.Problem{{Condition: v1alpha1.ConditionForeignObject, Reason: v1alpha1.ReasonNameTaken, Message: foreign.Error()}},
		},
		"what goes is waited for":                {err: errors.Join(going, going), after: Settling},
		"a conflict is tried again soon":         {err: apierrors.NewConflict(pods, "p", errors.New("changed")), after: Settling / 10},
		"an API server that is away is not told": {err: errors.New("connection refused"), retry: true},
		"an invalid spec is told, and not retried": {
			err:  &Invalid{errors.New("spec.x: bad")},
			told: []desired.Problem{{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.x: bad"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.told, Problems(tc.err)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			result, err := Outcome(0, tc.err)
			if (err != nil) != tc.retry || result.RequeueAfter != tc.after {
				t.Errorf("Outcome = %v, %v, want after %s, retry %t", result, err, tc.after, tc.retry)
			}
		})
	}
}

// An object that has lost the label by which the cache finds it is ours still: it gets back what is missing, and nothing
// else of it is changed.
func TestCreateGivesOursTheirLabelsBack(t *testing.T) {
	yes := true
	owner := []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PodClique", Name: "a", UID: "a-uid", Controller: &yes}}
	want := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue, v1alpha1.LabelPartOf: "a", v1alpha1.LabelPodTemplateHash: "new"}
	for name, tc := range map[string]struct{ there, want map[string]string }{
		"all are gone": {nil, want},
		"it is said to be another's": {
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
			if err := (Maker{Client: api, Live: api}).Create(t.Context(), pod(want)); err != nil {
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
