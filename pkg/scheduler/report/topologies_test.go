// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
)

// notAnswering is the status of a server that keeps requests until the status changes.
const notAnswering = -1

// topologyServer serves the Topology "fabric". It answers with the error of status instead, if that is not 0, and then
// ends its watches.
type topologyServer struct {
	mu     sync.Mutex
	status int
	change chan struct{} // closed when status changes

	topologies *Topologies
	changes    atomic.Int32           // of why Topologies cannot be read
	told       atomic.Pointer[string] // why, after the latest change
}

func (s *topologyServer) recordChange() {
	why := s.topologies.Unread()
	s.told.Store(&why)
	s.changes.Add(1)
}

func (s *topologyServer) answers(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
	close(s.change)
	s.change = make(chan struct{})
}

func (s *topologyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	status, change := s.status, s.change
	s.mu.Unlock()
	if status == notAnswering {
		select {
		case <-r.Context().Done():
			return
		case <-change:
			status = 0
		}
	}
	w.Header().Set("Content-Type", "application/json")
	switch q := r.URL.Query(); {
	case status != 0:
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(apierrors.NewGenericServerResponse(status, "get", topologyv1alpha1.SchemeGroupVersion.WithResource("topologies").GroupResource(), "", "", 0, false).Status())
	case q.Get("watch") != "" && q.Get("sendInitialEvents") != "":
		http.Error(w, "no", http.StatusUnprocessableEntity)
	case q.Get("watch") != "":
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-change:
		}
	default:
		_ = json.NewEncoder(w).Encode(topologyv1alpha1.TopologyList{
			TypeMeta: metav1.TypeMeta{APIVersion: topologyv1alpha1.SchemeGroupVersion.String(), Kind: "TopologyList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "5"},
			Items: []topologyv1alpha1.Topology{{
				ObjectMeta: metav1.ObjectMeta{Name: "fabric"},
				Spec:       topologyv1alpha1.TopologySpec{Levels: []topologyv1alpha1.TopologyLevel{{NodeLabel: "block"}, {NodeLabel: "rack"}}},
			}},
		})
	}
}

// readTopologies starts to read the Topologies of a server that answers with this status first.
func readTopologies(t *testing.T, status int) (*Topologies, *topologyServer, *clocktesting.FakeClock) {
	t.Helper()
	server := &topologyServer{status: status, change: make(chan struct{})}
	topologies, clock := server.read(t, server)
	return topologies, server, clock
}

// read starts to read the Topologies of the server, which answers through the handler.
func (s *topologyServer) read(t *testing.T, handler http.Handler) (*Topologies, *clocktesting.FakeClock) {
	t.Helper()
	web := httptest.NewServer(handler)
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	topologies, err := NewTopologies(&rest.Config{Host: web.URL}, clock, s.recordChange)
	if err != nil {
		t.Fatal(err)
	}
	s.topologies = topologies
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		topologies.Informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		web.CloseClientConnections()
		web.Close()
	})
	return topologies, clock
}

func (t *Topologies) eventually(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), is) {
		tb.Fatalf("not %s: levels %v, unread %q, synced %t", what, t.LevelsOf("fabric"), t.Unread(), t.HasSynced())
	}
}

func (t *Topologies) isRead() bool {
	return t.HasSynced() && slices.Equal(t.LevelsOf("fabric"), []string{"block", "rack"}) && t.Unread() == "" && t.LevelsOf("other") == nil
}

func TestTopologiesAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		why    string
		waits  bool
	}{
		"an error that may be temporary": {http.StatusInternalServerError, "it is asked again", true},
		"the CRD is missing":             {http.StatusNotFound, "install the CRD topologies.kai.scheduler", false},
		"reading is forbidden":           {http.StatusForbidden, "allow muster-scheduler to list and watch topologies.kai.scheduler", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topologies, server, clock := readTopologies(t, tt.status)
			topologies.eventually(t, "told why", func() bool { return strings.Contains(topologies.Unread(), tt.why) })
			if tt.waits {
				if topologies.HasSynced() {
					t.Error("synced after one error")
				}
				clock.Step(firstTopologiesTimeout - 1)
				if topologies.HasSynced() {
					t.Error("synced before the time was over")
				}
				clock.Step(1)
			}
			topologies.eventually(t, "synced", topologies.HasSynced)
			if levels := topologies.LevelsOf("fabric"); levels != nil {
				t.Errorf("levels %v without a list", levels)
			}
			if n := server.changes.Load(); n != 1 {
				t.Errorf("%d changes before it was read, want one", n)
			}
			server.answers(0)
			topologies.eventually(t, "read later", func() bool {
				if clock.HasWaiters() {
					clock.Step(missingTopologiesInterval)
				}
				return topologies.isRead()
			})
			if n := server.changes.Load(); n != 2 {
				t.Errorf("%d changes after it was read, want another one", n)
			}
			if why := *server.told.Load(); why != "" {
				t.Errorf("gangs are tried again for the last time while Topologies cannot be read: %s", why)
			}
		})
	}
}

