// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// The cluster of TestPreemptionsSettle, with pods without a gang, and for five minutes anything may happen at any
// moment of a preemption: several gangs decide at once, the process ends after any write and another one leads, gangs
// that lose pods change their priority or become protected, preemptors are deleted, nodes are lost, victims do not end
// for minutes, a mark is refused. Whatever happens: nobody is chosen who is not needed, a gang loses all of its pods or
// keeps its minimum, the victims of one decision end together or not at all, no gang ends others again without a cause,
// and in the end nothing is left of all this, and no gang waits that could start.
func TestPreemptionsWithFaults(t *testing.T) {
	t.Parallel()
	repeats := max(16, 6*rounds.Number())
	for seed := range repeats {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			f := newFaultyMarket(t, int64(seed))
			f.runFor(25 * time.Minute)
			f.checkSettled()
			f.checkWhole()
			t.Logf("faults: %v", f.counts)
		})
	}
}

// A seed is the same history each time, so that a failure can be repeated: equal facts lead to equal decisions,
// whatever the order of a map is.
func TestFaultsOfASeedRepeat(t *testing.T) {
	t.Parallel()
	for seed := range 4 {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			var histories [2][]string
			for i := range histories {
				f := newFaultyMarket(t, int64(seed))
				f.runFor(7 * time.Minute)
				histories[i] = f.history
			}
			first, second := histories[0], histories[1]
			if len(first) < 100 {
				t.Errorf("only %d events occurred", len(first))
			}
			for i := range min(len(first), len(second)) {
				if first[i] != second[i] {
					t.Fatalf("event %d of %d is another one in the second run:\n%s\n%s\nafter %s", i, len(first), first[i], second[i], strings.Join(first[max(0, i-10):i], "\n"))
				}
			}
			if len(first) != len(second) {
				t.Errorf("%d events occurred, and %d in the second run", len(first), len(second))
			}
		})
	}
}

// faultyMarket is a market whose writes take time, and in which faults occur.
type faultyMarket struct {
	*market
	jobs     []*evictionJob
	stop     time.Time                // no faults since
	lost     map[string]time.Time     // nodes, and when they come back
	deleted  map[string][]*corev1.Pod // by plan: victims whose deletion was requested
	excuses  map[string]int           // by preemptor: faults after which it may end others again
	excused  map[string]bool          // plans after which a fault occurred
	counts   map[string]int
	resuming bool
}

func newFaultyMarket(t *testing.T, seed int64) *faultyMarket {
	f := &faultyMarket{market: newMarket(t, seed), lost: map[string]time.Time{}, deleted: map[string][]*corev1.Pod{}, excuses: map[string]int{},
		excused: map[string]bool{}, counts: map[string]int{}}
	f.stop = f.start.Add(5 * time.Minute)
	f.carryOut = f.begin
	f.isExcused = func(p *evictions.Eviction) bool { return f.excused[p.ID] || f.countsOnOverduePod(p) }
	f.priorityOf = func(class string) (int32, bool) { return int32(class[0] - '0'), true }
	f.r = f.newRegistry()
	f.lead()
	for _, n := range slices.Sorted(maps.Keys(f.nodes)) {
		uid := types.UID("plain." + n)
		f.pods[uid] = wrappers.MakePod(string(uid), "ns").UID(string(uid)).Priority(int32(f.rand.Intn(3))).Node(n).Obj()
	}
	return f
}

func (f *faultyMarket) chance(percent float64) bool { return f.rand.Float64()*100 < percent }

func (f *faultyMarket) runFor(d time.Duration) {
	for end := f.now.Add(d); f.now.Before(end); {
		f.step()
	}
}

// step is what happens within 100 ms.
func (f *faultyMarket) step() {
	if f.now.Before(f.stop) {
		f.fault()
	}
	for range 1 + f.rand.Intn(4) {
		f.write()
	}
	for _, n := range slices.Sorted(maps.Keys(f.lost)) {
		if !f.now.Before(f.lost[n]) {
			delete(f.lost, n)
			f.nodes[n], f.room = 6, nil
			f.r.RecordPreemptionMayHelp()
			f.apply(f.r.RetryWaiting([]Shape{f.market}, []Topic{Anything}, f.now))
		}
	}
	f.market.step()
}

