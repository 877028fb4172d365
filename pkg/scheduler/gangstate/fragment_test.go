package gangstate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/test/wrappers"
)

// markOf returns the mark of a plan over these pods.
func markOf(group types.UID, uids ...string) string {
	var members []*member
	for _, uid := range uids {
		members = append(members, &member{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}})
	}
	return mark(group, members)
}

// afterRestart returns a registry that finds these objects.
func afterRestart(group *wrappers.PodGroupWrapper, pods ...*wrappers.PodWrapper) *Registry {
	r := New()
	r.Configure(Options{RepairTimeout: 30 * time.Second})
	r.AddProfile(wrappers.SchedulerName)
	now := time.Unix(1_000_000, 0)
	r.SetGroup(group.Obj(), now)
	for _, p := range pods {
		r.SetPod(p.Obj(), now)
	}
	r.Synced(now)
	return r
}

func owned(uid string) *wrappers.PodWrapper {
	return wrappers.MakePod(uid, "ml").UID(uid).Gang("g").Controller("Job", "job", "job-1")
}

// Source: decision G11.
func TestFragment(t *testing.T) {
	t.Parallel()
	group := func() *wrappers.PodGroupWrapper { return wrappers.MakePodGroup("g", "ml").UID("group").MinMember(4) }
	four := markOf("group", "a", "b", "c", "d")
	bound := func(uid, mark string) *wrappers.PodWrapper { return owned(uid).Node("n1").BoundFor(mark) }
	tests := map[string]struct {
		group *wrappers.PodGroupWrapper
		pods  []*wrappers.PodWrapper
		want  bool
	}{
		"nothing is bound": {pods: []*wrappers.PodWrapper{owned("a"), owned("b"), owned("c"), owned("d")}},
		"some of a plan are bound, the others wait": {
			pods: []*wrappers.PodWrapper{bound("a", four), bound("b", four), owned("c"), owned("d")}, want: true},
		"surplus waits besides": {
			pods: []*wrappers.PodWrapper{bound("a", four), bound("b", four), owned("c"), owned("d"), owned("e"), owned("f")}, want: true},
		"a pod of the plan is gone, and may have been bound": {
			pods: []*wrappers.PodWrapper{bound("a", four), bound("b", four), owned("c"), owned("other")}},
		"a bound pod is terminating: it was bound": {
			pods: []*wrappers.PodWrapper{bound("a", four), bound("b", four), bound("c", four), bound("d", four).Terminating()}},
		"some are bound, one of them terminating, and one was never bound": {
			pods: []*wrappers.PodWrapper{bound("a", four), bound("b", four), bound("c", four).Terminating(), owned("d")}, want: true},
		"a second plan was cut short too": {
			pods: []*wrappers.PodWrapper{bound("a", four), bound("b", markOf("group", "b", "c", "e")), owned("c"), owned("d"), owned("e")}, want: true},
		"a second plan that rested on pods that are gone": {
			pods: []*wrappers.PodWrapper{bound("b", markOf("group", "b", "c")), owned("c"), owned("d"), owned("e")}},
		"surplus shows that a minimum was whole of which only a new part is bound": {
			pods: []*wrappers.PodWrapper{bound("s", markOf("group", "s")), bound("a", four), owned("b"), owned("c"), owned("d")}},
		"surplus alone shows that there was a minimum": {
			pods: []*wrappers.PodWrapper{bound("s", markOf("group", "s", "t")), owned("t"), owned("a"), owned("b"), owned("c")}},
		"the PodGroup is another one of the same name": {
			pods: []*wrappers.PodWrapper{bound("a", markOf("old", "a", "b", "c", "d")), owned("b"), owned("c"), owned("d")}},
		"the PodGroup says it was admitted": {
			group: group().Condition("Admitted", metav1.ConditionTrue, "Admitted", ""),
			pods:  []*wrappers.PodWrapper{bound("a", four), owned("b"), owned("c"), owned("d")}},
		"pods bound by another scheduler count as they are": {
			pods: []*wrappers.PodWrapper{owned("x").SchedulerName("other").Node("n1"), bound("a", markOf("group", "a", "b", "c")), owned("b"), owned("c")}, want: true},
		"an earlier run of the CronJob does not count": {
			pods: []*wrappers.PodWrapper{
				wrappers.MakePod("o1", "ml").UID("o1").Gang("g").Controller("Job", "old", "job-0").Node("n1").Phase(corev1.PodSucceeded).BoundFor(markOf("group", "o1", "o2", "o3", "o4")),
				wrappers.MakePod("o2", "ml").UID("o2").Gang("g").Controller("Job", "old", "job-0").Node("n1").Phase(corev1.PodSucceeded).BoundFor(markOf("group", "o1", "o2", "o3", "o4")),
				bound("a", four), bound("b", four), owned("c"), owned("d"),
			}, want: true},
		"the tree was edited so that the plan explains nothing": {
			group: wrappers.MakePodGroup("g", "ml").UID("group").MinMember(5),
			pods:  []*wrappers.PodWrapper{bound("a", four), bound("b", four), owned("c"), owned("d"), owned("e")}},
		"a mark that nobody wrote": {
			pods: []*wrappers.PodWrapper{bound("a", "group/x/y"), owned("b"), owned("c"), owned("d")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.group == nil {
				tc.group = group()
			}
			r := afterRestart(tc.group, tc.pods...)
			f, _ := r.Facts(Key{Namespace: "ml", Name: "g"})
			if f.Fragment != tc.want {
				t.Errorf("Fragment = %t, want %t", f.Fragment, tc.want)
			}
			if _, any := r.Fragmented(); any != tc.want {
				t.Errorf("Fragmented = %t, want %t", any, tc.want)
			}
		})
	}
}

