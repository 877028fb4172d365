// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// nearness contains the domains allowed for a class with required affinity: those with a pod that matches its terms,
// running or planned. The filter makes the final decision.
type nearness struct {
	topology *topology
	running  []bool  // by value: the running pods allow it
	planned  []int32 // by value: number of matching planned pods
	pods     int     // number of matching planned pods, including those on nodes without a value
	taken    int     // number of values that running or planned pods allow
	// founds: the class's own pods match its terms and no running pod does, so the first pod may go to any domain.
	founds bool
	// several: the terms have several topology keys. Pods in different domains, or on nodes that have only some of the
	// labels, may then allow a domain together, so once there is a planned pod, only the filter knows.
	several bool
}

// Results of nearness.onlyDomain that are not values.
const (
	none    = -1
	several = -2
)

// allowsNode reports whether the node may satisfy the affinity.
func (n *nearness) allowsNode(i int) bool {
	if n == nil {
		return true
	}
	v := n.topology.value[i]
	return v >= 0 && (n.allowsAnyDomain() || n.running[v] || n.planned[v] > 0 || n.several && n.pods > 0)
}

// allowsAnyDomain reports whether the next pod may go to any domain.
func (n *nearness) allowsAnyDomain() bool { return n.founds && n.taken == 0 }

// onlyDomain returns the only allowed value, or none or several.
func (n *nearness) onlyDomain() int {
	if n.several && n.pods > 0 || n.taken > 1 {
		return several
	}
	if n.taken == 0 {
		return none
	}
	for v := range n.running {
		if n.running[v] || n.planned[v] > 0 {
			return v
		}
	}
	return none
}

// allowedByRunning reports whether the running pods alone allow the node.
func (n *nearness) allowedByRunning(i int) bool {
	v := n.topology.value[i]
	return v >= 0 && n.running[v]
}

// mayMatchRunning reports whether running pods may match the terms.
func (n *nearness) mayMatchRunning() bool { return !n.founds && (n.taken > 0 || n.several) }

