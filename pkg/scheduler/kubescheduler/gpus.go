// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/ledger"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// NodeGPUs is what a node has of one GPU resource. Room has no Used: that depends on the gangs of Pods.
type NodeGPUs struct {
	Room ledger.Room
	Pods []PodGPUs

	node int // position
}

// PodGPUs is a pod on a node that has GPUs, or is about to be bound to it.
type PodGPUs struct {
	UID                  types.UID
	GPUs                 int64
	Ready, Ends, Evicted bool // Ends: it is being deleted; Evicted: it was preempted
}

// GPUTable keeps what was read of the GPUs of nodes, so that only nodes that have changed are read again. The zero
// value is empty.
type GPUTable struct {
	generations []int64 // by position: of the state of the node that was read
	nodes       [][]NodeGPUs
}

// ReadGPUs returns the GPUs of the nodes of the last update, by node and resource. The result shares the pods with the
// table. What pods that wait could use of free GPUs is what Shapes counts: an upper bound.
func (s *Shapes) ReadGPUs(t *GPUTable, reserved *reservations.View) []NodeGPUs {
	if len(t.generations) != len(s.nodes) {
		t.generations, t.nodes = make([]int64, len(s.nodes)), make([][]NodeGPUs, len(s.nodes))
	}
	for i, n := range s.nodes {
		if t.generations[i] != s.generations[i] {
			t.generations[i], t.nodes[i] = s.generations[i], gpusOf(n, i)
		}
	}
	wanted := s.wantedGPUs()
	all := make([]NodeGPUs, 0, len(t.nodes))
	for _, node := range t.nodes {
		for _, g := range node {
			g.Room.Kept = keptGPUs(s.nodes[g.node], corev1.ResourceName(g.Room.Resource), reserved)
			g.Room.Wanted = wantedOn(g, wanted[g.Room.Resource])
			all = append(all, g)
		}
	}
	return all
}

// gpusOf reads the GPUs of a node, sorted by resource.
func gpusOf(n fwk.NodeInfo, position int) []NodeGPUs {
	node := n.Node()
	if node == nil {
		return nil
	}
	var all []NodeGPUs
	for name, amount := range n.GetAllocatable().GetScalarResources() {
		if podgroup.IsGPU(name) {
			all = append(all, NodeGPUs{Room: ledger.Room{Resource: string(name), Allocatable: amount, Open: isOpen(node)}, node: position})
		}
	}
	slices.SortFunc(all, func(a, b NodeGPUs) int { return strings.Compare(a.Room.Resource, b.Room.Resource) })
	for _, p := range n.GetPods() {
		requests := p.CalculateResource().Resource.GetScalarResources()
		for i := range all {
			if k := requests[corev1.ResourceName(all[i].Room.Resource)]; k > 0 {
				all[i].Pods = append(all[i].Pods, podGPUs(p.GetPod(), k))
			}
		}
	}
	return all
}

func podGPUs(pod *corev1.Pod, gpus int64) PodGPUs {
	p := PodGPUs{UID: pod.UID, GPUs: gpus, Ends: pod.DeletionTimestamp != nil}
	for i := range pod.Status.Conditions {
		switch c := &pod.Status.Conditions[i]; c.Type {
		case corev1.PodReady:
			p.Ready = c.Status == corev1.ConditionTrue
		case corev1.DisruptionTarget:
			p.Evicted = c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
		}
	}
	return p
}

// isOpen reports whether pods without tolerations of their own may use the node as far as Kubernetes itself says: it is
// not cordoned, and its kubelet answers.
func isOpen(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && strings.HasPrefix(t.Key, "node.kubernetes.io/")
	})
}

// wantedGPU is a shape of pods that wait and request a GPU resource.
type wantedGPU struct {
	shape *Shape
	gpus  int64 // of one pod
}

// wantedGPUs returns the shapes of pods that wait by the GPU resource that they request.
func (s *Shapes) wantedGPUs() map[string][]wantedGPU {
	wanted := map[string][]wantedGPU{}
	for _, shape := range s.shapes {
		for _, r := range shape.demand.requests {
			if podgroup.IsGPU(r.name) {
				wanted[string(r.name)] = append(wanted[string(r.name)], wantedGPU{shape, r.amount})
			}
		}
	}
	return wanted
}

// wantedOn returns ledger.Room.Wanted.
func wantedOn(g NodeGPUs, shapes []wantedGPU) int64 {
	if len(shapes) == 0 {
		return -1
	}
	free := g.Room.Allocatable
	for _, p := range g.Pods {
		free -= p.GPUs
	}
	most := int64(0)
	for _, w := range shapes {
		if most >= free {
			break
		}
		most = max(most, w.shape.slots[g.node]*w.gpus)
	}
	return most
}

// keptFor is the state of GPUs that are kept, by purpose.
var keptFor = map[reservations.Purpose]ledger.State{
	reservations.ForReplacement: ledger.KeptForReplacement, reservations.ForPreemptor: ledger.KeptForPreemptor,
	reservations.ForReservation: ledger.KeptForReservation,
}

// keptGPUs returns what is kept of the free GPUs of a node.
func keptGPUs(n fwk.NodeInfo, resource corev1.ResourceName, reserved *reservations.View) []ledger.Use {
	var kept []ledger.Use
	for _, x := range reserved.On(n.Node().Name) {
		rest := x.Rest(func(uid types.UID) bool { return hasPodOnNode(n, uid) })
		if gpus := rest.Resources[resource]; gpus > 0 {
			kept = append(kept, ledger.Use{State: keptFor[x.Purpose()], GPUs: gpus})
		}
	}
	return kept
}
