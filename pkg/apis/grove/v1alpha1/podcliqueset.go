package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodCliqueSet is a service or a job as replicas of one template. Each replica
// is admitted to the cluster as a whole or not at all.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podcliquesets,singular=podcliqueset,shortName=pcs,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.hpaPodSelector
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="Replicas wanted"
// +kubebuilder:printcolumn:name="Scheduled",type=integer,JSONPath=`.status.scheduledReplicas`,description="Replicas whose minimum is bound"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Replicas whose minimum is ready"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,description="Replicas made from the present template"
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,description="What an update has come to or waits for"
// +kubebuilder:printcolumn:name="Breached",type=date,JSONPath=`.status.minAvailableBreachedSince`,description="How long a replica has been below its minimum; empty if none is"
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.terminationDeadline`,description="When the next termination is due"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Pending or Running; of Training also Succeeded or Failed"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].reason`,description="Why the PodCliqueSet is, or is not, available"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restartCount`,priority=1,description="Restarts of replicas of a Training workload"
// +kubebuilder:printcolumn:name="PCLQs-Updated",type=integer,JSONPath=`.status.updateProgress.updatedPodCliquesCount`,priority=1
// +kubebuilder:printcolumn:name="PCLQs-Total",type=integer,JSONPath=`.status.updateProgress.totalPodCliquesCount`,priority=1
// +kubebuilder:printcolumn:name="PCSGs-Updated",type=integer,JSONPath=`.status.updateProgress.updatedPodCliqueScalingGroupsCount`,priority=1
// +kubebuilder:printcolumn:name="PCSGs-Total",type=integer,JSONPath=`.status.updateProgress.totalPodCliqueScalingGroupsCount`,priority=1
type PodCliqueSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is part of the names
	// of pods, hostnames and Services: a DNS label that starts with a letter.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is wanted.
	// +required
	Spec PodCliqueSetSpec `json:"spec"`

	// status says what there is. Written by muster-controller alone.
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

// PodCliqueSetSpec says what is wanted.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.workloadType) ? self.workloadType : "Inference") == (has(oldSelf.workloadType) ? oldSelf.workloadType : "Inference")`,fieldPath=".workloadType",reason=FieldValueForbidden,message="is immutable: a running workload cannot become another kind; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`(has(self.trainingSpec) && has(self.trainingSpec.maxRuntime) ? duration(self.trainingSpec.maxRuntime) : duration("0s")) == (has(oldSelf.trainingSpec) && has(oldSelf.trainingSpec.maxRuntime) ? duration(oldSelf.trainingSpec.maxRuntime) : duration("0s")) && (has(self.trainingSpec) && has(self.trainingSpec.maxRestarts) ? self.trainingSpec.maxRestarts : 0) == (has(oldSelf.trainingSpec) && has(oldSelf.trainingSpec.maxRestarts) ? oldSelf.trainingSpec.maxRestarts : 0)`,fieldPath=".trainingSpec",reason=FieldValueForbidden,message="is immutable: restarts and time already used were counted against it; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`!has(self.trainingSpec) || (has(self.workloadType) && self.workloadType == "Training")`,fieldPath=".trainingSpec",reason=FieldValueForbidden,message="needs workloadType Training"
// +kubebuilder:validation:XValidation:rule=`!has(self.workloadType) || self.workloadType != "Training" || self.replicas == oldSelf.replicas`,fieldPath=".replicas",reason=FieldValueForbidden,message="is immutable: the replicas of a Training workload are fixed; create a new PodCliqueSet"
type PodCliqueSetSpec struct {
	// replicas is the number of copies of the template. 0 is legal.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule=`self <= 150000`,message="must not be above 150000: a cluster of Kubernetes runs no more pods; use fewer replicas"
	Replicas int32 `json:"replicas"`

	// updateStrategy says how a change of the template reaches what runs. Unset
	// means RollingRecreate. A change from OnDelete to RollingRecreate replaces
	// nothing before the next change of the template; one from RollingRecreate to
	// OnDelete ends an update that is under way. Without effect for Training, whose
	// template is immutable.
	// +optional
	UpdateStrategy *PodCliqueSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// workloadType says whether the pods run until they are deleted (Inference,
	// also when unset) or until they are done (Training). Immutable.
	// +optional
	WorkloadType WorkloadType `json:"workloadType,omitempty"`

	// trainingSpec bounds the runtime and the restarts of a Training workload.
	// Only with workloadType Training. Immutable but for ttlSecondsAfterFinished.
	// +optional
	TrainingSpec *TrainingSpec `json:"trainingSpec,omitempty"`

	// suspend is not supported: true is refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!self`,reason=FieldValueForbidden,message="is not supported; create the PodCliqueSet when it may start, and delete it to stop it"
	Suspend *bool `json:"suspend,omitempty"`

	// template describes one replica.
	// +required
	Template PodCliqueSetTemplateSpec `json:"template"`
}

