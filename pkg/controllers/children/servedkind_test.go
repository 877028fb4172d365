// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
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

// TestVersionThatIsWatched: the one that is watched stays as long as it is served, and nobody asks while its watch
// lasts; an API server that does not answer changes nothing.
func TestVersionThatIsWatched(t *testing.T) {
	t.Parallel()
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "")
	for name, read := range map[string]string{"whichever is served": "", "one version": "v1beta1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, informers, asked := &unstructured.Unstructured{}, &removals{}, 0
			object.SetGroupVersionKind(nativePodGroup.WithVersion(read))
			var served []string
			var err error
			k := &ServedKind{of: object, cache: informers, served: func(context.Context) ([]string, error) { asked++; return served, err }}
			o := &unstructured.Unstructured{}
			for _, step := range []struct {
				what    string
				ended   error // the watch
				served  []string
				err     error
				want    string // of whichever is served
				removed []string
				wantOf1 string // of v1beta1 alone
			}{
				{what: "none"},
				{what: "that of 1.36", served: []string{"v1alpha2"}, want: "v1alpha2"},
				{what: "a later one too", served: []string{"v1beta1", "v1alpha2"}, want: "v1alpha2", wantOf1: "v1beta1"},
				{what: "the API server restarts", ended: errors.New("connection refused"), served: []string{"v1beta1", "v1alpha2"}, want: "v1alpha2", wantOf1: "v1beta1"},
				{what: "no answer", ended: notFound, err: errors.New("connection refused"), want: "v1alpha2", wantOf1: "v1beta1"},
				{what: "the later one alone", served: []string{"v1beta1"}, want: "v1beta1", removed: []string{"v1alpha2"}, wantOf1: "v1beta1"},
				{what: "dropped", ended: notFound, removed: []string{"v1alpha2", "v1beta1"}},
				{what: "served again", served: []string{"v1beta1"}, want: "v1beta1", removed: []string{"v1alpha2", "v1beta1"}, wantOf1: "v1beta1"},
			} {
				if step.ended != nil {
					k.watchFailed(t.Context(), &toolscache.Reflector{}, step.ended)
				}
				served, err = step.served, step.err
				want := step.want
				if read != "" {
					want = step.wantOf1
				}
				changes := k.changes
				version, now := k.check(t.Context())
				before := asked
				_, again := k.check(t.Context())
				if version != want || k.Version() != want || again != now || now < changes {
					t.Errorf("%s: %q, changes %d, %d, %d; want %q", step.what, version, changes, now, again, want)
				}
				if want != "" && step.err == nil && asked != before {
					t.Errorf("%s: the API server is asked while the watch lasts", step.what)
				}
				if read == "" && !slices.Equal(informers.versions, step.removed) {
					t.Errorf("%s: removed %v, want %v", step.what, informers.versions, step.removed)
				}
				if want == "" {
					if err := k.Get(t.Context(), client.ObjectKey{Name: "a"}, o); !apierrors.IsNotFound(err) {
						t.Errorf("%s: reading gives %v", step.what, err)
					}
					if err := k.List(t.Context(), &unstructured.UnstructuredList{}); err != nil {
						t.Errorf("%s: listing gives %v", step.what, err)
					}
				}
			}
		})
	}
}

// TestFollows: a source starts when the API server serves its kind, and again for another version; that of a kind that
// is read with it follows within a second. The controller waits for none of them.
func TestFollows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		object, pod := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		object.SetGroupVersionKind(nativePodGroup.WithVersion(""))
		pod.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		groups := &ServedKind{of: object, period: servedCheckPeriod, cache: &removals{}, served: func(context.Context) ([]string, error) {
			switch since := time.Since(begin); {
			case since > 6*time.Minute:
				return []string{"v1beta1"}, nil
			case since > 40*time.Second:
				return []string{"v1alpha2"}, nil
			}
			return nil, nil
		}}
		pods := &ServedKind{of: pod}
		pods.OnceServed(groups)
		var mu sync.Mutex
		var got []string
		for _, k := range []*ServedKind{pods, groups} {
			s := follows{k, func(version string) source.Source {
				return source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, fmt.Sprintf("%s %s after %v", k.kind().Kind, version, time.Since(begin).Round(10*time.Second)))
					return nil
				})
			}}
			if err := s.Start(ctx, nil); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("the controller waited %v", waited)
		}
		time.Sleep(7*time.Minute - 5*time.Second) // of the bubble's clock
		groups.watchFailed(ctx, nil, apierrors.NewNotFound(schema.GroupResource{}, ""))
		time.Sleep(4 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		want := []string{"PodGroup v1alpha2 after 1m0s", "Pod v1 after 1m0s", "PodGroup v1beta1 after 7m0s"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
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
