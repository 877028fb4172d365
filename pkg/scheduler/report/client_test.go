// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

func TestUpdateStatusPutsTheWholeObject(t *testing.T) {
	t.Parallel()
	var got struct {
		Method, Path, ContentType string
		Body                      v2alpha2.PodGroup
	}
	conflict := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Method, got.Path, got.ContentType = r.Method, r.URL.Path, r.Header.Get("Content-Type")
		if err := json.NewDecoder(r.Body).Decode(&got.Body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if conflict {
			w.WriteHeader(http.StatusConflict)
			write(t, w, apierrors.NewConflict(v2alpha2.Resource("podgroups"), "train", nil).ErrStatus)
			return
		}
		answer := got.Body
		answer.ResourceVersion = "8"
		write(t, w, answer)
	}))
	t.Cleanup(server.Close)
	// The content type of the scheduler's own clients is not suitable for custom resources.
	client, err := NewPodGroupClient(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{
		ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf"}})
	if err != nil {
		t.Fatal(err)
	}
	group := podGroup("train").MinMember(2).Obj()
	group.TypeMeta = metav1.TypeMeta{} // as in a cache
	group.ResourceVersion = "7"
	group.Status.Summary = "0/2 pods bound"
	updated, err := client.UpdateStatus(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	want := group.DeepCopy()
	want.TypeMeta = metav1.TypeMeta{APIVersion: "scheduling.run.ai/v2alpha2", Kind: "PodGroup"}
	if diff := cmp.Diff(want, &got.Body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if got.Method != http.MethodPut || got.Path != "/apis/scheduling.run.ai/v2alpha2/namespaces/ml/podgroups/train/status" || got.ContentType != "application/json" {
		t.Errorf("%s %s %s", got.Method, got.Path, got.ContentType)
	}
	if updated.ResourceVersion != "8" {
		t.Errorf("resourceVersion %s, want that of the answer", updated.ResourceVersion)
	}
	conflict = true
	if _, err := client.UpdateStatus(t.Context(), group); !apierrors.IsConflict(err) {
		t.Errorf("UpdateStatus = %v, want a conflict", err)
	}
}

func TestInformerWaitsForTheCRD(t *testing.T) {
	t.Parallel()
	server := &crdServer{asked: make(chan struct{}, 100)}
	web := httptest.NewServer(server)
	client, err := NewPodGroupClient(&rest.Config{Host: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	informer := client.NewInformer()
	seen := make(chan *v2alpha2.PodGroup, 1)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { seen <- obj.(*v2alpha2.PodGroup) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var said log
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&said)))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(klog.NewContext(ctx, logger))
	}()
	for range 3 {
		select {
		case <-server.asked:
		case <-time.After(30 * time.Second):
			t.Fatal("not asked again")
		}
	}
	if informer.HasSynced() {
		t.Error("synced without the CRD")
	}
	if n := strings.Count(said.String(), "PodGroups are not known"); n != 1 {
		t.Errorf("said %d times that the CRD is missing, want once: %s", n, said.String())
	}
	server.install()
	select {
	case got := <-seen:
		if got.Name != "train" || got.ManagedFields != nil {
			t.Errorf("saw %s with managed fields %v, want train without", got.Name, got.ManagedFields)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the PodGroup was never seen")
	}
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Error("never synced")
	}
	cancel()
	<-ended
	web.CloseClientConnections()
	web.Close()
}

// log may be written and read by several goroutines.
type log struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// crdServer answers "not found" to lists until the CRD is installed, and never streams a list.
type crdServer struct {
	mu        sync.Mutex
	installed bool
	asked     chan struct{}
}

func (s *crdServer) install() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installed = true
}

func (s *crdServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	installed := s.installed
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch q := r.URL.Query(); {
	case !strings.HasSuffix(r.URL.Path, "/apis/scheduling.run.ai/v2alpha2/podgroups") || !installed:
		if q.Get("watch") == "" {
			s.asked <- struct{}{}
		}
		http.Error(w, "404 page not found", http.StatusNotFound)
	case q.Get("watch") != "" && q.Get("sendInitialEvents") != "":
		http.Error(w, "no", http.StatusUnprocessableEntity)
	case q.Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		group := wrappers.MakePodGroup("train", "ml").Obj()
		group.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		list := v2alpha2.PodGroupList{
			TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.run.ai/v2alpha2", Kind: "PodGroupList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "5"},
			Items:    []v2alpha2.PodGroup{*group},
		}
		_ = json.NewEncoder(w).Encode(list)
	}
}

func write(t *testing.T, w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		t.Error(err)
	}
}
