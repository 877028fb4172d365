// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/test/rounds"
)

// TestCliqueUpdateRandom simulates updates with random events; of pods, because updates of all units are decided in the
// same way, and test/sim simulates all levels. The template changes between A, B and C, pods become ready late,
// deletions fail after they were recorded, the turn is given and taken away, and the update is paused. In a quiet world
// only the update deletes pods, and the clique is scaled in only; in a noisy one pods become unready, end, are deleted
// and lost, and the clique is scaled in both directions. What is scaled out has the current template unless the update
// is paused. At every step no pod of the current template is replaced, no ready pod is replaced while fewer others are
// available than needed, and in a quiet world only one at a time. At the end all pods are of the latest template, and
// an update that has ended stays ended.
func TestCliqueUpdateRandom(t *testing.T) {
	t.Parallel()
	for seed := range int64(400 * rounds.Number()) {
		w := newCliqueWorld(rand.New(rand.NewSource(seed)), seed%2 == 0)
		for step := range 120 {
			w.clock = w.clock.Add(time.Duration(w.r.Intn(20)) * time.Second)
			w.happen()
			if fault := w.pass(w.r.Intn(3) > 0); fault != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, fault)
			}
		}
		w.calm = true
		for step := 0; step < 400 && !w.done(); step++ {
			w.clock = w.clock.Add(time.Minute)
			w.happen()
			if fault := w.pass(true); fault != "" {
				t.Fatalf("seed %d, calm step %d: %s", seed, step, fault)
			}
		}
		if !w.done() {
			t.Fatalf("seed %d: at the end there are %+v, %d wanted, made from %v, %s wanted; progress %+v", seed, w.pods, w.replicas, w.template, w.wanted, w.progress)
		}
	}
}

type cliqueWorld struct {
	r           *rand.Rand
	quiet, calm bool
	clock       time.Time
	pods        []lifecycle.Pod
	template    map[string]string // of pods, by UID
	made        int

	wanted, previous       string // templates: the current one, and the last that all pods had
	replicas, minAvailable int32
	minReady               time.Duration
	turn, paused           bool
	settled                lifecycle.IndexSet
	progress               *lifecycle.Progress
	ends                   map[int]lifecycle.Ends
	edited                 bool // since the progress changed
}

// done reports whether the update is complete, and the controller knows it.
func (w *cliqueWorld) done() bool {
	right := int32(0)
	for _, p := range w.pods {
		switch {
		case p.Terminating && p.Unreachable:
		case w.template[p.UID] != w.wanted || !p.Ready || p.Terminating:
			return false
		default:
			right++
		}
	}
	return right == w.replicas && !w.progress.Open()
}

func newCliqueWorld(r *rand.Rand, quiet bool) *cliqueWorld {
	w := &cliqueWorld{r: r, quiet: quiet, clock: now, template: map[string]string{}, wanted: "A", previous: "A", replicas: 1 + r.Int31n(6), turn: true}
	w.minAvailable = 1 + r.Int31n(w.replicas)
	if r.Intn(3) == 0 {
		w.minAvailable = w.replicas
	}
	w.minReady = time.Duration(r.Intn(3)*30) * time.Second
	for i := 0; len(w.pods) < int(w.replicas); i++ {
		if r.Intn(4) == 0 {
			continue // scaling in has left a gap
		}
		w.create(lifecycle.NewPod{Index: i}, w.wanted)
		p := &w.pods[len(w.pods)-1]
		p.Created, p.Scheduled, p.Running, p.Ready = now.Add(time.Duration(r.Intn(5))*time.Second-time.Hour), true, true, true
		p.ReadySince = now.Add(-time.Duration(r.Intn(90)) * time.Second)
	}
	return w
}

