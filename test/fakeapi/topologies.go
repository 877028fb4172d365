// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
)

// Topologies holds Topologies, which a PodGroups serves beside its objects. All methods are safe for concurrent use.
type Topologies struct{ collection }

// ServeTopologies returns the Topologies that the server has from now on. A server without it has no CRD of them.
func (p *PodGroups) ServeTopologies() *Topologies {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.topologies = &Topologies{newCollection(topologyv1alpha1.SchemeGroupVersion.WithKind("Topology"))}
	return p.topologies
}

// Create creates a Topology with levels of these node labels, the outermost first. There must be none of its name.
func (s *Topologies) Create(name string, labels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[types.NamespacedName{Name: name}] != nil {
		panic("Topology " + name + " exists")
	}
	t := &topologyv1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(strconv.Itoa(len(s.history)))}}
	for _, label := range labels {
		t.Spec.Levels = append(t.Spec.Levels, topologyv1alpha1.TopologyLevel{NodeLabel: label})
	}
	s.record(watch.Added, t)
}

// Delete removes a Topology, which must exist.
func (s *Topologies) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record(watch.Deleted, s.objects[types.NamespacedName{Name: name}].DeepCopyObject().(object))
}
