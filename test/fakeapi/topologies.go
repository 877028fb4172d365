// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
)

// Topologies holds Topologies, which a PodGroups serves beside its objects. All methods are safe for concurrent use.
type Topologies struct {
	mu      sync.Mutex
	objects map[string]topologyv1alpha1.Topology
	history []topologyEvent // the resource version is its length
	changed chan struct{}   // closed at the next event
}

type topologyEvent struct {
	Type   watch.EventType           `json:"type"`
	Object topologyv1alpha1.Topology `json:"object"`
}

// ServeTopologies returns the Topologies that the server has from now on. A server without it has no CRD of them.
func (p *PodGroups) ServeTopologies() *Topologies {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.topologies = &Topologies{objects: map[string]topologyv1alpha1.Topology{}, changed: make(chan struct{})}
	return p.topologies
}

// Create creates a Topology with levels of these node labels, the outermost first. There must be none of its name.
func (s *Topologies) Create(name string, labels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.objects[name]; exists {
		panic("Topology " + name + " exists")
	}
	t := topologyv1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(strconv.Itoa(len(s.history)))}}
	for _, label := range labels {
		t.Spec.Levels = append(t.Spec.Levels, topologyv1alpha1.TopologyLevel{NodeLabel: label})
	}
	s.record(watch.Added, t)
}

// Delete removes a Topology, which must exist.
func (s *Topologies) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, exists := s.objects[name]
	if !exists {
		panic("Topology " + name + " does not exist")
	}
	s.record(watch.Deleted, t)
}

func (s *Topologies) record(kind watch.EventType, t topologyv1alpha1.Topology) {
	t.APIVersion, t.Kind = topologyv1alpha1.SchemeGroupVersion.String(), "Topology"
	t.ResourceVersion = strconv.Itoa(len(s.history) + 1)
	if s.objects[t.Name] = t; kind == watch.Deleted {
		delete(s.objects, t.Name)
	}
	s.history = append(s.history, topologyEvent{kind, t})
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler for GET and watch of all Topologies.
func (s *Topologies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r)
		return
	}
	s.mu.Lock()
	list := topologyv1alpha1.TopologyList{TypeMeta: metav1.TypeMeta{APIVersion: topologyv1alpha1.SchemeGroupVersion.String(), Kind: "TopologyList"}}
	list.ResourceVersion = strconv.Itoa(len(s.history))
	for _, t := range s.objects {
		list.Items = append(list.Items, t)
	}
	s.mu.Unlock()
	answer(w, list)
}

// watch sends the changes since the resource version that the client has listed.
func (s *Topologies) watch(w http.ResponseWriter, r *http.Request) {
	seen, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for {
		s.mu.Lock()
		missed, changed := s.history[seen:], s.changed
		s.mu.Unlock()
		for _, e := range missed {
			if json.NewEncoder(w).Encode(e) != nil {
				return
			}
			seen++
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
