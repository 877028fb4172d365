// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodCliqueScalingGroup is a group of cliques, in one replica of a
// PodCliqueSet, that scale together: each replica of the group has one
// PodClique for each clique. muster-controller creates PodCliqueScalingGroups;
// users may scale them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podcliquescalinggroups,singular=podcliquescalinggroup,shortName=pcsg,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.status.minAvailable`,description="Replicas that must be available"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="Desired number of replicas"
// +kubebuilder:printcolumn:name="Bound",type=integer,JSONPath=`.status.scheduledReplicas`,description="Replicas whose minimum is bound"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Replicas whose minimum is available"
// +kubebuilder:printcolumn:name="Breached",type=date,JSONPath=`.status.minAvailableBreachedSince`,description="How long minAvailable has been breached; empty if it is not"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,priority=1,description="Replicas created from the current template; 0 if an update has not reached the group"
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,priority=1,description="State of the latest update, or what it waits for"
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.terminationDeadline`,priority=1,description="When the next termination is due: of a replica of the group, or of the PodCliqueSet's replica that it is part of"
type PodCliqueScalingGroup struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec PodCliqueScalingGroupSpec `json:"spec"`

	// status is the observed state. Only muster-controller writes it.
	// +optional
	Status PodCliqueScalingGroupStatus `json:"status,omitempty"`
}

// PodCliqueScalingGroupList is a list of PodCliqueScalingGroups.
//
// +kubebuilder:object:root=true
type PodCliqueScalingGroupList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the PodCliqueScalingGroups.
	Items []PodCliqueScalingGroup `json:"items"`
}

// PodCliqueScalingGroupSpec is the desired state of a PodCliqueScalingGroup.
// All fields except replicas are managed by muster-controller.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.minAvailable) || self.replicas >= self.minAvailable`,fieldPath=".replicas",message="must not be less than minAvailable, which is an explicit floor",messageExpression=`"must not be less than minAvailable, which is an explicit floor: %d is less than %d".format([self.replicas, self.minAvailable])`
// +kubebuilder:validation:XValidation:rule=`has(self.minAvailable) == has(oldSelf.minAvailable) && (!has(self.minAvailable) || self.minAvailable == oldSelf.minAvailable)`,fieldPath=".minAvailable",reason=FieldValueForbidden,message="is immutable: replicas that run were admitted by it"
// +kubebuilder:validation:XValidation:rule=`self.cliqueNames == oldSelf.cliqueNames`,fieldPath=".cliqueNames",reason=FieldValueForbidden,message="is immutable: replicas that run could not follow"
type PodCliqueScalingGroupSpec struct {
	// replicas is the desired number of replicas. It may be 0 if minAvailable is unset.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule=`self <= 1024`,message="must not be above 1024: the PodGroup of a replica of the PodCliqueSet has that many sub-groups at most; use fewer replicas of scaling groups, and more of the PodCliqueSet"
	Replicas int32 `json:"replicas"`

	// minAvailable is the number of replicas that are admitted together with
	// the standalone cliques. The group is unavailable if fewer replicas are
	// available. If it is set, the group cannot be scaled below it. Unset means
	// 1, but the group may be scaled to 0. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// minReadySeconds is the time in seconds for which the pods of a replica
	// must be ready before they count as available. For each clique the larger
	// of this number and its own minReadySeconds applies. Unset means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// cliqueNames are the names of the cliques in the PodCliqueSet's template
	// that belong to the group. Each replica has one PodClique for each of
	// them. Immutable.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	CliqueNames []string `json:"cliqueNames"`
}

