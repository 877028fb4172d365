// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// maxShown is the maximum length of a name in a text about several pods, and maxExamples the number of pods that it
// names, so that the advice beside them fits into the summary.
const (
	maxShown    = 30
	maxExamples = 2
)

// podsNamed returns a number of pods with their first names: "pod a", "3 pods (a, b, …)". names contains at least
// one.
func podsNamed(noun string, names []string, total int) string {
	shown := make([]string, 0, maxExamples+1)
	for _, name := range names[:min(len(names), maxExamples)] {
		shown = append(shown, message.Truncate(name, maxShown))
	}
	if total == 1 {
		return noun + " " + shown[0]
	}
	if total > len(shown) {
		shown = append(shown, "…")
	}
	return fmt.Sprintf("%s (%s)", message.Count(total, noun), strings.Join(shown, ", "))
}

// misplacement is a kind of cause for which pods count towards no leaf: how a text about one pod begins, and one about
// several; what to do; and the reason of the event.
type misplacement struct{ one, many, advice, event string }

var misplacements = []misplacement{
	{"belongs to ", "belong to ", "the workload deletes such pods", v2alpha2.EventSubGroupNotFound},
	{contradicts, "name PodGroup ", "remove all but one", v2alpha2.EventMarksContradict},
	{asksForShare, "ask for a share of a GPU by ", noGPUShares, v2alpha2.EventIgnoredKeys},
	{"has no ", "have no ", "add it", v2alpha2.EventSubGroupNotFound},
	{"carries task ", "carry task ", "correct annotation " + membership.AnnotationTask + ", or add it to minTaskMember", v2alpha2.EventSubGroupNotFound},
	{"carries PodGroup of Kubernetes ", "carry PodGroup of Kubernetes ",
		"create it in the CompositePodGroup that annotation " + membership.CompositeAnnotation + " names", v2alpha2.EventSubGroupNotFound},
	{"carries ", "carry ", "correct label " + v2alpha2.SubGroupLabel, v2alpha2.EventSubGroupNotFound},
}

// misplacementOf returns the kind of a cause, WaitingPod.Misplaced.
func misplacementOf(why string) (m misplacement) {
	for _, m = range misplacements {
		if strings.HasPrefix(why, m.one) {
			break
		}
	}
	return m
}

// LabelAdvice returns the advice for a pod that counts towards no leaf. why is WaitingPod.Misplaced.
func LabelAdvice(why string) string { return misplacementOf(why).advice }

// describeMisplaced describes which pods count towards no leaf, why, and what to do: `3 pods (a, b, …) carry sub-group
// "worker", which the PodGroup does not have: correct label kai.scheduler/subgroup-name; the leaves are leader,
// workers`.
func describeMisplaced(noun string, pods []Misplaced, tree *gang.Tree) string {
	parts := make([]string, 0, len(pods)+1)
	for _, p := range pods[:min(len(pods), maxNamed)] {
		why, kind := p.Why, misplacementOf(p.Why)
		if p.Total > 1 {
			why = strings.Replace(why, kind.one, kind.many, 1)
		}
		parts = append(parts, fmt.Sprintf("%s %s: %s", podsNamed(noun, p.Pods, p.Total), why, kind.advice))
	}
	if more := len(pods) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %s", message.Count(more, "further cause")))
	}
	if leaves := leafNames(tree); leaves != "" {
		parts = append(parts, leaves)
	}
	return strings.Join(parts, "; ")
}

// leafNames lists the leaves of a tree that has named ones, "" for no tree.
func leafNames(tree *gang.Tree) string {
	if tree == nil || tree.Root().IsLeaf() {
		return ""
	}
	leaves := tree.Leaves()
	names := make([]string, 0, maxNamed)
	for _, leaf := range leaves[:min(len(leaves), maxNamed)] {
		names = append(names, leaf.Name())
	}
	return "the leaves are " + message.ListNames(names, maxNamed, len(leaves), ", ")
}

// FormerRun is why a pod does not count that belongs to a former run of its workload.
const FormerRun = "belongs to a run before the last restart of the workload"

// contradicts and asksForShare are the beginnings of the texts of DescribeRefusal.
const (
	contradicts  = "names PodGroup "
	asksForShare = "asks for a share of a GPU by "
)

