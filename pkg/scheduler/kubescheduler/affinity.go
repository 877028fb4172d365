// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// nearness contains the domains allowed for a class with required affinity: those with a pod that matches its terms,
// running or planned. It is maintained for classes whose terms have one topology key; the filter makes the final
// decision.
type nearness struct {
	topology *topology
	running  []bool  // by value: there is a matching running pod
	planned  []int32 // by value: number of matching planned pods
	taken    int     // number of values with a matching running or planned pod
	// founds: the class's own pods match its terms and no running pod does, so the first pod may go to any domain.
	founds bool
}

// Results of nearness.only that are not values.
const (
	none    = -1
	several = -2
)

// allows reports whether the node may satisfy the affinity.
func (n *nearness) allows(i int) bool {
	if n == nil {
		return true
	}
	v := n.topology.value[i]
	return v >= 0 && (n.open() || n.running[v] || n.planned[v] > 0)
}

// open reports whether the next pod may go to any domain.
func (n *nearness) open() bool { return n.founds && n.taken == 0 }

// only returns the only allowed value, or none or several.
func (n *nearness) only() int {
	if n.taken == 0 {
		return none
	}
	if n.taken > 1 {
		return several
	}
	for v := range n.running {
		if n.running[v] || n.planned[v] > 0 {
			return v
		}
	}
	return none
}

// note counts a planned pod that matches the terms.
func (n *nearness) note(i, delta int) {
	v := n.topology.value[i]
	if v < 0 {
		return
	}
	was := n.running[v] || n.planned[v] > 0
	n.planned[v] += int32(delta)
	switch is := n.running[v] || n.planned[v] > 0; {
	case is && !was:
		n.taken++
	case was && !is:
		n.taken--
	}
}

// relateAffinity determines to which domains a class with required affinity can go, and on which classes of the gang
// it depends. The class is Dependent if pods of other classes may add domains, SharesDomain if its own pods, or those
// that it follows, determine the domain, and Independent if running pods have determined it.
func (w *Snapshot) relateAffinity(c *class) {
	terms := c.info.GetRequiredAffinityTerms()
	if len(terms) == 0 || c.skip.Has(names.InterPodAffinity) || !w.cache.enabled(names.InterPodAffinity) {
		return
	}
	matches := func(o *class) bool {
		return !slices.ContainsFunc(terms, func(t fwk.AffinityTerm) bool {
			return !t.Matches(o.info.Pod, w.namespaceLabels(o.info.Pod.Namespace))
		})
	}
	var others []*class
	self := false
	for _, o := range w.classes {
		if o == c {
			self = matches(c)
		} else if o.refuse == nil && matches(o) {
			others = append(others, o)
		}
	}
	if slices.ContainsFunc(terms, func(t fwk.AffinityTerm) bool { return t.TopologyKey != terms[0].TopologyKey }) {
		// The allowed domains depend on pairs of values: only the filter evaluates them.
		if self || len(others) > 0 {
			c.kind, c.domainKey, c.links = sharesDomain, terms[0].TopologyKey, others
		}
		return
	}
	c.near = w.nearnessOf(c, terms[0].TopologyKey, self)
	switch {
	case c.near.founds:
		c.kind, c.domainKey, c.links = sharesDomain, c.near.topology.key, others
	case c.near.taken == 0 && len(others) > 0:
		c.kind, c.domainKey, c.links = sharesDomain, c.near.topology.key, others
	case len(others) > 0:
		c.kind = dependent
	}
	for _, o := range others {
		o.attracts = append(o.attracts, c.near)
	}
	if self {
		c.attracts = append(c.attracts, c.near)
	}
}

// nearnessOf runs InterPodAffinity for one node of each domain.
func (w *Snapshot) nearnessOf(c *class, key string, self bool) *nearness {
	top := w.nodes.topology(key)
	n := &nearness{topology: top, running: make([]bool, len(top.names)), planned: make([]int32, len(top.names))}
	c.state.SetSkipFilterPlugins(sets.New(w.cache.filters...).Delete(names.InterPodAffinity))
	defer c.state.SetSkipFilterPlugins(c.skip)
	// Affinity is checked before anti-affinity, so any other reason means that there is a matching pod.
	isNear := func(value int) bool {
		node := w.nodes.nodes[top.nodes[value][0]]
		status := w.f.RunFilterPlugins(w.ctx, c.state, c.info.Pod, node)
		return status.IsSuccess() || reason(status) != affinityReason
	}
	for v := range top.names {
		if n.running[v] = isNear(v); n.running[v] {
			n.taken++
		}
	}
	if !self || n.taken < len(top.names) || n.taken == 0 {
		return n
	}
	// Every domain is allowed, either because each has a matching running pod, or because none has and the class's
	// own pod may be the first. After one own pod is planned, only the former case still allows every domain.
	first := w.nodes.nodes[top.nodes[0][0]]
	if status := w.f.RunPreFilterExtensionAddPod(w.ctx, c.state, c.info.Pod, c.planned, first); status.IsSuccess() {
		n.founds = len(top.names) == 1 || !isNear(1)
		w.f.RunPreFilterExtensionRemovePod(w.ctx, c.state, c.info.Pod, c.planned, first)
	}
	if n.founds {
		clear(n.running)
		n.taken = 0
	}
	return n
}

// affinityReason is the reason of InterPodAffinity for a node without a matching pod.
const affinityReason = "node(s) didn't match pod affinity rules"

// linkTargets makes classes that others must follow into a domain select the domain together with them.
func (w *Snapshot) linkTargets() {
	for _, c := range w.classes {
		if c.kind != sharesDomain {
			continue
		}
		for _, o := range c.links {
			if !slices.Contains(o.links, c) {
				o.links = append(o.links, c)
			}
			if o.domainKey == "" && (o.kind == independent || o.kind == dependent) {
				o.domainKey = c.domainKey
			}
		}
	}
	for _, c := range w.classes {
		if c.domainKey != "" && c.refuse == nil {
			c.kind = sharesDomain
		}
	}
}
