// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/test/wrappers"
)

// Pods without a gang pass between the members of a plan whose cycles take long, and get what the plan does not need:
// none of its members is refused.
func TestPodsPassAPlanAndLeaveItsRoom(t *testing.T) {
	t.Parallel()
	plain := func(name string) *wrappers.PodWrapper { return wrappers.MakePod(name, "ml").GPUs(1) }
	eight := func(edit func(*wrappers.PodWrapper) *wrappers.PodWrapper) (out []*wrappers.PodWrapper) {
		for _, m := range members("a", 8) {
			out = append(out, edit(m))
		}
		return out
	}
	asIs := func(w *wrappers.PodWrapper) *wrappers.PodWrapper { return w }
	for name, tc := range map[string]struct {
		members []*wrappers.PodWrapper
		nodes   []*wrappers.NodeWrapper
		others  []*wrappers.PodWrapper // created with the first cycle of the plan
		devices int                    // of the node n0; 0: none
		passes  int                    // how many of the others have a cycle before the last member
		bound   int                    // how many of them are bound in the end
	}{
		"room": {
			members: eight(asIs),
			nodes:   []*wrappers.NodeWrapper{wrappers.MakeNode("n0").GPUs(5), wrappers.MakeNode("n1").GPUs(5)},
			others:  []*wrappers.PodWrapper{plain("p0"), plain("p1"), plain("p2")},
			passes:  3, bound: 2,
		},
		"room, for pods of a higher priority too": {
			members: eight(asIs),
			nodes:   []*wrappers.NodeWrapper{wrappers.MakeNode("n0").GPUs(5), wrappers.MakeNode("n1").GPUs(4)},
			others:  []*wrappers.PodWrapper{plain("p0").Priority(1000).NeverPreempts(), plain("p1").Priority(1000).NeverPreempts()},
			passes:  2, bound: 1,
		},
		"lower priority": {
			members: eight(func(w *wrappers.PodWrapper) *wrappers.PodWrapper { return w.Priority(5) }),
			nodes:   []*wrappers.NodeWrapper{wrappers.MakeNode("n0").GPUs(5), wrappers.MakeNode("n1").GPUs(5)},
			others:  []*wrappers.PodWrapper{plain("p0").Priority(4)},
			passes:  0, bound: 1,
		},
		"ports": {
			members: eight(func(w *wrappers.PodWrapper) *wrappers.PodWrapper { return w.HostPort(80) }),
			nodes:   nodesNamed(8, 3),
			others:  []*wrappers.PodWrapper{plain("p0").HostPort(80), plain("p1").HostPort(81)},
			passes:  2, bound: 1,
		},
		"anti-affinity of the gang": {
			members: eight(func(w *wrappers.PodWrapper) *wrappers.PodWrapper {
				return w.ApartFrom(corev1.LabelHostname, "app", "noisy")
			}),
			nodes:  nodesNamed(9, 2),
			others: []*wrappers.PodWrapper{plain("p0").Label("app", "noisy"), plain("p1").Label("app", "noisy")},
			passes: 2, bound: 2, // both beside each other on the node without members, or where GPUs are left
		},
		"anti-affinity of the gang over zones": {
			members: eight(func(w *wrappers.PodWrapper) *wrappers.PodWrapper {
				return w.ApartFrom("zone", "app", "noisy")
			}),
			nodes:  inOneZone(nodesNamed(9, 2)),
			others: []*wrappers.PodWrapper{plain("p0").Label("app", "noisy"), plain("p1")},
			passes: 0, bound: 1,
		},
		"anti-affinity of the others": {
			members: eight(asIs),
			nodes:   inOneZone(nodesNamed(9, 2)),
			others:  []*wrappers.PodWrapper{plain("p0").ApartFrom("zone", "app", "none"), plain("p1")},
			passes:  1, bound: 2,
		},
		"devices that a DeviceClass offers as an extended resource": {
			members: eight(withDevice),
			nodes:   nodesNamed(1, 10),
			others:  []*wrappers.PodWrapper{withDevice(plain("p0")), withDevice(plain("p1"))},
			devices: 9,
			passes:  0, bound: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, leaps)
			if tc.devices > 0 {
				c.offersDevices(extendedDevice, tc.devices)
			}
			for _, n := range tc.nodes {
				c.node(n)
			}
			c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(8).Obj())
			c.pod(tc.members...)
			created := false
			c.onPop = func(pod string) {
				if !strings.HasPrefix(pod, "a-") {
					return
				}
				if !created {
					created = true
					c.pod(tc.others...)
					c.eventually("the other pods queued", func() bool { return len(c.sched.SchedulingQueue.PodsInActiveQ()) >= len(tc.others) })
				}
				c.endTurn()
			}
			c.run().wholeOf("a", 8)
			c.eventually("the other pods bound", func() bool { return len(c.boundOf("p")) == tc.bound })
			c.mu.Lock()
			defer c.mu.Unlock()
			last := slices.IndexFunc(c.popped, func(pod string) bool { return pod == "a-7" })
			cycles := map[string]int{}
			passed := 0
			for i, pod := range c.popped {
				if cycles[pod]++; strings.HasPrefix(pod, "p") && cycles[pod] == 1 && i < last {
					passed++
				}
			}
			if passed != tc.passes {
				t.Errorf("%d of the other pods had a cycle before the last member, want %d: %v", passed, tc.passes, c.popped)
			}
			for _, m := range tc.members {
				if n := cycles[m.Obj().Name]; n != 1 {
					t.Errorf("%s had %d cycles: the plan was aborted: %v", m.Obj().Name, n, c.popped)
				}
			}
		})
	}
}

