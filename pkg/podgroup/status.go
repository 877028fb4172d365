// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
)

// maxNamed is the maximum number of sub-groups, pods or schedulers that a message names; of the others it contains
// the number.
const maxNamed = 5

// Status returns the status that the PodGroup of f should have: an updated f.Group.Status. f.Group must not be nil.
// Equal facts lead to an equal status, independent of now: now is only the transition time of conditions whose status
// changes, and of Satisfied when the gang completes, and the time until which a gang was bound that is no longer
// admitted.
//
// Satisfied has the dominant reason and its message; Admitted has the same reason while it is False. The reason is
// the first that applies of:
//
//	Completed        every pod that is left has succeeded, and these are the minimum
//	Invalid          the spec is not valid; or pods are missing, and those that count towards no leaf would make up for
//	                 them
//	Satisfied        the minimum is bound; only the summary describes the surplus
//	WaitingForPods   fewer pods exist than the minimum needs
//	OtherScheduler   they exist, but too many of them name another scheduler
//	Gated            they exist, but too many of them have scheduling gates
//	Binding          a plan for the minimum is in force
//	Preempting       pods of lower priority end so that the minimum fits
//
//	(the refusal's)  the last attempt found no plan
//	BackingOff       plans were made and failed before all members were bound
//	BehindInQueue    only its turn is missing
//
// A plan and a refusal never apply together, so the order of these two does not matter.
//
// Preempting and Preempted are conditions that exist only while they are true.
func Status(f Facts, now metav1.Time) v2alpha2.PodGroupStatus {
	old := &f.Group.Status
	if staysCompleted(f) {
		return *old.DeepCopy()
	}
	v := dominantVerdict(f)
	placement, ofSubGroups, unmet := describePlacement(f)
	if v.satisfied && unmet != "" {
		v.message += clauses + unmet
		v.summary += clauses + unmet
	}
	s := v2alpha2.PodGroupStatus{
		ObservedGeneration: f.Group.Generation,
		Phase:              v.phase,
		SubGroups:          subGroupStatuses(f, ofSubGroups),
		Placement:          placement,
		Needs:              describeMinimum(f.Tree),
		GPUs:               boundOfRequestedGPUs(f),
		Priority:           f.Priority,
	}
	if f.Tree != nil {
		s.Scheduled = boundOfNeeded(f)
	}
	s.WaitingSince = recordedTime(f.WaitingSince)
	addPromise(&s, f.Promised)
	satisfied := metav1.Condition{
		Type: v2alpha2.ConditionSatisfied, Status: metav1.ConditionFalse,
		Reason: string(v.reason), Message: message.Shorten(v.message, message.MaxCondition),
	}
	if v.satisfied {
		satisfied.Status = metav1.ConditionTrue
	} else {
		s.Reason = v.reason
	}
	admitted := metav1.Condition{Type: v2alpha2.ConditionAdmitted}
	if f.Admitted || v.satisfied {
		admitted.Status, admitted.Reason = metav1.ConditionTrue, string(v2alpha2.ReasonAdmitted)
		admitted.Message = "the minimum was bound"
	} else {
		admitted.Status, admitted.Reason = metav1.ConditionFalse, string(v.reason)
		admitted.Message = describeNotBound(meta.FindStatusCondition(old.Conditions, v2alpha2.ConditionAdmitted), now) + "; Satisfied says why"
	}
	for i := range old.Conditions {
		s.Conditions = append(s.Conditions, *old.Conditions[i].DeepCopy())
	}
	setCondition(&s, admitted, now)
	setCondition(&s, satisfied, now)
	if c := completedCondition(&s); c != nil && completedCondition(old) == nil {
		c.LastTransitionTime = now // its status stays True, but which pods belong to a later run depends on the time
	}
	setPreemptionConditions(&s, f, v.satisfied, now)
	v.summary = describePreempted(&s, f) + v.summary
	s.Summary, s.Brief = message.Shorten(v.summary, message.MaxSummary), v.briefWith(placement, f.Promised)
	return s
}

