// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodClique is a group of pods with the same role, in one replica of a
// PodCliqueSet or in one replica of a PodCliqueScalingGroup. muster-controller
// creates PodCliques; users may scale those that do not belong to a scaling
// group.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podcliques,singular=podclique,shortName=pclq,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.hpaPodSelector
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.status.minAvailable`,description="Pods that must be available"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="Desired number of pods"
// +kubebuilder:printcolumn:name="Bound",type=integer,JSONPath=`.status.scheduledReplicas`,description="Pods bound to nodes"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Pods ready"
// +kubebuilder:printcolumn:name="Breached",type=date,JSONPath=`.status.minAvailableBreachedSince`,description="How long minAvailable has been breached; empty if it is not"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,priority=1,description="Pods ready for minReadySeconds; of a Training workload, running or succeeded"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,priority=1,description="Pods created from the current template; 0 if an update has not reached the PodClique"
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,priority=1,description="State of the latest update, or what it waits for"
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.terminationDeadline`,priority=1,description="When termination is due because of the breach"
type PodClique struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec PodCliqueSpec `json:"spec"`

	// status is the observed state. Only muster-controller writes it.
	// +optional
	Status PodCliqueStatus `json:"status,omitempty"`
}

// PodCliqueList is a list of PodCliques.
//
// +kubebuilder:object:root=true
type PodCliqueList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the PodCliques.
	Items []PodClique `json:"items"`
}

// PodCliqueSpec is the desired state of a PodClique. It is used in PodCliques
// and in the template of a PodCliqueSet. In a PodClique, all fields except
// replicas are managed by muster-controller.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.minAvailable) || self.replicas >= self.minAvailable`,fieldPath=".replicas",message="must not be less than minAvailable, which is an explicit floor",messageExpression=`"must not be less than minAvailable, which is an explicit floor: %d is less than %d".format([self.replicas, self.minAvailable])`
// +kubebuilder:validation:XValidation:rule=`has(self.minAvailable) == has(oldSelf.minAvailable) && (!has(self.minAvailable) || self.minAvailable == oldSelf.minAvailable)`,fieldPath=".minAvailable",reason=FieldValueForbidden,message="is immutable: pods that run were admitted by it"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.roleName) || (has(self.roleName) && self.roleName == oldSelf.roleName)`,fieldPath=".roleName",reason=FieldValueForbidden,message="is immutable: running pods have it"
// +kubebuilder:validation:XValidation:rule=`has(self.startsAfter) == has(oldSelf.startsAfter) && (!has(self.startsAfter) || self.startsAfter == oldSelf.startsAfter)`,fieldPath=".startsAfter",reason=FieldValueForbidden,message="is immutable: pods that run were started by it"
type PodCliqueSpec struct {
	// roleName is the name of the pods' role, unique in the PodCliqueSet. Unset
	// means the name of the clique. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RoleName string `json:"roleName,omitempty"`

	// podSpec is the spec of the pods. If it has no schedulerName, the pods get
	// the one that muster-controller is configured with.
	// +required
	PodSpec corev1.PodSpec `json:"podSpec"`

	// replicas is the desired number of pods. Unset means 1. In a template, it
	// is the number of pods that a PodClique is created with. Once the
	// PodClique has been scaled, its own spec.replicas applies instead.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule=`self <= 150000`,message="must not be above 150000: a cluster of Kubernetes runs no more pods; use fewer replicas"
	Replicas int32 `json:"replicas"`

	// minAvailable is the number of pods that are admitted together. The
	// PodClique is unavailable if fewer pods are available. If it is set, the
	// PodClique cannot be scaled below it. Unset means the number of replicas
	// that the PodClique was created with, or the current number if that is
	// lower: scaling in lowers the minimum. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// minReadySeconds is the time in seconds for which a pod must be ready
	// before it counts as available: for updates, for the condition Available,
	// and for the counts of available pods and replicas. A breach of
	// minAvailable depends on ready pods only. Unset means 0. Not used in
	// Training workloads.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// startsAfter are the names of the cliques in the template that must have
	// started before this one. Used only with CliqueStartupTypeExplicit.
	// Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	StartsAfter []string `json:"startsAfter,omitempty"`

	// autoScalingConfig lets a HorizontalPodAutoscaler scale the PodClique. It
	// may not be set for a clique of a scaling group, because the group scales
	// as a whole.
	// +optional
	ScaleConfig *AutoScalingConfig `json:"autoScalingConfig,omitempty"`
}

