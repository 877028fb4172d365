// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// selectorKeys contains the label keys that affinity terms of pods on nodes can read. They are stored per node, so
// that a plan processes only the nodes that changed.
type selectorKeys struct {
	byNode map[string][]string // sorted; nodes without such pods have no entry
	count  map[string]int      // key -> number of nodes
}

// updateNode processes a node that is new or has changed.
func (s *selectorKeys) updateNode(name string, node fwk.NodeInfo) {
	pods := node.GetPodsWithAffinity()
	old := s.byNode[name]
	if len(pods) == 0 && len(old) == 0 {
		return
	}
	found := map[string]bool{}
	for _, p := range pods {
		addTermKeys(p.GetPod(), found)
	}
	keys := slices.Sorted(maps.Keys(found))
	if slices.Equal(old, keys) {
		return
	}
	if s.byNode == nil {
		s.byNode, s.count = map[string][]string{}, map[string]int{}
	}
	for _, key := range old {
		if s.count[key]--; s.count[key] == 0 {
			delete(s.count, key)
		}
	}
	for _, key := range keys {
		s.count[key]++
	}
	if s.byNode[name] = keys; len(keys) == 0 {
		delete(s.byNode, name)
	}
}

// addTermKeys adds the label keys that the pod's affinity terms can read on any pod.
func addTermKeys(pod *corev1.Pod, keys map[string]bool) {
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return
	}
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms := slices.Clone(required)
		for i := range preferred {
			terms = append(terms, preferred[i].PodAffinityTerm)
		}
		for i := range terms {
			addSelector(terms[i].LabelSelector, keys)
			for _, key := range slices.Concat(terms[i].MatchLabelKeys, terms[i].MismatchLabelKeys) {
				keys[key] = true
			}
		}
	}
	if a := affinity.PodAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func addSelector(selector *metav1.LabelSelector, keys map[string]bool) {
	if selector == nil {
		return
	}
	for key := range selector.MatchLabels {
		keys[key] = true
	}
	for i := range selector.MatchExpressions {
		keys[selector.MatchExpressions[i].Key] = true
	}
}

// spreadLabels adds the label keys that the pod's spread constraints can read.
func spreadLabels(pod *corev1.Pod, keys map[string]bool) {
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		addSelector(c.LabelSelector, keys)
		for _, key := range c.MatchLabelKeys {
			keys[key] = true
		}
	}
}

// Classes are pods grouped into equivalence classes: no filter distinguishes pods of one class.
type Classes struct {
	Of   []int         // by pod: index of its class
	Pods []*corev1.Pod // by class: its first pod
	Size []int         // by class: number of its pods
	// Members are its pods, by class; nil if no pod has PersistentVolumeClaims.
	Members [][]*corev1.Pod
	// SharedClaims and SharedVolumes are the names of the ResourceClaims, and of the PersistentVolumeClaims, that more
	// than one of the pods uses.
	SharedClaims, SharedVolumes sets.Set[string]
}

// Classify groups pods of one namespace. base is, by pod, a number that is equal for pods with equal
// podgroup.ClassKey, which covers everything that the filters read except labels and claims.
//
// A label is relevant only if an existing selector can read it: in an affinity term of a pod on a node of the snapshot
// or of one of the given pods, or in one of their spread constraints. If the profile has hard default constraints, all
// labels are relevant, because the services and controllers that select the pods decide then. A bound claim is relevant
// by the constraints of its volume, one that is not bound by what it asks for; it is identified by its name if several
// of the pods use it, if a pod on a node does, or if a volume was made for it. A claim of devices is relevant by what
// it asks for, or by where its devices are; it is identified by its name if several of the pods use it.
//
// NewSnapshot must be called next with the same nodes, before they change.
//
// Labels that are read only by scores, through services and controllers (the soft default spread), do not separate
// classes: the pods are scored like the first pod of their class. Images do not separate classes either.
func (v *FilterCache) Classify(f framework.Framework, nodes []fwk.NodeInfo, pods []*corev1.Pod, base []int) Classes {
	v.bindProfile(f)
	v.nodes.updateNodes(nodes)
	v.nodes.seen = true
	keys, allLabels, claims, volumes := v.labelsRead(pods, base)

	type identity struct {
		base           int
		labels, claims string
	}
	out := Classes{Of: make([]int, len(pods)), SharedClaims: namesUsedTwice(pods, ResourceClaimsOf), SharedVolumes: sets.New[string]()}
	var byName sets.Set[string]
	if volumes {
		out.SharedVolumes, byName = claimsByName(f, pods)
	}
	index := map[identity]int{}
	var b []byte
	var last identity
	class := -1
	for i, pod := range pods {
		if allLabels {
			keys = slices.Sorted(maps.Keys(pod.Labels))
		}
		b = b[:0]
		for _, key := range keys {
			if value, ok := pod.Labels[key]; ok {
				if allLabels {
					b = append(b, key...)
				}
				b = append(append(b, '='), value...) // an empty value differs from a missing one
			}
			b = append(b, ',') // neither a key nor a value can contain a comma
		}
		claimed := ""
		if claims {
			claimed = v.devicesOf(f, pod, out.SharedClaims)
		}
		if volumes {
			claimed += claimsOf(f, pod, byName)
		}
		if class < 0 || base[i] != last.base || string(b) != last.labels || claimed != last.claims { // mostly equal: no look-up
			last = identity{base[i], string(b), claimed}
			known := false
			if class, known = index[last]; !known {
				class = len(out.Pods)
				index[last] = class
				out.Pods, out.Size, out.Members = append(out.Pods, pod), append(out.Size, 0), append(out.Members, nil)
			}
		}
		if volumes {
			out.Members[class] = append(out.Members[class], pod)
		}
		out.Of[i] = class
		out.Size[class]++
	}
	return out
}