// setCondition sets a condition; now is its transition time if its status changes.
func setCondition(s *v2alpha2.PodGroupStatus, c metav1.Condition, now metav1.Time) {
	c.ObservedGeneration, c.LastTransitionTime = s.ObservedGeneration, now
	meta.SetStatusCondition(&s.Conditions, c)
}

// setPreemptionConditions sets the conditions Preempting and Preempted, or removes them.
func setPreemptionConditions(s *v2alpha2.PodGroupStatus, f Facts, satisfied bool, now metav1.Time) {
	if f.Preempting != nil {
		setCondition(s, preemptingCondition(f.Preempting), now)
	} else {
		meta.RemoveStatusCondition(&s.Conditions, v2alpha2.ConditionPreempting)
	}
	if c := nextPreempted(f, satisfied); c != nil {
		setCondition(s, *c, now)
	} else {
		meta.RemoveStatusCondition(&s.Conditions, v2alpha2.ConditionPreempted)
	}
}

// wasBound begins the message of a gang that was admitted once. It is kept in the status, so it survives the scheduler.
const wasBound = "the minimum was bound until "

// describeNotBound describes a gang that is not admitted, by its former condition Admitted; nil: it has none.
func describeNotBound(before *metav1.Condition, now metav1.Time) string {
	switch {
	case before == nil:
	case before.Status == metav1.ConditionTrue:
		return wasBound + now.UTC().Format("2006-01-02 15:04 MST") + ", then no pod of it was left"
	case strings.HasPrefix(before.Message, wasBound):
		text, _, _ := strings.Cut(before.Message, ";")
		return text
	}
	return "the minimum has not been bound"
}

// staysCompleted reports whether the gang has completed, and at most its pods are being cleaned up one by one, as a
// Job's are after some time. It has not if a later run has failed since, even if no status was written in between.
func staysCompleted(f Facts) bool {
	old := &f.Group.Status
	return old.Phase == v2alpha2.PodGroupCompleted && old.ObservedGeneration == f.Group.Generation && (f.Pods == 0 || f.Ended) && !f.LastRunFailed
}

// verdict is the state of a gang in terms of its status.
type verdict struct {
	phase     v2alpha2.PodGroupPhase
	satisfied bool
	reason    v2alpha2.Reason
	message   string // of the condition Satisfied
	advice    string // the clauses of message that say what would help, for the waiting pods
	summary   string
}

// briefWith returns what fits into a column of a table: where a gang runs of which the minimum is bound, or by when one
// starts that waits, and the beginning of the summary.
func (v verdict) briefWith(placement string, p *Promised) string {
	text := strings.TrimPrefix(v.summary, "the gang ")
	switch {
	case v.satisfied && placement != "":
		text = placement + clauses + text
	case !v.satisfied && p != nil && !p.Starts.IsZero():
		text = "starts by " + p.Starts.UTC().Format("2006-01-02 15:04 MST") + clauses + text
	}
	return message.Truncate(text, message.MaxBrief)
}

// recordedTime returns a time with the precision of the API server. nil: it is zero.
func recordedTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewTime(t).Rfc3339Copy()
	return &at
}

