package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodCliqueScalingGroup is the cliques of one replica of a PodCliqueSet that
// scale together: each of its replicas has one PodClique of every clique. Made
// by muster-controller; users scale it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podcliquescalinggroups,singular=podcliquescalinggroup,shortName=pcsg,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="MinAvail",type=integer,JSONPath=`.status.minAvailable`,description="Replicas needed"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="Replicas wanted"
// +kubebuilder:printcolumn:name="Scheduled",type=integer,JSONPath=`.status.scheduledReplicas`,description="Replicas whose minimum is bound"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Replicas whose minimum is ready"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,description="Replicas made from the present template"
// +kubebuilder:printcolumn:name="Breached",type=date,JSONPath=`.status.minAvailableBreachedSince`,description="How long minAvailable has been breached; empty if it is not"
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.terminationDeadline`,description="When the next termination is due: of a replica of the group, or of the PodCliqueSet's replica that it is part of"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,priority=1,description="What an update has come to or waits for"
// +kubebuilder:printcolumn:name="MinBreached",type=string,JSONPath=`.status.conditions[?(@.type=="MinAvailableBreached")].status`,priority=1
// +kubebuilder:printcolumn:name="PCLQs-Updated",type=integer,JSONPath=`.status.updateProgress.updatedPodCliquesCount`,priority=1
// +kubebuilder:printcolumn:name="PCLQs-Total",type=integer,JSONPath=`.status.updateProgress.totalPodCliquesCount`,priority=1
type PodCliqueScalingGroup struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is wanted.
	// +required
	Spec PodCliqueScalingGroupSpec `json:"spec"`

	// status says what there is. Written by muster-controller alone.
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

// PodCliqueScalingGroupSpec says what is wanted. All but replicas is given by
// the PodCliqueSet.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.minAvailable) || self.replicas >= self.minAvailable`,fieldPath=".replicas",message="must not be less than minAvailable, which is an explicit floor"
// +kubebuilder:validation:XValidation:rule=`has(self.minAvailable) == has(oldSelf.minAvailable) && (!has(self.minAvailable) || self.minAvailable == oldSelf.minAvailable)`,fieldPath=".minAvailable",reason=FieldValueForbidden,message="is immutable: replicas that run were admitted by it"
// +kubebuilder:validation:XValidation:rule=`self.cliqueNames == oldSelf.cliqueNames`,fieldPath=".cliqueNames",reason=FieldValueForbidden,message="is immutable: replicas that run could not follow"
type PodCliqueScalingGroupSpec struct {
	// replicas of the group. 0 is legal unless minAvailable is given.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule=`self <= 1024`,message="must not be above 1024: the PodGroup of a replica of the PodCliqueSet has that many sub-groups at most; use fewer replicas of scaling groups, and more of the PodCliqueSet"
	Replicas int32 `json:"replicas"`

	// minAvailable is the number of replicas that are admitted together with the
	// standalone cliques; the group is unavailable below it. An explicit one is
	// a floor for scaling too. Unset means 1, but the group may be scaled to 0.
	// Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// cliqueNames are the cliques of the PodCliqueSet's template of which each
	// replica has one. Immutable.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	CliqueNames []string `json:"cliqueNames"`
}

