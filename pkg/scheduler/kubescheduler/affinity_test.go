// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// TestLeaderBesideRunningOnes: the pods of the replicas of a PodCliqueSet have equal labels, so the workers of one
// replica may also go to the racks in which leaders of other replicas run. There is no room for them there.
func TestLeaderBesideRunningOnes(t *testing.T) {
	leader := role{name: "leader", gpus: 1}
	worker := role{name: "worker", gpus: 3, keys: []string{"rack"}, follow: map[string]string{"role": "leader"}}
	c := newCluster(t, gpuNode("n0", 1, "r0"), gpuNode("n1", 3, "r1"), gpuNode("n2", 4, "r1"), gpuNode("n3", 1, "r2"),
		leader.pod("leader-of-another").Node("n3").Obj())
	g := leaves{
		{"leader", []*corev1.Pod{leader.pod("leader").Obj()}},
		{"worker", []*corev1.Pod{worker.pod("worker").Obj()}},
	}
	plan, short := c.plan(NewFilterCache(), g)
	if short != nil {
		t.Fatalf("no plan, but rack r1 is free: %+v", short)
	}
	c.check(t, g, plan)
}

// TestWorkersBesideTheirOwnLeaders: the workers of each replica share a rack with the leader of their replica, and a
// helper with its workers. Of many replicas no order by class has every leader first.
func TestWorkersBesideTheirOwnLeaders(t *testing.T) {
	for _, replicas := range []int{1, 2, 4, 8, 16} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			for i := range 2 * (replicas + replicas/2) { // racks of two nodes, of which every third has no room for a replica
				c.sched.Cache.AddNode(klog.FromContext(c.ctx), gpuNode(fmt.Sprintf("n%d", i), []int64{3, 8, 8}[i/2%3], fmt.Sprintf("r%d", i/2)))
			}
			c.sched.Cache.AddNode(klog.FromContext(c.ctx), gpuNode("last-0", 8, "last"))
			c.sched.Cache.AddNode(klog.FromContext(c.ctx), gpuNode("last-1", 8, "last"))
			var g leaves
			for i := range replicas {
				leaderOf, workerOf := fmt.Sprintf("leader-%d", i), fmt.Sprintf("worker-%d", i)
				for _, of := range []struct {
					role
					pods int
				}{
					{role{name: fmt.Sprintf("helper-%d", i), gpus: 2, keys: []string{"rack"}, follow: map[string]string{"role": workerOf}}, 1},
					{role{name: workerOf, gpus: 4, keys: []string{"rack"}, follow: map[string]string{"role": leaderOf}}, 3},
					{role{name: leaderOf, gpus: 1}, 1},
				} {
					g = append(g, leaf{of.name, members(of.pods, func(k int) *wrappers.PodWrapper { return of.pod(fmt.Sprintf("%s-%d", of.name, k)) })})
				}
			}
			c.refresh()
			plan, short := c.plan(NewFilterCache(), g)
			if short != nil {
				t.Fatalf("no plan, but there is a rack for each: %+v", short)
			}
			c.check(t, g, plan)
		})
	}
}

// TestRunningPodOnANodeWithoutALabel: a pod on a node that has only one of two topology labels counts for that one, so
// it helps to allow nodes that have both.
func TestRunningPodOnANodeWithoutALabel(t *testing.T) {
	leader := role{name: "leader", gpus: 1}
	worker := role{name: "worker", gpus: 3, keys: []string{"rack", "zone"}, follow: map[string]string{"role": "leader"}}
	node := func(name string, gpus int64, zone string) *wrappers.NodeWrapper {
		return wrappers.MakeNode(name).GPUs(gpus).Label("zone", zone)
	}
	c := newCluster(t, node("n0", 4, "z0").Label("rack", "r0").Obj(), node("n1", 3, "z1").Label("rack", "r0").Obj(), node("n2", 1, "z1").Obj(),
		leader.pod("leader-of-another").Node("n2").Obj())
	g := leaves{
		{"leader", []*corev1.Pod{leader.pod("leader").Obj()}},
		{"worker", members(2, func(i int) *wrappers.PodWrapper { return worker.pod(fmt.Sprintf("worker-%d", i)) })},
	}
	plan, short := c.plan(NewFilterCache(), g)
	if short != nil {
		t.Fatalf("no plan, but n1 is in the leader's rack and in the zone of the running one: %+v", short)
	}
	c.check(t, g, plan)
}