// begin begins what the registry requests.
func (f *faultyMarket) begin(e Effects) {
	for _, p := range e.Mark {
		f.jobs = append(f.jobs, &evictionJob{p: p, left: uidsOf(p.Victims)})
	}
	for _, p := range e.Unmark {
		f.jobs = append(f.jobs, &evictionJob{p: p, unmarks: true, left: uidsOf(p.Victims)})
	}
	for _, p := range e.Evict {
		if !f.resuming {
			f.checkNeeded(p)
			f.checkAllowed(p)
		}
		f.jobs = append(f.jobs, deletionOf(p))
	}
}

// checkAllowed: the evictions begin for a gang that exists, of a lower priority and not protected, and each gang loses
// all or keeps its minimum.
func (f *faultyMarket) checkAllowed(p *evictions.Eviction) {
	f.t.Helper()
	name := p.Gang.Name
	if f.groups[p.Gang] == nil {
		f.t.Errorf("pods end for %s, which is gone", name)
	}
	if f.decisions[name]++; f.decisions[name] > 1+f.overtaken[name]+f.preempted[name]+f.excuses[name] {
		f.t.Errorf("%s ended others %d times: it was preempted %d times, overtaken %d times, and there were %d faults", name, f.decisions[name], f.preempted[name], f.overtaken[name], f.excuses[name])
	}
	f.last = f.now
	lost := map[Key]int{}
	for _, v := range p.Victims {
		f.victims++
		if pod := f.pods[v.Pod.UID]; pod != nil && pod.DeletionTimestamp == nil {
			lost[v.Gang]++
		}
	}
	for key, n := range lost {
		group, left := f.groups[key], f.boundOf(key)-n
		switch {
		case group == nil: // pods without a gang
		case f.r.gangs[key].evictionPriority() >= p.Priority:
			f.t.Errorf("%s of priority %d ends pods of %s of priority %d", name, p.Priority, key.Name, f.r.gangs[key].evictionPriority())
		case group.Spec.Preemptibility == v2alpha2.NonPreemptible, left > 0 && left < int(*group.Spec.MinMember), left == 0 && group.Spec.Preemptibility == v2alpha2.SemiPreemptible:
			f.t.Errorf("%s ends %d pods of %s (%s), of which %d are left", name, n, key.Name, group.Spec.Preemptibility, left)
		case left == 0:
			f.preempted[key.Name]++
		}
	}
}

// write performs one request of a job.
func (f *faultyMarket) write() {
	if len(f.jobs) == 0 || f.dies != nil && f.dies() {
		return
	}
	i := f.rand.Intn(len(f.jobs))
	job := f.jobs[i]
	end := func() { f.jobs = slices.Delete(f.jobs, i, i+1) }
	marks := !job.deletes && !job.unmarks
	switch {
	case marks && f.now.Before(f.stop) && f.chance(2):
		f.count("a mark is refused")
		end()
		f.apply(f.r.RecordMarked(job.p, errors.New("refused"), f.now))
	case len(job.spared) > 0:
		f.change(job.spared[0], func(pod *corev1.Pod) {
			if marked, _ := planOf(pod); marked == job.p.ID {
				replaceMark("")(pod)
			}
		})
		job.spared = job.spared[1:]
	case len(job.left) == 0:
		end()
		if marks {
			f.apply(f.r.RecordMarked(job.p, nil, f.now))
		} else if job.deletes {
			f.apply(f.r.RecordEvicted(job.p, nil, f.now))
		}
	case len(job.witnesses) > 0:
		f.change(job.witnesses[0], replaceMark(markOf(job.p.ID, true)))
		job.witnesses = job.witnesses[1:]
	default:
		uid := job.left[0]
		job.left = job.left[1:]
		if pod := f.pods[uid]; pod != nil && pod.DeletionTimestamp == nil {
			f.writeVictim(job, pod)
		}
	}
}

