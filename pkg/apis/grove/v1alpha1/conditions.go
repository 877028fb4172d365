package v1alpha1

// Condition types.
const (
	// ConditionAvailable, on all three kinds: enough is available now. On a
	// PodCliqueSet every replica is, on a scaling group minAvailable replicas
	// are, on a PodClique minAvailable pods are ready.
	ConditionAvailable = "Available"

	// ConditionMinAvailableBreached, on a PodClique and a PodCliqueScalingGroup:
	// it was available once and is below its minimum now.
	ConditionMinAvailableBreached = "MinAvailableBreached"

	// ConditionPodCliqueScheduled, on a PodClique: minAvailable pods are bound.
	ConditionPodCliqueScheduled = "PodCliqueScheduled"

	// ConditionProgressing, on all three kinds of Inference: an update replaces
	// pods. The message says what it has come to and what it waits for. On a
	// PodCliqueSet it is False once the update is complete, for
	// kubectl wait --for=condition=Progressing=False.
	ConditionProgressing = "Progressing"

	// ConditionSucceeded, on a PodClique of a Training workload: all its pods
	// have succeeded, but for those that never started and were cancelled.
	// Present only when true, and final.
	ConditionSucceeded = "Succeeded"

	// ConditionFailed, on a PodCliqueSet of Training: the workload has failed.
	// Nothing is created any more; the phase follows when no pod runs. Present
	// only when true, and final.
	ConditionFailed = "Failed"

	// ConditionForeignObject, on a PodCliqueSet, PodCliqueScalingGroup or
	// PodClique: an object whose name is needed has another owner and was left
	// alone. Present only while true.
	ConditionForeignObject = "ForeignObject"

	// ConditionReplicaFailure, on all three kinds: an object that is needed
	// cannot be created, because the API server refuses it, has failed for 10 s,
	// or another of its name is in deletion; the message says which and why.
	// Present only while true.
	ConditionReplicaFailure = "ReplicaFailure"
)

// Reasons of ConditionAvailable.
const (
	// ReasonAllReplicasAvailable: True, every replica of the PodCliqueSet is.
	ReasonAllReplicasAvailable = "AllReplicasAvailable"
	// ReasonReplicasUnavailable: False, a replica of the PodCliqueSet is not.
	ReasonReplicasUnavailable = "ReplicasUnavailable"
	// ReasonScaledToZero: True, nothing is wanted.
	ReasonScaledToZero = "ScaledToZero"
)

// Reasons of ConditionMinAvailableBreached. Those that begin with Sufficient and
// Insufficient are also reasons of ConditionAvailable.
const (
	// ReasonSufficientReadyPods: minAvailable pods of the PodClique are ready.
	ReasonSufficientReadyPods = "SufficientReadyPods"
	// ReasonInsufficientReadyPods: fewer than minAvailable pods of the PodClique
	// are ready.
	ReasonInsufficientReadyPods = "InsufficientReadyPods"
	// ReasonSufficientReplicas: minAvailable replicas of the scaling group are
	// available.
	ReasonSufficientReplicas = "SufficientAvailablePodCliqueScalingGroupReplicas"
	// ReasonInsufficientReplicas: fewer than minAvailable replicas of the
	// scaling group are available.
	ReasonInsufficientReplicas = "InsufficientAvailablePodCliqueScalingGroupReplicas"
	// ReasonNeverAvailable: below the minimum, but it never was above it.
	ReasonNeverAvailable = "NeverAvailable"
	// ReasonUpdateInProgress: Unknown while an update replaces pods.
	ReasonUpdateInProgress = "UpdateInProgress"
)

// Reasons of ConditionPodCliqueScheduled.
const (
	// ReasonSufficientScheduledPods: minAvailable pods are bound.
	ReasonSufficientScheduledPods = "SufficientScheduledPods"
	// ReasonInsufficientScheduledPods: fewer than minAvailable pods are bound.
	ReasonInsufficientScheduledPods = "InsufficientScheduledPods"
)

