// SPDX-License-Identifier: Apache-2.0

package v2alpha2

// Reasons of events about PodGroups.
const (
	// EventGangIncomplete: pods of the minimum do not exist, or have scheduling
	// gates.
	EventGangIncomplete = "GangIncomplete"
	// EventGangBlocked: the minimum exists and cannot be placed, or has been BackingOff
	// for five minutes. The note begins with the reason of the condition Satisfied.
	EventGangBlocked = "GangBlocked"
	// EventGangInvalid: the spec is not valid, or members name no leaf of it.
	EventGangInvalid = "GangInvalid"
	// EventGangAdmitted: the minimum was bound, for the first time or after no pod
	// of the gang was left.
	EventGangAdmitted = "GangAdmitted"
	// EventGangBelowMinimum: an admitted gang lost pods of its minimum.
	EventGangBelowMinimum = "GangBelowMinimum"
	// EventGangRestored: the minimum of an admitted gang is bound again.
	EventGangRestored = "GangRestored"
	// EventGangCompleted: every pod that is left has succeeded, and these are the minimum.
	EventGangCompleted = "GangCompleted"
	// EventPreempting: pods of lower priority are about to end, or are being
	// ended, so that the gang can start. The note contains the reason and the
	// message of condition Preempting.
	EventPreempting = "Preempting"
	// EventPreempted: the gang lost pods to a gang or pod of higher priority.
	// The note is the message of condition Preempted. It is a warning if the gang
	// lost all of its pods.
	EventPreempted = "Preempted"
	// EventPartialGangReleased: bound pods of a gang, or of a sub-group above the
	// gang's minimum, were deleted, because its minimum was never bound and the
	// missing pods could not be bound in time.
	EventPartialGangReleased = "PartialGangReleased"
)

// Reasons of events about pods.
const (
	// EventPartialGangKept: the pod belongs to a gang, or to a sub-group above the
	// gang's minimum, whose minimum was never bound and cannot be completed. The
	// pod is kept because no controller would replace it.
	EventPartialGangKept = "PartialGangKept"
	// EventWaitingForGang: the pod waits until its gang can start, for a reason
	// other than missing capacity, or for any reason if the PodGroup has
	// markUnschedulable false. It is also the reason of the pod's condition
	// PodScheduled=False.
	EventWaitingForGang = "WaitingForGang"
	// EventFailedScheduling: the gang of the pod lacks capacity. kube-scheduler
	// uses the same reason.
	EventFailedScheduling = "FailedScheduling"
	// EventPodGroupNotFound: the PodGroup of the pod's gang does not exist.
	// There is one event for all pods that name it, on the first of them.
	EventPodGroupNotFound = "PodGroupNotFound"
	// EventPodGroupNotNamed: a PodGroup has no pods, and the pod, or the Job
	// that created it, names the PodGroup in a place where the name has no
	// effect.
	EventPodGroupNotNamed = "PodGroupNotNamed"
	// EventIgnoredKeys: pods of this scheduler have labels or annotations of
	// other schedulers, which have no effect, or a
	// misspelled annotation pod-group-name. There is one event for each
	// controller of such pods, or for the pod if it has none. On a PodGroup of
	// another scheduler: fields of it have no effect.
	EventIgnoredKeys = "IgnoredKeys"
	// EventStartsAlone: pods of the controller that are in no gang run, and others
	// have waited for room for more than ten seconds. There is one event for each
	// controller, and none for Deployments and DaemonSets.
	EventStartsAlone = "StartsAlone"
	// EventMarksContradict: the pod names different PodGroups in several places,
	// and waits. There is one event for all pods with the same marks, on the first
	// of them.
	EventMarksContradict = "MarksContradict"
	// EventSubGroupNotFound: the pod does not name a leaf of its PodGroup.
	// There is one event for all pods with the same cause, on the first of
	// them.
	EventSubGroupNotFound = "SubGroupNotFound"
)

// Reasons of events of muster-controller about workloads whose PodGroups it
// makes.
const (
	// EventGangNotMade: the marks of the workload ask for a PodGroup, and there is
	// none, because they cannot be obeyed. The note says why, and what becomes of
	// the pods.
	EventGangNotMade = "GangNotMade"
)

// Reasons of conditions of pods.
const (
	// PodReasonPartialGangReleased, on condition DisruptionTarget: the pod is
	// deleted because the minimum of its gang, or of its sub-group above the
	// gang's minimum, was never bound. A podFailurePolicy that ignores the
	// condition, as for evicted pods, does not count it as a failure.
	PodReasonPartialGangReleased = "PartialGangReleased"
)
