// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// TestWhatHasChangedSinceItWasRead: a difference between the object that a pass works with and the current object is a
// conflict, which is not reported and is retried soon.
func TestWhatHasChangedSinceItWasRead(t *testing.T) {
	now := metav1.Now()
	read := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "one", Generation: 3}}
	for name, tc := range map[string]struct {
		there                      func(*corev1.Service) // nil: it is gone
		upToDate, unchanged, stays bool
	}{
		"nothing":                         {there: func(*corev1.Service) {}, upToDate: true, unchanged: true, stays: true},
		"it is gone":                      {},
		"another object of the same name": {there: func(s *corev1.Service) { s.UID = "two" }},
		"another spec":                    {there: func(s *corev1.Service) { s.ResourceVersion, s.Generation = "1000", 4 }, stays: true},
		"a label of others":               {there: func(s *corev1.Service) { s.ResourceVersion, s.Labels = "1000", map[string]string{"team": "a"} }, upToDate: true, unchanged: true, stays: true},
		"a label of Muster": {there: func(s *corev1.Service) {
			s.ResourceVersion, s.Labels = "1000", map[string]string{v1alpha1.LabelPartOf: "b"}
		}, unchanged: true, stays: true},
		"the cache is behind": {there: func(s *corev1.Service) { s.ResourceVersion, s.Generation = "1", 2 }, unchanged: true, stays: true},
		"terminating": {there: func(s *corev1.Service) {
			s.ResourceVersion, s.DeletionTimestamp, s.Finalizers = "1000", &now, []string{"test/hold"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			builder := fake.NewClientBuilder().WithScheme(scheme)
			object := read.DeepCopy()
			object.ResourceVersion = "999"
			if tc.there != nil {
				there := object.DeepCopy()
				tc.there(there)
				builder = builder.WithObjects(there)
			}
			api := builder.Build()
			c := NewClient(api, api)
			for what, got := range map[string]struct {
				err  error
				want bool
			}{
				"up to date": {c.EnsureUpToDate(t.Context(), client.Object(object)), tc.upToDate},
				"unchanged":  {c.SpecUnchanged(t.Context(), client.Object(object)), tc.unchanged},
			} {
				if (got.err == nil) != got.want || got.err != nil && (!apierrors.IsConflict(got.err) || len(c.Problems(object, got.err, time.Time{})) > 0) {
					t.Errorf("%s: %v, want none: %t", what, got.err, got.want)
				}
			}
			if stays, err := c.Stays(t.Context(), client.Object(object)); err != nil || stays != tc.stays {
				t.Errorf("stays: %t, %v, want %t", stays, err, tc.stays)
			}
		})
	}
}
