package v2alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroup is a gang: pods that start together or not at all. Without
// sub-groups it needs minMember pods. With sub-groups it is a tree whose leaves
// hold pods and whose other nodes need some (minSubGroup) or all of their
// direct children.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podgroups,singular=podgroup,shortName=pg,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Waiting, Binding, Admitted, Degraded, Completed or Invalid"
// +kubebuilder:printcolumn:name="Needs",type=string,JSONPath=`.status.needs`,description="Pods, or direct children, that have to start together"
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.scheduled`,description="Pods of the minimum that are bound, of how many"
// +kubebuilder:printcolumn:name="GPUs",type=string,JSONPath=`.status.gpus`,description="GPUs of bound pods, of those that all pods request"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,description="Why the PodGroup is not satisfied"
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.conditions[?(@.type=="Satisfied")].lastTransitionTime`,description="How long the PodGroup has been satisfied, or has not been"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Priority",type=string,JSONPath=`.spec.priorityClassName`,priority=1
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`,priority=1
type PodGroup struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what the gang needs.
	// +optional
	Spec PodGroupSpec `json:"spec,omitempty"`

	// status says what the gang has, and if it waits, why. Written by
	// muster-scheduler alone.
	// +optional
	Status PodGroupStatus `json:"status,omitempty"`
}

// PodGroupList is a list of PodGroups.
//
// +kubebuilder:object:root=true
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the PodGroups.
	Items []PodGroup `json:"items"`
}

// PodGroupSpec says what the gang needs. Nothing in it is immutable.
//
// The rules here are those that fit the API server's cost limit; the webhook
// and muster-scheduler check the rest: that a leaf has minMember and no
// minSubGroup, and minSubGroup against the children of each sub-group.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.minMember) || self.minMember == 0 || !has(self.minSubGroup)`,fieldPath=".minMember",reason=FieldValueForbidden,message="minMember and minSubGroup exclude each other: with subGroups use minSubGroup, without use minMember"
// +kubebuilder:validation:XValidation:rule=`!has(self.minMember) || self.minMember > 0 || has(self.minSubGroup)`,fieldPath=".minMember",message="must be greater than 0: leave minMember out to need one pod, or all children if there are subGroups"
// +kubebuilder:validation:XValidation:rule=`!has(self.minSubGroup) || (has(self.subGroups) && self.subGroups.exists(s, !has(s.parent)))`,fieldPath=".minSubGroup",reason=FieldValueForbidden,message="minSubGroup counts direct children, but no entry of subGroups is one: use minMember, or declare subGroups without a parent"
// +kubebuilder:validation:XValidation:rule=`!has(self.minSubGroup) || !has(self.subGroups) || !self.subGroups.exists(s, !has(s.parent)) || self.minSubGroup <= self.subGroups.filter(s, !has(s.parent)).size()`,fieldPath=".minSubGroup",message="minSubGroup is more than the number of direct children: lower it, or declare more subGroups without a parent"
// +kubebuilder:validation:XValidation:rule=`!has(self.subGroups) || [self.subGroups.transformMapEntry(i, p, {p.name: true})].all(m, self.subGroups.all(s, !has(s.parent) || s.parent in m))`,fieldPath=".subGroups",message="a parent names no sub-group: every parent must be the name of an entry of subGroups"
// +kubebuilder:validation:XValidation:rule=`!has(self.subGroups) || [self.subGroups.transformMapEntry(i, p, {p.name: has(p.parent) ? p.parent : ""})].all(m, self.subGroups.all(s, !has(s.parent) || m[?s.parent].optFlatMap(a, m[?a]).optFlatMap(a, m[?a]).optFlatMap(a, m[?a]).optFlatMap(a, m[?a]).optFlatMap(a, m[?a]).optFlatMap(a, m[?a]).orValue("") == ""))`,fieldPath=".subGroups",message="parents form a cycle or more than 8 levels: following the parents of any sub-group must lead out of the tree in at most 8 steps"
// +kubebuilder:validation:XValidation:rule=`!has(self.subGroups) || [self.subGroups.transformMapEntry(i, p, {p.name: has(p.minMember)})].all(m, self.subGroups.all(s, !has(s.parent) || !m[?s.parent].orValue(false)))`,fieldPath=".subGroups",message="a sub-group with children has minMember, which counts the pods of a leaf: use minSubGroup on it"
type PodGroupSpec struct {
	// minMember is the number of pods that a PodGroup without subGroups needs
	// to start. Unset means 1. Not together with minSubGroup, beside which
	// only 0 is accepted. Together with subGroups it is the old form: all
	// children are required and minMember itself is not enforced.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinMember *int32 `json:"minMember,omitempty"`

	// minSubGroup is the number of direct children (subGroups without a parent)
	// that must be satisfied. Unset means all of them. At most the number of
	// direct children. Not together with minMember.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// subGroups are the nodes of the tree below the PodGroup, parents and
	// children in one flat list in any order; the order given is the order of
	// preference among equals. A sub-group that no other names as its parent is
	// a leaf and holds pods. At most 8 levels.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	SubGroups []SubGroup `json:"subGroups,omitempty"`

	// priorityClassName names the PriorityClass of the gang. Unset means the
	// highest priority among its pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// preemptibility says which of the gang's pods may be preempted: all
	// (preemptible, also when unset), none (non-preemptible), or those above
	// the minimum of the tree (semi-preemptible). The minimum is preempted as a
	// whole or not at all. Gangs do not preempt yet: muster-scheduler acts on it
	// when a pod without a gang preempts; other schedulers do not know it.
	// +optional
	Preemptibility Preemptibility `json:"preemptibility,omitempty"`

	// queue names the queue that the gang draws its quota from. Kept for
	// manifests written for KAI Scheduler, not acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Queue string `json:"queue,omitempty"`

	// topologyConstraint asks for the whole gang to be placed close together.
	// Not acted on: a required level is refused, a preferred one is kept.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`

	// markUnschedulable says whether pods of a gang that waits for capacity
	// get the condition PodScheduled=False with reason Unschedulable, which
	// cluster autoscalers act on. Unset means true.
	// +optional
	MarkUnschedulable *bool `json:"markUnschedulable,omitempty"`

	// schedulingBackoff is KAI Scheduler's number of failed attempts after
	// which the gang is skipped; -1 means never. Kept, not acted on:
	// muster-scheduler tries again when something that could help has changed.
	// +optional
	SchedulingBackoff *int32 `json:"schedulingBackoff,omitempty"`

	// backoffLimit is KAI Scheduler's number of retries before the PodGroup is
	// failed. Kept, not acted on: a PodGroup does not fail, and pods are retried
	// by the controller that makes them.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// completions is KAI Scheduler's number of pods that must succeed. Kept, not
	// acted on: minMember and minSubGroup say what the gang needs, and the
	// controller that makes the pods counts those that succeed.
	// +optional
	Completions *int32 `json:"completions,omitempty"`

	// parallelism is KAI Scheduler's number of pods that run at a time. Kept,
	// not acted on: the controller that makes the pods decides how many there
	// are.
	// +optional
	Parallelism *int32 `json:"parallelism,omitempty"`

	// preemptionDelay is how long the gang waits before it may preempt others.
	// Kept, not acted on.
	// +optional
	PreemptionDelay *metav1.Duration `json:"preemptionDelay,omitempty"`

	// stalenessGracePeriod is how long a running gang may stay below its
	// minimum in KAI Scheduler before it is evicted. Kept, not acted on:
	// muster-scheduler never ends a gang that once was whole.
	// +optional
	StalenessGracePeriod *metav1.Duration `json:"stalenessGracePeriod,omitempty"`
}

