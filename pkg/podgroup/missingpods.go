// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// LacksPods reports whether fewer pods exist than the minimum of a valid tree needs, and the gang has not completed.
func LacksPods(f Facts) bool {
	return f.Group != nil && f.Tree != nil && !staysCompleted(f) && f.Tree.MissingPods(f.Created) > 0
}

// isIdle reports whether a PodGroup without pods waits for nothing: no object that could create its pods is known, or
// only some that are not to have any now. This is no fault: a CronJob has no pods between its runs.
func isIdle(f Facts) bool {
	if !f.Examined || f.Pods > 0 || f.Failed.Total > 0 || len(f.Unclaimed) > 0 {
		return false
	}
	for i := range f.Owners {
		if o := &f.Owners[i]; !o.Seen || o.GaveUp != "" || o.Wants > 0 && !o.Suspended && !o.Complete {
			return false
		}
	}
	return true
}

// explainMissingPods explains that the minimum lacks pods, which do not exist.
func explainMissingPods(f Facts, missing int) (reason v2alpha2.Reason, text, advice string) {
	minimum := f.Tree.MinPods()
	text = fmt.Sprintf("needs %s, %d exist", message.Count(minimum, "pod"), minimum-missing)
	if f.Terminating > 0 {
		text += fmt.Sprintf("; %s being deleted", message.Count(f.Terminating, "pod"))
	}
	if advice = strings.Join(describeOwners(f), clauses); advice != "" {
		text += clauses + advice
	}
	text += f.Failed.countOthers()
	switch {
	case len(f.Unclaimed) > 0:
		text += "; " + describeUnclaimed(f.Unclaimed)
	case isIdle(f) && len(f.Owners) == 0:
		text += "; it is idle until pods name it by " + placeOfName(f.Group)
	case f.Pods == 0 && f.Failed.Total == 0 && len(f.Owners) == 0 && sumCounts(f.Created) == 0 && (metav1.GetControllerOf(f.Group) == nil || IsTranslated(f.Group)):
		text += "; pods name it by " + placeOfName(f.Group)
	}
	reason = v2alpha2.ReasonWaitingForPods
	switch {
	case f.MisplacedTotal >= missing:
		reason, text, advice = v2alpha2.ReasonInvalid, describeMisplaced("pod", f.Misplaced, f.Tree)+"; "+text, ""
	case f.MisplacedTotal > 0:
		text += "; " + describeMisplaced("pod", f.Misplaced, f.Tree)
	}
	if what := describeLacks(f.Tree, f.Created); what != "" {
		text += "; " + what
	}
	return reason, text, advice
}

// explainUnusablePods explains that the minimum lacks pods, which exist and cannot be placed.
func explainUnusablePods(f Facts, missing int) (reason v2alpha2.Reason, text, advice string) {
	minimum := f.Tree.MinPods()
	text = fmt.Sprintf("%d of %d needed pods can be placed", minimum-missing, minimum)
	reason = v2alpha2.ReasonGated
	var parts []string
	if f.Foreign > 0 {
		parts = append(parts, otherSchedulerAdvice(f))
		if missing > f.Gated { // the gates are the reason only if removing them is sufficient
			reason = v2alpha2.ReasonOtherScheduler
		}
	}
	if f.Gated > 0 {
		parts = append(parts, describeGated(f))
	}
	if advice = strings.Join(parts, clauses); advice != "" {
		text += clauses + advice
	}
	if what := describeLacks(f.Tree, f.Usable); what != "" { // last, because a summary is short
		text += "; " + what
	}
	return reason, text, advice
}

// IsTranslated reports whether a PodGroup was made from one of another scheduler.
func IsTranslated(group *v2alpha2.PodGroup) bool {
	ref := metav1.GetControllerOfNoCopy(group)
	return ref != nil && (ref.Kind == "PodGroup" || ref.Kind == "CompositePodGroup")
}

// placeOfName returns where pods name a PodGroup: "annotation pod-group-name".
func placeOfName(group *v2alpha2.PodGroup) string {
	apiGroup := v2alpha2.GroupName
	if IsTranslated(group) {
		apiGroup, _, _ = strings.Cut(metav1.GetControllerOfNoCopy(group).APIVersion, "/")
	}
	return membership.DialectOf(apiGroup).Place
}

// maxOwners is the maximum number of owners in a message.
const maxOwners = 2

// describeOwners describes which owners should create the pods that a gang lacks, and why they do not. Empty: unknown.
func describeOwners(f Facts) []string {
	var parts []string
	for _, o := range f.Owners {
		if text := describeOwner(f, o); text != "" && len(parts) < maxOwners {
			parts = append(parts, text)
		}
	}
	if f.Failed.Total > 0 {
		parts = append(parts, f.Failed.describeFirst())
	}
	return parts
}

// describeFirst describes the pod that failed first.
func (p FailedPods) describeFirst() string {
	text := fmt.Sprintf("pod %s failed", message.Truncate(p.First, maxFailedName))
	if p.Why != "" {
		text += ": " + p.Why
	}
	if p.Bare {
		text += ", and no controller replaces it"
	}
	return text
}

