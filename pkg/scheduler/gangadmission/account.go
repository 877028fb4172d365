// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// sizeClass returns the value of the label gpus for a gang whose pods request so many.
func sizeClass(gpus int64) string {
	switch {
	case gpus <= 0:
		return "0"
	case gpus == 1:
		return "1"
	case gpus <= 8:
		return "2-8"
	case gpus <= 64:
		return "9-64"
	case gpus <= 512:
		return "65-512"
	}
	return "513+"
}

// sizeClasses are the results of sizeClass.
var sizeClasses = [...]string{"0", "1", "2-8", "9-64", "65-512", "513+"}

// priorityBand returns the value of the label priority.
func priorityBand(priority int32) string {
	switch {
	case priority < 0:
		return "negative"
	case priority == 0:
		return "0"
	case priority < 100:
		return "1-99"
	case priority < 1000:
		return "100-999"
	case priority < 10000:
		return "1000-9999"
	}
	return "10000+"
}

// waitReasons are the values of the label reason. Whoever may write the status of PodGroups could write others: these
// are counted as otherReason.
var waitReasons = sets.New(
	v2alpha2.ReasonInvalid, v2alpha2.ReasonWaitingForPods, v2alpha2.ReasonOtherScheduler, v2alpha2.ReasonGated, v2alpha2.ReasonBinding,
	v2alpha2.ReasonPreempting, v2alpha2.ReasonClaimsNotReady, v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonTooLarge,
	v2alpha2.ReasonNodesUnavailable, v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonInsufficientResources,
	v2alpha2.ReasonTopologyUnavailable, v2alpha2.ReasonFragmented, v2alpha2.ReasonSchedulerError, v2alpha2.ReasonBackingOff,
	v2alpha2.ReasonBehindInQueue,
)

const otherReason = "Other"

// reasonLabel returns the value of the label reason.
func reasonLabel(reason v2alpha2.Reason) string {
	if !waitReasons.Has(reason) {
		return otherReason
	}
	return string(reason)
}

// observeAdmitted is gangs.Options.Admitted.
func observeAdmitted(s gangs.Start) {
	admissionDuration.WithLabelValues(sizeClass(s.GPUs), priorityBand(s.Priority)).Observe(s.Took.Seconds())
}

// observeReady is gangs.Options.Ready.
func observeReady(s gangs.Start) {
	readyDuration.WithLabelValues(sizeClass(s.GPUs)).Observe(s.Took.Seconds())
}

// reportKeptRooms reports for what rooms are kept.
func reportKeptRooms(reserved *reservations.View) {
	rooms := map[reservations.Purpose]int{}
	for _, list := range reserved.ByNode() {
		for _, x := range list {
			rooms[x.Purpose()]++
		}
	}
	for _, purpose := range reservations.Purposes {
		keptRooms.WithLabelValues(string(purpose)).Set(float64(rooms[purpose]))
	}
}

// accounts are what is known between two calls of Gangs.account, which alone uses it.
type accounts struct {
	last                   time.Time // of the last call; zero: there was none
	gangs, gpus, startable gaugeSeries
}

func newAccounts() *accounts {
	return &accounts{gangs: gaugeSeries{}, gpus: gaugeSeries{}, startable: gaugeSeries{}}
}

// gaugeSeries are the series of a gauge that were set, by label values. A value that is no longer reported becomes 0,
// so that no scrape finds a gap, and their number is bounded by that of the label values.
type gaugeSeries map[[2]string]bool

func (s gaugeSeries) set(g *metrics.GaugeVec, labels int, values map[[2]string]float64) {
	for key := range values {
		s[key] = true
	}
	for key := range s {
		g.WithLabelValues(key[:labels]...).Set(values[key])
	}
}

// account reports which gangs wait and which pods break a promise, and counts what GPUs were used for since the last
// call: for what they are used now.
func (g *Gangs) account(logger klog.Logger, a *accounts, now time.Time) {
	a.reportWaiting(g.registry.Unsatisfied(), now)
	overduePods.Set(float64(g.registry.Overdue(now)))
	a.reportGPUs(ledgerOf(g.backlog.GPUs(logger), g.registry.Holding()), now)
}

// reportWaiting reports gangs that wait.
func (a *accounts) reportWaiting(waiting []gangs.Unsatisfied, now time.Time) {
	number, gpus, oldest := map[[2]string]float64{}, map[[2]string]float64{}, map[string]time.Duration{}
	for _, w := range waiting {
		size, reason := sizeClass(w.GPUs), reasonLabel(w.Reason)
		number[[2]string{reason, size}]++
		gpus[[2]string{reason}] += float64(w.Lacks)
		if !w.Since.IsZero() {
			oldest[size] = max(oldest[size], now.Sub(w.Since))
		}
	}
	a.gangs.set(waitingGangs, 2, number)
	a.gpus.set(waitingGPUs, 1, gpus)
	for _, size := range sizeClasses {
		oldestWaiting.WithLabelValues(size).Set(oldest[size].Seconds())
	}
}
