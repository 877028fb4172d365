package v1alpha1

// Events of all workloads. Events about ConditionReplicaFailure and ConditionForeignObject, on
// all three kinds, have the reason of the condition: ReasonCreateRefused, ReasonCreateFailed, ReasonNameTerminating,
// ReasonInvalidSpec, ReasonNameTaken.
const (
	// EventScaledIn, Normal, on a PodClique: pods were deleted because there were more than spec.replicas.
	EventScaledIn = "ScaledIn"
	// EventPodEnded, Normal, on a PodClique: pods that failed or succeeded were deleted, to be replaced under the same index.
	EventPodEnded = "PodEnded"
	// EventPodLost, Warning, on a PodClique: pods on unreachable nodes were replaced after their grace period.
	EventPodLost = "PodLost"
	// EventDuplicateIndex, Warning, on a PodClique: pods were deleted because an older pod has the same index.
	EventDuplicateIndex = "DuplicateIndex"
	// EventPodUpdating, Normal, on a PodClique: pods of an earlier template were deleted, to be replaced by pods of the present one.
	EventPodUpdating = "PodUpdating"
	// EventReplicaUpdating, Normal, on a PodCliqueScalingGroup: a replica with pods of an earlier template is replaced.
	EventReplicaUpdating = "ReplicaUpdating"
	// EventAdmitted, Normal, on a PodCliqueSet: the minimum of every replica is bound.
	EventAdmitted = "Admitted"
	// EventAvailable, Normal, on a PodCliqueSet: every replica is available.
	EventAvailable = "Available"
	// EventDegraded, Warning, on a PodCliqueSet: it was available, and fewer of its replicas are. Not during an update.
	EventDegraded = "Degraded"
	// EventRecovered, Normal, on a PodCliqueSet: every replica is available again, after EventDegraded.
	EventRecovered = "Recovered"
	// EventScaled, Normal, on a PodCliqueSet: spec.replicas has changed.
	EventScaled = "Scaled"
	// EventUpdateStarted, Normal, on a PodCliqueSet: its template has changed, and what runs follows.
	EventUpdateStarted = "UpdateStarted"
	// EventReplicaUpdated, Normal, on a PodCliqueSet: all of a replica follows the present template, and it is available.
	EventReplicaUpdated = "ReplicaUpdated"
	// EventUpdateCompleted, Normal, on a PodCliqueSet: everything follows the present template.
	EventUpdateCompleted = "UpdateCompleted"
	// EventUpdateStalled, Warning, on a PodCliqueSet: nothing has become of an update for longer than --stalled-update-after.
	EventUpdateStalled = "UpdateStalled"
	// EventReplicaReplaced, Normal, on a PodCliqueSet or PodCliqueScalingGroup: the attempt of a replica was raised, so that all
	// of the replica is replaced, because its PodCliques were deleted.
	EventReplicaReplaced = "ReplicaReplaced"
	// EventMinAvailableBreached, Warning, on a PodClique or PodCliqueScalingGroup: it was available and is below its minimum.
	EventMinAvailableBreached = "MinAvailableBreached"
	// EventTerminationDue, Warning, on a PodClique or PodCliqueScalingGroup: a breach has a deadline, or another than before.
	EventTerminationDue = "TerminationDue"
	// EventMinAvailableRecovered, Normal, on a PodClique or PodCliqueScalingGroup: it is not below its minimum any more.
	EventMinAvailableRecovered = "MinAvailableRecovered"
	// EventReplicaTerminated, Warning, on a PodCliqueSet or PodCliqueScalingGroup: a replica was below its minimum for longer
	// than the termination delay. All of it is deleted, and created again.
	EventReplicaTerminated = "ReplicaTerminated"
)

// Events on a PodCliqueSet of a Training workload, each once per transition.
const (
	// EventPodCliqueFailed, Warning: a PodClique is below its minimum.
	EventPodCliqueFailed = "PodCliqueFailed"
	// EventReplicaRestarting, Normal: a replica is restarted; the note has the number of restarts.
	EventReplicaRestarting = "ReplicaRestarting"
	// EventMaxRestartsExceeded, Warning: a replica failed, and no restarts are left.
	EventMaxRestartsExceeded = "MaxRestartsExceeded"
	// EventMaxRuntimeExceeded, Warning: maxRuntime has passed since the first start.
	EventMaxRuntimeExceeded = "MaxRuntimeExceeded"
	// EventWorkloadSucceeded, Normal: all replicas have succeeded.
	EventWorkloadSucceeded = "WorkloadSucceeded"
)

// Events on a PodClique of a Training workload.
const (
	// EventPodsCancelled, Normal: pods that never started were deleted, because all that started have succeeded.
	EventPodsCancelled = "PodsCancelled"
	// EventPodsStopped, Normal: pods were deleted because the workload has failed.
	EventPodsStopped = "PodsStopped"
)

// Actions of the events that muster-controller emits: what it did, or tried to do.
const (
	// ActionCreateChild: create or update what a replica of a PodCliqueSet consists of.
	ActionCreateChild = "CreateChild"
	// ActionWatchMinimum: compare what is available with the minimum.
	ActionWatchMinimum = "WatchMinimum"
	// ActionReplaceReplica: delete what is left of a replica, and create it again when that is gone.
	ActionReplaceReplica = "ReplaceReplica"
	// ActionUpdate: bring what runs to the present template.
	ActionUpdate = "Update"
	// ActionCreatePodClique: create or update the PodCliques of a PodCliqueScalingGroup.
	ActionCreatePodClique = "CreatePodClique"
	// ActionCreatePod: create a pod of a PodClique.
	ActionCreatePod = "CreatePod"
	// ActionReplacePod: create a pod under the index of a lost one.
	ActionReplacePod = "ReplacePod"
	// ActionFinish: end a Training workload that succeeded or failed.
	ActionFinish = "Finish"
	// ActionDeletePod: delete a pod of a PodClique.
	ActionDeletePod = "DeletePod"
)
