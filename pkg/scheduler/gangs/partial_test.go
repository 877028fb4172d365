// SPDX-License-Identifier: Apache-2.0

package gangs

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

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/marks"
	"github.com/muster-project/muster/test/wrappers"
)

// testKeys sign the marks of the tests; the registries of the tests know these keys.
var testKeys = func() *marks.Keys {
	keys, err := marks.NewKeys("test", map[string][]byte{"test": []byte("the secret of the tests")})
	if err != nil {
		panic(err)
	}
	return keys
}()

// markedPlan is a plan of another process, of which only the marks are left.
type markedPlan struct {
	group      types.UID
	sequence   int64
	generation int64
	whole      bool // the gang may have had its minimum before the plan
	pods       []string
	spare      int // number of pods at the end of the list that the minimum does not need
}

// planFor returns the first plan of a PodGroup, for a minimum.
func planFor(group types.UID, uids ...string) markedPlan {
	return markedPlan{group: group, sequence: 1, generation: 1, pods: uids}
}

func (p markedPlan) then(sequence int64) markedPlan { p.sequence = sequence; return p }

func (p markedPlan) afterWhole() markedPlan { p.whole = true; return p }

func (p markedPlan) ofGeneration(generation int64) markedPlan { p.generation = generation; return p }

// mark returns the annotation of one of the plan's pods.
func (p markedPlan) mark(uid string) string {
	m := marks.Mark{GroupUID: p.group, PodCount: len(p.pods), Generation: p.generation, Sequence: p.sequence, NeverWhole: !p.whole}
	for _, pod := range p.pods {
		m.TagSum += marks.PodTag(types.UID(pod))
	}
	own := slices.Index(p.pods, uid)
	for i := 1; i < len(p.pods) && len(m.NextTags) < marks.MaxNextTags && m.NeverWhole; i++ {
		if next := (own + i) % len(p.pods); next < len(p.pods)-p.spare {
			m.NextTags = append(m.NextTags, marks.PodTag(types.UID(p.pods[next])))
		}
	}
	return testKeys.SignMark(types.UID(uid), m)
}

// bound returns a builder of a pod that the plan bound.
func (p markedPlan) bound(uid string) *wrappers.PodWrapper {
	return owned(uid).Node("n1").BoundFor(p.mark(uid))
}

// afterRestart returns a registry that starts with these objects.
func afterRestart(group *wrappers.PodGroupWrapper, pods ...*wrappers.PodWrapper) *Registry {
	r := New()
	r.Configure(Options{RepairTimeout: 30 * time.Second})
	r.AddProfile(wrappers.SchedulerName)
	now := time.Unix(1_000_000, 0)
	r.SetKeys(testKeys, now)
	if group.Obj().Generation == 0 {
		group.Generation(1)
	}
	r.SetGroup(group.Obj(), now)
	for _, p := range pods {
		r.SetPod(p.Obj(), now)
	}
	r.SetSynced(now)
	return r
}

func owned(uid string) *wrappers.PodWrapper {
	return wrappers.MakePod(uid, "ml").UID(uid).Gang("g").Controller("Job", "job", "job-1")
}