// labelsRead returns the keys of the labels that filters may read, sorted, whether they may read all labels, and
// whether any of the pods has ResourceClaims, or PersistentVolumeClaims.
func (v *FilterCache) labelsRead(pods []*corev1.Pod, base []int) (keys []string, allLabels, claims, volumes bool) {
	read := map[string]bool{}
	for key := range v.nodes.selectors.count {
		read[key] = true
	}
	seen := map[int]bool{} // pods with equal base have equal terms and constraints, and as many claims
	for i, pod := range pods {
		if (i == 0 || base[i] != base[i-1]) && !seen[base[i]] {
			seen[base[i]] = true
			claims = claims || len(pod.Spec.ResourceClaims) > 0
			volumes = volumes || len(volumeClaimNames(pod)) > 0
			addTermKeys(pod, read)
			spreadLabels(pod, read)
			allLabels = allLabels || v.hardSpread && len(pod.Spec.TopologySpreadConstraints) == 0
		}
	}
	return slices.Sorted(maps.Keys(read)), allLabels, claims, volumes
}

// devicesOf describes the pod's ResourceClaims as far as DynamicResources distinguishes them.
func (v *FilterCache) devicesOf(f framework.Framework, pod *corev1.Pod, shared sets.Set[string]) string {
	dra := f.SharedDRAManager()
	if dra == nil || len(pod.Spec.ResourceClaims) == 0 {
		return ""
	}
	out := ""
	for _, name := range ResourceClaimsOf(pod) {
		claim, err := dra.ResourceClaims().Get(pod.Namespace, name)
		switch {
		case err != nil, claim.DeletionTimestamp != nil, shared.Has(name), dra.ResourceClaims().GetPendingAllocation(claim.UID) != nil:
			out += "claim " + name + "\n"
		case claim.Status.Allocation == nil:
			out += v.claimSpecOf(claim) + "\n"
		case !resourceclaim.CanBeReserved(claim), slices.ContainsFunc(claim.Status.Allocation.Devices.Results, isBoundOnCondition):
			out += "claim " + name + "\n"
		default:
			out += "devices on " + claim.Status.Allocation.NodeSelector.String() + "\n"
		}
	}
	return out
}

// keptSpecs is the number of ResourceClaims whose spec is kept.
const keptSpecs = 50_000

// claimSpecOf identifies what a ResourceClaim asks for.
func (v *FilterCache) claimSpecOf(claim *resourcev1.ResourceClaim) string {
	if spec, ok := v.specs[claim.UID]; ok {
		return spec
	}
	data, err := json.Marshal(claim.Spec)
	if err != nil {
		return "claim " + claim.Name
	}
	if v.specs == nil || len(v.specs) >= keptSpecs {
		v.specs = map[types.UID]string{}
	}
	h := fnv.New128a()
	h.Write(data)
	v.specs[claim.UID] = string(h.Sum(nil))
	return v.specs[claim.UID]
}

// isBoundOnCondition reports whether a pod with the device waits until a condition of the device is met.
func isBoundOnCondition(device resourcev1.DeviceRequestAllocationResult) bool {
	return len(device.BindingConditions) > 0
}
