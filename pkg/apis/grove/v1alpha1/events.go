// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Events of all workloads. Events about ConditionReplicaFailure and ConditionForeignObject, on all three kinds, use
// the reason of the condition: ReasonCreateRefused, ReasonCreateFailed, ReasonNameTerminating, ReasonInvalidSpec,
// ReasonNameTaken, ReasonPodsGivenUp.
const (
	// EventScaledIn, Normal, on a PodClique: pods were deleted because there were more than spec.replicas.
	EventScaledIn = "ScaledIn"
	// EventPodEnded, Normal, on a PodClique: pods that failed or succeeded were deleted, to be replaced under the same
	// index. It is a Warning if a pod of a Training workload failed too often and is not replaced.
	EventPodEnded = "PodEnded"
	// EventPodLost, Warning, on a PodClique: pods on unreachable nodes were replaced after their grace period.
	EventPodLost = "PodLost"
	// EventDuplicateIndex, Warning, on a PodClique: pods were deleted because an older pod has the same index.
	EventDuplicateIndex = "DuplicateIndex"
	// EventPodUpdating, Normal, on a PodClique: pods of an earlier template were deleted, to be replaced by pods of
	// the current one.
	EventPodUpdating = "PodUpdating"
	// EventReplicaUpdating, Normal, on a PodCliqueScalingGroup: a replica with pods of an earlier template is replaced.
	EventReplicaUpdating = "ReplicaUpdating"
	// EventAdmitted, Normal, on a PodCliqueSet: the minimum of every replica is bound.
	EventAdmitted = "Admitted"
	// EventAvailable, Normal, on a PodCliqueSet, Inference only: every replica is available.
	EventAvailable = "Available"
	// EventDegraded, Warning, on a PodCliqueSet, Inference only: it was available, and for 2 s fewer of its replicas have
	// been. Not while an update replaces pods.
	EventDegraded = "Degraded"
	// EventRecovered, Normal, on a PodCliqueSet, Inference only: every replica is available again, after EventDegraded.
	EventRecovered = "Recovered"
	// EventReplicaPreempted, Normal, on a PodCliqueSet: a replica was preempted, as a whole or of pods above its minimum,
	// which wait for room again. A replica of a Training workload that was preempted as a whole is restarted, which uses
	// no restart. The note says by which gang, if that is known, and what was lost.
	EventReplicaPreempted = "ReplicaPreempted"
	// EventScaled, Normal, on a PodCliqueSet: spec.replicas has changed.
	EventScaled = "Scaled"
	// EventUpdateStarted, Normal, on a PodCliqueSet: the template has changed, and an update begins.
	EventUpdateStarted = "UpdateStarted"
	// EventReplicaUpdated, Normal, on a PodCliqueSet: a replica has been updated to the current template, and is
	// available.
	EventReplicaUpdated = "ReplicaUpdated"
	// EventUpdateCompleted, Normal, on a PodCliqueSet: all replicas have been updated to the current template, or the
	// strategy was changed to OnDelete, which ends the update. The note says which.
	EventUpdateCompleted = "UpdateCompleted"
	// EventUpdateStalled, Warning, on a PodCliqueSet: an update has made no progress for longer than
	// --stalled-update-after.
	EventUpdateStalled = "UpdateStalled"
	// EventUpdatePaused, Normal, on a PodCliqueSet: updateStrategy.rollingRecreate.paused stops an update. What is being
	// replaced is completed. Once for each version of the spec.
	EventUpdatePaused = "UpdatePaused"
	// EventPartitionReached, Normal, on a PodCliqueSet: the replicas from updateStrategy.rollingRecreate.partition on have
	// been updated; those below keep their template. Once for each version of the spec.
	EventPartitionReached = "PartitionReached"
	// EventTemplateRejected, Warning, on a PodCliqueSet: the template has changed, and the API server rejects a pod of
	// the new one, which was created with dry-run. Nothing is replaced until it is accepted or the template is changed.
	EventTemplateRejected = "TemplateRejected"
	// EventTemplateUnchecked, Normal, on a PodCliqueSet: an update begins although it is unknown whether the API server
	// accepts pods of the new template, because a webhook does not support dry-run or does not answer.
	EventTemplateUnchecked = "TemplateUnchecked"
	// EventMixedTemplates, Warning, on a PodCliqueScalingGroup: with update strategy OnDelete, single pods of a replica
	// were deleted, and their successors have the new template beside pods of an earlier one. Once for each update.
	EventMixedTemplates = "MixedTemplates"
	// EventReplicaReplaced, Normal, on a PodCliqueSet or PodCliqueScalingGroup: the whole replica is replaced, because
	// its PodCliques were deleted. Its attempt was raised.
	EventReplicaReplaced = "ReplicaReplaced"
	// EventMinAvailableBreached, Warning, on a PodClique or PodCliqueScalingGroup: it was available and is below its minimum.
	EventMinAvailableBreached = "MinAvailableBreached"
	// EventTerminationDue, Warning, on all three kinds: a termination deadline was set because of a breach, or the
	// deadline has changed. That of a PodCliqueSet is the earliest one in it. Not for a Training workload, whose failures
	// and restarts have events of their own.
	EventTerminationDue = "TerminationDue"
	// EventMinAvailableRecovered, Normal, on a PodClique or PodCliqueScalingGroup: it is no longer below its minimum.
	EventMinAvailableRecovered = "MinAvailableRecovered"
	// EventReplicaTerminated, Warning, on a PodCliqueSet or PodCliqueScalingGroup: a replica was below its minimum for
	// longer than the termination delay. The whole replica is deleted and recreated.
	EventReplicaTerminated = "ReplicaTerminated"
)

