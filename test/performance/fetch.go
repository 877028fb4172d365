// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// profilerIdentity may read profiles and metrics, among others. It is a service account, since the schedulers here have no
// certificate authority for clients.
const profilerIdentity = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: profiler, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: profiler}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {kind: ServiceAccount, namespace: default, name: profiler}
`

// reader returns a client of profilerIdentity.
func (cl *cluster) reader(ctx context.Context) *http.Client {
	must(cl.cp.ApplyYAML(ctx, profilerIdentity))
	config := got(cl.cp.ServiceAccountConfig(ctx, namespace, "profiler"))
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true} // a scheduler signs its own certificate
	return got(rest.HTTPClientFor(config))
}

// fetch returns what a program serves at an address.
func fetch(ctx context.Context, client *http.Client, address string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return nil, fmt.Errorf("%s: %s: %s", address, response.Status, body)
	}
	return response.Body, nil
}

// fetchMetrics returns the metrics that a program serves at an address, by name.
func fetchMetrics(ctx context.Context, client *http.Client, url string) map[string]*dto.MetricFamily {
	content := got(fetch(ctx, client, url))
	defer content.Close()
	return parseMetrics(content)
}

func parseMetrics(content io.Reader) map[string]*dto.MetricFamily {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return got(parser.TextToMetricFamilies(content))
}

// serverMetrics returns the API server's metrics, by name.
func (cl *cluster) serverMetrics(ctx context.Context) map[string]*dto.MetricFamily {
	return fetchMetrics(ctx, cl.admin, cl.cp.Admin().Host+"/metrics")
}

// label returns the value of a label, "" without it.
func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// sample is a counter, or a histogram with its number of observations.
type sample struct{ sum, count float64 }

// byLabel returns the totals of a metric by the values of a label. A series that does not exist yet is zero.
func byLabel(family *dto.MetricFamily, name string) map[string]sample {
	samples := map[string]sample{}
	for _, metric := range family.GetMetric() {
		s, histogram := samples[label(metric, name)], metric.GetHistogram()
		s.sum += metric.GetCounter().GetValue() + histogram.GetSampleSum()
		s.count += float64(histogram.GetSampleCount())
		samples[label(metric, name)] = s
	}
	return samples
}

// meanSince returns the mean of the observations after the earlier ones, in a list. nil: there were none.
func (s sample) meanSince(earlier sample) []float64 {
	if s.count == earlier.count {
		return nil
	}
	return []float64{(s.sum - earlier.sum) / (s.count - earlier.count)}
}

// profiler fetches profiles of a program; nil fetches none.
type profiler struct {
	client        *http.Client
	address, path string
	length        time.Duration
}

// profiler returns one for the scheduler, nil if none is wanted or the contestant is no program.
func (cl *cluster) profiler(ctx context.Context) *profiler {
	if cl.o.profiles == "" || cl.c.program == nil {
		return nil
	}
	must(os.MkdirAll(cl.o.profiles, 0o755))
	return &profiler{cl.reader(ctx), addressOf(cl.program.ReadyURL), filepath.Join(cl.o.profiles, cl.c.name+".pprof"), 5 * time.Second}
}

// addressOf returns where a scheduler serves that is ready when this URL answers.
func addressOf(readyURL string) string { return strings.TrimSuffix(readyURL, "/readyz") }

// begin fetches the CPU profile of a program that is being started, from when it answers. The returned function waits for the end.
func (p *profiler) begin(ctx context.Context) (wait func()) {
	if p == nil {
		return func() {}
	}
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, p.length+30*time.Second)
		defer cancel()
		done <- p.save(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(p.length.Seconds())), p.path)
	}()
	return func() {
		if err := <-done; err != nil {
			fmt.Fprintln(os.Stderr, "fetching a CPU profile:", err)
			return
		}
		fmt.Fprintln(os.Stderr, "CPU profile:", p.path)
	}
}

// heap fetches the heap profile after a garbage collection.
func (p *profiler) heap(ctx context.Context) {
	if p != nil {
		path := strings.TrimSuffix(p.path, ".pprof") + ".heap.pprof"
		must(p.save(ctx, "/debug/pprof/heap?gc=1", path))
		fmt.Fprintln(os.Stderr, "heap profile:", path)
	}
}

// save writes to a file what the program serves, as soon as it answers.
func (p *profiler) save(ctx context.Context, page, path string) error {
	content, err := fetch(ctx, p.client, p.address+page)
	for away := (*url.Error)(nil); errors.As(err, &away) && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond) // there is no event when it does
		content, err = fetch(ctx, p.client, p.address+page)
	}
	if err != nil {
		return err
	}
	defer content.Close()
	body, err := io.ReadAll(content)
	return errors.Join(err, os.WriteFile(path, body, 0o644))
}