// Histories of random gangs, cut short by crashes: plans made as the planner makes them (each makes the tree whole with
// what is bound), bound in part, pods deleted and replaced.
func TestWhatWasWholeIsNeverCalledAFragment(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 11))
	fragments, ambiguous := 0, 0
	for round := range 3000 {
		history := newHistory(rng)
		for range 1 + rng.IntN(6) {
			history.plan(rng)
			if rng.IntN(2) == 0 {
				history.lose(rng)
			}
		}
		r := afterRestart(history.group, history.pods()...)
		f, _ := r.Facts(Key{Namespace: "ml", Name: "g"})
		switch {
		case f.Fragment:
			fragments++
		case history.whole && !r.gangs[Key{Namespace: "ml", Name: "g"}].admitted:
			ambiguous++
		}
		switch {
		case f.Fragment && history.whole && !history.erased:
			t.Fatalf("round %d: called a fragment, but it was whole:\n%s", round, history.log)
		case !f.Fragment && !history.lost && !history.whole && history.anyBound():
			t.Fatalf("round %d: not called a fragment, though it never was whole and all its pods are there:\n%s", round, history.log)
		}
	}
	if fragments < 100 || ambiguous < 100 {
		t.Errorf("%d fragments and %d gangs that were whole and are not now among the histories: too few to tell", fragments, ambiguous)
	}
}

// history is a gang's past.
type history struct {
	group  *wrappers.PodGroupWrapper
	tree   *gang.Tree
	leaves []string
	uids   []string          // of pods that exist, oldest first
	leaf   map[string]string // by UID
	bound  map[string]string // UID -> mark
	next   int
	whole  bool // the minimum was bound once, and something of it was left ever since
	lost   bool // pods of a plan were deleted
	erased bool // a plan left no trace: the last pod that it bound was deleted. Nobody can know of it any more.
	log    string
}

