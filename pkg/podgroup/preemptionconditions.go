// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
)

// Preempting describes the victims of a preemption by a gang.
type Preempting struct {
	// Plan is the identity of the decision. Opaque: ASCII characters without spaces, at most 253.
	Plan string
	// Evicting: the victims are being ended. false: decided, none has been ended yet.
	Evicting bool
	// Gangs is the number of gangs that lose pods, PlainPods that of victims without a gang, and Pods that of all
	// victims, including PlainPods.
	Gangs, PlainPods, Pods int
	// Amount is how much of the extended resource the victims hold. Resource "": none.
	Resource corev1.ResourceName
	Amount   int64
	// First is the name of the first gang that loses pods, "" unless it is in the namespace of the preemptor.
	First string
	// Until is when the victims should have ended. Zero: not known.
	Until time.Time
	// Stuck is a victim pod that should have ended by now, "": there is none.
	Stuck string
}

// Preempted describes what a gang lost to a preemptor.
type Preempted struct {
	At time.Time
	// By is the gang that preempted: "namespace/name".
	By string
	// Priority is that of the preemptor, Over that of the gang. IsLower: this is the priority of its lowest pods, and
	// not that which it has in the queue.
	Priority, Over int32
	IsLower        bool
	// Pods is the number of pods that the gang lost. Whole: these are all of its bound pods; otherwise they were above
	// its minimum.
	Pods  int
	Whole bool
}

const (
	// makesRoom begins the message of a condition Preempting, and planClause the last clause of it.
	makesRoom, planClause = "makes room: ", "; plan "
	// preemptedAt begins the message of a condition Preempted.
	preemptedAt = "preempted at "
	// replacementsWait is the last clause of the message of a condition Preempted while pods of the gang wait. It is
	// kept in the status, so that after a restart, too, the condition is removed only when pods have waited, and none
	// does any more.
	replacementsWait = "; pods of it wait for room"
)

// preemptingCondition returns the condition of a preemptor.
func preemptingCondition(p *Preempting) metav1.Condition {
	c := metav1.Condition{Type: v2alpha2.ConditionPreempting, Status: metav1.ConditionTrue, Reason: string(v2alpha2.ReasonDecided)}
	if p.Evicting {
		c.Reason = string(v2alpha2.ReasonEvicting)
	}
	// A later process has to read the plan, so it is never cut off.
	limit := max(message.MaxSummary, message.MaxCondition-len(planClause)-len(p.Plan))
	c.Message = message.Shorten(describeVictims(p), limit) + planClause + p.Plan
	return c
}

// RecordedPreemption returns which plan the condition Preempting of a status belongs to, and whether its victims were
// being ended. ok is false if there is no such condition, or muster-scheduler has not written it.
func RecordedPreemption(status *v2alpha2.PodGroupStatus) (plan string, evicting, ok bool) {
	if status == nil {
		return "", false, false
	}
	c := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionPreempting)
	if c == nil || c.Status != metav1.ConditionTrue || !strings.HasPrefix(c.Message, makesRoom) {
		return "", false, false
	}
	switch v2alpha2.Reason(c.Reason) {
	case v2alpha2.ReasonDecided:
	case v2alpha2.ReasonEvicting:
		evicting = true
	default:
		return "", false, false
	}
	last := strings.LastIndex(c.Message, planClause)
	if last <= len(makesRoom) || !isPlan(c.Message[last+len(planClause):]) {
		return "", false, false
	}
	return c.Message[last+len(planClause):], evicting, true
}

