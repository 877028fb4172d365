// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// A pod without a gang preempts as a gang of one (docs/decisions, G15). It has no PodGroup: nothing of its evictions is
// recorded, and its room is kept by its nomination. It is in the stock queue, where the ends of pods wake it; what else
// it waits for is here.

// podPreemptor is a pod without a gang that waits for what a search for victims has led to.
type podPreemptor struct {
	pod      *corev1.Pod
	eviction *evictions.Eviction // nil: none is under way
	node     string              // for which it is nominated because of its eviction
	ended    time.Time           // when all of its victims had ended; zero: they have not
	again    time.Time           // when the pod is activated; zero: it is not
	paused   string              // why it does not preempt until then; "": it may
	wasted   int                 // consecutive evictions after which it did not fit
	cuts     int                 // consecutive searches that were cut short
}

const (
	waitsForVictims = "it waits until the pods that it preempts have ended"
	tookTooLong     = "the search for victims took too long"
)

// BeginPodPreemption returns what a pod without a gang, which no node takes, needs to preempt others. nil: it may not
// now, and why; waits: it keeps its nominated node.
func (r *Registry) BeginPodPreemption(pod *corev1.Pod, now time.Time) (w *Work, why string, waits bool, e Effects) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	priority, x := count.PodPriority(pod), r.preemptors[pod.UID]
	switch {
	case pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever:
		return nil, "the pod has preemptionPolicy Never", true, e
	case !r.resumed:
		r.retryPod(pod, retryInterval)
		return nil, "the PodGroups, and the evictions of an earlier process, are not known yet", true, e
	case x != nil && x.eviction != nil && !r.seesItsRoom(x):
		return nil, waitsForVictims, true, e
	case x != nil && x.eviction != nil: // whatever took the room may take it again
		e = r.endCall(r.endInVain(x, wastedPause(x.wasted)))
	}
	switch {
	case x != nil && x.paused != "":
		return nil, x.paused, x.cuts > 0, e
	case priority <= r.lowest: // the cycle may see one that was not observed yet, and no event follows that wakes the pod
		r.beneath.pods[pod.UID] = pendingPod{pod: pod, since: r.now}
		return nil, "no pod on a node has a lower priority", false, e
	case x != nil && x.cuts > 0 && !r.searches.isOpen(now):
		x.again = r.searches.spent
		return nil, tookTooLong, true, e
	}
	r.searching = pod.UID
	w = &Work{
		Pod: pod, Tree: anyTree, Priority: priority, EvictionPriorities: []int32{priority}, EvictionPriority: priority, roomPriority: priority,
		Classes: []*corev1.Pod{pod}, Pods: []*corev1.Pod{pod}, all: map[string][]placement.Pod{"": {{ID: string(pod.UID)}}},
	}
	w.Problem = placement.Problem{Tree: anyTree, Pods: w.all}
	if x != nil {
		w.Cuts, x.cuts = x.cuts, 0
	}
	return w, "", false, e
}

// seesItsRoom reports whether the cycles of a pod see that its victims have ended, and so have those of others on its
// node whose nominations the filters count.
func (r *Registry) seesItsRoom(x *podPreemptor) bool {
	for _, y := range r.preemptors {
		if y.eviction != nil && y.node == x.node && y.eviction.Priority >= x.eviction.Priority && (y.ended.IsZero() || r.now.Sub(y.ended) < observedLate) {
			return false
		}
	}
	return true
}

// RecordPodPreemption records a decision for a pod without a gang. ok is false if it does not hold any more, or the pod
// is gone since BeginPodPreemption.
func (r *Registry) RecordPodPreemption(w *Work, d Preempting, now time.Time) (e Effects, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	if r.searching != w.Pod.UID {
		return Effects{}, false
	}
	x := r.retryPod(w.Pod, 0)
	p := &evictions.Eviction{
		ID: d.ID, Pod: w.Pod, Priority: w.EvictionPriority, Victims: d.Victims, Decided: now, Awaited: d.Awaited, Timeout: r.opts.PreemptionTimeout,
	}
	if x.eviction != nil || r.areTaken(p, nil) {
		x.again = now.Add(retryInterval)
		return Effects{}, false
	}
	e = r.chooseVictims(p, w)
	p.Begin(evictions.Recorded, now)
	x.eviction, x.node, x.ended = p, d.Placements[0].Node, time.Time{}
	e.Mark = append(e.Mark, p)
	return r.endCall(e), true
}

// RetryPodPreemption lets a pod without a gang, for which a search has found no victims, be tried again after some
// time.
func (r *Registry) RetryPodPreemption(pod *corev1.Pod, after time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	r.retryPod(pod, after)
}

// RecordPodCut records that a search for victims was cut short after some time: the next one has more.
func (r *Registry) RecordPodCut(w *Work, took time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	r.searches.affords(took, now)
	if r.searching == w.Pod.UID {
		x := r.retryPod(w.Pod, searchShare*took)
		x.cuts, x.paused = w.Cuts+1, tookTooLong
	}
}

