// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// grains is a stream of small gangs that fills the nodes: whenever one ends, another one comes.
type grains struct {
	*cluster
	come int
}

// comes creates a gang of two pods of 2 GPUs.
func (s *grains) comes() {
	s.createGang(fmt.Sprintf("grain-%02d", s.come), 2, 2)
	s.come++
}

// ends deletes the gang that has been bound for longest, and creates another one. It returns when muster-scheduler,
// which has observed both, has bound a pod that came afterwards: one without GPUs, which passes what waits.
func (s *grains) ends() {
	s.t.Helper()
	oldest := ""
	for _, p := range s.pods() {
		group := p.Annotations[v2alpha2.PodGroupAnnotation]
		if p.Spec.NodeName != "" && strings.HasPrefix(group, "grain-") && (oldest == "" || group < oldest) {
			oldest = group
		}
	}
	s.deleteGang(oldest)
	s.comes()
	if s.scheduler.Running() {
		s.passes(fmt.Sprintf("without-gpus-%02d", s.come))
	}
}

// passes creates a pod without GPUs, and waits until it is bound.
func (s *grains) passes(name string) {
	s.t.Helper()
	s.create(s.pod(name, "", 0))
	s.until(name+" is bound", time.Minute, func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == name && p.Spec.NodeName != "" })
	})
}

// TestALargeGangStartsBehindAStreamOfSmallOnes: a gang needs half of the nodes, and small gangs always wait for what
// becomes free. It starts when as many of them have ended as ran when room was reserved for it, although
// muster-scheduler is killed in the middle, and one of them ends meanwhile. What it cannot use passes.
func TestALargeGangStartsBehindAStreamOfSmallOnes(t *testing.T) {
	const nodes, running = 4, 8
	c := newCluster(t, nodes)
	s := &grains{cluster: c}
	c.startWith(map[string]any{"reservationAfter": "2s"})
	for range running {
		s.comes()
	}
	c.until("the nodes are full", time.Minute, func(pods []*corev1.Pod) bool { return len(boundPods(pods)) == 2*running })
	c.createGang("large", nodes/2, 8)
	since := c.untilStatus("large", "has room reserved", func(status v2Status) bool { return status.ReservedSince != nil }).ReservedSince
	for range 3 { // later than the large one by seconds, the precision of what a status keeps of a wait
		s.comes()
	}
	ended := 0
	for ; ended < 2; ended++ {
		s.ends()
	}
	c.scheduler.Kill()
	s.ends()
	ended++
	c.restart()
	s.passes("after-the-restart")
	if n := c.boundNow("large"); n != 0 {
		t.Fatalf("%d pods of the large gang are bound, and most of its room was in use", n)
	}
	status := c.untilStatus("large", "has room reserved again", func(status v2Status) bool {
		return status.ReservedSince != nil && strings.Contains(status.Summary, "is reserved for it")
	})
	if !status.ReservedSince.Equal(since) {
		t.Errorf("after a restart room is reserved since %s, before it since %s", status.ReservedSince, since)
	}
	for ; c.boundNow("large") == 0 && ended < running; ended++ {
		s.ends()
	}
	c.untilBound("large", nodes/2)
	after := c.untilStatus("large", "is admitted, and has nothing reserved", func(status v2Status) bool {
		return status.Phase == v2alpha2.PodGroupAdmitted && status.ReservedSince == nil
	})
	if after.StartsBy != nil {
		t.Errorf("it is to start by %s, and has started", after.StartsBy)
	}
	metrics := c.ask("/metrics")
	for event, want := range map[string]float64{"made": 1, "placed": 1, "given-up": 0, "cancelled": 0} {
		if got := c.metric(metrics, fmt.Sprintf("muster_reservations_total{event=%q}", event)); got < want || want == 0 && got > 0 {
			t.Errorf("%g reservations were %s, want %g", got, event, want)
		}
	}
	t.Logf("%d small gangs had ended when the large one started", ended)
}
