// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"hash/fnv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/muster-project/muster/pkg/podgroup"
)

// Refusals stores what nodes refused in real cycles although a plan expected otherwise: by class of pods and node, how
// many such pods the node accepted. Plans do not see everything that a cycle does, for example plugins that
// reserve or prepare, and devices that planned siblings will allocate. Safe for concurrent use.
//
// A refusal is valid as long as the node, its pods and its devices are as they were, but not longer than KnownFor.
// (The generation of a NodeInfo is not suitable to find changes, because an aborted plan changes it.)
type Refusals struct {
	// KnownFor bounds the validity of a refusal, in case it depends on facts that no node shows. It may be changed
	// before the first plan only.
	KnownFor time.Duration

	mu      sync.Mutex
	classes map[string]map[string]*refusal // by class and node
	size    int
}

const (
	// knownFor is Refusals.KnownFor by default: the stock scheduler tries a refused pod again after this time, too.
	knownFor = 5 * time.Minute
	// knownObjects bounds the validity of refusals for lack of devices or volumes, which depend on objects that do not
	// belong to the node, and of the first refusal by an extender.
	knownObjects = time.Minute
	// minFailed and maxKnown bound the validity of a failure that is no refusal. It doubles with each failure.
	minFailed = 4 * time.Second
	maxKnown  = time.Minute
	// recently is how long the same refusal of a node that has changed in the meantime is no news. A node may change
	// because of the plans themselves.
	recently = 10 * time.Second
	// maxRefusals bounds the memory. If there are more, all are forgotten, and found out again.
	maxRefusals = 50_000
)

// refusal is how many pods of a class a node accepted.
type refusal struct {
	accepted int
	why      string
	since    time.Time
	lasts    time.Duration
	until    time.Time // since + lasts, or later (keepKnown)
	failures int       // consecutive ones that are no news of the node itself: each is known for twice as long

	isNew      bool                 // the state has not been computed
	without    func(types.UID) bool // if so: whether a pod is one of the plan, which do not belong to it; nil: none is
	state      uint64
	generation int64 // of the NodeInfo for which valid was computed
	devices    uint64
	valid      bool
}

// NewRefusals returns an empty store.
func NewRefusals() *Refusals {
	return &Refusals{KnownFor: knownFor, classes: map[string]map[string]*refusal{}}
}

// Refusal is one pod that its planned node did not take.
type Refusal struct {
	Pod  *corev1.Pod
	Node string
	// Beside are the pods of the plan that the node did not refuse until now.
	Beside []*corev1.Pod
	// Late is set if the plan was aborted before the refusal. Beside are then all pods that were planned on the node,
	// and each late refusal shows that it accepts one less.
	Late bool
	// Status is the reason. A status that is no rejection counts as a failure, which may be gone at the next attempt.
	Status *fwk.Status
	// IsMember reports whether a pod is one of the plan. The state of the node does not include these. nil: none is.
	IsMember func(types.UID) bool
}

