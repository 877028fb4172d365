// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
)

// Facts is what the scheduler knows about one PodGroup and its pods at one point in time. Status, events and pod
// conditions are derived from it. Read-only.
type Facts struct {
	Namespace, Name string
	// Group is the latest observed PodGroup. nil: pods name it, but it does not exist.
	Group *v2alpha2.PodGroup
	// Tree is nil if Group is nil or invalid; TreeErr is the reason why it is invalid.
	Tree    *gang.Tree
	TreeErr error

	// Created counts pods that exist and have not failed, including completions of the current run. Usable counts those
	// of them that a plan may use or that are already placed. Bound counts those that are bound or counted as
	// succeeded.
	Created, Usable, Bound gang.Counts

	// GPUs is the number of GPUs that the gang's existing, unfinished pods request. HeldGPUs counts those of its
	// bound pods, including pods that are being deleted.
	GPUs, HeldGPUs int64

	// Priority is the priority that the gang counts with. nil: it has no pods that have not ended.
	Priority *int32

	// Nodes contains the nodes of the bound pods that count, by leaf, in no order. nil unless HasTopologyLevel.
	// NodeLabels contains the labels of those of the nodes that exist, by name. The reporter sets it.
	Nodes      map[string][]string
	NodeLabels map[string]map[string]string
	// OuterLabels contains of OuterLabels those of levels of which two domains have the same value of their own label.
	// The reporter sets it.
	OuterLabels map[NamedLevel][]string

	// Admitted: the minimum was bound, and some pod of the gang is still bound (sticky). AdmittedGroups contains the
	// same for sub-groups, below admitted parents only.
	Admitted       bool
	AdmittedGroups sets.Set[string]
	// Binding: a plan is in force, and its pods are being assumed or bound.
	Binding bool
	// WaitingSince is the time since which the existing pods can satisfy the tree of a gang that is not admitted;
	// zero: they cannot, or the gang is admitted.
	WaitingSince time.Time
	// Ahead is the number of gangs of the same priority that are tried before this one, as of a while ago; FirstAhead
	// is the name of the first of them that is in its namespace, "" if none is.
	Ahead      int
	FirstAhead string
	// Promised is the room that is reserved for the gang, which waits, as pods end. nil: none is.
	Promised *Promised
	// Pods is the number of pods that name the PodGroup, in any state.
	Pods int
	// NotOurs: there are pods, and all of them name another scheduler, none the stock scheduler, which is the default
	// of a pod without a schedulerName, unless the PodGroup was made from one of another scheduler. The PodGroup
	// belongs to another product.
	NotOurs bool
	// Unattended: all pods name another scheduler, and none has bound one of them, or reported anything about one, for
	// a while: perhaps the name is wrong.
	Unattended bool
	// UnattendedAt is when that will be so, unless a scheduler reacts before. Zero: it is so, or it will not be.
	UnattendedAt time.Time
	// Ended: every remaining pod has succeeded, and there is at least one.
	Ended bool
	// LastRunFailed: no pod of the last run is left but failed ones, while an earlier run completed. The reporter sets
	// it: WithoutEarlierRun.
	LastRunFailed bool

	// Refused is the reason why the last attempt found no plan. Its Reason is "" if there was no attempt, or it
	// succeeded.
	Refused Refusal
	// RefusedSurplus: the refused attempt was for surplus; otherwise it was for the minimum of a new gang, or for a
	// refill: of the minimum, or of a sub-group above it.
	RefusedSurplus bool
	// Failures counts consecutive plans that were aborted or bound only in part; the next attempt waits for its
	// back-off. Failure is why the last of them failed, "" if that is not known; FailingSince is when the first one
	// did.
	Failures     int
	Failure      string
	FailingSince time.Time
	// NoHelp is why ending pods of lower priority would not help a refused gang. "": that is not known, or there are
	// none.
	NoHelp string
	// MarksRefused is why pods that were to end for a refused gang could not be marked, so that none has ended. "":
	// they could.
	MarksRefused string
	// PreemptionForbiddenBy is what keeps a refused gang from preempting by its preemptionPolicy: "pod x" or
	// "PriorityClass x"; "": nothing does. PreemptsFrom is when its preemptionDelay ends, of which it waits for the
	// end; zero: it does not.
	PreemptionForbiddenBy string
	PreemptsFrom          time.Time
	// Preempting describes the pods of lower priority that end so that the gang can start. nil: none do.
	Preempting *Preempting
	// LosesPods: pods of the gang are being preempted, and it is not known yet which ones it has lost. It is not
	// planned meanwhile.
	LosesPods bool
	// Preempted describes what the gang lost to another one last. It is needed until the status of Group contains it
	// (IsRecordedIn), and must be nil afterwards: from then on the status is what is known. nil: nothing in the memory
	// of this process.
	Preempted *Preempted

	// Misplaced contains the waiting pods that count towards no leaf, by cause, the most frequent first.
	// MisplacedTotal is their number.
	Misplaced      []Misplaced
	MisplacedTotal int
	// Stray contains the same for bound pods.
	Stray      []Misplaced
	StrayTotal int
	// Leaving counts bound pods that are being deleted: they still use their resources, but no longer count.
	Leaving int
	// Gated, Terminating and Foreign count waiting pods that a plan cannot use: pods with scheduling gates, pods that
	// are being deleted, and pods of another scheduler (ForeignNames are their schedulerNames, sorted).
	Gated, Terminating, Foreign int
	// GateNames are the names of the gated pods' own scheduling gates, sorted.
	GateNames []string
	// GatedByPlugin counts those of the gated pods that have no gates of their own; GatedBy is the reason of one of
	// them: "pod x is gated by plugin ...".
	GatedByPlugin int
	GatedBy       string
	ForeignNames  []string
	// Profile is the schedulerName with which the gang is planned; "" if none of its waiting pods names one of ours.
	Profile string
	// BoundByOthers counts bound pods of the leaves that name another scheduler; each of them was bound individually.
	// OtherNames are those schedulerNames, sorted.
	BoundByOthers int
	OtherNames    []string
	// OurNames are the schedulerNames of this scheduler, sorted. It is set only for a gang with pods of other
	// schedulers and no Profile.
	OurNames []string

	// NoSuchClass is the PriorityClass that the PodGroup names if it does not exist; "": it exists, or none is named.
	NoSuchClass string

	// The reporter sets Examined, Owners, Failed and Unclaimed, and only for a gang that has lacked pods for a while,
	// which is then Examined. Owners are the controllers of its failed pods and of its existing ones, each sorted by
	// kind and name, at most 15; if it has no pods, the Job or StatefulSet that should create them. Failed describes
	// its failed pods. Unclaimed contains objects that name the PodGroup in another way than pods must.
	Examined  bool
	Owners    []Owner
	Failed    FailedPods
	Unclaimed []Unclaimed

	// Partial: partially bound, and provably never admitted. PartialFor is how long this has lasted.
	Partial    bool
	PartialFor time.Duration

	// Waiting contains the pods that are neither bound, nor in a plan, nor terminating.
	Waiting []WaitingPod
}