// isPlan reports whether the text can be the identity of a plan.
func isPlan(text string) bool {
	return text != "" && len(text) <= message.MaxName && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// describeVictims describes what ends so that a gang can start: "makes room: 3 gangs (12 pods, 48 nvidia.com/gpu) of
// lower priority end by 10:32:05 UTC; first train-a".
func describeVictims(p *Preempting) string {
	var who, amounts []string
	if p.Gangs > 0 {
		who = append(who, message.Count(p.Gangs, "gang"))
		amounts = append(amounts, message.Count(p.Pods, "pod"))
	}
	if p.PlainPods > 0 || p.Gangs == 0 {
		who = append(who, message.Count(p.PlainPods, "pod")+" without a gang")
	}
	if p.Resource != "" {
		amounts = append(amounts, message.Quantity(p.Resource, p.Amount)+" "+string(p.Resource))
	}
	text := makesRoom + strings.Join(who, " and ")
	if len(amounts) > 0 {
		text += fmt.Sprintf(" (%s)", strings.Join(amounts, ", "))
	}
	text += " of lower priority " + message.Plural(p.Gangs+p.PlainPods, "ends", "end")
	if !p.Until.IsZero() {
		text += " by " + p.Until.UTC().Format("15:04:05 MST")
	}
	if p.First != "" {
		text += "; first " + message.Truncate(p.First, maxShown)
	}
	if p.Stuck != "" {
		text += fmt.Sprintf("; pod %s should have ended by now: see its finalizers, and whether its node is ready", p.Stuck)
	}
	return text
}

// preemptedCondition returns the condition of a gang that lost pods to another one.
func preemptedCondition(p *Preempted) metav1.Condition {
	c := metav1.Condition{Type: v2alpha2.ConditionPreempted, Status: metav1.ConditionTrue, Reason: string(v2alpha2.ReasonSurplusPreempted)}
	lost := message.Count(p.Pods, "pod") + " above its minimum"
	if p.Whole {
		c.Reason = string(v2alpha2.ReasonGangPreempted)
		lost = fmt.Sprintf("%s %s, because its minimum ends as a whole or not at all",
			message.Plural(p.Pods, "its only", fmt.Sprintf("all %d", p.Pods)), message.Plural(p.Pods, "pod", "pods"))
	}
	if p.IsLower {
		lost += ", by its lowest priority"
	}
	c.Message = fmt.Sprintf(preemptedAt+"%s by %s (priority %d over %d): %s",
		p.At.UTC().Format("2006-01-02 15:04:05 MST"), p.By, p.Priority, p.Over, lost)
	return c
}

// IsRecordedIn reports whether the status contains this loss.
func (p *Preempted) IsRecordedIn(status *v2alpha2.PodGroupStatus) bool {
	last, c := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionPreempted), preemptedCondition(p)
	return last != nil && isSameLoss(last, &c)
}

// SaysPreemptedBy reports whether the status contains a loss to this gang, "namespace/name".
func SaysPreemptedBy(status *v2alpha2.PodGroupStatus, by string) bool {
	c := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionPreempted)
	return c != nil && strings.Contains(c.Message, " by "+by+" (priority ")
}

// nextPreempted returns the condition Preempted that the status of f should have; nil: none. satisfied: the minimum is
// bound.
//
// The facts only know what this process has seen, so a condition of the status is kept until what the gang lost is made
// up for: for the whole gang until the minimum is bound again after it was not, for pods above the minimum until no pod
// of the gang waits after some did.
func nextPreempted(f Facts, satisfied bool) *metav1.Condition {
	old := f.Group.Status.Conditions
	last, before := meta.FindStatusCondition(old, v2alpha2.ConditionPreempted), meta.FindStatusCondition(old, v2alpha2.ConditionSatisfied)
	if f.Preempted != nil {
		if c := preemptedCondition(f.Preempted); last == nil || !isSameLoss(last, &c) {
			if wasRestoredSince(before, f.Preempted) {
				return nil
			}
			return withWaiting(&c, f)
		}
	}
	if last == nil || satisfied && isMadeUpFor(last, before, len(f.Waiting)) {
		return nil
	}
	return withWaiting(last.DeepCopy(), f)
}

// isMadeUpFor reports whether a gang whose minimum is bound has made up for its last loss. before is the condition
// Satisfied of its status; nil: none. waiting is the number of its waiting pods.
func isMadeUpFor(last, before *metav1.Condition, waiting int) bool {
	if last.Reason == string(v2alpha2.ReasonSurplusPreempted) {
		return waiting == 0 && strings.HasSuffix(last.Message, replacementsWait)
	}
	return before != nil && before.Status == metav1.ConditionFalse
}

