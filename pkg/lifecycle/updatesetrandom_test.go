// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/test/rounds"
)

// TestSetUpdateRandom simulates updates of a set whose PodCliques and scaling groups replace their pods some steps
// after their turn has come, and report late. Pods of an object without a turn are never replaced by the update; the
// next replica is updated only when all of the previous one follows; at the end all replicas follow, and an update
// that has ended stays ended.
func TestSetUpdateRandom(t *testing.T) {
	t.Parallel()
	for seed := range int64(400 * rounds.Number()) {
		w := &setWorld{r: rand.New(rand.NewSource(seed)), clock: now, revision: 1, template: "A", current: -1}
		w.scale(1 + w.r.Intn(5))
		for step := range 150 {
			w.clock = w.clock.Add(time.Duration(w.r.Intn(20)) * time.Second)
			w.happen()
			if fault := w.pass(); fault != "" {
				t.Fatalf("seed %d, step %d: %s; %s", seed, step, fault, w)
			}
		}
		w.calm, w.onDelete = true, false
		if w.progress != nil && !w.progress.Open() {
			w.edit(map[string]string{"A": "B", "B": "C", "C": "A"}[w.template]) // OnDelete may have left outdated pods
		}
		for step := 0; step < 400 && !w.done(); step++ {
			w.clock = w.clock.Add(time.Minute)
			w.happen()
			if fault := w.pass(); fault != "" {
				t.Fatalf("seed %d, calm step %d: %s; %s", seed, step, fault, w)
			}
		}
		if !w.done() {
			t.Fatalf("seed %d: at the end: %s", seed, w)
		}
	}
}

// unit is a PodClique (number 0) or scaling group (1) of a replica: its actual state, and its state according to its
// status.
type unit struct {
	replica, number int
	templates       [2]string // of its pods
	ready           [2]bool
	told            int64
	turn            bool
	open            bool
	revision        int64 // of its status
	followed        string
	updating        bool
	available       bool
}

type setWorld struct {
	r              *rand.Rand
	calm, onDelete bool
	clock          time.Time
	units          []*unit
	replicas       int
	revision       int64
	template       string
	progress       *lifecycle.Progress
	current        int
	updated        int
}

func (w *setWorld) String() string {
	text := fmt.Sprintf("%s (revision %d), OnDelete %v, current %d, progress %+v", w.template, w.revision, w.onDelete, w.current, w.progress)
	for _, u := range w.units {
		text += fmt.Sprintf("\n%+v", *u)
	}
	return text
}

func (w *setWorld) scale(n int) {
	w.replicas = n
	w.units = slices.DeleteFunc(w.units, func(u *unit) bool { return u.replica >= n })
	for i := range n {
		for k := range 2 {
			if !slices.ContainsFunc(w.units, func(u *unit) bool { return u.replica == i && u.number == k }) {
				w.units = append(w.units, &unit{replica: i, number: k, templates: [2]string{w.template, w.template}, told: w.revision})
			}
		}
	}
	slices.SortFunc(w.units, func(a, b *unit) int { return 2*(a.replica-b.replica) + a.number - b.number })
}

func (w *setWorld) edit(template string) {
	if template == w.template {
		return
	}
	w.template = template
	w.revision++
	p := &lifecycle.Progress{Target: lifecycle.Target{Generation: "gen-" + template}, StartedAt: w.clock, LastProgress: w.clock}
	if w.onDelete {
		p.EndedAt = w.clock
	}
	if !w.progress.Open() || w.onDelete {
		w.current = -1
	} else {
		p.Selected, p.SelectedAt = w.progress.Selected, w.progress.SelectedAt
	}
	w.progress = p
}