// A gang of a higher priority is planned and handed out between the members of a plan, gets what the plan does not
// need, and is bound first. If it does not fit beside the plan, it is refused only when the plan has ended.
func TestGangsOfHigherPriorityPassAPlan(t *testing.T) {
	t.Parallel()
	inZone := func(w *wrappers.PodWrapper) *wrappers.PodWrapper {
		return w.Label("app", "u").TogetherWith("zone", "app", "u")
	}
	asIs := func(w *wrappers.PodWrapper) *wrappers.PodWrapper { return w }
	for name, tc := range map[string]struct {
		gpus     int64 // of each of two nodes, for a gang of eight
		priority int32 // of the gang that comes later; that of the first one is 5
		edit     func(*wrappers.PodWrapper) *wrappers.PodWrapper
		apart    bool // the pods of the first gang must be in another zone than others
		devices  int  // of the node n0, for the pods of both gangs; 0: they need none
		passes   bool
		refused  bool
	}{
		"room":                                  {gpus: 5, priority: 6, edit: asIs, passes: true},
		"equal priority":                        {gpus: 5, priority: 5, edit: asIs},
		"lower priority":                        {gpus: 5, priority: 4, edit: asIs},
		"no room beside the plan":               {gpus: 4, priority: 6, edit: asIs, refused: true},
		"it depends on other nodes":             {gpus: 5, priority: 6, edit: inZone},
		"the first gang depends on other nodes": {gpus: 5, priority: 6, edit: asIs, apart: true},
		"both need devices":                     {gpus: 10, priority: 6, edit: withDevice, devices: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, leaps)
			if tc.devices > 0 {
				c.offersDevices(extendedDevice, tc.devices)
			}
			for _, n := range inOneZone(nodesNamed(2, tc.gpus)) {
				c.node(n)
			}
			c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(8).Obj())
			for _, m := range members("a", 8) {
				if m.Priority(5); tc.apart {
					m.ApartFrom("zone", "app", "noisy")
				}
				if tc.devices > 0 {
					withDevice(m)
				}
				c.pod(m)
			}
			created, early := false, false
			c.onPop = func(pod string) {
				if !strings.HasPrefix(pod, "a-") {
					return
				}
				if !created {
					created = true
					c.groups.Put(wrappers.MakePodGroup("u", "ml").UID("u").Generation(1).MinMember(2).Obj())
					for _, m := range members("u", 2) {
						c.pod(tc.edit(m).Priority(tc.priority).NeverPreempts())
					}
					c.eventually("the leader queued", func() bool {
						return slices.ContainsFunc(c.sched.SchedulingQueue.PodsInActiveQ(), func(p *corev1.Pod) bool { return strings.HasPrefix(p.Name, "u-") })
					})
				}
				f, ok := c.gangs.registry.Facts(key("u"))
				early = early || ok && f.Refused.Reason != ""
				if pod == "a-7" && tc.passes {
					c.wholeOf("u", 2) // bindings overtake each other
				}
				c.endTurn()
			}
			c.run().wholeOf("a", 8)
			if tc.refused {
				c.refused("u")
			} else {
				c.wholeOf("u", 2)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if early {
				t.Error("the gang was refused while the members of another one were handed out")
			}
			last := slices.Index(c.popped, "a-7")
			if passes := slices.Contains(c.popped[:last], "u-0") && slices.Contains(c.popped[:last], "u-1"); passes != tc.passes {
				t.Errorf("the gang passes: %t, want %t: %v", passes, tc.passes, c.popped)
			}
			first := slices.IndexFunc(c.bound, func(pod string) bool { return strings.HasPrefix(pod, "u-") })
			if tc.passes && first != 0 {
				t.Errorf("bound %v, want the gang of the higher priority first", c.bound)
			}
			c.wantOneCycleEach(t, "a", 8)
		})
	}
}

