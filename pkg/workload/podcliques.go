// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

// PodCliques returns the standalone PodCliques of replica i of a set, in the order of the template that r is the
// revision of. live are the existing ones, by name: they keep their replicas once they have been scaled. The caller
// creates a missing PodClique as returned, and applies an existing one with Updated. hold is the previous revision if
// the update in progress has not reached the replica, otherwise nil.
func PodCliques(set *v1alpha1.PodCliqueSet, r *Revision, i int, live map[string]*v1alpha1.PodClique, hold *Hold) []*v1alpha1.PodClique {
	template := &set.Spec.Template
	var cliques []*v1alpha1.PodClique
	for _, t := range template.StandaloneCliques() {
		name := naming.PodCliqueName(set.Name, i, t.Name)
		labels := naming.PodCliqueLabels(set.Name, i, t.Name)
		requirements := StartOrder(template).Requirements(set.Name, i, t.Name, -1)
		isKept := r.isOld(live[name]) && hold.keeps(live[name])
		from, follows, t := hold.sourceOf(set, r, t, live[name], isKept)
		c := podClique(from, t, requirements, recordedScale(set, i, t.Name, t.Spec.Replicas, live[name] != nil), live[name])
		withTerminationDelay(c.Annotations, BreachDelay(set, ""))
		withAttempt(c.Annotations, v1alpha1.AnnotationPodCliqueSetAttempt, attemptFor(live[name], SetAttempt(set, i)).Set)
		c.ObjectMeta = objectMeta(set, v1alpha1.KindPodCliqueSet, name, withTemplate(t.Labels, labels), c.Annotations)
		if isKept {
			keepRevision(c, live[name], HasTurn(live[name]))
			isEarly := FollowedHash(live[name]) != GenerationHash(live[name])
			if CliqueProgress(live[name]).Open() || isEarly && keepsScaledOut(set, i) { // what is no longer wanted goes no further
				c.Annotations[v1alpha1.AnnotationUpdatePaused] = "true"
			}
		} else {
			follows.applyTo(set, c, t, follows == r && r.hasTurn(set, i, live[name]), live[name])
			if set.Spec.IsPaused() && IsCurrentlyUpdating(set, i) || r.holdsScaledOut(set, i, live[name]) {
				c.Annotations[v1alpha1.AnnotationUpdatePaused] = "true"
			}
		}
		cliques = append(cliques, c)
	}
	return cliques
}

// MemberPodCliques returns the PodCliques of replica j of a scaling group, in the order of its cliqueNames, owned by
// the group; see PodCliques. set must have the template of the revision, Revision.Template. Existing PodCliques with
// another template keep it, because the replica is replaced as a whole, except under OnDelete. nil if the labels of the
// group do not identify it. suspends: an update of the group suspends the judgement of their minima.
func MemberPodCliques(set *v1alpha1.PodCliqueSet, r *Revision, group *v1alpha1.PodCliqueScalingGroup, j int, live map[string]*v1alpha1.PodClique, hold *Hold, suspends bool) []*v1alpha1.PodClique {
	template := &set.Spec.Template
	i, config := naming.LabelIndex(group.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex), group.Labels[v1alpha1.LabelTemplateName]
	if i < 0 || config == "" || naming.ScalingGroup(set.Name, i, config) != group.Name {
		return nil
	}
	pods := int32(0)
	for _, name := range group.Spec.CliqueNames {
		if t := template.Clique(name); t != nil {
			pods += t.Spec.Replicas
		}
	}
	minAvailable := int(lifecycle.GroupMinimum(group.Spec.MinAvailable, 1)) // the names do not depend on whether the group is scaled to zero
	var cliques []*v1alpha1.PodClique
	for _, clique := range group.Spec.CliqueNames {
		t := template.Clique(clique)
		if t == nil {
			continue
		}
		name := naming.MemberPodClique(set.Name, i, config, j, clique)
		labels := naming.MemberLabels(set.Name, i, config, j, minAvailable, clique)
		requirements := StartOrder(template).Requirements(set.Name, i, clique, j)
		isKept := !set.Spec.IsOnDelete() && !set.Spec.IsTraining() && r.isOld(live[name])
		from, follows, t := hold.sourceOf(set, r, t, live[name], isKept)
		c := podClique(from, t, requirements, templateScale(t.Spec.Replicas), live[name])
		withTerminationDelay(c.Annotations, BreachDelay(set, config))
		attempt := attemptFor(live[name], GroupAttempt(group, j))
		withAttempt(c.Annotations, v1alpha1.AnnotationPodCliqueSetAttempt, attempt.Set)
		withAttempt(c.Annotations, v1alpha1.AnnotationPodCliqueScalingGroupAttempt, attempt.Group)
		c.Annotations[naming.AnnotationGroupPods] = strconv.Itoa(int(pods))
		c.ObjectMeta = objectMeta(group, v1alpha1.KindPodCliqueScalingGroup, name, withTemplate(t.Labels, labels), c.Annotations)
		if isKept {
			keepRevision(c, live[name], suspends)
		} else {
			follows.applyTo(set, c, t, suspends, live[name])
		}
		cliques = append(cliques, c)
	}
	return cliques
}

