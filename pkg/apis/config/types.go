package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GangAdmissionArgs are the arguments of the plugin GangAdmission, complete: every field was given or defaulted. There is
// one core per process, so profiles that share a scheduler must agree on them.
//
// +kubebuilder:object:root=true
type GangAdmissionArgs struct {
	metav1.TypeMeta

	// RepairTimeout is how long a gang that was never whole may stay partly bound, after a crash or a failed bind,
	// before the pods this scheduler bound for it are released. Counted while the API server answers.
	// Default 30s; 1s to 1h. Source: docs/decisions, G11.
	RepairTimeout metav1.Duration

	// BarrierTimeout is the longest that an assumed member waits at Bind for its siblings' volumes and claims; when it
	// is over the whole plan is taken back. Below the bindTimeoutSeconds of VolumeBinding (600) it cuts volume
	// provisioning short. Default 11m; 1s to 1h.
	BarrierTimeout metav1.Duration

	// BindParallelism is the number of bindings of gang members in flight at the same time. Default 128; 1 to 1024.
	//
	BindParallelism int32

	// PlanBudget is the number of placements that the search for one plan may try before it reports that it found
	// none. Default 100000; at least 1000.
	PlanBudget int32

	// PlanDeadline is how much of the scheduling loop's time one attempt to plan a gang may take. An attempt that is cut
	// short says so and goes on in a later cycle. Default 200ms; 10ms to 10s. Source: docs/decisions, G18.
	PlanDeadline metav1.Duration

	// StatusInterval is the shortest time between two status writes of one PodGroup; a changed condition is written
	// at once. Default 2s; 100ms to 1h.
	StatusInterval metav1.Duration

	// ResyncInterval is the time between two looks at all refused gangs where the plugins are compiled into another scheduler,
	// whose queue may lose wake-ups. muster-scheduler wakes each gang by what it waits for and does not use it.
	// Default 5s; 1s to 5m.
	ResyncInterval metav1.Duration

	// WaitingForGangAfter is how long a pod of an incomplete gang is held before it gets PodScheduled=False with
	// reason WaitingForGang. Default 10s; 1s to 1h. Source: docs/decisions, G13.
	WaitingForGangAfter metav1.Duration

	// NeedsCapacityAfter is how long a gang must have had the verdict "needs capacity" before its held pods get
	// PodScheduled=False with reason Unschedulable, which is what cluster autoscalers act on.
	// Default 2s; 1s to 1h. Source: docs/decisions, G13.
	NeedsCapacityAfter metav1.Duration

	// SingleSurplusAfter is how long room must not have grown, while a sub-group above the minimum waits, before single pods
	// above the minimum may take it. Default 2s; 100ms to 1h. Source: docs/decisions, G16.
	SingleSurplusAfter metav1.Duration

	// ReplacementTimeout is how long the room of a deleted pod is kept for its replacement, from when the pod began to
	// terminate, while the PodGroup says that pods are being replaced (v2alpha2.ReplacingAnnotation).
	// Default 5m; 1s to 1h.
	ReplacementTimeout metav1.Duration
}