// Owner is a controller of pods of a gang.
type Owner struct {
	APIVersion, Kind, Name string
	UID                    types.UID
	// Leaf is the leaf of its pods, "" for a PodGroup without sub-groups. Mixed: its pods are in several leaves or in
	// none.
	Leaf  string
	Mixed bool
	// Pods is the number of its existing pods, without those that have finished or are being deleted. Since is when the
	// oldest of them was created. Failed is the number of its failed pods.
	Pods   int
	Since  time.Time
	Failed int

	// Seen: its object was read, and the fields below are known. Unknown: objects of its kind are not read.
	Seen, Unknown bool
	// ControllerKind and ControllerName are those of its own controller, for example a Deployment, which reverts
	// changes of the owner. "": it has none.
	ControllerKind, ControllerName string
	// Wants is the number of pods that it should have at the same time.
	Wants int
	// Ordered: it creates a pod only when the previous ones are ready. Suspended: it creates none.
	Ordered, Suspended bool
	// GaveUp is the reason why a Job has failed for good, FailedIndexes are the indexes that a Job does not try again.
	// "": none.
	GaveUp, FailedIndexes string
	// Complete: a Job has succeeded, and creates no more pods.
	Complete bool
}

// Unclaimed describes pods, or a controller of pods, that name the PodGroup in a place where the name has no effect.
type Unclaimed struct {
	// Kind is Pod, or the kind of the pods' controller. Names are the names of the objects, sorted, at most 10; Total
	// is their number.
	Kind  string
	Names []string
	Total int
	// Where is the place of the name: "label pod-group-name".
	Where string
}

// Misplaced are pods that count towards no leaf for the same cause.
type Misplaced struct {
	// Why is the cause, worded for one pod: "carries sub-group ...", "has no label ...".
	Why string
	// Pods are their names, sorted, at most 10; Total is their number.
	Pods  []string
	Total int
}

// Refusal is the result of an attempt that found no plan.
type Refusal struct {
	Reason  v2alpha2.Reason
	Message string
	// NoNodeHelps: nodes that a cluster autoscaler adds would not let the gang start, although others with this reason
	// would.
	NoNodeHelps bool
	At          time.Time
}

// WaitingPod is a waiting pod of a gang.
type WaitingPod struct {
	Pod *corev1.Pod
	// Since is when the scheduler first observed the pod.
	Since time.Time
	// Gated: it has scheduling gates.
	Gated bool
	// Misplaced is why it counts towards no leaf, "" if it has one: "carries sub-group ...".
	Misplaced string
	// NeedsCapacity: the last attempt was refused for a lack of capacity that another node could resolve, and the pod
	// belongs to the missing minimum, or to a surplus sub-group that is planned as a unit or has lost pods
	// (docs/decisions, G13).
	NeedsCapacity bool
}