// PodCliqueScalingGroupStatus is the observed state of a PodCliqueScalingGroup.
type PodCliqueScalingGroupStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of replicas that exist. A replica exists if at
	// least one of its PodCliques does.
	// +optional
	// +kubebuilder:default=0
	Replicas int32 `json:"replicas"`

	// scheduledReplicas is the number of replicas in which the minimum of every PodClique is bound to nodes.
	// +optional
	// +kubebuilder:default=0
	ScheduledReplicas int32 `json:"scheduledReplicas"`

	// availableReplicas is the number of replicas in which every PodClique has
	// its minimum of available pods and no PodClique is terminating.
	// +optional
	// +kubebuilder:default=0
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas is the number of replicas whose pods were all created from
	// the current template of the PodCliqueSet. It is 0 as long as an update has
	// not reached the group.
	// +optional
	// +kubebuilder:default=0
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// minAvailable is the number of replicas that must be available:
	// spec.minAvailable, or if that is unset 1, and 0 when scaled to zero.
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// selector is the label selector of the pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Selector *string `json:"selector,omitempty"`

	// podCliqueSetAttempt is the attempt of the PodCliqueSet's replica that the
	// rest of this status belongs to. A new attempt resets wasAvailable and
	// replicaAttempts.
	// +optional
	PodCliqueSetAttempt int32 `json:"podCliqueSetAttempt,omitempty"`

	// replicaAttempts are the current attempts of replicas that have been
	// replaced, see ReplicaAttempt. A replica without an entry is in its first
	// attempt, 0.
	// +optional
	// +listType=map
	// +listMapKey=index
	ReplicaAttempts []ReplicaAttempt `json:"replicaAttempts,omitempty"`

	// wasAvailable records that minAvailable replicas have been available at
	// some time in this attempt of the PodCliqueSet's replica. It is reset by a
	// new attempt, and when the group is scaled to zero.
	// +optional
	WasAvailable bool `json:"wasAvailable,omitempty"`

	// minAvailableBreachedSince is when MinAvailableBreached became True,
	// rounded up to a whole second. Unset unless the condition is True.
	// +optional
	MinAvailableBreachedSince *metav1.Time `json:"minAvailableBreachedSince,omitempty"`

	// terminationDeadline is when the next termination is due according to the
	// current terminationDelay. If MinAvailableBreached is True, it is the
	// termination of the PodCliqueSet's replica that the group belongs to;
	// otherwise that of a single replica of the group. Unset if no termination
	// is due.
	// +optional
	TerminationDeadline *metav1.Time `json:"terminationDeadline,omitempty"`

	// conditions include Available (minAvailable replicas are available),
	// MinAvailableBreached (minAvailable replicas were available once, and are
	// not available now), Progressing (the state of an update; Inference only)
	// and, only while they are True, ReplicaFailure and ForeignObject.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lastErrors are the errors of the latest reconciliation. Empty if there
	// were none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	LastErrors []LastError `json:"lastErrors,omitempty"`

	// observedRevision is the number of the PodCliqueSet's revision that this
	// status describes: updatedReplicas counts replicas created from the
	// template of this revision. Unset before the first revision was observed.
	// +optional
	ObservedRevision int64 `json:"observedRevision,omitempty"`

	// currentPodCliqueSetGenerationHash is the generation hash of the
	// PodCliqueSet that all pods of the group correspond to.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CurrentPodCliqueSetGenerationHash *string `json:"currentPodCliqueSetGenerationHash,omitempty"`

	// currentPodTemplateHashes are the hashes of the templates that all pods
	// of the group were created from, one for each of its cliques. During an
	// update of the group they are those before the update.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	CurrentPodTemplateHashes []PodTemplateHash `json:"currentPodTemplateHashes,omitempty"`

	// settledIndices are the indices of the replicas that exist, or have existed and
	// are created again, in the form 0-5,7. What is created at another index is
	// scaled out: during an update it has the new template. The text none: it was
	// scaled to zero, and nothing has existed since.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	SettledIndices string `json:"settledIndices,omitempty"`

	// updateProgress is the progress of the latest update that replaced
	// replicas of this group, or that would have replaced them if the update
	// strategy were not OnDelete. Unset before the first such update.
	// +optional
	UpdateProgress *PodCliqueScalingGroupUpdateProgress `json:"updateProgress,omitempty"`
}

// PodTemplateHash is the hash of the template of a clique.
type PodTemplateHash struct {
	// name of the clique in the template of the PodCliqueSet.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// hash is the label grove.io/pod-template-hash of the clique's pods.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Hash string `json:"hash"`
}

// PodCliqueScalingGroupUpdateProgress is the progress of an update.
type PodCliqueScalingGroupUpdateProgress struct {
	// updateStartedAt is when the update began.
	// +required
	UpdateStartedAt metav1.Time `json:"updateStartedAt"`

	// updateEndedAt is when the update completed. Unset while it is in progress.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`

	// lastProgressTime is when the update last made progress: it began, or a
	// replica was selected or replaced.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`

	// pausedSince is since when the update is paused. Gang termination is not
	// suspended any more when that is --stalled-update-after ago. Unset if the
	// update is not paused.
	// +optional
	PausedSince *metav1.Time `json:"pausedSince,omitempty"`

	// podCliqueSetGenerationHash is the generation hash of the PodCliqueSet
	// that is being rolled out.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PodCliqueSetGenerationHash string `json:"podCliqueSetGenerationHash,omitempty"`

	// previousGenerationHash identifies the revision that what the update has
	// not reached is recreated with. Unset with update strategy OnDelete, and if
	// no such revision is known.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PreviousGenerationHash string `json:"previousGenerationHash,omitempty"`

	// reachedIndices are the indices of the replicas that the update has
	// reached, in the form 0-3,7: those that were selected, and those that were
	// created from the current template. In other replicas, what is missing is
	// created from the previous template. Unset with update strategy OnDelete.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	ReachedIndices string `json:"reachedIndices,omitempty"`

	// updatedPodCliquesCount is the number of updated PodCliques of the group.
	// +optional
	UpdatedPodCliquesCount int32 `json:"updatedPodCliquesCount"`

	// totalPodCliquesCount is the number of the group's PodCliques.
	// +optional
	TotalPodCliquesCount int32 `json:"totalPodCliquesCount"`

	// readyReplicaIndicesSelectedToUpdate are the available replicas that the
	// update has selected for replacement, one at a time. Replicas that are not
	// available are replaced without being listed.
	// +optional
	ReadyReplicaIndicesSelectedToUpdate *ReplicaIndicesSelectedToUpdate `json:"readyReplicaIndicesSelectedToUpdate,omitempty"`
}

// ReplicaIndicesSelectedToUpdate are replicas of a scaling group that an update
// has selected.
type ReplicaIndicesSelectedToUpdate struct {
	// current is the index of the replica that is being replaced. Unset between
	// replicas, and after the update.
	// +optional
	Current *int32 `json:"current,omitempty"`

	// completed are the indices of the latest 64 replicas that were updated, in
	// the order in which they were selected.
	// +optional
	// +listType=atomic
	Completed []int32 `json:"completed,omitempty"`
}
