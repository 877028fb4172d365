// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// Dialect is the mark by which pods name a PodGroup, of Muster or of another scheduler.
type Dialect struct {
	// APIVersion is that of the PodGroups.
	APIVersion string
	// Place is where a pod carries the name: "annotation pod-group-name".
	Place string

	// name returns what is in that place.
	name func(pod *corev1.Pod) string
	// prefix is what the name of the PodGroup that is made from the named one begins with. "": pods name that of Muster
	// itself.
	prefix string
}

// CompositeAnnotation is where pods of Kubernetes' own PodGroups that are in a CompositePodGroup name the topmost one:
// muster-controller writes it, since pods name only the PodGroup, which is a leaf then.
const CompositeAnnotation = "scheduling.run.ai/composite-pod-group"

// AnnotationTask is where pods of Volcano name their task, which is a leaf.
const AnnotationTask = "volcano.sh/task-spec"

// OtherSchedulers are those whose pods name PodGroups of these dialects, by default.
func OtherSchedulers() []string {
	return []string{"default-scheduler", "volcano", "scheduler-plugins-scheduler"}
}

const (
	labelCoscheduling = "scheduling.x-k8s.io/pod-group"
	// Volcano reads both annotations, and the first one first.
	annotationVolcano      = "scheduling.k8s.io/group-name"
	annotationVolcanoAlias = "scheduling.volcano.sh/group-name"

	volcano = "scheduling.volcano.sh/v1beta1"

	// NativeGroup is the API group of the PodGroups and CompositePodGroups of Kubernetes itself.
	NativeGroup = "scheduling.k8s.io"
	native      = NativeGroup + "/v1beta1"
	placeNative = "field spec.schedulingGroup.podGroupName"
)

var (
	muster = Dialect{v2alpha2.SchemeGroupVersion.String(), "annotation " + v2alpha2.PodGroupAnnotation, annotated(v2alpha2.PodGroupAnnotation), ""}

	// Coscheduling is the dialect of that plugin of kube-scheduler.
	Coscheduling = Dialect{"scheduling.x-k8s.io/v1alpha1", "label " + labelCoscheduling, labelled(labelCoscheduling), "coscheduling"}

	// Volcano is the dialect of that scheduler.
	Volcano      = Dialect{volcano, "annotation " + annotationVolcano, annotated(annotationVolcano), "volcano"}
	volcanoAlias = Dialect{volcano, "annotation " + annotationVolcanoAlias, annotated(annotationVolcanoAlias), Volcano.prefix}

	// Native is the dialect of Kubernetes itself, whatever version of it is served.
	Native = Dialect{native, placeNative, nativeName(false), "kubernetes"}

	// nativeOfJob is the same of pods of a Job for which the Job controller has made the PodGroup: no user has asked
	// for that gang. Every other mark precedes it.
	nativeOfJob = Dialect{native, placeNative, nativeName(true), Native.prefix}

	// composite is the prefix of the PodGroups that are made from CompositePodGroups.
	composite = Dialect{prefix: "composite"}

	// named are the dialects of pods that were written to name a PodGroup, in the order of precedence.
	named    = []Dialect{muster, Native, Coscheduling, Volcano, volcanoAlias}
	dialects = append(slices.Clone(named), nativeOfJob)

	// Annotations are those of pods that determine their gang and leaf.
	Annotations = []string{v2alpha2.PodGroupAnnotation, CompositeAnnotation, annotationVolcano, annotationVolcanoAlias, AnnotationTask,
		v2alpha2.MinMemberKey, annotationKAI, v2alpha2.GangKey, jobSetExclusiveTopology, jobSetNodeSelector, completionIndex}
)

func annotated(key string) func(pod *corev1.Pod) string {
	return func(pod *corev1.Pod) string { return pod.Annotations[key] }
}

func labelled(key string) func(pod *corev1.Pod) string {
	return func(pod *corev1.Pod) string { return pod.Labels[key] }
}

