// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// Dialect is the mark by which pods name a PodGroup, of Muster or of another scheduler.
type Dialect struct {
	// APIVersion is that of the PodGroups.
	APIVersion string
	// Place is where a pod carries the name: "annotation pod-group-name".
	Place string

	// name returns what is in that place.
	name func(labels, annotations map[string]string) string
	// prefix is what the name of the PodGroup that is made from the named one begins with. "": pods name that of Muster itself.
	prefix string
}

// AnnotationTask is where pods of Volcano name their task, which is a leaf.
const AnnotationTask = "volcano.sh/task-spec"

const (
	labelCoscheduling = "scheduling.x-k8s.io/pod-group"
	// Volcano reads both annotations, and the first one first.
	annotationVolcano      = "scheduling.k8s.io/group-name"
	annotationVolcanoAlias = "scheduling.volcano.sh/group-name"

	volcano = "scheduling.volcano.sh/v1beta1"
)

var (
	muster = Dialect{v2alpha2.SchemeGroupVersion.String(), "annotation " + v2alpha2.PodGroupAnnotation, annotated(v2alpha2.PodGroupAnnotation), ""}

	// Coscheduling is the dialect of that plugin of kube-scheduler.
	Coscheduling = Dialect{"scheduling.x-k8s.io/v1alpha1", "label " + labelCoscheduling, labelled(labelCoscheduling), "coscheduling"}

	// Volcano is the dialect of that scheduler.
	Volcano      = Dialect{volcano, "annotation " + annotationVolcano, annotated(annotationVolcano), "volcano"}
	volcanoAlias = Dialect{volcano, "annotation " + annotationVolcanoAlias, annotated(annotationVolcanoAlias), Volcano.prefix}

	// dialects are in the order of precedence.
	dialects = []Dialect{muster, Coscheduling, Volcano, volcanoAlias}

	// Annotations are those of pods that determine their gang and leaf.
	Annotations = []string{v2alpha2.PodGroupAnnotation, annotationVolcano, annotationVolcanoAlias, AnnotationTask, v2alpha2.MinMemberKey, annotationKAI, v2alpha2.GangKey,
		jobSetExclusiveTopology, jobSetNodeSelector, completionIndex}
)

func annotated(key string) func(labels, annotations map[string]string) string {
	return func(_, annotations map[string]string) string { return annotations[key] }
}

func labelled(key string) func(labels, annotations map[string]string) string {
	return func(labels, _ map[string]string) string { return labels[key] }
}

// GroupName returns the name of Muster's PodGroup for one of the dialect: that itself, or the one that is made from it. It has
// no UID in it, because pods name none.
func (d Dialect) GroupName(name string) string {
	if d.prefix == "" {
		return name
	}
	return Workload{Kind: d.prefix, Name: name}.GroupName()
}

func (d Dialect) mark() mark {
	return mark{d.Place, func(pod *corev1.Pod) string {
		name := d.name(pod.Labels, pod.Annotations)
		if name == "" || d.prefix != "" && OptsOut(pod.Labels, pod.Annotations) {
			return ""
		}
		return d.GroupName(name)
	}}
}

func marksOfDialects() []mark {
	all := make([]mark, 0, len(dialects))
	for _, d := range dialects {
		all = append(all, d.mark())
	}
	return all
}

// NamesGroup reports whether pods with these labels and annotations name their PodGroup, so that none is made for their workload.
func NamesGroup(labels, annotations map[string]string) bool {
	return slices.ContainsFunc(dialects, func(d Dialect) bool { return d.name(labels, annotations) != "" })
}

// NamedBy returns the dialect by which a pod that is in a gang names its PodGroup, and the name. ok is false if the workload of
// the pod determines the gang.
func NamedBy(pod *corev1.Pod) (d Dialect, name string, ok bool) {
	place := Mark(pod)
	i := slices.IndexFunc(dialects, func(d Dialect) bool { return d.Place == place })
	if i < 0 {
		return Dialect{}, "", false
	}
	return dialects[i], dialects[i].name(pod.Labels, pod.Annotations), true
}

// Name is the name of a PodGroup in a place of a pod.
type Name struct{ Place, Name string }

// Contradiction returns two different names of PodGroups that a pod has in two places, nil if there are none. Of equal names
// the first one counts, as of all marks.
func Contradiction(pod *corev1.Pod) []Name {
	first := Name{}
	for _, d := range dialects {
		name := d.name(pod.Labels, pod.Annotations)
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