// Reasons of ConditionSucceeded.
const (
	// ReasonAllPodsSucceeded: every pod of the PodClique that started has
	// succeeded.
	ReasonAllPodsSucceeded = "AllPodsSucceeded"
)

// Reasons of ConditionFailed.
const (
	// ReasonMaxRestartsExceeded: a replica failed, and trainingSpec.maxRestarts
	// are used.
	ReasonMaxRestartsExceeded = "MaxRestartsExceeded"
	// ReasonMaxRuntimeExceeded: trainingSpec.maxRuntime has passed since the
	// first start.
	ReasonMaxRuntimeExceeded = "MaxRuntimeExceeded"
)

// Reasons of ConditionProgressing. The first two are of False, the others of
// True.
const (
	// ReasonUpdateComplete: every pod is of the present template, or will be when
	// it is created.
	ReasonUpdateComplete = "UpdateComplete"
	// ReasonOnDelete: the update strategy is OnDelete, or was at the latest change
	// of the template, and there are pods of an earlier one, which stay until they
	// are deleted.
	ReasonOnDelete = "OnDelete"
	// ReasonWaitingForTurn: another replica of the PodCliqueSet is updated first.
	// On PodCliques and scaling groups; their status is False.
	ReasonWaitingForTurn = "WaitingForTurn"
	// ReasonUpdating: what is to be replaced next is being selected or deleted.
	ReasonUpdating = "Updating"
	// ReasonWaitingForDeletion: what is replaced still terminates.
	ReasonWaitingForDeletion = "WaitingForDeletion"
	// ReasonWaitingForCreation: what is replaced is gone, or more is wanted than
	// exists, and a pod, PodClique or scaling group is not created yet.
	ReasonWaitingForCreation = "WaitingForCreation"
	// ReasonWaitingForCapacity: a replacement is not bound to a node.
	ReasonWaitingForCapacity = "WaitingForCapacity"
	// ReasonWaitingForReadiness: a replacement is not ready.
	ReasonWaitingForReadiness = "WaitingForReadiness"
	// ReasonWaitingForMinAvailable: nothing more is taken down while fewer than
	// minAvailable are available.
	ReasonWaitingForMinAvailable = "WaitingForMinAvailable"
	// ReasonUpdateStalled: nothing has become of the update for longer than
	// --stalled-update-after of muster-controller. The message says what it waits
	// for. It goes on when it can.
	ReasonUpdateStalled = "UpdateStalled"
)

// Reasons of a ReplicaAttempt.
const (
	// ReasonPodCliquesDeleted: all PodCliques of the replica were deleted, by a
	// user or with their owner.
	ReasonPodCliquesDeleted = "PodCliquesDeleted"
	// ReasonTermination: the replica was below its minimum for longer than the
	// termination delay.
	ReasonTermination = "Termination"
	// ReasonRestart: the replica of a Training workload failed and is started
	// again.
	ReasonRestart = "Restart"
	// ReasonUpdate: the replica of a scaling group is updated to the present
	// template.
	ReasonUpdate = "Update"
)

// Reasons of ConditionForeignObject and ConditionReplicaFailure.
const (
	// ReasonNameTaken: an object of a needed name has another owner that lives.
	ReasonNameTaken = "NameTaken"
	// ReasonCreateRefused: the API server refused to create an object.
	ReasonCreateRefused = "CreateRefused"
	// ReasonCreateFailed: requests to create an object have failed for 10 s: a
	// webhook or the API server does not answer as it should.
	ReasonCreateFailed = "CreateFailed"
	// ReasonNameTerminating: an object of a needed name has been in deletion for
	// 10 s; its successor is created when it is gone.
	ReasonNameTerminating = "NameTerminating"
	// ReasonInvalidSpec: the spec got past admission though it is invalid.
	ReasonInvalidSpec = "InvalidSpec"
)
