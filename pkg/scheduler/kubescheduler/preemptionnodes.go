// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"hash/crc32"
	"math"
	"slices"
	"sort"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
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

// leastSampled and sampledShare are how many nodes a Sample has at least, and as a share of all nodes, as in
// kube-scheduler.
const leastSampled, sampledShare = 100, 10

// Sample returns some nodes, by number, on which victims without a gang are looked for at first for a pod, and the
// lowest priority of a victim that may suffice on any node, by numbers, and the least that victims have of the extended
// resource. priorities are gangs.Screening.Priorities. nil: all nodes are looked at, because those that lack least are
// few, or because more than the pods on a node decide whether it takes the pod.
func (w *Snapshot) Sample(priorities []int32) (nodes []bool, priority int32, least int64) {
	if w.Kind(0) != placement.Independent {
		return nil, 0, 0
	}
	most, c := max(leastSampled, w.CountNodes()/sampledShare), w.classes[0]
	distinct := slices.DeleteFunc(slices.Clone(priorities), func(p int32) bool { return p == math.MinInt32 || p == math.MaxInt32 })
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	var may []int32
	n := sort.Search(len(distinct), func(n int) bool {
		ends := make([]bool, len(priorities))
		for h, p := range priorities {
			ends[h] = p <= distinct[n]
		}
		of := w.nodesWithout(c, ends)
		if len(of) > 0 {
			may = of // of the lowest priority so far
		}
		return len(of) > 0
	})
	if n == len(distinct) {
		return nil, 0, 0
	}
	if may, least = w.leastLacking(c, may, priorities); len(may) <= most {
		return nil, 0, 0
	}
	nodes = make([]bool, w.CountNodes())
	first := int(crc32.ChecksumIEEE([]byte(c.info.Pod.UID))) % (len(may) - most + 1) // each pod has others
	for _, i := range may[first : first+most] {
		nodes[i] = true
	}
	return nodes, distinct[n], least
}

// leastLacking returns those of the nodes that lack least of the main extended resource of the class, and how much,
// beside pods that are nominated for them, and without those that are terminating.
func (w *Snapshot) leastLacking(c *class, nodes []int32, priorities []int32) (of []int32, least int64) {
	if !podgroup.IsExtended(c.resource) {
		return nodes, 0
	}
	t := w.usage()
	column := t.columnOf(c.resource)
	least = math.MaxInt64
	for _, i := range nodes {
		total, used := t.read(int(i))
		lacks := c.request - (total[column] - used[column])
		for k, h := range t.pods[i].holders {
			if priorities[h] == math.MinInt32 {
				lacks -= t.usesOf(int(i), k)[column]
			}
		}
		var nominated reservations.Amount
		w.addNominated(&nominated, c, int(i))
		if lacks = max(0, lacks+nominated.Resources[c.resource]); lacks < least {
			of, least = of[:0], lacks
		}
		if lacks == least {
			of = append(of, i)
		}
	}
	return of, least
}

// nodesWithout returns the nodes that may take a pod of the class, beside those that are nominated for them, if all
// pods of some holders end.
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
