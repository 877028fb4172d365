// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/muster-project/muster/pkg/podgroup"
)

// limit is how many pods of some classes a node accepted in real cycles, for cases in which the filters see less than
// these, for example devices that planned siblings will allocate. It is valid as long as the node, its pods and its
// devices do not change, but no longer than LimitLasts. (The generation of a NodeInfo is not suitable, because an
// aborted plan changes it.)
type limit struct {
	state  uint64
	accept map[string]int // podgroup.ClassKey -> pods
	since  time.Time      // when the first class was limited
}

// LimitLasts bounds the validity of a limit, in case it depends on facts that its state does not contain.
const LimitLasts = time.Minute

// Limit records that a member of a plan was refused on its planned node. node is the node as the member's cycle saw
// it, including the members that were assumed there before; members are all members of the plan. Later plans place no
// more pods of the member's class on the node than it accepted. If it accepted none, nothing is recorded and the
// result is false, because the filters themselves see why the first pod does not fit.
func (v *FilterCache) Limit(f framework.Framework, node fwk.NodeInfo, members map[types.UID]bool, refused *corev1.Pod, now time.Time) bool {
	key := podgroup.ClassKey(refused)
	accepted := 0
	for _, p := range node.GetPods() {
		if !members[p.GetPod().UID] {
			continue
		}
		waiting := *p.GetPod() // as it was before it was bound
		waiting.Spec.NodeName = ""
		if podgroup.ClassKey(&waiting) == key {
			accepted++
		}
	}
	if accepted == 0 {
		return false
	}
	name := node.Node().Name
	state := stateOf(f, node, members)
	l := v.limits[name]
	if l == nil || l.state != state {
		l = &limit{state: state, accept: map[string]int{}, since: now}
		v.limits[name] = l
	}
	l.accept[key] = accepted
	return true
}

// limitsOf returns, by node, how many more pods like the given one are accepted; nil if no limit is known. Limits
// that are no longer valid are removed.
func (w *Snapshot) limitsOf(pod *corev1.Pod, now time.Time) map[int]int {
	if len(w.cache.limits) == 0 {
		return nil
	}
	var out map[int]int
	key := podgroup.ClassKey(pod)
	for name, l := range w.cache.limits {
		accepted, ok := l.accept[key]
		if !ok && now.Sub(l.since) < LimitLasts {
			continue
		}
		i, exists := w.nodes.position[name]
		if !exists || now.Sub(l.since) >= LimitLasts || stateOf(w.f, w.nodes.nodes[i], nil) != l.state {
			delete(w.cache.limits, name)
			continue
		}
		if out == nil {
			out = map[int]int{}
		}
		out[i] = accepted
	}
	return out
}

// limited reports whether as many pods of the class are planned on the node as real cycles accept.
func (w *Snapshot) limited(c *class, i int) bool {
	accepted, ok := c.limits[i]
	return ok && c.plannedOn[i] >= accepted
}

// stateOf returns a hash of the facts on which a limit depends: the pods on the node except those in without, the
// node's allocatable resources, and the versions of its ResourceSlices.
func stateOf(f framework.Framework, node fwk.NodeInfo, without map[types.UID]bool) uint64 {
	hash := func(parts ...string) uint64 {
		h := fnv.New64a()
		for _, p := range parts {
			h.Write([]byte(p))
			h.Write([]byte{0})
		}
		return h.Sum64()
	}
	object := node.Node()
	sum := hash(object.Name, string(object.UID))
	for name, quantity := range object.Status.Allocatable {
		sum += hash("allocatable", string(name), quantity.String())
	}
	for _, p := range node.GetPods() {
		if uid := p.GetPod().UID; !without[uid] {
			sum += hash("pod", string(uid))
		}
	}
	dra := f.SharedDRAManager()
	if dra == nil {
		return sum
	}
	slices, err := dra.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return sum
	}
	for _, s := range slices {
		if s.Spec.NodeName == nil || *s.Spec.NodeName == object.Name {
			sum += hash("slice", s.Name, string(s.UID), s.ResourceVersion)
		}
	}
	return sum
}

// LacksDevices reports whether a node was refused for lack of devices. The filter evaluates this for a single pod,
// without the siblings that are planned on the same node.
func LacksDevices(status *fwk.Status) bool { return status.Plugin() == names.DynamicResources }