// DescribeRefusal describes why marks of a pod cannot be obeyed, so that it waits: it names different PodGroups, or
// asks for a share of a GPU. "": nothing is in its way.
func DescribeRefusal(pod *corev1.Pod) string {
	if place := membership.GPUShare(pod); place != "" {
		return asksForShare + place
	}
	names := membership.Contradiction(pod)
	if names == nil {
		return ""
	}
	quote := func(n membership.Name) string {
		return fmt.Sprintf("%q by %s", message.Truncate(n.Name, maxShown), n.Place)
	}
	return contradicts + quote(names[0]) + " and " + quote(names[1])
}

// NoSuchLeaf returns why a pod counts towards no leaf: its PodGroup has none of the name that the pod has in a place.
func NoSuchLeaf(name, place string) string {
	what := "sub-group"
	switch place {
	case "annotation " + membership.AnnotationTask:
		what = "task"
	case membership.Native.Place:
		what = "PodGroup of Kubernetes"
	}
	return fmt.Sprintf("carries %s %q, which the PodGroup does not have", what, message.Truncate(name, message.MaxName))
}

// describeGated describes what keeps existing pods out of every plan: their own scheduling gates, or another plugin.
func describeGated(f Facts) string {
	var parts []string
	if own := f.Gated - f.GatedByPlugin; own > 0 {
		text := message.Count(own, "pod") + " with scheduling gates"
		if len(f.GateNames) > 0 {
			text += " that are to be lifted: " + message.ListNames(f.GateNames, maxNamed, len(f.GateNames), ", ")
		}
		parts = append(parts, text)
	}
	if f.GatedByPlugin > 0 {
		parts = append(parts, fmt.Sprintf("%s gated: %s", message.Count(f.GatedByPlugin, "pod"), f.GatedBy))
	}
	return strings.Join(parts, "; ")
}

// schedulerAdvice returns which schedulerName the pods of a gang should have.
func schedulerAdvice(f Facts) string {
	name := f.Profile
	if name == "" {
		name = message.ListNames(f.OurNames, maxNamed, len(f.OurNames), " or ")
	}
	return fmt.Sprintf("set schedulerName %s in all pods of the gang", name)
}

// otherSchedulerAdvice returns the advice for pods that wait for another scheduler.
func otherSchedulerAdvice(f Facts) string {
	text := fmt.Sprintf("%s: %s of %s", schedulerAdvice(f), message.Count(f.Foreign, "pod"), schedulerNames(f.ForeignNames))
	switch {
	case f.Unattended:
		text += "; no scheduler has reacted to them: perhaps none of that name runs"
	case f.Profile == "":
		text += "; as they are, each counts once it is bound"
	}
	return text
}

// describeBoundByOthers describes pods that were not started as a gang. "": there are none.
func describeBoundByOthers(f Facts) string {
	if f.BoundByOthers == 0 {
		return ""
	}
	return fmt.Sprintf("; %s bound one by one by %s: %s to start them together", message.Count(f.BoundByOthers, "pod"), schedulerNames(f.OtherNames), schedulerAdvice(f))
}

func schedulerNames(names []string) string {
	return message.Plural(len(names), "scheduler ", "schedulers ") + message.ListNames(names, maxNamed, len(names), ", ")
}

// describeLacks describes why the tree is not satisfied. The leaves, which lack pods, come first: "prefill-2 lacks 2 of
// 8; complete: 0 of 2 sub-groups of the gang, 1 of 2 of prefill". It is empty for a PodGroup without sub-groups,
// because the totals are sufficient.
func describeLacks(tree *gang.Tree, c gang.Counts) string {
	if tree.Root().IsLeaf() {
		return ""
	}
	var leaves, groups []string
	for _, l := range tree.Missing(c) {
		switch {
		case l.Group.IsLeaf():
			leaves = append(leaves, fmt.Sprintf("%s lacks %d of %d", l.Group.Name(), l.Need-l.Have, l.Need))
		case l.Group.Parent() == nil:
			groups = append(groups, fmt.Sprintf("%d of %d sub-groups of the gang", l.Have, l.Need))
		default:
			groups = append(groups, fmt.Sprintf("%d of %d of %s", l.Have, l.Need, l.Group.Name()))
		}
	}
	return message.ListNames(leaves, maxNamed, len(leaves), ", ") + "; complete: " + message.ListNames(groups, maxNamed, len(groups), ", ")
}

// describeMissingClass reports that the PodGroup's priority class does not exist. "": it exists, or none is named.
func describeMissingClass(f Facts) string {
	if f.NoSuchClass == "" {
		return ""
	}
	return fmt.Sprintf("; PriorityClass %s does not exist: create it, or name another", message.Truncate(f.NoSuchClass, maxShown))
}
