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

// topologyServer serves the Topology "fabric". It answers with the error of status instead, if that is not 0, and then ends its
// watches.
type topologyServer struct {
	mu     sync.Mutex
	status int
	change chan struct{} // closed when status changes
	isNew  bool          // puts off what it can only answer once it has read all objects

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
	case s.isNew && (q.Get("watch") != "" || q.Get("limit") == ""):
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(apierrors.NewTooManyRequests("storage is (re)initializing", 1).Status())
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
	topologies, clock := server.read(t)
	return topologies, server, clock
}

// read starts to read the Topologies of the server.
func (s *topologyServer) read(t *testing.T) (*Topologies, *clocktesting.FakeClock) {
	t.Helper()
	web := httptest.NewServer(s)
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

// The first request of a custom resource makes the API server read its objects. Until then it asks for watches, and for lists
// without a limit, again a second later: gangs do not wait for that.
func TestTopologiesOfANewAPIServerAreRead(t *testing.T) {
	t.Parallel()
	server := &topologyServer{isNew: true}
	topologies, _ := server.read(t)
	topologies.eventually(t, "read", topologies.isRead)
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