func (f *faultyMarket) writeVictim(job *evictionJob, pod *corev1.Pod) {
	marked, _ := planOf(pod)
	f.say("%s: a request for plan %s, deletes %t, unmarks %t", pod.Name, job.p.ID, job.deletes, job.unmarks)
	switch {
	case job.deletes:
		f.deleteVictim(job.p, pod)
	case !job.unmarks:
		f.change(pod.UID, replaceMark(markOf(job.p.ID, false)))
	case marked == job.p.ID:
		f.change(pod.UID, replaceMark(""))
	}
}

// change changes a pod, if it exists.
func (f *faultyMarket) change(uid types.UID, edit func(*corev1.Pod)) {
	if f.pods[uid] != nil {
		f.update(uid, edit)
	}
}

// countsOnOverduePod reports whether a pod should have ended by now on whose room the preemption counts.
func (f *faultyMarket) countsOnOverduePod(p *evictions.Eviction) bool {
	return slices.ContainsFunc(slices.Concat(p.Pods(), p.Awaited), func(of *corev1.Pod) bool {
		pod := f.pods[of.UID]
		return pod != nil && pod.DeletionTimestamp != nil && pod.DeletionTimestamp.Time.Before(f.now)
	})
}

// deleteVictim lets a victim terminate, for up to 20 s, or for minutes.
func (f *faultyMarket) deleteVictim(p *evictions.Eviction, pod *corev1.Pod) {
	f.deleted[p.ID] = append(f.deleted[p.ID], pod)
	grace := time.Duration(f.rand.Intn(20_000)) * time.Millisecond
	f.ends[pod.UID] = f.now.Add(grace)
	if f.now.Before(f.stop) && f.chance(3) {
		f.count("a victim does not end")
		f.excuseAll()
		f.ends[pod.UID] = f.now.Add(4 * time.Minute)
	}
	f.update(pod.UID, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: f.now.Add(grace)} })
}

func (f *faultyMarket) count(fault string) {
	f.counts[fault]++
	f.say("%s", fault)
}

// excuseAll excuses all gangs that preempt, or will have to decide anew.
func (f *faultyMarket) excuseAll() {
	for key, g := range f.r.gangs {
		if g.preemption != nil {
			f.excused[g.preemption.ID] = true
		}
		f.excuses[key.Name]++
	}
}

// fault lets something go wrong, about every ten seconds, and more often while a gang preempts.
func (f *faultyMarket) fault() {
	var preempting, running []Key
	for _, key := range sortedKeys(f.groups) {
		g := f.r.gangs[key]
		if g.preemption != nil {
			preempting = append(preempting, key)
		}
		if g.victimOf != nil || f.boundOf(key) > 0 && f.chance(10) {
			running = append(running, key)
		}
	}
	if !f.chance(1 + 2*float64(len(preempting))) {
		return
	}
	switch n := f.rand.Intn(10); {
	case n < 4:
		f.count("another process leads")
		f.excuseAll()
		f.r = f.newRegistry()
		f.lead()
	case n < 7 && len(running) > 0:
		key := running[f.rand.Intn(len(running))]
		f.count("the rank of " + key.Name + " changes")
		f.excuses[key.Name]++ // it may be a preemptor
		f.editGroup(key, func(s *v2alpha2.PodGroupSpec) {
			s.PriorityClassName = fmt.Sprint(f.rand.Intn(6))
			s.Preemptibility = []v2alpha2.Preemptibility{v2alpha2.Preemptible, v2alpha2.NonPreemptible, v2alpha2.SemiPreemptible}[f.rand.Intn(3)]
		})
		f.excuseAll() // others may have decided by its rank
	case n < 9 && len(preempting) > 0:
		key := preempting[f.rand.Intn(len(preempting))]
		f.count("preemptor " + key.Name + " is deleted")
		f.excused[f.r.gangs[key].preemption.ID] = true
		f.deleteGang(key)
	case len(f.lost) < 2:
		f.count("a node is lost")
		f.excuseAll()
		f.loseNode(fmt.Sprintf("n%d", f.rand.Intn(len(f.nodes))))
	}
}

