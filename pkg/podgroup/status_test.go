// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/test/wrappers"
)

var (
	before = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	now    = metav1.NewTime(time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC))
)

// flat is a PodGroup of 8 pods; tree has two roles, of which prefill needs 2 of 3 replicas.
func flat() *wrappers.PodGroupWrapper {
	return wrappers.MakePodGroup("train", "ml").Generation(3).MinMember(8)
}

func tree() *wrappers.PodGroupWrapper {
	return wrappers.MakePodGroup("llm", "ml").Generation(3).
		Inner("", "prefill", 2).
		SubGroupOf("prefill", "prefill-0", 4).SubGroupOf("prefill", "prefill-1", 4).SubGroupOf("prefill", "prefill-2", 4).
		SubGroup("decode", 8)
}

// pair is a PodGroup of a leader and four workers.
func pair() *wrappers.PodGroupWrapper {
	return wrappers.MakePodGroup("pair", "ml").Generation(3).SubGroup("leader", 1).SubGroup("workers", 4)
}

func conditions(admitted, satisfied metav1.Condition) []metav1.Condition {
	admitted.Type, satisfied.Type = v2alpha2.ConditionAdmitted, v2alpha2.ConditionSatisfied
	out := []metav1.Condition{admitted, satisfied}
	for i := range out {
		out[i].ObservedGeneration = 3
		if out[i].LastTransitionTime.IsZero() {
			out[i].LastTransitionTime = now
		}
	}
	return out
}

func notAdmitted(reason v2alpha2.Reason) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: string(reason), Message: "the minimum has not been bound; Satisfied says why"}
}

func wasAdmitted() metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: "Admitted", Message: "the minimum was bound"}
}

func unsatisfied(reason v2alpha2.Reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: string(reason), Message: message}
}

func satisfied(reason v2alpha2.Reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: string(reason), Message: message}
}

// leaf and inner return entries of the list of sub-groups.
func leaf(name string, required, created, bound int32, satisfied, admitted bool) v2alpha2.SubGroupStatus {
	return v2alpha2.SubGroupStatus{Name: name, Required: required, Created: created, Bound: bound, Satisfied: satisfied, Admitted: admitted}
}

var inner = leaf