// dominantVerdict determines the dominant reason.
func dominantVerdict(f Facts) verdict {
	if f.Tree == nil {
		text := "the spec is not valid"
		if f.TreeErr != nil {
			text = f.TreeErr.Error()
		}
		return verdict{phase: v2alpha2.PodGroupInvalid, reason: v2alpha2.ReasonInvalid, message: text, summary: text}
	}
	minimum := f.Tree.MinPods()
	v := verdict{satisfied: f.Tree.Satisfied(f.Bound)}
	switch {
	case f.Ended && v.satisfied:
		v.phase, v.reason = v2alpha2.PodGroupCompleted, v2alpha2.ReasonCompleted
		v.message = "every pod has succeeded"
		v.summary = fmt.Sprintf("%s succeeded, none is left to run", message.Count(sumCounts(f.Bound), "pod"))
		return v
	case v.satisfied:
		v.phase, v.reason = v2alpha2.PodGroupAdmitted, v2alpha2.ReasonSatisfied
		v.message = fmt.Sprintf("the minimum of %s is bound", message.Count(minimum, "pod"))
		v.summary = satisfiedSummary(f)
		return v
	case f.Admitted:
		v.phase = v2alpha2.PodGroupDegraded
	case f.Binding:
		v.phase = v2alpha2.PodGroupBinding
	case isIdle(f):
		v.phase = v2alpha2.PodGroupIdle
	default:
		v.phase = v2alpha2.PodGroupWaiting
	}
	v.reason, v.message, v.advice = explainBlocked(f)
	v.message += describeAhead(f, v.reason) + describePromise(f.Promised)
	if f.Leaving > 0 {
		v.message += fmt.Sprintf("; %s being deleted", message.Count(f.Leaving, "bound pod"))
	}
	v.message += describeBoundByOthers(f) + describeStrays(f)
	if f.Partial {
		v.message += fmt.Sprintf("; %s bound before a crash or a failed binding, released if the rest cannot follow", message.Count(sumCounts(f.Bound), "pod"))
	}
	cause := message.FirstClause(v.message)
	v.summary = cause + describeMissingClass(f) + strings.TrimPrefix(v.message, cause)
	return v
}

// explainBlocked returns why the minimum of a gang with a valid tree is not bound: the cause and what would help come
// first, the missing numbers last. advice is the part of the text about what would help; "": it is in the first clause,
// or unknown.
func explainBlocked(f Facts) (reason v2alpha2.Reason, text, advice string) {
	minimum := f.Tree.MinPods()
	if missing := f.Tree.MissingPods(f.Created); missing > 0 {
		return explainMissingPods(f, missing)
	}
	if missing := f.Tree.MissingPods(f.Usable); missing > 0 {
		return explainUnusablePods(f, missing)
	}
	switch {
	case f.Binding:
		return v2alpha2.ReasonBinding, fmt.Sprintf("needs %s; all of them are planned and are being bound", message.Count(minimum, "pod")), ""
	case f.Preempting != nil:
		return v2alpha2.ReasonPreempting, describeVictims(f.Preempting), ""
	case f.Refused.Reason != "" && !f.RefusedSurplus:
		if advice = describeNoPreemption(f); advice != "" {
			return f.Refused.Reason, f.Refused.Message + clauses + advice, advice
		}
		return f.Refused.Reason, f.Refused.Message, ""
	case f.LosesPods:
		return v2alpha2.ReasonBehindInQueue, fmt.Sprintf("needs %s, they exist; it is tried again when its pods that are being preempted terminate", message.Count(minimum, "pod")), ""
	case f.Failures > 0:
		return v2alpha2.ReasonBackingOff, describeFailures(f), ""
	default:
		return v2alpha2.ReasonBehindInQueue, fmt.Sprintf("needs %s, they exist; waits for its turn", message.Count(minimum, "pod")), ""
	}
}

// maxFailure is the maximum length of the cause of a failed plan in a message: an admission webhook may have written
// it.
const maxFailure = 300

// describeFailures describes the plans that failed, and why the last one did.
func describeFailures(f Facts) string {
	text := message.Plural(f.Failures, "1 planned attempt failed", fmt.Sprintf("%d planned attempts in a row failed", f.Failures))
	if f.Failure != "" {
		text += message.Plural(f.Failures, ": ", ", the last: ") + message.Truncate(f.Failure, maxFailure)
	}
	return text + "; it is tried again by itself"
}

// turns contains the reasons for which it matters which gangs are tried first.
var turns = sets.New(v2alpha2.ReasonBehindInQueue, v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonInsufficientResources,
	v2alpha2.ReasonTopologyUnavailable, v2alpha2.ReasonFragmented)

