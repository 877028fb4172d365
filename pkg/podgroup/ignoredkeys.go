// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// otherKey is a label or annotation of pods that another scheduler or controller obeys, and Muster does not.
type otherKey struct {
	label bool // false: an annotation
	key   string
	pods  concern
	// effect says what happens to such pods, and what to write instead.
	effect string
}

// concern says which pods with a key are told about it.
type concern int

const (
	// namesGang: those that are in no gang. The value is the name of the gang, which is harmless on a pod that names
	// its PodGroup as Muster reads it.
	namesGang concern = iota
	// ofGang: those that are in a gang whose PodGroup is not made for them.
	ofGang
	// unmarked: all but those whose gang muster-controller makes of the pod template that has the key.
	unmarked
	// allPods: all of them.
	allPods
)

const (
	nameThePodGroup         = "without annotation " + v2alpha2.PodGroupAnnotation + " each pod starts alone: write a PodGroup, and name it by this annotation"
	noQueues                = "Muster has no queues: limit namespaces with a ResourceQuota, or admit the workload with Kueue"
	noGPUShares             = "it would get none, and waits: request whole GPUs, or a resource that the device plugin offers for shares"
	useAffinity             = "the pods are placed without it: write it on the JobSet, LeaderWorkerSet or RayCluster itself, set topologyConstraint of the PodGroup, or use required pod affinity with the topology key"
	jobSetExclusiveTopology = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	jobSetNodeSelector      = "alpha.jobset.sigs.k8s.io/node-selector"

	leaderDeadlock = "workers are made only when their leader is bound, and a gang starts only when all its pods exist: remove it, and use required pod affinity with the topology key"
)

// otherKeys are listed in docs/workloads.md; a test compares the two.
var otherKeys = []otherKey{
	{true, v2alpha2.PodGroupAnnotation, namesGang, "a label names no PodGroup: make it an annotation"},
	{false, "kai.scheduler/pod-group-name", namesGang, "the annotation that names a PodGroup is " + v2alpha2.PodGroupAnnotation},
	{true, "kai.scheduler/pod-group-name", namesGang, "the annotation that names a PodGroup is " + v2alpha2.PodGroupAnnotation},
	{true, "pod-group.scheduling.sigs.k8s.io", namesGang, nameThePodGroup},
	{true, "pod-group.scheduling.sigs.k8s.io/name", namesGang, nameThePodGroup},
	{false, "gang.scheduling.koordinator.sh/name", namesGang, nameThePodGroup},
	{true, "kueue.x-k8s.io/pod-group-name", namesGang, "Kueue admits the pods together, but " + nameThePodGroup},
	{false, v2alpha2.SubGroupLabel, allPods, "an annotation names no sub-group: make it a label"},
	{false, "gpu-fraction", allPods, noGPUShares},
	{false, "gpu-memory", allPods, noGPUShares},
	{true, "kai.scheduler/queue", allPods, noQueues},
	{true, "runai/queue", allPods, noQueues},
	{false, "scheduling.volcano.sh/queue-name", allPods, noQueues},
	{false, "kai.scheduler/topology", unmarked, useAffinity},
	{false, "kai.scheduler/topology-required-placement", unmarked, useAffinity},
	{false, "kai.scheduler/topology-preferred-placement", unmarked, useAffinity},
	{true, "kai.scheduler/preemptibility", unmarked, "the PodGroup alone says it: set its preemptibility, or write it on the JobSet, LeaderWorkerSet or RayCluster itself"},
	{false, jobSetExclusiveTopology, ofGang, leaderDeadlock},
	{false, "leaderworkerset.sigs.k8s.io/exclusive-topology", ofGang, leaderDeadlock},
}

func (k otherKey) keyPlace() string {
	if k.label {
		return "label " + k.key
	}
	return "annotation " + k.key
}

func (k otherKey) concernsPod(inGang, made, marked bool) bool {
	switch k.pods {
	case unmarked:
		return !marked
	case namesGang:
		return !inGang
	case ofGang:
		return inGang && !made
	}
	return true
}

// valueIn returns the pod's value of the key, "" if it has none.
func (k otherKey) valueIn(pod *corev1.Pod) string {
	if k.label {
		return pod.Labels[k.key]
	}
	return pod.Annotations[k.key]
}

// GangNamedOtherwise returns the gang that the pod names for another scheduler, or for Muster in the wrong place, and
// where. group "": the pod names none.
func GangNamedOtherwise(pod *corev1.Pod) (group, where string) {
	for _, k := range otherKeys {
		if group := k.valueIn(pod); k.pods == namesGang && group != "" {
			return group, k.keyPlace()
		}
	}
	return "", ""
}

