package kubescheduler

import (
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/podgroup"
)

// limit is how many pods of some classes a node accepted in fact, where the filters see less than the real cycles do:
// devices that planned siblings will take, for one. It holds as long as the node, the pods on it and its devices are the
// same. (A NodeInfo's generation would not do: an aborted plan that comes and goes changes it.)
type limit struct {
	state  uint64
	accept map[string]int // podgroup.ClassKey -> pods
}

// Limit records that the node accepted this many pods like the given one on top of what ran there, and refused the next.
// node is the node as it was in the cycle that was refused, planned the pods of the refused plan that it carries: they
// are not part of what the limit rests on.
func (v *FilterCache) Limit(f framework.Framework, node fwk.NodeInfo, planned map[types.UID]bool, pod *corev1.Pod, accepted int) {
	name := node.Node().Name
	state := stateOf(f, node, planned)
	l := v.limits[name]
	if l == nil || l.state != state {
		l = &limit{state: state, accept: map[string]int{}}
		v.limits[name] = l
	}
	l.accept[podgroup.ClassKey(pod)] = accepted
}

// limitsOf returns, by node, how many more pods like the given one are accepted; nil if no limit is known. Limits of nodes
// that have changed are forgotten.
func (w *Snapshot) limitsOf(pod *corev1.Pod) map[int]int {
	if len(w.cache.limits) == 0 {
		return nil
	}
	var out map[int]int
	key := podgroup.ClassKey(pod)
	for name, l := range w.cache.limits {
		accepted, ok := l.accept[key]
		if !ok {
			continue
		}
		i, ok := w.nodes.position[name]
		if !ok || stateOf(w.f, w.nodes.nodes[i], nil) != l.state {
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

// limited reports whether as many pods of the class are planned on the node as it accepts in fact.
func (w *Snapshot) limited(c *class, i int) bool {
	accepted, ok := c.limits[i]
	return ok && c.plannedOn[i] >= accepted
}

// stateOf returns a hash of what a limit rests on: which pods are on the node, those in without left out, what the node
// offers, and the generations of its ResourceSlices.
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
