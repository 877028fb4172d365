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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/test/wrappers"
)

// shapePods are pods of different shapes.
func shapePods() map[string]*corev1.Pod {
	return map[string]*corev1.Pod{
		"one GPU":          wrappers.MakePod("gpu1", "ml").GPUs(1).Obj(),
		"all GPUs":         wrappers.MakePod("gpu8", "ml").GPUs(8).CPU("4").Obj(),
		"CPU only":         wrappers.MakePod("cpu", "ml").CPU("3").Memory("2Gi").Obj(),
		"no request":       wrappers.MakePod("none", "ml").Obj(),
		"one zone":         wrappers.MakePod("zone", "ml").GPUs(2).NodeSelector("zone", "a").Obj(),
		"tolerates":        wrappers.MakePod("taint", "ml").GPUs(1).Toleration("maintenance").Obj(),
		"unknown resource": wrappers.MakePod("unknown", "ml").Resource("example.com/fpga", resource.MustParse("1")).Obj(),
	}
}

func TestShapesFollowTheCache(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			c := newCluster(t)
			refresh := func(s *cache.Snapshot) error { return c.sched.Cache.UpdateSnapshot(klog.Background(), s) }
			profile := func(*corev1.Pod) framework.Framework { return c.f }
			shapes := newShapes(refresh, profile)
			tracked := map[string]*Shape{}
			pods := shapePods()
			names := slices.Sorted(maps.Keys(pods))
			nodes, bound := map[string]*corev1.Node{}, map[string]*corev1.Pod{}
			before := map[string]map[string]int64{} // by shape and node
			domains := map[string]map[string]*DomainShape{}
			seen := map[string]*corev1.Node{} // nodes at the last update
			classes, offered := c.f.SharedDRAManager().DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache), false
			class := deviceClass("fpga", "fpga.example.com", "example.com/fpga")
			for step := range 60 {
				for range 1 + rng.IntN(3) {
					name := fmt.Sprintf("n%d", rng.IntN(6))
					node := nodes[name]
					switch op := rng.IntN(6); {
					case node == nil:
						nodes[name] = wrappers.MakeNode(name).GPUs(int64(rng.IntN(9))).Capacity("example.com/fpga", fmt.Sprint(rng.IntN(3))).Label("zone", string(rune('a'+rng.IntN(2)))).Obj()
						c.sched.Cache.AddNode(klog.Background(), nodes[name])
					case op == 0:
						if err := c.sched.Cache.RemoveNode(klog.Background(), node); err != nil {
							t.Fatal(err)
						}
						delete(nodes, name)
					case op == 1:
						changed := node.DeepCopy()
						changed.Spec.Unschedulable = rng.IntN(2) == 0
						changed.Spec.Taints = nil
						if rng.IntN(2) == 0 {
							changed.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
						}
						changed.Labels["zone"] = string(rune('a' + rng.IntN(2)))
						if changed.Labels["rack"] = string(rune('r' + rng.IntN(2))); rng.IntN(4) == 0 {
							delete(changed.Labels, "rack")
						}
						c.sched.Cache.UpdateNode(klog.Background(), node, changed)
						nodes[name] = changed
					case op == 2 && len(bound) > 0:
						key := slices.Sorted(maps.Keys(bound))[rng.IntN(len(bound))]
						if err := c.sched.Cache.RemovePod(klog.Background(), bound[key]); err != nil {
							t.Fatal(err)
						}
						delete(bound, key)
					default:
						pod := pods[names[rng.IntN(4)]].DeepCopy()
						pod.Name = fmt.Sprintf("p%d-%d", step, len(bound))
						pod.UID, pod.Spec.NodeName = wrappers.MakePod(pod.Name, "ml").UID(pod.Name).Obj().UID, name
						if bound[pod.Name] == nil && c.sched.Cache.AddPod(klog.Background(), pod) == nil {
							bound[pod.Name] = pod
						}
					}
				}
				if name := names[rng.IntN(len(names))]; tracked[name] == nil {
					shape, err := shapes.TrackShape(c.ctx, pods[name])
					if err != nil {
						t.Fatal(err)
					}
					tracked[name] = shape
					before[name] = slotsByNode(shapes, shape)
					domains[name] = trackDomains(shapes, shape)
				} else if rng.IntN(10) == 0 {
					for _, d := range domains[name] {
						shapes.ReleaseDomain(d)
					}
					shapes.ReleaseShape(tracked[name])
					delete(tracked, name)
				}

				if rng.IntN(5) == 0 {
					if offered = !offered; offered {
						classes.OnAdd(class, false)
					} else {
						classes.OnDelete(class)
					}
					shapes.UpdateOffered()
				}

				raised, err := shapes.UpdateNodes()
				if err != nil {
					t.Fatal(err)
				}
				fresh := newShapes(refresh, profile)
				if _, err := fresh.UpdateNodes(); err != nil {
					t.Fatal(err)
				}
				c.refresh()
				for name, shape := range tracked {
					anew, err := fresh.TrackShape(c.ctx, pods[name])
					if err != nil {
						t.Fatal(err)
					}
					got, want := slotsByNode(shapes, shape), slotsByNode(fresh, anew)
					if !maps.Equal(got, want) || shape.FittingPods() != anew.FittingPods() {
						t.Fatalf("step %d, %s: slots %v (%d in all), counted anew %v (%d)", step, name, got, shape.FittingPods(), want, anew.FittingPods())
					}
					more := false
					for node, slots := range got {
						more = more || slots > before[name][node]
					}
					if is := raised.Shapes.Has(shape); more && !is {
						t.Fatalf("step %d, %s: more pods fit on a node (%v, before %v), and Update does not say so", step, name, got, before[name])
					}
					for key, want := range trackDomains(fresh, anew) {
						d := domains[name][key]
						if d.FittingPods() != want.FittingPods() {
							t.Fatalf("step %d, %s, %s: %d pods fit, counted anew %d", step, name, key, d.FittingPods(), want.FittingPods())
						}
						more := slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(node string) bool {
							if !isInDomain(key, nodes[node]) || got[node] == 0 {
								return false
							}
							return got[node] > before[name][node] || !isInDomain(key, seen[node])
						})
						if more && !raised.Domains.Has(d) {
							t.Fatalf("step %d, %s, %s: more pods fit on a node of the domain, and Update does not say so", step, name, key)
						}
					}
					before[name] = got
					c.noFilterKnowsMore(t, pods[name], got)
				}
				seen = maps.Clone(nodes)
			}
		})
	}
}