// describeAhead describes the gangs that are tried before this one. Gangs of other namespaces are not named: their
// names are not this user's business.
func describeAhead(f Facts, reason v2alpha2.Reason) string {
	if f.Ahead == 0 || !turns.Has(reason) {
		return ""
	}
	text := fmt.Sprintf("; %s of its priority %s ahead of it", message.Count(f.Ahead, "gang"), message.Plural(f.Ahead, "is", "are"))
	if f.FirstAhead != "" {
		text += ", in this namespace first " + message.Truncate(f.FirstAhead, maxShown)
	}
	return text
}

// satisfiedSummary describes what waits of a satisfied gang, and why, and what is bound above its minimum.
func satisfiedSummary(f Facts) string {
	var parts []string
	cause := message.FirstClause(f.Refused.Message)
	if f.Refused.Reason != "" { // of surplus, or of pods that a sub-group above the minimum has lost
		parts = append(parts, fmt.Sprintf("more wait, %s: %s", f.Refused.Reason, cause))
	}
	if n := f.Tree.SurplusPods(f.Bound); n > 0 {
		parts = append(parts, fmt.Sprintf("%s above the minimum %s bound", message.Count(n, "pod"), message.Plural(n, "is", "are")))
	}
	s := strings.Join(parts, clauses) + describeMissingClass(f) + describeBoundByOthers(f)
	if f.MisplacedTotal > 0 {
		s += clauses + describeMisplaced("pod", f.Misplaced, f.Tree)
	}
	s += describeStrays(f) + strings.TrimPrefix(f.Refused.Message, cause)
	return cmp.Or(strings.TrimPrefix(s, clauses), "the minimum is bound")
}

// describeStrays names the bound pods that count towards no leaf. They explain a difference to the number of running
// pods.
func describeStrays(f Facts) string {
	if f.StrayTotal == 0 {
		return ""
	}
	return "; not counted: " + describeMisplaced("bound pod", f.Stray, f.Tree)
}

// boundOfNeeded returns "bound/needed" in pods of the minimum.
func boundOfNeeded(f Facts) string {
	minimum := f.Tree.MinPods()
	return fmt.Sprintf("%d/%d", minimum-f.Tree.MissingPods(f.Bound), minimum)
}

// subGroupStatuses returns the counts of every sub-group in spec order, with where it runs, which placements has by
// name. For an invalid tree it keeps only the state that must survive: which sub-groups were admitted.
func subGroupStatuses(f Facts, placements map[string]string) []v2alpha2.SubGroupStatus {
	var out []v2alpha2.SubGroupStatus
	if f.Tree == nil {
		seen := sets.New[string]()
		for _, g := range f.Group.Spec.SubGroups {
			if f.AdmittedGroups.Has(g.Name) && !seen.Has(g.Name) && len(out) < v2alpha2.MaxSubGroups {
				seen.Insert(g.Name)
				out = append(out, v2alpha2.SubGroupStatus{Name: g.Name, Admitted: true})
			}
		}
		return out
	}
	for _, g := range f.Tree.Groups() {
		s := v2alpha2.SubGroupStatus{
			Name: g.Name(), Required: int32(g.Min()),
			Satisfied: g.Satisfied(f.Bound), Admitted: f.AdmittedGroups.Has(g.Name()),
			Placement: placements[g.Name()],
		}
		if g.IsLeaf() {
			s.Created, s.Bound = int32(f.Created[g.Name()]), int32(f.Bound[g.Name()])
		} else {
			s.Created, s.Bound = int32(g.SatisfiedChildren(f.Created)), int32(g.SatisfiedChildren(f.Bound))
		}
		out = append(out, s)
	}
	return out
}

func sumCounts(c gang.Counts) int {
	n := 0
	for _, k := range c {
		n += k
	}
	return n
}