// wasRestoredSince reports whether the gang was preempted as a whole, and its minimum was bound again afterwards.
// before is the condition Satisfied of its status; nil: none.
func wasRestoredSince(before *metav1.Condition, p *Preempted) bool {
	return p.Whole && before != nil && before.Status == metav1.ConditionTrue && before.LastTransitionTime.After(p.At)
}

// withWaiting adds to a condition Preempted that pods of the gang wait. It stays there until the condition is removed.
func withWaiting(c *metav1.Condition, f Facts) *metav1.Condition {
	if len(f.Waiting) > 0 && !strings.HasSuffix(c.Message, replacementsWait) && c.Reason == string(v2alpha2.ReasonSurplusPreempted) {
		c.Message += replacementsWait
	}
	return c
}

// isSameLoss reports whether two conditions Preempted are about the same preemption.
func isSameLoss(a, b *metav1.Condition) bool {
	return a.Reason == b.Reason && message.FirstClause(a.Message) == message.FirstClause(b.Message)
}

// describePreempted describes, for the beginning of a summary, to which gang the pods were lost for which the gang
// waits: "preempted at 16:04:46 UTC by prod/np (1000 over 100); ". It has no age, which would change by itself. "": it
// waits for none.
func describePreempted(s *v2alpha2.PodGroupStatus, f Facts) string {
	c := meta.FindStatusCondition(s.Conditions, v2alpha2.ConditionPreempted)
	if c == nil || s.Reason == "" && len(f.Waiting) == 0 {
		return ""
	}
	const date = "2006-01-02 "
	who, _, found := strings.Cut(c.Message, "): ")
	at, by, isOurs := strings.Cut(strings.TrimPrefix(who, preemptedAt), " by ")
	if !found || !isOurs || len(at) < len(date) {
		return "" // muster-scheduler has not written it
	}
	return preemptedAt + at[len(date):] + " by " + strings.Replace(by, " (priority ", " (", 1) + ")" + clauses
}

// describeNoPreemption is the clause about why a refused gang does not preempt, or not yet. "": that is not known, or,
// as far as is known, it would gain nothing.
func describeNoPreemption(f Facts) string {
	mayGain := f.Refused.Reason == v2alpha2.ReasonFragmented || f.Refused.Reason == v2alpha2.ReasonTopologyUnavailable || strings.Contains(f.Refused.Message, lowerHold)
	switch {
	case f.NoHelp != "":
		return "preemption would not help: " + f.NoHelp
	case f.MarksRefused != "":
		return "it does not preempt for now: " + message.Truncate(f.MarksRefused, maxFailure)
	case !mayGain:
		return ""
	case f.PreemptionForbiddenBy != "":
		return fmt.Sprintf("it does not preempt: %s has preemptionPolicy Never", f.PreemptionForbiddenBy)
	case !f.PreemptsFrom.IsZero():
		return fmt.Sprintf("it does not preempt before %s (preemptionDelay)", f.PreemptsFrom.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	return ""
}

// PreemptionEvents returns the events for the change of a PodGroup's status from before to after that concern
// preemption: one for each new plan or stage of a preemptor, and one for each loss of a victim. They are due when after
// has been written.
func PreemptionEvents(before, after *v2alpha2.PodGroupStatus) []Event {
	var all []Event
	was, is := meta.FindStatusCondition(before.Conditions, v2alpha2.ConditionPreempting), meta.FindStatusCondition(after.Conditions, v2alpha2.ConditionPreempting)
	formerPlan, _, _ := RecordedPreemption(before)
	plan, _, _ := RecordedPreemption(after)
	if is != nil && (was == nil || was.Reason != is.Reason || plan != formerPlan) {
		all = append(all, Event{Reason: v2alpha2.EventPreempting, Note: fmt.Sprintf("%s: %s", is.Reason, is.Message)})
	}
	was, is = meta.FindStatusCondition(before.Conditions, v2alpha2.ConditionPreempted), meta.FindStatusCondition(after.Conditions, v2alpha2.ConditionPreempted)
	if is != nil && (was == nil || !isSameLoss(was, is)) {
		all = append(all, Event{
			Warning: is.Reason == string(v2alpha2.ReasonGangPreempted),
			Reason:  v2alpha2.EventPreempted, Note: is.Message,
		})
	}
	return all
}