// WorkloadType says how a workload ends.
//
// +kubebuilder:validation:Enum=Inference;Training
type WorkloadType string

const (
	// WorkloadTypeInference runs until it is deleted; pods that end are
	// replaced. The default.
	WorkloadTypeInference WorkloadType = "Inference"
	// WorkloadTypeTraining is done when its pods are.
	WorkloadTypeTraining WorkloadType = "Training"
)

// TrainingSpec bounds a Training workload.
type TrainingSpec struct {
	// maxRuntime is the time from the first start until the workload is failed,
	// restarts included. Unset means no limit. Must be positive.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`duration(self) > duration("0s")`,message="must be a duration like 24h or 90m, greater than 0"
	MaxRuntime *metav1.Duration `json:"maxRuntime,omitempty"`

	// maxRestarts is how often replicas may be restarted, all together, before
	// the workload is failed. Unset means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// ttlSecondsAfterFinished is after how many seconds the PodCliqueSet is
	// deleted that has succeeded or failed. Unset means never. It may be changed
	// at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// UpdateStrategyType says how a change of the template reaches what runs.
//
// +kubebuilder:validation:Enum=RollingRecreate;OnDelete
type UpdateStrategyType string

const (
	// RollingRecreateStrategyType deletes and recreates one unit at a time. The
	// default.
	RollingRecreateStrategyType UpdateStrategyType = "RollingRecreate"
	// OnDeleteStrategyType leaves what runs alone; what is deleted comes back
	// with the new template.
	OnDeleteStrategyType UpdateStrategyType = "OnDelete"
)

// PodCliqueSetUpdateStrategy says how a change of the template reaches what
// runs, for standalone cliques and scaling groups alike.
type PodCliqueSetUpdateStrategy struct {
	// type of the update strategy. Unset means RollingRecreate.
	// +optional
	// +kubebuilder:default=RollingRecreate
	Type UpdateStrategyType `json:"type,omitempty"`
}

// IsOnDelete reports whether the update strategy is OnDelete. Without a strategy it is not.
func (s *PodCliqueSetSpec) IsOnDelete() bool {
	return s.UpdateStrategy != nil && s.UpdateStrategy.Type == OnDeleteStrategyType
}

// CliqueStartupType says in which order the cliques of a replica start.
//
// +kubebuilder:validation:Enum=CliqueStartupTypeAnyOrder;CliqueStartupTypeInOrder;CliqueStartupTypeExplicit
type CliqueStartupType string

const (
	// CliqueStartupTypeAnyOrder starts all cliques together. The default.
	CliqueStartupTypeAnyOrder CliqueStartupType = "CliqueStartupTypeAnyOrder"
	// CliqueStartupTypeInOrder starts each clique after the one before it in
	// the list.
	CliqueStartupTypeInOrder CliqueStartupType = "CliqueStartupTypeInOrder"
	// CliqueStartupTypeExplicit starts each clique after those of its
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
	// cliques are the roles of the service. Names are part of pod names. The
	// set of cliques is immutable; their order too where it is the start order.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Cliques []*PodCliqueTemplateSpec `json:"cliques"`

	// cliqueStartupType says in which order cliques start. Unset means
	// CliqueStartupTypeAnyOrder. Immutable.
	// +optional
	StartupType *CliqueStartupType `json:"cliqueStartupType,omitempty"`

	// priorityClassName names the PriorityClass of the PodGroups and the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// headlessServiceConfig is about the headless Service that each replica has.
	// +optional
	HeadlessServiceConfig *HeadlessServiceConfig `json:"headlessServiceConfig,omitempty"`

	// topologyConstraint asks for a whole replica to be placed close together.
	// Immutable. Not acted on: a required domain is refused, a preferred one is
	// kept.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`

	// terminationDelay is how long a replica that was available may stay below
	// its minimum before it is terminated and created again. Unset means never;
	// with workloadType Training, 0. It may be changed, added and removed at any
	// time: what counts is the beginning of the breach and the present delay.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration("0s")`,message="must be a duration like 4h or 90s, not negative"
	TerminationDelay *metav1.Duration `json:"terminationDelay,omitempty"`

	// resourceClaimTemplates are what resourceSharing refers to. Immutable.
	// Kept, not acted on.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ResourceClaimTemplates []ResourceClaimTemplateConfig `json:"resourceClaimTemplates,omitempty"`

	// resourceSharing lets pods share ResourceClaims. Immutable. Kept, not
	// acted on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ResourceSharing []PodCliqueSetResourceSharing `json:"resourceSharing,omitempty"`

	// podCliqueScalingGroups are groups of cliques that scale together. A clique
	// is in one group at most; those in none are standalone. The set of groups
	// is immutable.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	PodCliqueScalingGroupConfigs []PodCliqueScalingGroupConfig `json:"podCliqueScalingGroups,omitempty"`
}

// HeadlessServiceConfig is about the headless Service that each replica has.
type HeadlessServiceConfig struct {
	// publishNotReadyAddresses says whether pods are found by DNS before they
	// are ready. Unset means true.
	// +optional
	// +kubebuilder:default=true
	PublishNotReadyAddresses *bool `json:"publishNotReadyAddresses,omitempty"`
}

// PodCliqueTemplateSpec describes one clique of a replica.
type PodCliqueTemplateSpec struct {
	// name of the clique, unique in the PodCliqueSet. Part of pod names: a DNS
	// label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// labels of the PodClique and its pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the PodClique and its pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// topologyConstraint asks for the clique's pods to be placed close together.
	// Immutable. Not acted on: a required domain is refused, a preferred one is
	// kept.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`

	// resourceSharing lets the clique's pods share ResourceClaims. Immutable.
	// Kept, not acted on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ResourceSharing []ResourceSharing `json:"resourceSharing,omitempty"`

	// spec of the PodClique.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.replicas > 0`,fieldPath=".replicas",message="must be greater than 0: a clique that is not wanted is left out; one that runs is scaled to 0 by its scale subresource"
	Spec PodCliqueSpec `json:"spec"`
}

// PodCliqueScalingGroupConfig describes a group of cliques that scale together.
//
// +kubebuilder:validation:XValidation:rule=`has(self.minAvailable) == has(oldSelf.minAvailable) && (!has(self.minAvailable) || self.minAvailable == oldSelf.minAvailable)`,fieldPath=".minAvailable",reason=FieldValueForbidden,message="is immutable: replicas that run were admitted by it; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`self.cliqueNames == oldSelf.cliqueNames`,fieldPath=".cliqueNames",reason=FieldValueForbidden,message="is immutable: replicas that run could not follow; create a new PodCliqueSet"
// +kubebuilder:validation:XValidation:rule=`!has(self.minAvailable) || (has(self.replicas) ? self.replicas : 1) >= self.minAvailable`,fieldPath=".replicas",message="must not be less than minAvailable"
type PodCliqueScalingGroupConfig struct {
	// name of the scaling group, unique in the PodCliqueSet and not the name of
	// a clique. Part of pod names: a DNS label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// cliqueNames are the cliques of which each replica of the group has one.
	// Immutable.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	CliqueNames []string `json:"cliqueNames"`

	// annotations of the PodCliqueScalingGroup.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// replicas of the group when it is created. Unset means 1. Afterwards those
	// of the PodCliqueScalingGroup hold, once it has been scaled.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Replicas *int32 `json:"replicas,omitempty"`

	// minAvailable is the number of replicas that are admitted together with the
	// standalone cliques; the group is unavailable below it. An explicit one is
	// a floor for scaling too. Unset means 1, but the group may be scaled to 0.
	// Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// terminationDelay overrides that of the template for this group. Only where
	// the template has one.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration("0s")`,message="must be a duration like 4h or 90s, not negative"
	TerminationDelay *metav1.Duration `json:"terminationDelay,omitempty"`

	// scaleConfig lets a HorizontalPodAutoscaler scale the group.
	// +optional
	ScaleConfig *AutoScalingConfig `json:"scaleConfig,omitempty"`

	// resourceSharing lets the group's pods share ResourceClaims. Immutable.
	// Kept, not acted on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ResourceSharing []PodCliqueScalingGroupResourceSharing `json:"resourceSharing,omitempty"`

	// topologyConstraint asks for each replica of the group to be placed close
	// together. Immutable. Not acted on: a required domain is refused, a
	// preferred one is kept.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// PodCliqueSetPhase is one word for users. Programs read the conditions.
//
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed
type PodCliqueSetPhase string

const (
	// PodCliqueSetPhasePending: no pod is running.
	PodCliqueSetPhasePending PodCliqueSetPhase = "Pending"
	// PodCliqueSetPhaseRunning: a pod of a replica is running.
	PodCliqueSetPhaseRunning PodCliqueSetPhase = "Running"
	// PodCliqueSetPhaseSucceeded: all replicas of a Training workload are done.
	PodCliqueSetPhaseSucceeded PodCliqueSetPhase = "Succeeded"
	// PodCliqueSetPhaseFailed: a Training workload has used up its restarts or
	// its time.
	PodCliqueSetPhaseFailed PodCliqueSetPhase = "Failed"
)

// PodCliqueSetStatus says what there is.
type PodCliqueSetStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is one word for users, made from the pods: Running while any pod
	// is. Succeeded and Failed, which only Training has, are final.
	// +optional
	Phase PodCliqueSetPhase `json:"phase,omitempty"`

	// conditions are Available (every replica is) and, while they hold, Failed
	// (Training only), ReplicaFailure and ForeignObject.
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

	// replicas are those wanted by the spec that this status describes.
	// +optional
	// +kubebuilder:default=0
	Replicas int32 `json:"replicas"`

	// scheduledReplicas have their minimum bound to nodes.
	// +optional
	// +kubebuilder:default=0
	ScheduledReplicas int32 `json:"scheduledReplicas"`

	// availableReplicas have every standalone clique and every scaling group
	// available.
	// +optional
	// +kubebuilder:default=0
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas are made from the present template.
	// +optional
	// +kubebuilder:default=0
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// hpaPodSelector selects the pods, as text, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Selector *string `json:"hpaPodSelector,omitempty"`

	// restartCount is the number of restarts of replicas, all together. It never
	// exceeds trainingSpec.maxRestarts. Training only.
	// +optional
	// +kubebuilder:default=0
	RestartCount int32 `json:"restartCount"`

	// startTime is when the phase became Running for the first time; never reset.
	// Training only.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// runtimeDeadline is when the workload is failed because it has run for
	// trainingSpec.maxRuntime, restarts included. Never moved. Unset without a
	// limit, and before the first start.
	// +optional
	RuntimeDeadline *metav1.Time `json:"runtimeDeadline,omitempty"`

	// completionTime is when the phase became Succeeded or Failed. Training only.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// succeededReplicas is the number of replicas that have succeeded. Training
	// only.
	// +optional
	SucceededReplicas int32 `json:"succeededReplicas,omitempty"`

	// succeededIndices are the indices of the replicas all of whose PodCliques
	// have succeeded, in the form 0-5,7. They are never restarted. Training only.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	SucceededIndices string `json:"succeededIndices,omitempty"`

	// recordedReplicas are the spec.replicas of standalone PodCliques and
	// PodCliqueScalingGroups that were scaled away from their template: one that
	// is deleted gets them back when it is made anew.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	RecordedReplicas []RecordedReplicas `json:"recordedReplicas,omitempty"`

	// replicaAttempts are the attempts of replicas that were replaced, see
	// ReplicaAttempt. A replica without an entry is in its first attempt, 0.
	// +optional
	// +listType=map
	// +listMapKey=index
	ReplicaAttempts []ReplicaAttempt `json:"replicaAttempts,omitempty"`

	// minAvailableBreachedSince is when the first breach of minAvailable began
	// that lasts, of a standalone PodClique or of a PodCliqueScalingGroup. Unset
	// if there is none.
	// +optional
	MinAvailableBreachedSince *metav1.Time `json:"minAvailableBreachedSince,omitempty"`

	// terminationDeadline is when the next termination is due: of a replica, or
	// of a replica of a PodCliqueScalingGroup. Unset if none is.
	// +optional
	TerminationDeadline *metav1.Time `json:"terminationDeadline,omitempty"`

	// podGangStatuses is Grove's and stays empty: a PodGroup's status stands in
	// the PodGroup.
	// +optional
	// +listType=map
	// +listMapKey=name
	PodGangStatuses []PodGangStatus `json:"podGangStatuses,omitempty"`

	// currentGenerationHash is the hash of the present revision: of everything in
	// the template whose change replaces pods. It is part of the name of the
	// revision's ControllerRevision.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CurrentGenerationHash *string `json:"currentGenerationHash,omitempty"`

	// updateProgress is the latest update, to the revision of
	// currentGenerationHash. Unset before the first change of the template.
	// +optional
	UpdateProgress *PodCliqueSetUpdateProgress `json:"updateProgress,omitempty"`
}

// RecordedReplicas keeps the scale of objects over their recreation: of one
// clique or scaling group of the template, in all replicas of the PodCliqueSet
// where it was scaled alike.
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

	// replicas that these objects have.
	// +required
	Replicas int32 `json:"replicas"`

	// initialReplicas is what the template gave a clique when it was made for the
	// first time, the most that its minimum can be while minAvailable is unset.
	// Unset for scaling groups.
	// +optional
	InitialReplicas *int32 `json:"initialReplicas,omitempty"`
}

