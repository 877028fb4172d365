// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// queueKeys are labels and annotations that name queues of other schedulers.
var queueKeys = []string{"kai.scheduler/queue", "scheduling.grove.io/volcano-queue"}

// overwritten are labels and annotations, besides those of grove.io, that muster-controller sets on pods.
var overwritten = []string{
	v1alpha1.LabelManagedBy, v1alpha1.LabelPartOf, v1alpha1.LabelName, v1alpha1.LabelComponent,
	v2alpha2.PodGroupAnnotation, v2alpha2.SubGroupLabel,
}

// fieldWarnings returns warnings about fields that are accepted but have no effect: one line for each kind of warning, with
// the first path and the number of further ones.
func fieldWarnings(pcs *v1alpha1.PodCliqueSet) []string {
	w := &warner{training: pcs.Spec.IsTraining(), kinds: map[string]int{}}
	template := &pcs.Spec.Template
	if pcs.Spec.IsOnDelete() && w.training {
		w.warn(strategyPath, "has no effect: the template of a Training workload is immutable")
	}
	if s := pcs.Spec.UpdateStrategy; s != nil && s.RollingRecreate != nil && w.training {
		w.warn(rollingPath, "has no effect: the template of a Training workload is immutable")
	}
	w.warnKeys(field.NewPath("metadata", "labels"), pcs.Labels)
	w.warnKeys(field.NewPath("metadata", "annotations"), pcs.Annotations)
	if len(template.ResourceClaimTemplates) > 0 {
		w.warn(templatePath.Child("resourceClaimTemplates"), warnClaims)
	}
	w.warnSharing(templatePath, len(template.ResourceSharing))
	for i, clique := range template.Cliques {
		if clique != nil {
			w.warnClique(cliquesPath.Index(i), clique, template)
		}
	}
	for i, group := range template.PodCliqueScalingGroupConfigs {
		path := groupsPath.Index(i)
		w.warnMinReadySeconds(path, group.MinReadySeconds)
		w.warnSharing(path, len(group.ResourceSharing))
		w.warnKeys(path.Child("annotations"), group.Annotations)
	}
	return w.lines()
}

// warner collects warnings about a PodCliqueSet.
type warner struct {
	training bool
	kinds    map[string]int // text -> index in texts
	texts    []string
	places   [][]string // by text: paths
}

const warnClaims = "stored, but has no effect: pods get no shared ResourceClaims; use resourceClaims of the pod"

func (w *warner) warn(path *field.Path, text string) {
	at, known := w.kinds[text]
	if !known {
		at = len(w.places)
		w.kinds[text] = at
		w.places, w.texts = append(w.places, nil), append(w.texts, text)
	}
	w.places[at] = append(w.places[at], path.String())
}

// lines returns the warnings, each with its first path and the number of further ones, in the order of their first paths.
func (w *warner) lines() []string {
	var lines []string
	for i, text := range w.texts {
		lines = append(lines, firstPaths(w.places[i][0], len(w.places[i])-1)+": "+text)
	}
	return lines
}

func (w *warner) warnMinReadySeconds(path *field.Path, seconds int32) {
	if seconds != 0 && w.training {
		w.warn(path.Child("minReadySeconds"), "has no effect: pods of a Training workload are available while they run")
	}
}

func (w *warner) warnSharing(path *field.Path, claims int) {
	if claims > 0 {
		w.warn(path.Child("resourceSharing"), warnClaims)
	}
}

func (w *warner) warnKeys(path *field.Path, keys map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch {
		case slices.Contains(queueKeys, key):
			w.warn(path.Key(key), "stored, but has no effect: there are no queues with quota")
		case key == v1alpha1.AnnotationMNNVLGroup && keys[key] != "none":
			w.warn(path.Key(key), "stored, but has no effect: no ComputeDomains are made")
		}
	}
}

