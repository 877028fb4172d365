// SPDX-License-Identifier: Apache-2.0

package count

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
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// view contains what Numbers tell, as far as it depends on the current pods only.
type view struct {
	Created, Placed, Bound, BoundNow, Usable gang.Counts
	Flagged                                  [nFlags]int
	GPUs, HeldGPUs                           int64
	Highest                                  int32
	Profile                                  string
	Waiting, Units, Level, Extra             int
	HasSingles                               bool
	First, Single                            types.UID
	Foreign, Others                          string
}

func viewOf(n *Numbers) view {
	profile := n.Profile()
	v := view{
		Created: n.Created.Counts(), Placed: n.Placed.Counts(), Bound: n.Bound.Counts(), BoundNow: n.BoundNow(), Usable: n.Usable(profile).Counts(),
		Flagged: n.flagged, GPUs: n.GPUs, HeldGPUs: n.HeldGPUs, Highest: n.HighestPriority(), Profile: profile,
		Waiting: n.Waiting(profile), Units: n.GroupsWithUnits(profile), Level: n.UnitLevel(profile), Extra: n.ExtraGroups(),
		HasSingles: n.HasSingles(profile), Foreign: fmt.Sprint(n.WaitingForOthers(profile)), Others: fmt.Sprint(n.BoundByOthers()),
	}
	if first := n.FirstWaiting(profile); first != nil {
		v.First, v.Single = first.UID, n.FirstSingle(profile).UID
	}
	return v
}

// randomPod returns a pod in any combination of properties.
func randomPod(rng *rand.Rand, i int, leaves []*gang.Group) *Pod {
	one := func(names ...string) string { return names[rng.IntN(len(names))] }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), CreationTimestamp: metav1.Unix(int64(rng.IntN(3)), 0)}}
	pod.Spec.SchedulerName = one("ours", "ours too", "other")
	pod.Spec.Priority = ptr.To(int32(rng.IntN(3)))
	if owner := one("", "a", "b"); owner != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Controller: ptr.To(true)}}
	}
	if rng.IntN(6) == 0 {
		pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)}
	}
	if rng.IntN(9) == 0 {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}}
	}
	p := &Pod{Pod: pod, State: State(rng.IntN(5)), Leaf: leaves[rng.IntN(len(leaves))], GPUs: int64(rng.IntN(3)), IsOurs: pod.Spec.SchedulerName != "other", IsSlow: rng.IntN(3) == 0}
	switch {
	case rng.IntN(9) == 0:
		p.Leaf = nil
	case rng.IntN(9) == 0:
		pod.Status.Phase = corev1.PodFailed
	case rng.IntN(9) == 0 && p.State == Bound:
		p.IsReleased = true
	case rng.IntN(9) == 0:
		p.IsGated = true
	}
	if p.State >= Posted && rng.IntN(2) == 0 {
		p.Mark = marks.PlanID{GroupUID: "group", Sequence: int64(rng.IntN(3))}
	}
	p.IsOwn = p.Mark.GroupUID != "" && p.State == Bound && IsBound(pod, p.State, p.IsReleased)
	return p
}

// TestChangesAddUp: after any sequence of changes the numbers are those of the pods that exist, counted anew.
func TestChangesAddUp(t *testing.T) {
	t.Parallel()
	two := ptr.To(int32(2))
	tree, err := gang.Build(gang.Node{MinSubGroup: two}, []gang.Node{
		{Name: "x", MinMember: two}, {Name: "y", MinSubGroup: ptr.To(int32(1))}, {Name: "z", MinMember: two},
		{Name: "y1", Parent: "y", MinMember: two}, {Name: "y2", Parent: "y", MinMember: ptr.To(int32(1))},
	})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := NewNumbers(tree)
		pods, entries := map[int]*Pod{}, map[int]*Entry{}
		for step := range 200 {
			i := rng.IntN(30)
			e := entries[i]
			if e != nil && rng.IntN(3) == 0 {
				n.Remove(e)
				delete(pods, i)
				delete(entries, i)
			} else {
				if e == nil {
					e = &Entry{UID: types.UID(fmt.Sprint("p", i))}
					entries[i] = e
				}
				pods[i] = randomPod(rng, i, tree.Leaves())
				n.Set(e, pods[i])
				if n.Set(e, pods[i]) {
					t.Fatalf("seed %d, step %d: the same pod is a change", seed, step)
				}
			}
			anew := NewNumbers(tree)
			order := rng.Perm(30)
			for _, k := range slices.DeleteFunc(order, func(k int) bool { return pods[k] == nil }) {
				anew.Set(&Entry{UID: entries[k].UID}, pods[k])
			}
			if diff := cmp.Diff(viewOf(anew), viewOf(n)); diff != "" {
				t.Fatalf("seed %d, step %d (-counted anew +got):\n%s", seed, step, diff)
			}
		}
	}
}
