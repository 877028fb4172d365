// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GangAdmissionArgs are the arguments of the plugin GangAdmission. They must be equal in all profiles of one
// scheduler.
//
// +kubebuilder:object:root=true
type GangAdmissionArgs struct {
	metav1.TypeMeta `json:",inline"`

	// RepairTimeout is how long a gang, or a sub-group above its minimum, that never had its minimum may stay partially
	// bound after a crash or a failed binding, before the pods that this scheduler bound for it are released. The time
	// runs only while the API server answers. nil: 30s. From 1s to 1h. Source: docs/decisions, G11, G20.
	RepairTimeout *metav1.Duration `json:"repairTimeout,omitempty"`

	// BarrierTimeout is the maximum time that an assumed member waits at Bind for the volumes and claims of its
	// siblings; when it is over, the whole plan is aborted. Keep it above the bindTimeoutSeconds of VolumeBinding
	// (600), otherwise volume provisioning is cut short. nil: 11m. From 1s to 1h.
	BarrierTimeout *metav1.Duration `json:"barrierTimeout,omitempty"`

	// BindParallelism is the number of bindings of gang members, and of members whose ResourceClaims are being written, in
	// flight at the same time.
	// nil: 128. From 1 to 1024.
	BindParallelism *int32 `json:"bindParallelism,omitempty"`

	// PlanBudget is the number of placements that the search for one plan may try before it reports that it found
	// none. nil: 100000. At least 1000.
	PlanBudget *int32 `json:"planBudget,omitempty"`

	// PlanDeadline is how much of the scheduling loop's time one attempt to plan a gang may take. An attempt that is
	// cut short is reported as such and continues in a later cycle. nil: 200ms. From 10ms to 10s. Source:
	// docs/decisions, G18.
	PlanDeadline *metav1.Duration `json:"planDeadline,omitempty"`

	// StatusInterval is the minimum time between two status writes of one PodGroup; a changed condition is written
	// immediately. nil: 2s. From 100ms to 1h.
	StatusInterval *metav1.Duration `json:"statusInterval,omitempty"`

	// ResyncInterval has no effect. It is accepted, because configuration files of earlier versions have it.
	ResyncInterval *metav1.Duration `json:"resyncInterval,omitempty"`

	// WaitingForGangAfter is how long a pod of an incomplete gang is gated before it gets PodScheduled=False with
	// reason WaitingForGang. nil: 10s. From 1s to 1h. Source: docs/decisions, G13.
	WaitingForGangAfter *metav1.Duration `json:"waitingForGangAfter,omitempty"`

	// NeedsCapacityAfter is how long a gang must have been refused for lack of capacity before its gated pods get
	// PodScheduled=False with reason Unschedulable, to which cluster autoscalers react. nil: 2s. From 1s to 1h.
	// Source: docs/decisions, G13.
	NeedsCapacityAfter *metav1.Duration `json:"needsCapacityAfter,omitempty"`

	// SingleSurplusAfter is how long the free room must not have grown before pods above the minimum may use it: all of
	// them while the minimum of a gang of the same or a higher priority was refused, or a sub-group that their gang lost,
	// single pods while a sub-group above the minimum waits. They wait 10 s at most. nil: 2s. From 100ms to 1h. Source: docs/decisions, G16.
	SingleSurplusAfter *metav1.Duration `json:"singleSurplusAfter,omitempty"`

	// ReplacementTimeout is how long the room of a deleted pod is kept for its replacement, counted from when the pod
	// began to terminate, while the annotation scheduling.run.ai/replacing of the PodGroup states that pods are being
	// replaced. nil: 5m. From 1s to 1h.
	ReplacementTimeout *metav1.Duration `json:"replacementTimeout,omitempty"`

	// PreemptionTimeout is how long the victims of a preemption may take to end, in addition to the longest grace period
	// among them, before the gang for which they end gives up their room and is planned anew. nil: 30s. From 1s to 1h.
	// Source: docs/decisions, G24.
	PreemptionTimeout *metav1.Duration `json:"preemptionTimeout,omitempty"`

	// MaxVictimGrace is the longest grace period of a pod that a gang may preempt. nil: 1h. From 1s to 24h. Source: docs/decisions, G21.
	MaxVictimGrace *metav1.Duration `json:"maxVictimGrace,omitempty"`

	// ReservationAfter is how long the minimum of a gang must have waited until room is reserved for it as pods end. nil:
	// 24h. 0: it never is; else from 1s to 168h. Source: docs/decisions, G25.
	ReservationAfter *metav1.Duration `json:"reservationAfter,omitempty"`

	// ReservationTimeout is how long such room is kept while no further part of it becomes free, and no start that is known
	// is awaited, and for how long the gang has none then. nil: 1h. From 1s to 24h. Source: docs/decisions, G25.
	ReservationTimeout *metav1.Duration `json:"reservationTimeout,omitempty"`

	// MaxReservations is the number of gangs for which room is reserved in this way at a time. nil: 4. From 1 to 64.
	MaxReservations *int32 `json:"maxReservations,omitempty"`

	// MaxReservationsPerPriority is the same for the gangs of one priority. nil: 1. From 1 to 64.
	MaxReservationsPerPriority *int32 `json:"maxReservationsPerPriority,omitempty"`

	// MaxReservationsPerNamespace is the same for the gangs of one namespace. nil: 1. From 1 to 64.
	MaxReservationsPerNamespace *int32 `json:"maxReservationsPerNamespace,omitempty"`

	// RankOrder is whether pods with neighbouring indexes are placed in the same topology domains, in gangs that require or
	// prefer a topology level. nil: true. Source: docs/decisions, G26.
	RankOrder *bool `json:"rankOrder,omitempty"`
}
