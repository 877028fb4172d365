// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/ledger"
)

// gpuSeconds returns what muster-scheduler has counted, by state. nil: nothing yet.
func (c *cluster) gpuSeconds() map[ledger.State]float64 {
	c.t.Helper()
	metrics := c.ask("/metrics")
	if !strings.Contains(metrics, "muster_gpu_seconds_total{") {
		return nil
	}
	counted := map[ledger.State]float64{}
	for s := range ledger.State(ledger.States) {
		counted[s] = c.metric(metrics, fmt.Sprintf(`muster_gpu_seconds_total{resource="nvidia.com/gpu",state=%q}`, s))
	}
	return counted
}

// metric returns the value of a series: a metric, or one with all of its labels, sorted.
func (c *cluster) metric(metrics, name string) float64 {
	c.t.Helper()
	lines := bufio.NewScanner(strings.NewReader(metrics))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			f, err := strconv.ParseFloat(value, 64)
			c.must(err, "reading metric "+name)
			return f
		}
	}
	c.must(fmt.Errorf("not among the metrics"), "reading metric "+name)
	return 0
}

func sum(counted map[ledger.State]float64) float64 {
	all := 0.0
	for _, n := range counted {
		all += n
	}
	return all
}

// nextCount returns what is counted after the count has changed, and when. It cannot be watched, so this polls.
func (c *cluster) nextCount(after float64) (map[ledger.State]float64, time.Time) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if counted := c.gpuSeconds(); sum(counted) > after {
			return counted, time.Now()
		}
	}
	c.must(fmt.Errorf("not within a minute"), "waiting until GPU seconds are counted")
	return nil, time.Time{}
}

// TestGPUSecondsSumToWhatIsAllocatable: of 40 GPUs a gang works on 8, one starts on 16, and one waits for more than the
// 16 that are left.
func TestGPUSecondsSumToWhatIsAllocatable(t *testing.T) {
	c := newCluster(t, 5)
	c.start()
	c.createGang("works", 1, 8)
	c.createGang("starts", 2, 8)
	c.untilAdmitted("works")
	c.untilAdmitted("starts")
	c.createGang("waits", 3, 8)
	c.untilReason("waits", v2alpha2.ReasonInsufficientGPUs)
	pods := c.pods()
	for i := range pods {
		if pod := &pods[i]; strings.HasPrefix(pod.Name, "works") {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
			_, err := cp.Client().CoreV1().Pods(c.namespace).UpdateStatus(c.ctx, pod, metav1.UpdateOptions{})
			c.must(err, "making a pod ready")
		}
	}
	first, _ := c.nextCount(0)
	first, from := c.nextCount(sum(first)) // all of the time since the last one was like this
	last, to := first, from
	for range 3 {
		last, to = c.nextCount(sum(last))
	}
	counted := sum(last) - sum(first)
	for s, gpus := range map[ledger.State]float64{ledger.Working: 8, ledger.Starting: 16, ledger.FreeUsable: 16, ledger.FreeUnusable: 0, ledger.Partial: 0} {
		if got := 40 * (last[s] - first[s]) / counted; math.Abs(got-gpus) > 0.4 {
			t.Errorf("%s: %.1f GPUs, want %.0f", s, got, gpus)
		}
	}
	// When a count was seen is not exact to the moment.
	if took := to.Sub(from).Seconds(); math.Abs(counted/took-40) > 2 {
		t.Errorf("%.0f GPU seconds in %.1f s, want those of 40 GPUs", counted, took)
	}
	metrics := c.ask("/metrics")
	for series, want := range map[string]float64{
		`muster_waiting_gangs{gpus="9-64",reason="InsufficientGPUs"}`:            1,
		`muster_waiting_gpus{reason="InsufficientGPUs"}`:                         24,
		`muster_startable_pods{gpus="8",resource="nvidia.com/gpu"}`:              2,
		`muster_gang_admission_duration_seconds_count{gpus="2-8",priority="0"}`:  1,
		`muster_gang_admission_duration_seconds_count{gpus="9-64",priority="0"}`: 1,
		`muster_gang_ready_duration_seconds_count{gpus="2-8"}`:                   1,
	} {
		if got := c.metric(metrics, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if age := c.metric(metrics, `muster_oldest_waiting_gang_age_seconds{gpus="9-64"}`); age < 10 || age > 120 {
		t.Errorf("the oldest gang has waited for %v s", age)
	}
	t.Logf("%.0f GPU seconds in %s", counted, ms(to.Sub(from)))
}