// SubGroup is one node of the tree below the PodGroup. A leaf has minMember, a
// sub-group with children may have minSubGroup.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.minMember) || !has(self.minSubGroup)`,fieldPath=".minMember",reason=FieldValueForbidden,message="minMember and minSubGroup exclude each other: a leaf uses minMember, a sub-group with children minSubGroup"
type SubGroup struct {
	// name of the sub-group, unique in the PodGroup. For a leaf it is the value
	// of the label kai.scheduler/subgroup-name on its pods.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// parent is the name of the sub-group that this one is a child of. Unset
	// means a direct child of the PodGroup. It may be declared later in the list.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Parent *string `json:"parent,omitempty"`

	// minMember is the number of pods that this leaf needs. Required on a
	// leaf, refused on a sub-group with children.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinMember *int32 `json:"minMember,omitempty"`

	// minSubGroup is the number of direct children that must be satisfied.
	// Unset means all of them. At most the number of direct children. Refused
	// on a leaf.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// topologyConstraint asks for the pods below this sub-group to be placed
	// close together. Not acted on: a required level is refused, a preferred
	// one is kept.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// TopologyConstraint asks for pods to be placed in one domain of a topology.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.requiredTopologyLevel) || self.requiredTopologyLevel == ""`,fieldPath=".requiredTopologyLevel",reason=FieldValueForbidden,message="required topology is not supported, and placing the pods without it would break what needs it: use preferredTopologyLevel, or pod affinity with this topology key"
type TopologyConstraint struct {
	// topology names the Topology object whose levels the two fields below are
	// keys of.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Topology string `json:"topology,omitempty"`

	// requiredTopologyLevel is the node label whose value must be the same for
	// all the pods. Refused, because a workload that needs it must not be
	// placed without it.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	RequiredTopologyLevel string `json:"requiredTopologyLevel,omitempty"`

	// preferredTopologyLevel is the node label whose value should be the same
	// for all the pods if possible. Kept, not acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	PreferredTopologyLevel string `json:"preferredTopologyLevel,omitempty"`
}

// Preemptibility says which pods of a gang may be preempted.
//
// +kubebuilder:validation:Enum=preemptible;non-preemptible;semi-preemptible
type Preemptibility string

const (
	// Preemptible: every pod may be preempted. The default.
	Preemptible Preemptibility = "preemptible"
	// NonPreemptible: no pod may be preempted.
	NonPreemptible Preemptibility = "non-preemptible"
	// SemiPreemptible: pods above the minimum of the tree may be preempted.
	SemiPreemptible Preemptibility = "semi-preemptible"
)

// PodGroupStatus says what the gang has, and if it waits, why.
type PodGroupStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is one word for users, made from the conditions. Programs read
	// the conditions.
	// +optional
	Phase PodGroupPhase `json:"phase,omitempty"`

	// needs is how much of the gang has to start together: "8 pods", or of the
	// direct children "3 of 4" or "all". Empty if the spec is not valid.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Needs string `json:"needs,omitempty"`

	// gpus is "held/requested": the GPUs of bound pods, of those that all pods
	// of the gang request, surplus included. Empty if none requests a GPU by an
	// extended resource.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	GPUs string `json:"gpus,omitempty"`

	// scheduled is "bound/needed" in pods of the minimum, for example "14/16".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Scheduled string `json:"scheduled,omitempty"`

	// reason is the dominant reason why the gang is not satisfied, one of a
	// closed list. Empty when it is.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason,omitempty"`

	// summary is one line for users: what the gang has, what it lacks and why.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Summary string `json:"summary,omitempty"`

	// waitingSince is since when the pods that exist could form the minimum
	// while the gang is not admitted: its place among gangs of its priority,
	// kept over a restart of muster-scheduler. Empty if they cannot, or it is.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`

	// conditions are Admitted (the minimum was bound once; stays until no pod
	// of the gang is left) and Satisfied (the minimum is bound now).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// tree has one line per sub-group, in the order of spec.subGroups:
	// "decode-0: 3/4 bound, 4 exist, admitted". A leaf counts pods: those that
	// are bound, of those that it needs, and those that exist. A sub-group with
	// children counts its direct children: those whose minimum is bound, of
	// those that it needs, and those that the existing pods would satisfy.
	// "admitted" stays from when the minimum was bound below an admitted parent
	// until no pod of the sub-group is left. Empty for a PodGroup without
	// sub-groups.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	SubGroups []SubGroupStatus `json:"tree,omitempty"`

	// subGroups is what earlier versions wrote in place of tree. Read once, when
	// muster-scheduler starts, and not written any more.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	FormerSubGroups []FormerSubGroupStatus `json:"subGroups,omitempty"`
}