func TestStatus(t *testing.T) {
	t.Parallel()
	full := gang.Counts{"prefill-0": 4, "prefill-1": 4, "prefill-2": 4, "decode": 8}
	tests := map[string]struct {
		group *v2alpha2.PodGroup
		facts Facts // Group and Tree are filled in
		want  v2alpha2.PodGroupStatus
	}{
		"a PodGroup without pods waits for all of them": {
			group: flat().Obj(),
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonWaitingForPods,
				Summary: "needs 8 pods, 0 exist; pods name it by annotation pod-group-name",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonWaitingForPods),
					unsatisfied(v2alpha2.ReasonWaitingForPods, "needs 8 pods, 0 exist; pods name it by annotation pod-group-name")),
			},
		},
		"a PodGroup of which no pods are expected is idle": {
			group: flat().Obj(),
			facts: Facts{Examined: true},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupIdle, Scheduled: "0/8", Reason: v2alpha2.ReasonWaitingForPods,
				Summary: "needs 8 pods, 0 exist; it is idle until pods name it by annotation pod-group-name",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonWaitingForPods),
					unsatisfied(v2alpha2.ReasonWaitingForPods, "needs 8 pods, 0 exist; it is idle until pods name it by annotation pod-group-name")),
			},
		},
		"a suspended Job is to create its pods": {
			group: flat().Obj(),
			facts: Facts{Examined: true, Owners: []Owner{{Kind: "Job", Name: "train", Seen: true, Wants: 8, Suspended: true}}},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupIdle, Scheduled: "0/8", Reason: v2alpha2.ReasonWaitingForPods,
				Summary: "needs 8 pods, 0 exist; Job train is suspended: resume it",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonWaitingForPods),
					unsatisfied(v2alpha2.ReasonWaitingForPods, "needs 8 pods, 0 exist; Job train is suspended: resume it")),
			},
		},
		"pods that failed do name it": {
			group: flat().Obj(),
			facts: Facts{Pods: 8},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonWaitingForPods,
				Summary:    "needs 8 pods, 0 exist",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonWaitingForPods), unsatisfied(v2alpha2.ReasonWaitingForPods, "needs 8 pods, 0 exist")),
			},
		},
		"the controller of the PodGroup creates its pods, too": {
			group: flat().Controller("PodCliqueSet", "chat", "1").Obj(),
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonWaitingForPods,
				Summary:    "needs 8 pods, 0 exist",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonWaitingForPods), unsatisfied(v2alpha2.ReasonWaitingForPods, "needs 8 pods, 0 exist")),
			},
		},
		"a tree: which sub-groups lack pods and how many are complete": {
			group: tree().Obj(),
			facts: Facts{Created: gang.Counts{"prefill-0": 4, "prefill-1": 2, "decode": 7}},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/16", Reason: v2alpha2.ReasonWaitingForPods,
				Summary: "needs 16 pods, 13 exist; prefill-1 lacks 2 of 4, prefill-2 lacks 4 of 4, decode lacks 1 of 8; complete: 0 of 2 sub-groups of the gang, 1 of 2 of prefill",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonWaitingForPods), unsatisfied(v2alpha2.ReasonWaitingForPods,
					"needs 16 pods, 13 exist; prefill-1 lacks 2 of 4, prefill-2 lacks 4 of 4, decode lacks 1 of 8; complete: 0 of 2 sub-groups of the gang, 1 of 2 of prefill")),
				SubGroups: []v2alpha2.SubGroupStatus{
					inner("prefill", 2, 1, 0, false, false),
					leaf("prefill-0", 4, 4, 0, false, false), leaf("prefill-1", 4, 2, 0, false, false), leaf("prefill-2", 4, 0, 0, false, false),
					leaf("decode", 8, 7, 0, false, false),
				},
			},
		},
		"an invalid spec is never scheduled, and the admitted sub-groups are kept": {
			group: wrappers.MakePodGroup("llm", "ml").Generation(3).SubGroup("decode", 8).SubGroupOf("gone", "lost", 1).Obj(),
			facts: Facts{
				TreeErr:  fmt.Errorf(`spec.subGroups[1].parent: Invalid value: "gone": names no sub-group`),
				Admitted: true, AdmittedGroups: sets.New("decode", "old"),
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupInvalid, Reason: v2alpha2.ReasonInvalid,
				Summary:    `spec.subGroups[1].parent: Invalid value: "gone": names no sub-group`,
				Conditions: conditions(wasAdmitted(), unsatisfied(v2alpha2.ReasonInvalid, `spec.subGroups[1].parent: Invalid value: "gone": names no sub-group`)),
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "decode", Admitted: true}},
			},
		},
		"the reason why the owners create no more pods comes first": {
			group: pair().Obj(),
			facts: Facts{
				Pods: 3, Created: gang.Counts{"leader": 1, "workers": 2},
				Owners: []Owner{
					{Kind: "StatefulSet", Name: "leader", UID: "1", Leaf: "leader", Pods: 1, Seen: true, Wants: 2, Ordered: true},
					{Kind: "StatefulSet", Name: "workers", UID: "2", Leaf: "workers", Pods: 2, Seen: true, Wants: 4, Ordered: true},
				},
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/5", Reason: v2alpha2.ReasonWaitingForPods,
				Summary: "needs 5 pods, 3 exist; StatefulSet workers makes a pod only when the one before it is ready: recreate it with podManagementPolicy Parallel; workers lacks 2 of 4; complete: 1 of 2 sub-groups of the gang",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonWaitingForPods), unsatisfied(v2alpha2.ReasonWaitingForPods,
					"needs 5 pods, 3 exist; StatefulSet workers makes a pod only when the one before it is ready: recreate it with podManagementPolicy Parallel; workers lacks 2 of 4; complete: 1 of 2 sub-groups of the gang")),
				SubGroups: []v2alpha2.SubGroupStatus{leaf("leader", 1, 1, 0, false, false), leaf("workers", 4, 2, 0, false, false)},
			},
		},
		"misplaced pods that would fill the gap are the reason, equal causes grouped": {
			group: pair().Obj(),
			facts: Facts{
				Created: gang.Counts{"leader": 1}, MisplacedTotal: 4, Misplaced: []Misplaced{
					{Why: `carries sub-group "worker", which the PodGroup does not have`, Pods: []string{"worker-0", "worker-1", "worker-2"}, Total: 3},
					{Why: `has no label kai.scheduler/subgroup-name`, Pods: []string{"worker-3"}, Total: 1},
				},
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/5", Reason: v2alpha2.ReasonInvalid,
				Summary: `3 pods (worker-0, worker-1, …) carry sub-group "worker", which the PodGroup does not have: correct label kai.scheduler/subgroup-name; pod worker-3 has no label kai.scheduler/subgroup-name: add it; the leaves are leader, workers; needs 5 pods, 1 exist; …`,
				Conditions: conditions(notAdmitted(v2alpha2.ReasonInvalid), unsatisfied(v2alpha2.ReasonInvalid,
					`3 pods (worker-0, worker-1, …) carry sub-group "worker", which the PodGroup does not have: correct label kai.scheduler/subgroup-name; pod worker-3 has no label kai.scheduler/subgroup-name: add it; the leaves are leader, workers; needs 5 pods, 1 exist; workers lacks 4 of 4; complete: 1 of 2 sub-groups of the gang`)),
				SubGroups: []v2alpha2.SubGroupStatus{leaf("leader", 1, 1, 0, false, false), leaf("workers", 4, 0, 0, false, false)},
			},
		},
		"misplaced pods that are too few to be the reason are mentioned beside it": {
			group: pair().Obj(),
			facts: Facts{
				Created: gang.Counts{"leader": 1, "workers": 2}, Terminating: 2, MisplacedTotal: 1, Misplaced: []Misplaced{
					{Why: `carries sub-group "x", which the PodGroup does not have`, Pods: []string{"a"}, Total: 1}},
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/5", Reason: v2alpha2.ReasonWaitingForPods,
				Summary: `needs 5 pods, 3 exist; 2 pods being deleted; pod a carries sub-group "x", which the PodGroup does not have: correct label kai.scheduler/subgroup-name; the leaves are leader, workers; workers lacks 2 of 4; complete: 1 of 2 sub-groups of the gang`,
				Conditions: conditions(notAdmitted(v2alpha2.ReasonWaitingForPods), unsatisfied(v2alpha2.ReasonWaitingForPods,
					`needs 5 pods, 3 exist; 2 pods being deleted; pod a carries sub-group "x", which the PodGroup does not have: correct label kai.scheduler/subgroup-name; the leaves are leader, workers; workers lacks 2 of 4; complete: 1 of 2 sub-groups of the gang`)),
				SubGroups: []v2alpha2.SubGroupStatus{leaf("leader", 1, 1, 0, false, false), leaf("workers", 4, 2, 0, false, false)},
			},
		},
		"pods that other schedulers bound one by one, before all are": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Bound: gang.Counts{"": 3}, BoundByOthers: 3,
				OtherNames: []string{"default-scheduler"}, Profile: "muster-scheduler"},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "3/8", Reason: v2alpha2.ReasonBehindInQueue,
				Summary: "needs 8 pods, they exist; waits for its turn; 3 pods bound one by one by scheduler default-scheduler: set schedulerName muster-scheduler in all pods of the gang to start them together",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonBehindInQueue), unsatisfied(v2alpha2.ReasonBehindInQueue,
					"needs 8 pods, they exist; waits for its turn; 3 pods bound one by one by scheduler default-scheduler: set schedulerName muster-scheduler in all pods of the gang to start them together")),
			},
		},
		"a missing priority class comes right after the cause, because a summary is short": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, NoSuchClass: "lost"},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonBehindInQueue,
				Summary: "needs 8 pods, they exist; PriorityClass lost does not exist: create it, or name another; waits for its turn",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonBehindInQueue), unsatisfied(v2alpha2.ReasonBehindInQueue,
					"needs 8 pods, they exist; waits for its turn")),
			},
		},
		"behind others": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Ahead: 2, FirstAhead: "train-a"},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonBehindInQueue,
				Summary: "needs 8 pods, they exist; waits for its turn; 2 gangs of its priority are ahead of it, in this namespace first train-a",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonBehindInQueue), unsatisfied(v2alpha2.ReasonBehindInQueue,
					"needs 8 pods, they exist; waits for its turn; 2 gangs of its priority are ahead of it, in this namespace first train-a")),
			},
		},
		"behind one of another namespace": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Ahead: 1, Refused: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "needs 8"}},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonInsufficientGPUs,
				Summary: "needs 8; 1 gang of its priority is ahead of it",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonInsufficientGPUs), unsatisfied(v2alpha2.ReasonInsufficientGPUs,
					"needs 8; 1 gang of its priority is ahead of it")),
			},
		},
		"too large: whoever is ahead": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Ahead: 1, Refused: Refusal{Reason: v2alpha2.ReasonTooLarge, Message: "needs 8"}},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonTooLarge,
				Summary:    "needs 8",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonTooLarge), unsatisfied(v2alpha2.ReasonTooLarge, "needs 8")),
			},
		},
		"and of a gang that runs": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Bound: gang.Counts{"": 8}, Admitted: true, NoSuchClass: "lost"},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupAdmitted, Scheduled: "8/8",
				Summary:    "PriorityClass lost does not exist: create it, or name another",
				Conditions: conditions(wasAdmitted(), satisfied(v2alpha2.ReasonSatisfied, "the minimum of 8 pods is bound")),
			},
		},
		"and when all are": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Bound: gang.Counts{"": 8}, BoundByOthers: 8, Admitted: true,
				OtherNames: []string{"default-scheduler", "other"}, OurNames: []string{"kai-scheduler", "muster-scheduler"}},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupAdmitted, Scheduled: "8/8",
				Summary:    "8 pods bound one by one by schedulers default-scheduler, other: set schedulerName kai-scheduler or muster-scheduler in all pods of the gang to start them together",
				Conditions: conditions(wasAdmitted(), satisfied(v2alpha2.ReasonSatisfied, "the minimum of 8 pods is bound")),
			},
		},
		"pods without a leaf beside a gang that runs": {
			group: pair().Obj(),
			facts: Facts{Created: gang.Counts{"leader": 1, "workers": 4}, Usable: gang.Counts{"leader": 1, "workers": 4}, Bound: gang.Counts{"leader": 1, "workers": 4}, Admitted: true,
				AdmittedGroups: sets.New("leader", "workers"),
				MisplacedTotal: 2, Misplaced: []Misplaced{{Why: `has no label kai.scheduler/subgroup-name`, Pods: []string{"a", "b"}, Total: 2}}},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupAdmitted, Scheduled: "5/5",
				Summary:    "2 pods (a, b) have no label kai.scheduler/subgroup-name: add it; the leaves are leader, workers",
				Conditions: conditions(wasAdmitted(), satisfied(v2alpha2.ReasonSatisfied, "the minimum of 5 pods is bound")),
				SubGroups:  []v2alpha2.SubGroupStatus{leaf("leader", 1, 1, 1, true, true), leaf("workers", 4, 4, 4, true, true)},
			},
		},
		"bound pods that do not count": {
			group: wrappers.MakePodGroup("train", "ml").Generation(3).SubGroup("workers", 8).Obj(),
			facts: Facts{
				Admitted: true, Created: gang.Counts{"workers": 8}, Usable: gang.Counts{"workers": 8}, Bound: gang.Counts{"workers": 6},
				Refused: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "2 pods fit nowhere"},
				Leaving: 1, StrayTotal: 1, Stray: []Misplaced{{Why: `has no label kai.scheduler/subgroup-name`, Pods: []string{"a"}, Total: 1}},
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupDegraded, Needs: "all", Scheduled: "6/8", Reason: v2alpha2.ReasonInsufficientGPUs,
				Summary: `2 pods fit nowhere; 1 bound pod being deleted; not counted: bound pod a has no label kai.scheduler/subgroup-name: add it; the leaves are workers`,
				Conditions: conditions(wasAdmitted(), unsatisfied(v2alpha2.ReasonInsufficientGPUs,
					`2 pods fit nowhere; 1 bound pod being deleted; not counted: bound pod a has no label kai.scheduler/subgroup-name: add it; the leaves are workers`)),
				SubGroups: []v2alpha2.SubGroupStatus{leaf("workers", 8, 8, 6, false, false)},
			},
		},
		"pods with scheduling gates": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 5}, Gated: 3, GateNames: []string{"example.com/quota", "kueue.x-k8s.io/admission"}, Profile: "muster-scheduler"},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonGated,
				Summary: "5 of 8 needed pods can be placed; 3 pods with scheduling gates that are to be lifted: example.com/quota, kueue.x-k8s.io/admission",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonGated), unsatisfied(v2alpha2.ReasonGated,
					"5 of 8 needed pods can be placed; 3 pods with scheduling gates that are to be lifted: example.com/quota, kueue.x-k8s.io/admission")),
			},
		},
		"pods with gates of their own and pods that a plugin gates are counted apart": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 3}, Gated: 5, GateNames: []string{"kueue"}, GatedByPlugin: 3, GatedBy: "pod x is gated by plugin DynamicResources", Profile: "muster-scheduler"},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonGated,
				Summary: "3 of 8 needed pods can be placed; 2 pods with scheduling gates that are to be lifted: kueue; 3 pods gated: pod x is gated by plugin DynamicResources",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonGated), unsatisfied(v2alpha2.ReasonGated,
					"3 of 8 needed pods can be placed; 2 pods with scheduling gates that are to be lifted: kueue; 3 pods gated: pod x is gated by plugin DynamicResources")),
			},
		},
		"pods of another scheduler are named, and come before gates": {
			group: flat().Obj(),
			facts: Facts{
				Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 5}, Gated: 1, Foreign: 2,
				ForeignNames: []string{"default-scheduler"}, Profile: "muster-scheduler",
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonOtherScheduler,
				Summary: "5 of 8 needed pods can be placed; set schedulerName muster-scheduler in all pods of the gang: 2 pods of scheduler default-scheduler; 1 pod with scheduling gates",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonOtherScheduler), unsatisfied(v2alpha2.ReasonOtherScheduler,
					"5 of 8 needed pods can be placed; set schedulerName muster-scheduler in all pods of the gang: 2 pods of scheduler default-scheduler; 1 pod with scheduling gates")),
			},
		},
		"but not before gates without which the minimum could be placed": {
			group: flat().Obj(),
			facts: Facts{
				Created: gang.Counts{"": 10}, Usable: gang.Counts{"": 5}, Gated: 3, Foreign: 2,
				ForeignNames: []string{"default-scheduler"}, Profile: "muster-scheduler",
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonGated,
				Summary: "5 of 8 needed pods can be placed; set schedulerName muster-scheduler in all pods of the gang: 2 pods of scheduler default-scheduler; 3 pods with scheduling gates",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonGated), unsatisfied(v2alpha2.ReasonGated,
					"5 of 8 needed pods can be placed; set schedulerName muster-scheduler in all pods of the gang: 2 pods of scheduler default-scheduler; 3 pods with scheduling gates")),
			},
		},
		"the message names the schedulerName that all pods lack": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Foreign: 8, ForeignNames: []string{"default-scheduler"}, OurNames: []string{"kai-scheduler", "muster-scheduler"}},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonOtherScheduler,
				Summary: "0 of 8 needed pods can be placed; set schedulerName kai-scheduler or muster-scheduler in all pods of the gang: 8 pods of scheduler default-scheduler; as they are, each counts once it is bound",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonOtherScheduler), unsatisfied(v2alpha2.ReasonOtherScheduler,
					"0 of 8 needed pods can be placed; set schedulerName kai-scheduler or muster-scheduler in all pods of the gang: 8 pods of scheduler default-scheduler; as they are, each counts once it is bound")),
			},
		},
		"of a tree too, the cause comes before the list of missing pods, because a summary is short": {
			group: tree().Obj(),
			facts: Facts{Created: full, Foreign: 20, ForeignNames: []string{"muster-schedular"}, OurNames: []string{"muster-scheduler"}},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/16", Reason: v2alpha2.ReasonOtherScheduler,
				Summary: "0 of 16 needed pods can be placed; set schedulerName muster-scheduler in all pods of the gang: 20 pods of scheduler muster-schedular; as they are, each counts once it is bound; …",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonOtherScheduler), unsatisfied(v2alpha2.ReasonOtherScheduler,
					"0 of 16 needed pods can be placed; set schedulerName muster-scheduler in all pods of the gang: 20 pods of scheduler muster-schedular; as they are, each counts once it is bound; prefill-0 lacks 4 of 4, prefill-1 lacks 4 of 4, prefill-2 lacks 4 of 4, decode lacks 8 of 8; complete: 0 of 2 sub-groups of the gang, 0 of 2 of prefill")),
				SubGroups: []v2alpha2.SubGroupStatus{
					inner("prefill", 2, 3, 0, false, false),
					leaf("prefill-0", 4, 4, 0, false, false), leaf("prefill-1", 4, 4, 0, false, false), leaf("prefill-2", 4, 4, 0, false, false),
					leaf("decode", 8, 8, 0, false, false),
				},
			},
		},
		"a complete gang waits for its turn": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonBehindInQueue,
				Summary: "needs 8 pods, they exist; waits for its turn",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonBehindInQueue), unsatisfied(v2alpha2.ReasonBehindInQueue,
					"needs 8 pods, they exist; waits for its turn")),
			},
		},
		"a refused gang has the refusal's reason and message": {
			group: flat().Obj(),
			facts: Facts{
				Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Failures: 2,
				Refused: Refusal{Reason: v2alpha2.ReasonFragmented, Message: "6 of 8 fit; 4 nodes: Insufficient nvidia.com/gpu"},
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonFragmented,
				Summary: "6 of 8 fit; 4 nodes: Insufficient nvidia.com/gpu",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonFragmented), unsatisfied(v2alpha2.ReasonFragmented,
					"6 of 8 fit; 4 nodes: Insufficient nvidia.com/gpu")),
			},
		},
		"pods deleted since the refusal are the reason that is reported": {
			group: flat().Obj(),
			facts: Facts{
				Created: gang.Counts{"": 7}, Usable: gang.Counts{"": 7},
				Refused: Refusal{Reason: v2alpha2.ReasonFragmented, Message: "6 of 8 fit"},
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonWaitingForPods,
				Summary:    "needs 8 pods, 7 exist",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonWaitingForPods), unsatisfied(v2alpha2.ReasonWaitingForPods, "needs 8 pods, 7 exist")),
			},
		},
		"a gang whose plans failed backs off": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Bound: gang.Counts{"": 3}, Failures: 2, Partial: true},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "3/8", Reason: v2alpha2.ReasonBackingOff,
				Summary: "2 planned attempts in a row failed; it is tried again by itself; 3 pods bound before a crash or a failed binding, released if the rest cannot follow",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonBackingOff), unsatisfied(v2alpha2.ReasonBackingOff,
					"2 planned attempts in a row failed; it is tried again by itself; 3 pods bound before a crash or a failed binding, released if the rest cannot follow")),
			},
		},
		"a gang whose only plan failed says why": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Failures: 1, Failure: "binding pod a-0 to node n1: denied; ask ops"},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonBackingOff,
				Summary: "1 planned attempt failed: binding pod a-0 to node n1: denied; ask ops; it is tried again by itself",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonBackingOff), unsatisfied(v2alpha2.ReasonBackingOff,
					"1 planned attempt failed: binding pod a-0 to node n1: denied; ask ops; it is tried again by itself")),
			},
		},
		"of several plans that failed the last one says why": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Failures: 7, Failure: strings.Repeat("x", 400)},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/8", Reason: v2alpha2.ReasonBackingOff,
				Summary: "7 planned attempts in a row failed, the last: " + strings.Repeat("x", 209) + "…",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonBackingOff), unsatisfied(v2alpha2.ReasonBackingOff,
					"7 planned attempts in a row failed, the last: "+strings.Repeat("x", 299)+"…; it is tried again by itself")),
			},
		},
		"a gang that is being bound": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Bound: gang.Counts{"": 3}, Binding: true},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupBinding, Scheduled: "3/8", Reason: v2alpha2.ReasonBinding,
				Summary: "needs 8 pods; all of them are planned and are being bound",
				Conditions: conditions(notAdmitted(v2alpha2.ReasonBinding), unsatisfied(v2alpha2.ReasonBinding,
					"needs 8 pods; all of them are planned and are being bound")),
			},
		},
		"an admitted gang, its surplus refused": {
			group: tree().Obj(),
			facts: Facts{
				Created: full, Usable: full, Bound: gang.Counts{"prefill-0": 4, "prefill-2": 4, "decode": 8}, Admitted: true,
				AdmittedGroups: sets.New("prefill", "prefill-0", "prefill-2", "decode"), RefusedSurplus: true,
				Refused: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "4 waiting pods above the minimum, none of which fits now"},
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupAdmitted, Scheduled: "16/16",
				Summary:    "more wait, InsufficientGPUs: 4 waiting pods above the minimum, none of which fits now",
				Conditions: conditions(wasAdmitted(), satisfied(v2alpha2.ReasonSatisfied, "the minimum of 16 pods is bound")),
				SubGroups: []v2alpha2.SubGroupStatus{
					inner("prefill", 2, 3, 2, true, true),
					leaf("prefill-0", 4, 4, 4, true, true), leaf("prefill-1", 4, 4, 0, false, false), leaf("prefill-2", 4, 4, 4, true, true),
					leaf("decode", 8, 8, 8, true, true),
				},
			},
		},
		"an admitted gang, pods that a sub-group above its minimum has lost refused": {
			group: tree().Obj(),
			facts: Facts{
				Created: full, Usable: full, Bound: gang.Counts{"prefill-0": 4, "prefill-1": 3, "prefill-2": 4, "decode": 8}, Admitted: true,
				AdmittedGroups: sets.New("prefill", "prefill-0", "prefill-1", "prefill-2", "decode"),
				Refused:        Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "prefill/prefill-1 needs 1 nvidia.com/gpu for 1 pod, 0 are free"},
			},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupAdmitted, Scheduled: "16/16",
				Summary:    "more wait, InsufficientGPUs: prefill/prefill-1 needs 1 nvidia.com/gpu for 1 pod, 0 are free; 3 pods above the minimum are bound",
				Conditions: conditions(wasAdmitted(), satisfied(v2alpha2.ReasonSatisfied, "the minimum of 16 pods is bound")),
				SubGroups: []v2alpha2.SubGroupStatus{
					inner("prefill", 2, 3, 2, true, true),
					leaf("prefill-0", 4, 4, 4, true, true), leaf("prefill-1", 4, 4, 3, false, true), leaf("prefill-2", 4, 4, 4, true, true),
					leaf("decode", 8, 8, 8, true, true),
				},
			},
		},
		"bound surplus is counted": {
			group: tree().Obj(),
			facts: Facts{Created: full, Usable: full, Bound: full, Admitted: true, AdmittedGroups: sets.New("prefill", "prefill-0", "prefill-1", "prefill-2", "decode")},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupAdmitted, Scheduled: "16/16", Summary: "4 pods above the minimum are bound",
				Conditions: conditions(wasAdmitted(), satisfied(v2alpha2.ReasonSatisfied, "the minimum of 16 pods is bound")),
				SubGroups: []v2alpha2.SubGroupStatus{
					inner("prefill", 2, 3, 3, true, true),
					leaf("prefill-0", 4, 4, 4, true, true), leaf("prefill-1", 4, 4, 4, true, true), leaf("prefill-2", 4, 4, 4, true, true),
					leaf("decode", 8, 8, 8, true, true),
				},
			},
		},
		"an admitted gang that lost pods is degraded and stays admitted; the transition of Admitted keeps its time": {
			group: flat().Spec(func(*v2alpha2.PodGroupSpec) {}).
				Condition(v2alpha2.ConditionAdmitted, metav1.ConditionTrue, v2alpha2.ReasonAdmitted, "the minimum was bound").
				Condition(v2alpha2.ConditionSatisfied, metav1.ConditionTrue, v2alpha2.ReasonSatisfied, "the minimum of 8 pods is bound").Obj(),
			facts: Facts{Created: gang.Counts{"": 7}, Usable: gang.Counts{"": 7}, Bound: gang.Counts{"": 7}, Admitted: true},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupDegraded, Scheduled: "7/8", Reason: v2alpha2.ReasonWaitingForPods,
				Summary: "needs 8 pods, 7 exist",
				Conditions: conditions(metav1.Condition{
					Status: metav1.ConditionTrue, Reason: "Admitted", Message: "the minimum was bound", LastTransitionTime: before,
				}, unsatisfied(v2alpha2.ReasonWaitingForPods, "needs 8 pods, 7 exist")),
			},
		},
		"a gang whose pods all succeeded is completed": {
			group: flat().Obj(),
			facts: Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Bound: gang.Counts{"": 8}, Admitted: true, Ended: true},
			want: v2alpha2.PodGroupStatus{
				ObservedGeneration: 3, Phase: v2alpha2.PodGroupCompleted, Scheduled: "8/8", Summary: "8 pods succeeded, none is left to run",
				Conditions: conditions(wasAdmitted(), satisfied(v2alpha2.ReasonCompleted, "every pod has succeeded")),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range tc.group.Status.Conditions {
				tc.group.Status.Conditions[i].LastTransitionTime = before
			}
			f := tc.facts
			f.Group = tc.group
			if f.TreeErr == nil {
				var err error
				if f.Tree, err = Tree(&tc.group.Spec); err != nil {
					t.Fatal(err)
				}
			}
			unchanged := tc.group.DeepCopy()
			if f.TreeErr == nil && tc.want.Needs == "" {
				tc.want.Needs = map[string]string{"train": "8 pods", "llm": "all", "pair": "all"}[tc.group.Name]
			}
			got := Status(f, now)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(v2alpha2.PodGroupStatus{}, "Brief")); diff != "" {
				t.Errorf("PodGroupStatus (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(unchanged, tc.group); diff != "" {
				t.Errorf("the PodGroup was modified (-before +after):\n%s", diff)
			}
			// After the status is written, there is nothing more to write at any later time.
			f.Group = tc.group.DeepCopy()
			f.Group.Status = got
			if again := Status(f, metav1.NewTime(now.Add(time.Hour))); Compare(&got, &again) != Same {
				t.Errorf("the same facts gave another status:\n%s", cmp.Diff(got, again))
			}
		})
	}
}

