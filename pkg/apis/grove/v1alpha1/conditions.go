// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types.
const (
	// ConditionAvailable, on all three kinds: a PodCliqueSet is available if
	// every replica is, a scaling group if minAvailable replicas are, a
	// PodClique if minAvailable pods have been ready for minReadySeconds; of a
	// Training workload, if as many run or have succeeded.
	ConditionAvailable = "Available"

	// ConditionMinAvailableBreached, on a PodClique and a
	// PodCliqueScalingGroup: the object was available once and is now below its
	// minimum. Of a PodClique of a Training workload also: a pod has failed without
	// which it cannot reach its minimum.
	ConditionMinAvailableBreached = "MinAvailableBreached"

	// ConditionPodCliqueScheduled, on a PodClique: minAvailable pods are bound.
	ConditionPodCliqueScheduled = "PodCliqueScheduled"

	// ConditionProgressing, on all three kinds but PodCliques of a scaling
	// group, Inference only: an update replaces pods. The message describes the state of the update and what it
	// waits for. On a PodCliqueSet it is False when no pod or replica will be
	// replaced until somebody acts: the update is complete, paused, at its
	// partition, or left to deletions. kubectl wait
	// --for=condition=Progressing=False waits for that.
	ConditionProgressing = "Progressing"

	// ConditionSucceeded, on a PodClique of a Training workload: all its pods
	// have succeeded, except those that never started and were cancelled, and
	// those that were given up after six failures in a row.
	// Present only when True, and final.
	ConditionSucceeded = "Succeeded"

	// ConditionFailed, on a PodCliqueSet of a Training workload: the workload
	// has failed. muster-controller creates no more objects for it; the phase
	// becomes Failed when no pod is running. Present only when True, and final.
	ConditionFailed = "Failed"

	// ConditionForeignObject, on a PodCliqueSet, PodCliqueScalingGroup or
	// PodClique: an object with a required name has another owner and was left
	// alone. Present only while True.
	ConditionForeignObject = "ForeignObject"

	// ConditionTopologyLevelsUnavailable, on a PodCliqueSet with a topology
	// constraint: a domain that a constraint names is not a level of its
	// ClusterTopologyBinding any more. PodGroups that exist keep the levels that they have,
	// and running pods are left alone. PodGroups and sub-groups that require such a domain
	// are not created.
	ConditionTopologyLevelsUnavailable = "TopologyLevelsUnavailable"

	// ConditionReplicaFailure, on all three kinds: a required object cannot be
	// created, because the API server rejects it, because requests have failed
	// for 10 s, or because another object of its name is being deleted; or the
	// spec is invalid; or pods of a Training workload were given up. The message
	// names the cause. Present only while True.
	ConditionReplicaFailure = "ReplicaFailure"
)

// Reasons of ConditionAvailable.
const (
	// ReasonAllReplicasAvailable: True, every replica of the PodCliqueSet is available.
	ReasonAllReplicasAvailable = "AllReplicasAvailable"
	// ReasonReplicasUnavailable: False, a replica of the PodCliqueSet is not available.
	ReasonReplicasUnavailable = "ReplicasUnavailable"
	// ReasonAllReplicasSucceeded: True, every replica of the Training workload has
	// succeeded. Its pods have ended.
	ReasonAllReplicasSucceeded = "AllReplicasSucceeded"
	// ReasonScaledToZero: True, the desired number of replicas is 0.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonWaitingForMinReadySeconds: False, minAvailable pods of the PodClique
	// are ready, but not all of them for minReadySeconds yet.
	ReasonWaitingForMinReadySeconds = "WaitingForMinReadySeconds"
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
	// ReasonNeverAvailable: below the minimum, which was never reached.
	ReasonNeverAvailable = "NeverAvailable"
	// ReasonUpdateInProgress: Unknown while an update replaces pods.
	ReasonUpdateInProgress = "UpdateInProgress"
	// ReasonPodsPreempted: a PodClique of a Training workload is below its
	// minimum, and all of its missing pods were preempted by a scheduler.
	ReasonPodsPreempted = "PodsPreempted"
	// ReasonPodsLost: a PodClique of a Training workload is below its minimum,
	// and each of its missing pods was lost with its node or preempted.
	ReasonPodsLost = "PodsLost"
	// ReasonNodesDoNotAnswer: Unknown, the minimum depends on pods whose nodes
	// do not answer. Nothing is terminated or restarted because of them.
	ReasonNodesDoNotAnswer = "NodesDoNotAnswer"
	// ReasonSchedulerDoesNotAnswer: Unknown, the minimum depends on pods for
	// which their scheduler has not answered. Nothing is terminated or restarted
	// because of them.
	ReasonSchedulerDoesNotAnswer = "SchedulerDoesNotAnswer"
)

// Reasons of ConditionTopologyLevelsUnavailable.
const (
	// ReasonTopologyNameMissing: Unknown, no topology constraint of the
	// PodCliqueSet has a topologyName.
	ReasonTopologyNameMissing = "TopologyNameMissing"
	// ReasonClusterTopologyNotFound: Unknown, the ClusterTopologyBinding does not
	// exist.
	ReasonClusterTopologyNotFound = "ClusterTopologyNotFound"
	// ReasonClusterTopologyLevelsUnavailable: True, the ClusterTopologyBinding
	// does not have a level.
	ReasonClusterTopologyLevelsUnavailable = "ClusterTopologyLevelsUnavailable"
	// ReasonAllClusterTopologyLevelsAvailable: False, the ClusterTopologyBinding
	// has all levels.
	ReasonAllClusterTopologyLevelsAvailable = "AllClusterTopologyLevelsAvailable"
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
	// succeeded or was given up, and minAvailable have succeeded.
	ReasonAllPodsSucceeded = "AllPodsSucceeded"
)