// ReplicaAttempt counts how often a replica was replaced. Raising the attempt is
// the decision to replace the replica: PodCliques of an earlier attempt are
// deleted, and no pod of the new one is made before the pods of the earlier
// ones are gone.
type ReplicaAttempt struct {
	// index of the replica.
	// +required
	Index int32 `json:"index"`

	// attempt is the number of the present attempt. The first one is 0.
	// +required
	Attempt int32 `json:"attempt"`

	// reason says why the attempt was raised: PodCliquesDeleted, Termination,
	// Restart or Update.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message says the same for users: what was below its minimum, and since
	// when.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// startedAt is when it was raised.
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// availableAt is when the replica was available again, for the first time in
	// this attempt. Unset until then.
	// +optional
	AvailableAt *metav1.Time `json:"availableAt,omitempty"`
}

// PodGangStatus is Grove's; see PodCliqueSetStatus.
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

// PodCliqueSetUpdateProgress is the progress of an update. Under OnDelete it
// ends when it begins: users choose what is replaced, and when.
type PodCliqueSetUpdateProgress struct {
	// updateStartedAt is when the update began.
	// +required
	UpdateStartedAt metav1.Time `json:"updateStartedAt"`

	// updateEndedAt is when the update was complete. Unset while it runs.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`

	// lastProgressTime is when something last became of the update: it began, went
	// on to another replica, or a PodClique, or a replica of a scaling group, was
	// updated.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`

	// currentlyUpdating is the replica being updated. Unset between replicas, and
	// under OnDelete.
	// +optional
	CurrentlyUpdating *PodCliqueSetReplicaUpdateProgress `json:"currentlyUpdating,omitempty"`

	// updatedPodCliques are the standalone PodCliques of that replica that are
	// updated, by name.
	// +optional
	// +listType=atomic
	UpdatedPodCliques []string `json:"updatedPodCliques,omitempty"`

	// updatedPodCliqueScalingGroups are the PodCliqueScalingGroups of that
	// replica that are updated, by name.
	// +optional
	// +listType=atomic
	UpdatedPodCliqueScalingGroups []string `json:"updatedPodCliqueScalingGroups,omitempty"`

	// updatedPodCliquesCount is the number of PodCliques of all replicas that
	// are updated.
	// +optional
	UpdatedPodCliquesCount int32 `json:"updatedPodCliquesCount"`

	// totalPodCliquesCount is the number of PodCliques of all replicas.
	// +optional
	TotalPodCliquesCount int32 `json:"totalPodCliquesCount"`

	// updatedPodCliqueScalingGroupsCount is the number of PodCliqueScalingGroups
	// of all replicas that are updated.
	// +optional
	UpdatedPodCliqueScalingGroupsCount int32 `json:"updatedPodCliqueScalingGroupsCount"`

	// totalPodCliqueScalingGroupsCount is the number of PodCliqueScalingGroups
	// of all replicas.
	// +optional
	TotalPodCliqueScalingGroupsCount int32 `json:"totalPodCliqueScalingGroupsCount"`
}

// PodCliqueSetReplicaUpdateProgress is the replica being updated.
type PodCliqueSetReplicaUpdateProgress struct {
	// replicaIndex is the index of the replica.
	// +required
	ReplicaIndex int32 `json:"replicaIndex"`

	// updateStartedAt is when its update began.
	// +required
	UpdateStartedAt metav1.Time `json:"updateStartedAt"`

	// updateEndedAt is when its update was complete. Unset while it runs.
	// +optional
	UpdateEndedAt *metav1.Time `json:"updateEndedAt,omitempty"`
}
