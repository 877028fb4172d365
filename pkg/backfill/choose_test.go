// SPDX-License-Identifier: Apache-2.0

package backfill

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	const week, century = 7 * 24 * 3600, 100 * 365 * 24 * 3600
	for name, tt := range map[string]struct {
		nodes  []int64
		closed []int
		pods   []pod
		need   int // pods of 4 GPUs
		starts time.Time
		on     []string // nil: there is no promise
		behind []int
		inUse  int64
	}{
		"it fits":                                           {nodes: []int64{4, 4}, need: 2, starts: start, on: []string{"n0", "n1"}},
		"the earliest end that suffices":                    {nodes: []int64{4, 4, 4}, pods: []pod{{node: 0, gpus: 4, ends: at(30)}, {node: 1, gpus: 4, ends: at(10)}, {node: 2, gpus: 4, ends: at(20)}}, need: 2, starts: at(20), on: []string{"n1", "n2"}, behind: []int{1, 2}, inUse: 8},
		"several end at once":                               {nodes: []int64{4, 4}, pods: []pod{{node: 0, gpus: 2, ends: at(9)}, {node: 0, gpus: 2, ends: at(9)}}, need: 2, starts: at(9), on: []string{"n0", "n1"}, behind: []int{0, 1}, inUse: 4},
		"one does not say":                                  {nodes: []int64{4, 4}, pods: []pod{{node: 0, gpus: 4, ends: at(9)}, {node: 1, gpus: 1}}, need: 2, on: []string{"n0", "n1"}, behind: []int{0, 1}, inUse: 5},
		"one does not say, and is not waited for":           {nodes: []int64{4, 4}, pods: []pod{{node: 0, gpus: 4, ends: at(9)}, {node: 1, gpus: 1}}, need: 1, starts: at(9), on: []string{"n0"}, behind: []int{0}, inUse: 4},
		"none says: the nodes with the least in use":        {nodes: []int64{8, 8, 8}, pods: []pod{{node: 0, gpus: 8}, {node: 1, gpus: 5}, {node: 2, gpus: 1}, {node: 2, gpus: 6}}, need: 2, on: []string{"n1", "n1"}, behind: []int{1}, inUse: 5},
		"what lasts is waited for last":                     {nodes: []int64{4, 4}, pods: []pod{{node: 0, gpus: 1, lasts: true}, {node: 1, gpus: 4}}, need: 1, on: []string{"n1"}, behind: []int{1}, inUse: 4},
		"what lasts is waited for if it must be":            {nodes: []int64{4}, pods: []pod{{node: 0, gpus: 1, lasts: true}}, need: 1, on: []string{"n0"}, behind: []int{0}, inUse: 1},
		"a promise that was not kept says nothing":          {nodes: []int64{4, 4}, pods: []pod{{node: 0, gpus: 4, ends: at(-1)}, {node: 1, gpus: 4, ends: at(week)}}, need: 1, starts: at(week), on: []string{"n1"}, behind: []int{1}, inUse: 4},
		"an end that is more than a week away is not known": {nodes: []int64{4, 4}, pods: []pod{{node: 0, gpus: 4, ends: at(week + 1)}, {node: 1, gpus: 3, ends: at(century)}}, need: 1, on: []string{"n1"}, behind: []int{1}, inUse: 3},
		"all promises were not kept":                        {nodes: []int64{4}, pods: []pod{{node: 0, gpus: 4, ends: at(-century)}}, need: 1, on: []string{"n0"}, behind: []int{0}, inUse: 4},
		"it ends now":                                       {nodes: []int64{4}, pods: []pod{{node: 0, gpus: 4, ends: start}}, need: 1, on: []string{"n0"}, behind: []int{0}, inUse: 4},
		"a node is drained":                                 {nodes: []int64{4, 4}, closed: []int{0}, pods: []pod{{node: 0, gpus: 4, ends: at(1)}, {node: 1, gpus: 4, ends: at(2)}}, need: 1, starts: at(2), on: []string{"n1"}, behind: []int{1}, inUse: 4},
		"too large":                                         {nodes: []int64{4, 4}, pods: []pod{{node: 0, gpus: 4, ends: at(1)}}, need: 3},
		"too large for the nodes that are left":             {nodes: []int64{4, 4}, closed: []int{1}, need: 2},
		"no nodes":                                          {need: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(tt.nodes...)
			c.pods = tt.pods
			for _, n := range tt.closed {
				c.closed[n] = true
			}
			p := c.choose(t, tt.need, 4, start)
			if tt.on == nil {
				if p != nil {
					t.Fatalf("a promise: %+v", p)
				}
				return
			}
			if p == nil {
				t.Fatal("no promise")
			}
			var on []string
			for _, pl := range p.Plan {
				on = append(on, pl.Node)
			}
			slices.Sort(on)
			if diff := cmp.Diff(tt.on, on); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if !p.Starts.Equal(tt.starts) || !slices.Equal(p.Behind, tt.behind) || p.InUse != tt.inUse {
				t.Errorf("starts %v behind %v with %d in use, want %v, %v, %d", p.Starts, p.Behind, p.InUse, tt.starts, tt.behind, tt.inUse)
			}
		})
	}
}

