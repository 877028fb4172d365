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
			passes:  0, bound: 1,
		},
		"anti-affinity of the gang": {
			members: eight(func(w *wrappers.PodWrapper) *wrappers.PodWrapper {
				return w.ApartFrom(corev1.LabelHostname, "app", "noisy")
			}),
			nodes:  nodesNamed(9, 2),
			others: []*wrappers.PodWrapper{plain("p0").Label("app", "noisy"), plain("p1")},
			passes: 0, bound: 2,
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