// PodCliqueStatus is the observed state of a PodClique. Terminating pods are
// not counted in any field.
type PodCliqueStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods.
	// +optional
	// +kubebuilder:default=0
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of pods that are ready.
	// +optional
	// +kubebuilder:default=0
	ReadyReplicas int32 `json:"readyReplicas"`

	// scheduledReplicas is the number of pods that are bound to nodes.
	// +optional
	// +kubebuilder:default=0
	ScheduledReplicas int32 `json:"scheduledReplicas"`

	// scheduleGatedReplicas is the number of pods with scheduling gates.
	// +optional
	// +kubebuilder:default=0
	ScheduleGatedReplicas int32 `json:"scheduleGatedReplicas"`

	// updatedReplicas is the number of pods created from the current template
	// of the PodCliqueSet. It is 0 as long as an update has not reached the
	// PodClique.
	// +optional
	// +kubebuilder:default=0
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// minAvailable is the number of pods that must be available:
	// spec.minAvailable, or the number that an unset spec.minAvailable
	// currently means.
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// hpaPodSelector is the label selector of the pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Selector *string `json:"hpaPodSelector,omitempty"`

	// availableReplicas is the number of pods that have been ready for
	// minReadySeconds. In a Training workload it is the number of pods that
	// count towards minAvailable: running pods of which no container has
	// failed, whether they are ready or not, and pods that have succeeded.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// succeededReplicas is the number of pods that have succeeded. Training only.
	// +optional
	SucceededReplicas int32 `json:"succeededReplicas,omitempty"`

	// succeededIndices are the indices of the pods that have succeeded, in the
	// form 0-5,7. These pods are never recreated, even if their objects are
	// deleted. Training only.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	SucceededIndices string `json:"succeededIndices,omitempty"`

	// startedIndices are the indices whose pods have run at least once, in the
	// same form. Once all of these pods have succeeded, pods that never started
	// are cancelled. Training only.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	StartedIndices string `json:"startedIndices,omitempty"`

	// preemptedIndices are the indices whose last pod that ran was preempted by
	// a scheduler, in the form 0-5,7. An index is removed when another pod of it
	// runs. Training only.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	PreemptedIndices string `json:"preemptedIndices,omitempty"`

	// lostIndices are the indices whose last pod that ran was lost with its
	// node, in the same form. An index is removed when another pod of it runs.
	// Training only.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	LostIndices string `json:"lostIndices,omitempty"`

	// removedSucceededReplicas is the number of pods that have succeeded and
	// whose objects have been deleted. The minimum of the PodGroup is reduced
	// by this number. Training only.
	// +optional
	RemovedSucceededReplicas int32 `json:"removedSucceededReplicas,omitempty"`

	// wasAvailable records that minAvailable pods have been ready at some time;
	// for Training workloads, that they have been running. It is reset only
	// when the PodClique is scaled to zero.
	// +optional
	WasAvailable bool `json:"wasAvailable,omitempty"`

	// minAvailableBreachedSince is when MinAvailableBreached became True,
	// rounded up to a whole second. Unset unless the condition is True.
	// +optional
	MinAvailableBreachedSince *metav1.Time `json:"minAvailableBreachedSince,omitempty"`

	// terminationDeadline is when termination is due because of the breach:
	// minAvailableBreachedSince plus the current terminationDelay. The replica
	// of the PodCliqueSet is then terminated; if the PodClique belongs to a
	// scaling group with enough other available replicas, only the replica of
	// the scaling group is terminated. Unset without a breach or without a
	// terminationDelay.
	// +optional
	TerminationDeadline *metav1.Time `json:"terminationDeadline,omitempty"`

	// conditions include Available (minAvailable pods are available),
	// MinAvailableBreached (minAvailable pods were ready once, and are not
	// ready now), PodCliqueScheduled (minAvailable pods are bound), Progressing
	// (the state of an update; Inference only) and, only while they are True,
	// Succeeded (Training only), ReplicaFailure and ForeignObject.
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
	// status describes: updatedReplicas counts pods created from the template
	// of this revision. Unset before the first revision was observed.
	// +optional
	ObservedRevision int64 `json:"observedRevision,omitempty"`

	// currentPodCliqueSetGenerationHash is the generation hash of the
	// PodCliqueSet that all pods of the PodClique correspond to. During an
	// update of the PodClique it is the hash before the update.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CurrentPodCliqueSetGenerationHash *string `json:"currentPodCliqueSetGenerationHash,omitempty"`

	// settledIndices are the indices of the pods that exist, or have existed and
	// are created again, in the form 0-5,7. What is created at another index is
	// scaled out: during an update it has the new template. The text none: it was
	// scaled to zero, and nothing has existed since.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	SettledIndices string `json:"settledIndices,omitempty"`

	// currentPodTemplateHash is the hash of the template that all pods of the
	// PodClique were created from. During an update of the PodClique it is the
	// hash before the update.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CurrentPodTemplateHash *string `json:"currentPodTemplateHash,omitempty"`

	// endedPods is the history of pods that failed or succeeded and were
	// replaced, by index. The delay before the next replacement grows with the
	// number of pods that ended in a row. Entries that no longer have an effect
	// are removed.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=257
	EndedPods []EndedPods `json:"endedPods,omitempty"`

	// updateProgress is the progress of the latest update that replaced pods of
	// this PodClique, or that would have replaced them if the update strategy
	// were not OnDelete. Unset before the first such update.
	// +optional
	UpdateProgress *PodCliqueUpdateProgress `json:"updateProgress,omitempty"`
}

