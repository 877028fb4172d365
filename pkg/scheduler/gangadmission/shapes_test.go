// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/shapes"
	"github.com/muster-project/muster/test/wrappers"
)

// shapesJudge records where pods are reserved or bound, and what must not be.
type shapesJudge struct {
	mu     sync.Mutex
	nodes  map[string]shapes.Node
	free   map[string]int // GPUs by node
	gangs  map[string]shapes.Gang
	pods   map[string]shapesPod
	on     map[string]string // node by pod
	since  map[string]int    // by pod: calls when it was reserved
	until  map[string]int    // by pod: calls when the scheduler had seen that it was deleted
	calls  int
	faults []string
	bound  int // pods that passed the barrier
}

type shapesPod struct {
	gang string
	leaf shapes.Group
}

// judge is called at Reserve, PreBind and Unreserve of each pod, and when a binding is written, which is after the
// barrier.
func (j *shapesJudge) judge(point, pod, node string) *fwk.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls++
	p, ok := j.pods[pod]
	switch {
	case !ok:
		j.faults = append(j.faults, fmt.Sprintf("%s of the unknown pod %s", point, pod))
	case point == "Reserve":
		j.on[pod], j.since[pod] = node, j.calls
		if j.free[node] -= p.leaf.GPUs; j.free[node] < 0 {
			j.faults = append(j.faults, fmt.Sprintf("node %s has %d GPUs too few for %s", node, -j.free[node], pod))
		}
		j.checkDomains(p)
	case point == "Unreserve":
		j.release(pod)
	case point == "Bind":
		j.bound++
		if g := j.gangs[p.gang]; !j.holds(p.gang, g, g.Groups[0], j.since[pod]) {
			j.faults = append(j.faults, fmt.Sprintf("pod %s is bound although its gang lacks a part of its minimum: %v", pod, j.on))
		}
	}
	return nil
}

// release records that a pod is on no node any more.
func (j *shapesJudge) release(pod string) {
	if node, ok := j.on[pod]; ok {
		j.free[node] += j.pods[pod].leaf.GPUs
		delete(j.on, pod)
	}
}

// checkDomains checks all groups above a pod that require a level: their pods are in one domain.
func (j *shapesJudge) checkDomains(p shapesPod) {
	g := j.gangs[p.gang]
	for _, group := range g.Groups {
		if group.Required == "" || !isBelow(g, p.leaf, group) {
			continue
		}
		domains := map[string]bool{}
		for pod, node := range j.on {
			if other := j.pods[pod]; other.gang == p.gang && isBelow(g, other.leaf, group) {
				domains[map[string]string{"block": j.nodes[node].Block, "rack": j.nodes[node].Rack, "host": node}[group.Required]] = true
			}
		}
		if len(domains) > 1 || domains[""] {
			j.faults = append(j.faults, fmt.Sprintf("pods of %q of %s (%s) are in %v, which require one %s", group.Name, p.gang, g.Name, domains, group.Required))
		}
	}
}

// isBelow reports whether a group is below another one, or is it.
func isBelow(g shapes.Gang, group, above shapes.Group) bool {
	for group.Name != above.Name {
		if group.Name == "" {
			return false
		}
		group = g.Groups[slices.IndexFunc(g.Groups, func(up shapes.Group) bool { return up.Name == group.Parent })]
	}
	return true
}

// holds reports whether a group has its minimum of pods that are reserved or bound, or were so after a call for all
// that the scheduler knew.
func (j *shapesJudge) holds(gang string, g shapes.Gang, group shapes.Group, since int) bool {
	held := 0
	for pod, p := range j.pods {
		if p.gang == gang && p.leaf.Name == group.Name && (j.on[pod] != "" || j.until[pod] > since) {
			held++
		}
	}
	for _, child := range g.Groups[1:] {
		if group.Pods == 0 && child.Parent == group.Name && j.holds(gang, g, child, since) {
			held++
		}
	}
	return held >= group.Min
}

// create creates the PodGroup of a gang.
func (j *shapesJudge) create(c *cluster, name string, g shapes.Gang) {
	w := wrappers.MakePodGroup(name, "ml").UID(name).Generation(1)
	for i := range g.Groups {
		group := &g.Groups[i]
		minimum := int32(group.Min)
		sub := v2alpha2.SubGroup{Name: group.Name}
		if group.Parent != "" {
			sub.Parent = &group.Parent
		}
		if group.Pods > 0 {
			sub.MinMember = &minimum
		} else {
			sub.MinSubGroup = &minimum
		}
		var constraint *v2alpha2.TopologyConstraint
		if group.Required+group.Preferred != "" {
			constraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: group.Required, PreferredTopologyLevel: group.Preferred}
		}
		if i == 0 {
			w.Spec(func(s *v2alpha2.PodGroupSpec) { s.MinSubGroup, s.TopologyConstraint = &minimum, constraint })
		} else {
			sub.TopologyConstraint = constraint
			w.Append(sub)
		}
	}
	j.mu.Lock()
	j.gangs[name] = g
	j.mu.Unlock()
	c.groups.Put(w.Obj())
	for _, group := range g.Groups {
		for k := range group.Pods {
			j.createPod(c, shapesPod{name, group}, fmt.Sprintf("%s-%s-%d", name, group.Name, k))
		}
	}
}

