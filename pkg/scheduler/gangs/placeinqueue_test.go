// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/muster-project/muster/test/wrappers"
)

// TestPlacesInTheLine compares the places of gangs of random priorities and namespaces, some of which start or have
// lost a pod, with counts by the definition.
func TestPlacesInTheLine(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := begin(t)
		type waitingGang struct {
			key      Key
			priority int32
			refill   bool // precedes those of its priority that wait for their minimum
			number   int  // in the order of creation
		}
		var all []waitingGang
		for i := range 30 {
			g := waitingGang{Key{Namespace: fmt.Sprintf("team-%d", random.IntN(2)), Name: fmt.Sprintf("g%02d", i)}, int32(random.IntN(2)) * 100, random.IntN(5) == 0, i}
			group := wrappers.MakePodGroup(g.key.Name, g.key.Namespace).UID(g.key.String()).MinMember(1)
			if g.refill {
				group = group.MinMember(2)
			}
			s.after(time.Millisecond).group(group)
			if g.refill {
				pod := func(name string) *wrappers.PodWrapper {
					return wrappers.MakePod(g.key.Name+name, g.key.Namespace).UID(g.key.String() + name).Gang(g.key.Name).Priority(g.priority)
				}
				s.pods(pod("-a").Node("n"), pod("-b").Node("n")).gone(g.key.String() + "-b").pods(pod("-c"))
				all = append(all, g)
				continue
			}
			if random.IntN(5) == 0 {
				continue // without pods
			}
			s.pods(wrappers.MakePod(g.key.Name, g.key.Namespace).UID("pod-" + g.key.String()).Gang(g.key.Name).Priority(g.priority))
			if random.IntN(5) == 0 {
				s.pods(wrappers.MakePod(g.key.Name, g.key.Namespace).UID("pod-" + g.key.String()).Gang(g.key.Name).Priority(g.priority).Node("n"))
				continue // bound
			}
			all = append(all, g)
		}
		told := map[Key]bool{}
		for range 2 { // at first it is not known for all of those that lost a pod
			for _, key := range s.after(max(lineInterval, departure)).effects.Dirty {
				told[key] = true
			}
		}
		for _, g := range all {
			ahead, firstOf := 0, waitingGang{}
			for _, other := range all {
				precedes := other.refill && !g.refill || other.refill == g.refill && other.number < g.number
				if other.priority != g.priority || !precedes {
					continue
				}
				ahead++
				if other.key.Namespace == g.key.Namespace && (firstOf.key.Name == "" || other.refill && !firstOf.refill) {
					firstOf = other
				}
			}
			first := firstOf.key.Name
			f, _ := s.r.Facts(g.key)
			if f.Ahead != ahead || f.FirstAhead != first {
				t.Errorf("seed %d: %s has %d ahead, first %q; want %d, %q", seed, g.key, f.Ahead, f.FirstAhead, ahead, first)
			}
			if ahead > 0 && !told[g.key] {
				t.Errorf("seed %d: the status of %s is not due, although %d gangs are ahead", seed, g.key, ahead)
			}
		}
		if len(s.r.line.places) != len(all) {
			t.Errorf("seed %d: %d gangs in the line, want %d", seed, len(s.r.line.places), len(all))
		}
	}
}

// The line of many gangs is determined less often: a change of it concerns all of them.
func TestTheLineIsDeterminedAtIntervals(t *testing.T) {
	t.Parallel()
	s := begin(t)
	const gangs = 100
	for i := range gangs {
		name := fmt.Sprintf("g%03d", i)
		s.group(wrappers.MakePodGroup(name, testNamespace).UID(name).MinMember(1)).after(time.Millisecond)
		s.pods(wrappers.MakePod(name, testNamespace).UID("pod-" + name).Gang(name))
	}
	last := Key{Namespace: testNamespace, Name: fmt.Sprintf("g%03d", gangs-1)}
	ahead := func(after time.Duration) int {
		s.now = s.now.Add(after)
		s.r.Tick(s.now)
		f, _ := s.r.Facts(last)
		return f.Ahead
	}
	if got := ahead(lineInterval); got != gangs-1 {
		t.Errorf("%d ahead, want %d", got, gangs-1)
	}
	s.r.RemovePod("pod-g000", s.now)
	if got := ahead(gangs*linePerGang - time.Millisecond); got != gangs-1 {
		t.Errorf("%d ahead before the interval is over, want %d", got, gangs-1)
	}
	if got := ahead(time.Millisecond); got != gangs-2 {
		t.Errorf("%d ahead afterwards, want %d", got, gangs-2)
	}
}