// Events on a PodCliqueSet of a Training workload, each once per transition.
const (
	// EventPodCliqueFailed, Warning: a PodClique is below its minimum.
	EventPodCliqueFailed = "PodCliqueFailed"
	// EventPodCliquePreempted, Warning: a PodClique is below its minimum, and all of its missing pods were preempted by a
	// scheduler.
	EventPodCliquePreempted = "PodCliquePreempted"
	// EventReplicaRestarting, Normal: a replica is restarted; the note has the number of restarts.
	EventReplicaRestarting = "ReplicaRestarting"
	// EventMaxRestartsExceeded, Warning: more replicas failed than restarts were left.
	EventMaxRestartsExceeded = "MaxRestartsExceeded"
	// EventMaxRuntimeExceeded, Warning: maxRuntime has passed since the first start.
	EventMaxRuntimeExceeded = "MaxRuntimeExceeded"
	// EventWorkloadSucceeded, Normal: all replicas have succeeded. The note says how many pods were given up, if any were.
	EventWorkloadSucceeded = "WorkloadSucceeded"
)

// Events on a PodClique of a Training workload.
const (
	// EventPodsCancelled, Normal: pods that never started were deleted, because all that started have succeeded or were given up.
	EventPodsCancelled = "PodsCancelled"
	// EventPodsStopped, Normal: pods were deleted because the workload has failed.
	EventPodsStopped = "PodsStopped"
)

// Actions of the events that muster-controller emits: the operation that it performed, or tried to perform.
const (
	// ActionCreateChild: create or update the child objects of a replica of a PodCliqueSet.
	ActionCreateChild = "CreateChild"
	// ActionWatchMinimum: compare the number of available pods or replicas with the minimum.
	ActionWatchMinimum = "WatchMinimum"
	// ActionReplaceReplica: delete the remaining objects of a replica, and recreate the replica when they are gone.
	ActionReplaceReplica = "ReplaceReplica"
	// ActionUpdate: update existing pods to the current template.
	ActionUpdate = "Update"
	// ActionCreatePodClique: create or update the PodCliques of a PodCliqueScalingGroup.
	ActionCreatePodClique = "CreatePodClique"
	// ActionCreatePod: create a pod of a PodClique.
	ActionCreatePod = "CreatePod"
	// ActionReplacePod: create a pod with the index of a lost pod.
	ActionReplacePod = "ReplacePod"
	// ActionFinish: finish a Training workload that has succeeded or failed.
	ActionFinish = "Finish"
	// ActionDeletePod: delete a pod of a PodClique.
	ActionDeletePod = "DeletePod"
)
