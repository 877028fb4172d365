// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/config"
)

func valid() *config.GangAdmissionArgs {
	return &config.GangAdmissionArgs{
		RepairTimeout:       metav1.Duration{Duration: 30 * time.Second},
		BarrierTimeout:      metav1.Duration{Duration: 11 * time.Minute},
		BindParallelism:     128,
		PlanBudget:          100_000,
		PlanDeadline:        metav1.Duration{Duration: 200 * time.Millisecond},
		StatusInterval:      metav1.Duration{Duration: 2 * time.Second},
		WaitingForGangAfter: metav1.Duration{Duration: 10 * time.Second},
		NeedsCapacityAfter:  metav1.Duration{Duration: 2 * time.Second},
		SingleSurplusAfter:  metav1.Duration{Duration: 2 * time.Second},
		ReplacementTimeout:  metav1.Duration{Duration: 5 * time.Minute},
		PreemptionTimeout:   metav1.Duration{Duration: 30 * time.Second},
		MaxVictimGrace:      metav1.Duration{Duration: time.Hour},

		ReservationAfter: metav1.Duration{Duration: 5 * time.Minute}, ReservationTimeout: metav1.Duration{Duration: time.Hour},
		MaxReservations: 4, MaxReservationsPerPriority: 1, MaxReservationsPerNamespace: 1,
	}
}

func TestBoundsOfDurations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		argument          func(*config.GangAdmissionArgs) *metav1.Duration
		shortest, longest time.Duration
		zero              bool // means that it is off
	}{
		"repairTimeout": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.RepairTimeout },
			shortest: time.Second, longest: time.Hour,
		},
		"barrierTimeout": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.BarrierTimeout },
			shortest: time.Second, longest: time.Hour,
		},
		"statusInterval": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.StatusInterval },
			shortest: 100 * time.Millisecond, longest: time.Hour,
		},
		"waitingForGangAfter": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.WaitingForGangAfter },
			shortest: time.Second, longest: time.Hour,
		},
		"needsCapacityAfter": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.NeedsCapacityAfter },
			shortest: time.Second, longest: time.Hour,
		},
		"planDeadline": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.PlanDeadline },
			shortest: 10 * time.Millisecond, longest: 10 * time.Second,
		},
		"singleSurplusAfter": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.SingleSurplusAfter },
			shortest: 100 * time.Millisecond, longest: time.Hour,
		},
		"replacementTimeout": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.ReplacementTimeout },
			shortest: time.Second, longest: time.Hour,
		},
		"preemptionTimeout": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.PreemptionTimeout },
			shortest: time.Second, longest: time.Hour,
		},
		"reservationAfter": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.ReservationAfter },
			shortest: time.Second, longest: 7 * 24 * time.Hour, zero: true,
		},
		"reservationTimeout": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.ReservationTimeout },
			shortest: time.Second, longest: 24 * time.Hour,
		},
		"maxVictimGrace": {
			argument: func(a *config.GangAdmissionArgs) *metav1.Duration { return &a.MaxVictimGrace },
			shortest: time.Second, longest: 24 * time.Hour,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ok := range []time.Duration{tt.shortest, tt.longest} {
				args := valid()
				tt.argument(args).Duration = ok
				if err := ValidateGangAdmissionArgs(nil, args); err != nil {
					t.Errorf("%s is refused: %v", ok, err)
				}
			}
			for _, bad := range []time.Duration{-time.Second, 0, tt.shortest - 1, tt.longest + 1} {
				args := valid()
				tt.argument(args).Duration = bad
				err := ValidateGangAdmissionArgs(field.NewPath("args"), args)
				if off := tt.zero && bad == 0; off && err != nil {
					t.Errorf("%s is refused: %v", bad, err)
				} else if off {
					continue
				}
				if err == nil {
					t.Errorf("%s is accepted", bad)
				} else if !strings.HasPrefix(err.Error(), "args."+name+": ") {
					t.Errorf("the error for %s does not begin with its path: %v", bad, err)
				}
			}
		})
	}
}

func TestBoundsOfNumbers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*config.GangAdmissionArgs)
		want   string // "" = valid
	}{
		"one binding at a time is the minimum":          {change: func(a *config.GangAdmissionArgs) { a.BindParallelism = 1 }},
		"1024 bindings at a time are the maximum":       {change: func(a *config.GangAdmissionArgs) { a.BindParallelism = 1024 }},
		"a budget of 1000 placements is the minimum":    {change: func(a *config.GangAdmissionArgs) { a.PlanBudget = 1000 }},
		"a budget as large as the type allows is valid": {change: func(a *config.GangAdmissionArgs) { a.PlanBudget = 1<<31 - 1 }},
		"64 reservations are the maximum": {change: func(a *config.GangAdmissionArgs) {
			a.MaxReservations, a.MaxReservationsPerPriority, a.MaxReservationsPerNamespace = 64, 64, 64
		}},
		"65 reservations are refused": {
			change: func(a *config.GangAdmissionArgs) { a.MaxReservations = 65 },
			want:   `profiles[0].pluginConfig[1].args.maxReservations: Invalid value: 65: must be from 1 to 64`,
		},
		"no reservation of a priority is refused": {
			change: func(a *config.GangAdmissionArgs) { a.MaxReservationsPerPriority = 0 },
			want:   `profiles[0].pluginConfig[1].args.maxReservationsPerPriority: Invalid value: 0: must be from 1 to 64`,
		},
		"less than none of a namespace is refused": {
			change: func(a *config.GangAdmissionArgs) { a.MaxReservationsPerNamespace = -1 },
			want:   `profiles[0].pluginConfig[1].args.maxReservationsPerNamespace: Invalid value: -1: must be from 1 to 64`,
		},
		"no binding at a time is refused": {
			change: func(a *config.GangAdmissionArgs) { a.BindParallelism = 0 },
			want:   `profiles[0].pluginConfig[1].args.bindParallelism: Invalid value: 0: must be from 1 to 1024`,
		},
		"1025 bindings at a time are refused": {
			change: func(a *config.GangAdmissionArgs) { a.BindParallelism = 1025 },
			want:   `profiles[0].pluginConfig[1].args.bindParallelism: Invalid value: 1025: must be from 1 to 1024`,
		},
		"a budget of 999 placements is refused": {
			change: func(a *config.GangAdmissionArgs) { a.PlanBudget = 999 },
			want:   `profiles[0].pluginConfig[1].args.planBudget: Invalid value: 999: must be at least 1000`,
		},
		"all errors are reported together": {
			change: func(a *config.GangAdmissionArgs) {
				a.RepairTimeout.Duration = 2 * time.Hour
				a.BindParallelism = -1
				a.PlanBudget = 0
			},
			want: `[profiles[0].pluginConfig[1].args.repairTimeout: Invalid value: "2h0m0s": must be from 1s to 1h0m0s, ` +
				`profiles[0].pluginConfig[1].args.bindParallelism: Invalid value: -1: must be from 1 to 1024, ` +
				`profiles[0].pluginConfig[1].args.planBudget: Invalid value: 0: must be at least 1000]`,
		},
	}
	path := field.NewPath("profiles").Index(0).Child("pluginConfig").Index(1).Child("args")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := valid()
			tt.change(args)
			got := ""
			if err := ValidateGangAdmissionArgs(path, args); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