// TestPodsThatFollowEachOtherInACircle: none of them can be the first.
func TestPodsThatFollowEachOtherInACircle(t *testing.T) {
	c := newCluster(t, gpuNode("n0", 8, "r0"), gpuNode("n1", 8, "r1"))
	var g leaves
	for name, next := range map[string]string{"a": "b", "b": "c", "c": "a"} {
		g = append(g, leaf{name, []*corev1.Pod{role{name: name, gpus: 1, keys: []string{"rack"}, follow: map[string]string{"role": next}}.pod(name).Obj()}})
	}
	slices.SortFunc(g, func(a, b leaf) int { return strings.Compare(a.name, b.name) })
	if plan, short := c.plan(NewFilterCache(), g); short == nil || !short.Exhausted {
		t.Errorf("plan %v, shortfall %+v, want certainty that there is none", plan, short)
	}
}

func gpuNode(name string, gpus int64, rack string) *corev1.Node {
	return wrappers.MakeNode(name).GPUs(gpus).Label("rack", rack).Obj()
}

// check binds the pods of a plan in its order, and verifies that a real cycle of each accepts its node.
func (c *cluster) check(t *testing.T, g leaves, plan []placement.Placement) {
	t.Helper()
	pods := map[string]*corev1.Pod{}
	for _, l := range g {
		for _, pod := range l.pods {
			pods[string(pod.UID)] = pod
		}
	}
	if len(plan) != len(pods) {
		t.Errorf("%d of %d pods are planned", len(plan), len(pods))
	}
	var bound []*corev1.Pod
	for _, p := range plan {
		pod := pods[p.Pod.ID]
		if why := c.realCycles(pod)[p.Node]; why != "" {
			t.Errorf("%s is planned on %s, a real cycle says %q\nplan: %v", p.Pod.ID, p.Node, why, plan)
		}
		bound = append(bound, c.bind(pod, "bound-"+pod.Name, p.Node))
	}
	for _, pod := range bound {
		c.unbind(pod)
	}
}

// TestAffinityAgainstExhaustiveSearch compares the planner with an exhaustive search on small random instances of gangs
// with required pod affinity. The search binds pods in the scheduler's cache and runs the stock plugins. If a plan
// exists, the planner must find it in the share of the instances that the floor states, and must never claim that the
// search was exhausted. ROUNDS multiplies the number of instances; run with -v for the table.
func TestAffinityAgainstExhaustiveSearch(t *testing.T) {
	repeats := 250 * rounds.Number()
	for name, tc := range map[string]struct {
		family
		floor float64
	}{
		"leader and workers beside running leaders": {family{}, 0.995},
		"workers that also follow each other":       {family{mutual: true}, 0.995},
		"two topology keys":                         {family{keys: 2}, 0.995},
		"followers of followers":                    {family{chain: true}, 0.995},
		"followers of followers, two keys":          {family{chain: true, keys: 2}, 0.995},
		"linked classes in two domains":             {family{replicas: true}, 0.995},
		"linked classes in two domains, one leaf":   {family{replicas: true, flat: true}, 0.995},
		"all together":                              {family{mutual: true, keys: 2, chain: true, replicas: true, flat: true, random: true}, 0.995},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			r := rand.New(rand.NewPCG(67, 71))
			found, solvable, calls := 0, 0, 0
			for round := range repeats {
				g := c.instance(r, tc.family)
				c.refresh()
				p, classes := c.problem(NewFilterCache(), g)
				w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, Options{Pods: classes.Size})
				if err != nil {
					t.Fatal(err)
				}
				counted := &countedWorld{Snapshot: w}
				plan, short := placement.Minimum(p, counted, placement.Budget{})
				calls += counted.calls
				if short == nil {
					c.check(t, g, plan)
					found++
					solvable++
				} else if way := c.solve(g); way != nil {
					solvable++
					t.Logf("round %d: no plan was found in %d calls and %d attempts, but there is one: %v\n%s", round, counted.calls, short.Attempts, way, c.describe(g))
					if short.Exhausted {
						t.Errorf("round %d: the search claims to be exhausted", round)
					}
				}
				c.clear()
			}
			rate := float64(found) / float64(solvable)
			t.Logf("| %s | %d of %d | %.1f %% | %d calls |", name, found, solvable, 100*rate, calls)
			if rate < tc.floor {
				t.Errorf("solved %.2f %% of the solvable instances, want at least %.2f %%", 100*rate, 100*tc.floor)
			}
		})
	}
}