// PodGroupPhase is one word for users about where a gang stands.
//
// +kubebuilder:validation:Enum=Waiting;Binding;Admitted;Degraded;Completed;Invalid
type PodGroupPhase string

const (
	// PodGroupWaiting: the minimum is not bound; reason says why.
	PodGroupWaiting PodGroupPhase = "Waiting"
	// PodGroupBinding: a plan for the whole minimum is being bound.
	PodGroupBinding PodGroupPhase = "Binding"
	// PodGroupAdmitted: the minimum is bound.
	PodGroupAdmitted PodGroupPhase = "Admitted"
	// PodGroupDegraded: admitted once, below the minimum now.
	PodGroupDegraded PodGroupPhase = "Degraded"
	// PodGroupCompleted: every pod has succeeded.
	PodGroupCompleted PodGroupPhase = "Completed"
	// PodGroupInvalid: the spec is not valid; nothing is scheduled.
	PodGroupInvalid PodGroupPhase = "Invalid"
)

// Condition types.
const (
	// ConditionAdmitted is True once the minimum of the tree was bound, and
	// stays True until no pod of the gang is bound or counted as succeeded.
	ConditionAdmitted = "Admitted"
	// ConditionSatisfied is True while the minimum of the tree is bound. It is
	// also where an invalid spec is told.
	ConditionSatisfied = "Satisfied"
)