func newHistory(rng *rand.Rand) *history {
	h := &history{group: wrappers.MakePodGroup("g", "ml").UID("group"), leaf: map[string]string{}, bound: map[string]string{}}
	var nodes []gang.Node
	root := gang.Node{}
	if n := rng.IntN(4); n == 0 {
		m := int32(1 + rng.IntN(6))
		h.group.MinMember(m)
		root.MinMember, h.leaves = &m, []string{""}
	} else {
		k := int32(1 + rng.IntN(n))
		h.group.MinSubGroup(k)
		root.MinSubGroup = &k
		for i := range n {
			name, m := fmt.Sprintf("l%d", i), int32(1+rng.IntN(3))
			h.group.SubGroup(name, m)
			nodes = append(nodes, gang.Node{Name: name, MinMember: &m})
			h.leaves = append(h.leaves, name)
		}
	}
	tree, err := gang.Build(root, nodes)
	if err != nil {
		panic(err)
	}
	h.tree = tree
	for _, leaf := range tree.Leaves() {
		for range leaf.Min() + rng.IntN(3) {
			h.create(leaf.Name())
		}
	}
	h.log = fmt.Sprintf("tree %+v, pods %v\n", h.group.Obj().Spec, h.uids)
	return h
}

func (h *history) create(leaf string) {
	uid := fmt.Sprintf("p%d", h.next)
	h.next++
	h.uids = append(h.uids, uid)
	h.leaf[uid] = leaf
}

func (h *history) counts() gang.Counts {
	c := gang.Counts{}
	for uid := range h.bound {
		c[h.leaf[uid]]++
	}
	return c
}

func (h *history) anyBound() bool { return len(h.bound) > 0 }

// plan chooses a smallest set of waiting pods (random children, random pods) and binds a random part of it, in order.
func (h *history) plan(rng *rand.Rand) {
	have := h.counts()
	if h.tree.Satisfied(have) {
		h.surplus(rng)
		return
	}
	// Add waiting pods in a random order, then drop what the minimum does without.
	var waiting []string
	for _, uid := range h.uids {
		if h.bound[uid] == "" {
			waiting = append(waiting, uid)
		}
	}
	rng.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	chosen := slices.Clone(waiting)
	for _, uid := range waiting {
		have[h.leaf[uid]]++
	}
	if !h.tree.Satisfied(have) {
		return
	}
	for _, uid := range waiting {
		have[h.leaf[uid]]--
		if h.tree.Satisfied(have) {
			chosen = slices.DeleteFunc(chosen, func(u string) bool { return u == uid })
		} else {
			have[h.leaf[uid]]++
		}
	}
	h.bind(rng, chosen)
}

// surplus plans one more pod.
func (h *history) surplus(rng *rand.Rand) {
	for _, uid := range h.uids {
		if h.bound[uid] == "" {
			h.bind(rng, []string{uid})
			return
		}
	}
}

func (h *history) bind(rng *rand.Rand, chosen []string) {
	m := markOf("group", chosen...)
	n := len(chosen)
	if rng.IntN(3) > 0 {
		n = rng.IntN(n + 1) // a crash, or failed bindings
	}
	for _, uid := range chosen[:n] {
		h.bound[uid] = m
	}
	h.whole = h.whole || h.tree.Satisfied(h.counts())
	h.log += fmt.Sprintf("plan %v, bound %v\n", chosen, chosen[:n])
}

// lose deletes some pods, and others come in their place.
func (h *history) lose(rng *rand.Rand) {
	for _, uid := range slices.Clone(h.uids) {
		if rng.IntN(4) > 0 {
			continue
		}
		h.lost = true
		h.uids = slices.DeleteFunc(h.uids, func(u string) bool { return u == uid })
		m := h.bound[uid]
		delete(h.bound, uid)
		left := false
		for _, other := range h.bound {
			left = left || other == m
		}
		h.erased = h.erased || h.whole && m != "" && !left
		h.create(h.leaf[uid])
		h.log += fmt.Sprintf("lost %s\n", uid)
	}
	if !h.anyBound() {
		h.whole, h.erased = false, false // nothing of it is left (G11)
	}
}

func (h *history) pods() []*wrappers.PodWrapper {
	var out []*wrappers.PodWrapper
	for _, uid := range h.uids {
		p := owned(uid)
		if leaf := h.leaf[uid]; leaf != "" {
			p.SubGroup(leaf)
		}
		if m := h.bound[uid]; m != "" {
			p.Node("n1").BoundFor(m)
		}
		out = append(out, p)
	}
	return out
}