func (w *setWorld) happen() {
	if !w.calm {
		switch w.r.Intn(30) {
		case 0, 1:
			w.edit(string(rune('A' + w.r.Intn(3))))
		case 2:
			w.scale(w.r.Intn(6))
		case 3:
			w.onDelete = !w.onDelete
		}
	}
	for _, u := range w.units {
		// The annotations that the set writes.
		if w.calm || w.r.Intn(2) == 0 {
			u.told, u.turn = w.revision, u.replica == w.current && w.progress.Open() && !w.onDelete
		}
		// The actions of its controller, at the earliest after the annotations were written.
		knows := u.told == w.revision
		u.open = u.turn && knows && (u.templates[0] != w.template || u.templates[1] != w.template || u.open && !(u.ready[0] && u.ready[1]))
		for p := range 2 {
			switch event := w.r.Intn(12); {
			case u.open && u.templates[p] != w.template && (p == 0 || u.ready[0] || !u.ready[1]):
				if w.calm || event < 4 {
					u.templates[p], u.ready[p] = w.template, false
				}
			case w.calm || event < 4:
				u.ready[p] = true
			case event == 4:
				u.ready[p] = false
			case event == 5 && knows: // deleted, and back
				u.templates[p], u.ready[p] = w.template, false
			}
		}
		if knows && (w.calm || w.r.Intn(3) == 0) {
			u.revision, u.updating, u.available = w.revision, u.open, u.ready[0] || u.ready[1]
			switch all := u.templates[0] == w.template && u.templates[1] == w.template; {
			case all:
				u.followed = "gen-" + w.template
			case u.followed == "gen-"+w.template:
				u.followed = ""
			}
		}
	}
}

func (w *setWorld) facts() lifecycle.SetUpdate {
	u := lifecycle.SetUpdate{Update: lifecycle.Update{Target: lifecycle.Target{Generation: "gen-" + w.template}, OnDelete: w.onDelete, Progress: w.progress,
		StalledAfter: time.Minute}, Updated: w.updated, Waits: map[string]lifecycle.UpdateState{}}
	for i := range w.replicas {
		r := lifecycle.SetReplica{Index: i, Revision: w.revision, Generation: "gen-" + w.template}
		for _, unit := range w.units {
			n := int32(0)
			if unit.available {
				n = 1
			}
			switch {
			case unit.replica != i:
			case unit.number == 0:
				r.Cliques = append(r.Cliques, lifecycle.Clique{Name: "router", Observed: true, MinAvailable: 1, Ready: n, Scheduled: n,
					Revision: unit.revision, Followed: unit.followed, Updating: unit.updating})
			default:
				r.Groups = append(r.Groups, lifecycle.ScalingGroup{Name: "model", Observed: true, MinAvailable: 1, AvailableReplicas: n, ScheduledReplicas: n,
					Revision: unit.revision, Followed: unit.followed, Updating: unit.updating})
			}
		}
		u.Replicas = append(u.Replicas, r)
	}
	return u
}

// follows reports whether all pods of a replica are of the current template.
func (w *setWorld) follows(i int) bool {
	return !slices.ContainsFunc(w.units, func(u *unit) bool {
		return u.replica == i && (u.templates[0] != w.template || u.templates[1] != w.template)
	})
}

func (w *setWorld) pass() string {
	before := w.progress
	d := lifecycle.DecideSetUpdate(w.facts(), w.clock)
	next := -1
	if d.Progress != nil && d.Progress.Selected != "" {
		next, _ = strconv.Atoi(d.Progress.Selected)
	}
	switch {
	case before != nil && !before.Open() && (d.Progress == nil || !same(before, d.Progress)):
		return fmt.Sprintf("it had ended, and now is %+v", d.Progress)
	case next >= 0 && (w.onDelete || !d.Progress.Open()):
		return fmt.Sprintf("replica %d is selected", next)
	case w.current >= 0 && w.current < w.replicas && next != w.current && !w.onDelete && !w.follows(w.current):
		return fmt.Sprintf("it continues from replica %d to %d", w.current, next)
	case before.Open() && !d.Progress.Open() && !w.onDelete:
		for i := range w.replicas {
			if !w.follows(i) {
				return fmt.Sprintf("it ends, and replica %d does not follow", i)
			}
		}
	case d.Progress.Open() && d.State.Reason == lifecycle.UpdateComplete, d.Progress.Open() && d.State.Reason == "":
		return fmt.Sprintf("it is open and says %+v", d.State)
	}
	if w.r.Intn(5) == 0 && !w.calm {
		return "" // it crashes before it has recorded the decision
	}
	if d.Progress != nil {
		d.Progress.Completed = nil
	} // the status does not say it
	w.progress, w.current, w.updated = d.Progress, next, int(d.UpdatedCliques+d.UpdatedGroups)
	return ""
}

func (w *setWorld) done() bool {
	for i := range w.replicas {
		if !w.follows(i) {
			return false
		}
	}
	return !w.progress.Open()
}
