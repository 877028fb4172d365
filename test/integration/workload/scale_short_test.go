// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-project/muster/test/controlplane"
)

// elastic has surplus at each level, and a GPU in every pod, so that the number of GPUs determines which pods run: the
// minimum is 1 frontend and one decode of 1 leader and 2 workers.
const elastic = `
metadata: {name: e}
spec:
  replicas: 1
  template:
    cliques:
    - name: frontend
      spec:
        replicas: 2
        minAvailable: 1
        podSpec: {containers: [{name: main, image: "registry.example/front:1", resources: {limits: {nvidia.com/gpu: 1}}}]}
    - name: leader
      spec:
        replicas: 1
        podSpec: {containers: [{name: main, image: "registry.example/decode:1", resources: {limits: {nvidia.com/gpu: 1}}}]}
    - name: worker
      spec:
        replicas: 3
        minAvailable: 2
        podSpec: {containers: [{name: main, image: "registry.example/decode:1", resources: {limits: {nvidia.com/gpu: 1}}}]}
    podCliqueScalingGroups:
    - {name: decode, cliqueNames: [leader, worker], replicas: 2, minAvailable: 1}
`

// addGPUs creates one node with this number of GPUs.
func (w *world) addGPUs(n int) {
	w.t.Helper()
	names, err := cp.CreateNodes(w.ctx, controlplane.NodeOptions{
		Count: 1, GPUs: n, First: len(w.nodes), NamePrefix: w.namespace, Labels: map[string]string{"world": w.namespace},
	})
	w.must(err, "creating a node")
	w.nodes = append(w.nodes, names...)
}

// bindings is how many pods of each PodClique are bound; a clique without any is not in it.
type bindings map[string]int

// untilBindings waits until exactly one of the alternatives is bound, all else waits, and no pod is terminating. Which
// of equal siblings is first is the scheduler's choice, hence alternatives.
func (w *world) untilBindings(what string, alternatives ...bindings) {
	w.t.Helper()
	ctx, cancel := w.patient()
	defer cancel()
	var got bindings
	if err := controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		got = boundByClique(pods)
		return slices.ContainsFunc(alternatives, func(a bindings) bool { return maps.Equal(a, got) }) &&
			!slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	}); err != nil {
		w.t.Fatalf("%s: %v; bound are\n%v, want one of\n%v", what, err, got, alternatives)
	}
}

// untilRefused waits until the status reports that the scheduler has refused these PodGroups: they need more than is
// free.
func (w *world) untilRefused(names ...string) {
	w.t.Helper()
	w.until("the scheduler has refused "+strings.Join(names, " and "), podGroups, func(objects []*unstructured.Unstructured) bool {
		refused := 0
		for _, o := range objects {
			if slices.Contains(names, o.GetName()) && slices.Contains([]string{"InsufficientGPUs", "InsufficientResources", "Fragmented", "TooLarge", "NoNodeMatches"}, conditionOf(o, "Satisfied", "reason")) {
				refused++
			}
		}
		return refused == len(names)
	})
}

// running returns the UIDs of the bound pods by host name.
func (w *world) running() map[string]string {
	uids := map[string]string{}
	for _, p := range w.pods() {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			uids[p.Spec.Hostname] = string(p.UID)
		}
	}
	return uids
}

// undisturbed fails the test if one of these pods no longer exists.
func (w *world) undisturbed(before map[string]string) {
	w.t.Helper()
	now := w.running()
	for hostname, uid := range before {
		if now[hostname] != uid {
			w.t.Errorf("%s, which ran, was replaced or removed", hostname)
		}
	}
}

// Every level is scaled while there is no room: out, in again while the new pods wait, and out once more, after which
// room is added in two pieces. No running pod is ever affected, and waiting pods that are no longer wanted are deleted.
func TestScaledWhileThereIsNoRoom(t *testing.T) {
	full := bindings{"e-0-frontend": 2, "e-0-decode-0-leader": 1, "e-0-decode-0-worker": 3, "e-0-decode-1-leader": 1, "e-0-decode-1-worker": 3}
	for name, tc := range map[string]struct {
		kind     schema.GroupVersionResource
		object   string
		from, to int
		// Of the new pods, which wait, first are bound with the first piece of room, which has their size, and rest
		// with the second.
		first, rest bindings
		// The PodGroup gets, or has, this leaf with this minimum.
		group, leaf string
		minimum     int64
		refused     bool // the PodGroup reports that there is no room: its minimum waits
	}{
		"a clique gets single pods": {
			kind: cliques, object: "e-0-frontend", from: 2, to: 5,
			first: bindings{"e-0-frontend": 1}, rest: bindings{"e-0-frontend": 2},
			group: "e-0", leaf: "e-0-frontend", minimum: 1,
		},
		"a group gets the minimum of a replica, then its single pod": {
			kind: groups, object: "e-0-decode", from: 2, to: 3,
			first: bindings{"e-0-decode-2-leader": 1, "e-0-decode-2-worker": 2}, rest: bindings{"e-0-decode-2-worker": 1},
			group: "e-0", leaf: "e-0-decode-2-worker", minimum: 2,
		},
		"a set gets the minimum of a tree, then what is surplus in it": {
			kind: sets, object: "e", from: 1, to: 2,
			first: bindings{"e-1-frontend": 1, "e-1-decode-0-leader": 1, "e-1-decode-0-worker": 2},
			rest:  bindings{"e-1-frontend": 1, "e-1-decode-0-worker": 1, "e-1-decode-1-leader": 1, "e-1-decode-1-worker": 3},
			group: "e-1", leaf: "e-1-decode-1-worker", minimum: 2, refused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0)
			w.addGPUs(10)
			w.apply(elastic)
			w.untilPods(full, true)
			before := w.running()
			wanted := maps.Clone(full)
			for _, b := range []bindings{tc.first, tc.rest} {
				for clique, n := range b {
					wanted[clique] += n
				}
			}

			for range 2 {
				w.scale(tc.kind, tc.object, tc.to)
				w.untilPods(wanted, false)
				w.untilLeaf(tc.group, tc.leaf, tc.minimum)
				if tc.refused {
					w.untilRefused(tc.group)
				}
				w.untilBindings("scaled out without room", full)
				w.undisturbed(before)

				w.scale(tc.kind, tc.object, tc.from)
				w.untilPods(full, true)
				w.undisturbed(before)
				w.untilAvailable("e")
			}
			w.untilNames(podGroups, "e-0")
			w.untilNames(services, "e-0")
			w.untilNames(groups, "e-0-decode")

			w.scale(tc.kind, tc.object, tc.to)
			w.untilPods(wanted, false)
			size := 0
			for _, n := range tc.first {
				size += n
			}
			w.addGPUs(size)
			bound := maps.Clone(full)
			for clique, n := range tc.first {
				bound[clique] += n
			}
			alternatives := []bindings{bound}
			if tc.kind == sets { // either decode may be the first
				other := bindings{}
				for clique, n := range bound {
					other[strings.Replace(clique, "e-1-decode-0", "e-1-decode-1", 1)] = n
				}
				alternatives = append(alternatives, other)
			}
			w.untilBindings("the first piece of room", alternatives...)
			w.untilAvailable("e") // the minimum is enough, at every level

			w.addGPUs(6)
			w.untilPods(wanted, true)
			w.undisturbed(before)
			w.checkIndices()

			// Scaled in again: the newest pods are deleted, and no others.
			w.scale(tc.kind, tc.object, tc.from)
			w.untilPods(full, true)
			w.undisturbed(before)
			w.checkIndices()
			w.untilNames(podGroups, "e-0")
		})
	}
}
