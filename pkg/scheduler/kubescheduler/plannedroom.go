// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/placement"
)

// PlannedRoom is what the pods of a plan need of their nodes: an entry for each node and class.
type PlannedRoom []plannedRoom

type plannedRoom struct {
	node   string
	demand *demand
}

// RoomOf returns what the placements need of their nodes. It keeps nothing of the snapshot.
func (w *Snapshot) RoomOf(placements []placement.Placement) PlannedRoom {
	type on struct {
		node  string
		class int
	}
	demands, known := make([]*demand, len(w.classes)), make(map[on]struct{}, len(placements))
	room := make(PlannedRoom, 0, len(placements))
	for i := range placements {
		at := on{placements[i].Node, placements[i].Pod.Class}
		if _, ok := known[at]; ok {
			continue
		}
		known[at] = struct{}{}
		if demands[at.class] == nil {
			d := w.classes[at.class].known.demand
			demands[at.class] = &d
		}
		room = append(room, plannedRoom{at.node, demands[at.class]})
	}
	return room
}

// Lacking returns which planned node, as of the last UpdateNodes, has less than the pods on it use, the members of the
// plan among them, of what the plan needs there. "": there is none. The members must be assumed.
func (s *Shapes) Lacking(room PlannedRoom) string {
	for i := range room {
		node, err := s.snapshot.NodeInfos().Get(room[i].node)
		if err != nil {
			return fmt.Sprintf("node %s is gone", room[i].node)
		}
		if what := room[i].demand.overusedOn(node); what != "" {
			return fmt.Sprintf("node %s has not enough %s any more", room[i].node, what)
		}
	}
	return ""
}

// overusedOn returns of which of what such a pod requests a node uses more than it has. "": of nothing. Host ports are
// not compared: of two pods with one port the NodeInfo knows only one, and no port when that one has left.
func (d *demand) overusedOn(node fwk.NodeInfo) string {
	for _, r := range d.requests {
		if freeOn(node, r.name) < 0 {
			return string(r.name)
		}
	}
	for _, r := range d.offered {
		if total, used := amountsOf(node, r.name); total > 0 && total < used {
			return string(r.name)
		}
	}
	if d.pods && freeOn(node, corev1.ResourcePods) < 0 {
		return "places for pods"
	}
	return ""
}