// countOthers counts the other failed pods, "" for none. It is not part of the advice for pods, whose messages are not
// written again for a number.
func (p FailedPods) countOthers() string {
	if p.Total < 2 {
		return ""
	}
	return clauses + message.Count(p.Total-1, "more failed pod")
}

// describeOwner describes why one owner does not create the pods that its leaf lacks. "": its leaf lacks none, or the
// reason is unknown.
func describeOwner(f Facts, o Owner) string {
	short := 0
	if leaf := f.Tree.Group(o.Leaf); !o.Mixed && leaf != nil {
		if short = leaf.Min() - f.Created[o.Leaf]; short <= 0 {
			return ""
		}
	}
	who := message.Truncate(o.Kind, maxShown) + " " + message.Truncate(o.Name, maxShown)
	switch {
	case o.Unknown:
		return fmt.Sprintf("%s makes its pods: see its events", who)
	case !o.Seen:
		return ""
	case o.GaveUp != "":
		return fmt.Sprintf("%s has failed: %s; %s", o.ofController(who), message.Truncate(o.GaveUp, maxShown), o.recreationText())
	case o.Complete:
		return fmt.Sprintf("%s is complete and makes no more pods: %s", o.ofController(who), o.recreationText())
	case o.FailedIndexes != "":
		return fmt.Sprintf("%s does not replace the failed pods of index %s: %s", o.ofController(who), message.Truncate(o.FailedIndexes, maxShown), o.recreationText())
	case o.Suspended && o.ControllerKind != "" && o.ControllerKind != "CronJob": // a CronJob suspends no Job
		return fmt.Sprintf("%s is suspended: resume it there", o.ofController(who))
	case o.Suspended:
		return who + " is suspended: resume it"
	case o.Ordered && o.Wants > o.Pods && o.ControllerKind != "":
		return fmt.Sprintf("%s of %s makes a pod only when the one before it is ready: it needs podManagementPolicy Parallel", who, o.controller())
	case o.Ordered && o.Wants > o.Pods:
		return who + " makes a pod only when the one before it is ready: recreate it with podManagementPolicy Parallel"
	case o.Wants > o.Pods && o.Kind == "Job" && o.Failed > 0:
		return who + " replaces its failed pods after a pause, which grows with each failure"
	case o.Wants > o.Pods:
		text := fmt.Sprintf("%s is to have %s and has %d: see its events, a quota or an admission webhook may refuse the others",
			who, message.Count(o.Wants, "pod"), o.Pods)
		if o.Kind == "Job" {
			text += ", or it pauses after a failure"
		}
		return text
	case short > 0 && f.isOnlyOwner(o):
		advice := fmt.Sprintf("set its %s to %d", sizeFieldOf(o.Kind), o.Wants+short)
		switch o.ControllerKind {
		case "":
		case "Deployment":
			advice = fmt.Sprintf("set replicas of %s to %d", o.controller(), o.Wants+short)
		default:
			advice = "change this in " + o.controller()
		}
		return fmt.Sprintf("%s has the %s it is to have: %s, or lower the minimum", who, message.Count(o.Wants, "pod"), advice)
	}
	return ""
}

// ofController adds the owner's own controller to its name.
func (o Owner) ofController(who string) string {
	if o.ControllerKind == "" {
		return who
	}
	return who + " of " + o.controller()
}

// recreationText returns how pods are created again after a Job has ended.
func (o Owner) recreationText() string {
	switch o.ControllerKind {
	case "":
		return "delete it and create it again"
	case "CronJob":
		return "its next run makes new pods"
	default:
		return "see " + o.controller()
	}
}

// controller names the owner's own controller.
func (o Owner) controller() string {
	return message.Truncate(o.ControllerKind, maxShown) + " " + message.Truncate(o.ControllerName, maxShown)
}

// isOnlyOwner reports whether no other owner creates pods of the owner's leaf.
func (f Facts) isOnlyOwner(o Owner) bool {
	for _, other := range f.Owners {
		if other.UID != o.UID && (other.Mixed || other.Leaf == o.Leaf) {
			return false
		}
	}
	return true
}

// sizeFieldOf returns the field that determines how many pods an object of the kind has at the same time.
func sizeFieldOf(kind string) string {
	if kind == "Job" {
		return "parallelism (and completions, if it is lower)"
	}
	return "replicas"
}

// describeUnclaimed describes objects that name the PodGroup in a place without effect, and where the name belongs.
func describeUnclaimed(found []Unclaimed) string {
	parts := make([]string, 0, len(found))
	for _, u := range found[:min(len(found), maxOwners)] {
		parts = append(parts, UnclaimedAdvice(u))
	}
	return strings.Join(parts, "; ")
}

// UnclaimedAdvice returns the same text for one finding.
func UnclaimedAdvice(u Unclaimed) string {
	if u.Kind == "Pod" {
		return fmt.Sprintf("%s %s it by %s: make it annotation %s",
			podsNamed("pod", u.Names, u.Total), message.Plural(u.Total, "names", "name"), u.Where, v2alpha2.PodGroupAnnotation)
	}
	// The template of a Job is immutable.
	return fmt.Sprintf("%s %s names it by %s of its own: recreate it with that in spec.template.metadata.annotations",
		u.Kind, message.Truncate(u.Names[0], maxShown), u.Where)
}