// A gang is partial only if the marks of its bound pods prove that it never had its minimum. Source: docs/decisions,
// G11.
func TestPartial(t *testing.T) {
	t.Parallel()
	group := func() *wrappers.PodGroupWrapper { return wrappers.MakePodGroup("g", "ml").UID("group").MinMember(4) }
	four := planFor("group", "a", "b", "c", "d")
	waiting := func(uids ...string) (out []*wrappers.PodWrapper) {
		for _, uid := range uids {
			out = append(out, owned(uid))
		}
		return out
	}
	names := func(prefix string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("%s%02d", prefix, i))
		}
		return out
	}
	sixteen := planFor("group", names("p", 16)...)
	elastic := func() (out []*wrappers.PodWrapper) {
		for _, uid := range sixteen.pods[:8] {
			out = append(out, sixteen.bound(uid))
		}
		return append(out, waiting(slices.Concat(sixteen.pods[8:], names("s", 8))...)...)
	}
	tests := map[string]struct {
		group *wrappers.PodGroupWrapper
		pods  []*wrappers.PodWrapper
		want  bool
	}{
		"nothing is bound": {pods: waiting("a", "b", "c", "d")},
		"some of a plan are bound, the others wait": {
			pods: append(waiting("c", "d"), four.bound("a"), four.bound("b")), want: true},
		"surplus waits too": {
			pods: append(waiting("c", "d", "e", "f"), four.bound("a"), four.bound("b")), want: true},
		"8 of 16 that an elastic gang of 24 needs are bound": {
			group: wrappers.MakePodGroup("g", "ml").UID("group").MinMember(16), pods: elastic(), want: true},
		"a pod of the plan is gone, another one waits that the minimum needs": {
			pods: append(waiting("c", "other"), four.bound("a"), four.bound("b")), want: true},
		"the pods of the plan that are not bound are gone, and may have been bound": {
			pods: append(waiting("other", "another"), four.bound("a"), four.bound("b"))},
		"a pod waits that the plan would not have needed, the others may have been bound": {
			group: wrappers.MakePodGroup("g", "ml").UID("group").MinMember(3),
			pods:  append(waiting("d", "other"), markedPlan{group: "group", sequence: 1, generation: 1, pods: []string{"a", "b", "c", "d"}, spare: 1}.bound("a"))},
		"a bound pod is terminating: it was bound": {
			pods: []*wrappers.PodWrapper{four.bound("a"), four.bound("b"), four.bound("c"), four.bound("d").Terminating()}},
		"some are bound, one of them terminating, and one was never bound": {
			pods: append(waiting("d"), four.bound("a"), four.bound("b"), four.bound("c").Terminating()), want: true},
		"a second plan was cut short too": {
			pods: append(waiting("c", "d", "e"), four.bound("a"), planFor("group", "b", "c", "e").then(2).bound("b")), want: true},
		"a second plan was completed, and its other pods are gone": {
			pods: append(waiting("d"), four.bound("a"), planFor("group", "b", "c", "e").then(2).bound("b"))},
		"the first plan of a gang that was partial before": {
			pods: append(waiting("c", "d", "e"), planFor("group", "b", "c").then(2).bound("b")), want: true},
		"a second plan, of a gang that may have been admitted": {
			pods: append(waiting("c", "d", "e"), planFor("group", "b", "c").then(2).afterWhole().bound("b"))},
		"surplus proves an earlier minimum, of which only a new part is bound": {
			pods: append(waiting("b", "c", "d"), planFor("group", "s").then(2).afterWhole().bound("s"), four.bound("a"))},
		"surplus alone shows that there was a minimum": {
			pods: append(waiting("t", "a", "b", "c"), planFor("group", "s", "t").then(2).afterWhole().bound("s"))},
		"two plans made without knowledge of each other": {
			pods: append(waiting("c", "d", "e"), four.bound("a"), planFor("group", "b", "c", "d", "e").bound("b"))},
		"the PodGroup is another one of the same name": {
			pods: append(waiting("b", "c", "d"), planFor("old", "a", "b", "c", "d").bound("a"))},
		"the PodGroup says it was admitted": {
			group: group().Condition("Admitted", metav1.ConditionTrue, "Admitted", ""),
			pods:  append(waiting("b", "c", "d"), four.bound("a"))},
		"pods bound by another scheduler do not prove a minimum": {
			pods: append(waiting("b", "c"), owned("x").SchedulerName("other").Node("n1"), planFor("group", "a", "b", "c").bound("a")), want: true},
		"pods bound by another scheduler complete the minimum": {
			group: wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2),
			pods:  append(waiting("b"), owned("x").SchedulerName("other").Node("n1"), planFor("group", "a", "b").bound("a"))},
		"an earlier run of the CronJob does not count": {
			pods: append(waiting("c", "d"),
				wrappers.MakePod("o1", "ml").UID("o1").Gang("g").Controller("Job", "old", "job-0").Node("n1").Phase(corev1.PodSucceeded).BoundFor(planFor("group", "o1", "o2", "o3", "o4").mark("o1")),
				wrappers.MakePod("o2", "ml").UID("o2").Gang("g").Controller("Job", "old", "job-0").Node("n1").Phase(corev1.PodSucceeded).BoundFor(planFor("group", "o1", "o2", "o3", "o4").mark("o2")),
				four.then(2).bound("a"), four.then(2).bound("b")), want: true},
		"the tree was edited since it was planned, and may have been satisfied in the meantime": {
			group: group().Generation(2), pods: append(waiting("c", "d"), four.bound("a"), four.bound("b"))},
		"the tree is the one that was planned after an edit": {
			group: group().Generation(2), pods: append(waiting("c", "d"), four.ofGeneration(2).bound("a")), want: true},
		"a mark that no scheduler wrote": {
			pods: append(waiting("b", "c", "d"), owned("a").Node("n1").BoundFor("group/4/0123456789abcdef"))},
		"a mark of another pod": {
			pods: append(waiting("b", "c", "d"), owned("a").Node("n1").BoundFor(four.mark("b")))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.group == nil {
				tc.group = group()
			}
			r := afterRestart(tc.group, tc.pods...)
			f, _ := r.Facts(Key{Namespace: "ml", Name: "g"})
			if f.Partial != tc.want {
				t.Errorf("Partial = %t, want %t", f.Partial, tc.want)
			}
			for range 40 {
				r.PodsToRelease(time.Second, true)
			}
			if got := len(r.gangs[gangG].podsToRelease()) > 0; got != tc.want {
				t.Errorf("released: %t, want %t", got, tc.want)
			}
		})
	}
}