// EndedPods is the history of pods that ended one after the other at the same
// index.
type EndedPods struct {
	// index of the pods. Up to 256 indices have an entry of their own. The
	// entry with index -1 stands for all other indices, whose replacements wait
	// for the same delay.
	// +required
	// +kubebuilder:validation:Minimum=-1
	Index int32 `json:"index"`

	// count is the number of pods that ended in a row.
	// +required
	Count int32 `json:"count"`

	// lastEndedAt is when the last of these pods ended.
	// +required
	LastEndedAt metav1.Time `json:"lastEndedAt"`
}

// PodCliqueUpdateProgress is the progress of an update.
type PodCliqueUpdateProgress struct {
	// updateStartedAt is when the update began.
	// +required
	UpdateStartedAt metav1.Time `json:"updateStartedAt"`

	// updateEndedAt is when the update completed. Unset while it is in progress.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`

	// lastProgressTime is when the update last made progress: it began, or a
	// pod was selected or replaced.
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

	// podTemplateHash is the hash of the template that is being rolled out.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PodTemplateHash string `json:"podTemplateHash,omitempty"`

	// previousGenerationHash identifies the revision that what the update has
	// not reached is recreated with. Unset with update strategy OnDelete, and if
	// no such revision is known.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PreviousGenerationHash string `json:"previousGenerationHash,omitempty"`

	// reachedIndices are the indices of the pods that the update has reached,
	// in the form 0-3,7: those that were selected, and those that were created
	// from the current template. Pods at other indices are created from the
	// previous template while the update cannot replace the next pod. Unset with
	// update strategy OnDelete.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	ReachedIndices string `json:"reachedIndices,omitempty"`

	// readyPodsSelectedToUpdate are the ready pods that the update has selected
	// for replacement, one at a time. Pods that are not ready are replaced
	// without being listed.
	// +optional
	ReadyPodsSelectedToUpdate *PodsSelectedToUpdate `json:"readyPodsSelectedToUpdate,omitempty"`
}

// PodsSelectedToUpdate are pods of a PodClique that an update has selected.
type PodsSelectedToUpdate struct {
	// current is the name of the pod that is being replaced. Unset between
	// pods, and after the update.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Current string `json:"current,omitempty"`

	// completed are the names of the latest 64 pods that were replaced, in the
	// order in which they were selected.
	// +optional
	// +listType=atomic
	Completed []string `json:"completed,omitempty"`
}