// Reasons of ConditionFailed. ConditionAvailable of a workload that has failed
// is False with the same reason and message.
const (
	// ReasonMaxRestartsExceeded: more replicas failed than restarts of
	// trainingSpec.maxRestarts were left.
	ReasonMaxRestartsExceeded = "MaxRestartsExceeded"
	// ReasonMaxRuntimeExceeded: trainingSpec.maxRuntime has passed since the
	// first start.
	ReasonMaxRuntimeExceeded = "MaxRuntimeExceeded"
)

// Reasons of ConditionProgressing. UpdateComplete, OnDelete, UpdateDeferred,
// UpdatePaused, PartitionReached and WaitingForTurn have status False, the
// others True.
const (
	// ReasonUpdateComplete: every pod was created from the current template;
	// pods that do not exist yet will be. On a PodClique or scaling group that
	// an update has not reached, this is about the template that it has.
	ReasonUpdateComplete = "UpdateComplete"
	// ReasonOnDelete: the update strategy is OnDelete. Some pods were created
	// from an earlier template, and stay until they are deleted.
	ReasonOnDelete = "OnDelete"
	// ReasonUpdateDeferred: the update strategy is RollingRecreate, and was
	// OnDelete at the latest change of the template. Some pods were created
	// from an earlier template, and stay until they are deleted or the template
	// changes again.
	ReasonUpdateDeferred = "UpdateDeferred"
	// ReasonUpdatePaused: updateStrategy.rollingRecreate.paused is set, and no
	// further pod or replica is replaced until it is unset. The message says
	// what is left, or what the replica that is being updated waits for.
	ReasonUpdatePaused = "UpdatePaused"
	// ReasonPartitionReached: all replicas from
	// updateStrategy.rollingRecreate.partition on are updated; the others keep
	// their template until the partition is lowered.
	ReasonPartitionReached = "PartitionReached"
	// ReasonWaitingForTurn: on a PodClique or scaling group that has pods of an
	// earlier template than its own, and whose replica of the PodCliqueSet is not
	// being updated. What an update has not reached usually keeps its template,
	// and does not have this reason.
	ReasonWaitingForTurn = "WaitingForTurn"
	// ReasonUpdating: the next pods or replicas to replace are being selected
	// or deleted.
	ReasonUpdating = "Updating"
	// ReasonWaitingForDeletion: pods that are replaced are still terminating.
	ReasonWaitingForDeletion = "WaitingForDeletion"
	// ReasonWaitingForCreation: a pod, PodClique or scaling group has not been
	// created yet: the replaced object is gone, or fewer objects exist than
	// desired.
	ReasonWaitingForCreation = "WaitingForCreation"
	// ReasonWaitingForCapacity: a replacement is not bound to a node yet.
	ReasonWaitingForCapacity = "WaitingForCapacity"
	// ReasonWaitingForReadiness: a replacement, or another pod or replica of the
	// current template, is not ready, or not for minReadySeconds yet.
	ReasonWaitingForReadiness = "WaitingForReadiness"
	// ReasonWaitingForMinAvailable: no ready pod and no available replica is
	// deleted, because fewer than minAvailable others are available.
	ReasonWaitingForMinAvailable = "WaitingForMinAvailable"
	// ReasonTemplateRejected: on a PodCliqueSet, the API server rejects a pod of
	// the new template. Nothing is replaced until it is accepted or the template
	// is changed.
	ReasonTemplateRejected = "TemplateRejected"
	// ReasonUpdateStalled: the update has made no progress for longer than
	// --stalled-update-after of muster-controller. The message says what it
	// waits for. The update continues as soon as it can.
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
	// ReasonRestart: the replica of a Training workload failed and is
	// restarted.
	ReasonRestart = "Restart"
	// ReasonPreemption: pods of the replica of a Training workload were
	// preempted by a scheduler, and it is restarted. This uses no restart.
	ReasonPreemption = "Preemption"
	// ReasonNodesLost: pods of the replica of a Training workload were lost with
	// their nodes, and it is restarted. This uses no restart.
	ReasonNodesLost = "NodesLost"
	// ReasonUpdate: the replica of a scaling group is updated to the current
	// template.
	ReasonUpdate = "Update"
)

// Reasons of ConditionForeignObject and ConditionReplicaFailure.
const (
	// ReasonNameTaken: an object with a required name has another owner, which still exists.
	ReasonNameTaken = "NameTaken"
	// ReasonCreateRefused: the API server rejected the creation of an object.
	ReasonCreateRefused = "CreateRefused"
	// ReasonCreateFailed: requests to create an object have failed for 10 s,
	// because a webhook or the API server does not respond correctly.
	ReasonCreateFailed = "CreateFailed"
	// ReasonNameTerminating: an object with a required name has been
	// terminating for 10 s. The new object is created when it is gone.
	ReasonNameTerminating = "NameTerminating"
	// ReasonInvalidSpec: the spec passed admission although it is invalid.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonPodsGivenUp: pods of a Training workload above minAvailable have
	// failed 6 times in a row, and are not replaced in this attempt.
	ReasonPodsGivenUp = "PodsGivenUp"
)