// newAPIServer has not read the objects of a resource yet. It puts off watches, and lists without a limit, by a second.
type newAPIServer struct {
	http.Handler
	putOff, answered atomic.Int32 // requests; putOff before the first answer
	stale            atomic.Int32 // lists that may be answered with an old state, and regardless of their limit
}

func (s *newAPIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if q := r.URL.Query(); q.Get("watch") == "" && q.Get("limit") != "" {
		if q.Get("resourceVersion") == "0" {
			s.stale.Add(1)
		}
		s.Handler.ServeHTTP(w, r)
		s.answered.Add(1)
		return
	}
	if s.answered.Load() == 0 {
		s.putOff.Add(1)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusTooManyRequests)
	_ = json.NewEncoder(w).Encode(apierrors.NewTooManyRequests("storage is (re)initializing", 1).Status())
}

// The first request of a custom resource makes the API server read its objects. Gangs do not wait for that: what is
// read before they are scheduled is listed first.
func TestResourcesOfANewAPIServerAreRead(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(t *testing.T, server *newAPIServer){
		"Topologies": func(t *testing.T, server *newAPIServer) {
			s := &topologyServer{}
			server.Handler = s
			topologies, _ := s.read(t, server)
			topologies.eventually(t, "read", topologies.isRead)
		},
		"PodGroups": func(t *testing.T, server *newAPIServer) {
			server.Handler = &crdServer{installed: true}
			web := httptest.NewServer(server)
			client, err := NewPodGroupClient(&rest.Config{Host: web.URL})
			if err != nil {
				t.Fatal(err)
			}
			informer := client.NewInformer()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				informer.RunWithContext(ctx)
			}()
			if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) || len(informer.GetStore().List()) != 1 {
				t.Error("not read")
			}
			cancel()
			<-ended
			web.CloseClientConnections()
			web.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &newAPIServer{}
			read(t, server)
			if n := server.putOff.Load(); n != 0 {
				t.Errorf("%d requests were put off before the first answer", n)
			}
			if n := server.stale.Load(); n != 0 {
				t.Errorf("%d lists may be answered with an old state", n)
			}
		})
	}
}

// If nothing answers at all, gangs wait for a limited time.
func TestTopologiesAreNotAnswered(t *testing.T) {
	t.Parallel()
	topologies, server, clock := readTopologies(t, notAnswering)
	topologies.eventually(t, "begun", func() bool { return topologies.begun.Load() != nil })
	clock.Step(firstTopologiesTimeout - 1)
	if topologies.HasSynced() {
		t.Error("synced before the time was over")
	}
	clock.Step(1)
	if !topologies.HasSynced() || topologies.Unread() != notAnswered {
		t.Errorf("synced %t, unread %q", topologies.HasSynced(), topologies.Unread())
	}
	server.answers(0)
	topologies.eventually(t, "read later", topologies.isRead)
	if why := *server.told.Load(); why != "" {
		t.Errorf("gangs are tried again for the last time while Topologies cannot be read: %s", why)
	}
}

// A Topology whose CRD is deleted is not known any more; one that cannot be read for a while is.
func TestTheCRDOfTopologiesIsDeleted(t *testing.T) {
	t.Parallel()
	topologies, server, clock := readTopologies(t, 0)
	topologies.eventually(t, "read", topologies.isRead)
	server.answers(http.StatusInternalServerError)
	topologies.eventually(t, "told why", func() bool { return topologies.Unread() != "" })
	if topologies.LevelsOf("fabric") == nil {
		t.Error("forgotten because of an error")
	}
	server.answers(http.StatusNotFound)
	topologies.eventually(t, "forgotten", func() bool { return topologies.LevelsOf("fabric") == nil })
	server.answers(0)
	topologies.eventually(t, "read again", func() bool {
		if clock.HasWaiters() {
			clock.Step(missingTopologiesInterval)
		}
		return topologies.isRead()
	})
}
