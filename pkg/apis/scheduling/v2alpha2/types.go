// SPDX-License-Identifier: Apache-2.0

package v2alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroup is a gang: pods that start together or not at all. Without
// sub-groups it needs minMember pods. With sub-groups it is a tree whose leaves
// contain pods and whose other nodes need some (minSubGroup) or all of their
// direct children.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podgroups,singular=podgroup,shortName=pg,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Waiting, Idle, Binding, Admitted, Degraded, Completed or Invalid"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,description="Why the PodGroup is not satisfied"
// +kubebuilder:printcolumn:name="Bound",type=string,JSONPath=`.status.scheduled`,description="Bound pods of the minimum, and the size of the minimum"
// +kubebuilder:printcolumn:name="GPUs",type=string,JSONPath=`.status.gpus`,description="GPUs of bound pods, and GPUs that all pods request"
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.conditions[?(@.type=="Satisfied")].lastTransitionTime`,description="How long the PodGroup has been satisfied, or completed, or has not been satisfied"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Needs",type=string,JSONPath=`.status.needs`,priority=1,description="Pods, or direct children, that must start together"
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.status.priority`,priority=1,description="The priority that the gang counts with"
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.brief`,priority=1,description="Where the PodGroup runs, what waits, and why"
type PodGroup struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the gang.
	// +optional
	Spec PodGroupSpec `json:"spec,omitempty"`

	// status is the observed state of the gang, including the reason if it
	// waits. Only muster-scheduler writes it.
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

// PodGroupSpec is the desired state of the gang. No field is immutable.
//
// The validation rules in the CRD are limited by the API server's cost limit.
// The webhook and muster-scheduler check the remaining rules: a leaf has
// minMember and no minSubGroup, and minSubGroup does not exceed the number of
// children of each sub-group.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.minMember) || self.minMember == 0 || !has(self.minSubGroup)`,fieldPath=".minMember",reason=FieldValueForbidden,message="minMember and minSubGroup exclude each other: with subGroups use minSubGroup, without use minMember"
// +kubebuilder:validation:XValidation:rule=`!has(self.minMember) || self.minMember > 0 || has(self.minSubGroup)`,fieldPath=".minMember",message="must be greater than 0: leave minMember out to need one pod, or all children if there are subGroups"
// +kubebuilder:validation:XValidation:rule=`!has(self.minSubGroup) || (has(self.subGroups) && self.subGroups.exists(s, !has(s.parent)))`,fieldPath=".minSubGroup",reason=FieldValueForbidden,message="minSubGroup counts direct children, but no entry of subGroups is one: use minMember, or declare subGroups without a parent"
// +kubebuilder:validation:XValidation:rule=`!has(self.minSubGroup) || !has(self.subGroups) || !self.subGroups.exists(s, !has(s.parent)) || self.minSubGroup <= self.subGroups.filter(s, !has(s.parent)).size()`,fieldPath=".minSubGroup",message="minSubGroup is more than the number of direct children: lower it, or declare more subGroups without a parent"
// +kubebuilder:validation:XValidation:rule=`!has(self.subGroups) || [self.subGroups.transformMapEntry(i, p, {p.name: true})].all(m, self.subGroups.all(s, !has(s.parent) || s.parent in m))`,fieldPath=".subGroups",message="a parent names no sub-group: every parent must be the name of an entry of subGroups"
// +kubebuilder:validation:XValidation:rule=`!has(self.subGroups) || [self.subGroups.transformMapEntry(i, p, {p.name: has(p.parent) ? p.parent : ""})].all(m, self.subGroups.all(s, !has(s.parent) || m[?s.parent].optFlatMap(a, m[?a]).optFlatMap(a, m[?a]).optFlatMap(a, m[?a]).optFlatMap(a, m[?a]).optFlatMap(a, m[?a]).optFlatMap(a, m[?a]).orValue("") == ""))`,fieldPath=".subGroups",message="parents form a cycle or more than 8 levels: following the parents of any sub-group must lead out of the tree in at most 8 steps"
// +kubebuilder:validation:XValidation:rule=`!has(self.subGroups) || [self.subGroups.transformMapEntry(i, p, {p.name: has(p.minMember)})].all(m, self.subGroups.all(s, !has(s.parent) || !m[?s.parent].orValue(false)))`,fieldPath=".subGroups",message="a sub-group with children has minMember, which counts the pods of a leaf: use minSubGroup on it"
type PodGroupSpec struct {
	// minMember is the number of pods that must start together in a PodGroup
	// without subGroups. Unset means 1. It cannot be combined with minSubGroup,
	// except for the value 0. In combination with subGroups it has the old
	// meaning: all children are required, and minMember itself is not enforced.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinMember *int32 `json:"minMember,omitempty"`

	// minSubGroup is the number of direct children (subGroups without a parent)
	// that must be satisfied. Unset means all of them. It cannot exceed the
	// number of direct children, and cannot be combined with minMember.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// subGroups are the nodes of the tree below the PodGroup, parents and
	// children in one flat list in any order. Among equal sub-groups, earlier
	// ones are preferred. A sub-group that is not the parent of another one is
	// a leaf and contains pods. The tree has at most 8 levels.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	SubGroups []SubGroup `json:"subGroups,omitempty"`

	// priorityClassName is the name of the PriorityClass of the gang. Unset
	// means the highest priority among its pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// preemptibility defines which of the gang's pods may be preempted: all
	// (preemptible, also if unset), none (non-preemptible), or those above the
	// minimum of the tree (semi-preemptible). The minimum is preempted as a
	// whole or not at all. Only gangs and pods of a higher priority preempt,
	// and only those that muster-scheduler schedules follow this field: other
	// schedulers ignore it.
	// +optional
	Preemptibility Preemptibility `json:"preemptibility,omitempty"`

	// disruptionMode all means that the pods of the gang are preempted together
	// or not at all, also those above its minimum. Unset or single means that
	// pods above the minimum may be preempted alone.
	// +optional
	DisruptionMode DisruptionMode `json:"disruptionMode,omitempty"`

	// queue is the name of the queue that the gang's quota belongs to. Stored
	// for manifests written for KAI Scheduler, without effect.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Queue string `json:"queue,omitempty"`

	// topologyConstraint requests that the whole gang is placed close together.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`

	// markUnschedulable defines whether pods of a gang that waits for capacity
	// get the condition PodScheduled=False with reason Unschedulable, which
	// cluster autoscalers act on. Unset means true.
	// +optional
	MarkUnschedulable *bool `json:"markUnschedulable,omitempty"`

	// schedulingBackoff is, in KAI Scheduler, the number of failed attempts
	// after which the gang is skipped; -1 means never. Stored without effect:
	// muster-scheduler tries again when something that could help has changed.
	// +optional
	SchedulingBackoff *int32 `json:"schedulingBackoff,omitempty"`

	// backoffLimit is, in KAI Scheduler, the number of retries before the
	// PodGroup is failed. Stored without effect: a PodGroup does not fail, and
	// the controller that creates the pods retries them.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// completions is, in KAI Scheduler, the number of pods that must succeed.
	// Stored without effect: minMember and minSubGroup define what the gang
	// needs, and the controller that creates the pods counts those that
	// succeed.
	// +optional
	Completions *int32 `json:"completions,omitempty"`

	// parallelism is, in KAI Scheduler, the number of pods that run at the same
	// time. Stored without effect: the controller that creates the pods decides
	// how many there are.
	// +optional
	Parallelism *int32 `json:"parallelism,omitempty"`

	// preemptionDelay is how long the gang waits before it may preempt others,
	// counted from when its pods became sufficient for the minimum, or from when
	// a pod of it was evicted last. Unset means that it does not wait.
	// +optional
	PreemptionDelay *metav1.Duration `json:"preemptionDelay,omitempty"`

	// stalenessGracePeriod is how long, in KAI Scheduler, a running gang may
	// stay below its minimum before it is evicted. Stored without effect:
	// muster-scheduler never terminates a gang because it fell below its
	// minimum.
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

	// parent is the name of the parent of this sub-group. Unset means a direct
	// child of the PodGroup. The parent may be declared later in the list.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Parent *string `json:"parent,omitempty"`

	// minMember is the number of pods that this leaf needs. Required for a
	// leaf, rejected for a sub-group with children.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinMember *int32 `json:"minMember,omitempty"`

	// minSubGroup is the number of direct children that must be satisfied.
	// Unset means all of them. It cannot exceed the number of direct children.
	// Rejected for a leaf.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// disruptionMode all means that the pods below this sub-group are preempted
	// together or not at all, also those above its minimum.
	// +optional
	DisruptionMode DisruptionMode `json:"disruptionMode,omitempty"`

	// topologyConstraint requests that the pods below this sub-group are placed
	// close together, inside the domains that the nodes above it request.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// TopologyConstraint requests that pods are placed in one domain of a topology:
// on nodes with the same value of a node label. Other schedulers than
// muster-scheduler and KAI Scheduler ignore it.
type TopologyConstraint struct {
	// topology is the name of the Topology (kai.scheduler/v1alpha1) whose levels
	// the two fields below refer to. Unset means those that the annotation
	// scheduling.run.ai/topology-levels lists, as muster-controller does for
	// PodCliqueSets. Without it any node label can be a level. Then the label
	// alone defines the domain, and which of two labels is the wider one has to
	// be seen from the nodes. If more than two levels lie on one path of the
	// tree, name a Topology.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Topology string `json:"topology,omitempty"`

	// requiredTopologyLevel is the node label whose value, with those of the
	// levels before it in the Topology, must be the same for all the pods. It
	// must not be wider than a level that a node above requires in the same
	// Topology. Nodes without the label are not used. Unset means that no level
	// is required.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	RequiredTopologyLevel string `json:"requiredTopologyLevel,omitempty"`

	// preferredTopologyLevel is the node label whose value should be the same
	// for all the pods if possible; the gang starts without it. Unset means that
	// no level is preferred.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	PreferredTopologyLevel string `json:"preferredTopologyLevel,omitempty"`
}

// Preemptibility defines which pods of a gang may be preempted.
//
// +kubebuilder:validation:Enum=preemptible;non-preemptible;semi-preemptible
type Preemptibility string

const (
	// Preemptible: every pod may be preempted. It is the default.
	Preemptible Preemptibility = "preemptible"
	// NonPreemptible: no pod may be preempted.
	NonPreemptible Preemptibility = "non-preemptible"
	// SemiPreemptible: pods above the minimum of the tree may be preempted.
	SemiPreemptible Preemptibility = "semi-preemptible"
)

// DisruptionMode defines which pods of a gang are preempted together, beside
// those of a minimum.
//
// +kubebuilder:validation:Enum=single;all
type DisruptionMode string

const (
	// DisruptSingle: pods above the minimum may be preempted alone. It is the
	// default.
	DisruptSingle DisruptionMode = "single"
	// DisruptAll: all pods below are preempted, or none.
	DisruptAll DisruptionMode = "all"
)

// PodGroupStatus is the observed state of the gang.
type PodGroupStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is a one-word summary for users, derived from the conditions.
	// Programs should read the conditions instead.
	// +optional
	Phase PodGroupPhase `json:"phase,omitempty"`

	// needs is the part of the gang that must start together: "8 pods", or for
	// direct children "3 of 4" or "all". Empty if the spec is not valid.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Needs string `json:"needs,omitempty"`

	// gpus is "bound/requested": the number of GPUs of bound pods, and the
	// number that all pods of the gang request, including surplus. Empty if no
	// pod requests a GPU as an extended resource.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	GPUs string `json:"gpus,omitempty"`

	// scheduled is "bound/needed", counting pods of the minimum, for example
	// "14/16".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Scheduled string `json:"scheduled,omitempty"`

	// reason is the dominant reason why the gang is not satisfied, one of a
	// fixed list. Empty if it is satisfied.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason,omitempty"`

	// summary is one line for users: the state of the gang, what it lacks and
	// why.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Summary string `json:"summary,omitempty"`

	// brief is what fits into a table: of a gang whose minimum is bound where it
	// runs, if it names topology levels, of one that waits startsBy; then the
	// beginning of summary.
	// +optional
	// +kubebuilder:validation:MaxLength=60
	Brief string `json:"brief,omitempty"`

	// placement is where the bound pods run, in terms of the topology levels
	// that the gang and its sub-groups name: "rack r7", or with several domains
	// "3 racks (r1, r2, r7)"; "decode: rack r7; prefill: rack r3" for sub-groups,
	// of which tree contains all. The name of a level is that of its node label
	// without the prefix, and node for kubernetes.io/hostname. Domains are told
	// apart by this label alone. Nodes that do not exist, or lack the label, are
	// counted: "rack r7, 1 node without rack". Changed labels of a node appear when
	// the gang is next checked, which happens every minute. Empty if no level is
	// named, or no pod is bound.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Placement string `json:"placement,omitempty"`

	// priority is the priority that the gang counts with: the highest among its
	// pods, at most that of spec.priorityClassName. Unset if there are no pods
	// that have not ended.
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// waitingSince is when the existing pods became sufficient for the minimum
	// while the gang was not admitted. It determines the order among gangs of
	// the same priority, and is preserved when muster-scheduler restarts. Unset
	// if the pods are not sufficient, or the gang is admitted.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`

	// reservedSince is when room was reserved first for a gang that has waited
	// for long, as pods end that have it. It is preserved when muster-scheduler
	// restarts. Unset if none is.
	// +optional
	ReservedSince *metav1.Time `json:"reservedSince,omitempty"`

	// startsBy is when such a gang starts at the latest, if the pods that it
	// waits for end as they promise (activeDeadlineSeconds, or the annotation
	// scheduling.run.ai/max-runtime), no node is lost, and no gang of a higher
	// priority comes. Unset if some of them promise nothing.
	// +optional
	StartsBy *metav1.Time `json:"startsBy,omitempty"`

	// conditions are Admitted (the minimum was bound once; stays until no pod
	// of the gang exists) and Satisfied (the minimum is bound now); and, only
	// while they are true, Preempting (pods of lower priority end so that the
	// gang can start) and Preempted (the gang lost pods to one of higher
	// priority).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// tree has one line per sub-group, in the order of spec.subGroups:
	// "decode-0: 3/4 bound, 4 exist, admitted". A leaf counts pods: the bound
	// pods, the pods it needs, and the existing pods. A sub-group with children
	// counts its direct children: those whose minimum is bound, those it needs,
	// and those that the existing pods would satisfy. A sub-group that names
	// topology levels continues with where its bound pods run, as in placement:
	// ", on rack r7". "admitted" is set once the minimum was bound below an
	// admitted parent, until no pod of the sub-group exists. Empty for a PodGroup
	// without sub-groups.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	SubGroups []SubGroupStatus `json:"tree,omitempty"`

	// subGroups was written by earlier versions instead of tree. It is read
	// once, when muster-scheduler starts, and no longer written.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	FormerSubGroups []FormerSubGroupStatus `json:"subGroups,omitempty"`
}

