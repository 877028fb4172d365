package desired

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/observed"
)

const (
	// maxSummary and maxMessage are in characters. The CRD allows no more in a summary; a message must fit an event.
	maxSummary = 256
	maxMessage = 900
	// maxNamed is how many sub-groups, pods or schedulers a message names; the rest is a number.
	maxNamed = 5
)

// PodGroupStatus returns the status that the PodGroup of f should have: f.Group.Status brought up to date. f.Group must
// not be nil. Equal facts give an equal status, whatever now is: now only dates a condition whose status changes.
//
// Satisfied carries the dominant reason and its message, Admitted the same reason as long as it is False. The first that
// holds of:
//
//	Completed        every pod that is left has succeeded, and these are the minimum
//	Invalid          the spec is not valid; or pods are missing, and those that count nowhere, or that name another
//	                 scheduler, would make up for them
//	Satisfied        the minimum is bound; what happens to surplus is told in the summary only
//	WaitingForPods   fewer pods exist than the minimum needs
//	Gated            they exist, but too many of them have scheduling gates
//	Binding          a plan for the minimum is in force
//	(the refusal's)  the last attempt found no plan
//	BackingOff       plans were made and failed on their way
//	BehindInQueue    nothing but its turn is missing
//
// (users.md B5 has Binding last. A plan and a refusal never hold together, so the order of these two is of no account.)
func PodGroupStatus(f observed.Gang, now metav1.Time) v2alpha2.PodGroupStatus {
	old := &f.Group.Status
	if old.Phase == v2alpha2.PodGroupCompleted && old.ObservedGeneration == f.Group.Generation && (f.Pods == 0 || f.Ended) {
		// Its pods are cleaned up, as a Job's are after a while, one by one. It completed all the same.
		return *old.DeepCopy()
	}
	v := judge(f)
	s := v2alpha2.PodGroupStatus{
		ObservedGeneration: f.Group.Generation,
		Phase:              v.phase,
		Summary:            cut(v.summary, maxSummary),
		SubGroups:          subGroups(f),
	}
	if f.Tree != nil {
		s.Scheduled = scheduled(f)
	}
	satisfied := metav1.Condition{
		Type: v2alpha2.ConditionSatisfied, Status: metav1.ConditionFalse,
		Reason: string(v.reason), Message: cut(v.message, maxMessage),
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
		admitted.Message = "the minimum has not been bound; Satisfied says why"
	}
	for i := range old.Conditions {
		s.Conditions = append(s.Conditions, *old.Conditions[i].DeepCopy())
	}
	for _, c := range []metav1.Condition{admitted, satisfied} {
		c.ObservedGeneration, c.LastTransitionTime = f.Group.Generation, now
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return s
}

// verdict is where a gang stands.
type verdict struct {
	phase     v2alpha2.PodGroupPhase
	satisfied bool
	reason    v2alpha2.Reason
	message   string // of the condition Satisfied
	summary   string
}

// judge finds the dominant reason.
func judge(f observed.Gang) verdict {
	if f.Tree == nil {
		message := "the spec is not valid"
		if f.TreeErr != nil {
			message = f.TreeErr.Error()
		}
		return verdict{phase: v2alpha2.PodGroupInvalid, reason: v2alpha2.ReasonInvalid, message: message, summary: message}
	}
	minimum := f.Tree.MinPods()
	v := verdict{satisfied: f.Tree.Satisfied(f.Bound)}
	switch {
	case f.Ended && v.satisfied:
		v.phase, v.reason = v2alpha2.PodGroupCompleted, v2alpha2.ReasonCompleted
		v.message = "every pod has succeeded"
		v.summary = fmt.Sprintf("%s succeeded, none is left to run", pods(total(f.Bound)))
		return v
	case v.satisfied:
		v.phase, v.reason = v2alpha2.PodGroupAdmitted, v2alpha2.ReasonSatisfied
		v.message = fmt.Sprintf("the minimum of %s is bound", pods(minimum))
		v.summary = satisfiedSummary(f)
		return v
	case f.Admitted:
		v.phase = v2alpha2.PodGroupDegraded
	case f.Binding:
		v.phase = v2alpha2.PodGroupBinding
	default:
		v.phase = v2alpha2.PodGroupWaiting
	}
	v.reason, v.message = blocked(f)
	if f.Leaving > 0 {
		v.message += fmt.Sprintf("; %s being deleted", boundPods(f.Leaving))
	}
	v.message += strays(f)
	if f.Fragment {
		v.message += fmt.Sprintf("; %s bound before a crash or a failed binding, given back if the rest cannot follow", pods(total(f.Bound)))
	}
	v.summary = fmt.Sprintf("%s pods bound; %s", scheduled(f), v.message)
	return v
}

// blocked says why the minimum of a gang with a valid tree is not bound.
func blocked(f observed.Gang) (v2alpha2.Reason, string) {
	minimum := f.Tree.MinPods()
	if missing := f.Tree.MissingPods(f.Created); missing > 0 {
		message := fmt.Sprintf("needs %s, %d exist", pods(minimum), minimum-missing)
		if what := lacks(f.Tree, f.Created); what != "" {
			message += ": " + what
		}
		if f.Terminating > 0 {
			message += fmt.Sprintf("; %s being deleted", pods(f.Terminating))
		}
		if f.Pods == 0 && total(f.Created) == 0 && metav1.GetControllerOf(f.Group) == nil {
			message += "; pods name it by annotation " + v2alpha2.PodGroupAnnotation
		}
		if f.MisplacedTotal == 0 {
			return v2alpha2.ReasonWaitingForPods, message
		}
		message += fmt.Sprintf("; %s counting nowhere: %s; correct their label %s",
			pods(f.MisplacedTotal), list(f.Misplaced, f.MisplacedTotal, "; "), v2alpha2.SubGroupLabel)
		if f.MisplacedTotal >= missing {
			return v2alpha2.ReasonInvalid, message
		}
		return v2alpha2.ReasonWaitingForPods, message
	}
	if missing := f.Tree.MissingPods(f.Usable); missing > 0 {
		message := fmt.Sprintf("needs %s, they exist, but only %d can be placed", pods(minimum), minimum-missing)
		if f.Gated > 0 {
			message += fmt.Sprintf("; %s with scheduling gates", pods(f.Gated))
		}
		if f.Foreign > 0 {
			message += fmt.Sprintf("; %s of another scheduler: %s", pods(f.Foreign), list(f.ForeignNames, len(f.ForeignNames), ", "))
			if f.Profile != "" {
				message += fmt.Sprintf("; all pods of a gang need one schedulerName, here %s", f.Profile)
			} else {
				message += fmt.Sprintf("; to start together they need schedulerName %s; as they are, each counts once it is bound", list(f.OurNames, len(f.OurNames), " or "))
			}
		}
		if what := lacks(f.Tree, f.Usable); what != "" { // last: a summary is short
			message += "; " + what
		}
		// Gates alone explain it only if lifting them would do.
		if f.Foreign > 0 && missing > f.Gated {
			return v2alpha2.ReasonInvalid, message
		}
		return v2alpha2.ReasonGated, message
	}
	switch {
	case f.Binding:
		return v2alpha2.ReasonBinding, fmt.Sprintf("needs %s; all of them are planned and are being bound", pods(minimum))
	case f.Refused.Reason != "" && !f.RefusedSurplus:
		return f.Refused.Reason, f.Refused.Message
	case f.Failures > 0:
		return v2alpha2.ReasonBackingOff, fmt.Sprintf("%d attempts in a row failed after they were planned; it is tried again by itself", f.Failures)
	default:
		return v2alpha2.ReasonBehindInQueue, fmt.Sprintf("needs %s, they exist; waits for its turn", pods(minimum))
	}
}

// satisfiedSummary tells what a satisfied gang has, and about its surplus.
func satisfiedSummary(f observed.Gang) string {
	s := scheduled(f) + " pods bound"
	if n := total(f.Tree.Surplus(f.Bound)); n > 0 {
		s += fmt.Sprintf(", %d above the minimum", n)
	}
	if f.MisplacedTotal > 0 {
		s += fmt.Sprintf("; %s counting nowhere: %s", pods(f.MisplacedTotal), list(f.Misplaced, f.MisplacedTotal, "; "))
	}
	s += strays(f)
	if f.RefusedSurplus && f.Refused.Reason != "" {
		s += fmt.Sprintf("; more wait, %s: %s", f.Refused.Reason, f.Refused.Message)
	}
	return s
}

// strays names the bound pods that count nowhere: who counts the pods that run comes to another number.
func strays(f observed.Gang) string {
	if f.StrayTotal == 0 {
		return ""
	}
	return fmt.Sprintf("; %s counting nowhere: %s", boundPods(f.StrayTotal), list(f.Stray, f.StrayTotal, "; "))
}

// boundPods returns "1 bound pod" or "n bound pods".
func boundPods(n int) string {
	if n == 1 {
		return "1 bound pod"
	}
	return fmt.Sprintf("%d bound pods", n)
}

// scheduled returns "bound/needed" in pods of the minimum.
func scheduled(f observed.Gang) string {
	minimum := f.Tree.MinPods()
	return fmt.Sprintf("%d/%d", minimum-f.Tree.MissingPods(f.Bound), minimum)
}

// lacks names what keeps the tree from being satisfied, first the leaves, where pods have to come:
// "prefill-2 lacks 2 of 8; satisfied children: prefill 2 of 3". Empty for a PodGroup without sub-groups, where the totals
// say it all.
func lacks(tree *gang.Tree, c gang.Counts) string {
	if tree.Root().IsLeaf() {
		return ""
	}
	var leaves, groups []string
	for _, l := range tree.Missing(c) {
		switch {
		case l.Optional:
		case l.Group.IsLeaf():
			leaves = append(leaves, fmt.Sprintf("%s lacks %d of %d", groupName(l.Group), l.Need-l.Have, l.Need))
		default:
			groups = append(groups, fmt.Sprintf("%s %d of %d", groupName(l.Group), l.Have, l.Need))
		}
	}
	return list(leaves, len(leaves), ", ") + "; satisfied children: " + list(groups, len(groups), ", ")
}

// subGroups returns the counts of every sub-group in spec order. Of an invalid tree only what has to survive is kept:
// which sub-groups were admitted.
func subGroups(f observed.Gang) []v2alpha2.SubGroupStatus {
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

// groupName returns the name of a sub-group, "root" for the PodGroup itself.
func groupName(g *gang.Group) string {
	if g.Parent() == nil {
		return g.Path()
	}
	return g.Name()
}

func total(c gang.Counts) int {
	n := 0
	for _, k := range c {
		n += k
	}
	return n
}

// pods returns "1 pod" or "n pods".
func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// list joins the first maxNamed of the names and says how many more there are of the total.
func list(names []string, total int, separator string) string {
	shown := names[:min(len(names), maxNamed)]
	s := strings.Join(shown, separator)
	if more := total - len(shown); more > 0 {
		s += fmt.Sprintf("%sand %d more", separator, more)
	}
	return s
}

// cut returns at most n characters of s.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Change says how much news a status is.
type Change int

const (
	// Same: nothing to write.
	Same Change = iota
	// Numbers: only numbers within the text about a refused attempt differ.
	Numbers
	// Content: counts, names or the generation differ, or the reason became one that passes by itself (Binding,
	// BehindInQueue, BackingOff, WaitingForPods).
	Content
	// First: there was no status, and it says nothing yet but what most gangs go through.
	First
	// Condition: the status of a condition or its reason differs.
	Condition
)

// passing are reasons that most gangs go through without anybody's doing.
var passing = sets.New(v2alpha2.ReasonWaitingForPods, v2alpha2.ReasonBehindInQueue, v2alpha2.ReasonBackingOff, v2alpha2.ReasonBinding)

// Compare says how much news the status after is to somebody who knows the status before.
//
// A message is rewritten when its reason or its blocking set (the names in it, in any order) changes. The blocking set
// also covers counts that the status has as fields, so those are exact whenever the status is. What only moves numbers,
// such as the nodes per filter reason of one attempt after another, is Numbers: true, but not worth a write of its own
// at once (users.md B3).
func Compare(before, after *v2alpha2.PodGroupStatus) Change {
	change := Same
	raise := func(c Change) { change = max(change, c) }
	for _, a := range after.Conditions {
		b := meta.FindStatusCondition(before.Conditions, a.Type)
		switch {
		case b == nil || b.Status != a.Status:
			if b == nil && a.Status == metav1.ConditionFalse && passing.Has(v2alpha2.Reason(a.Reason)) {
				raise(First)
			} else {
				raise(Condition)
			}
		case b.Reason != a.Reason:
			if passing.Has(v2alpha2.Reason(a.Reason)) {
				raise(Content)
			} else {
				raise(Condition)
			}
		case b.Message != a.Message:
			raise(textChange(b.Message, a.Message, after.Reason))
		}
		if b != nil && b.ObservedGeneration != a.ObservedGeneration {
			raise(Content)
		}
	}
	if len(before.Conditions) != len(after.Conditions) ||
		before.ObservedGeneration != after.ObservedGeneration || before.Phase != after.Phase ||
		before.Scheduled != after.Scheduled || before.Reason != after.Reason || !slices.Equal(before.SubGroups, after.SubGroups) {
		raise(Content)
	}
	if before.Summary != after.Summary {
		raise(textChange(before.Summary, after.Summary, after.Reason))
	}
	return change
}

// textChange compares two texts about the same reason. Texts made of counts are exact; those about a refused attempt, or
// about refused surplus ("" is the reason of a satisfied gang), may have old numbers for a while.
func textChange(before, after string, reason v2alpha2.Reason) Change {
	if passing.Has(reason) || reason == v2alpha2.ReasonInvalid || reason == v2alpha2.ReasonGated {
		return Content
	}
	if slices.Equal(blockingSet(before), blockingSet(after)) {
		return Numbers
	}
	return Content
}

// blockingSet returns the phrases of a text without their numbers, sorted. "prefill-2" is a name, "2" and "14/16" are
// numbers.
func blockingSet(text string) []string {
	phrases := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",;:()", r) })
	for i, p := range phrases {
		words := strings.Fields(p)
		for j, w := range words {
			if strings.Trim(w, "0123456789/.%") == "" {
				words[j] = "#"
			}
		}
		phrases[i] = strings.Join(words, " ")
	}
	slices.Sort(phrases)
	return phrases
}