func (w *warner) warnClique(path *field.Path, clique *v1alpha1.PodCliqueTemplateSpec, template *v1alpha1.PodCliqueSetTemplateSpec) {
	w.warnSharing(path, len(clique.ResourceSharing))
	for _, meta := range []struct {
		path *field.Path
		keys map[string]string
	}{{path.Child("labels"), clique.Labels}, {path.Child("annotations"), clique.Annotations}} {
		w.warnKeys(meta.path, meta.keys)
		for _, key := range slices.Sorted(maps.Keys(meta.keys)) {
			if slices.Contains(overwritten, key) || strings.HasPrefix(key, "grove.io/") && key != v1alpha1.AnnotationMNNVLGroup {
				w.warn(meta.path.Key(key), "is reserved for muster-controller, which replaces the value where it needs the key")
			}
		}
	}
	w.warnMinReadySeconds(path.Child("spec"), clique.Spec.MinReadySeconds)
	if len(clique.Spec.StartsAfter) > 0 && *template.StartupType != v1alpha1.CliqueStartupTypeExplicit {
		w.warn(path.Child("spec", "startsAfter"), fmt.Sprintf("has no effect: cliqueStartupType is %s, startsAfter is for %s", *template.StartupType, v1alpha1.CliqueStartupTypeExplicit))
	}
	pod, path := &clique.Spec.PodSpec, path.Child("spec", "podSpec")
	if !w.training && pod.RestartPolicy != corev1.RestartPolicyAlways {
		w.warn(path.Child("restartPolicy"), "a pod that ends is deleted and replaced, also one that succeeded")
	}
	if all := template.PriorityClassName; all != "" && pod.PriorityClassName != "" && pod.PriorityClassName != all {
		w.warn(path.Child("priorityClassName"), fmt.Sprintf("is replaced by that of the template, %q: a gang has one priority", all))
	}
	if pod.Hostname != "" {
		w.warn(path.Child("hostname"), "is replaced: pods of a clique have hostnames with their indices")
	}
	if pod.Subdomain != "" {
		w.warn(path.Child("subdomain"), "is replaced by the name of the headless Service")
	}
}

// kaiScheduler is the name of KAI Scheduler, for which manifests may have been written that a profile of muster-scheduler
// serves (docs/decisions, W5).
const kaiScheduler = "kai-scheduler"

// SchedulerWarnings returns warnings about schedulers that the pods of a PodCliqueSet name and that may not exist, or do
// not schedule gangs: one for each name, with the first path. configured is the scheduler of pods that name none, ""
// means v1alpha1.DefaultSchedulerName. Which schedulers and profiles run is not known here. old is the previous version of
// the object, whose names cause no warning; nil for a new one.
func SchedulerWarnings(pcs, old *v1alpha1.PodCliqueSet, configured string) []string {
	configured = cmp.Or(configured, v1alpha1.DefaultSchedulerName)
	known := []string{"", configured, v1alpha1.DefaultSchedulerName, kaiScheduler}
	if old != nil {
		for _, clique := range old.Spec.Template.Cliques {
			if clique != nil {
				known = append(known, clique.Spec.PodSpec.SchedulerName)
			}
		}
	}
	w := &warner{kinds: map[string]int{}}
	for i, clique := range pcs.Spec.Template.Cliques {
		if clique == nil || slices.Contains(known, clique.Spec.PodSpec.SchedulerName) {
			continue
		}
		name := clique.Spec.PodSpec.SchedulerName
		text := fmt.Sprintf("muster-controller was configured with %q; the pods wait forever unless a scheduler, or a profile of muster-scheduler, of this name runs", configured)
		if name == corev1.DefaultSchedulerName {
			text = fmt.Sprintf("the pods are scheduled one by one, not as a gang, unless a profile of muster-scheduler has this name; leave it out for %q", configured)
		}
		w.warn(cliquesPath.Index(i).Child("spec", "podSpec", "schedulerName"), fmt.Sprintf("%q: %s", name, text))
	}
	return w.lines()
}

// firstPaths returns the first of several paths, with the number of the others.
func firstPaths(place string, others int) string {
	if others == 0 {
		return place
	}
	return fmt.Sprintf("%s (and %d more)", place, others)
}
