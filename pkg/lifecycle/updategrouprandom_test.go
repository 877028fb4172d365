// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/test/rounds"
)

// TestGroupUpdateRandom simulates updates of a scaling group whose PodCliques report late, as TestCliqueUpdateRandom
// does for a clique: the statuses are sufficient to leave a replica alone, and the pods are checked before a replica
// is replaced. A recorded decision is carried out completely, because the attempts define what is deleted. A replica serves
// while it is ready, whether for minReadySeconds or not.
func TestGroupUpdateRandom(t *testing.T) {
	t.Parallel()
	for seed := range int64(1000 * rounds.Number()) {
		w := newGroupWorld(rand.New(rand.NewSource(seed)), seed%2 == 0)
		for step := range 120 {
			w.clock = w.clock.Add(time.Duration(w.r.Intn(20)) * time.Second)
			w.happen()
			if fault := w.pass(); fault != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, fault)
			}
		}
		w.calm = true
		for step := 0; step < 400 && !w.done(); step++ {
			w.clock = w.clock.Add(time.Minute)
			w.happen()
			if fault := w.pass(); fault != "" {
				t.Fatalf("seed %d, calm step %d: %s", seed, step, fault)
			}
		}
		if !w.done() {
			t.Fatalf("seed %d: at the end: %s", seed, w)
		}
	}
}

// podClique is a member's actual state, and its state according to its status.
type podClique struct {
	index, member int
	attempt       int32
	created       time.Time
	leaving       bool
	templates     [2]string // of its pods
	ready, ended  [2]bool
	readySince    [2]time.Time
	annotated     int64 // the revision in its annotation
	status        lifecycle.Clique
}

type groupWorld struct {
	r                    *rand.Rand
	quiet, calm          bool
	clock                time.Time
	cliques              []*podClique
	attempts             map[int]int32
	wanted, minAvailable int32
	minReady             time.Duration
	template             string
	revision             int64
	turn, edited         bool
	progress             *lifecycle.Progress
}

func (w *groupWorld) String() string {
	text := fmt.Sprintf("%s (revision %d), %d wanted, attempts %v, progress %+v", w.template, w.revision, w.wanted, w.attempts, w.progress)
	for _, c := range w.cliques {
		text += fmt.Sprintf("\n%d/%d of attempt %d, leaving %v, pods of %v, ready %v, ended %v, says %+v", c.index, c.member, c.attempt, c.leaving, c.templates, c.ready, c.ended, c.status)
	}
	return text
}

func newGroupWorld(r *rand.Rand, quiet bool) *groupWorld {
	w := &groupWorld{r: r, quiet: quiet, clock: now, attempts: map[int]int32{}, wanted: 1 + r.Int31n(5), template: "A", revision: 1, turn: true}
	w.minAvailable = 1 + r.Int31n(w.wanted)
	w.minReady = time.Duration(r.Intn(3)*30) * time.Second
	w.make()
	for _, c := range w.cliques {
		c.created = now.Add(time.Duration(r.Intn(4))*time.Second - time.Hour)
		c.ready, c.annotated = [2]bool{true, true}, 1
		c.readySince = [2]time.Time{now, now.Add(-time.Duration(r.Intn(90)) * time.Second)}
		w.report(c)
	}
	return w
}

// make creates the PodCliques of replicas without objects of an earlier attempt.
func (w *groupWorld) make() {
	for j := range int(w.wanted) {
		for k := range 2 {
			if !slices.ContainsFunc(w.cliques, func(c *podClique) bool {
				return c.index == j && (c.member == k || c.attempt < w.attempts[j])
			}) {
				w.cliques = append(w.cliques, &podClique{index: j, member: k, attempt: w.attempts[j], created: w.clock,
					templates: [2]string{w.template, w.template}, annotated: w.revision})
			}
		}
	}
}

// counts returns the counts for a status now, of the revision in the PodClique's annotation.
func (w *groupWorld) counts(c *podClique) lifecycle.Clique {
	s := lifecycle.Clique{Observed: true, Pods: 2, Revision: c.annotated, Followed: c.status.Followed}
	current := true
	for p := range 2 {
		current = current && c.templates[p] == w.template
		switch {
		case c.ended[p]:
			continue
		case c.templates[p] == w.template:
			s.Updated++
		}
		if c.ready[p] {
			s.Ready++
			if w.clock.Before(c.readySince[p].Add(w.minReady)) {
				s.NotYetAvailable++
			}
		}
		s.Scheduled++
	}
	if hash := "gen-" + w.template; current {
		s.Followed = hash
	} else if s.Followed == hash {
		s.Followed = ""
	}
	return s
}

func (w *groupWorld) report(c *podClique) {
	if c.annotated == w.revision { // its own template is that of the annotated revision
		c.status = w.counts(c)
	}
}

