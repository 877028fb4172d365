// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// history is what a cluster reports once a minute, in the notation of promtool: "0+60x300" grows by 60 for 300 minutes.
// By series.
type history map[string]string

// with returns the history with other values of some series. "": the series does not exist.
func (h history) with(changes history) history {
	changed := maps.Clone(h)
	for series, values := range changes {
		if changed[series] = values; values == "" {
			delete(changed, series)
		}
	}
	return changed
}

const (
	scheduler  = `leader_election_master_status{job="muster-scheduler-metrics",name="kube-scheduler",instance="a"}`
	controller = `leader_election_master_status{job="muster-controller-metrics",name="muster-controller",instance="b"}`
)

func gpus(state string) string {
	return fmt.Sprintf(`muster_gpu_seconds_total{resource="nvidia.com/gpu",state=%q}`, state)
}

// used is the value of gpus of a state that so many GPUs are in.
func used(n int) string { return fmt.Sprintf("0+%dx600", 60*n) }

// healthy is a cluster of 1,000 GPUs in which gangs start, end, wait and are preempted as they should.
func healthy() history {
	return history{
		scheduler: "1x600", strings.Replace(scheduler, `"a"`, `"standby"`, 1): "0x600", controller: "1x600",
		`muster_mark_keys{instance="a"}`: "2x600", `muster_mark_keys{instance="standby"}`: "2x600",
		gpus("working"): used(800), gpus("starting"): used(60), gpus("terminating"): used(20), gpus("terminating-victim"): used(10),
		gpus("free-usable"): used(40), gpus("free-unusable"): used(30), gpus("free-unwanted"): used(40),
		gpus("kept-for-reservation"): used(10), `muster_reservations_total{event="given-up"}`: "0x600",
		gpus("partial"): "0x600", gpus("torn-unit"): "0x600", gpus("below-minimum"): "0x600",
		`muster_oldest_waiting_gang_age_seconds{gpus="65-512"}`:     "0+60x300 0+60x300",
		`muster_oldest_waiting_gang_age_seconds{gpus="1"}`:          "0x600",
		`muster_preemption_pods_total{outcome="placed"}`:            "0+3x600",
		`muster_preemption_pods_total{outcome="overtaken"}`:         "0+1x600",
		`muster_preemption_pods_total{outcome="wasted"}`:            "0x600",
		`muster_plans_total{task="minimum",result="committed"}`:     "0+20x600",
		`muster_plans_total{task="minimum",result="refused"}`:       "0+40x600",
		`muster_plans_total{task="surplus-unit",result="cut"}`:      "0+1x600",
		`muster_plans_aborted_total{cause="refused"}`:               "0+1x600",
		`muster_plans_aborted_total{cause="late"}`:                  "0+1x600",
		`muster_bindings_failed_total`:                              "0x600",
		`muster_updates_stalled_total`:                              "4x600",
		`muster_scheduler_silent`:                                   "0x600",
		`muster_startable_pods{resource="nvidia.com/gpu",gpus="8"}`: "3x600",
	}
}

// busy is a cluster in which everything happens that a dashboard shows.
func busy() history {
	h := healthy().with(history{
		gpus("partial"): used(8), `muster_bindings_failed_total`: "0+1x600",
		`muster_waiting_gangs{reason="Fragmented",gpus="65-512"}`:                  "2x600",
		`muster_waiting_gpus{reason="Fragmented"}`:                                 "128x600",
		`muster_plan_refusals_total{plugin="NodeResourcesFit"}`:                    "0+30x600",
		`muster_released_pods_total{of="gang"}`:                                    "0+1x600",
		`muster_kept_rooms`:                                                        "3x600",
		`muster_reservations_total{event="made"}`:                                  "0+1x600",
		`muster_overdue_pods`:                                                      "1x600",
		`muster_gated_pods`:                                                        "30x600",
		`muster_min_available_breaches_total{kind="PodClique"}`:                    "0+1x600",
		`muster_replica_replacements_total{level="PodCliqueSet",reason="Restart"}`: "0+1x600",
		`muster_updates_total`:                                                     "0+1x600",
		`kube_pod_info{namespace="ml",pod="p",node="n",created_by_name="train",created_by_kind=""}`:                                    "1x600",
		`kube_pod_created{namespace="ml",pod="p"}`:                                                                                     "100x600",
		`kube_pod_status_phase{namespace="ml",pod="p",phase="Running"}`:                                                                "1x600",
		`kube_pod_status_phase{namespace="ml",pod="p",phase="Pending"}`:                                                                "0x600",
		`kube_pod_status_ready{namespace="ml",pod="p",condition="true"}`:                                                               "1x600",
		`kube_pod_status_scheduled{namespace="ml",pod="p",condition="false"}`:                                                          "0x600",
		`kube_pod_status_scheduled_time{namespace="ml",pod="p"}`:                                                                       "120x600",
		`kube_pod_status_ready_time{namespace="ml",pod="p"}`:                                                                           "180x600",
		`kube_pod_container_status_restarts_total{namespace="ml",pod="p",container="c"}`:                                               "0+1x600",
		`kube_pod_container_resource_requests{namespace="ml",pod="p",container="c",resource="nvidia_com_gpu",unit="integer",node="n"}`: "8x600",
	})
	for name, labels := range map[string]string{
		"muster_gang_admission_duration_seconds":      `gpus="9-64",priority="100-999"`,
		"muster_gang_ready_duration_seconds":          `gpus="9-64"`,
		"muster_plan_duration_seconds":                `result="committed"`,
		"muster_replica_replacement_duration_seconds": `level="PodCliqueSet",reason="Restart"`,
	} {
		h[name+"_bucket{"+labels+`,le="60"}`] = "0+3x600"
		h[name+"_bucket{"+labels+`,le="+Inf"}`] = "0+4x600"
	}
	return h
}

