// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"math"
	"reflect"

	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// spreadCounts contains PodTopologySpread's PreFilter state of a class: the number of pods that match each hard
// constraint, by domain. The filter keeps the counts up to date, but stores only two of the domains with the fewest
// pods, and these become inaccurate as pods are added; repairSpread corrects that.
type spreadCounts []spreadConstraint

type spreadConstraint struct {
	topology *topology
	skew     int
	domains  int            // minDomains
	self     int            // 1 if the class's own pods match the constraint
	counts   map[string]int // owned by the filter
	lowest   reflect.Value  // the filter's minimum
	byValue  []int          // counts by the topology's value numbers; 0 for domains that do not count
	minimum  int            // value of lowest when it was last read; 0 with fewer domains than minDomains
}

// spreadStateKey is the key of PodTopologySpread's state.
const spreadStateKey fwk.StateKey = "PreFilterPodTopologySpread"

// readSpread returns the counts of a class whose pods have these labels. The type of the state is not exported, but its
// fields are. nil: they are not those of this version of kube-scheduler.
func readSpread(state fwk.CycleState, nodes *nodeTable, podLabels labels.Set) spreadCounts {
	var s spreadCounts
	data, err := state.Read(spreadStateKey)
	if err != nil {
		return nil
	}
	v := reflect.Indirect(reflect.ValueOf(data))
	if v.Kind() != reflect.Struct {
		return nil
	}
	field := func(v reflect.Value, name string, kind reflect.Kind) (reflect.Value, bool) {
		f := v.FieldByName(name)
		return f, f.IsValid() && f.Kind() == kind && f.CanInterface()
	}
	constraints, ok1 := field(v, "Constraints", reflect.Slice)
	paths, ok2 := field(v, "CriticalPaths", reflect.Slice)
	perDomain, ok3 := field(v, "TpValueToMatchNum", reflect.Slice)
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	counts, ok := perDomain.Interface().([]map[string]int)
	if !ok || len(counts) != constraints.Len() || paths.Len() != len(counts) {
		return nil
	}
	for i := range counts {
		key, ok1 := field(constraints.Index(i), "TopologyKey", reflect.String)
		skew, ok2 := field(constraints.Index(i), "MaxSkew", reflect.Int32)
		domains, ok3 := field(constraints.Index(i), "MinDomains", reflect.Int32)
		selects, ok4 := field(constraints.Index(i), "Selector", reflect.Interface)
		pair := reflect.Indirect(paths.Index(i))
		if !ok1 || !ok2 || !ok3 || !ok4 || pair.Kind() != reflect.Array || pair.Len() == 0 || pair.Index(0).Kind() != reflect.Struct {
			return nil
		}
		lowest, ok := field(pair.Index(0), "MatchNum", reflect.Int)
		if !ok {
			return nil
		}
		c := spreadConstraint{topology: nodes.topologyOf(key.String()), skew: int(skew.Int()), domains: int(domains.Int()), counts: counts[i], lowest: lowest}
		c.byValue = make([]int, len(c.topology.names))
		for k, value := range c.topology.names {
			c.byValue[k] = c.counts[value]
		}
		if selector, ok := selects.Interface().(labels.Selector); ok && selector.Matches(podLabels) {
			c.self = 1
		}
		s = append(s, c)
	}
	s.readMinimums()
	return s
}

// violatesSkew reports whether another pod on the node would certainly violate the maximum skew of a constraint.
func (s spreadCounts) violatesSkew(node int) bool {
	for i := range s {
		c := &s[i]
		v := c.topology.value[node]
		if v < 0 || c.byValue[v]+c.self-c.minimum > c.skew {
			return true
		}
	}
	return false
}

// readCounts copies the filter's counts after a pod was added to or removed from the node.
func (s spreadCounts) readCounts(node int) {
	for i := range s {
		c := &s[i]
		if v := c.topology.value[node]; v >= 0 {
			c.byValue[v] = c.counts[c.topology.names[v]]
		}
	}
	s.readMinimums()
}

func (s spreadCounts) readMinimums() {
	for i := range s {
		c := &s[i]
		if c.minimum = int(c.lowest.Int()); len(c.counts) < c.domains {
			c.minimum = 0
		}
	}
}

// repairSpread makes PodTopologySpread, after a pod was added, re-evaluate a domain that actually has the fewest
// pods: removing the pod from a node there and adding it again is sufficient. Only a minimum that has risen can be
// inaccurate.
func (w *Snapshot) repairSpread(c *class, info *framework.PodInfo, node int) error {
	s := c.spread
	for i := range s {
		k := &s[i]
		if int(k.lowest.Int()) <= k.minimum {
			continue
		}
		least := math.MaxInt
		for _, n := range k.counts {
			least = min(least, n)
		}
		for value, n := range k.counts {
			if int(k.lowest.Int()) <= least {
				break
			}
			number, ok := k.topology.number[value]
			if n != least || !ok {
				continue
			}
			for _, node := range k.topology.nodes[number] { // not every node of a domain counts
				if err := w.touchNode(c, info, int(node)); err != nil {
					return err
				}
				if int(k.lowest.Int()) <= least {
					break
				}
			}
		}
	}
	s.readCounts(node)
	return nil
}

// touchNode makes PodTopologySpread re-evaluate the domains of a node with the pod.
func (w *Snapshot) touchNode(c *class, info *framework.PodInfo, i int) error {
	if status := w.f.RunPreFilterExtensionRemovePod(w.ctx, c.state, c.info.Pod, info, w.nodes.nodeWithPlanned(i)); !status.IsSuccess() {
		return status.AsError()
	}
	if status := w.f.RunPreFilterExtensionAddPod(w.ctx, c.state, c.info.Pod, info, w.nodes.nodeWithPlanned(i)); !status.IsSuccess() {
		return status.AsError()
	}
	return nil
}