// Random histories of gangs, interrupted by crashes: plans made as the planner makes them (each satisfies the tree
// together with the bound pods), bound partially, and pods deleted and replaced.
func TestGangsThatWereAdmittedAreNeverPartial(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 11))
	partial, ambiguous := 0, 0
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
		case f.Partial:
			partial++
		case history.whole && !r.gangs[Key{Namespace: "ml", Name: "g"}].admitted:
			ambiguous++
		}
		switch {
		case f.Partial && history.whole && !history.erased:
			t.Fatalf("round %d: reported as partial, but it was admitted:\n%s", round, history.log)
		case !f.Partial && !history.lost && !history.whole && history.anyBound():
			t.Fatalf("round %d: not reported as partial, though it was never admitted and all its pods exist:\n%s", round, history.log)
		}
	}
	if partial < 100 || ambiguous < 100 {
		t.Errorf("the histories contain %d partial gangs and %d gangs that were admitted and are not now: too few", partial, ambiguous)
	}
}

// history is the past of a gang.
type history struct {
	group  *wrappers.PodGroupWrapper
	tree   *gang.Tree
	leaves []string
	uids   []string          // of existing pods, oldest first
	leaf   map[string]string // by UID
	bound  map[string]string // UID -> mark
	planOf map[string]int    // UID -> number of the plan that bound it
	plans  int
	next   int
	whole  bool // the minimum was bound, and at least one of its pods has been left ever since
	lost   bool // pods of a plan were deleted
	erased bool // a plan left no trace: the last pod that it bound was deleted, so its existence can no longer be detected
	log    string
}

