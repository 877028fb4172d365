package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodClique is pods of one role: of one replica of a PodCliqueSet, or of one
// replica of a PodCliqueScalingGroup. Made by muster-controller; users scale it
// if it is not part of a group.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podcliques,singular=podclique,shortName=pclq,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.hpaPodSelector
// +kubebuilder:printcolumn:name="MinAvail",type=integer,JSONPath=`.status.minAvailable`,description="Pods needed"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="Pods wanted"
// +kubebuilder:printcolumn:name="Scheduled",type=integer,JSONPath=`.status.scheduledReplicas`,description="Pods bound to nodes"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Pods ready"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,description="Pods made from the present template"
// +kubebuilder:printcolumn:name="Breached",type=date,JSONPath=`.status.minAvailableBreachedSince`,description="How long minAvailable has been breached; empty if it is not"
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.terminationDeadline`,description="When termination is due because of the breach"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,priority=1,description="What an update has come to or waits for"
// +kubebuilder:printcolumn:name="Gated",type=integer,JSONPath=`.status.scheduleGatedReplicas`,priority=1
// +kubebuilder:printcolumn:name="MinBreached",type=string,JSONPath=`.status.conditions[?(@.type=="MinAvailableBreached")].status`,priority=1
type PodClique struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is wanted.
	// +required
	Spec PodCliqueSpec `json:"spec"`

	// status says what there is. Written by muster-controller alone.
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

// PodCliqueSpec says which pods are wanted, in a PodCliqueSet's template and in
// a PodClique alike. In a PodClique all but replicas is given by the
// PodCliqueSet.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.minAvailable) || self.replicas >= self.minAvailable`,fieldPath=".replicas",message="must not be less than minAvailable, which is an explicit floor"
// +kubebuilder:validation:XValidation:rule=`has(self.minAvailable) == has(oldSelf.minAvailable) && (!has(self.minAvailable) || self.minAvailable == oldSelf.minAvailable)`,fieldPath=".minAvailable",reason=FieldValueForbidden,message="is immutable: pods that run were admitted by it"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.roleName) || (has(self.roleName) && self.roleName == oldSelf.roleName)`,fieldPath=".roleName",reason=FieldValueForbidden,message="is immutable: pods that run bear it"
// +kubebuilder:validation:XValidation:rule=`has(self.startsAfter) == has(oldSelf.startsAfter) && (!has(self.startsAfter) || self.startsAfter == oldSelf.startsAfter)`,fieldPath=".startsAfter",reason=FieldValueForbidden,message="is immutable: pods that run were started by it"
type PodCliqueSpec struct {
	// roleName names the role of the pods, unique in the PodCliqueSet. Unset
	// means the name of the clique. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RoleName string `json:"roleName,omitempty"`

	// podSpec is the spec of the pods. Without schedulerName it gets the one
	// that muster-controller is configured with.
	// +required
	PodSpec corev1.PodSpec `json:"podSpec"`

	// replicas is the number of pods. Unset means 1. In a template it counts
	// when the PodClique is created; afterwards those of the PodClique hold,
	// once it has been scaled.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule=`self <= 150000`,message="must not be above 150000: a cluster of Kubernetes runs no more pods; use fewer replicas"
	Replicas int32 `json:"replicas"`

	// minAvailable is the number of pods that are admitted together; the clique
	// is unavailable below it. An explicit one is a floor for scaling too. Unset
	// means the replicas that the PodClique was created with, or the present
	// ones if they are fewer: scaling in lowers it. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// startsAfter are cliques of the template that must have started before.
	// Acted on with CliqueStartupTypeExplicit. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	StartsAfter []string `json:"startsAfter,omitempty"`

	// autoScalingConfig lets a HorizontalPodAutoscaler scale the clique. Not for
	// a clique of a scaling group, which scales as a whole.
	// +optional
	ScaleConfig *AutoScalingConfig `json:"autoScalingConfig,omitempty"`
}

