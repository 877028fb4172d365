// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	controllermetrics "github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
)

const metricsIntro = `<!-- Written by "make docs" from what the programs register. Do not edit. -->

# Metrics

Every metric that Muster adds to [those of kube-scheduler](https://kubernetes.io/docs/reference/instrumentation/metrics/) and of
[controller-runtime](https://book.kubebuilder.io/reference/metrics-reference), which the programs serve too. How they are read:
[configuration.md](configuration.md#metrics). None has a label per object. Each process counts for itself, from 0 when it starts; of several replicas only
the leader does something that is counted. All are alpha: names and labels may change, with a note in the changelog.
`

// metrics returns the reference of the metrics of both programs.
func metrics() (string, error) {
	gangadmission.RegisterMetrics()
	if err := controllermetrics.Register(); err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(metricsIntro)
	for _, program := range []struct {
		name       string
		registerer prometheus.Registerer
	}{{"muster-scheduler", legacyregistry.Registerer()}, {"muster-controller", ctrlmetrics.Registry}} {
		rows, err := registered(program.registerer)
		if err != nil {
			return "", fmt.Errorf("%s: %w", program.name, err)
		}
		if len(rows) == 0 {
			return "", fmt.Errorf("%s registers no metric of its own", program.name)
		}
		fmt.Fprintf(&text, "\n## %s\n\n| metric | type | labels | unit | |\n|---|---|---|---|---|\n", program.name)
		for _, r := range rows {
			fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s |\n", r.name, r.kind, r.labels, r.unit, cell(r.help))
		}
	}
	return text.String(), nil
}

// row is a metric.
type row struct{ name, kind, labels, unit, help string }

// described are the parts of the text of a descriptor, which shows them nowhere else.
var described = regexp.MustCompile(`^Desc\{fqName: "(muster_\w+)", help: (".*"), unit: ".*", constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

// stability is what component-base puts before the help.
var stability = regexp.MustCompile(`^\[[A-Z]+\] `)

// registered returns Muster's own metrics of a registry, sorted by name.
func registered(registerer prometheus.Registerer) ([]row, error) {
	registry, ok := registerer.(interface {
		prometheus.Collector
		prometheus.Gatherer
	})
	if !ok {
		return nil, fmt.Errorf("the registry is a %T, which lists no metrics", registerer)
	}
	var rows []row
	for _, desc := range descriptions(registry) {
		parts := described.FindStringSubmatch(desc.String())
		if parts == nil {
			continue
		}
		help, err := strconv.Unquote(parts[2])
		if err != nil {
			return nil, fmt.Errorf("the help of %s: %w", parts[1], err)
		}
		r := row{name: parts[1], unit: unitOf(parts[1]), help: stability.ReplaceAllString(help, "")}
		var labels []string
		if parts[3] != "" {
			labels = strings.Split(parts[3], ",")
			r.labels = "`" + strings.Join(labels, "`, `") + "`"
		}
		addSeries(registerer, desc, len(labels))
		rows = append(rows, r)
	}
	families, err := registry.Gather()
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].kind = kindOf(families, rows[i].name)
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.name, b.name) })
	return rows, nil
}

func descriptions(c prometheus.Collector) []*prometheus.Desc {
	all := make(chan *prometheus.Desc)
	go func() {
		c.Describe(all)
		close(all)
	}()
	var list []*prometheus.Desc
	for d := range all {
		list = append(list, d)
	}
	return list
}

// same is a collector of one descriptor: a registry that has one of it already returns that one.
type same struct{ *prometheus.Desc }

func (s same) Describe(c chan<- *prometheus.Desc) { c <- s.Desc }
func (same) Collect(chan<- prometheus.Metric)     {}

// addSeries makes a series of a metric with labels: without one, the registry does not tell its type. What is collected
// from elsewhere has none to make.
func addSeries(registerer prometheus.Registerer, desc *prometheus.Desc, labels int) {
	var exists prometheus.AlreadyRegisteredError
	if !errors.As(registerer.Register(same{desc}), &exists) || labels == 0 {
		return
	}
	if with := reflect.ValueOf(exists.ExistingCollector).MethodByName("WithLabelValues"); with.IsValid() {
		with.CallSlice([]reflect.Value{reflect.ValueOf(make([]string, labels))})
	}
}

// kindOf returns the type of a metric, and for a histogram the lowest and the highest limit of its buckets. What is
// collected from elsewhere, and has no series yet, is no histogram.
func kindOf(families []*dto.MetricFamily, name string) string {
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	switch {
	case at < 0 && strings.HasSuffix(name, "_total"):
		return "counter"
	case at < 0:
		return "gauge"
	}
	kind := strings.ToLower(families[at].GetType().String())
	if buckets := families[at].GetMetric()[0].GetHistogram().GetBucket(); len(buckets) > 0 {
		kind += fmt.Sprintf(", %v to %v", buckets[0].GetUpperBound(), buckets[len(buckets)-1].GetUpperBound())
	}
	return kind
}

// unitOf returns the unit that the name of a metric ends with, "" for a number of things.
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, unit := range []string{"seconds", "bytes", "ratio"} {
		if strings.HasSuffix(name, "_"+unit) {
			return unit
		}
	}
	return ""
}
