// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

func keyNamed(name string) Key { return Key{Namespace: "ns", Name: name} }

// newQuietMarket returns a market in which no gang arrives by itself, with one node.
func newQuietMarket(t *testing.T, capacity int) *market {
	m := newMarket(t, 1)
	clear(m.arrive)
	m.nodes = map[string]int{"n0": capacity}
	return m
}

// A gang with a preemptionDelay waits for so long since it became complete, then it preempts.
func TestPreemptionDelay(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	m.createGang(keyNamed("low"), 4, 4, 0)
	m.runFor(time.Second)
	m.createGang(keyNamed("high"), 2, 1, 5, func(s *v2alpha2.PodGroupSpec) { s.PreemptionDelay = &metav1.Duration{Duration: time.Minute} })
	m.runFor(2 * time.Minute)
	m.createPod(keyNamed("high"), 5) // it is complete now
	m.runFor(59 * time.Second)
	if m.victims > 0 {
		t.Fatal("pods were evicted before the delay was over")
	}
	m.runFor(3 * time.Second)
	if m.victims != 4 {
		t.Errorf("%d pods were evicted after the delay, want the gang of 4", m.victims)
	}
}

// Gangs for which preemption would not help do not use up the scheduling loop, however many there are.
func TestSearchesThatDoNotHelpHaveAShare(t *testing.T) {
	t.Parallel()
	const gangs = 40
	m := newQuietMarket(t, 4)
	m.searchTakes = 100 * time.Millisecond
	m.createGang(keyNamed("low"), 4, 4, 0)
	m.runFor(time.Second)
	for i := range gangs {
		m.createGang(keyNamed(fmt.Sprintf("large-%d", i)), 5, 5, 5)
	}
	m.runFor(30 * time.Second)
	before := m.searches
	if before < gangs {
		t.Fatalf("%d searches, want one for each of %d gangs", before, gangs)
	}
	m.runFor(3 * time.Minute)
	spent := time.Duration(m.searches-before) * m.searchTakes
	t.Logf("%d searches at first, %d within three minutes afterwards, %s", before, m.searches-before, spent)
	if most := 3*time.Minute/searchShare + time.Second; spent > most {
		t.Errorf("searches took %s, more than their share of %s", spent, most)
	}
	if m.searches-before < gangs {
		t.Error("preemption is not tried again")
	}
	m.nodes["n1"] = 4 // now a gang would fit without the low one
	m.apply(m.r.RetryWaiting([]Shape{m}, []Topic{Anything}, Key{}, m.now))
	m.runFor(2 * time.Minute)
	if m.victims != 4 {
		t.Errorf("%d pods were evicted, want 4: preemption helps now", m.victims)
	}
}