// PodGroupPhase is a one-word summary of the state of a gang for users.
//
// +kubebuilder:validation:Enum=Waiting;Idle;Binding;Admitted;Degraded;Completed;Invalid
type PodGroupPhase string

const (
	// PodGroupWaiting: the minimum is not bound; see reason.
	PodGroupWaiting PodGroupPhase = "Waiting"
	// PodGroupIdle: no pod names the PodGroup, and neither its controller nor a
	// Job or StatefulSet of its name is to have pods now. So it is before the
	// first run of a CronJob, after a failed one whose pods are gone, or while a
	// Job is suspended. After a run that succeeded it stays Completed.
	PodGroupIdle PodGroupPhase = "Idle"
	// PodGroupBinding: a plan for the whole minimum is being bound.
	PodGroupBinding PodGroupPhase = "Binding"
	// PodGroupAdmitted: the minimum is bound.
	PodGroupAdmitted PodGroupPhase = "Admitted"
	// PodGroupDegraded: the gang was admitted, and is now below its minimum.
	PodGroupDegraded PodGroupPhase = "Degraded"
	// PodGroupCompleted: every pod has succeeded.
	PodGroupCompleted PodGroupPhase = "Completed"
	// PodGroupInvalid: the spec is not valid; no pod is scheduled.
	PodGroupInvalid PodGroupPhase = "Invalid"
)