// TestChooseInTime: without time there is no promise, and it is said.
func TestChooseInTime(t *testing.T) {
	t.Parallel()
	c := newCluster(4)
	c.need = 4
	p, cut := Choose(problemOf(t, 1), c, nil, start, placement.Budget{Expired: func() bool { return true }})
	if p != nil || !cut {
		t.Errorf("promise %+v, cut %t", p, cut)
	}
}

// randomCluster returns a cluster with running pods, and a gang of so many pods.
func randomCluster(r *rand.Rand) (c *cluster, pods int, gpus int64) {
	c = newCluster()
	for range 1 + r.Intn(4) {
		c.gpus = append(c.gpus, int64(1+r.Intn(8)))
	}
	c.closed = make([]bool, len(c.gpus))
	for range r.Intn(10) {
		p := pod{node: r.Intn(len(c.gpus)), gpus: int64(1 + r.Intn(4)), lasts: r.Intn(8) == 0}
		if r.Intn(4) > 0 {
			p.ends = at(r.Intn(20) - 2)
		}
		if c.free(p.node) >= p.gpus {
			c.run(p)
		}
	}
	return c, 1 + r.Intn(4), int64(1 + r.Intn(4))
}

// TestShadowTimes compares the starts that are promised with a replay: all pods end as they promise, and the gang
// starts at the first moment at which it fits.
func TestShadowTimes(t *testing.T) {
	t.Parallel()
	known, unknown, none := 0, 0, 0
	for seed := range int64(10_000) {
		r := rand.New(rand.NewSource(seed))
		c, pods, gpus := randomCluster(r)
		p := c.choose(t, pods, gpus, start)
		replay := func(gone func(pod) bool) bool {
			room := int64(0)
			for n, free := range c.gpus {
				for _, x := range c.pods {
					if x.node == n && !gone(x) {
						free -= x.gpus
					}
				}
				room += max(0, free) / gpus
			}
			return room >= int64(pods)
		}
		want := time.Time{}
		for s := 0; s < 30 && want.IsZero(); s++ {
			if replay(func(x pod) bool { return x.ends.After(start) && !x.ends.After(at(s)) }) {
				want = at(s)
			}
		}
		switch {
		case p == nil && replay(func(pod) bool { return true }):
			t.Fatalf("seed %d: no promise, although the gang fits when all have ended", seed)
		case p == nil:
			none++
		case !p.Starts.Equal(want):
			t.Fatalf("seed %d: starts %v, want %v", seed, p.Starts, want)
		case want.IsZero():
			unknown++
		default:
			known++
		}
	}
	if known < 3000 || unknown < 500 || none < 500 {
		t.Errorf("%d starts were known, %d not, %d gangs did not fit: the sample says little", known, unknown, none)
	}
}

// TestBackfillDelaysNobody: one or two gangs have promises, and others come at random: each starts on a node if there
// is room beside what is reserved from it. Pods end when they promise, or earlier; those that promise nothing do not
// end. Each gang has its room at the time that it was promised.
func TestBackfillDelaysNobody(t *testing.T) {
	t.Parallel()
	passed, beside, refused, second := 0, 0, 0, 0
	for seed := range int64(10_000) {
		r := rand.New(rand.NewSource(seed))
		c, pods, gpus := randomCluster(r)
		type held struct {
			*Promise
			name string
			gpus int64
		}
		var promises []held
		for _, name := range []string{"a", "b"} {
			c.asker = reservations.Asker{Gang: types.NamespacedName{Name: name}}
			p := c.choose(t, pods, gpus, start)
			if p != nil && !p.Starts.IsZero() {
				promises = append(promises, held{p, name, gpus})
				c.keep(t, name, p, start)
			}
			pods, gpus = 1+r.Intn(3), int64(1+r.Intn(3))
		}
		if len(promises) == 2 {
			second++
		}
		done := map[string]bool{}
		for s := 0; s <= 20; s++ {
			for id := range c.pods {
				if x := &c.pods[id]; !x.ends.IsZero() && x.ends.After(start) && (!x.ends.After(at(s)) || r.Intn(10) == 0) {
					x.gone = true
				}
			}
			for _, p := range promises {
				if done[p.name] || p.Starts.After(at(s)) {
					continue
				}
				done[p.name] = true
				a := reservations.Asker{Gang: types.NamespacedName{Name: p.name}}
				for n := range c.gpus {
					need := planned(p.Promise, p.gpus)[nameOf(n)]
					if left := c.left(n, a); left < need.Resources[gpu] {
						t.Fatalf("seed %d: gang %s finds %d GPUs on %s after %d s, was promised %d", seed, p.name, left, nameOf(n), s, need.Resources[gpu])
					}
					for range need.Pods {
						c.run(pod{node: n, gpus: p.gpus})
					}
				}
				c.set.EndOfGang(a.Gang, nil)
			}
			for range r.Intn(4) {
				x := pod{node: r.Intn(len(c.gpus)), gpus: int64(1 + r.Intn(4))}
				if r.Intn(3) > 0 {
					x.ends = at(s + 1 + r.Intn(10))
				}
				a := reservations.Asker{Gang: types.NamespacedName{Name: "other"}, Ends: x.ends}
				if c.left(x.node, a) < x.gpus {
					refused++
					continue
				}
				if c.left(x.node, reservations.Asker{Gang: a.Gang}) < x.gpus {
					passed++
				} else {
					beside++
				}
				id := c.run(x)
				c.set.Occupy(a, nameOf(x.node), reservations.Occupied{Pod: uidOf(id), Amount: amountOf(1, x.gpus)})
			}
		}
	}
	if passed < 3000 || beside < 3000 || refused < 3000 || second < 1000 {
		t.Errorf("%d passed, %d started beside, %d were refused, %d second gangs: the sample says little", passed, beside, refused, second)
	}
}