// nativeName returns a function for Dialect.name, of pods for whose Job the PodGroup was made, or of all others.
func nativeName(ofJob bool) func(pod *corev1.Pod) string {
	return func(pod *corev1.Pod) string {
		group := pod.Spec.SchedulingGroup
		if group == nil || group.PodGroupName == nil || isMadeForJob(pod, *group.PodGroupName) != ofJob {
			return ""
		}
		return *group.PodGroupName
	}
}

// isMadeForJob reports whether the Job controller has made a PodGroup for the Job of the pod, by its name,
// JOB-HASH-JOB-pgt-0-HASH: nothing else of the pod tells. (In Kubernetes 1.37 the Job controller means the PodGroup to
// own the pod too, and that is lost.)
func isMadeForJob(pod *corev1.Pod, podGroup string) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	return ref != nil && ref.Kind == "Job" && strings.HasPrefix(podGroup, ref.Name+"-") && strings.Contains(podGroup, "-"+ref.Name+"-pgt-0-")
}

// CompositeGroupName returns the name of the PodGroup that is made from a topmost CompositePodGroup.
func CompositeGroupName(name string) string { return composite.GroupName(name) }

// maxLeaf is the maximum length of the name of a sub-group.
const maxLeaf = 63

// NativeLeaf returns the name of the leaf that is made from a PodGroup of Kubernetes in a CompositePodGroup. A long one
// ends in a hash of it.
func NativeLeaf(podGroup string) string { return shorten(podGroup, maxLeaf) }

// GroupName returns the name of Muster's PodGroup for one of the dialect: that itself, or the one that is made from it.
// It has no UID in it, because pods name none.
func (d Dialect) GroupName(name string) string {
	if d.prefix == "" {
		return name
	}
	return Workload{Kind: d.prefix, Name: name}.GroupName()
}

func (d Dialect) mark() mark {
	return mark{d.Place, func(pod *corev1.Pod) string {
		name := d.name(pod)
		switch {
		case name == "" || d.prefix != "" && OptsOut(pod.Labels, pod.Annotations):
			return ""
		case d.APIVersion == native && pod.Annotations[CompositeAnnotation] != "":
			return CompositeGroupName(pod.Annotations[CompositeAnnotation])
		}
		return d.GroupName(name)
	}}
}

func marksOf(dialects ...Dialect) []mark {
	all := make([]mark, 0, len(dialects))
	for _, d := range dialects {
		all = append(all, d.mark())
	}
	return all
}

// NamesGroup reports whether pods like this one name their PodGroup, so that none is made for their workload.
func NamesGroup(pod *corev1.Pod) bool {
	return slices.ContainsFunc(named, func(d Dialect) bool { return d.name(pod) != "" })
}

// NamedBy returns the dialect by which a pod that is in a gang names its PodGroup, and the name. ok is false if the
// workload of the pod determines the gang.
func NamedBy(pod *corev1.Pod) (d Dialect, name string, ok bool) {
	place := Mark(pod)
	i := slices.IndexFunc(dialects, func(d Dialect) bool { return d.Place == place && d.name(pod) != "" })
	if i < 0 {
		return Dialect{}, "", false
	}
	return dialects[i], dialects[i].name(pod), true
}

// Name is the name of a PodGroup in a place of a pod.
type Name struct{ Place, Name string }

// Contradiction returns two different names of PodGroups that a pod has in two places, nil if there are none. Of equal
// names the first one counts, as of all marks.
func Contradiction(pod *corev1.Pod) []Name {
	first := Name{}
	for _, d := range named {
		name := d.name(pod)
		switch {
		case name == "" || name == first.Name || d.prefix != "" && OptsOut(pod.Labels, pod.Annotations):
		case first.Name == "":
			first = Name{d.Place, name}
		default:
			return []Name{first, {d.Place, name}}
		}
	}
	return nil
}

// DialectOf returns the dialect of the PodGroups of an API group, that of Muster if there is none.
func DialectOf(apiGroup string) Dialect {
	i := slices.IndexFunc(dialects, func(d Dialect) bool { return strings.HasPrefix(d.APIVersion, apiGroup+"/") })
	return dialects[max(i, 0)]
}
