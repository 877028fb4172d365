// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"hash/crc32"
	"math"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// MayPreempt reports whether a node that refused a pod may take it when other pods have ended, and returns all nodes.
func MayPreempt(profile Profile, statuses fwk.NodeToStatusReader) (nodes []fwk.NodeInfo, mayHelp bool, err error) {
	lister := profile.SnapshotSharedLister().NodeInfos()
	if nodes, err = lister.List(); err != nil {
		return nil, false, err
	}
	resolvable, err := statuses.NodesForStatusCode(lister, fwk.Unschedulable)
	return nodes, len(resolvable) > 0, err
}

// leastSampled and sampledShare are how many nodes a Sample has at least, and as a share of all nodes, as in kube-scheduler.
const leastSampled, sampledShare = 100, 10

// Sample returns some nodes, by number, on which victims without a gang are looked for at first for a pod, and the lowest
// priority of a victim that may suffice on any node, by numbers. priorities are gangs.Screening.Priorities. nil: all nodes are
// looked at, because they are few, or because more than the pods on a node decide whether it takes the pod.
func (w *Snapshot) Sample(priorities []int32) (nodes []bool, priority int32) {
	if w.Kind(0) != placement.Independent {
		return nil, 0
	}
	most, c := max(leastSampled, w.CountNodes()/sampledShare), w.classes[0]
	distinct := slices.Clone(priorities)
	slices.Sort(distinct)
	for _, priority = range slices.Compact(distinct) {
		if priority == math.MinInt32 || priority == math.MaxInt32 {
			continue
		}
		ends := make([]bool, len(priorities))
		for h, p := range priorities {
			ends[h] = p <= priority
		}
		if may := w.nodesWithout(c, ends); len(may) > most {
			nodes = make([]bool, w.CountNodes())
			first := int(crc32.ChecksumIEEE([]byte(c.info.Pod.UID))) % (len(may) - most + 1) // each pod has others
			for _, i := range may[first : first+most] {
				nodes[i] = true
			}
			return nodes, priority
		} else if len(may) > 0 {
			break
		}
	}
	return nil, 0
}

// nodesWithout returns the nodes that may take a pod of the class, beside those that are nominated for them, if all pods of some
// holders end.
func (w *Snapshot) nodesWithout(c *class, ends []bool) []int32 {
	if c.refuse != nil {
		return nil
	}
	room := w.roomWithout(ends)
	return slices.DeleteFunc(slices.Clone(w.nodes.all), func(i int32) bool {
		if !w.mayTake(c, i) {
			return true
		}
		var nominated reservations.Amount
		w.addNominated(&nominated, c, int(i))
		left := w.columnsIn(c, room, i)
		slots, _ := c.known.demand.countSlots(func(k int) int64 { return left(k) - c.known.demand.reservedOf(nominated, k) })
		return slots == 0
	})
}

// Nominate returns the result of PostFilter for a pod that waits for room on a node; "": on none.
func Nominate(node string) *fwk.PostFilterResult {
	return framework.NewPostFilterResultWithNominatedNode(node)
}

// CountPreemptionAttempt counts an attempt to preempt as the stock plugin does.
func CountPreemptionAttempt() { metrics.PreemptionAttempts.Inc() }

// CountPreemption counts the victims of one preemption as the stock plugin does.
func CountPreemption(victims int) { metrics.PreemptionVictims.Observe(float64(victims)) }