func (j *shapesJudge) createPod(c *cluster, p shapesPod, name string) {
	j.mu.Lock()
	j.pods[name] = p
	j.mu.Unlock()
	pod := wrappers.MakePod(name, "ml").Gang(p.gang).SubGroup(p.leaf.Name)
	if p.leaf.GPUs > 0 {
		pod.GPUs(int64(p.leaf.GPUs))
	}
	c.pod(pod)
}

// settled waits until the gang has its minimum, or is refused. It reports which.
func (j *shapesJudge) settled(c *cluster, name string, pods int) (started bool) {
	c.t.Helper()
	c.eventually(name+" started or refused", func() bool {
		f, ok := c.gangs.registry.Facts(key(name))
		bound := len(c.boundOf(name + "-"))
		started = bound >= pods
		return ok && (started || f.Refused.Reason != "")
	})
	return started
}

// TestShapesOnAnUnevenFabric lets published role trees come to a fabric of uneven racks, and lose pods. At each Reserve
// and each binding, which is after the barrier, no required level is violated, no node has too many pods, and a gang
// that binds a pod has its minimum.
func TestShapesOnAnUnevenFabric(t *testing.T) {
	t.Parallel()
	topologies, err := shapes.Topologies()
	if err != nil {
		t.Fatal(err)
	}
	gangs, err := shapes.Gangs()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 8))
	r.Shuffle(len(gangs), func(i, k int) { gangs[i], gangs[k] = gangs[k], gangs[i] })
	gangs = slices.DeleteFunc(gangs, func(g shapes.Gang) bool {
		pods := 0
		for _, group := range g.Groups {
			pods += group.Pods
		}
		return pods > 12 || !slices.ContainsFunc(g.Groups, func(group shapes.Group) bool { return group.Required != "" })
	})

	j := &shapesJudge{nodes: map[string]shapes.Node{}, free: map[string]int{}, gangs: map[string]shapes.Gang{}, pods: map[string]shapesPod{}, on: map[string]string{}, since: map[string]int{}, until: map[string]int{}}
	c := newCluster(t, opinions(j.judge))
	c.answer = func(_ context.Context, pod string) error {
		j.judge("Bind", pod, "")
		return nil
	}
	for i, n := range topologies[0].Nodes {
		gpus := topologies[0].GPUs
		switch i % 4 {
		case 0, 1:
			continue
		case 2:
			gpus /= 2
		}
		j.nodes[n.Name], j.free[n.Name] = n, gpus
		w := wrappers.MakeNode(n.Name).GPUs(int64(gpus)).Label("block", n.Block).Label("host", n.Name)
		if i%16 != 3 {
			w.Label("rack", n.Rack)
		} else {
			n.Rack = ""
			j.nodes[n.Name] = n
		}
		c.node(w)
	}
	c.run()
	started, refused, refilled := 0, 0, 0
	for i, g := range gangs[:min(12, len(gangs))] {
		name := fmt.Sprintf("g%d", i)
		j.create(c, name, g)
		minimum := fewestPods(g, "")
		if !j.settled(c, name, minimum) {
			refused++
			continue
		}
		started++
		lost := c.boundOf(name + "-")[0]
		j.mu.Lock()
		p := j.pods[lost]
		j.release(lost)
		j.until[lost] = math.MaxInt
		j.mu.Unlock()
		c.deletePod(lost)
		c.eventually("the deletion seen", func() bool { f, _ := c.gangs.registry.Facts(key(name)); return f.Created[p.leaf.Name] < p.leaf.Pods })
		j.mu.Lock()
		j.until[lost] = j.calls + podsOf(g) // bindings that were decided before may follow
		j.mu.Unlock()
		j.createPod(c, p, lost+"-again")
		c.eventually("the pod seen", func() bool {
			f, ok := c.gangs.registry.Facts(key(name))
			return ok && (f.Refused.Reason != "" || slices.ContainsFunc(c.boundOf(name+"-"), func(pod string) bool { return strings.HasSuffix(pod, "-again") }))
		})
		if slices.Contains(c.boundOf(name+"-"), lost+"-again") {
			refilled++
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, fault := range j.faults {
		t.Error(fault)
	}
	if started < 5 || refused == 0 || refilled == 0 || j.bound < 30 {
		t.Errorf("%d gangs started, %d refused, %d refilled, %d pods bound: the stream is no test", started, refused, refilled, j.bound)
	}
	t.Logf("%d gangs started, %d refused, %d refilled, %d pods bound", started, refused, refilled, j.bound)
}

// fewestPods returns the pods of the first children that a group needs.
func fewestPods(g shapes.Gang, name string) int {
	group := g.Groups[slices.IndexFunc(g.Groups, func(group shapes.Group) bool { return group.Name == name })]
	pods, children := group.Min, 0
	if group.Pods > 0 {
		return pods
	}
	pods = 0
	for _, child := range g.Groups[1:] {
		if child.Parent == name && children < group.Min {
			children++
			pods += fewestPods(g, child.Name)
		}
	}
	return pods
}

// podsOf returns how many pods a gang has.
func podsOf(g shapes.Gang) int {
	n := 0
	for _, group := range g.Groups {
		n += group.Pods
	}
	return n
}