func (w *cliqueWorld) create(n lifecycle.NewPod, template string) {
	name := naming.PodName("web", "clique", template, n.Index, n.Replaces)
	if slices.ContainsFunc(w.pods, func(p lifecycle.Pod) bool { return p.Name == name }) {
		return // the API server rejects it
	}
	w.made++
	uid := fmt.Sprint(w.made)
	w.template[uid] = template
	w.pods = append(w.pods, lifecycle.Pod{Name: name, UID: uid, Index: n.Index, Created: w.clock})
}

func (w *cliqueWorld) happen() {
	if !w.calm {
		if w.r.Intn(12) == 0 {
			w.wanted, w.edited = string(rune('A'+w.r.Intn(3))), true
		}
		if w.r.Intn(15) == 0 {
			w.turn = !w.turn
		}
		if w.r.Intn(15) == 0 {
			w.paused = !w.paused
		}
		if w.r.Intn(20) == 0 {
			w.scale()
		}
	} else {
		w.turn, w.paused = true, false
	}
	var pods []lifecycle.Pod
	for _, p := range w.pods {
		switch event := w.r.Intn(24); {
		case p.Terminating && p.Unreachable: // the node does not come back
		case p.Terminating:
			if w.calm || event < 8 {
				continue
			}
			p.Unreachable = !w.quiet && event == 8 && p.Scheduled
		case p.Ended:
		case w.calm || event < 8:
			if p.Scheduled && !p.Ready {
				p.Ready, p.ReadySince = true, w.clock
			}
			p.Running, p.Scheduled = p.Scheduled, true
		case w.quiet:
		case event == 8:
			p.Ready = false
		case event == 9 && p.Scheduled:
			p.Ended, p.Ready, p.Running, p.EndedAt = true, false, false, w.clock
		case event == 10:
			p.Terminating, p.GraceEnds = true, w.clock.Add(30*time.Second)
		}
		pods = append(pods, p)
	}
	w.pods = pods
	w.r.Shuffle(len(w.pods), func(i, j int) { w.pods[i], w.pods[j] = w.pods[j], w.pods[i] })
}

func (w *cliqueWorld) scale() {
	if w.quiet {
		w.replicas = max(1, w.replicas-1)
	} else {
		w.replicas = w.r.Int31n(8)
	}
	w.minAvailable = min(w.minAvailable, w.replicas)
	if !w.quiet && w.replicas > 0 {
		w.minAvailable = max(1, w.minAvailable)
	}
}

// pass runs the controller once: completely, or until it crashes before or after it has recorded its decision. It
// returns a violated invariant.
func (w *cliqueWorld) pass(whole bool) string {
	for i := range w.pods {
		w.pods[i].Outdated = w.template[w.pods[i].UID] != w.wanted
	}
	d := lifecycle.DecidePods(lifecycle.CliquePods{Replicas: w.replicas, Pods: w.pods, Ends: w.ends}, w.clock)
	u := lifecycle.CliqueUpdate{Update: lifecycle.Update{Target: lifecycle.Target{Generation: "gen-" + w.wanted, Template: w.wanted}, Turn: w.turn,
		Paused: w.paused, Progress: w.progress, Wanted: w.replicas, MinAvailable: w.minAvailable, StalledAfter: time.Minute},
		MinReady: w.minReady, Pods: slices.Clone(w.pods), Deleted: map[string]bool{}}
	for _, deletion := range d.Delete {
		u.Deleted[deletion.Pod.UID] = true
	}
	u.Followed = "gen-" + w.previous
	for _, n := range d.Create {
		u.Created = append(u.Created, n.Index)
		if !w.settled.Has(n.Index) && int(w.replicas) > w.settled.Len() {
			u.ScaledOut = append(u.ScaledOut, n.Index)
		}
	}
	update := lifecycle.DecideCliqueUpdate(u, w.clock)
	if fault := w.check(u, update); fault != "" {
		return fault
	}
	w.settled = lifecycle.Settle(w.settled, true, lifecycle.IndicesOf(w.pods), int(w.replicas))
	stays := func() bool { return whole || w.r.Intn(2) == 0 }
	for _, n := range d.Create {
		template := w.wanted
		if update.Previous.Has(n.Index) {
			template = w.previous
		}
		if stays() {
			w.create(n, template)
		}
	}
	if !stays() {
		return ""
	}
	if update.Progress != w.progress {
		w.edited = false
	}
	w.progress, w.ends = update.Progress, d.Ends
	if update.Current {
		w.previous = w.wanted
	}
	for _, deletion := range append(d.Delete, update.Delete...) {
		if i := slices.IndexFunc(w.pods, func(p lifecycle.Pod) bool { return p.UID == deletion.Pod.UID }); i >= 0 && stays() {
			w.pods[i].Terminating, w.pods[i].GraceEnds = true, w.clock.Add(30*time.Second)
		}
	}
	ready := w.ready()
	if w.quiet && ready < w.replicas-1 {
		return fmt.Sprintf("%d of %d pods are ready: %+v, progress %+v", ready, w.replicas, w.pods, w.progress)
	}
	return ""
}