// PodCliqueStatus says what there is. Pods that terminate count nowhere.
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

	// updatedReplicas is the number of pods made from the present template.
	// +optional
	// +kubebuilder:default=0
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// minAvailable is the number of pods needed at present: spec.minAvailable,
	// or if that is unset, what it means now.
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// hpaPodSelector selects the pods, as text, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Selector *string `json:"hpaPodSelector,omitempty"`

	// availableReplicas is the number of pods that count for minAvailable in a
	// Training workload: those that run and of which no container has failed,
	// ready or not, and those that have succeeded. Unset for Inference, where the
	// ready pods count.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// succeededReplicas is the number of pods that have succeeded. Training only.
	// +optional
	SucceededReplicas int32 `json:"succeededReplicas,omitempty"`

	// succeededIndices are the indices of the pods that have succeeded, in the
	// form 0-5,7. They are never created again, also when their objects are gone.
	// Training only.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	SucceededIndices string `json:"succeededIndices,omitempty"`

	// startedIndices are the indices whose pod has run at least once, in the same
	// form. Once all of them have succeeded, pods that never started are
	// cancelled. Training only.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	StartedIndices string `json:"startedIndices,omitempty"`

	// removedSucceededReplicas is the number of pods that have succeeded and
	// whose objects are gone: the PodGroup asks for as many pods less. Training
	// only.
	// +optional
	RemovedSucceededReplicas int32 `json:"removedSucceededReplicas,omitempty"`

	// wasAvailable says that minAvailable pods were ready once; of Training, that
	// they ran. Sticky, until
	// the PodClique is scaled to zero.
	// +optional
	WasAvailable bool `json:"wasAvailable,omitempty"`

	// minAvailableBreachedSince is when MinAvailableBreached became True, a whole
	// second, rounded up. Unset unless it is True.
	// +optional
	MinAvailableBreachedSince *metav1.Time `json:"minAvailableBreachedSince,omitempty"`

	// terminationDeadline is when termination is due because of the breach:
	// minAvailableBreachedSince and the present terminationDelay. Then the
	// replica of the PodCliqueSet is terminated; or, if the PodClique is part of
	// a scaling group of which enough other replicas are available, the replica
	// of that. Unset without a breach or a terminationDelay.
	// +optional
	TerminationDeadline *metav1.Time `json:"terminationDeadline,omitempty"`

	// conditions are Available (minAvailable pods are ready),
	// MinAvailableBreached (they were once, and are not now),
	// PodCliqueScheduled (minAvailable pods are bound) and, while they hold,
	// Succeeded (Training only), ReplicaFailure and ForeignObject.
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
	// that every pod of the clique follows.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CurrentPodCliqueSetGenerationHash *string `json:"currentPodCliqueSetGenerationHash,omitempty"`

	// currentPodTemplateHash is the hash of the template that every pod of the
	// clique is made from.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CurrentPodTemplateHash *string `json:"currentPodTemplateHash,omitempty"`

	// endedPods is the history of pods that failed or succeeded and were
	// replaced, by index: the more in a row, the longer the next replacement
	// waits. An entry that has no effect any more is dropped.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=257
	EndedPods []EndedPods `json:"endedPods,omitempty"`

	// updateProgress is the latest update that replaced something here, or under
	// OnDelete would have. Unset before the first.
	// +optional
	UpdateProgress *PodCliqueUpdateProgress `json:"updateProgress,omitempty"`
}

// EndedPods is the history of pods that ended one after the other at one index.
type EndedPods struct {
	// index of the pods. -1 stands for all indices without an entry of their own,
	// which 256 may have: their replacements wait for the same time.
	// +required
	// +kubebuilder:validation:Minimum=-1
	Index int32 `json:"index"`

	// count is how many pods ended in a row.
	// +required
	Count int32 `json:"count"`

	// lastEndedAt is when the latest of them ended.
	// +required
	LastEndedAt metav1.Time `json:"lastEndedAt"`
}

// PodCliqueUpdateProgress is the progress of an update.
type PodCliqueUpdateProgress struct {
	// updateStartedAt is when the update began.
	// +required
	UpdateStartedAt metav1.Time `json:"updateStartedAt"`

	// updateEndedAt is when the update was complete. Unset while it runs.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`

	// lastProgressTime is when something last became of the update: it began, or a pod was
	// selected or replaced.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`

	// podCliqueSetGenerationHash is the PodCliqueSet's generation hash that is
	// being rolled out.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PodCliqueSetGenerationHash string `json:"podCliqueSetGenerationHash,omitempty"`

	// podTemplateHash is the hash of the template that is being rolled out.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PodTemplateHash string `json:"podTemplateHash,omitempty"`

	// readyPodsSelectedToUpdate are the ready pods that the update takes down,
	// one at a time.
	// +optional
	ReadyPodsSelectedToUpdate *PodsSelectedToUpdate `json:"readyPodsSelectedToUpdate,omitempty"`
}

// PodsSelectedToUpdate are pods of a clique.
type PodsSelectedToUpdate struct {
	// current is the name of the pod being replaced, or after the last one, that of
	// the last.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Current string `json:"current"`

	// completed are the names of the pods that were replaced, in the order in which
	// they were selected, the latest 64.
	// +optional
	// +listType=atomic
	Completed []string `json:"completed,omitempty"`
}