func newHistory(rng *rand.Rand) *history {
	h := &history{group: wrappers.MakePodGroup("g", "ml").UID("group"), leaf: map[string]string{}, bound: map[string]string{}, planOf: map[string]int{}}
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

// plan chooses a minimal set of waiting pods (random children, random pods) and binds a random part of it, in order.
func (h *history) plan(rng *rand.Rand) {
	have := h.counts()
	if h.tree.Satisfied(have) {
		h.surplus(rng)
		return
	}
	// Add waiting pods in a random order, then drop the pods that the minimum does not need.
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

// bind binds some of the pods. The marks are those of a scheduler that starts with the current state of the gang.
func (h *history) bind(rng *rand.Rand, chosen []string) {
	r := afterRestart(h.group, h.pods()...)
	g := r.gangs[gangG]
	p := &Plan{gang: g, tree: g.tree, places: map[types.UID]int{}, leaves: map[*gang.Group]int{}}
	if g.admitted {
		p.Task = SurplusSingle
	}
	for i, uid := range chosen {
		leaf := g.tree.Group(h.leaf[uid])
		p.members = append(p.members, plannedMember{member: g.members[types.UID(uid)], leaf: leaf})
		p.leaves[leaf]++
		p.places[types.UID(uid)] = i
	}
	g.assignMark(p)
	n := len(chosen)
	if rng.IntN(3) > 0 {
		n = rng.IntN(n + 1) // a crash, or failed bindings
	}
	if rng.IntN(2) == 0 { // failed bindings: any of the pods
		chosen = slices.Clone(chosen)
		rng.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	}
	h.plans++
	for _, uid := range chosen[:n] {
		h.bound[uid], h.planOf[uid] = r.SignedMark(p, types.UID(uid)), h.plans
	}
	h.whole = h.whole || h.tree.Satisfied(h.counts())
	h.log += fmt.Sprintf("plan %v, bound %v, %+v\n", chosen, chosen[:n], p.mark)
}

// lose deletes some pods and creates replacements.
func (h *history) lose(rng *rand.Rand) {
	for _, uid := range slices.Clone(h.uids) {
		if rng.IntN(4) > 0 {
			continue
		}
		h.lost = true
		h.uids = slices.DeleteFunc(h.uids, func(u string) bool { return u == uid })
		m := h.planOf[uid]
		delete(h.bound, uid)
		left := false
		for other := range h.bound {
			left = left || h.planOf[other] == m
		}
		h.erased = h.erased || h.whole && m != 0 && !left
		h.create(h.leaf[uid])
		h.log += fmt.Sprintf("lost %s\n", uid)
	}
	if !h.anyBound() {
		h.whole, h.erased = false, false // no pod of it is left (docs/decisions, G11)
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

func TestPartialGangsAreReleasedInTime(t *testing.T) {
	t.Parallel()
	plan := planFor("group", "a", "b", "bare", "d")
	bound := plan.bound
	bare := wrappers.MakePod("bare", "ml").UID("bare").Gang("g").Node("n1").BoundFor(plan.mark("bare"))
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
		if got := r.PodsToRelease(time.Second, false); len(got) > 0 {
			t.Fatalf("released %s while the API server was away", names(got))
		}
	}
	r.PodsToRelease(time.Hour, true) // no call for an hour: counts as 5 s
	for i := range 24 {
		if got := r.PodsToRelease(time.Second, true); len(got) > 0 {
			t.Fatalf("released %s after %d s", names(got), 6+i)
		}
	}
	if got := names(r.PodsToRelease(time.Second, true)); got != "a b bare " {
		t.Fatalf("released %q", got)
	}
	// From now on no plan depends on these pods, except on the one that is kept.
	f, _ := r.Facts(key)
	if diff := cmp.Diff(gang.Counts{"": 1}, f.Bound); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
	// Deleted pods are not returned again; pods that could not be deleted are, like the kept one.
	r.SetPod(bound("a").Terminating().Obj(), now)
	if got := names(r.PodsToRelease(time.Second, true)); got != "b bare " {
		t.Errorf("released %q, want b again", got)
	}
	r.RemovePod("a", now)
	if got := names(r.PodsToRelease(time.Second, false)); got != "b bare " {
		t.Errorf("released %q, want b again", got)
	}
	if _, any := r.NeedsRelease(); !any {
		t.Error("nothing to do, though b is there still")
	}
	r.SetPod(bound("b").Terminating().Obj(), now)
	if _, any := r.NeedsRelease(); any {
		t.Error("something to do, though all is deleted")
	}
}

func TestAPlanThatDependsOnReleasedPodsIsRefused(t *testing.T) {
	t.Parallel()
	first := planFor("group", "a", "b")
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2), first.bound("a"), owned("b"))
	now := time.Unix(1_000_100, 0)
	work, reason := r.BeginAttempt(owned("b").Obj())
	if work == nil {
		t.Fatal(reason)
	}
	for range 30 {
		r.PodsToRelease(time.Second, true)
	}
	if plan, _ := r.CommitPlan(work, placementsOf(work, "b"), now); plan != nil {
		t.Error("committed a plan of one pod, though the other is being deleted")
	}
}

// A gang whose PodGroup is edited may have had its minimum before: the binding that completed it is observed after the
// edit. It is kept and admitted, unless the plan that was cut short still is.
func TestAGangThatWasCompletedBeforeAnEditIsKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		shown []string // pods that are observed bound after the edit
		want  int      // pods that are released
	}{
		"the last binding is observed after the edit": {shown: []string{"b", "c"}, want: 0},
		"one of the missing pods is observed bound":   {shown: []string{"b"}, want: 2},
		"none is": {want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := planFor("group", "a", "b", "c")
			s := begin(t)
			s.group(podGroup().MinMember(3)).pods(plan.bound("a"), owned("b"), owned("c"))
			s.r.PodsToRelease(time.Second, true)
			s.group(podGroup().MinMember(4).Generation(2))
			for _, pod := range tc.shown {
				s.pods(plan.bound(pod))
			}
			var released []*corev1.Pod
			for range 31 {
				released = s.r.PodsToRelease(time.Second, true)
			}
			if len(released) != tc.want {
				t.Errorf("%d pods are released, want %d", len(released), tc.want)
			}
			if f, _ := s.r.Facts(gangG); f.Admitted != (tc.want == 0) {
				t.Errorf("admitted: %t, though %d pods are released", f.Admitted, len(released))
			}
		})
	}
}