func TestFragmentsAreGivenBackInTime(t *testing.T) {
	t.Parallel()
	m := markOf("group", "a", "b", "bare", "d")
	bound := func(uid string) *wrappers.PodWrapper { return owned(uid).Node("n1").BoundFor(m) }
	bare := wrappers.MakePod("bare", "ml").UID("bare").Gang("g").Node("n1").BoundFor(m)
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(4), bound("a"), bound("b"), bare, owned("d").SchedulingGate("x"))
	names := func(pods []*corev1.Pod) string {
		out := ""
		for _, p := range pods {
			out += p.Name + " "
		}
		return out
	}
	now := time.Unix(1_000_100, 0)
	key := Key{Namespace: "ml", Name: "g"}

	for range 100 {
		if got := r.Fragments(time.Second, false); len(got) > 0 {
			t.Fatalf("gave back %s while the API server was away", names(got))
		}
	}
	r.Fragments(time.Hour, true) // nobody looked for an hour: counts as 5 s
	for i := range 24 {
		if got := r.Fragments(time.Second, true); len(got) > 0 {
			t.Fatalf("gave back %s after %d s", names(got), 6+i)
		}
	}
	if got := names(r.Fragments(time.Second, true)); got != "a b bare " {
		t.Fatalf("gave back %q", got)
	}
	// From now on no plan rests on them, but on the one that is kept.
	f, _ := r.Facts(key)
	if diff := cmp.Diff(gang.Counts{"": 1}, f.Bound); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
	// What is deleted is not returned again, what could not be deleted is, also when it is no provable fragment any more.
	r.SetPod(bound("a").Terminating().Obj(), now)
	if got := names(r.Fragments(time.Second, true)); got != "b bare " {
		t.Errorf("gave back %q, want b again", got)
	}
	r.RemovePod("a", now)
	if got := names(r.Fragments(time.Second, false)); got != "b " {
		t.Errorf("gave back %q, want b again", got)
	}
	if _, any := r.Fragmented(); !any {
		t.Error("nothing to do, though b is there still")
	}
	r.SetPod(bound("b").Terminating().Obj(), now)
	if _, any := r.Fragmented(); any {
		t.Error("something to do, though all is deleted")
	}
}

func TestAPlanThatRestsOnWhatIsGivenBackIsRefused(t *testing.T) {
	t.Parallel()
	m := markOf("group", "a", "b")
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2), owned("a").Node("n1").BoundFor(m), owned("b"))
	now := time.Unix(1_000_100, 0)
	work, reason := r.Begin(owned("b").Obj())
	if work == nil {
		t.Fatal(reason)
	}
	for range 30 {
		r.Fragments(time.Second, true)
	}
	if plan, _ := r.Commit(work, placementsOf("b"), now); plan != nil {
		t.Error("committed a plan of one pod, though the other is being deleted")
	}
}

func TestAFragmentThatIsBoundInTimeIsKept(t *testing.T) {
	t.Parallel()
	m := markOf("group", "a", "b")
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2), owned("a").Node("n1").BoundFor(m), owned("b"))
	now := time.Unix(1_000_100, 0)
	for range 29 {
		r.Fragments(time.Second, true)
	}
	r.SetPod(owned("b").Node("n1").BoundFor(markOf("group", "b")).Obj(), now)
	if got := r.Fragments(5*time.Second, true); len(got) > 0 {
		t.Errorf("gave back %d pods of a whole gang", len(got))
	}
	if f, _ := r.Facts(Key{Namespace: "ml", Name: "g"}); !f.Admitted {
		t.Error("not admitted")
	}
}