func (w *groupWorld) happen() {
	w.turn = w.turn || w.calm
	if !w.calm {
		if w.r.Intn(12) == 0 {
			w.template, w.edited = string(rune('A'+w.r.Intn(3))), true
			w.revision++
		}
		if w.r.Intn(15) == 0 {
			w.turn = !w.turn
		}
		if w.r.Intn(20) == 0 {
			w.wanted = max(1, w.wanted-1)
			if !w.quiet {
				w.wanted = w.r.Int31n(6)
			}
			w.minAvailable = min(w.minAvailable, w.wanted)
			if w.wanted > 0 {
				w.minAvailable = max(1, w.minAvailable)
			}
		}
	}
	var left []*podClique
	for _, c := range w.cliques {
		c.leaving = c.leaving || c.attempt < w.attempts[c.index] || c.index >= int(w.wanted)
		if c.leaving && (w.calm || w.r.Intn(3) == 0) {
			continue
		}
		if w.calm || w.r.Intn(3) == 0 {
			c.annotated = w.revision
		}
		for p := range 2 {
			switch event := w.r.Intn(24); {
			case w.calm || event < 6:
				if c.ended[p] { // replaced with the same index
					c.ended[p], c.templates[p] = false, w.template
				}
				if !c.ready[p] {
					c.ready[p], c.readySince[p] = true, w.clock
				}
			case w.quiet:
			case event == 6:
				c.ready[p] = false
			case event == 7:
				c.ready[p], c.ended[p] = false, true
			case event == 8: // deleted, and back
				c.ready[p], c.ended[p], c.templates[p] = false, false, w.template
			}
		}
		if w.calm || w.r.Intn(2) == 0 {
			w.report(c)
		}
		left = append(left, c)
	}
	w.cliques = left
	if w.calm || w.r.Intn(2) == 0 {
		w.make()
	}
}

// facts returns the facts that the controller observes, from the statuses or from the pods.
func (w *groupWorld) facts(byPods bool) lifecycle.GroupUpdate {
	u := lifecycle.GroupUpdate{Update: lifecycle.Update{Target: lifecycle.Target{Generation: "gen-" + w.template}, Turn: w.turn, Progress: w.progress,
		Wanted: w.wanted, MinAvailable: w.minAvailable, StalledAfter: time.Minute}, Revision: w.revision}
	for j := range int(w.wanted) {
		r := lifecycle.GroupReplica{Index: j, Attempt: lifecycle.Attempt{Group: w.attempts[j]}, Revision: w.revision}
		for k := range 2 {
			i := slices.IndexFunc(w.cliques, func(c *podClique) bool { return c.index == j && c.member == k })
			if i < 0 {
				r.Missing = append(r.Missing, fmt.Sprint(k))
				continue
			}
			c := w.cliques[i]
			fact := c.status
			if byPods {
				fact = w.counts(c)
			}
			fact.Name, fact.Replicas, fact.MinAvailable, fact.Terminating, fact.Attempt = fmt.Sprintf("%d-%d", j, k), 2, 1, c.leaving, lifecycle.Attempt{Group: c.attempt}
			if r.Created.IsZero() || c.created.Before(r.Created) {
				r.Created = c.created
			}
			r.Members = append(r.Members, fact)
		}
		if len(r.Members) > 0 {
			u.Replicas = append(u.Replicas, r)
		}
	}
	return u
}

// serving returns which replicas are ready and which are available according to the pods.
func (w *groupWorld) serving() (ready, available map[int]bool) {
	ready, available = map[int]bool{}, map[int]bool{}
	for _, r := range w.facts(true).Replicas {
		if r.Available() {
			available[r.Index] = true
		}
		for i := range r.Members {
			r.Members[i].NotYetAvailable = 0
		}
		if r.Available() {
			ready[r.Index] = true
		}
	}
	return ready, available
}

// outdated returns which replicas have a pod of an earlier template.
func (w *groupWorld) outdated() map[int]bool {
	outdated := map[int]bool{}
	for _, c := range w.cliques {
		outdated[c.index] = outdated[c.index] || c.templates[0] != w.template || c.templates[1] != w.template
	}
	return outdated
}

func (w *groupWorld) pass() string {
	d := lifecycle.DecideGroupUpdate(w.facts(false), w.clock)
	if len(d.Replace) > 0 {
		d = lifecycle.DecideGroupUpdate(w.facts(true), w.clock)
	}
	ready, available := w.serving()
	outdated, taken, others := w.outdated(), 0, int32(len(available))
	for j := range d.Replace {
		switch {
		case !w.turn:
			return fmt.Sprintf("replica %d is replaced without a turn; %s", j, w)
		case !outdated[j]:
			return fmt.Sprintf("replica %d of the current template is replaced; %s", j, w)
		case ready[j]:
			taken++
			if available[j] {
				others--
			}
			if d.Progress.Selected != fmt.Sprint(j) || !d.Progress.InFlight() {
				return fmt.Sprintf("replica %d is taken down, and %+v recorded", j, d.Progress)
			}
		}
	}
	switch before := w.progress; {
	case taken > 1:
		return fmt.Sprintf("%d replicas that serve are taken down; %s", taken, w)
	case taken > 0 && others < min(w.minAvailable, w.wanted-1):
		return fmt.Sprintf("a replica that serves is taken down while %d others are available, %d needed; %s", others, w.minAvailable, w)
	case before != nil && !before.Open() && !w.edited && (d.Progress == nil || !same(before, d.Progress)) && w.quiet:
		return fmt.Sprintf("it had ended: %+v, and now is %+v; %s", before, d.Progress, w)
	case d.Progress.Open() && d.State.Reason == lifecycle.UpdateComplete:
		return "it is complete and open"
	}
	if w.r.Intn(5) == 0 && !w.calm {
		return "" // it crashes before it has recorded the decision
	}
	if d.Progress != w.progress {
		w.edited = false
	}
	w.progress = d.Progress
	for j := range d.Replace {
		w.attempts[j]++
	}
	if ready, _ := w.serving(); w.quiet && len(ready) < int(w.wanted)-1 {
		return fmt.Sprintf("%d of %d replicas serve; %s", len(ready), w.wanted, w)
	}
	return ""
}

func (w *groupWorld) done() bool {
	_, available := w.serving()
	outdated := w.outdated()
	for j := range int(w.wanted) {
		if outdated[j] {
			return false
		}
	}
	return len(available) == int(w.wanted) && len(w.cliques) == 2*int(w.wanted) && !w.progress.Open()
}