// retryPod lets the pod be activated after some time; 0: it is not.
func (r *Registry) retryPod(pod *corev1.Pod, after time.Duration) *podPreemptor {
	x := r.preemptors[pod.UID]
	if x == nil {
		x = &podPreemptor{}
		r.preemptors[pod.UID] = x
	}
	x.pod, x.again = pod, time.Time{}
	if after > 0 {
		x.again = r.now.Add(after)
	}
	return x
}

// endForPod ends the eviction of a pod that is tried again after some time.
func (r *Registry) endForPod(x *podPreemptor, outcome evictions.Outcome, after time.Duration) Effects {
	p := x.eviction
	x.eviction, x.again = nil, r.now.Add(after)
	r.retryBeside(x.node)
	r.plainVictims.Forget(r.now)
	return r.endEviction(p, outcome)
}

// endInVain ends an eviction of a pod that does not fit after it. From the second one on, the pod preempts no others
// until it is tried again.
func (r *Registry) endInVain(x *podPreemptor, after time.Duration) Effects {
	e := r.endForPod(x, x.eviction.Failure(), after)
	if x.wasted++; x.wasted > 1 {
		x.paused = evictedInVain
	}
	return e
}

// retryPreemptors activates the pods whose time has come. It is called by Tick.
func (r *Registry) retryPreemptors() Effects {
	var e Effects
	ended := sets.New[string]() // nodes on which all victims of a pod have ended
	for uid, x := range r.preemptors {
		p := x.eviction
		switch {
		case p != nil && x.ended.IsZero() && !r.now.Before(p.Until()): // its next cycle tells whether it fits, and is nominated no more
			e.add(r.endInVain(x, wastedPause(x.wasted)))
			e.Activate = append(e.Activate, x.pod)
		case p != nil && x.ended.IsZero() && p.Stage() == evictions.Deleted && !p.IsAwaiting(r.isEnding):
			x.ended = r.now
			ended.Insert(x.node)
		case !x.again.IsZero() && !r.now.Before(x.again):
			x.again, x.paused = time.Time{}, ""
			e.Activate = append(e.Activate, x.pod)
			if p == nil && x.wasted+x.cuts == 0 {
				delete(r.preemptors, uid)
			}
		}
	}
	if len(ended) > 0 {
		for _, x := range r.preemptors {
			if x.eviction != nil && !x.ended.IsZero() && ended.Has(x.node) {
				x.again = r.now.Add(observedLate)
				e.Activate = append(e.Activate, x.pod)
			}
		}
	}
	return e
}

// beneathPods are pods without a gang that could not preempt because no pod on a node was known to have a lower
// priority.
type beneathPods struct {
	pods     map[types.UID]pendingPod
	lowest   int32 // Registry.lowest when they were last reviewed
	reviewed time.Time
}

// beneathMemory is how long such a pod is remembered. The stock queue tries all pods again within five minutes, and one
// whose deletion was observed before it was refused is not tried any more.
const beneathMemory = 10 * time.Minute

// retryBeneath activates those of them that may preempt by now.
func (r *Registry) retryBeneath() (e Effects) {
	b := &r.beneath
	if r.lowest == b.lowest && r.now.Sub(b.reviewed) < beneathMemory {
		return Effects{}
	}
	b.lowest, b.reviewed = r.lowest, r.now
	for uid, x := range b.pods {
		switch {
		case count.PodPriority(x.pod) > r.lowest:
			delete(b.pods, uid)
			e.Activate = append(e.Activate, x.pod)
		case r.now.Sub(x.since) >= beneathMemory:
			delete(b.pods, uid)
		}
	}
	return e
}

// reviewPreemptor ends the eviction of a pod without a gang that needs it no more.
func (r *Registry) reviewPreemptor(pod *corev1.Pod) Effects {
	switch {
	case pod.Spec.NodeName != "":
		return r.forgetPreemptor(pod.UID, (*evictions.Eviction).Success)
	case pod.DeletionTimestamp != nil, keyOf(pod).Name != "":
		return r.forgetPreemptor(pod.UID, (*evictions.Eviction).Failure)
	}
	if x := r.preemptors[pod.UID]; x != nil {
		x.pod = pod
	}
	return Effects{}
}

// forgetPreemptor ends what is known of a pod without a gang as a preemptor, if anything is.
func (r *Registry) forgetPreemptor(uid types.UID, outcome func(*evictions.Eviction) evictions.Outcome) Effects {
	delete(r.beneath.pods, uid)
	if r.searching == uid {
		r.searching = ""
	}
	x := r.preemptors[uid]
	if x == nil {
		return Effects{}
	}
	delete(r.preemptors, uid)
	if x.eviction == nil {
		return Effects{}
	}
	r.retryBeside(x.node)
	return r.endEviction(x.eviction, outcome(x.eviction))
}

// retryBeside lets pods be tried again, whose victims have ended, when another one with the same node waits for its own
// no more, and its cycle had time to give up the nomination.
func (r *Registry) retryBeside(node string) {
	for _, x := range r.preemptors {
		if x.eviction != nil && x.node == node && !x.ended.IsZero() && x.again.IsZero() {
			x.again = r.now.Add(observedLate)
		}
	}
}

// preemptor returns what texts call the preemptor.
func (w *Work) preemptor() string {
	if w.Pod != nil {
		return "pod " + w.Pod.Namespace + "/" + w.Pod.Name
	}
	return "gang " + w.Gang.String()
}
