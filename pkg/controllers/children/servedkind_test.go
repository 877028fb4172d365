// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var nativePodGroup = schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PodGroup"}

// removals is a cache that records which informers are removed.
type removals struct {
	cache.Cache
	versions []string
}

func (r *removals) RemoveInformer(_ context.Context, o client.Object) error {
	r.versions = append(r.versions, o.GetObjectKind().GroupVersionKind().Version)
	return nil
}

// TestVersionThatIsWatched: the one that is watched stays as long as it is served; an API server that does not answer changes nothing.
func TestVersionThatIsWatched(t *testing.T) {
	t.Parallel()
	informers := &removals{}
	var served []string
	var err error
	k := &ServedKind{GroupKind: nativePodGroup, cache: informers, clock: clock.RealClock{}, served: func(context.Context) ([]string, error) { return served, err }}
	o := &unstructured.Unstructured{}
	for _, step := range []struct {
		what    string
		served  []string
		err     error
		want    string
		changes int
		removed []string
	}{
		{"none", nil, nil, "", 0, nil},
		{"that of 1.36", []string{"v1alpha2"}, nil, "v1alpha2", 1, nil},
		{"a later one too", []string{"v1beta1", "v1alpha2"}, nil, "v1alpha2", 1, nil},
		{"no answer", nil, errors.New("connection refused"), "v1alpha2", 1, nil},
		{"the later one alone", []string{"v1beta1"}, nil, "v1beta1", 2, []string{"v1alpha2"}},
		{"dropped", nil, nil, "", 3, []string{"v1alpha2", "v1beta1"}},
		{"served again", []string{"v1beta1"}, nil, "v1beta1", 4, []string{"v1alpha2", "v1beta1"}},
	} {
		served, err, k.checked = step.served, step.err, time.Time{}
		version, changes := k.check(t.Context())
		if version != step.want || changes != step.changes || k.Version() != step.want || !slices.Equal(informers.versions, step.removed) {
			t.Errorf("%s: %q, %d changes, removed %v; want %q, %d, %v", step.what, version, changes, informers.versions, step.want, step.changes, step.removed)
		}
		if step.want == "" {
			if err := k.Get(t.Context(), client.ObjectKey{Name: "a"}, o); !apierrors.IsNotFound(err) {
				t.Errorf("%s: reading gives %v", step.what, err)
			}
			if err := k.List(t.Context(), &unstructured.UnstructuredList{}); err != nil {
				t.Errorf("%s: listing gives %v", step.what, err)
			}
		}
	}
}

// TestServedVersions: which versions of a kind an API server serves, in its order.
func TestServedVersions(t *testing.T) {
	t.Parallel()
	kinds := map[string][]string{"v1": {"PriorityClass"}, "v1beta1": {"PodGroup", "Workload"}, "v1alpha3": {"PodGroup", "CompositePodGroup"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch r.URL.Path {
		case "/apis/scheduling.k8s.io":
			group := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}}
			for _, v := range []string{"v1", "v1beta1", "v1alpha3", "v1gone"} {
				group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: "scheduling.k8s.io/" + v, Version: v})
			}
			answer = group
		default:
			version := r.URL.Path[len("/apis/scheduling.k8s.io"):]
			if version == "" || kinds[version[1:]] == nil {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "scheduling.k8s.io" + version}
			for _, kind := range kinds[version[1:]] {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: kind, Kind: kind})
			}
			answer = list
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	d, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{"PodGroup": {"v1beta1", "v1alpha3"}, "CompositePodGroup": {"v1alpha3"}, "Other": nil} {
		got, err := servedVersions(t.Context(), d, schema.GroupKind{Group: "scheduling.k8s.io", Kind: kind})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", kind, err, diff)
		}
	}
	if got, err := servedVersions(t.Context(), d, schema.GroupKind{Group: "absent.example.com", Kind: "PodGroup"}); got != nil || err != nil {
		t.Error(got, err)
	}
}