// Reason is why a gang is not satisfied, or on a condition that is True, what
// made it so. The list is closed. Where several apply, the first of the order
// below is the dominant one.
type Reason string

// Reasons of conditions that are False. Where several apply, the first of this
// order is shown.
const (
	// ReasonInvalid: the spec does not validate, or members cannot count, for
	// instance because they name another scheduler.
	ReasonInvalid Reason = "Invalid"
	// ReasonWaitingForPods: fewer pods exist than the minimum needs.
	ReasonWaitingForPods Reason = "WaitingForPods"
	// ReasonGated: pods exist but carry scheduling gates.
	ReasonGated Reason = "Gated"
	// ReasonBehindInQueue: other gangs go first.
	ReasonBehindInQueue Reason = "BehindInQueue"
	// ReasonClaimsNotReady: a claim that a member names does not exist, or
	// cannot be used yet. The message has the words of the plugin that looks
	// after it.
	ReasonClaimsNotReady Reason = "ClaimsNotReady"
	// ReasonNoNodeMatches: no node could ever take a member, because of
	// selectors or affinity, or of a resource that no node offers.
	ReasonNoNodeMatches Reason = "NoNodeMatches"
	// ReasonTooLarge: the minimum would not fit the cluster if it were empty.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonNodesUnavailable: the minimum would fit if nodes were not cordoned,
	// not ready or tainted. The message has their number and what to do.
	ReasonNodesUnavailable Reason = "NodesUnavailable"
	// ReasonInsufficientGPUs: not enough of an extended resource, such as
	// nvidia.com/gpu, is free in total.
	ReasonInsufficientGPUs Reason = "InsufficientGPUs"
	// ReasonInsufficientResources: not enough of another resource, such as cpu
	// or memory, is free in total. The message names the resource.
	ReasonInsufficientResources Reason = "InsufficientResources"
	// ReasonFragmented: enough is free, but not in pieces of the size of a pod.
	ReasonFragmented Reason = "Fragmented"
	// ReasonBackingOff: failed before and waits for its next attempt.
	ReasonBackingOff Reason = "BackingOff"
	// ReasonBinding: a plan for the whole minimum is being bound.
	ReasonBinding Reason = "Binding"
	// ReasonSchedulerError: an error inside the scheduler or of the API server.
	ReasonSchedulerError Reason = "SchedulerError"
)

// Reasons of conditions that are True.
const (
	// ReasonAdmitted: the minimum was bound.
	ReasonAdmitted Reason = "Admitted"
	// ReasonSatisfied: the minimum is bound.
	ReasonSatisfied Reason = "Satisfied"
	// ReasonCompleted: every pod has succeeded.
	ReasonCompleted Reason = "Completed"
)