// A Job keeps the failed pods of its first run, and a crash interrupts the bindings of the second one. What the first
// run bound has ended: it neither admits the second one nor keeps its pods. Source: docs/decisions, G11.
func TestAFailedRunDoesNotAdmitTheNextOne(t *testing.T) {
	t.Parallel()
	first, second := planFor("group", "x", "y", "z"), planFor("group", "a", "b", "c").then(2)
	failed := func(plan markedPlan, uids ...string) (out []*wrappers.PodWrapper) {
		for _, uid := range uids {
			out = append(out, plan.bound(uid).Phase(corev1.PodFailed))
		}
		return out
	}
	for name, tc := range map[string]struct {
		pods         []*wrappers.PodWrapper // besides waiting pods b and c
		wantAdmitted bool                   // else pod a is released
	}{
		"no failed pod is left":                {pods: []*wrappers.PodWrapper{second.bound("a")}},
		"a failed pod is left":                 {pods: append(failed(first, "x"), second.bound("a"))},
		"all pods of the first run are left":   {pods: append(failed(first, "x", "y", "z"), second.bound("a"))},
		"they are seen after the second run":   {pods: append([]*wrappers.PodWrapper{second.bound("a")}, failed(first, "x", "y", "z")...)},
		"the pod is of the run that failed":    {pods: append(failed(first, "y", "z"), first.bound("x")), wantAdmitted: true},
		"the pods that completed it failed":    {pods: append(failed(planFor("group", "u", "v").then(2), "u", "v"), first.bound("x")), wantAdmitted: true},
		"bindings of the first plan were late": {pods: append([]*wrappers.PodWrapper{second.bound("a"), first.bound("x")}, failed(first, "y", "z")...), wantAdmitted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.group(podGroup().MinMember(3)).pods(append(tc.pods, owned("b"), owned("c"))...).wantAdmitted(tc.wantAdmitted)
			var released []string
			for range 31 {
				released = nil
				for _, pod := range s.r.PodsToRelease(time.Second, true) {
					released = append(released, pod.Name)
				}
			}
			want := []string{"a"}
			if tc.wantAdmitted {
				want = nil
			}
			if diff := cmp.Diff(want, released); diff != "" {
				t.Errorf("released pods (-want +got):\n%s", diff)
			}
		})
	}
}

// The release ends the completeness of the gang while its leader's cycle is running, and a replacement arrives before
// the deletion is observed.
func TestAGangIsTriedAgainAfterARelease(t *testing.T) {
	t.Parallel()
	first := planFor("group", "a", "b")
	s := begin(t)
	s.group(podGroup().MinMember(2)).pods(first.bound("a"), owned("b"))
	leader := s.r.members["b"].pod
	s.leads("b")
	s.r.RecordGangRefused(gangG, podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs}, Wait{}, s.now)
	s.r.RetryWaiting(nil, []Topic{Anything}, s.now)
	if ok, why := s.r.MayEnterQueue(leader); !ok {
		t.Fatal(why)
	}
	s.r.RecordPopped(leader.UID)
	released := 0
	for range 31 {
		released = len(s.r.PodsToRelease(time.Second, true))
	}
	if released != 1 {
		t.Fatalf("%d pods are released, want 1", released)
	}
	if work, _ := s.r.BeginAttempt(leader); work != nil {
		t.Fatal("an attempt began that counts on a released pod")
	}
	s.pods(owned("c"))
	woken := slices.Contains(s.activated(), "b")
	for range 3 {
		s.after(time.Second)
		woken = woken || slices.Contains(s.activated(), "b")
	}
	if !woken {
		t.Error("the gang is complete again, and its leader is not activated")
	}
}

