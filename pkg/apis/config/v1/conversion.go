// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/apis/config"
)

func addConversionFuncs(scheme *runtime.Scheme) error {
	if err := scheme.AddConversionFunc((*GangAdmissionArgs)(nil), (*config.GangAdmissionArgs)(nil),
		func(in, out any, _ conversion.Scope) error {
			convertToInternal(in.(*GangAdmissionArgs), out.(*config.GangAdmissionArgs))
			return nil
		}); err != nil {
		return err
	}
	return scheme.AddConversionFunc((*config.GangAdmissionArgs)(nil), (*GangAdmissionArgs)(nil),
		func(in, out any, _ conversion.Scope) error {
			convertFromInternal(in.(*config.GangAdmissionArgs), out.(*GangAdmissionArgs))
			return nil
		})
}

// convertToInternal copies every field; nil becomes zero, so arguments are defaulted before they are converted.
func convertToInternal(in *GangAdmissionArgs, out *config.GangAdmissionArgs) {
	out.RepairTimeout = valueOrZero(in.RepairTimeout)
	out.BarrierTimeout = valueOrZero(in.BarrierTimeout)
	out.BindParallelism = valueOrZero(in.BindParallelism)
	out.PlanBudget = valueOrZero(in.PlanBudget)
	out.PlanDeadline = valueOrZero(in.PlanDeadline)
	out.StatusInterval = valueOrZero(in.StatusInterval)
	out.WaitingForGangAfter = valueOrZero(in.WaitingForGangAfter)
	out.NeedsCapacityAfter = valueOrZero(in.NeedsCapacityAfter)
	out.SingleSurplusAfter = valueOrZero(in.SingleSurplusAfter)
	out.ReplacementTimeout = valueOrZero(in.ReplacementTimeout)
	out.PreemptionTimeout = valueOrZero(in.PreemptionTimeout)
	out.MaxVictimGrace = valueOrZero(in.MaxVictimGrace)
	out.ReservationAfter = valueOrZero(in.ReservationAfter)
	out.ReservationTimeout = valueOrZero(in.ReservationTimeout)
	out.MaxReservations = valueOrZero(in.MaxReservations)
	out.MaxReservationsPerPriority = valueOrZero(in.MaxReservationsPerPriority)
	out.MaxReservationsPerNamespace = valueOrZero(in.MaxReservationsPerNamespace)
	out.RankOrder = valueOrZero(in.RankOrder)
}

// convertFromInternal copies every field, including zeros.
func convertFromInternal(in *config.GangAdmissionArgs, out *GangAdmissionArgs) {
	out.RepairTimeout = new(in.RepairTimeout)
	out.BarrierTimeout = new(in.BarrierTimeout)
	out.BindParallelism = new(in.BindParallelism)
	out.PlanBudget = new(in.PlanBudget)
	out.PlanDeadline = new(in.PlanDeadline)
	out.StatusInterval = new(in.StatusInterval)
	out.WaitingForGangAfter = new(in.WaitingForGangAfter)
	out.NeedsCapacityAfter = new(in.NeedsCapacityAfter)
	out.SingleSurplusAfter = new(in.SingleSurplusAfter)
	out.ReplacementTimeout = new(in.ReplacementTimeout)
	out.PreemptionTimeout = new(in.PreemptionTimeout)
	out.MaxVictimGrace = new(in.MaxVictimGrace)
	out.ReservationAfter = new(in.ReservationAfter)
	out.ReservationTimeout = new(in.ReservationTimeout)
	out.MaxReservations = new(in.MaxReservations)
	out.MaxReservationsPerPriority = new(in.MaxReservationsPerPriority)
	out.MaxReservationsPerNamespace = new(in.MaxReservationsPerNamespace)
	out.RankOrder = new(in.RankOrder)
}

func valueOrZero[T any](field *T) T {
	if field == nil {
		var zero T
		return zero
	}
	return *field
}
