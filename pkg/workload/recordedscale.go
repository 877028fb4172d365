// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

// maxRecorded is the maximum number of entries in status.recordedReplicas of a set.
const maxRecorded = 1024

// scale is the size that a child is created with: its replicas, and the replicas of its template when it was first
// created.
type scale struct{ replicas, initial int32 }

func templateScale(replicas int32) scale { return scale{replicas, replicas} }

// recordedScale returns the scale with which the child with the given template name in replica i of a set is created:
// the scale before its deletion, if the set's status records it, otherwise that of the template. Of a child that exists
// the record is not looked for, because its own scale applies, and the record may be long. Source: docs/decisions, W1,
// W2.
func recordedScale(set *v1alpha1.PodCliqueSet, i int, name string, template int32, exists bool) scale {
	if exists {
		return templateScale(template)
	}
	for _, r := range set.Status.RecordedReplicas {
		if r.Name == name && lifecycle.ParseIndices(r.Indices).Has(i) {
			return scale{r.Replicas, ptr.Deref(r.InitialReplicas, template)}
		}
	}
	return templateScale(template)
}

// RecordedReplicas returns the value of status.recordedReplicas of a set: the scale of every standalone PodClique and
// scaling group that was scaled to a number that differs from its template. A child that does not exist keeps its
// recorded scale as long as its replica exists, and is created with it. nil as long as no child has been scaled. At
// most maxRecorded different scales are recorded, those of the lowest replicas of the set. Source: docs/decisions, W2.
func RecordedReplicas(set *v1alpha1.PodCliqueSet, live Children) []v1alpha1.RecordedReplicas {
	type key struct {
		name string
		scale
		group bool
	}
	indices := map[key][]int{}
	var keys []key // in the order of their first occurrence
	record := func(k key, i int) {
		if indices[k] == nil {
			if len(keys) == maxRecorded {
				return
			}
			keys = append(keys, k)
		}
		indices[k] = append(indices[k], i)
	}
	template := &set.Spec.Template
	for i := range int(max(set.Spec.Replicas, 0)) {
		for _, t := range template.StandaloneCliques() {
			if c := live.Cliques[naming.PodCliqueName(set.Name, i, t.Name)]; c == nil {
				if s := recordedScale(set, i, t.Name, t.Spec.Replicas, false); s.replicas != t.Spec.Replicas {
					record(key{name: t.Name, scale: s}, i)
				}
			} else if TemplateReplicas(c) != c.Spec.Replicas {
				record(key{name: t.Name, scale: scale{c.Spec.Replicas, Minimum(c).AtCreation}}, i)
			}
		}
		for k := range template.PodCliqueScalingGroupConfigs {
			config := &template.PodCliqueScalingGroupConfigs[k]
			if g := live.Groups[naming.ScalingGroup(set.Name, i, config.Name)]; g == nil {
				if s := recordedScale(set, i, config.Name, groupReplicas(config), false); s.replicas != groupReplicas(config) {
					record(key{name: config.Name, scale: scale{replicas: s.replicas}, group: true}, i)
				}
			} else if TemplateReplicas(g) != g.Spec.Replicas {
				record(key{name: config.Name, scale: scale{replicas: g.Spec.Replicas}, group: true}, i)
			}
		}
	}
	var recorded []v1alpha1.RecordedReplicas
	for _, k := range keys {
		r := v1alpha1.RecordedReplicas{Name: k.name, Indices: lifecycle.Indices(indices[k]...).String(), Replicas: k.replicas}
		if !k.group {
			r.InitialReplicas = &k.initial
		}
		recorded = append(recorded, r)
	}
	slices.SortStableFunc(recorded, func(a, b v1alpha1.RecordedReplicas) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Replicas, b.Replicas))
	})
	return recorded
}

// Minimum returns the facts that decide how many pods of a PodClique must run together. If the annotation with the
// replicas at creation was removed, the current replicas are used instead.
func Minimum(clique *v1alpha1.PodClique) lifecycle.Minimum {
	return lifecycle.Minimum{
		Explicit:   clique.Spec.MinAvailable,
		AtCreation: replicasAnnotation(clique.Annotations, v1alpha1.AnnotationInitialReplicas, clique.Spec.Replicas),
		Replicas:   clique.Spec.Replicas,
		Recorded:   clique.Status.MinAvailable,
	}
}

// TemplateReplicas returns the replicas that the template last set on a PodClique or PodCliqueScalingGroup; -1 if the
// annotation is missing. As long as they equal spec.replicas, the object has not been scaled (docs/decisions, W2).
func TemplateReplicas(object metav1.Object) int32 {
	return replicasAnnotation(object.GetAnnotations(), v1alpha1.AnnotationTemplateReplicas, -1)
}

func replicasAnnotation(annotations map[string]string, key string, otherwise int32) int32 {
	n, err := strconv.ParseInt(annotations[key], 10, 32)
	if err != nil || n < 0 {
		return otherwise
	}
	return int32(n)
}

// groupReplicas returns the replicas of a scaling group according to its template.
func groupReplicas(config *v1alpha1.PodCliqueScalingGroupConfig) int32 {
	return ptr.Deref(config.Replicas, 1)
}

// followTemplate returns the replicas of an existing child: those of the template as long as the child has not been
// scaled, that is, as long as its replicas equal those that the template last set; otherwise its own. It adds the
// replicas of the template to annotations.
func followTemplate(annotations map[string]string, own, given, template int32) int32 {
	if own == given {
		annotations[v1alpha1.AnnotationTemplateReplicas] = text(template)
		return template
	}
	return own
}
