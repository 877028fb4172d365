// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodCliqueSet describes a service or a job as replicas of one template. The
// minimum of a replica is admitted to the cluster together or not at all.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podcliquesets,singular=podcliqueset,shortName=pcs,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.hpaPodSelector
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Pending or Running; for Training also Succeeded or Failed"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].reason`,description="Why the PodCliqueSet is, or is not, available"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="Desired number of replicas"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Replicas whose minimum is available"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,priority=1,description="Replicas created from the current template"
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restartCount`,priority=1,description="Restarts of replicas of a Training workload"
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=`.status.updateProgress.state`,priority=1,description="State of the latest update, or what it waits for; empty if the template has not been edited"
// +kubebuilder:printcolumn:name="Breached",type=date,JSONPath=`.status.minAvailableBreachedSince`,priority=1,description="How long a replica has been below its minimum; empty if no replica is"
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.terminationDeadline`,priority=1,description="When the next termination is due"
type PodCliqueSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name must be a DNS label
	// that starts with a letter, because it is part of the names of pods,
	// hostnames and Services.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec PodCliqueSetSpec `json:"spec"`

	// status is the observed state. Only muster-controller writes it.
	// +optional
	Status PodCliqueSetStatus `json:"status,omitempty"`
}

// PodCliqueSetList is a list of PodCliqueSets.
//
// +kubebuilder:object:root=true
type PodCliqueSetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the PodCliqueSets.
	Items []PodCliqueSet `json:"items"`
}

// PodCliqueSetSpec is the desired state of a PodCliqueSet.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.workloadType) ? self.workloadType : "Inference") == (has(oldSelf.workloadType) ? oldSelf.workloadType : "Inference")`,fieldPath=".workloadType",reason=FieldValueForbidden,message="is immutable: a running workload cannot become another kind; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`(has(self.trainingSpec) && has(self.trainingSpec.maxRuntime) ? duration(self.trainingSpec.maxRuntime) : duration("0s")) == (has(oldSelf.trainingSpec) && has(oldSelf.trainingSpec.maxRuntime) ? duration(oldSelf.trainingSpec.maxRuntime) : duration("0s")) && (has(self.trainingSpec) && has(self.trainingSpec.maxRestarts) ? self.trainingSpec.maxRestarts : 0) == (has(oldSelf.trainingSpec) && has(oldSelf.trainingSpec.maxRestarts) ? oldSelf.trainingSpec.maxRestarts : 0)`,fieldPath=".trainingSpec",reason=FieldValueForbidden,message="is immutable: restarts and time already used were counted against it; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`!has(self.trainingSpec) || (has(self.workloadType) && self.workloadType == "Training")`,fieldPath=".trainingSpec",reason=FieldValueForbidden,message="needs workloadType Training"
// +kubebuilder:validation:XValidation:rule=`!has(self.workloadType) || self.workloadType != "Training" || self.replicas == oldSelf.replicas`,fieldPath=".replicas",reason=FieldValueForbidden,message="is immutable: the replicas of a Training workload are fixed; create a new PodCliqueSet"
type PodCliqueSetSpec struct {
	// replicas is the desired number of replicas of the template. Unset means 0:
	// no replica is created.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule=`self <= 150000`,message="must not be above 150000: a cluster of Kubernetes runs no more pods; use fewer replicas"
	Replicas int32 `json:"replicas"`

	// updateStrategy defines how a change of the template is applied to
	// existing pods. Unset means RollingRecreate. A change from OnDelete to
	// RollingRecreate replaces no pods until the next change of the template; a
	// change from RollingRecreate to OnDelete ends an update that is in
	// progress. It has no effect on Training workloads, whose template is
	// immutable.
	// +optional
	UpdateStrategy *PodCliqueSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// workloadType defines whether pods run until they are deleted (Inference)
	// or until they complete (Training). Unset means Inference. Immutable.
	// +optional
	WorkloadType WorkloadType `json:"workloadType,omitempty"`

	// trainingSpec limits the runtime and the restarts of a Training workload.
	// It may only be set with workloadType Training. Immutable, except for
	// ttlSecondsAfterFinished.
	// +optional
	TrainingSpec *TrainingSpec `json:"trainingSpec,omitempty"`

	// suspend is not supported: the value true is rejected.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!self`,reason=FieldValueForbidden,message="is not supported; create the PodCliqueSet when it may start, and delete it to stop it"
	Suspend *bool `json:"suspend,omitempty"`

	// template describes one replica.
	// +required
	Template PodCliqueSetTemplateSpec `json:"template"`
}

