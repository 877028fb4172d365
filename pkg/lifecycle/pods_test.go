// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// ready returns a ready pod with the given index, an hour old.
func ready(index int) lifecycle.Pod {
	return lifecycle.Pod{
		Name: fmt.Sprintf("p%d", index), UID: fmt.Sprintf("u%d", index), Index: index,
		Created: ago(time.Hour), Scheduled: true, Running: true, Ready: true,
	}
}

func with(p lifecycle.Pod, changes ...func(*lifecycle.Pod)) lifecycle.Pod {
	for _, change := range changes {
		change(&p)
	}
	return p
}

func terminating(p *lifecycle.Pod) { p.Terminating, p.GraceEnds = true, now.Add(30*time.Second) }
func unreachable(p *lifecycle.Pod) { p.Unreachable, p.LostNode = true, "n0" }
func graceOver(p *lifecycle.Pod)   { p.GraceEnds = ago(time.Second) }
func pending(p *lifecycle.Pod)     { p.Scheduled, p.Running, p.Ready = false, false, false }
func notReady(p *lifecycle.Pod)    { p.Ready = false }
func outdated(p *lifecycle.Pod)    { p.Outdated = true }
func silent(p *lifecycle.Pod) {
	p.LostNode, p.Silence = "n", lifecycle.Silence{Reason: lifecycle.NodesDoNotAnswer, Text: "node n does not answer"}
}

func ended(when, lived time.Duration) func(*lifecycle.Pod) {
	return func(p *lifecycle.Pod) {
		p.Ended, p.Running, p.Ready = true, false, false
		p.EndedAt = ago(when)
		p.Created, p.Lived = p.EndedAt.Add(-lived), lived
	}
}

func created(d time.Duration) func(*lifecycle.Pod) {
	return func(p *lifecycle.Pod) { p.Created = ago(d) }
}

func named(name string) func(*lifecycle.Pod) {
	return func(p *lifecycle.Pod) { p.Name, p.UID = name, name }
}

