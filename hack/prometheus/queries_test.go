// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// TestQueriesNameWhatExists: a query that names a metric or a label that nobody has returns nothing, for ever.
func TestQueriesNameWhatExists(t *testing.T) {
	t.Parallel()
	known := metrics(t)
	queries, variables := dashboardQueries(t)
	queries = append(queries, variables...)
	for _, a := range alerts(t) {
		queries = append(queries, panelQuery{"alert", a.Alert, a.Expr})
	}
	for _, q := range queries {
		t.Run(q.dashboard+"/"+q.panel, func(t *testing.T) {
			t.Parallel()
			for _, problem := range problemsOf(parse(t, q.expr), known) {
				t.Errorf("%s in %s", problem, q.expr)
			}
		})
	}
}

// problemsOf returns what is wrong with the names in a query.
func problemsOf(expr parser.Expr, known map[string]metric) []string {
	var problems []string
	have := map[string]bool{} // labels of all metrics in the query
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		m, exists := known[selector.Name]
		if !exists {
			problems = append(problems, "no metric "+selector.Name)
			return nil
		}
		for l := range m.labels {
			have[l] = true
		}
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != labels.MetricName && !m.labels[matcher.Name] {
				problems = append(problems, selector.Name+" has no label "+matcher.Name)
			}
		}
		counts := slices.ContainsFunc(path, func(n parser.Node) bool {
			call, ok := n.(*parser.Call)
			return ok && (call.Func.Name == "rate" || call.Func.Name == "increase")
		})
		if labelsOnly := strings.HasPrefix(expr.String(), "count by"); counts != (m.kind == "counter") && !labelsOnly {
			problems = append(problems, fmt.Sprintf("%s is a %s", selector.Name, m.kind))
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		var names []string
		switch n := node.(type) {
		case *parser.AggregateExpr:
			names = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				names = append(names, n.VectorMatching.MatchingLabels...)
				names = append(names, n.VectorMatching.Include...)
			}
		}
		for _, name := range names {
			if !have[name] {
				problems = append(problems, "no metric has the label "+name)
			}
		}
		return nil
	})
	return problems
}

// TestProblemsAreFound shows that the test above can fail.
func TestProblemsAreFound(t *testing.T) {
	t.Parallel()
	known := map[string]metric{"a": {"gauge", map[string]bool{"x": true}}, "b_total": {"counter", map[string]bool{"y": true}}}
	for expr, want := range map[string]int{
		`a{x="1"}`: 0, `sum by (y) (rate(b_total[5m]))`: 0, `c`: 1, `a{y="1"}`: 1, `sum by (y) (a)`: 1, `b_total`: 1, `rate(a[5m])`: 1, `a * on (z) rate(b_total[5m])`: 1,
	} {
		if got := problemsOf(parse(t, expr), known); len(got) != want {
			t.Errorf("%s: %v, want %d problems", expr, got, want)
		}
	}
}

// TestPanelsShowSomething runs every query of the dashboards in the history of a cluster in which everything happens.
func TestPanelsShowSomething(t *testing.T) {
	t.Parallel()
	queries, variables := dashboardQueries(t)
	c := newCluster(t, busy())
	for _, q := range append(queries, variables...) {
		result, err := c.query(q.expr, 90*time.Minute)
		if err != nil || len(result) == 0 {
			t.Errorf("%s: %s: %d series, %v: %s", q.dashboard, q.panel, len(result), err, q.expr)
		}
	}
}

// TestAlertsHaveRunbooks: each has a section of docs/operations.md under its name, and no section is left of another.
func TestAlertsHaveRunbooks(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "### Muster"); ok {
			sections["Muster"+name] = true
		}
	}
	for _, a := range alerts(t) {
		if !sections[a.Alert] {
			t.Errorf("docs/operations.md has no section %s", a.Alert)
		}
		delete(sections, a.Alert)
		if want := "https://github.com/muster-project/muster/blob/main/docs/operations.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: the runbook is %s, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if a.Annotations["summary"] == "" || a.Labels["severity"] == "" {
			t.Errorf("%s has no summary or severity", a.Alert)
		}
	}
	for name := range sections {
		t.Errorf("docs/operations.md has a section %s of no alert", name)
	}
}
