// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The defaults of GangAdmissionArgs.
const (
	DefaultRepairTimeout       = 30 * time.Second
	DefaultBarrierTimeout      = 11 * time.Minute // a minute above VolumeBinding's bindTimeoutSeconds
	DefaultBindParallelism     = int32(128)
	DefaultPlanBudget          = int32(100_000)
	DefaultPlanDeadline        = 200 * time.Millisecond
	DefaultStatusInterval      = 2 * time.Second
	DefaultWaitingForGangAfter = 10 * time.Second
	DefaultNeedsCapacityAfter  = 2 * time.Second
	DefaultSingleSurplusAfter  = 2 * time.Second
	DefaultReplacementTimeout  = 5 * time.Minute
	DefaultPreemptionTimeout   = 30 * time.Second
	DefaultMaxVictimGrace      = time.Hour
	DefaultReservationAfter    = 24 * time.Hour
	DefaultReservationTimeout  = time.Hour
	DefaultMaxReservations     = int32(4)
	DefaultMaxReservationsPer  = int32(1) // per priority, and per namespace
	DefaultRankOrder           = true
)

// SetDefaults_GangAdmissionArgs sets omitted fields to their defaults. A given value is kept, even a zero, which
// validation then rejects: nil and zero differ.
func SetDefaults_GangAdmissionArgs(args *GangAdmissionArgs) {
	setDefault(&args.RepairTimeout, metav1.Duration{Duration: DefaultRepairTimeout})
	setDefault(&args.BarrierTimeout, metav1.Duration{Duration: DefaultBarrierTimeout})
	setDefault(&args.BindParallelism, DefaultBindParallelism)
	setDefault(&args.PlanBudget, DefaultPlanBudget)
	setDefault(&args.PlanDeadline, metav1.Duration{Duration: DefaultPlanDeadline})
	setDefault(&args.StatusInterval, metav1.Duration{Duration: DefaultStatusInterval})
	setDefault(&args.WaitingForGangAfter, metav1.Duration{Duration: DefaultWaitingForGangAfter})
	setDefault(&args.NeedsCapacityAfter, metav1.Duration{Duration: DefaultNeedsCapacityAfter})
	setDefault(&args.SingleSurplusAfter, metav1.Duration{Duration: DefaultSingleSurplusAfter})
	setDefault(&args.ReplacementTimeout, metav1.Duration{Duration: DefaultReplacementTimeout})
	setDefault(&args.PreemptionTimeout, metav1.Duration{Duration: DefaultPreemptionTimeout})
	setDefault(&args.MaxVictimGrace, metav1.Duration{Duration: DefaultMaxVictimGrace})
	setDefault(&args.ReservationAfter, metav1.Duration{Duration: DefaultReservationAfter})
	setDefault(&args.ReservationTimeout, metav1.Duration{Duration: DefaultReservationTimeout})
	setDefault(&args.MaxReservations, DefaultMaxReservations)
	setDefault(&args.MaxReservationsPerPriority, DefaultMaxReservationsPer)
	setDefault(&args.MaxReservationsPerNamespace, DefaultMaxReservationsPer)
	setDefault(&args.RankOrder, DefaultRankOrder)
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