// endTurn ends the turn of the members of a plan.
func (c *cluster) endTurn() { c.clock.(*leaping).leap(60 * time.Millisecond) }

// leaping is a clock that leaps, beside which its timers run as usual.
type leaping struct {
	clock.RealClock
	leaps atomic.Int64
}

func (l *leaping) leap(d time.Duration) { l.leaps.Add(int64(d)) }

func (l *leaping) Now() time.Time { return l.RealClock.Now().Add(time.Duration(l.leaps.Load())) }

func (l *leaping) Since(t time.Time) time.Duration { return l.Now().Sub(t) }

// leaps is the option of a cluster whose clock leaps.
func leaps(c *cluster, _ *bool, _ *config.GangAdmissionArgs) { c.clock = &leaping{} }

// wantOneCycleEach checks that no pod of a plan had more than one cycle: it was not aborted. The lock must be held.
func (c *cluster) wantOneCycleEach(t *testing.T, gang string, n int) {
	t.Helper()
	for _, m := range members(gang, n) {
		pod := m.Obj().Name
		if n := len(slices.DeleteFunc(slices.Clone(c.popped), func(p string) bool { return p != pod })); n != 1 {
			t.Errorf("%s had %d cycles: the plan was aborted: %v", pod, n, c.popped)
		}
	}
}

// A gang that does not fit beside the plan is tried again as the first one when the plan has ended, though it was tried
// just before.
func TestDroppedGangKeepsItsTurn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, leaps).node(wrappers.MakeNode("n0").GPUs(4)).gang("a", 4)
	c.onPop = func(pod string) {
		if pod != "a-2" {
			return
		}
		for name, priority := range map[string]int32{"l": 0, "u": 5} {
			c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(2).Obj())
			for _, m := range members(name, 2) {
				c.pod(m.Priority(priority).NeverPreempts())
			}
		}
		c.eventually("the leaders queued", func() bool { return len(c.sched.SchedulingQueue.PodsInActiveQ()) == 2 })
		c.endTurn()
	}
	c.run().wholeOf("a", 4).refused("u").refused("l")
	c.mu.Lock()
	defer c.mu.Unlock()
	want := []string{"a-0", "a-1", "a-2", "u-0", "a-3", "u-0", "l-0"}
	if got := c.popped[:min(len(want), len(c.popped))]; !slices.Equal(got, want) {
		t.Errorf("popped %v, want %v", got, want)
	}
}