func TestDecidePods(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		c    lifecycle.CliquePods
		want lifecycle.PodDecision
	}{
		"a new clique: all of them, lowest index first": {
			c:    lifecycle.CliquePods{Replicas: 3},
			want: lifecycle.PodDecision{Create: []lifecycle.NewPod{{Index: 0}, {Index: 1}, {Index: 2}}},
		},
		"all desired pods exist: no action": {
			c: lifecycle.CliquePods{Replicas: 2, LeafMinMember: 2, Pods: []lifecycle.Pod{ready(0), ready(1)}},
		},
		"holes are filled first": {
			c:    lifecycle.CliquePods{Replicas: 4, Pods: []lifecycle.Pod{ready(1), ready(3)}},
			want: lifecycle.PodDecision{Create: []lifecycle.NewPod{{Index: 0}, {Index: 2}}},
		},
		"a terminating pod is not counted, and its index waited for": {
			c: lifecycle.CliquePods{Replicas: 3, LeafMinMember: 3, Pods: []lifecycle.Pod{ready(0), with(ready(1), terminating), ready(2)}},
		},
		"scaled in and out again: waits for the index of the terminating pod": {
			c:    lifecycle.CliquePods{Replicas: 4, Pods: []lifecycle.Pod{ready(0), ready(1), with(ready(2), terminating)}},
			want: lifecycle.PodDecision{Create: []lifecycle.NewPod{{Index: 3}}},
		},
		"on an unreachable node the index is free when the grace period is over": {
			c: lifecycle.CliquePods{Replicas: 2, Pods: []lifecycle.Pod{ready(0), with(ready(1), terminating, unreachable, graceOver)}},
			want: lifecycle.PodDecision{
				Create: []lifecycle.NewPod{{Index: 1, Replaces: "u1"}},
				Lost:   []lifecycle.Pod{with(ready(1), terminating, unreachable, graceOver)},
			},
		},
		"on an unreachable node, grace period not over: requeue at its end": {
			c:    lifecycle.CliquePods{Replicas: 2, Pods: []lifecycle.Pod{ready(0), with(ready(1), terminating, unreachable)}},
			want: lifecycle.PodDecision{RequeueAfter: 30 * time.Second},
		},
		"grace period over but the node responds: its kubelet will confirm the end of the pod": {
			c: lifecycle.CliquePods{Replicas: 2, Pods: []lifecycle.Pod{ready(0), with(ready(1), terminating, graceOver)}},
		},
		"a pod that has ended and whose object only finalizers keep is not lost: its index is free when it is gone": {
			c: lifecycle.CliquePods{Replicas: 2, Pods: []lifecycle.Pod{ready(0), with(ready(1), ended(0, time.Minute), terminating, unreachable, graceOver, stopped)}},
		},
		"one that ended within its grace period, on a node that became unreachable then, would stay for ever": {
			c: lifecycle.CliquePods{Replicas: 2, Pods: []lifecycle.Pod{ready(0), with(ready(1), ended(0, time.Minute), terminating, unreachable, graceOver)}},
			want: lifecycle.PodDecision{
				Create: []lifecycle.NewPod{{Index: 1, Replaces: "u1"}},
				Lost:   []lifecycle.Pod{with(ready(1), ended(0, time.Minute), terminating, unreachable, graceOver)},
			},
		},
		"lost and replaced: nothing more": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{
				with(ready(0), terminating, unreachable, graceOver), with(ready(0), named("successor"))}},
		},
		"the successor is lost too: its successor is named after it, not after the first": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{
				with(ready(0), named("second"), created(time.Minute), terminating, unreachable, graceOver),
				with(ready(0), named("first"), terminating, unreachable, graceOver)}},
			want: lifecycle.PodDecision{
				Create: []lifecycle.NewPod{{Index: 0, Replaces: "second"}},
				Lost:   []lifecycle.Pod{with(ready(0), named("second"), created(time.Minute), terminating, unreachable, graceOver)},
			},
		},
		"scaling in waits until the PodGroup is lowered": {
			c:    lifecycle.CliquePods{Replicas: 1, LeafMinMember: 3, Pods: []lifecycle.Pod{ready(0), ready(1), ready(2)}},
			want: lifecycle.PodDecision{Deferred: 2},
		},
		"scaling in goes as far as the PodGroup allows": {
			c: lifecycle.CliquePods{Replicas: 1, LeafMinMember: 2, Pods: []lifecycle.Pod{ready(0), ready(1), ready(2)}},
			want: lifecycle.PodDecision{Deferred: 1,
				Delete: []lifecycle.Deletion{{Pod: ready(2), Reason: lifecycle.DeletedScaleIn}}},
		},
		"terminating pods are not selected again": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{ready(0), ready(1), with(ready(2), terminating)}},
			want: lifecycle.PodDecision{
				Delete: []lifecycle.Deletion{{Pod: ready(1), Reason: lifecycle.DeletedScaleIn}}},
		},
		"scaled to zero": {
			c: lifecycle.CliquePods{Replicas: 0, Pods: []lifecycle.Pod{ready(0), with(ready(1), pending)}},
			want: lifecycle.PodDecision{Delete: []lifecycle.Deletion{
				{Pod: with(ready(1), pending), Reason: lifecycle.DeletedScaleIn}, {Pod: ready(0), Reason: lifecycle.DeletedScaleIn}}},
		},
		"a pod that ended is replaced immediately the first time; its index is in use until it is gone": {
			c: lifecycle.CliquePods{Replicas: 2, LeafMinMember: 2, Pods: []lifecycle.Pod{ready(0), with(ready(1), ended(0, time.Minute))}},
			want: lifecycle.PodDecision{
				Delete: []lifecycle.Deletion{{Pod: with(ready(1), ended(0, time.Minute)), Reason: lifecycle.DeletedEnded}},
				Ends:   map[int]lifecycle.Ends{1: {Count: 1, Last: now}},
			},
		},
		"the second time in a row after 10 s": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{with(ready(0), ended(4*time.Second, time.Minute))},
				Ends: map[int]lifecycle.Ends{0: {Count: 1, Last: ago(64 * time.Second)}}},
			want: lifecycle.PodDecision{RequeueAfter: 6 * time.Second,
				Ends: map[int]lifecycle.Ends{0: {Count: 1, Last: ago(64 * time.Second)}}},
		},
		"after the back-off it is deleted": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{with(ready(0), ended(10*time.Second, time.Minute))},
				Ends: map[int]lifecycle.Ends{0: {Count: 1, Last: ago(70 * time.Second)}}},
			want: lifecycle.PodDecision{
				Delete: []lifecycle.Deletion{{Pod: with(ready(0), ended(10*time.Second, time.Minute)), Reason: lifecycle.DeletedEnded}},
				Ends:   map[int]lifecycle.Ends{0: {Count: 2, Last: ago(10 * time.Second)}}},
		},
		"one that was counted, and whose deletion failed, is not counted twice": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{with(ready(0), ended(0, time.Minute))},
				Ends: map[int]lifecycle.Ends{0: {Count: 1, Last: now}}},
			want: lifecycle.PodDecision{
				Delete: []lifecycle.Deletion{{Pod: with(ready(0), ended(0, time.Minute)), Reason: lifecycle.DeletedEnded}},
				Ends:   map[int]lifecycle.Ends{0: {Count: 1, Last: now}}},
		},
		"an index without a history of its own backs off with the others that have none": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{with(ready(0), ended(4*time.Second, time.Minute))},
				Ends: map[int]lifecycle.Ends{-1: {Count: 1, Last: ago(time.Minute)}}},
			want: lifecycle.PodDecision{RequeueAfter: 6 * time.Second, Ends: map[int]lifecycle.Ends{-1: {Count: 1, Last: ago(time.Minute)}}},
		},
		"a pod that lived long starts a new history": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{with(ready(0), ended(0, 10*time.Minute))},
				Ends: map[int]lifecycle.Ends{0: {Count: 5, Last: ago(11 * time.Minute)}}},
			want: lifecycle.PodDecision{
				Delete: []lifecycle.Deletion{{Pod: with(ready(0), ended(0, 10*time.Minute)), Reason: lifecycle.DeletedEnded}},
				Ends:   map[int]lifecycle.Ends{0: {Count: 1, Last: now}}},
		},
		"an old history is forgotten": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{ready(0)},
				Ends: map[int]lifecycle.Ends{0: {Count: 5, Last: ago(15 * time.Minute)}}},
		},
		"a young history is kept over the gap between deletion and replacement": {
			c: lifecycle.CliquePods{Replicas: 1, Ends: map[int]lifecycle.Ends{0: {Count: 2, Last: ago(time.Minute)}}},
			want: lifecycle.PodDecision{Create: []lifecycle.NewPod{{Index: 0}},
				Ends: map[int]lifecycle.Ends{0: {Count: 2, Last: ago(time.Minute)}}},
		},
		"scaling in takes ended pods first, and then does not replace them": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{with(ready(0), ended(0, time.Minute)), ready(1)}},
			want: lifecycle.PodDecision{
				Delete: []lifecycle.Deletion{{Pod: with(ready(0), ended(0, time.Minute)), Reason: lifecycle.DeletedScaleIn}}},
		},
		"of two pods with one index the younger is deleted": {
			c: lifecycle.CliquePods{Replicas: 2, Pods: []lifecycle.Pod{
				with(ready(0), named("younger"), created(time.Minute)), ready(0), ready(1)}},
			want: lifecycle.PodDecision{Delete: []lifecycle.Deletion{
				{Pod: with(ready(0), named("younger"), created(time.Minute)), Reason: lifecycle.DeletedDuplicate}}},
		},
		"a pod without an index is counted": {
			c:    lifecycle.CliquePods{Replicas: 2, Pods: []lifecycle.Pod{ready(-1)}},
			want: lifecycle.PodDecision{Create: []lifecycle.NewPod{{Index: 0}}},
		},
		"a pod without an index is deleted first": {
			c: lifecycle.CliquePods{Replicas: 1, Pods: []lifecycle.Pod{ready(-1), with(ready(0), pending)}},
			want: lifecycle.PodDecision{
				Delete: []lifecycle.Deletion{{Pod: ready(-1), Reason: lifecycle.DeletedScaleIn}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, lifecycle.DecidePods(tc.c, now), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecidePodsBesideOthers: Others are pods with the same clique name that another object owns, or none.
func TestDecidePodsBesideOthers(t *testing.T) {
	t.Parallel()
	former := func(changes ...func(*lifecycle.Pod)) lifecycle.Pod {
		return with(with(ready(1), named("former")), changes...)
	}
	orphan := func(p *lifecycle.Pod) { p.Orphan = true }
	unbound := func(p *lifecycle.Pod) { p.Scheduled = false }
	rest := []lifecycle.NewPod{{Index: 0}, {Index: 2}}
	for name, tc := range map[string]struct {
		other lifecycle.Pod
		want  lifecycle.PodDecision
	}{
		"a running pod blocks its index": {
			other: former(), want: lifecycle.PodDecision{Create: rest, Blocked: []lifecycle.Pod{former()}}},
		"one that terminates too": {
			other: former(terminating), want: lifecycle.PodDecision{Create: rest, Blocked: []lifecycle.Pod{former(terminating)}}},
		"also when its grace period is over and the node answers": {
			other: former(terminating, graceOver), want: lifecycle.PodDecision{Create: rest, Blocked: []lifecycle.Pod{former(terminating, graceOver)}}},
		"one that was never bound too": {
			other: former(terminating, unbound), want: lifecycle.PodDecision{Create: rest, Blocked: []lifecycle.Pod{former(terminating, unbound)}}},
		"one on an unreachable node until the grace period is over": {
			other: former(terminating, unreachable), want: lifecycle.PodDecision{Create: rest, RequeueAfter: 30 * time.Second,
				Blocked: []lifecycle.Pod{former(terminating, unreachable)}}},
		"then it is lost": {
			other: former(terminating, unreachable, graceOver), want: lifecycle.PodDecision{
				Create: []lifecycle.NewPod{{Index: 0}, {Index: 1, Replaces: "former"}, {Index: 2}},
				Lost:   []lifecycle.Pod{former(terminating, unreachable, graceOver)}}},
		"a pod that ended is deleted with its owner, and blocks its index until then": {
			other: former(ended(0, time.Minute)), want: lifecycle.PodDecision{Create: rest, Blocked: []lifecycle.Pod{former(ended(0, time.Minute))}}},
		"a pod that ended without an owner blocks no index": {
			other: former(ended(0, time.Minute), orphan), want: lifecycle.PodDecision{Create: []lifecycle.NewPod{{Index: 0}, {Index: 1}, {Index: 2}}}},
		"a running pod without an owner blocks its index": {
			other: former(orphan), want: lifecycle.PodDecision{Create: rest, Blocked: []lifecycle.Pod{former(orphan)}}},
		"an index that is not needed is ignored": {
			other: with(ready(3), named("former")), want: lifecycle.PodDecision{Create: []lifecycle.NewPod{{Index: 0}, {Index: 1}, {Index: 2}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lifecycle.DecidePods(lifecycle.CliquePods{Replicas: 3, Others: []lifecycle.Pod{tc.other}}, now)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInDeletionOrder(t *testing.T) {
	t.Parallel()
	want := []lifecycle.Pod{
		with(ready(0), ended(time.Minute, time.Minute), named("ended")),
		with(ready(-1), named("without an index")),
		with(ready(1), pending, named("never scheduled")),
		with(ready(2), notReady, named("not ready")),
		with(ready(3), outdated, named("outdated")),
		with(ready(4), created(time.Minute), named("newest")),
		with(ready(6), named("highest index")),
		with(ready(5), named("a")),
		with(ready(5), named("b")),
	}
	for seed := range int64(50) {
		pods := slices.Clone(want)
		rand.New(rand.NewSource(seed)).Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		if diff := cmp.Diff(want, lifecycle.InDeletionOrder(pods)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

func TestEndedDelay(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for ends := range 9 {
		got = append(got, lifecycle.EndedDelay(ends))
	}
	s := time.Second
	want := []time.Duration{0, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s, 300 * s}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := lifecycle.EndedDelay(1 << 40); got != 5*time.Minute {
		t.Errorf("after very many ends: %v", got)
	}
}

// TestNoIndexTwice simulates a clique in a cluster with random events, and a controller whose cache is behind.
// Whatever the controller observes, at most one pod of an index is alive (not terminating) at any time. When the
// events stop, the desired pods exist and the decision is empty.
func TestNoIndexTwice(t *testing.T) {
	t.Parallel()
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		w := &world{r: r, clock: now, pods: map[string]lifecycle.Pod{}}
		w.seen = w.list()
		c := lifecycle.CliquePods{Replicas: 1 + r.Int31n(5)}
		for step := range 200 {
			calm := step >= 150 // only events that complete begun changes occur, and the cache is current
			w.clock = w.clock.Add(time.Duration(r.Intn(20)) * time.Second)
			if calm {
				w.clock = w.clock.Add(time.Minute)
			}
			if !calm && r.Intn(10) == 0 {
				c.Replicas = r.Int31n(7)
			}
			c.LeafMinMember = 0
			if !calm && r.Intn(3) == 0 {
				c.LeafMinMember = r.Int31n(7)
			}
			w.happen(calm)
			if calm || r.Intn(2) == 0 {
				w.seen = w.list()
			}
			c.Pods = slices.Clone(w.seen)
			r.Shuffle(len(c.Pods), func(i, j int) { c.Pods[i], c.Pods[j] = c.Pods[j], c.Pods[i] })
			d := lifecycle.DecidePods(c, w.clock)
			c.Ends = d.Ends
			w.act(d)
			if index, twice := w.twice(); twice {
				t.Fatalf("seed %d, step %d: two pods of index %d are alive: %+v", seed, step, index, w.list())
			}
			if kept := len(c.Pods) - len(d.Delete); len(d.Delete) > 0 && kept < 0 {
				t.Fatalf("seed %d: deletes %d of %d pods", seed, len(d.Delete), len(c.Pods))
			}
		}
		c.Pods = w.list()
		n := lifecycle.Count(c.Pods)
		if n.Pods != c.Replicas || n.Ready != c.Replicas {
			t.Errorf("seed %d: %d replicas are wanted, there are %+v", seed, c.Replicas, c.Pods)
		}
		if d := lifecycle.DecidePods(c, w.clock); len(d.Create)+len(d.Delete)+d.Deferred > 0 {
			t.Errorf("seed %d: the decision does not become empty: %+v", seed, d)
		}
	}
}

// world contains a clique's pods in the API server, and a copy of them in a cache from some earlier time.
type world struct {
	r     *rand.Rand
	clock time.Time
	next  int
	pods  map[string]lifecycle.Pod // by name
	seen  []lifecycle.Pod
}

func (w *world) list() []lifecycle.Pod {
	pods := make([]lifecycle.Pod, 0, len(w.pods))
	for _, p := range w.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b lifecycle.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// act carries out the decision. The API server rejects a name that is in use, and a deletion whose UID does not exist.
func (w *world) act(d lifecycle.PodDecision) {
	for _, del := range d.Delete {
		if p, ok := w.pods[del.Pod.Name]; ok && p.UID == del.Pod.UID && !p.Terminating {
			p.Terminating, p.GraceEnds = true, w.clock.Add(30*time.Second)
			w.pods[p.Name] = p
		}
	}
	for _, n := range d.Create {
		name := naming.PodName("c", "clique", "template", n.Index, n.Replaces)
		if _, taken := w.pods[name]; taken {
			continue
		}
		w.next++
		w.pods[name] = lifecycle.Pod{Name: name, UID: fmt.Sprint(w.next), Index: n.Index, Created: w.clock}
	}
}

// happen moves every pod one step forward, or applies a random event to it.
func (w *world) happen(calm bool) {
	for _, p := range w.list() {
		switch event := w.r.Intn(12); {
		case p.Terminating && p.Unreachable && !calm && event < 9: // no kubelet confirms the end
			continue
		case p.Terminating && (calm || event < 6):
			delete(w.pods, p.Name)
			continue
		case p.Terminating && event == 6:
			p.Unreachable = p.Scheduled
		case p.Terminating, p.Ended:
		case calm || event < 5:
			p.Scheduled, p.Running, p.Ready = true, true, p.Scheduled
		case event == 5 && p.Scheduled:
			p.Ended, p.Running, p.Ready, p.EndedAt = true, false, false, w.clock
		case event == 6:
			p.Terminating, p.GraceEnds = true, w.clock.Add(30*time.Second)
		case event == 7:
			p.Ready = false
		}
		w.pods[p.Name] = p
	}
}

// twice returns an index with two pods that may run at the same time, neither terminating nor ended.
func (w *world) twice() (int, bool) {
	alive := map[int]bool{}
	for _, p := range w.list() {
		if p.Terminating {
			continue
		}
		if alive[p.Index] {
			return p.Index, true
		}
		alive[p.Index] = true
	}
	return 0, false
}
