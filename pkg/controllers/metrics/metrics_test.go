// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics/testutil"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// TestMetrics: the metrics are served by the manager, follow the conventions of Prometheus, and have the right values.
func TestMetrics(t *testing.T) {
	if err := Register(); err != nil {
		t.Fatal(err)
	}
	for _, m := range allMetrics() {
		if vector, ok := m.(interface{ Reset() }); ok {
			vector.Reset()
		}
	}
	BreachBegan("PodClique")
	BreachBegan("PodClique")
	BreachEnded("PodClique", EndRecovered, 2*time.Second)
	BreachEnded("PodClique", EndRecovered, -time.Second) // a clock was set back
	CountReplacement("PodCliqueSet", "Termination")
	AvailableAgain("PodCliqueSet", "Termination", 90*time.Second)
	ReplacementsUnderWay("PodCliqueSet").Record("ns/of an earlier process", 1)
	replacing := ReplacementsUnderWay("PodCliqueSet")
	for _, n := range []int{1, 3, 2} {
		replacing.Record("ns/a", n)
	}
	replacing.Record("ns/b", 1)
	replacing.Record("ns/c", 1)
	replacing.Record("ns/c", 0)
	replacing.Record("ns/never-seen", 0)
	ReplacementsUnderWay("PodCliqueScalingGroup")
	SilentSchedulers().Record("ns/q", 1)

	UpdateBegan()
	UpdateBegan()
	UpdateEnded(90 * time.Second)
	UpdateEnded(-time.Second)
	UpdateStalled()

	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "muster_") {
			if _, err := testutil.MetricFamilyToText(&text, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, want := range []string{
		`muster_min_available_breaches_total{kind="PodClique"} 2`,
		`muster_min_available_breach_duration_seconds_count{end="recovered",kind="PodClique"} 2`,
		`muster_min_available_breach_duration_seconds_sum{end="recovered",kind="PodClique"} 2`,
		`muster_replica_replacements_total{level="PodCliqueSet",reason="Termination"} 1`,
		`muster_replica_replacement_duration_seconds_sum{level="PodCliqueSet",reason="Termination"} 90`,
		`muster_replica_replacements_under_way{level="PodCliqueSet"} 3`,
		`muster_replica_replacements_under_way{level="PodCliqueScalingGroup"} 0`,
		`muster_scheduler_silent 1`,
		`muster_updates_total 2`,
		`muster_update_duration_seconds_count 2`,
		`muster_update_duration_seconds_sum 90`,
		`muster_updates_stalled_total 1`,
	} {
		if !strings.Contains(text.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
	problems, err := testutil.NewPromLinter(&text).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p.String())
	}
}