// WorkloadType defines when the pods of a workload end.
//
// +kubebuilder:validation:Enum=Inference;Training
type WorkloadType string

const (
	// WorkloadTypeInference is a workload that runs until it is deleted. Pods
	// that end are replaced. It is the default.
	WorkloadTypeInference WorkloadType = "Inference"
	// WorkloadTypeTraining is a workload that completes when its pods have
	// succeeded.
	WorkloadTypeTraining WorkloadType = "Training"
)

// TrainingSpec limits the runtime and the restarts of a Training workload.
type TrainingSpec struct {
	// maxRuntime is the time after which the workload is failed, measured from
	// its first start and including restarts. Unset means no limit. Must be
	// positive.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`duration(self) > duration("0s")`,message="must be a duration like 24h or 90m, greater than 0"
	MaxRuntime *metav1.Duration `json:"maxRuntime,omitempty"`

	// maxRestarts is the number of restarts, counted over all replicas, after
	// which a further failure fails the workload. Unset means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// ttlSecondsAfterFinished is the number of seconds after which a
	// PodCliqueSet that has succeeded or failed is deleted. Unset means that it
	// is never deleted. It may be changed at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// UpdateStrategyType defines how a change of the template is applied to
// existing pods.
//
// +kubebuilder:validation:Enum=RollingRecreate;OnDelete
type UpdateStrategyType string

const (
	// RollingRecreateStrategyType deletes and recreates one unit at a time. It
	// is the default.
	RollingRecreateStrategyType UpdateStrategyType = "RollingRecreate"
	// OnDeleteStrategyType leaves existing pods alone. Pods that are deleted
	// are recreated from the new template.
	OnDeleteStrategyType UpdateStrategyType = "OnDelete"
)

// PodCliqueSetUpdateStrategy defines how a change of the template is applied to
// existing pods, of standalone cliques and of scaling groups alike.
type PodCliqueSetUpdateStrategy struct {
	// type of the update strategy. Unset means RollingRecreate.
	//
	// RollingRecreate: when the template changes, pods of standalone cliques
	// and replicas of scaling groups are deleted and recreated with the new
	// template, one at a time. OnDelete: no pod is deleted when the template
	// changes. Pods and replicas that are deleted, by a user or with their
	// node, are recreated with the new template, and so is what is scaled out.
	// +optional
	// +kubebuilder:default=RollingRecreate
	Type UpdateStrategyType `json:"type,omitempty"`

	// rollingRecreate controls an update with type RollingRecreate. It may only
	// be set with that type.
	// +optional
	RollingRecreate *RollingRecreateUpdateStrategy `json:"rollingRecreate,omitempty"`
}

// RollingRecreateUpdateStrategy controls an update with the update strategy
// RollingRecreate.
type RollingRecreateUpdateStrategy struct {
	// paused stops an update before its next pod or replica. What is being
	// replaced is completed. Pods and replicas that the update has not reached
	// keep their template, also when they are lost and recreated.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// partition is the index of the first replica that is updated: replicas with
	// a lower index that the update has not reached keep their template, also
	// when they are recreated. Unset means 0. With a partition that is not less
	// than replicas, no replica is updated.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Partition *int32 `json:"partition,omitempty"`
}

// IsTraining reports whether the workload is a Training workload.
func (s *PodCliqueSetSpec) IsTraining() bool { return s.WorkloadType == WorkloadTypeTraining }

// IsOnDelete reports whether the update strategy is OnDelete. It returns false if no strategy is set.
func (s *PodCliqueSetSpec) IsOnDelete() bool {
	return s.UpdateStrategy != nil && s.UpdateStrategy.Type == OnDeleteStrategyType
}

// IsPaused reports whether updates are paused. It returns false under OnDelete, whose updates replace nothing.
func (s *PodCliqueSetSpec) IsPaused() bool {
	return !s.IsOnDelete() && s.UpdateStrategy != nil && s.UpdateStrategy.RollingRecreate != nil && s.UpdateStrategy.RollingRecreate.Paused
}

// Partition returns the index of the first replica that updates replace, not negative. 0 if it is unset, and under
// OnDelete.
func (s *PodCliqueSetSpec) Partition() int32 {
	if s.IsOnDelete() || s.UpdateStrategy == nil || s.UpdateStrategy.RollingRecreate == nil || s.UpdateStrategy.RollingRecreate.Partition == nil {
		return 0
	}
	return max(*s.UpdateStrategy.RollingRecreate.Partition, 0)
}

// CliqueStartupType defines the order in which the cliques of a replica start.
//
// +kubebuilder:validation:Enum=CliqueStartupTypeAnyOrder;CliqueStartupTypeInOrder;CliqueStartupTypeExplicit
type CliqueStartupType string

const (
	// CliqueStartupTypeAnyOrder starts all cliques together. It is the default.
	CliqueStartupTypeAnyOrder CliqueStartupType = "CliqueStartupTypeAnyOrder"
	// CliqueStartupTypeInOrder starts each clique after the clique that
	// precedes it in the list.
	CliqueStartupTypeInOrder CliqueStartupType = "CliqueStartupTypeInOrder"
	// CliqueStartupTypeExplicit starts each clique after the cliques in its
	// startsAfter.
	CliqueStartupTypeExplicit CliqueStartupType = "CliqueStartupTypeExplicit"
)

// PodCliqueSetTemplateSpec describes one replica.
//
// +kubebuilder:validation:XValidation:rule=`self.cliques.size() == oldSelf.cliques.size() && [oldSelf.cliques.transformMapEntry(i, c, {c.name: true})].all(m, self.cliques.all(c, c.name in m))`,fieldPath=".cliques",reason=FieldValueForbidden,message="cliques cannot be added, removed or renamed: replicas that run could not follow; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`(has(self.podCliqueScalingGroups) ? self.podCliqueScalingGroups.size() : 0) == (has(oldSelf.podCliqueScalingGroups) ? oldSelf.podCliqueScalingGroups.size() : 0) && (!has(self.podCliqueScalingGroups) || !has(oldSelf.podCliqueScalingGroups) || [oldSelf.podCliqueScalingGroups.transformMapEntry(i, g, {g.name: true})].all(m, self.podCliqueScalingGroups.all(g, g.name in m)))`,fieldPath=".podCliqueScalingGroups",reason=FieldValueForbidden,message="scaling groups cannot be added, removed or renamed: replicas that run could not follow; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`(has(self.cliqueStartupType) ? self.cliqueStartupType : "CliqueStartupTypeAnyOrder") == (has(oldSelf.cliqueStartupType) ? oldSelf.cliqueStartupType : "CliqueStartupTypeAnyOrder")`,fieldPath=".cliqueStartupType",reason=FieldValueForbidden,message="is immutable: pods that run were started by it; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`(has(self.terminationDelay) && dyn(self.terminationDelay) != null) || !has(self.podCliqueScalingGroups) || self.podCliqueScalingGroups.all(g, !has(g.terminationDelay) || dyn(g.terminationDelay) == null)`,fieldPath=".terminationDelay",message="is needed where a scaling group has a terminationDelay: without it gang termination is off"
type PodCliqueSetTemplateSpec struct {
	// cliques are the roles of the workload. Their names are part of pod names.
	// Cliques cannot be added or removed; with CliqueStartupTypeInOrder, they
	// cannot be reordered either.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Cliques []*PodCliqueTemplateSpec `json:"cliques"`

	// cliqueStartupType defines the order in which cliques start. Unset means
	// CliqueStartupTypeAnyOrder. Immutable.
	// +optional
	StartupType *CliqueStartupType `json:"cliqueStartupType,omitempty"`

	// priorityClassName names the PriorityClass of the PodGroups and the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// headlessServiceConfig configures the headless Service of each replica.
	// +optional
	HeadlessServiceConfig *HeadlessServiceConfig `json:"headlessServiceConfig,omitempty"`

	// topologyConstraint requests that each replica is placed close together.
	// Immutable.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`

	// terminationDelay is how long a replica that was available may stay below
	// its minimum before it is terminated and recreated. Unset means that
	// replicas are never terminated; with workloadType Training, it means 0. It
	// may be changed, added and removed at any time: the deadline is always the
	// beginning of the breach plus the current delay.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration("0s")`,message="must be a duration like 4h or 90s, not negative"
	TerminationDelay *metav1.Duration `json:"terminationDelay,omitempty"`

	// unreachableGrace is how long a node may not answer, or not exist, before
	// its pods count as missing: until then no replica is terminated or
	// restarted, and no job fails, because of them. Unset means the time for
	// which each pod tolerates the taint node.kubernetes.io/unreachable, which
	// is 5 minutes by default. It may be changed, added and removed at any time.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration("0s")`,message="must be a duration like 10m or 90s, not negative"
	UnreachableGrace *metav1.Duration `json:"unreachableGrace,omitempty"`

	// resourceClaimTemplates are the templates that resourceSharing refers to.
	// Immutable. Not implemented: stored without effect.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ResourceClaimTemplates []ResourceClaimTemplateConfig `json:"resourceClaimTemplates,omitempty"`

	// resourceSharing lets pods share ResourceClaims. Immutable. Not
	// implemented: stored without effect.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ResourceSharing []PodCliqueSetResourceSharing `json:"resourceSharing,omitempty"`

	// podCliqueScalingGroups are groups of cliques that scale together. A
	// clique belongs to at most one group; cliques that belong to none are
	// standalone. Groups cannot be added, removed or renamed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	PodCliqueScalingGroupConfigs []PodCliqueScalingGroupConfig `json:"podCliqueScalingGroups,omitempty"`
}

// HeadlessServiceConfig configures the headless Service of each replica.
type HeadlessServiceConfig struct {
	// publishNotReadyAddresses defines whether DNS returns the addresses of
	// pods before they are ready. Unset means true.
	// +optional
	// +kubebuilder:default=true
	PublishNotReadyAddresses *bool `json:"publishNotReadyAddresses,omitempty"`
}

// PodCliqueTemplateSpec describes one clique of a replica.
type PodCliqueTemplateSpec struct {
	// name of the clique, unique in the PodCliqueSet. It must be a DNS label,
	// because it is part of pod names.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// labels are added to the PodClique and its pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the PodClique and its pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// topologyConstraint requests that the pods of each PodClique are placed
	// close together, inside the domains of the scaling group and of the
	// PodCliqueSet. Immutable.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`

	// resourceSharing lets the pods of the clique share ResourceClaims.
	// Immutable. Not implemented: stored without effect.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ResourceSharing []ResourceSharing `json:"resourceSharing,omitempty"`

	// spec is the spec of the PodClique.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.replicas > 0`,fieldPath=".replicas",message="must be greater than 0: a clique that is not wanted is left out; one that runs is scaled to 0 by its scale subresource"
	Spec PodCliqueSpec `json:"spec"`
}

// PodCliqueScalingGroupConfig describes a group of cliques that scale together.
//
// +kubebuilder:validation:XValidation:rule=`has(self.minAvailable) == has(oldSelf.minAvailable) && (!has(self.minAvailable) || self.minAvailable == oldSelf.minAvailable)`,fieldPath=".minAvailable",reason=FieldValueForbidden,message="is immutable: replicas that run were admitted by it; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`self.cliqueNames == oldSelf.cliqueNames`,fieldPath=".cliqueNames",reason=FieldValueForbidden,message="is immutable: replicas that run could not follow; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`!has(self.minAvailable) || (has(self.replicas) ? self.replicas : 1) >= self.minAvailable`,fieldPath=".replicas",message="must not be less than minAvailable",messageExpression=`"must not be less than minAvailable: %d is less than %d".format([has(self.replicas) ? self.replicas : 1, self.minAvailable])`
type PodCliqueScalingGroupConfig struct {
	// name of the scaling group, unique in the PodCliqueSet and different from
	// the names of all cliques. It must be a DNS label, because it is part of
	// pod names.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// cliqueNames are the names of the cliques that belong to the group. Each
	// replica of the group has one PodClique for each of them. Immutable.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	CliqueNames []string `json:"cliqueNames"`

	// annotations are added to the PodCliqueScalingGroup.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// replicas is the number of replicas that the PodCliqueScalingGroup is
	// created with. Unset means 1. Once the PodCliqueScalingGroup has been
	// scaled, its own spec.replicas applies instead.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Replicas *int32 `json:"replicas,omitempty"`

	// minAvailable is the number of replicas of the group that are admitted
	// together with the standalone cliques. The group is unavailable if fewer
	// replicas are available. If it is set, the group cannot be scaled below
	// it. Unset means 1, but the group may be scaled to 0. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// minReadySeconds is the time in seconds for which the pods of a replica of
	// the group must be ready before they count as available. For each clique
	// the larger of this number and its own minReadySeconds applies. Unset
	// means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// terminationDelay overrides the terminationDelay of the template for this
	// group. It may only be set if the template has a terminationDelay.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration("0s")`,message="must be a duration like 4h or 90s, not negative"
	TerminationDelay *metav1.Duration `json:"terminationDelay,omitempty"`

	// scaleConfig lets a HorizontalPodAutoscaler scale the group.
	// +optional
	ScaleConfig *AutoScalingConfig `json:"scaleConfig,omitempty"`

	// resourceSharing lets the pods of the group share ResourceClaims.
	// Immutable. Not implemented: stored without effect.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ResourceSharing []PodCliqueScalingGroupResourceSharing `json:"resourceSharing,omitempty"`

	// topologyConstraint requests that each replica of the group is placed
	// close together, inside the domains of the PodCliqueSet. Immutable.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// PodCliqueSetPhase is a one-word summary for users. Programs should read the
// conditions instead.
//
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed
type PodCliqueSetPhase string

const (
	// PodCliqueSetPhasePending means that no pod is running.
	PodCliqueSetPhasePending PodCliqueSetPhase = "Pending"
	// PodCliqueSetPhaseRunning means that at least one pod is running.
	PodCliqueSetPhaseRunning PodCliqueSetPhase = "Running"
	// PodCliqueSetPhaseSucceeded means that all replicas of a Training workload
	// have succeeded.
	PodCliqueSetPhaseSucceeded PodCliqueSetPhase = "Succeeded"
	// PodCliqueSetPhaseFailed means that a Training workload has exhausted its
	// restarts or its runtime.
	PodCliqueSetPhaseFailed PodCliqueSetPhase = "Failed"
)

// PodCliqueSetStatus is the observed state of a PodCliqueSet.
type PodCliqueSetStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is a one-word summary for users, derived from the pods: Running
	// while any pod is running. Succeeded and Failed are set for Training
	// workloads only, and are final.
	// +optional
	Phase PodCliqueSetPhase `json:"phase,omitempty"`

	// conditions include Available (every replica is available), Progressing
	// (the state of an update; Inference only) and, only while they are True,
	// Failed (Training only), ReplicaFailure and ForeignObject.
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

	// replicas is the spec.replicas that this status describes.
	// +optional
	// +kubebuilder:default=0
	Replicas int32 `json:"replicas"`

	// scheduledReplicas is the number of replicas whose minimum is bound to nodes.
	// +optional
	// +kubebuilder:default=0
	ScheduledReplicas int32 `json:"scheduledReplicas"`

	// availableReplicas is the number of replicas in which every standalone
	// clique and every scaling group is available.
	// +optional
	// +kubebuilder:default=0
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas is the number of replicas created from the current template.
	// +optional
	// +kubebuilder:default=0
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// hpaPodSelector is the label selector of the pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Selector *string `json:"hpaPodSelector,omitempty"`

	// restartCount is the number of restarts, counted over all replicas. It
	// never exceeds trainingSpec.maxRestarts. Restarts after preemptions are not
	// counted. Training only.
	// +optional
	// +kubebuilder:default=0
	RestartCount int32 `json:"restartCount"`

	// startTime is when the phase became Running for the first time. It is
	// never reset. Training only.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// runtimeDeadline is when the workload will be failed because it has run
	// for trainingSpec.maxRuntime, including restarts. It never changes. Unset
	// if there is no limit, and before the first start.
	// +optional
	RuntimeDeadline *metav1.Time `json:"runtimeDeadline,omitempty"`

	// completionTime is when the phase became Succeeded or Failed. Training only.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// succeededReplicas is the number of replicas that have succeeded. Training
	// only.
	// +optional
	SucceededReplicas int32 `json:"succeededReplicas,omitempty"`

	// succeededIndices are the indices of the replicas whose PodCliques have
	// all succeeded, in the form 0-5,7. These replicas are never restarted.
	// Training only.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	SucceededIndices string `json:"succeededIndices,omitempty"`

	// recordedReplicas are the spec.replicas of the standalone PodCliques and
	// PodCliqueScalingGroups that were scaled to a number that differs from
	// their template. If such an object is deleted, it is recreated with this
	// number.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	RecordedReplicas []RecordedReplicas `json:"recordedReplicas,omitempty"`

	// replicaAttempts are the current attempts of replicas that have been
	// replaced, see ReplicaAttempt. A replica without an entry is in its first
	// attempt, 0.
	// +optional
	// +listType=map
	// +listMapKey=index
	ReplicaAttempts []ReplicaAttempt `json:"replicaAttempts,omitempty"`

	// minAvailableBreachedSince is the beginning of the oldest breach of
	// minAvailable that still lasts, of a standalone PodClique or of a
	// PodCliqueScalingGroup. Unset if there is no breach.
	// +optional
	MinAvailableBreachedSince *metav1.Time `json:"minAvailableBreachedSince,omitempty"`

	// terminationDeadline is when the next termination is due: of a replica, or
	// of a replica of a PodCliqueScalingGroup. Unset if no termination is due.
	// +optional
	TerminationDeadline *metav1.Time `json:"terminationDeadline,omitempty"`

	// reported is what the latest event about the availability of the set
	// (Admitted, Available, Degraded, Recovered, Scaled) was based on. A
	// restarted controller continues from there. Before the first event it is
	// the set as it was observed first.
	// +optional
	Reported *ReportedAvailability `json:"reported,omitempty"`

	// podGangStatuses exists for compatibility with Grove and is always empty.
	// See the status of the PodGroups instead.
	// +optional
	// +listType=map
	// +listMapKey=name
	PodGangStatuses []PodGangStatus `json:"podGangStatuses,omitempty"`

	// currentGenerationHash is the hash of the current revision, which contains
	// every part of the template whose change replaces pods. It is part of the
	// name of the revision's ControllerRevision.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CurrentGenerationHash *string `json:"currentGenerationHash,omitempty"`

	// updateProgress is the progress of the latest update, which is the update
	// to the revision of currentGenerationHash. Unset before the first change
	// of the template.
	// +optional
	UpdateProgress *PodCliqueSetUpdateProgress `json:"updateProgress,omitempty"`
}

// AvailabilityState is the availability of a PodCliqueSet according to its
// events.
// +kubebuilder:validation:Enum=Pending;Available;Degraded;Unavailable
type AvailabilityState string

const (
	// AvailabilityPending: the set has not been available yet.
	AvailabilityPending AvailabilityState = "Pending"
	// AvailabilityAvailable: every replica is available.
	AvailabilityAvailable AvailabilityState = "Available"
	// AvailabilityDegraded: the set has lost available replicas.
	AvailabilityDegraded AvailabilityState = "Degraded"
	// AvailabilityUnavailable: the set was available, and is not because it was
	// scaled out.
	AvailabilityUnavailable AvailabilityState = "Unavailable"
)

// ReportedAvailability is the part of the status of a PodCliqueSet that its
// latest event about availability was based on.
type ReportedAvailability struct {
	// state is the availability according to the events.
	// +required
	State AvailabilityState `json:"state"`

	// replicas is the number of desired replicas.
	// +required
	Replicas int32 `json:"replicas"`

	// scheduledReplicas is the number of replicas whose minimum was bound.
	// +required
	ScheduledReplicas int32 `json:"scheduledReplicas"`

	// availableReplicas is the number of replicas that were available.
	// +required
	AvailableReplicas int32 `json:"availableReplicas"`
}

// RecordedReplicas preserves the scale of objects when they are recreated. An
// entry is for one clique or scaling group of the template, in all replicas of
// the PodCliqueSet in which it was scaled to the same number.
type RecordedReplicas struct {
	// name of the clique or scaling group in the template.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// indices of the replicas of the PodCliqueSet, in the form 0-3,7.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=131072
	Indices string `json:"indices"`

	// replicas is the spec.replicas of these objects.
	// +required
	Replicas int32 `json:"replicas"`

	// initialReplicas is the number of replicas in the template when the
	// PodClique was first created. It is the upper bound of the minimum while
	// minAvailable is unset. Unset for scaling groups.
	// +optional
	InitialReplicas *int32 `json:"initialReplicas,omitempty"`
}

// ReplicaAttempt counts how often a replica was replaced. muster-controller
// replaces a replica by raising its attempt: it deletes PodCliques of earlier
// attempts, and creates no pod of the new attempt before the pods of earlier
// attempts are gone.
type ReplicaAttempt struct {
	// index of the replica.
	// +required
	Index int32 `json:"index"`

	// attempt is the number of the current attempt. The first attempt is 0.
	// +required
	Attempt int32 `json:"attempt"`

	// reason is why the attempt was raised: PodCliquesDeleted, Termination,
	// Restart, Preemption, NodesLost or Update.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message explains the reason to users: what was below its minimum, and
	// since when.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// startedAt is when the attempt was raised.
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// notBefore is when the pods of the attempt are created at the earliest: a
	// Training workload that keeps failing is restarted after a growing delay.
	// Unset: without a delay.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// availableAt is when the replica first became available in this attempt.
	// Unset until then.
	// +optional
	AvailableAt *metav1.Time `json:"availableAt,omitempty"`
}

// PodGangStatus exists for compatibility with Grove; see podGangStatuses in PodCliqueSetStatus.
type PodGangStatus struct {
	// name of the PodGang.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// phase of the PodGang.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Phase string `json:"phase,omitempty"`

	// conditions of the PodGang.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodCliqueSetUpdateProgress is the progress of an update. With update strategy
// OnDelete, an update ends when it begins, because users choose which pods are
// replaced, and when.
type PodCliqueSetUpdateProgress struct {
	// updateStartedAt is when the update began.
	// +required
	UpdateStartedAt metav1.Time `json:"updateStartedAt"`

	// updateEndedAt is when the update completed. Unset while it is in progress.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`

	// state is the reason of the condition Progressing: the state of the update,
	// or what it waits for. kubectl get shows it in the column UPDATE. Unset until
	// the state is known.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	State string `json:"state,omitempty"`

	// lastProgressTime is when the update last made progress: it began, it
	// continued with another replica, or a PodClique or a replica of a scaling
	// group was updated.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`

	// previousGenerationHash identifies the revision with which missing objects
	// of replicas are created that the update has not reached. Unset with update
	// strategy OnDelete, after the update, and if no such revision is known.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PreviousGenerationHash string `json:"previousGenerationHash,omitempty"`

	// reachedIndices are the indices of the replicas that the update has
	// reached, in the form 0-3,7: those that were selected, and those that were
	// created from the current template. Unset with update strategy OnDelete.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	ReachedIndices string `json:"reachedIndices,omitempty"`

	// currentlyUpdating is the replica that is being updated. Unset between
	// replicas, after the update, and with update strategy OnDelete.
	// +optional
	CurrentlyUpdating *PodCliqueSetReplicaUpdateProgress `json:"currentlyUpdating,omitempty"`

	// updatedPodCliques are the names of the standalone PodCliques of that
	// replica that are updated.
	// +optional
	// +listType=atomic
	UpdatedPodCliques []string `json:"updatedPodCliques,omitempty"`

	// updatedPodCliqueScalingGroups are the names of the PodCliqueScalingGroups
	// of that replica that are updated.
	// +optional
	// +listType=atomic
	UpdatedPodCliqueScalingGroups []string `json:"updatedPodCliqueScalingGroups,omitempty"`

	// updatedPodCliquesCount is the number of updated PodCliques in all
	// replicas.
	// +optional
	UpdatedPodCliquesCount int32 `json:"updatedPodCliquesCount"`

	// totalPodCliquesCount is the number of PodCliques in all replicas.
	// +optional
	TotalPodCliquesCount int32 `json:"totalPodCliquesCount"`

	// updatedPodCliqueScalingGroupsCount is the number of updated
	// PodCliqueScalingGroups in all replicas.
	// +optional
	UpdatedPodCliqueScalingGroupsCount int32 `json:"updatedPodCliqueScalingGroupsCount"`

	// totalPodCliqueScalingGroupsCount is the number of PodCliqueScalingGroups
	// in all replicas.
	// +optional
	TotalPodCliqueScalingGroupsCount int32 `json:"totalPodCliqueScalingGroupsCount"`
}

// PodCliqueSetReplicaUpdateProgress is the progress of the replica that is being updated.
type PodCliqueSetReplicaUpdateProgress struct {
	// replicaIndex is the index of the replica.
	// +required
	ReplicaIndex int32 `json:"replicaIndex"`

	// updateStartedAt is when the update of the replica began.
	// +required
	UpdateStartedAt metav1.Time `json:"updateStartedAt"`

	// updateEndedAt is when the update of the replica completed. Unset while it is in progress.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`
}