// TestAffinityFindsPlantedPlans measures how often a plan is found for up to four replicas of a leader and workers in
// racks of four nodes, beside running leaders. The instances are too large for an exhaustive search, but they are made
// from a plan; in addition up to spare GPUs of each node are free.
func TestAffinityFindsPlantedPlans(t *testing.T) {
	for spare, floor := range []float64{0.98, 0.98, 0.98} {
		t.Run(fmt.Sprintf("spare %d", spare), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			r := rand.New(rand.NewPCG(73, uint64(79+spare)))
			const rounds = 100
			found, calls, pods := 0, 0, 0
			for round := range rounds {
				g := c.planted(r, spare)
				c.refresh()
				p, classes := c.problem(NewFilterCache(), g)
				w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, Options{Pods: classes.Size})
				if err != nil {
					t.Fatal(err)
				}
				counted := &countedWorld{Snapshot: w}
				plan, short := placement.Minimum(p, counted, placement.Budget{})
				calls += counted.calls
				switch {
				case short == nil:
					found++
					pods += len(plan)
					c.check(t, g, plan)
				case short.Exhausted:
					t.Errorf("round %d: the search claims to be exhausted", round)
				default:
					t.Logf("round %d: %d calls, %d attempts\n%s", round, counted.calls, short.Attempts, c.describe(g))
				}
				c.clear()
			}
			t.Logf("%d of %d plans found; %d calls of Place for %d pods planned", found, rounds, calls, pods)
			if rate := float64(found) / rounds; rate < floor {
				t.Errorf("%.1f %% of the plans found, want at least %.1f %%", 100*rate, 100*floor)
			}
		})
	}
}