// IgnoredKeys describes the labels and annotations of a pod of this scheduler that have no effect, although the pod
// needs what they ask for: those of other schedulers, and those that look like a misspelled name of a PodGroup. "":
// there are none.
func IgnoredKeys(pod *corev1.Pod) string {
	if pod.Annotations[jobSetNodeSelector] != "" {
		// With this strategy JobSet makes all pods at once, with a node selector, which Muster obeys.
		pod = pod.DeepCopy()
		delete(pod.Annotations, jobSetExclusiveTopology)
	}
	inGang := membership.Group(pod) != ""
	_, made := membership.WorkloadOf(pod)
	marked := membership.IsMarked(pod)
	var wheres, effects []string // effects[i] belongs to wheres[i]
	for _, k := range otherKeys {
		if k.valueIn(pod) != "" && k.concernsPod(inGang, made, marked) {
			wheres, effects = append(wheres, k.keyPlace()), append(effects, k.effect)
		}
	}
	if !inGang {
		for kind, keys := range map[string]map[string]string{"label": pod.Labels, "annotation": pod.Annotations} {
			for key := range keys {
				if effect := misspelling(kind, key); effect != "" {
					wheres, effects = append(wheres, kind+" "+message.Truncate(key, maxShown)), append(effects, effect)
				}
			}
		}
		if mark := membership.Left(pod); mark != "" {
			wheres, effects = append(wheres, mark), append(effects, startsAlone)
		}
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && !membership.OptsOut(pod.Labels, pod.Annotations) {
			if group, _, _ := strings.Cut(owner.APIVersion, "/"); slices.Contains(gangKinds, group) {
				wheres, effects = append(wheres, "owner "+message.Truncate(owner.Kind, maxShown)), append(effects, nameThePodGroup)
			}
		}
	}
	byEffect := map[string][]string{}
	for i, effect := range effects {
		byEffect[effect] = append(byEffect[effect], wheres[i])
	}
	parts := make([]string, 0, len(byEffect))
	for effect, found := range byEffect {
		slices.Sort(found)
		parts = append(parts, message.ListNames(found, maxShownKeys, len(found), ", ")+": "+effect)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// maxShownKeys is the maximum number of keys in a clause of a message.
const maxShownKeys = 4

// gangKinds are the API groups of kinds whose pods belong together, and for which no PodGroups are made.
var gangKinds = []string{"kubeflow.org", "batch.volcano.sh"}

const startsAlone = "each pod starts alone, because muster-scheduler runs without --workload-gangs: set it where muster-controller runs, or label the pod template " +
	v2alpha2.GangKey + ": \"false\" to say that this is meant"

// written are the marks that misspelling compares keys with.
var written = membership.Written()

func indefinite(kind string) string {
	if kind == "label" {
		return "a label"
	}
	return "an annotation"
}

// misspelling returns what to write instead of a key, a "label" or an "annotation", that looks like a mark but is none.
// "": it does not.
func misspelling(kind, key string) string {
	if isMisspelled(key) {
		return "the annotation that names a PodGroup is " + v2alpha2.PodGroupAnnotation
	}
	if slices.Contains(written, kind+" "+key) {
		return ""
	}
	effect := ""
	for _, place := range written {
		other, mark, _ := strings.Cut(place, " ")
		switch {
		case mark == key && other != kind:
			return "as " + indefinite(kind) + " it has no effect: make it " + indefinite(other)
		case strings.EqualFold(mark, key) || len(key) > 1 && isOneEditAway(key, mark):
			effect = "did you mean " + place + "?"
		}
	}
	return effect
}

// isMisspelled reports whether a key without a prefix looks like the annotation that names a PodGroup, written
// otherwise: with other separators or letters in upper case, without "name", or with one wrong, missing or additional
// letter.
func isMisspelled(key string) bool {
	if key == v2alpha2.PodGroupAnnotation || len(key) < len("podgroup") || len(key) > len(v2alpha2.PodGroupAnnotation)+1 {
		return false
	}
	plain := strings.ToLower(separators.Replace(key))
	return plain == "podgroup" || isOneEditAway(plain, "podgroupname")
}

var separators = strings.NewReplacer("-", "", "_", "", ".", "")

// isOneEditAway reports whether at most one letter must be replaced, inserted or removed to make a from b.
func isOneEditAway(a, b string) bool {
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	a, b = a[start:], b[start:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1
}