// A gang that ran and is gone says until when it was bound, also after later writes, until it is bound again.
func TestAGangThatRanSaysUntilWhen(t *testing.T) {
	t.Parallel()
	group := flat().Obj()
	tree, err := Tree(&group.Spec)
	if err != nil {
		t.Fatal(err)
	}
	whole := gang.Counts{"": 8}
	for i, step := range []struct {
		facts Facts
		want  string
	}{
		{Facts{}, "the minimum has not been bound; Satisfied says why"},
		{Facts{Created: whole, Usable: whole, Bound: whole, Admitted: true, Pods: 8}, "the minimum was bound"},
		{Facts{}, "the minimum was bound until 2026-03-01 12:07 UTC, then no pod of it was left; Satisfied says why"},
		{Facts{Created: whole, Usable: whole, Pods: 8}, "the minimum was bound until 2026-03-01 12:07 UTC, then no pod of it was left; Satisfied says why"},
		{Facts{Created: whole, Usable: whole, Bound: whole, Admitted: true, Pods: 8}, "the minimum was bound"},
		{Facts{}, "the minimum was bound until 2026-03-01 12:10 UTC, then no pod of it was left; Satisfied says why"},
	} {
		step.facts.Group, step.facts.Tree = group, tree
		group.Status = Status(step.facts, metav1.NewTime(now.Add(time.Duration(i)*time.Minute)))
		if got := meta.FindStatusCondition(group.Status.Conditions, v2alpha2.ConditionAdmitted).Message; got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

func TestPodGroupStatusKeepsTheLimits(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	w := wrappers.MakePodGroup("big", "ml")
	for i := range v2alpha2.MaxSubGroups {
		w.SubGroup(strings.Repeat("x", 40)+fmt.Sprint(i), int32(1+rng.IntN(1000)))
	}
	group := w.Obj()
	var nodes []gang.Node
	for _, g := range group.Spec.SubGroups {
		nodes = append(nodes, gang.Node{Name: g.Name, MinMember: g.MinMember})
	}
	tree, err := gang.Build(gang.Node{}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	got := Status(Facts{
		Group: group, Tree: tree, Foreign: 3, ForeignNames: []string{strings.Repeat("ä", 300)},
		MisplacedTotal: 99, Misplaced: []Misplaced{{Why: strings.Repeat("ö", 2000), Pods: []string{strings.Repeat("ö", 2000)}, Total: 99}},
	}, now)
	if n := utf8.RuneCountInString(got.Summary); n > 256 {
		t.Errorf("summary of %d characters, want at most 256", n)
	}
	if len(got.Scheduled) > 32 {
		t.Errorf("scheduled is %q, want at most 32 characters", got.Scheduled)
	}
	if n := len(got.SubGroups); n != v2alpha2.MaxSubGroups {
		t.Errorf("%d sub-groups, want all", n)
	}
	if len(got.Conditions) == 0 {
		t.Error("no conditions")
	}
	for _, c := range got.Conditions {
		if utf8.RuneCountInString(c.Message) > message.MaxCondition || !utf8.ValidString(c.Message) {
			t.Errorf("message of %s is too long or cut inside a character", c.Type)
		}
	}
}

// What users can write freely is copied at most in part, into the status and into the messages of pods.
func TestMessagesAboutMissingPodsKeepTheLimits(t *testing.T) {
	t.Parallel()
	long := func(s string) string { return strings.Repeat(s, 1000) }
	w := wrappers.MakePodGroup(strings.Repeat("g", 253), "ml")
	for i := range v2alpha2.MaxSubGroups {
		w.SubGroup(fmt.Sprintf("%063d", i), 1)
	}
	group := w.Obj()
	tree, err := Tree(&group.Spec)
	if err != nil {
		t.Fatal(err)
	}
	owner := func(edit func(*Owner)) Owner {
		o := Owner{Kind: long("ä"), Name: long("ö"), Seen: true, Wants: 4, ControllerKind: long("ü"), ControllerName: long("é")}
		edit(&o)
		return o
	}
	f := Facts{
		Namespace: "ml", Name: group.Name, Group: group, Tree: tree, Examined: true, Pods: 1, Created: gang.Counts{fmt.Sprintf("%063d", 0): 1},
		Owners: []Owner{owner(func(o *Owner) { o.GaveUp = long("f") }), owner(func(o *Owner) { o.FailedIndexes = long("1,3-") })},
		Failed: DescribeFailures([]*corev1.Pod{failedPod(long("p"), 1).Status(func(s *corev1.PodStatus) {
			s.Reason, s.ContainerStatuses = long("r"), []corev1.ContainerStatus{exited(long("c"), 1, 2)}
		}).Obj()}, nil),
	}
	status := Status(f, now)
	texts := map[string]string{
		"summary":   status.Summary,
		"condition": meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionSatisfied).Message,
		"warning":   LackingEvent(f, &status, time.Minute).Note,
		"pod":       NotesOf(f).NoteOf(WaitingPod{Pod: wrappers.MakePod("a", "ml").SubGroup(fmt.Sprintf("%063d", 0)).Obj()}).Text,
	}
	f.Owners = []Owner{{Kind: long("ä"), Name: long("ö"), Unknown: true}}
	f.Unclaimed = []Unclaimed{{Kind: "Pod", Names: []string{long("x")}, Total: 9, Where: "label pod-group-name"}}
	status = Status(f, now)
	texts["other condition"] = meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionSatisfied).Message
	for name, text := range texts {
		limit := message.MaxCondition
		switch name {
		case "summary":
			limit = message.MaxSummary
		case "warning":
			limit = 1024
		}
		if n := utf8.RuneCountInString(text); n > limit {
			t.Errorf("%s of %d characters, want at most %d", name, n, limit)
		}
		for _, s := range []string{"ä", "ö", "ü", "é", "f", "p", "r", "c", "x"} {
			if strings.Contains(text, strings.Repeat(s, 201)) {
				t.Errorf("%s has more than 200 characters that a user wrote: %s", name, text)
			}
		}
		if strings.Contains(text, strings.Repeat("1,3-", 51)) {
			t.Errorf("%s has more than 200 characters of indexes", name)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	status := func(reason v2alpha2.Reason, message, summary string, satisfied metav1.ConditionStatus) v2alpha2.PodGroupStatus {
		s := v2alpha2.PodGroupStatus{Summary: summary, Reason: reason, Conditions: []metav1.Condition{
			{Type: v2alpha2.ConditionSatisfied, Status: satisfied, Reason: string(reason), Message: message},
		}}
		if satisfied == metav1.ConditionTrue {
			s.Reason = ""
		}
		return s
	}
	refused := func(message string) v2alpha2.PodGroupStatus {
		return status(v2alpha2.ReasonFragmented, message, ""+message, metav1.ConditionFalse)
	}
	tests := map[string]struct {
		before, after v2alpha2.PodGroupStatus
		want          Change
	}{
		"nothing changed": {refused("6 of 8 fit"), refused("6 of 8 fit"), Same},
		"a first status that passes by itself can wait for a short time": {
			v2alpha2.PodGroupStatus{}, status(v2alpha2.ReasonWaitingForPods, "needs 8 pods, 0 exist", "", metav1.ConditionFalse), First},
		"a first status that lasts is a change":     {v2alpha2.PodGroupStatus{}, refused("6 of 8 fit"), Condition},
		"a condition that becomes True is a change": {refused("6 of 8 fit"), status(v2alpha2.ReasonSatisfied, "bound", "8/8", metav1.ConditionTrue), Condition},
		"another lasting reason is a change":        {refused("6 of 8 fit"), status(v2alpha2.ReasonGated, "3 gated", "", metav1.ConditionFalse), Condition},
		"a reason that passes by itself can wait":   {refused("6 of 8 fit"), status(v2alpha2.ReasonBinding, "planned", "", metav1.ConditionFalse), Content},
		"the nodes per filter reason move":          {refused("6 of 8 fit; 4 nodes: a, 3 nodes: b"), refused("5 of 8 fit; 3 nodes: a, 4 nodes: b"), Numbers},
		"filter reasons in another order":           {refused("6 of 8 fit; 4 nodes: a, 3 nodes: b"), refused("6 of 8 fit; 5 nodes: b, 3 nodes: a"), Numbers},
		"another sub-group blocks":                  {refused("prefill-2 lacks 2 of 8"), refused("prefill-3 lacks 2 of 8"), Content},
		"another filter reason":                     {refused("4 nodes: a"), refused("4 nodes: c"), Content},
		"fewer pods exist, by the count alone":      {status(v2alpha2.ReasonWaitingForPods, "needs 8 pods, 6 exist", "", metav1.ConditionFalse), status(v2alpha2.ReasonWaitingForPods, "needs 8 pods, 7 exist", "", metav1.ConditionFalse), Content},
		"the number of pods of another scheduler":   {status(v2alpha2.ReasonOtherScheduler, "3 pods of scheduler a", "", metav1.ConditionFalse), status(v2alpha2.ReasonOtherScheduler, "2 pods of scheduler a", "", metav1.ConditionFalse), Content},
		"a count of a sub-group":                    {v2alpha2.PodGroupStatus{SubGroups: []v2alpha2.SubGroupStatus{{Name: "a"}}}, v2alpha2.PodGroupStatus{SubGroups: []v2alpha2.SubGroupStatus{{Name: "a", Bound: 1}}}, Content},
		"other domains are used":                    {v2alpha2.PodGroupStatus{Placement: "rack r1"}, v2alpha2.PodGroupStatus{Placement: "rack r2"}, Content},
		"another GPU is held":                       {v2alpha2.PodGroupStatus{GPUs: "3/8"}, v2alpha2.PodGroupStatus{GPUs: "4/8"}, Content},
		"another number of children is needed":      {v2alpha2.PodGroupStatus{Needs: "3 of 4"}, v2alpha2.PodGroupStatus{Needs: "all"}, Content},
		"fields of an earlier version are removed":  {v2alpha2.PodGroupStatus{FormerSubGroups: []v2alpha2.FormerSubGroupStatus{{Name: "a"}}}, v2alpha2.PodGroupStatus{}, Content},
		"a newer generation":                        {v2alpha2.PodGroupStatus{}, v2alpha2.PodGroupStatus{ObservedGeneration: 2}, Content},
		"refused surplus of a satisfied gang moves": {status(v2alpha2.ReasonSatisfied, "bound", "more wait: 3 pods", metav1.ConditionTrue), status(v2alpha2.ReasonSatisfied, "bound", "more wait: 2 pods", metav1.ConditionTrue), Numbers},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Compare(&tc.before, &tc.after); got != tc.want {
				t.Errorf("Compare = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestStatusEvent(t *testing.T) {
	t.Parallel()
	group := func(admitted, satisfied metav1.ConditionStatus, reason v2alpha2.Reason, message string) v2alpha2.PodGroupStatus {
		return wrappers.MakePodGroup("train", "ml").
			Condition(v2alpha2.ConditionAdmitted, admitted, reason, "").
			Condition(v2alpha2.ConditionSatisfied, satisfied, reason, message).Obj().Status
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	var none v2alpha2.PodGroupStatus
	waiting := group(no, no, v2alpha2.ReasonWaitingForPods, "needs 8 pods, 6 exist")
	blocked := group(no, no, v2alpha2.ReasonFragmented, "6 of 8 fit")
	admitted := group(yes, yes, v2alpha2.ReasonSatisfied, "the minimum of 8 pods is bound")
	degraded := group(yes, no, v2alpha2.ReasonWaitingForPods, "needs 8 pods, 7 exist")
	tests := map[string]struct {
		before, after v2alpha2.PodGroupStatus
		want          *Event
	}{
		"incomplete":            {none, waiting, &Event{Reason: "GangIncomplete", Note: "WaitingForPods: needs 8 pods, 6 exist"}},
		"blocked":               {waiting, blocked, &Event{Warning: true, Reason: "GangBlocked", Note: "Fragmented: 6 of 8 fit"}},
		"still blocked":         {blocked, group(no, no, v2alpha2.ReasonFragmented, "5 of 8 fit"), nil},
		"its turn comes":        {blocked, group(no, no, v2alpha2.ReasonBinding, "planned"), nil},
		"admitted":              {blocked, admitted, &Event{Reason: "GangAdmitted", Note: "the minimum of 8 pods is bound"}},
		"below the minimum":     {admitted, degraded, &Event{Warning: true, Reason: "GangBelowMinimum", Note: "WaitingForPods: needs 8 pods, 7 exist"}},
		"satisfied again":       {degraded, admitted, &Event{Reason: "GangRestored", Note: "the minimum of 8 pods is bound again"}},
		"degraded and blocked":  {degraded, group(yes, no, v2alpha2.ReasonTooLarge, "no node"), &Event{Warning: true, Reason: "GangBlocked", Note: "TooLarge: no node"}},
		"invalid":               {waiting, group(no, no, v2alpha2.ReasonInvalid, "cycle"), &Event{Warning: true, Reason: "GangInvalid", Note: "cycle"}},
		"of another scheduler":  {waiting, group(no, no, v2alpha2.ReasonOtherScheduler, "needs 8 pods"), &Event{Warning: true, Reason: "GangBlocked", Note: "OtherScheduler: needs 8 pods"}},
		"replaced for another":  {admitted, group(yes, no, v2alpha2.ReasonOtherScheduler, "needs 8 pods"), &Event{Warning: true, Reason: "GangBelowMinimum", Note: "OtherScheduler: needs 8 pods"}},
		"completed":             {admitted, group(yes, yes, v2alpha2.ReasonCompleted, "every pod has succeeded"), &Event{Reason: "GangCompleted", Note: "every pod has succeeded"}},
		"a completed one again": {group(yes, yes, v2alpha2.ReasonCompleted, ""), admitted, nil},
		"no status yet":         {none, none, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, StatusEvent(&tc.before, &tc.after)); diff != "" {
				t.Errorf("StatusEvent (-want +got):\n%s", diff)
			}
		})
	}
}