// Event is what people are told about a change of a PodGroup's status.
type Event struct {
	Warning      bool
	Reason, Note string
}

// PodGroupEvent returns the event for a change of status, nil if the change is not worth one: one event per gang and
// change of reason. What passes by itself (BehindInQueue, BackingOff, Binding) is none.
func PodGroupEvent(before, after *v2alpha2.PodGroupStatus) *Event {
	was, is := meta.FindStatusCondition(before.Conditions, v2alpha2.ConditionSatisfied), meta.FindStatusCondition(after.Conditions, v2alpha2.ConditionSatisfied)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	admittedBefore := meta.IsStatusConditionTrue(before.Conditions, v2alpha2.ConditionAdmitted)
	admitted := meta.IsStatusConditionTrue(after.Conditions, v2alpha2.ConditionAdmitted)
	note := fmt.Sprintf("%s: %s", is.Reason, is.Message)
	switch reason := v2alpha2.Reason(is.Reason); {
	case reason == v2alpha2.ReasonCompleted:
		return &Event{Reason: "GangCompleted", Note: is.Message}
	case is.Status == metav1.ConditionTrue && !admittedBefore:
		return &Event{Reason: "GangAdmitted", Note: is.Message}
	case is.Status == metav1.ConditionTrue && was != nil && was.Status == is.Status:
		return nil // True before and after
	case is.Status == metav1.ConditionTrue:
		return &Event{Reason: "GangRestored", Note: is.Message + " again"}
	case reason == v2alpha2.ReasonInvalid:
		return &Event{Warning: true, Reason: "GangInvalid", Note: is.Message}
	case admitted && was != nil && was.Status == metav1.ConditionTrue:
		return &Event{Warning: true, Reason: "GangBelowMinimum", Note: note}
	case reason == v2alpha2.ReasonWaitingForPods || reason == v2alpha2.ReasonGated:
		return &Event{Reason: "GangIncomplete", Note: note}
	case passing.Has(reason):
		return nil
	default:
		return &Event{Warning: true, Reason: "GangBlocked", Note: note}
	}
}