// planted adds racks and running leaders to the scheduler's cache, and returns replicas that fit.
func (c *cluster) planted(r *rand.Rand, spare int) leaves {
	racks, gpus := 4+r.IntN(8), []int{1, 2, 4, 8}[r.IntN(4)]
	workers := 1 + r.IntN(24/gpus)
	leader := role{name: "leader", gpus: 1}
	worker := role{name: "worker", gpus: int64(gpus), keys: []string{"rack"}, follow: map[string]string{"role": "leader"}}
	used := make([]int, 4*racks)
	var g leaves
	for i, rack := range r.Perm(racks)[:1+r.IntN(4)] {
		used[4*rack+r.IntN(4)]++
		for n := 0; n < workers; {
			if at := 4*rack + r.IntN(4); used[at]+gpus <= 8 {
				used[at] += gpus
				n++
			}
		}
		g = append(g, leaf{fmt.Sprintf("leader-%d", i), members(1, func(int) *wrappers.PodWrapper { return leader.pod(fmt.Sprintf("leader-%d", i)) })},
			leaf{fmt.Sprintf("worker-%d", i), members(workers, func(k int) *wrappers.PodWrapper { return worker.pod(fmt.Sprintf("worker-%d-%d", i, k)) })})
	}
	for i, n := range used {
		running := i%4 == 0 && r.IntN(2) == 0
		if n += r.IntN(1 + spare); running {
			n++
		}
		c.sched.Cache.AddNode(klog.FromContext(c.ctx), gpuNode(fmt.Sprintf("n%d", i), int64(n), fmt.Sprintf("r%d", i/4)))
		if running {
			if err := c.sched.Cache.AddPod(klog.FromContext(c.ctx), leader.pod(fmt.Sprintf("running-%d", i)).Node(fmt.Sprintf("n%d", i)).Obj()); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	return g
}

// countedWorld counts the calls of Place.
type countedWorld struct {
	*Snapshot
	calls int
}

func (w *countedWorld) Place(class int, domain string) (string, bool) {
	w.calls++
	return w.Snapshot.Place(class, domain)
}

// family determines the features of random instances.
type family struct {
	mutual   bool // leaders and workers follow any of both
	keys     int  // the number of topology keys of a pod
	chain    bool // helpers follow workers
	replicas bool // two or three leaders, each with followers
	flat     bool // all pods of a role are in one leaf
	random   bool // each feature with a chance of one half
}

// role is a kind of pods of a random instance.
type role struct {
	name   string
	gpus   int64
	follow map[string]string // labels of the pods that it must be together with; nil: it follows none
	keys   []string          // topology keys
}

func (o role) pod(name string) *wrappers.PodWrapper {
	p := wrappers.MakePod(name, "ml").UID(name).Label("role", o.name).GPUs(o.gpus)
	if o.name != "helper" {
		p.Label("set", "s")
	}
	for label, value := range o.follow {
		for _, key := range o.keys {
			p.TogetherWith(key, label, value)
		}
	}
	return p
}

// instance adds two to five nodes and up to two running pods to the scheduler's cache, and returns a gang of two to
// nine pods.
func (c *cluster) instance(r *rand.Rand, f family) leaves {
	chance := func(percent int) bool { return r.IntN(100) < percent }
	if f.random {
		f.mutual, f.chain, f.replicas, f.flat, f.keys = chance(50), chance(50), chance(50), chance(50), 1+r.IntN(2)
	}
	nodes := 2 + r.IntN(4)
	for i := range nodes {
		rack := r.IntN(3)
		zone := rack % 2
		if chance(50) { // racks need not be within zones
			zone = r.IntN(2)
		}
		n := wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(int64(1+r.IntN(5))).Label("zone", fmt.Sprintf("z%d", zone))
		if !chance(5) {
			n.Label("rack", fmt.Sprintf("r%d", rack))
		}
		c.sched.Cache.AddNode(klog.FromContext(c.ctx), n.Obj())
	}
	keys := []string{"rack", "zone"}
	if f.keys < 2 {
		keys = keys[r.IntN(2):][:1]
	}
	leader := role{name: "leader", gpus: int64(1 + r.IntN(2)), keys: keys}
	worker := role{name: "worker", gpus: int64(1 + r.IntN(3)), keys: keys, follow: map[string]string{"role": "leader"}}
	helper := role{name: "helper", gpus: int64(1 + r.IntN(2)), keys: keys, follow: map[string]string{"role": "worker"}}
	if f.mutual {
		worker.follow = map[string]string{"set": "s"}
		if chance(50) {
			leader.follow = worker.follow
		}
	}
	if f.chain && f.keys > 1 && chance(50) { // one key each
		worker.keys, helper.keys = keys[:1], keys[1:]
	}
	for i := range r.IntN(3) {
		running := leader
		if f.chain && chance(30) {
			running = worker
		}
		pod := running.pod(fmt.Sprintf("running-%d", i)).Node(fmt.Sprintf("n%d", r.IntN(nodes))).Obj()
		if err := c.sched.Cache.AddPod(klog.FromContext(c.ctx), pod); err != nil {
			c.t.Fatal(err)
		}
	}
	replicas, workers, helpers := 1, 1+r.IntN(4), 0
	if f.replicas {
		replicas, workers = 2+r.IntN(2), 1+r.IntN(2)
	}
	if f.chain {
		workers, helpers = 1+r.IntN(2), 1
	}
	var g leaves
	for i := range replicas {
		for _, of := range []struct {
			role
			pods int
		}{{leader, 1}, {worker, workers}, {helper, helpers}} {
			pods := members(of.pods, func(k int) *wrappers.PodWrapper { return of.pod(fmt.Sprintf("%s-%d-%d", of.name, i, k)) })
			name := fmt.Sprintf("%s-%d", of.name, i)
			if f.flat {
				name = of.name
			}
			at := slices.IndexFunc(g, func(l leaf) bool { return l.name == name })
			switch {
			case of.pods == 0:
			case at >= 0:
				g[at].pods = append(g[at].pods, pods...)
			default:
				g = append(g, leaf{name, pods})
			}
		}
	}
	return g
}

// clear removes all nodes and pods from the scheduler's cache.
func (c *cluster) clear() {
	c.t.Helper()
	for _, n := range c.nodes {
		for _, pod := range n.GetPods() {
			if err := c.sched.Cache.RemovePod(klog.FromContext(c.ctx), pod.GetPod()); err != nil {
				c.t.Fatal(err)
			}
		}
		if err := c.sched.Cache.RemoveNode(klog.FromContext(c.ctx), n.Node()); err != nil {
			c.t.Fatal(err)
		}
	}
	c.refresh()
}

// solve returns the steps of a plan, nil if there is none. It tries all orders and nodes; only the number of pods of
// each role on each node matters for the pods that follow.
func (c *cluster) solve(g leaves) []string {
	byRole := map[string][]*corev1.Pod{}
	var roles []string
	for _, l := range g {
		for _, pod := range l.pods {
			role := pod.Labels["role"]
			if byRole[role] == nil {
				roles = append(roles, role)
			}
			byRole[role] = append(byRole[role], pod)
		}
	}
	placed := map[string]int{} // by role and node
	failed := map[string]bool{}
	var steps []string
	var solve func() bool
	solve = func() bool {
		state := fmt.Sprint(placed) // sorted by key
		if failed[state] {
			return false
		}
		done := true
		for _, role := range roles {
			rest := byRole[role]
			if len(rest) == 0 {
				continue
			}
			done = false
			results := c.realCycles(rest[0])
			for _, node := range slices.Sorted(maps.Keys(results)) {
				if results[node] != "" {
					continue
				}
				at := role + " on " + node
				bound := c.bind(rest[0], rest[0].Name, node)
				placed[at]++
				byRole[role], steps = rest[1:], append(steps, at)
				ok := solve()
				c.unbind(bound)
				byRole[role] = rest
				if placed[at]--; placed[at] == 0 {
					delete(placed, at)
				}
				if ok {
					return true
				}
				steps = steps[:len(steps)-1]
			}
		}
		failed[state] = !done
		return done
	}
	if !solve() {
		return nil
	}
	return steps
}

// describe lists the nodes, the running pods and the gang.
func (c *cluster) describe(g leaves) string {
	pod := func(p *corev1.Pod) string {
		gpus := p.Spec.Containers[0].Resources.Requests[wrappers.GPUResource]
		text := fmt.Sprintf("%s with %s GPUs", p.Name, gpus.String())
		if a := p.Spec.Affinity; a != nil {
			for _, term := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				text += fmt.Sprintf(" by %s of %v", term.TopologyKey, term.LabelSelector.MatchLabels)
			}
		}
		return text
	}
	var b strings.Builder
	for _, n := range c.nodes {
		gpus := n.Node().Status.Allocatable[wrappers.GPUResource]
		fmt.Fprintf(&b, "%s (%s, %s): %s GPUs", n.Node().Name, n.Node().Labels["rack"], n.Node().Labels["zone"], gpus.String())
		for _, p := range n.GetPods() {
			fmt.Fprintf(&b, "; runs %s", pod(p.GetPod()))
		}
		b.WriteString("\n")
	}
	for _, l := range g {
		for _, p := range l.pods {
			fmt.Fprintf(&b, "%s: %s\n", l.name, pod(p))
		}
	}
	return b.String()
}