// podClique returns a PodClique with spec and annotations; the caller sets the rest of the metadata.
func podClique(set *v1alpha1.PodCliqueSet, t *v1alpha1.PodCliqueTemplateSpec, requirements []lifecycle.Requirement, recorded scale, live *v1alpha1.PodClique) *v1alpha1.PodClique {
	ours := map[string]string{}
	replicas, initial := recorded.replicas, recorded.initial
	if live != nil {
		given := TemplateReplicas(live)
		replicas = followTemplate(ours, live.Spec.Replicas, given, t.Spec.Replicas)
		initial = Minimum(live).AtCreation
		if live.Spec.Replicas == given && given != t.Spec.Replicas {
			initial = t.Spec.Replicas // the template has set another initial size
		}
	} else {
		ours[v1alpha1.AnnotationTemplateReplicas] = text(t.Spec.Replicas)
	}
	ours[v1alpha1.AnnotationInitialReplicas] = text(initial)
	if live == nil || live.Annotations[v1alpha1.AnnotationPodCliqueSetUID] != "" { // not added later, so that an upgrade writes no PodClique
		ours[v1alpha1.AnnotationPodCliqueSetUID] = string(set.UID)
	}
	if set.Spec.IsTraining() {
		ours[v1alpha1.AnnotationWorkloadType] = string(v1alpha1.WorkloadTypeTraining)
	}
	if failed := FailedReason(set); failed != "" {
		ours[v1alpha1.AnnotationWorkloadFailed] = failed
	}
	storeTemplateKeys(ours, t.Labels, t.Annotations)
	if after := lifecycle.FormatRequirements(requirements); after != "" {
		ours[naming.AnnotationStartRequirements] = after
	}
	c := &v1alpha1.PodClique{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodClique},
		Spec:     *set.Spec.Template.PodCliqueSpec(t),
	}
	c.Annotations = withTemplate(t.Annotations, ours)
	c.Spec.Replicas = replicas
	return c
}

// withTerminationDelay adds an effective termination delay to annotations, unless it is nil.
func withTerminationDelay(annotations map[string]string, delay *time.Duration) {
	if delay != nil {
		annotations[v1alpha1.AnnotationTerminationDelay] = delay.String()
	}
}

// sameTemplate reports whether two PodCliques create the same pods: the pod specs are equal, and live has the desired
// labels and annotations. Additional ones of live are ignored unless the template set them, because a user or a tool
// may have added them.
func sameTemplate(want, live *v1alpha1.PodClique) bool {
	if gone := keysTakenOut(live, want); len(gone.Labels) > 0 || len(gone.Annotations) > 0 {
		return false
	}
	within := func(want, live map[string]string) bool {
		for k, v := range want {
			if naming.IsInternalAnnotation(k) || k == v1alpha1.LabelPodTemplateHash {
				continue
			}
			if has, ok := live[k]; !ok || has != v {
				return false
			}
		}
		return true
	}
	return equality.Semantic.DeepEqual(want.Spec.PodSpec, live.Spec.PodSpec) &&
		within(want.Labels, live.Labels) && within(want.Annotations, live.Annotations)
}

func text(n int32) string { return strconv.Itoa(int(n)) }
