// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const component = "../../manifests/components/monitoring"

// alert is one of the PrometheusRule.
type alert struct {
	Alert, Expr         string
	For                 string
	Labels, Annotations map[string]string
}

func (a alert) hold(t *testing.T) time.Duration {
	t.Helper()
	if a.For == "" {
		return 0
	}
	d, err := time.ParseDuration(a.For)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// alerts returns those of the PrometheusRule.
func alerts(t *testing.T) []alert {
	t.Helper()
	var rule struct {
		Spec struct {
			Groups []struct {
				Name  string
				Rules []alert
			}
		}
	}
	if err := yaml.UnmarshalStrict(withoutHead(t, filepath.Join(component, "prometheusrule.yaml")), &rule); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range rule.Spec.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("%d alerts", len(all))
	}
	return all
}

// withoutHead returns a manifest without the fields that every object has.
func withoutHead(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, spec, ok := strings.Cut(string(content), "\nspec:\n")
	if !ok {
		t.Fatalf("%s has no spec", file)
	}
	return []byte("spec:\n" + spec)
}

// panelQuery is a query of a panel, or of a variable, of a dashboard.
type panelQuery struct{ dashboard, panel, expr string }

// dashboardQueries returns the queries of the panels of all dashboards, with values in place of their variables.
func dashboardQueries(t *testing.T) (panels, variables []panelQuery) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(component, "dashboards/*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("dashboards: %v %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Panels []struct {
				Type, Title string
				Targets     []struct{ Expr string }
			}
			Templating struct {
				List []struct{ Name, Type, Definition string }
			}
		}
		if err := json.Unmarshal(content, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := filepath.Base(file)
		for _, p := range d.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: panel %q has no query", name, p.Title)
			}
			for _, target := range p.Targets {
				panels = append(panels, panelQuery{name, p.Title, withValues(target.Expr)})
			}
		}
		for _, v := range d.Templating.List {
			if m := labelValues.FindStringSubmatch(v.Definition); m != nil {
				variables = append(variables, panelQuery{name, "variable " + v.Name, "count by (" + m[2] + ") (" + withValues(m[1]) + ")"})
			} else if v.Type == "query" {
				t.Errorf("%s: variable %s: unknown kind of query %s", name, v.Name, v.Definition)
			}
		}
	}
	return panels, variables
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// withValues replaces Grafana's variables in a query by values.
func withValues(expr string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$namespace", "ml", "$owner", ".*", "$resource", ".*", "$gpus", ".*").Replace(expr)
}

// metric is a metric that a program serves.
type metric struct {
	kind   string // counter, gauge, histogram
	labels map[string]bool
}

// metrics returns those that exist: of Muster by its reference, and those of others that are used.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	content, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]metric{}
	add := func(name, kind string, labels ...string) {
		m := metric{kind, map[string]bool{"job": true, "instance": true}}
		for _, l := range labels {
			m.labels[l] = true
		}
		known[name] = m
	}
	for line := range strings.Lines(string(content)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`muster_") {
			continue
		}
		name, labels := strings.Trim(cells[1], "` "), word.FindAllString(cells[3], -1)
		kind := word.FindString(cells[2]) // "histogram, 0.1 to 1638.4"
		if kind != "histogram" {
			add(name, kind, labels...)
			continue
		}
		add(name+"_bucket", "counter", append(labels, "le")...)
		add(name+"_count", "counter", labels...)
		add(name+"_sum", "counter", labels...)
	}
	if len(known) < 20 {
		t.Fatalf("docs/metrics.md has %d metrics", len(known))
	}
	// client-go's, which both programs serve.
	add("leader_election_master_status", "gauge", "name")
	// Those of kube-state-metrics that it calls stable.
	add("kube_pod_info", "gauge", "namespace", "pod", "node", "created_by_kind", "created_by_name")
	add("kube_pod_created", "gauge", "namespace", "pod")
	add("kube_pod_status_phase", "gauge", "namespace", "pod", "phase")
	add("kube_pod_status_ready", "gauge", "namespace", "pod", "condition")
	add("kube_pod_status_scheduled", "gauge", "namespace", "pod", "condition")
	add("kube_pod_status_scheduled_time", "gauge", "namespace", "pod")
	add("kube_pod_status_ready_time", "gauge", "namespace", "pod")
	add("kube_pod_container_status_restarts_total", "counter", "namespace", "pod", "container")
	add("kube_pod_container_resource_requests", "gauge", "namespace", "pod", "container", "node", "resource", "unit")
	return known
}

var word = regexp.MustCompile(`\w+`)

func parse(t *testing.T, expr string) parser.Expr {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatalf("%v in %s", err, expr)
	}
	return e
}
