package kubescheduler

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// nearness is where a class with required affinity may go: the domains with a pod that its terms ask for, running or
// planned. Kept for classes whose terms have one topology key; the filter has the last word.
type nearness struct {
	topology *topology
	running  []bool  // by value: a running pod is there
	planned  []int32 // by value: planned pods there
	taken    int     // values with a running or a planned pod
	// founds: the class's own pods satisfy its terms and no running pod does: the first may go anywhere.
	founds bool
}

// Results of nearness.only that are no values.
const (
	none    = -1
	several = -2
)

// allows reports whether the node may be near enough.
func (n *nearness) allows(i int) bool {
	if n == nil {
		return true
	}
	v := n.topology.value[i]
	return v >= 0 && (n.open() || n.running[v] || n.planned[v] > 0)
}

// open reports whether the next pod may go to any domain.
func (n *nearness) open() bool { return n.founds && n.taken == 0 }

// only returns the one value that is allowed, none or several.
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

// note counts a planned pod that the terms ask for.
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

// relateAffinity finds out which domains a class with required affinity can go to, and which classes of the gang it
// depends on. Dependent if others of the gang may open more domains; SharesDomain if its own pods, or those it follows,
// decide on the domain; Independent if running pods have decided.
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
		// Which domains suit depends on pairs of values: the filter knows.
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

// nearnessOf asks InterPodAffinity about one node of each domain.
func (w *Snapshot) nearnessOf(c *class, key string, self bool) *nearness {
	top := w.nodes.topology(key)
	n := &nearness{topology: top, running: make([]bool, len(top.names)), planned: make([]int32, len(top.names))}
	c.state.SetSkipFilterPlugins(sets.New(w.cache.filters...).Delete(names.InterPodAffinity))
	defer c.state.SetSkipFilterPlugins(c.skip)
	// Affinity is looked at before anti-affinity, so another reason says that there is a pod to be near to.
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
	// Every domain suits: because a pod runs in each, or because none does and the class's own may be the first. With one
	// of them planned only the former is still true.
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

// affinityReason is what InterPodAffinity says of a node without a pod to be near to.
const affinityReason = "node(s) didn't match pod affinity rules"

// linkTargets makes classes that others have to follow into a domain choose the domain with them.
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