// lead lets a new process lead: what it knows is what the objects say.
func (f *faultyMarket) lead() {
	clear(f.active)
	f.room, f.jobs = nil, nil
	for _, key := range sortedKeys(f.groups) {
		f.dirty[key] = true
		f.r.SetGroup(f.groups[key], f.now)
	}
	marked := map[string][]MarkedPod{}
	for _, uid := range sortedUIDs(f.pods) {
		f.r.SetPod(f.pods[uid], f.now)
		if plan, witness := planOf(f.pods[uid]); plan != "" {
			marked[plan] = append(marked[plan], MarkedPod{Pod: f.pods[uid], Witness: witness})
		}
	}
	f.apply(f.r.SetSynced(f.now))
	f.r.SetLeading()
	f.resuming = true
	for _, x := range f.r.RecordedEvictions() {
		effects, ok := f.r.RestorePreemption(x.Gang, x.Plan, marked[x.Plan], f.now)
		f.apply(effects)
		if ok {
			f.excused[x.Plan] = true
			delete(marked, x.Plan)
		}
	}
	f.apply(f.r.AbandonedEvictions(marked, f.now))
	f.resuming = false
}

// deleteGang deletes a PodGroup with its pods.
func (f *faultyMarket) deleteGang(key Key) {
	delete(f.groups, key)
	f.apply(f.r.RemoveGroup(key, f.now))
	for _, uid := range sortedUIDs(f.pods) {
		if pod := f.pods[uid]; keyOf(pod) == key {
			f.removePod(pod)
		}
	}
}

// removePod removes a pod from one moment to the next.
func (f *faultyMarket) removePod(pod *corev1.Pod) {
	delete(f.pods, pod.UID)
	delete(f.ends, pod.UID)
	delete(f.active, pod.UID)
	f.room = nil
	f.apply(f.r.RemoveFailedPod(pod.UID, f.now))
	f.apply(f.r.RemovePod(pod.UID, f.now)) // of a pod without a gang
	if pod.Spec.NodeName != "" {
		f.r.RecordPodsEnded([]*corev1.Pod{pod}, f.now)
		f.apply(f.r.RetryWaiting([]Shape{f.market}, []Topic{Anything}, f.now))
	}
}

// loseNode removes a node for half a minute, with its pods, which are created again.
func (f *faultyMarket) loseNode(name string) {
	if _, ok := f.nodes[name]; !ok {
		return
	}
	delete(f.nodes, name)
	f.lost[name] = f.now.Add(30 * time.Second)
	for _, uid := range sortedUIDs(f.pods) {
		pod := f.pods[uid]
		if pod.Spec.NodeName != name {
			continue
		}
		f.removePod(pod)
		if key := keyOf(pod); f.groups[key] != nil {
			f.createPod(key, *pod.Spec.Priority)
		}
	}
}

// checkWhole: no mark is left, and what was begun was finished: of each gang that lost pods by a decision, all victims
// have ended.
func (f *faultyMarket) checkWhole() {
	f.t.Helper()
	for _, uid := range sortedUIDs(f.pods) {
		pod := f.pods[uid]
		plan, _ := planOf(pod)
		if plan == "" || pod.DeletionTimestamp != nil {
			continue
		}
		f.t.Errorf("%s has the mark of plan %s", pod.Name, plan)
		for _, other := range f.deleted[plan] {
			if keyOf(other) == keyOf(pod) && strings.Contains(other.Name, "-") {
				f.t.Errorf("%s ended by plan %s, and %s of the same gang did not", other.Name, plan, pod.Name)
			}
		}
	}
	if len(f.jobs) > 0 {
		f.t.Errorf("%d jobs are left", len(f.jobs))
	}
}