// PodCliqueScalingGroupStatus says what there is.
type PodCliqueScalingGroupStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas are those that exist: at least one PodClique of the replica does.
	// +optional
	// +kubebuilder:default=0
	Replicas int32 `json:"replicas"`

	// scheduledReplicas have the minimum of every clique bound to nodes.
	// +optional
	// +kubebuilder:default=0
	ScheduledReplicas int32 `json:"scheduledReplicas"`

	// availableReplicas have every clique with its minimum of ready pods and
	// none terminating.
	// +optional
	// +kubebuilder:default=0
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas have all pods made from the present template.
	// +optional
	// +kubebuilder:default=0
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// minAvailable is the number of replicas needed at present:
	// spec.minAvailable, or if that is unset 1, 0 when scaled to zero.
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// selector selects the pods, as text, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Selector *string `json:"selector,omitempty"`

	// podCliqueSetAttempt is the attempt of the PodCliqueSet's replica that the
	// rest of this status belongs to. A new attempt starts wasAvailable and
	// replicaAttempts afresh.
	// +optional
	PodCliqueSetAttempt int32 `json:"podCliqueSetAttempt,omitempty"`

	// replicaAttempts are the attempts of replicas that were replaced, see
	// ReplicaAttempt. A replica without an entry is in its first attempt, 0.
	// +optional
	// +listType=map
	// +listMapKey=index
	ReplicaAttempts []ReplicaAttempt `json:"replicaAttempts,omitempty"`

	// wasAvailable says that minAvailable replicas were available once. Sticky
	// within one attempt of the PodCliqueSet's replica, until the group is scaled
	// to zero.
	// +optional
	WasAvailable bool `json:"wasAvailable,omitempty"`

	// minAvailableBreachedSince is when MinAvailableBreached became True, a whole
	// second, rounded up. Unset unless it is True.
	// +optional
	MinAvailableBreachedSince *metav1.Time `json:"minAvailableBreachedSince,omitempty"`

	// terminationDeadline is when the next termination is due, by the present
	// terminationDelay: if MinAvailableBreached is True that of the
	// PodCliqueSet's replica which the group is part of, else that of a single
	// replica of the group. Unset if none is.
	// +optional
	TerminationDeadline *metav1.Time `json:"terminationDeadline,omitempty"`

	// conditions are Available (minAvailable replicas are), MinAvailableBreached
	// (they were once, and are not now) and, while they hold, ReplicaFailure and
	// ForeignObject.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lastErrors are what went wrong in the latest attempt. Empty when nothing
	// did.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	LastErrors []LastError `json:"lastErrors,omitempty"`

	// observedRevision is the number of the PodCliqueSet's revision that this
	// status describes: updatedReplicas counts what was made from its template.
	// Unset before the first was seen.
	// +optional
	ObservedRevision int64 `json:"observedRevision,omitempty"`

	// currentPodCliqueSetGenerationHash is the PodCliqueSet's generation hash
	// that every pod of the group follows.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CurrentPodCliqueSetGenerationHash *string `json:"currentPodCliqueSetGenerationHash,omitempty"`

	// updateProgress is the latest update that replaced something here, or under
	// OnDelete would have. Unset before the first.
	// +optional
	UpdateProgress *PodCliqueScalingGroupUpdateProgress `json:"updateProgress,omitempty"`
}

// PodCliqueScalingGroupUpdateProgress is the progress of an update.
type PodCliqueScalingGroupUpdateProgress struct {
	// updateStartedAt is when the update began.
	// +required
	UpdateStartedAt metav1.Time `json:"updateStartedAt"`

	// updateEndedAt is when the update was complete. Unset while it runs.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`

	// lastProgressTime is when something last became of the update: it began, or a replica was
	// selected or replaced.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`

	// podCliqueSetGenerationHash is the PodCliqueSet's generation hash that is
	// being rolled out.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PodCliqueSetGenerationHash string `json:"podCliqueSetGenerationHash,omitempty"`

	// updatedPodCliquesCount is the number of the group's PodCliques that are
	// updated.
	// +optional
	UpdatedPodCliquesCount int32 `json:"updatedPodCliquesCount"`

	// totalPodCliquesCount is the number of the group's PodCliques.
	// +optional
	TotalPodCliquesCount int32 `json:"totalPodCliquesCount"`

	// readyReplicaIndicesSelectedToUpdate are the ready replicas that the update
	// takes down, one at a time.
	// +optional
	ReadyReplicaIndicesSelectedToUpdate *ReplicaIndicesSelectedToUpdate `json:"readyReplicaIndicesSelectedToUpdate,omitempty"`
}

// ReplicaIndicesSelectedToUpdate are replicas of a scaling group.
type ReplicaIndicesSelectedToUpdate struct {
	// current is the index of the replica being updated, or after the last one,
	// that of the last.
	// +required
	Current int32 `json:"current"`

	// completed are the indices of the replicas that are updated, in the order in
	// which they were selected, the latest 64.
	// +optional
	// +listType=atomic
	Completed []int32 `json:"completed,omitempty"`
}