// countPlanned counts a planned pod that matches the terms.
func (n *nearness) countPlanned(i, delta int) {
	n.pods += delta
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

// relateAffinity determines to which domains a class with required affinity can go, and which classes of the gang it
// follows. The class is Independent if running pods alone decide, or if no pod of the gang can help it.
func (w *Snapshot) relateAffinity(c *class) {
	terms := c.info.GetRequiredAffinityTerms()
	if len(terms) == 0 || c.skip.Has(names.InterPodAffinity) || !w.cache.enabledPlugins(names.InterPodAffinity) {
		return
	}
	matches := func(o *class) bool { // a pod counts only if it matches all terms
		return !slices.ContainsFunc(terms, func(t fwk.AffinityTerm) bool {
			return !t.Matches(o.info.Pod, w.namespaceLabels(o.info.Pod.Namespace))
		})
	}
	self := false
	for _, o := range w.classes {
		if o == c {
			self = matches(c)
		} else if o.refuse == nil && matches(o) {
			c.follows = append(c.follows, o)
		}
	}
	key := ""
	for _, t := range terms {
		key = unionOfKeys(key, t.TopologyKey)
	}
	c.near = w.nearnessOf(c, key, self)
	if c.near.founds || len(c.follows) > 0 && c.near.taken < len(c.near.topology.names) {
		c.kind, c.domainKey = seeksDomain, key
		c.links = append(c.links, c.follows...)
	}
	for _, o := range c.follows {
		o.attracts = append(o.attracts, c.near)
	}
	if self {
		c.attracts = append(c.attracts, c.near)
	}
}

// unionOfKeys returns the union of two sets of topology keys, each separated by commas.
func unionOfKeys(a, b string) string {
	keys := strings.Split(a+","+b, ",")
	slices.Sort(keys)
	return strings.Join(slices.Compact(slices.DeleteFunc(keys, func(key string) bool { return key == "" })), ",")
}

// nearnessOf runs InterPodAffinity for one node of each domain.
func (w *Snapshot) nearnessOf(c *class, key string, self bool) *nearness {
	top := w.nodes.topologyOf(key)
	n := &nearness{topology: top, running: make([]bool, len(top.names)), planned: make([]int32, len(top.names)), several: strings.Contains(key, ",")}
	c.state.SetSkipFilterPlugins(sets.New(w.cache.filters...).Delete(names.InterPodAffinity))
	defer c.state.SetSkipFilterPlugins(c.skip)
	// Affinity is checked before anti-affinity, so any other reason means that there is a matching pod.
	isNear := func(value int) bool {
		node := w.nodes.nodes[top.nodes[value][0]]
		status := w.f.RunFilterPlugins(w.ctx, c.state, c.info.Pod, node)
		return status.IsSuccess() || firstReason(status) != affinityReason
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

// linkClasses finds the linked classes, which have domains of the same keys, and determines whether the pods of each
// must share one.
func (w *Snapshot) linkClasses() {
	for _, c := range w.classes {
		for _, o := range c.links {
			if !slices.Contains(o.links, c) {
				o.links = append(o.links, c)
			}
		}
	}
	for _, c := range w.classes {
		if c.linked != nil || c.refuse != nil || c.domainKey == "" && len(c.links) == 0 {
			continue
		}
		seen := map[*class]bool{c: true}
		linked, key := []*class{c}, c.domainKey
		for k := 0; k < len(linked); k++ {
			for _, o := range linked[k].links {
				if !seen[o] {
					seen[o] = true
					linked, key = append(linked, o), unionOfKeys(key, o.domainKey)
				}
			}
		}
		for _, o := range linked {
			o.linked, o.domainKey = linked, key
		}
		anchorClasses(linked)
		for _, o := range linked {
			if o.kind = seeksDomain; o.anchor != nil {
				o.kind = sharesDomain
			}
		}
	}
}

// anchorClasses finds among linked classes those whose pods must all be in one domain, whatever the order in which they
// are placed:
//
//   - a class of one pod;
//   - classes that share an unbound claim;
//   - classes that follow themselves and each other, and no other pods: only the first pod may choose;
//   - a class that follows only classes with one anchor, and no other pods.
//
// A class that may follow running pods, or whose terms have fewer keys than the domains, is not among the last two.
func anchorClasses(linked []*class) {
	strict := func(c *class) bool {
		return c.near != nil && c.near.topology.key == c.domainKey && !c.near.mayMatchRunning()
	}
	mutual := func(c *class) bool {
		group := append(slices.Clone(c.follows), c)
		return !slices.ContainsFunc(group, func(o *class) bool {
			return !strict(o) || !o.near.founds || len(o.follows) != len(c.follows) ||
				slices.ContainsFunc(o.follows, func(p *class) bool { return !slices.Contains(group, p) })
		})
	}
	for k, c := range linked {
		switch sharing := slices.IndexFunc(linked, func(o *class) bool { return sharesClaim(c, o) }); {
		case sharing >= 0 && sharing < k:
			c.anchor = linked[sharing].anchor
		case sharing >= 0:
			c.anchor = c
		case strict(c) && c.near.founds && mutual(c):
			c.anchor = c
			for _, o := range c.follows {
				if at := slices.Index(linked, o); at < k {
					c.anchor = o.anchor
					break
				}
			}
		case c.pods <= 1:
			c.anchor = c
		}
	}
	for passed, k := true, 0; passed && k < len(linked); k++ { // an anchor is passed on from class to class
		passed = false
		for _, c := range linked {
			if len(c.unbound) > 0 || !strict(c) || c.near.founds || len(c.follows) == 0 {
				continue
			}
			anchor := c.follows[0].anchor
			if anchor != nil && anchor != c.anchor && !slices.ContainsFunc(c.follows, func(o *class) bool { return o.anchor != anchor }) {
				c.anchor, passed = anchor, true
			}
		}
	}
}

// Open implements placement.World.
func (w *Snapshot) Open(index int, domain string) bool {
	c, area := w.classAt(index)
	near := c.near
	if near == nil || near.allowsAnyDomain() {
		return true
	}
	if domain == "" {
		return (near.pods > 0 || near.taken > 0) &&
			(area == 0 || slices.ContainsFunc(w.areas[area].nodes, func(i int32) bool { return near.allowsNode(int(i)) }))
	}
	nodes := w.nodesIn(area, domain) // all of them have the same value
	return len(nodes) > 0 && near.allowsNode(int(nodes[0]))
}

// RequiredTerms returns the terms of the pod's required affinity and of its required anti-affinity to other pods.
func RequiredTerms(pod *corev1.Pod) (affinity, antiAffinity []fwk.AffinityTerm, err error) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, nil, err
	}
	return info.GetRequiredAffinityTerms(), info.GetRequiredAntiAffinityTerms(), nil
}