// trackDomains returns what counts the pods of a shape in domains, by "level=values", without values for any domain.
func trackDomains(s *Shapes, shape *Shape) map[string]*DomainShape {
	out := map[string]*DomainShape{}
	for level, values := range map[string][]string{"zone": {"a", "b"}, "zone,rack": {"a,r", "b,s", "c,r"}} {
		out[level] = s.TrackDomain(shape, level, nil)
		for _, value := range values {
			out[level+"="+value] = s.TrackDomain(shape, level, &value)
		}
	}
	return out
}

// isInDomain reports whether a node is in a domain of trackDomains.
func isInDomain(key string, node *corev1.Node) bool {
	if node == nil {
		return false
	}
	level, want, one := strings.Cut(key, "=")
	var values []string
	for _, label := range strings.Split(level, ",") {
		value, ok := node.Labels[label]
		if !ok {
			return false
		}
		values = append(values, value)
	}
	return !one || strings.Join(values, ",") == want
}

func slotsByNode(s *Shapes, shape *Shape) map[string]int64 {
	out := map[string]int64{}
	for i, n := range s.nodes {
		out[n.Node().Name] = shape.slots[i]
	}
	return out
}

// noFilterKnowsMore fails if the stock filters accept a pod on a node without a slot for it: the slots must be an
// upper bound.
func (c *cluster) noFilterKnowsMore(t *testing.T, pod *corev1.Pod, slots map[string]int64) {
	t.Helper()
	state := framework.NewCycleState()
	if _, status, _ := c.f.RunPreFilterPlugins(c.ctx, state, pod); !status.IsSuccess() {
		return
	}
	for _, n := range c.nodes {
		if c.f.RunFilterPlugins(c.ctx, state, pod, n).IsSuccess() && slots[n.Node().Name] == 0 {
			t.Fatalf("the filters take %s on %s, which has no slot for it", pod.Name, n.Node().Name)
		}
	}
}

func TestShapesAreSharedAndForgotten(t *testing.T) {
	c := newCluster(t, wrappers.MakeNode("n").GPUs(8).Obj())
	shapes := newShapes(func(s *cache.Snapshot) error { return c.sched.Cache.UpdateSnapshot(klog.Background(), s) },
		func(*corev1.Pod) framework.Framework { return c.f })
	if _, err := shapes.UpdateNodes(); err != nil {
		t.Fatal(err)
	}
	track := func(pod *corev1.Pod) *Shape {
		shape, err := shapes.TrackShape(c.ctx, pod)
		if err != nil {
			t.Fatal(err)
		}
		return shape
	}
	a := track(wrappers.MakePod("a", "ml").GPUs(1).Label("index", "0").Obj())
	b := track(wrappers.MakePod("b", "ml").GPUs(1).Label("index", "1").Obj())
	if a != b || a.FittingPods() != 8 {
		t.Fatalf("two shapes for pods that differ in labels, or %d fit, want 8", a.FittingPods())
	}
	shapes.ReleaseShape(a)
	shapes.ReleaseShape(b)
	if len(shapes.shapes) != 0 {
		t.Errorf("%d shapes are left", len(shapes.shapes))
	}
}
