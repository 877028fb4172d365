// SPDX-License-Identifier: Apache-2.0

// Package validation checks the arguments of Muster's plugins. Pure: no client, no clock.
package validation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/config"
)

// The bounds of GangAdmissionArgs, inclusive.
const (
	minTimeout, maxTimeout                 = time.Second, time.Hour
	maxVictimGrace                         = 24 * time.Hour
	minBindParallelism, maxBindParallelism = 1, 1024
	minPlanBudget                          = 1000
	minPlanDeadline, maxPlanDeadline       = 10 * time.Millisecond, 10 * time.Second
	minStatusInterval, maxStatusInterval   = 100 * time.Millisecond, time.Hour
	maxReservation, maxReservations        = 24 * time.Hour, 64
	maxReservationAfter                    = 7 * 24 * time.Hour
	minHeldFor, maxHeldFor                 = time.Second, time.Hour
	minSurplusAfter, maxSurplusAfter       = 100 * time.Millisecond, time.Hour
)

// ValidateGangAdmissionArgs returns an aggregate of field errors below path for all arguments that are out of bounds,
// or nil. It expects defaulted arguments: a zero is an error, not a default. path may be nil.
func ValidateGangAdmissionArgs(path *field.Path, args *config.GangAdmissionArgs) error {
	var errs field.ErrorList
	errs = append(errs, validateDuration(path.Child("repairTimeout"), args.RepairTimeout, minTimeout, maxTimeout)...)
	errs = append(errs, validateDuration(path.Child("barrierTimeout"), args.BarrierTimeout, minTimeout, maxTimeout)...)
	if n := args.BindParallelism; n < minBindParallelism || n > maxBindParallelism {
		errs = append(errs, field.Invalid(path.Child("bindParallelism"), n,
			fmt.Sprintf("must be from %d to %d", minBindParallelism, maxBindParallelism)))
	}
	if n := args.PlanBudget; n < minPlanBudget {
		errs = append(errs, field.Invalid(path.Child("planBudget"), n, fmt.Sprintf("must be at least %d", minPlanBudget)))
	}
	errs = append(errs, validateDuration(path.Child("planDeadline"), args.PlanDeadline, minPlanDeadline, maxPlanDeadline)...)
	errs = append(errs, validateDuration(path.Child("statusInterval"), args.StatusInterval, minStatusInterval, maxStatusInterval)...)
	errs = append(errs, validateDuration(path.Child("waitingForGangAfter"), args.WaitingForGangAfter, minHeldFor, maxHeldFor)...)
	errs = append(errs, validateDuration(path.Child("needsCapacityAfter"), args.NeedsCapacityAfter, minHeldFor, maxHeldFor)...)
	errs = append(errs, validateDuration(path.Child("singleSurplusAfter"), args.SingleSurplusAfter, minSurplusAfter, maxSurplusAfter)...)
	errs = append(errs, validateDuration(path.Child("replacementTimeout"), args.ReplacementTimeout, minTimeout, maxTimeout)...)
	errs = append(errs, validateDuration(path.Child("preemptionTimeout"), args.PreemptionTimeout, minTimeout, maxTimeout)...)
	errs = append(errs, validateDuration(path.Child("maxVictimGrace"), args.MaxVictimGrace, minTimeout, maxVictimGrace)...)
	if args.ReservationAfter.Duration != 0 {
		errs = append(errs, validateDuration(path.Child("reservationAfter"), args.ReservationAfter, minTimeout, maxReservationAfter)...)
	}
	errs = append(errs, validateDuration(path.Child("reservationTimeout"), args.ReservationTimeout, minTimeout, maxReservation)...)
	errs = append(errs, validateReservations(path.Child("maxReservations"), args.MaxReservations)...)
	errs = append(errs, validateReservations(path.Child("maxReservationsPerPriority"), args.MaxReservationsPerPriority)...)
	errs = append(errs, validateReservations(path.Child("maxReservationsPerNamespace"), args.MaxReservationsPerNamespace)...)
	return errs.ToAggregate()
}

func validateReservations(path *field.Path, n int32) field.ErrorList {
	if n >= 1 && n <= maxReservations {
		return nil
	}
	return field.ErrorList{field.Invalid(path, n, fmt.Sprintf("must be from 1 to %d", maxReservations))}
}

func validateDuration(path *field.Path, d metav1.Duration, shortest, longest time.Duration) field.ErrorList {
	if d.Duration >= shortest && d.Duration <= longest {
		return nil
	}
	return field.ErrorList{field.Invalid(path, d.Duration.String(), fmt.Sprintf("must be from %s to %s", shortest, longest))}
}