// The bindings of the first plan take as long as they take: nothing has failed yet.
func TestTheFirstBurstIsNoFragmentsTime(t *testing.T) {
	t.Parallel()
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2), owned("a"), owned("b"))
	now := time.Unix(1_000_100, 0)
	key := Key{Namespace: "ml", Name: "g"}
	leader := owned(string(r.gangs[key].leader)).Obj()
	work, reason := r.Begin(leader)
	if work == nil {
		t.Fatal(reason)
	}
	plan, reason := r.Commit(work, placementsOf("a", "b"), now)
	if plan == nil {
		t.Fatal(reason)
	}
	for _, uid := range []types.UID{"a", "b"} {
		if err := r.Assume(uid, "n1", now); err != nil {
			t.Fatal(err)
		}
	}
	r.Posted("a", now)
	r.SetPod(owned("a").Node("n1").BoundFor(plan.Mark).Obj(), now)
	for range 40 {
		r.Fragments(time.Second, true)
	}
	r.Release("b", now)
	for i := range 29 {
		if got := r.Fragments(time.Second, true); len(got) > 0 {
			t.Fatalf("given back %d s after the binding failed", i+1)
		}
	}
	if got := r.Fragments(time.Second, true); len(got) != 1 {
		t.Errorf("gave back %v after 30 s, want pod a", got)
	}
}

// Every attempt takes long, because its binding is not answered, and the next begins a moment after it failed: the time
// runs out during one, and is over at its end.
func TestAFragmentWhoseTimeIsOverIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		bound *wrappers.PodWrapper
		want  bool // tried again before it was given back
	}{
		"a pod that a controller replaces is given back first": {bound: owned("a")},
		"a bare pod is kept, so it is tried for ever":          {bound: wrappers.MakePod("a", "ml").UID("a").Gang("g"), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2)
			r := afterRestart(group, tc.bound.Node("n1").BoundFor(markOf("group", "a", "b")), owned("b"))
			now := time.Unix(1_000_100, 0)
			work, reason := r.Begin(owned("b").Obj())
			if work == nil {
				t.Fatal(reason)
			}
			if plan, reason := r.Commit(work, placementsOf("b"), now); plan == nil {
				t.Fatal(reason)
			}
			if err := r.Assume("b", "n1", now); err != nil {
				t.Fatal(err)
			}
			for range 40 {
				if got := r.Fragments(time.Second, true); len(got) > 0 {
					t.Fatal("given back while a binding is under way")
				}
			}
			r.Release("b", now)
			now = now.Add(time.Minute) // longer than any back-off
			r.Tick(now)
			if work, _ := r.Begin(owned("b").Obj()); (work != nil) != tc.want {
				t.Errorf("tried again: %t, want %t", work != nil, tc.want)
			}
			if got := r.Fragments(time.Second, true); len(got) != 1 || got[0].Name != "a" {
				t.Errorf("gave back %v, want pod a", got)
			}
		})
	}
}

func TestSubset(t *testing.T) {
	t.Parallel()
	var members []*member
	for i := range 64 {
		members = append(members, &member{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint("u", i))}}})
	}
	sum := func(ms []*member) (s uint64) {
		for _, m := range ms {
			s += hashUID(m.pod.UID)
		}
		return s
	}
	rng := rand.New(rand.NewPCG(3, 5))
	for _, k := range []int{0, 1, 2, 62, 63, 64} {
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		want := map[types.UID]bool{}
		for _, m := range members[:k] {
			want[m.pod.UID] = true
		}
		s := sum(members[:k])
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		set, ok := subset(members, k, s)
		got := map[types.UID]bool{}
		for _, m := range set {
			got[m.pod.UID] = true
		}
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%d of 64: ok %t (-want +got):\n%s", k, ok, diff)
		}
		if _, ok := subset(members, k, s+1); ok {
			t.Errorf("%d of 64 make up a sum that they cannot", k)
		}
	}
	if _, ok := subset(members, 65, 0); ok {
		t.Error("65 of 64")
	}
	// The search is bounded: a set that is not found soon is not found.
	begin := time.Now()
	if _, ok := subset(members, 32, 12345); ok {
		t.Error("found a set that does not exist")
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the search took %s", took)
	}
}