// Record stores a refusal. It returns false if it teaches nothing: the same was recorded shortly before, so the plans
// probably change the node themselves.
func (r *Refusals) Record(f framework.Framework, refused Refusal, now time.Time) bool {
	key, asked, accepted := refusalKey(f, refused.Pod), askedKey(f, refused.Pod), 0
	for _, pod := range refused.Beside {
		if askedKey(f, pod) == asked {
			accepted++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.classes[key] == nil {
		r.classes[key] = map[string]*refusal{}
	}
	old := r.classes[key][refused.Node]
	if old == nil {
		if r.size >= maxRefusals {
			r.classes = map[string]map[string]*refusal{key: {}}
			r.size = 0
		}
		old = &refusal{}
		r.size++
	}
	if refused.Late && old.isNew {
		accepted = max(0, old.accepted-1)
	}
	n := &refusal{accepted: accepted, why: firstReason(refused.Status), since: now, isNew: true, without: refused.IsMember}
	lasts := r.KnownFor
	switch {
	case !refused.Status.IsRejected():
		lasts = min(minFailed<<min(old.failures, 10), maxKnown)
		n.failures = old.failures + 1
		n.why = "node(s) recently failed to take a pod of this kind"
	case refused.Status.Plugin() == "": // an extender, which may refuse all nodes, for example until there is a quota
		lasts = min(lasts, knownObjects<<min(old.failures, 10))
		n.failures = old.failures + 1
	case LacksDevices(refused.Status), InputsOf(refused.Status.Plugin()).Volumes:
		lasts = min(lasts, knownObjects)
	}
	if old.since.IsZero() {
		r.keepKnown(key, lasts, now)
	}
	n.lasts, n.until = lasts, now.Add(lasts)
	r.classes[key][refused.Node] = n
	return old.since.IsZero() || n.accepted < old.accepted || now.Sub(old.since) >= recently
}

// keepKnown keeps what is known of other nodes of the class when one has refused for the first time: at least for so
// long, but not longer than it lasts. If the first node were tried again before all others are found out, that would be
// no news, and the pauses that follow would let all of it be forgotten. One of 5,000 nodes may be found out at a time.
func (r *Refusals) keepKnown(key string, lasts time.Duration, now time.Time) {
	for _, known := range r.classes[key] {
		if until := now.Add(min(lasts, known.lasts)); now.Before(known.until) && known.until.Before(until) {
			known.until = until
		}
	}
}

// Forget removes what is known of a node.
func (r *Refusals) Forget(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, nodes := range r.classes {
		if nodes[node] != nil {
			delete(nodes, node)
			r.size--
		}
	}
}

// refusalKey is equal for pods that nodes take or refuse alike.
func refusalKey(f framework.Framework, pod *corev1.Pod) string {
	return claimsOf(f, pod, nil) + askedKey(f, pod)
}

// askedKey is equal for pods that asked for the same. Claims of members that a node took may be bound already.
func askedKey(f framework.Framework, pod *corev1.Pod) string {
	waiting := *pod
	waiting.Spec.NodeName = "" // as it was before it was assumed
	return podgroup.ClassKey(&waiting) + volumesAsked(f, pod) + devicesAsked(f, pod)
}

// limit is how many more pods of a class a node accepts, and why not more.
type limit struct {
	accepted int
	why      string
}

// limitsByNode returns the valid refusals of pods like the given one by the position of the node, and the time when the
// first of them expires; nil if there are none. ignore reports whether a pod on a node belongs to a plan that was
// aborted.
func (r *Refusals) limitsByNode(f framework.Framework, t *nodeTable, pod *corev1.Pod, ignore func(types.UID) bool, now time.Time, devices func(node string) uint64) (map[int]limit, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size == 0 {
		return nil, time.Time{}
	}
	key := refusalKey(f, pod)
	var out map[int]limit
	var first time.Time
	for name, n := range r.classes[key] {
		i, exists := t.position[name]
		if !exists || now.Sub(n.until) >= maxKnown {
			delete(r.classes[key], name)
			r.size--
			continue
		}
		if !now.Before(n.until) || !n.stillHolds(t.nodes[i], ignore, devices(name)) {
			continue
		}
		if out == nil {
			out = map[int]limit{}
		}
		out[i] = limit{n.accepted, n.why}
		if first.IsZero() || n.until.Before(first) {
			first = n.until
		}
	}
	if len(r.classes[key]) == 0 {
		delete(r.classes, key)
	}
	return out, first
}

// stillHolds reports whether the node is in the state in which it refused.
func (n *refusal) stillHolds(node fwk.NodeInfo, ignore func(types.UID) bool, devices uint64) bool {
	generation := node.GetGeneration()
	switch {
	case n.isNew:
		n.state = nodeStateHash(node, func(uid types.UID) bool { return n.without != nil && n.without(uid) || ignore(uid) })
		n.isNew, n.without, n.valid, n.devices = false, nil, true, devices
	case generation != n.generation:
		n.valid = nodeStateHash(node, ignore) == n.state
	}
	n.generation = generation
	return n.valid && n.devices == devices
}

// nodeStateHash returns a hash of the facts of a node on which a refusal may depend: its pods except those that are
// ignored, and what the filters read of the object.
func nodeStateHash(node fwk.NodeInfo, ignore func(types.UID) bool) uint64 {
	object := node.Node()
	sum := hashOfObjects(object.Name, string(object.UID))
	if object.Spec.Unschedulable {
		sum += hashOfObjects("unschedulable")
	}
	for i := range object.Spec.Taints {
		sum += hashOfObjects("taint", object.Spec.Taints[i].ToString())
	}
	for key, value := range object.Labels {
		sum += hashOfObjects("label", key, value)
	}
	for key, value := range object.Annotations {
		sum += hashOfObjects("annotation", key, value)
	}
	for i := range object.Status.Conditions {
		sum += hashOfObjects("condition", string(object.Status.Conditions[i].Type), string(object.Status.Conditions[i].Status))
	}
	for name, quantity := range object.Status.Allocatable {
		sum += hashOfObjects("allocatable", string(name), quantity.String())
	}
	for _, feature := range object.Status.DeclaredFeatures {
		sum += hashOfObjects("feature", feature)
	}
	for _, p := range node.GetPods() {
		if uid := p.GetPod().UID; !ignore(uid) {
			sum += hashOfObjects("pod", string(uid))
		}
	}
	return sum
}

// devicesOf returns a function that returns a hash of the versions of a node's ResourceSlices. They are read at its
// first call.
func devicesOf(f framework.Framework) func(node string) uint64 {
	var all uint64
	var of map[string]uint64
	return func(node string) uint64 {
		if of != nil {
			return all + of[node]
		}
		of = map[string]uint64{}
		dra := f.SharedDRAManager()
		if dra == nil {
			return 0
		}
		slices, err := dra.ResourceSlices().ListWithDeviceTaintRules()
		if err != nil {
			return 0
		}
		for _, s := range slices {
			sum := hashOfObjects("slice", s.Name, string(s.UID), s.ResourceVersion)
			if s.Spec.NodeName == nil {
				all += sum
			} else {
				of[*s.Spec.NodeName] += sum
			}
		}
		return all + of[node]
	}
}

func hashOfObjects(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// isLimited reports whether as many pods of the class are planned on the node as real cycles accept.
func (w *Snapshot) isLimited(c *class, i int) bool {
	l, ok := c.limits[i]
	if !ok {
		return false
	}
	planned := 0
	for _, pod := range w.nodes.planned[i].pods {
		if pod == c.planned {
			planned++
		}
	}
	return planned >= l.accepted
}

// KnownUntil returns when the first of the refusals that this plan has taken into account expires. Zero: there were
// none.
func (w *Snapshot) KnownUntil() time.Time {
	var first time.Time
	for _, c := range w.classes {
		if until := c.limitsUntil; !until.IsZero() && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	return first
}

// LacksDevices reports whether a node was refused for lack of devices. The filter evaluates this for a single pod,
// without the siblings that are planned on the same node.
func LacksDevices(status *fwk.Status) bool { return status.Plugin() == names.DynamicResources }