// cluster answers queries about a history.
type cluster struct {
	t     *testing.T
	query func(expr string, after time.Duration) (promql.Vector, error)
}

func newCluster(t *testing.T, h history) cluster {
	t.Helper()
	var load strings.Builder
	load.WriteString("load 1m\n")
	for _, series := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&load, "  %s %s\n", series, h[series])
	}
	storage := promqltest.LoadedStorage(t, load.String())
	ask := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000), storage)
	return cluster{t, func(expr string, after time.Duration) (promql.Vector, error) {
		return ask(t.Context(), expr, time.Unix(0, 0).Add(after))
	}}
}

// fires returns the alerts that fire until then, each with when it fires first, evaluated once a minute.
func (c cluster) fires(until time.Duration) map[string]time.Duration {
	c.t.Helper()
	fired := map[string]time.Duration{}
	for _, a := range alerts(c.t) {
		rule := rules.NewAlertingRule(a.Alert, parse(c.t, a.Expr), a.hold(c.t), 0, labels.FromMap(a.Labels), labels.FromMap(a.Annotations),
			labels.EmptyLabels(), "", true, promslog.NewNopLogger())
		for at := time.Duration(0); at <= until; at += time.Minute {
			ask := func(_ context.Context, expr string, _ time.Time) (promql.Vector, error) { return c.query(expr, at) }
			if _, err := rule.Eval(c.t.Context(), 0, time.Unix(0, 0).Add(at), ask, nil, 0); err != nil {
				c.t.Fatalf("%s: %v", a.Alert, err)
			}
			firing := slices.DeleteFunc(rule.ActiveAlerts(), func(x *rules.Alert) bool { return x.State != rules.StateFiring })
			if len(firing) == 0 {
				continue
			}
			fired[a.Alert] = at
			for _, x := range firing {
				if summary := x.Annotations.Get("summary"); strings.Contains(summary, "error") || strings.Contains(summary, "no value") || strings.Contains(summary, "{{") {
					c.t.Errorf("%s says %s", a.Alert, summary)
				}
			}
			break
		}
	}
	return fired
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		alert   string // "": none fires
		history history
		by      time.Duration // when it fires at the latest
	}{
		"a cluster in which all is well": {},
		"no scheduler leads": {
			"MusterSchedulerHasNoLeader", history{scheduler: "1x60 0x540"}, 64 * time.Minute,
		},
		"no scheduler can be asked": {
			"MusterSchedulerHasNoLeader", history{scheduler: "1x60", strings.Replace(scheduler, `"a"`, `"standby"`, 1): ""}, 70 * time.Minute,
		},
		"another scheduler leads after a minute": {
			"", history{scheduler: "1x60 0x540", strings.Replace(scheduler, `"a"`, `"standby"`, 1): "0x61 1x540"}, 0,
		},
		"no controller leads": {
			"MusterControllerHasNoLeader", history{controller: "1x60 0x540"}, 64 * time.Minute,
		},
		"there is no key": {
			"MusterHasNoMarkKey", history{`muster_mark_keys{instance="a"}`: "2x60 0x540", `muster_mark_keys{instance="standby"}`: "2x60 0x540"}, 72 * time.Minute,
		},
		"one replica has not read the key yet": {
			"", history{`muster_mark_keys{instance="a"}`: "0x600"}, 0,
		},
		"a gang has waited for seven hours": {
			"MusterGangWaitsLong", history{`muster_oldest_waiting_gang_age_seconds{gpus="65-512"}`: "0+60x600"}, 6*time.Hour + 17*time.Minute,
		},
		"a fifth of the GPUs is scattered": {
			"MusterGPUsFragmented", history{gpus("free-unusable"): used(200), gpus("working"): used(630)}, 92 * time.Minute,
		},
		"a fifth of the GPUs is free, and nobody waits": {
			"", history{gpus("free-unwanted"): used(200), gpus("working"): used(630)}, 0,
		},
		"a fifth of the GPUs is reserved": {
			"MusterGPUsReserved", history{gpus("kept-for-reservation"): used(200), gpus("working"): used(600)}, 125 * time.Minute,
		},
		"a large gang starts after an hour": {
			"", history{gpus("kept-for-reservation"): "0+6000x60 360000x540", gpus("working"): used(700)}, 0,
		},
		"a gang waits for servers to end": {
			"MusterReservationsGivenUp", history{`muster_reservations_total{event="given-up"}`: "0x60 1x540"}, 62 * time.Minute,
		},
		"a partial gang is not released": {
			"MusterGPUsHeldByParts", history{gpus("partial"): "0x60 0+480x540"}, 80 * time.Minute,
		},
		"a partial gang is released": {
			"", history{gpus("partial"): "0x60 0+480x5 2400x535"}, 0,
		},
		"a torn unit is not released": {
			"MusterGPUsHeldByParts", history{gpus("torn-unit"): "0x60 0+480x540"}, 80 * time.Minute,
		},
		"a gang gets no replacement for what it lost": {
			"MusterGangsBelowMinimum", history{gpus("below-minimum"): "0x60 0+3360x540"}, 125 * time.Minute,
		},
		"a gang gets its replacement after half an hour": {
			"", history{gpus("below-minimum"): "0x60 0+3360x30 100800x510"}, 0,
		},
		"a third of the GPUs is held by containers that crash": {
			"MusterGPUsStarting", history{gpus("starting"): used(330), gpus("working"): used(530)}, 48 * time.Minute,
		},
		"a large gang starts": {
			"", history{gpus("starting"): "0+3600x60 216000+24000x20 696000+3600x520"}, 0,
		},
		"pods do not end": {
			"MusterPodsEndLate", history{gpus("terminating"): used(100), gpus("working"): used(720)}, 48 * time.Minute,
		},
		"pods were preempted in vain": {
			"MusterPodsPreemptedInVain", history{`muster_preemption_pods_total{outcome="wasted"}`: "0x60 8x540"}, 62 * time.Minute,
		},
		"half of the plans are aborted": {
			"MusterPlansAborted", history{`muster_plans_aborted_total{cause="refused"}`: "0+10x600"}, 32 * time.Minute,
		},
		"every third search runs out of time": {
			"MusterAttemptsCut", history{`muster_plans_total{task="surplus-unit",result="cut"}`: "0+30x600"}, 48 * time.Minute,
		},
		"bindings fail": {
			"MusterBindingsFail", history{`muster_bindings_failed_total`: "0x60 0+1x540"}, 80 * time.Minute,
		},
		"a binding fails": {
			"", history{`muster_bindings_failed_total`: "0x60 1x540"}, 0,
		},
		"an update stalls": {
			"MusterUpdateStalled", history{`muster_updates_stalled_total`: "4x60 5x540"}, 62 * time.Minute,
		},
		"the scheduler of a workload is silent": {
			"MusterWaitsForScheduler", history{`muster_scheduler_silent`: "0x60 2x540"}, 78 * time.Minute,
		},
		"the scheduler of a workload is silent while it is restarted": {
			"", history{`muster_scheduler_silent`: "0x60 2x5 0x535"}, 0,
		},
	}
	covered := map[string]bool{}
	for name, tt := range tests {
		covered[tt.alert] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fired := newCluster(t, healthy().with(tt.history)).fires(max(tt.by, 3*time.Hour))
			at, ok := fired[tt.alert]
			if tt.alert != "" && (!ok || at > tt.by) {
				t.Errorf("%s fires at %s (%t), want by %s", tt.alert, at, ok, tt.by)
			}
			delete(fired, tt.alert)
			if len(fired) > 0 {
				t.Errorf("other alerts fire: %v", fired)
			}
		})
	}
	for _, a := range alerts(t) {
		if !covered[a.Alert] {
			t.Errorf("no history in which %s fires", a.Alert)
		}
	}
}
