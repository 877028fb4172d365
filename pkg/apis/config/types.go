// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GangAdmissionArgs are the arguments of the plugin GangAdmission after defaulting: every field is set. There is one
// core per process, so the arguments must be equal in all profiles of a scheduler.
//
// +kubebuilder:object:root=true
type GangAdmissionArgs struct {
	metav1.TypeMeta

	// RepairTimeout is how long a gang, or a sub-group above its minimum, that never had its minimum may stay partially
	// bound after a crash or a failed binding, before the pods that this scheduler bound for it are released. The time
	// runs only while the API server answers. Default 30s; 1s to 1h. Source: docs/decisions, G11, G20.
	RepairTimeout metav1.Duration

	// BarrierTimeout is the maximum time that an assumed member waits at Bind for the volumes and claims of its
	// siblings; when it is over, the whole plan is aborted. If it is below the bindTimeoutSeconds of VolumeBinding
	// (600), volume provisioning is cut short. Default 11m; 1s to 1h.
	BarrierTimeout metav1.Duration

	// BindParallelism is the number of bindings of gang members, and of members whose ResourceClaims are being written, in
	// flight at the same time. Default 128; 1 to 1024.
	BindParallelism int32

	// PlanBudget is the number of placements that the search for one plan may try before it reports that it found
	// none. Default 100000; at least 1000.
	PlanBudget int32

	// PlanDeadline is how much of the scheduling loop's time one attempt to plan a gang may take. An attempt that is
	// cut short is reported as such and continues in a later cycle. Default 200ms; 10ms to 10s. Source:
	// docs/decisions, G18.
	PlanDeadline metav1.Duration

	// StatusInterval is the minimum time between two status writes of one PodGroup; a changed condition is written
	// immediately. Default 2s; 100ms to 1h.
	StatusInterval metav1.Duration

	// WaitingForGangAfter is how long a pod of an incomplete gang is gated before it gets PodScheduled=False with
	// reason WaitingForGang. Default 10s; 1s to 1h. Source: docs/decisions, G13.
	WaitingForGangAfter metav1.Duration

	// NeedsCapacityAfter is how long a gang must have been refused for lack of capacity before its gated pods get
	// PodScheduled=False with reason Unschedulable, to which cluster autoscalers react. Default 2s; 1s to 1h. Source:
	// docs/decisions, G13.
	NeedsCapacityAfter metav1.Duration

	// SingleSurplusAfter is how long the free room must not have grown before pods above the minimum may use it: all of
	// them while the minimum of a gang of the same or a higher priority was refused, or a sub-group that their gang lost,
	// single pods while a sub-group above the minimum waits. They wait 10 s at most. Default 2s; 100ms to 1h. Source: docs/decisions, G16.
	SingleSurplusAfter metav1.Duration

	// ReplacementTimeout is how long the room of a deleted pod is kept for its replacement, counted from when the pod
	// began to terminate, while the PodGroup states that pods are being replaced (v2alpha2.ReplacingAnnotation).
	// Default 5m; 1s to 1h.
	ReplacementTimeout metav1.Duration

	// PreemptionTimeout is how long the victims of a preemption may take to end, in addition to the longest grace period
	// among them, before the gang for which they end gives up their room and is planned anew. Default 30s; 1s to 1h.
	// Source: docs/decisions, G24.
	PreemptionTimeout metav1.Duration

	// MaxVictimGrace is the longest grace period of a pod that a gang may preempt. Default 1h; 1s to 24h. Source: docs/decisions, G21.
	MaxVictimGrace metav1.Duration

	// ReservationAfter is how long the minimum of a gang must have waited until room is reserved for it as pods end, so
	// that smaller gangs cannot pass it without end. Default 24h; 0 turns it off; else 1s to 168h. Source: docs/decisions,
	// G25.
	ReservationAfter metav1.Duration

	// ReservationTimeout is how long such room is kept while no further part of it becomes free, and no start that is known
	// is awaited, and for how long the gang has none then. Default 1h; 1s to 24h. Source: docs/decisions, G25.
	ReservationTimeout metav1.Duration

	// MaxReservations is the number of gangs for which room is reserved in this way at a time. Default 4; 1 to 64.
	MaxReservations int32

	// MaxReservationsPerPriority is the same for the gangs of one priority, MaxReservationsPerNamespace for those of one
	// namespace. Default 1; 1 to 64.
	MaxReservationsPerPriority, MaxReservationsPerNamespace int32

	// RankOrder is whether pods with neighbouring indexes are placed in the same topology domains, in gangs that require or
	// prefer a topology level. Default true. Source: docs/decisions, G26.
	RankOrder bool
}