// A gang that passes leaves room that is reserved, beside that of the plan: what the plan does not need is not free for
// it. Of the 8 GPUs that are free 4 are reserved and 4 are planned.
func TestPassingGangLeavesReservedRoom(t *testing.T) {
	t.Parallel()
	c := updated(t, leaps, keepsFor(time.Hour))
	c.updateNode("n0", func(n *corev1.Node) { *n = *wrappers.MakeNode("n0").GPUs(12).Obj() })
	c.leaves("a-x")
	created := false
	c.mu.Lock()
	c.popped = nil
	c.onPop = func(pod string) {
		if !strings.HasPrefix(pod, "b-") {
			return
		}
		if !created {
			created = true
			c.groups.Put(wrappers.MakePodGroup("u", "ml").UID("u").Generation(1).MinMember(2).Obj())
			for _, m := range members("u", 2) {
				c.pod(m.Priority(5).NeverPreempts())
			}
			c.eventually("the leader queued", func() bool { return len(c.sched.SchedulingQueue.PodsInActiveQ()) > 0 })
		}
		c.endTurn()
	}
	c.mu.Unlock()
	c.gang("b", 4).wholeOf("b", 4).refused("u")
	c.replace("a-new").eventually("replaced", c.isBound("a-new"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, last := slices.Index(c.popped, "u-0"), slices.Index(c.popped, "b-3"); first < 0 || first > last {
		t.Errorf("the gang was not tried while the plan was handed out: %v", c.popped)
	}
	c.wantOneCycleEach(t, "b", 4)
}

// A gang that passes is passed in turn, and both plans are continued.
func TestGangsPassAGangThatPasses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, leaps)
	for _, n := range nodesNamed(2, 7) {
		c.node(n)
	}
	create := func(name string, pods int, priority int32) {
		c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(int32(pods)).Obj())
		for _, m := range members(name, pods) {
			c.pod(m.Priority(priority).NeverPreempts())
		}
	}
	create("a", 6, 1)
	next := map[string]func(){
		"a": func() { create("b", 6, 2) },
		"b": func() { create("c", 2, 3) },
	}
	after := map[string]string{"a": "b-", "b": "c-"}
	c.onPop = func(pod string) {
		gang, _, _ := strings.Cut(pod, "-")
		if begin := next[gang]; begin != nil {
			delete(next, gang)
			begin()
			c.eventually("the leader queued", func() bool {
				return slices.ContainsFunc(c.sched.SchedulingQueue.PodsInActiveQ(), func(p *corev1.Pod) bool { return strings.HasPrefix(p.Name, after[gang]) })
			})
		}
		switch pod { // the last members: bindings overtake each other, so those of the gang that passes have to be posted
		case "b-5":
			c.wholeOf("c", 2)
		case "a-5":
			c.wholeOf("b", 6)
		}
		c.endTurn()
	}
	c.run().wholeOf("a", 6).wholeOf("b", 6).wholeOf("c", 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.popped) != 14 {
		t.Errorf("%d cycles, want one of each pod: %v", len(c.popped), c.popped)
	}
	for i, gang := range []string{"c", "b", "a"} {
		if got, want := c.bound[[]int{0, 2, 8}[i]], gang+"-"; !strings.HasPrefix(got, want) {
			t.Errorf("bound %v, want c, b, a", c.bound)
		}
	}
}

// extendedDevice is the extended resource that a DeviceClass offers in these tests.
const extendedDevice = "example.com/ext"

func withDevice(w *wrappers.PodWrapper) *wrappers.PodWrapper {
	return w.Resource(extendedDevice, resource.MustParse("1"))
}

// inOneZone puts the nodes into one zone.
func inOneZone(nodes []*wrappers.NodeWrapper) []*wrappers.NodeWrapper {
	for _, n := range nodes {
		n.Label("zone", "z")
	}
	return nodes
}

// nodesNamed returns so many nodes, each of which knows its name as a label.
func nodesNamed(n int, gpus int64) (out []*wrappers.NodeWrapper) {
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		out = append(out, wrappers.MakeNode(name).GPUs(gpus).Label(corev1.LabelHostname, name))
	}
	return out
}