func (w *cliqueWorld) ready() int32 {
	n := int32(0)
	for _, p := range w.pods {
		if p.Ready && !p.Terminating {
			n++
		}
	}
	return n
}

func (w *cliqueWorld) check(u lifecycle.CliqueUpdate, d lifecycle.CliqueUpdateDecision) string {
	available, taken, present := int32(0), int32(0), int32(0)
	for _, p := range w.pods {
		if !p.Terminating && !u.Deleted[p.UID] {
			present++
			if p.IsAvailable(w.minReady, w.clock) {
				available++
			}
		}
	}
	for _, deletion := range d.Delete {
		p := deletion.Pod
		switch {
		case w.template[p.UID] == w.wanted:
			return fmt.Sprintf("%s of the current template is replaced", p.Name)
		case p.Terminating || u.Deleted[p.UID]:
			return fmt.Sprintf("%s is deleted twice", p.Name)
		case !w.turn:
			return fmt.Sprintf("%s is replaced without a turn", p.Name)
		case p.Ready:
			taken++
			if p.IsAvailable(w.minReady, w.clock) {
				available--
			}
			if p.Name != d.Progress.Selected || !d.Progress.InFlight() {
				return fmt.Sprintf("%s is taken down, and %+v recorded", p.Name, d.Progress)
			}
		}
	}
	for _, i := range u.ScaledOut {
		if !w.paused && d.Previous.Has(i) {
			return fmt.Sprintf("what is scaled out at index %d has the previous template", i)
		}
	}
	switch before := w.progress; {
	case w.paused && len(d.Delete) > 0 && !(d.Progress.Open() && w.progress.InFlight()):
		return fmt.Sprintf("%d pods are replaced while the update is paused", len(d.Delete))
	case taken > 1:
		return fmt.Sprintf("%d ready pods are taken down", taken)
	case taken > 0 && available < min(w.minAvailable, w.replicas-1):
		return fmt.Sprintf("a ready pod is taken down while %d others are available, %d needed", available, w.minAvailable)
	case d.State.Reason == "" || d.State.Message == "":
		return "it does not say what has become of it"
	case before != nil && !before.Open() && !w.edited && (d.Progress == nil || !same(before, d.Progress)):
		return fmt.Sprintf("it had ended: %+v, and now is %+v", before, d.Progress)
	case !d.Progress.Open() && d.Progress != nil && d.Progress != u.Progress && !d.Current:
		return "it ends before all pods match the current template"
	case !d.Progress.Open() && d.Progress != nil && d.Progress != u.Progress && present < w.replicas:
		return fmt.Sprintf("it ends while %d pods exist, and %d are wanted", present, w.replicas)
	case d.Progress.Open() && d.State.Reason == lifecycle.UpdateComplete:
		return "it is complete and open"
	}
	return ""
}

func same(a, b *lifecycle.Progress) bool {
	return a.Target == b.Target && a.StartedAt.Equal(b.StartedAt) && a.EndedAt.Equal(b.EndedAt) && a.Selected == b.Selected &&
		slices.Equal(a.Completed, b.Completed)
}