// Condition types.
const (
	// ConditionAdmitted is True once the minimum of the tree was bound, and
	// stays True until no pod of the gang is bound or counted as succeeded.
	ConditionAdmitted = "Admitted"
	// ConditionSatisfied is True while the minimum of the tree is bound. It
	// also reports an invalid spec.
	ConditionSatisfied = "Satisfied"
	// ConditionPreempting is True while pods of lower priority end, or are about
	// to end, so that the gang can start. The message contains how many, until
	// when, and the identity of the plan. Afterwards there is no such condition.
	ConditionPreempting = "Preempting"
	// ConditionPreempted is True when the gang has lost pods to a gang or pod of
	// higher priority, which the message names. It is removed when the
	// minimum is bound again or, if only pods above the minimum were lost, when
	// none of the gang's pods waits any more.
	ConditionPreempted = "Preempted"
)

// Reason is why a gang is not satisfied, or, on a condition that is True, why
// it became True. The list is fixed. If several reasons apply, the first in the
// order below is the dominant one.
type Reason string

// Reasons of conditions that are False. If several apply, the first in this
// order is shown.
const (
	// ReasonInvalid: the spec is not valid, or members name no leaf of it that
	// would make up for all missing ones.
	ReasonInvalid Reason = "Invalid"
	// ReasonWaitingForPods: fewer pods exist than the minimum needs.
	ReasonWaitingForPods Reason = "WaitingForPods"
	// ReasonOtherScheduler: pods exist, but their schedulerName is that of
	// another scheduler. The message contains the name to set.
	ReasonOtherScheduler Reason = "OtherScheduler"
	// ReasonGated: pods exist but have scheduling gates, or a plugin keeps them
	// from the scheduling queue, as DynamicResources does until a ResourceClaim
	// exists. It comes before OtherScheduler if it is the only cause for enough
	// of the pods.
	ReasonGated Reason = "Gated"
	// ReasonBinding: a plan for the whole minimum is being bound.
	ReasonBinding Reason = "Binding"
	// ReasonPreempting: pods of lower priority end, or are about to end, so that
	// the gang can start. Condition Preempting contains the details.
	ReasonPreempting Reason = "Preempting"
	// ReasonClaimsNotReady: a claim that a member uses does not exist, or
	// cannot be used yet. The message contains that of the responsible plugin.
	ReasonClaimsNotReady Reason = "ClaimsNotReady"
	// ReasonNoNodeMatches: no node can ever run a member that the minimum needs,
	// because of selectors or affinity, or because of a resource that no node
	// offers.
	ReasonNoNodeMatches Reason = "NoNodeMatches"
	// ReasonTooLarge: the minimum would not fit the cluster, or the domains of the
	// topology levels that it requires, if they were empty.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonNodesUnavailable: nodes are cordoned, not ready or tainted. The minimum
	// would fit with the room that is free on them, or it would not fit without
	// them even if all other nodes were empty. The message contains their number
	// and the action to take.
	ReasonNodesUnavailable Reason = "NodesUnavailable"
	// ReasonInsufficientGPUs: not enough of an extended resource, such as
	// nvidia.com/gpu, is free in total on the nodes that the pods, or some of them,
	// may use.
	ReasonInsufficientGPUs Reason = "InsufficientGPUs"
	// ReasonInsufficientResources: the same of another resource, such as cpu or
	// memory. The message names the resource.
	ReasonInsufficientResources Reason = "InsufficientResources"
	// ReasonTopologyUnavailable: enough is free in total, but not in one domain of a
	// topology level that the gang or a sub-group requires, such as one rack; or no
	// node has the label of the level, or its Topology is not known, or the pods of a
	// group do not run in one domain, so that none can be added, whatever is free. The
	// message contains the domains with the most room.
	ReasonTopologyUnavailable Reason = "TopologyUnavailable"
	// ReasonFragmented: enough is free in total, but not in pieces of the size of a
	// pod, or on nodes that other rules exclude, such as affinity between pods. The
	// message contains the sizes, or the rules.
	ReasonFragmented Reason = "Fragmented"
	// ReasonSchedulerError: an error inside the scheduler or of the API server.
	ReasonSchedulerError Reason = "SchedulerError"
	// ReasonBackingOff: an attempt failed after it was planned, for example because
	// the API server refused a binding or an HTTP extender did not answer, and the
	// gang waits for the next one. The
	// message contains the cause of the last failure.
	ReasonBackingOff Reason = "BackingOff"
	// ReasonBehindInQueue: other gangs are tried first, or pods of the gang are about to be preempted.
	ReasonBehindInQueue Reason = "BehindInQueue"
)

// Reasons of conditions that are True.
const (
	// ReasonAdmitted: the minimum was bound.
	ReasonAdmitted Reason = "Admitted"
	// ReasonSatisfied: the minimum is bound.
	ReasonSatisfied Reason = "Satisfied"
	// ReasonDecided, on condition Preempting: the victims are chosen, and none of
	// them has been ended.
	ReasonDecided Reason = "Decided"
	// ReasonEvicting, on condition Preempting: the victims are being ended.
	ReasonEvicting Reason = "Evicting"
	// ReasonSurplusPreempted, on condition Preempted: the gang lost pods above
	// its minimum.
	ReasonSurplusPreempted Reason = "SurplusPreempted"
	// ReasonGangPreempted, on condition Preempted: the gang lost all of its pods.
	ReasonGangPreempted Reason = "GangPreempted"
	// ReasonCompleted: every pod that is left has succeeded, and these are the minimum.
	ReasonCompleted Reason = "Completed"
)