// The release of a gang whose victims are marked ends its preemption, and the marks are taken back.
func TestMarksForAGangThatIsReleasedAreTakenBack(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).pods(planFor("group", "a", "b").bound("a"), owned("b"))
	g := s.r.gangs[gangG]
	p := &evictions.Eviction{ID: "plan", Gang: gangG, Group: g.group, Victims: []evictions.Victim{{Pod: wrappers.MakePod("low", testNamespace).UID("low").Obj()}}}
	p.Begin(evictions.Marked, s.now)
	g.preemption = p
	released := 0
	for range 31 {
		released += len(s.r.PodsToRelease(time.Second, true))
	}
	if released == 0 || g.preemption != nil {
		t.Fatalf("%d pods are released, and the gang preempts by %v", released, g.preemption)
	}
	if s.after(time.Second); !slices.Equal(s.effects.Unmark, []*evictions.Eviction{p}) {
		t.Errorf("the marks of %v are taken back", s.effects.Unmark)
	}
}

func TestAPartialGangThatIsBoundInTimeIsKept(t *testing.T) {
	t.Parallel()
	first := planFor("group", "a", "b")
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2), first.bound("a"), owned("b"))
	now := time.Unix(1_000_100, 0)
	for range 29 {
		r.PodsToRelease(time.Second, true)
	}
	r.SetPod(planFor("group", "b").then(2).bound("b").Obj(), now)
	if got := r.PodsToRelease(5*time.Second, true); len(got) > 0 {
		t.Errorf("released %d pods of an admitted gang", len(got))
	}
	if f, _ := r.Facts(Key{Namespace: "ml", Name: "g"}); !f.Admitted {
		t.Error("not admitted")
	}
}

// The repair time does not run during the bindings of the first plan: nothing has failed yet.
func TestTheRepairTimeDoesNotRunDuringTheFirstPlan(t *testing.T) {
	t.Parallel()
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2), owned("a"), owned("b"))
	now := time.Unix(1_000_100, 0)
	key := Key{Namespace: "ml", Name: "g"}
	leader := owned(string(r.gangs[key].leader)).Obj()
	work, reason := r.BeginAttempt(leader)
	if work == nil {
		t.Fatal(reason)
	}
	plan, reason := r.CommitPlan(work, placementsOf(work, "a", "b"), now)
	if plan == nil {
		t.Fatal(reason)
	}
	for _, uid := range []types.UID{"a", "b"} {
		if err := r.AssumeMember(uid, "n1", now); err != nil {
			t.Fatal(err)
		}
	}
	r.RecordPosted("a", now)
	r.SetPod(owned("a").Node("n1").BoundFor(r.SignedMark(plan, "a")).Obj(), now)
	for range 40 {
		r.PodsToRelease(time.Second, true)
	}
	r.ReleaseMember("b", now)
	for i := range 29 {
		if got := r.PodsToRelease(time.Second, true); len(got) > 0 {
			t.Fatalf("released %d s after the binding failed", i+1)
		}
	}
	if got := r.PodsToRelease(time.Second, true); len(got) != 1 {
		t.Errorf("released %v after 30 s, want pod a", got)
	}
}

// Every attempt takes long, because its binding is not answered, and the next one begins a moment after it failed.
// The repair time expires during one attempt, and the gang is released when this attempt ends.
func TestAnExpiredPartialGangIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		bound *wrappers.PodWrapper
		want  bool // tried again before it was released
	}{
		"a pod that a controller replaces is released first":           {bound: owned("a")},
		"a bare pod is kept, so the gang is tried again without limit": {bound: wrappers.MakePod("a", "ml").UID("a").Gang("g"), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2)
			r := afterRestart(group, tc.bound.Node("n1").BoundFor(planFor("group", "a", "b").mark("a")), owned("b"))
			now := time.Unix(1_000_100, 0)
			work, reason := r.BeginAttempt(owned("b").Obj())
			if work == nil {
				t.Fatal(reason)
			}
			if plan, reason := r.CommitPlan(work, placementsOf(work, "b"), now); plan == nil {
				t.Fatal(reason)
			}
			if err := r.AssumeMember("b", "n1", now); err != nil {
				t.Fatal(err)
			}
			for range 40 {
				if got := r.PodsToRelease(time.Second, true); len(got) > 0 {
					t.Fatal("released while a binding is under way")
				}
			}
			r.ReleaseMember("b", now)
			now = now.Add(time.Minute) // longer than any back-off
			r.Tick(now)
			if work, _ := r.BeginAttempt(owned("b").Obj()); (work != nil) != tc.want {
				t.Errorf("tried again: %t, want %t", work != nil, tc.want)
			}
			if got := r.PodsToRelease(time.Second, true); len(got) != 1 || got[0].Name != "a" {
				t.Errorf("released %v, want pod a", got)
			}
		})
	}
}

