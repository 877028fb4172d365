// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/scheduler/evictions"
)

// endsAfter lets the bound pods of a gang have a grace period, of which they need all.
func (m *market) endsAfter(key Key, seconds int64) {
	for _, uid := range sortedUIDs(m.pods) {
		if pod := m.pods[uid]; keyOf(pod) == key && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			m.update(uid, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds })
		}
	}
}

// preempt creates a gang of four pods that preempts, and returns when the deletion of victims has been requested, all
// that this ends.
func (m *market) preempt(key Key, ends time.Duration, slow Key) {
	m.t.Helper()
	m.createGang(key, 4, 4, 5)
	for range 20 {
		if m.victims == 0 {
			m.step()
		}
	}
	for uid := range m.ends {
		if slow == (Key{}) || keyOf(m.pods[uid]) == slow {
			m.ends[uid] = m.now.Add(ends)
			m.update(uid, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: m.ends[uid]} })
		}
	}
	m.isExcused = func(*evictions.Eviction) bool { return true }
	m.overtaken[key.Name] = 1 // it may end others
	if p := m.r.gangs[key].preemption; p == nil || p.Stage() != evictions.Deleted || m.victims != 4 {
		m.t.Fatalf("%d pods end, by %+v", m.victims, p)
	}
}

// A preemptor waits as long as the grace period of its victim says, however long this is, and ends no other pods
// meanwhile.
func TestGracePeriodsOfAnyLength(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		grace int64
		least time.Duration // for which the preemptor waits, also at the last moment
		most  time.Duration
	}{
		"none":                               {0, 0, time.Minute},
		"negative, which is a second":        {-7, time.Second, time.Minute},
		"the least number":                   {math.MinInt64, time.Second, time.Minute},
		"a year":                             {365 * 24 * 3600, 365 * 24 * time.Hour, 366 * 24 * time.Hour},
		"more than a Duration can represent": {10_000_000_000, 365 * 24 * time.Hour, math.MaxInt64},
		"the greatest number":                {math.MaxInt64, 365 * 24 * time.Hour, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newQuietMarket(t, 4)
			low, other, high := keyNamed("low"), keyNamed("other"), keyNamed("high")
			m.createGang(low, 4, 4, 0)
			m.runFor(time.Second)
			m.endsAfter(low, tc.grace)
			m.nodes["n1"], m.room = 4, nil
			m.createGang(other, 4, 4, 1)
			m.runFor(time.Second)
			m.preempt(high, 100*24*time.Hour, Key{})
			p := m.r.gangs[high].preemption
			if waits := p.Until().Sub(m.now); waits < tc.least || waits > tc.most || p.About.Until.Before(m.now) {
				t.Errorf("the preemptor waits for %s, and says until %s", waits, p.About.Until)
			}
			if m.runFor(30 * time.Second); tc.grace > 3600 && (m.victims != 4 || m.boundOf(other) != 4) {
				t.Errorf("%d pods were evicted", m.victims)
			}
		})
	}
}

// Victims that neither their kubelets nor those who have finalizers on them end: which is said, they are given up, and
// other room is made.
func TestVictimsThatNeverEnd(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	low, other, high := keyNamed("low"), keyNamed("other"), keyNamed("high")
	m.createGang(low, 4, 4, 0)
	m.runFor(time.Second)
	m.nodes["n1"], m.room = 4, nil
	m.createGang(other, 4, 4, 1)
	m.runFor(time.Second)
	m.preempt(high, 10*time.Second, Key{})
	for uid := range m.ends {
		m.ends[uid] = m.now.Add(24 * time.Hour)
	}
	m.runFor(20 * time.Second)
	if f, _ := m.r.Facts(high); f.Preempting == nil || !strings.HasPrefix(f.Preempting.Stuck, "low-") {
		t.Errorf("it is said: %+v", f.Preempting)
	}
	m.runFor(2 * time.Minute)
	if m.boundOf(high) != 4 || m.boundOf(other) != 0 || m.victims != 8 {
		t.Errorf("bound are %d of the preemptor and %d of the other gang, and %d pods were evicted", m.boundOf(high), m.boundOf(other), m.victims)
	}
}

// One of two victims needs an hour. The room of the other one is used by others until five minutes before the hour is
// over, and kept then.
func TestRoomIsLentWhileAVictimNeedsLong(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	slow, quick, filler, late, high := keyNamed("slow"), keyNamed("quick"), keyNamed("filler"), keyNamed("late"), keyNamed("high")
	m.createGang(slow, 2, 2, 0)
	m.createGang(quick, 2, 2, 0)
	m.runFor(time.Second)
	m.endsAfter(slow, 3600)
	m.preempt(high, 59*time.Minute, slow)
	m.createGang(filler, 1, 1, 1)
	m.runFor(2 * time.Minute)
	if m.boundOf(filler) != 1 || m.boundOf(quick) != 0 {
		t.Errorf("of lower priority %d pods use the room, and of the gang that ended %d; want 1 and none, which needs more", m.boundOf(filler), m.boundOf(quick))
	}
	m.endGang(quick)
	m.runFor(53 * time.Minute)
	m.endGang(filler)
	m.createGang(late, 2, 2, 1)
	if m.runFor(time.Minute); m.boundOf(late) != 0 {
		t.Error("a gang of lower priority takes the room in the last five minutes")
	}
	m.runFor(3 * time.Minute)
	if m.boundOf(high) != 4 || m.victims != 4 {
		t.Errorf("%d pods of the preemptor are bound after all victims have ended, of which there were %d", m.boundOf(high), m.victims)
	}
}

// Who uses lent room when the last victim has ended is preempted at once: there is no pause as after evictions in vain.
func TestLentRoomIsTakenBack(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	slow, quick, filler, high := keyNamed("slow"), keyNamed("quick"), keyNamed("filler"), keyNamed("high")
	m.createGang(slow, 2, 2, 0)
	m.createGang(quick, 2, 2, 0)
	m.runFor(time.Second)
	m.endsAfter(slow, 600)
	m.preempt(high, 10*time.Minute, slow)
	m.createGang(filler, 2, 2, 1)
	m.runFor(9 * time.Minute)
	if m.boundOf(filler) != 2 {
		t.Fatalf("%d pods use the room", m.boundOf(filler))
	}
	m.runFor(2 * time.Minute)
	if m.boundOf(high) != 4 || m.victims != 6 {
		t.Errorf("%d pods of the preemptor are bound, and %d were evicted, want 4 and 6", m.boundOf(high), m.victims)
	}
}
