// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// slowServer counts the requests that are open. It answers the first maxParallel requests when it has all of them.
type slowServer struct {
	mu              sync.Mutex
	open, most, sum int
	full            chan struct{}      // closed when maxParallel requests are open
	received        func(answered int) // called for each request, if not nil
}

func (s *slowServer) answer(ctx context.Context) error {
	s.mu.Lock()
	s.open, s.sum = s.open+1, s.sum+1
	s.most = max(s.most, s.open)
	if s.sum == maxParallel {
		close(s.full)
	}
	if s.received != nil {
		s.received(s.sum - s.open)
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
	}()
	select {
	case <-s.full:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slowClient sends requests about pods to a slowServer.
type slowClient struct {
	kubernetes.Interface
	server *slowServer
}

type slowCore struct {
	typedcorev1.CoreV1Interface
	server *slowServer
}

type slowPods struct {
	typedcorev1.PodInterface
	server *slowServer
}

func (c slowClient) CoreV1() typedcorev1.CoreV1Interface { return slowCore{server: c.server} }

func (c slowCore) Pods(string) typedcorev1.PodInterface { return slowPods{server: c.server} }

func (p slowPods) Patch(ctx context.Context, _ string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Pod, error) {
	return nil, p.server.answer(ctx)
}

func (p slowPods) Delete(ctx context.Context, _ string, _ metav1.DeleteOptions) error {
	return p.server.answer(ctx)
}

func manyPods(n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = pod(fmt.Sprintf("p%d", i)).Obj()
	}
	return pods
}

func TestManyVictimsInParallel(t *testing.T) {
	t.Parallel()
	const n = 20_000
	pods := manyPods(n)
	w := newWard()
	server := &slowServer{full: make(chan struct{})}
	e := New(Options{Client: slowClient{server: server}, Recorder: w, Clock: w.clock})
	if err := e.MarkVictims(t.Context(), evictionOf(pods...)); err != nil {
		t.Fatal(err)
	}
	if server.most != maxParallel || server.sum != n {
		t.Errorf("%d marks, at most %d in parallel, want %d and %d", server.sum, server.most, n, maxParallel)
	}
	deleted, err := e.DeleteVictims(t.Context(), evictionOf(pods...))
	if deleted != n || err != nil || server.most != maxParallel || server.sum != 2*n+1 { // one of them is the witness
		t.Errorf("deleted %d, at most %d in parallel, error %v, want %d and %d", deleted, server.most, err, n, maxParallel)
	}
	if len(w.events) != n {
		t.Errorf("%d events, want %d", len(w.events), n)
	}
}

// The event about a pod follows its deletion. If all of them were emitted in the end, the flood of events would keep
// the API server from the deletions that are left, and a process that is killed would have told nothing.
func TestEventsFollowTheirDeletions(t *testing.T) {
	t.Parallel()
	const n = 2000
	pods := manyPods(n)
	w, behind := newWard(), 0 // behind: deletions without an event so far, at most
	server := &slowServer{full: make(chan struct{}), sum: maxParallel, received: func(answered int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		behind = max(behind, answered-maxParallel-1-len(w.events)) // without the mark of the witness
	}}
	close(server.full) // it answers immediately
	e := New(Options{Client: slowClient{server: server}, Recorder: w, Clock: w.clock})
	if deleted, err := e.DeleteVictims(t.Context(), evictionOf(pods...)); deleted != n || err != nil || len(w.events) != n {
		t.Fatalf("deleted %d, %d events, error %v, want %d", deleted, len(w.events), err, n)
	}
	if behind > 2*maxParallel {
		t.Errorf("%d pods were deleted without an event so far, want at most %d", behind, 2*maxParallel)
	}
}