// Verifying a mark costs time proportional to its text, once. A mark that cannot be verified costs nothing
// afterwards.
func TestForgedMarksAreVerifiedOnce(t *testing.T) {
	t.Parallel()
	var pods []*wrappers.PodWrapper
	for i := range 300 {
		pods = append(pods, owned(fmt.Sprint("forged", i)).Node("n1").BoundFor(fmt.Sprintf("group/400/%016x", i)))
	}
	for i := range 200 {
		pods = append(pods, owned(fmt.Sprint("waits", i)))
	}
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(400), pods...)
	now := time.Unix(1_000_100, 0)
	g := r.gangs[gangG]
	for i := range 100 {
		r.SetPod(pods[i].Label("round", fmt.Sprint(i)).Obj(), now)
		r.Tick(now.Add(time.Duration(i) * time.Second))
		r.Facts(gangG)
		if got := r.PodsToRelease(time.Second, true); len(got) > 0 {
			t.Fatalf("released %d pods", len(got))
		}
		if _, any := r.NeedsRelease(); any {
			t.Fatal("there is something to do for the gang")
		}
		if rank := g.leaderRank(); rank.Tier == TierRepair {
			t.Fatal("the gang has the rank of a repair")
		}
	}
	if g.partial.proofs != 0 {
		t.Errorf("the members were looked at %d times", g.partial.proofs)
	}
}

// The members of a gang with marks are examined again only after a change.
func TestAPartialGangIsExaminedWhenItHasChanged(t *testing.T) {
	t.Parallel()
	plan := planFor("group", "a", "b", "c")
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(3), plan.bound("a"), owned("b"), owned("c"))
	now := time.Unix(1_000_100, 0)
	g := r.gangs[gangG]
	ask := func() {
		for range 20 {
			r.PodsToRelease(0, true)
			r.NeedsRelease()
			r.Facts(gangG)
			g.leaderRank()
		}
	}
	ask()
	first := g.partial.proofs
	ask()
	if g.partial.proofs != first {
		t.Errorf("looked at %d times more, and nothing has changed", g.partial.proofs-first)
	}
	r.SetPod(plan.bound("b").Obj(), now)
	ask()
	if got := g.partial.proofs - first; got != 1 {
		t.Errorf("looked at %d times after one change, want once", got)
	}
}

func TestKeysThatComeLater(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_100, 0)
	plan := planFor("group", "a", "b", "c")
	released := plan.bound("a").Obj()
	released.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: v2alpha2.PodReasonPartialGangReleased}}
	r, asked := New(), 0
	var unverified []string
	r.Configure(Options{RepairTimeout: 30 * time.Second, UnknownKey: func() { asked++ }, Unverified: func(pod *corev1.Pod) { unverified = append(unverified, pod.Name) }})
	r.AddProfile(wrappers.SchedulerName)
	r.SetGroup(wrappers.MakePodGroup("g", "ml").UID("group").Generation(1).MinMember(3).Obj(), now)
	for _, p := range []*corev1.Pod{released, plan.bound("b").Obj(), owned("c").Obj()} {
		r.SetPod(p, now)
		r.SetPod(p, now)
	}
	r.SetSynced(now)
	for range 40 {
		if got := r.PodsToRelease(time.Second, true); len(got) > 0 {
			t.Fatalf("released %d pods without a key", len(got))
		}
	}
	if asked != 2 {
		t.Errorf("UnknownKey was called %d times, want once for each of two pods", asked)
	}
	if unverified != nil {
		t.Errorf("without a key marks of %v are said not to verify", unverified)
	}
	r.SetKeys(testKeys, now)
	if got := r.PodsToRelease(time.Second, true); len(got) != 2 {
		t.Errorf("released %d pods, want the one that was being released before the crash and the rest of its gang", len(got))
	}
	copied := owned("d").Node("n1").BoundFor(released.Annotations[v2alpha2.BoundForAnnotation]).Obj()
	r.SetPod(copied, now)
	r.SetPod(copied, now)
	if diff := cmp.Diff([]string{"d"}, unverified); diff != "" {
		t.Errorf("pods whose marks do not verify (-want +got):\n%s", diff)
	}
}