func TestGivesWay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		behind []Pod
		to     Promise
		want   bool
	}{
		"much earlier":                   {behind: []Pod{{Ends: at(1000)}}, to: Promise{Starts: at(800)}, want: true},
		"a little earlier":               {behind: []Pod{{Ends: at(1000)}}, to: Promise{Starts: at(950)}},
		"a minute of a long time":        {behind: []Pod{{Ends: at(10000)}}, to: Promise{Starts: at(9900)}},
		"later":                          {behind: []Pod{{Ends: at(1000)}}, to: Promise{Starts: at(2000)}},
		"the last one counts":            {behind: []Pod{{Ends: at(1000)}, {Ends: at(100)}}, to: Promise{Starts: at(500)}, want: true},
		"nothing is waited for any more": {to: Promise{Starts: start}},
		"a start becomes known":          {behind: []Pod{{Ends: at(1000)}, {}}, to: Promise{Starts: at(5000)}, want: true},
		"one runs longer than it said":   {behind: []Pod{{Ends: at(-5)}}, to: Promise{Starts: at(5000)}, want: true},
		"it would start in a century":    {behind: []Pod{{Ends: at(100 * 365 * 24 * 3600)}}, to: Promise{Starts: at(5000)}, want: true},
		"no start is known any more":     {behind: []Pod{{Ends: at(1000)}}, to: Promise{InUse: 1}},
		"less is in use":                 {behind: []Pod{{Amount: 4}, {Amount: 4}}, to: Promise{InUse: 7}, want: true},
		"as much is in use":              {behind: []Pod{{Amount: 8}}, to: Promise{InUse: 8}},
		"nothing was in use":             {behind: []Pod{{}}, to: Promise{InUse: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (&Held{Behind: tt.behind}).GivesWay(&tt.to, start); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 4, 4) // the last one is not promised
	c.need = 4
	c.run(pod{node: 0, gpus: 4, ends: at(5)})
	held := Held{Nodes: []string{nameOf(0), nameOf(1)}, Behind: c.waitable()}
	holds := func() bool {
		holds, cut := held.Holds(problemOf(t, 2), c, c.waitable(), start, placement.Budget{})
		return holds && !cut
	}
	if !holds() {
		t.Error("does not hold, although the gang fits when the pod has ended")
	}
	c.run(pod{node: 1, gpus: 1, ends: at(5)})
	if !holds() {
		t.Error("does not hold, although the pod that came ends in time")
	}
	c.pods[1].ends = at(6)
	if holds() {
		t.Error("holds, although a pod is in the way that ends too late")
	}
	c.pods[1].ends = time.Time{} // it does not say
	if holds() {
		t.Error("holds, although another pod is in the way")
	}
	c.pods[1].gone, c.closed[0] = true, true
	if holds() {
		t.Error("holds, although a node is drained")
	}
	if len(c.placed) > 0 || c.pods[0].freed || c.only != nil {
		t.Error("the World was not left as it was")
	}
}

// TestHeldRoomStaysIfTheTimeIsOver: whether it still holds is not known then.
func TestHeldRoomStaysIfTheTimeIsOver(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 4)
	c.need = 4
	c.run(pod{node: 0, gpus: 4, ends: at(5)})
	held := Held{Nodes: []string{nameOf(0)}, Behind: c.waitable()}
	c.run(pod{node: 1, gpus: 4, ends: at(4)}) // a minute would have to be gained
	for _, isOver := range []bool{false, true} {
		budget := placement.Budget{Expired: func() bool { return isOver && c.only != nil }}
		if p, keep := Revise(problemOf(t, 1), c, &held, c.waitable(), start, budget); p != nil || !keep {
			t.Errorf("the time is over: %t: %+v takes the place of what is held", isOver, p)
		}
	}
}