// A scheduler without a key binds a gang partially. After the informer has shown the pods, the gang has the rank of a
// repair for the repair time, and nothing is released.
func TestWithoutAKeyNothingIsReleased(t *testing.T) {
	t.Parallel()
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2), owned("a"), owned("b"))
	now := time.Unix(1_000_100, 0)
	r.SetKeys(nil, now)
	leader := owned(string(r.gangs[gangG].leader)).Obj()
	work, reason := r.BeginAttempt(leader)
	if work == nil {
		t.Fatal(reason)
	}
	plan, reason := r.CommitPlan(work, placementsOf(work, "a", "b"), now)
	if plan == nil {
		t.Fatal(reason)
	}
	if text := r.SignedMark(plan, "a"); text != "" {
		t.Errorf("the binding is marked %q", text)
	}
	for _, uid := range []types.UID{"a", "b"} {
		if err := r.AssumeMember(uid, "n1", now); err != nil {
			t.Fatal(err)
		}
		if _, err := r.recordArrival(uid); err != nil {
			t.Fatal(err)
		}
	}
	r.RecordPosted("a", now)
	r.SetPod(owned("a").Node("n1").Obj(), now)
	r.ReleaseMember("b", now)
	if !r.gangs[gangG].partialState().holds {
		t.Error("it is forgotten that the gang is bound in part")
	}
	for range 60 {
		if got := r.PodsToRelease(time.Second, true); len(got) > 0 {
			t.Fatalf("released %d pods", len(got))
		}
	}
}

// The tree is edited while the gang is partial. The process that had the proof keeps it; another process could not
// prove it.
func TestAnEditedTreeIsWatched(t *testing.T) {
	t.Parallel()
	plan := planFor("group", "a", "b", "c", "d")
	r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(4), plan.bound("a"), owned("b"), owned("c"), owned("d"))
	now := time.Unix(1_000_100, 0)
	r.PodsToRelease(time.Second, true)
	r.SetGroup(wrappers.MakePodGroup("g", "ml").UID("group").Generation(2).MinMember(3).Obj(), now)
	if f, _ := r.Facts(gangG); !f.Partial {
		t.Error("not partial after the edit")
	}
	r.RemovePod("d", now) // it may have been bound a moment before
	if f, _ := r.Facts(gangG); f.Partial {
		t.Error("partial, though a pod went that may have been bound under either tree")
	}
	r.SetGroup(wrappers.MakePodGroup("g", "ml").UID("group").Generation(3).MinMember(1).Obj(), now)
	r.SetGroup(wrappers.MakePodGroup("g", "ml").UID("group").Generation(4).MinMember(3).Obj(), now)
	for range 60 {
		if got := r.PodsToRelease(time.Second, true); len(got) > 0 {
			t.Fatalf("released %d pods of a gang that had its minimum for a moment", len(got))
		}
	}
}

// BenchmarkEventBesideMarks measures one event of a waiting pod in a gang of 1,000, including the queries of the
// scheduler in between: forged marks add no cost, genuine ones one examination of the gang per change.
func BenchmarkEventBesideMarks(b *testing.B) {
	const pods, marked = 1000, 300
	var uids []string
	for i := range pods {
		uids = append(uids, fmt.Sprintf("p%04d", i))
	}
	plan := planFor("group", uids...)
	for name, annotate := range map[string]func(*wrappers.PodWrapper, string) *wrappers.PodWrapper{
		"none": func(p *wrappers.PodWrapper, _ string) *wrappers.PodWrapper { return p },
		"forged": func(p *wrappers.PodWrapper, uid string) *wrappers.PodWrapper {
			return p.BoundFor("group/1000/0123456789abcdef")
		},
		"genuine": func(p *wrappers.PodWrapper, uid string) *wrappers.PodWrapper { return p.BoundFor(plan.mark(uid)) },
	} {
		b.Run(name, func(b *testing.B) {
			var all []*wrappers.PodWrapper
			for i, uid := range uids {
				p := owned(uid)
				if i < marked {
					p = annotate(p.Node("n1"), uid)
				}
				all = append(all, p)
			}
			r := afterRestart(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(pods), all...)
			now, pod := time.Unix(1_000_100, 0), all[pods-1].Obj()
			b.ReportAllocs()
			for b.Loop() {
				r.SetPod(pod, now)
				r.NeedsRelease()
			}
		})
	}
}
