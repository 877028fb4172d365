// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"slices"
	"time"
)

// Pod contains the facts about one pod of a clique.
type Pod struct {
	Name, UID string
	// Index is its index in the clique; -1: the pod has none.
	Index int
	// Created is the creation time of the object.
	Created time.Time

	// Gated: it has scheduling gates. Scheduled: it is bound to a node. Running: its phase is Running. Ready: its
	// condition Ready is True, and its node responds.
	Gated, Scheduled, Running, Ready bool
	// ReadySince is when this process saw that the pod had become ready, never later than now; zero: it is not ready.
	// See Sightings.
	ReadySince time.Time
	// Outdated: it was created from a template that differs from the clique's current one.
	Outdated bool

	// Ended: its phase is Failed or Succeeded. EndedAt is when this process saw that it had ended, or failed, in whole
	// seconds; see Sightings. Lived is how long it existed on its node until then, by the clock of its kubelet; 0: no
	// kubelet accepted it.
	Ended   bool
	EndedAt time.Time
	Lived   time.Duration
	// Succeeded: it ended with success, and this was recorded before it was deleted, or it is not being deleted.
	Succeeded bool
	// Failed: its phase is Failed, or a container that will not be restarted exited non-zero. End describes the
	// failure.
	Failed bool
	End    PodEnd

	// Preempted: a scheduler has preempted it, and it is being deleted, or has failed or ended meanwhile. PreemptedBy
	// is the gang that has preempted it, "ml/urgent (priority 1000)"; "": that is not known, or it was not preempted.
	Preempted   bool
	PreemptedBy string

	// Orphan: no object owns it.
	Orphan bool

	// Terminating: it is being deleted; its grace period ends at GraceEnds. Unreachable: its node does not respond, so
	// that no kubelet will confirm the end of the pod.
	Terminating bool
	GraceEnds   time.Time
	Unreachable bool
	// LostNode is the name of its node if that does not respond and the pod is terminating or has not ended.
	LostNode string
	// Node is the name of its node, "" if it is not bound.
	Node string
	// Unready: its kubelet has said that its containers are not ready.
	Unready bool
	// Tolerates is how long the pod tolerates that its node does not answer; nil: without limit.
	Tolerates *time.Duration
	// Scheduler is the name of its scheduler. Answered: that has bound it, or reported why not.
	// WaitsSince is when this process saw it wait for the scheduler; see Sightings.
	Scheduler  string
	Answered   bool
	WaitsSince time.Time
	// Silence is why it is not known whether the pod runs, or will run: Unknowns.Mark.
	Silence Silence
	// Orphaned: it was deleted because its node does not exist.
	Orphaned bool
	// Cause is text for a message about why the pod is not ready or not bound; "" if the cause is unknown, or the pod
	// is starting. It does not change while the pod retries the same step.
	Cause string
	// Stopped: it is being deleted, and none of its containers is running or will run.
	Stopped bool
	// Tracked: it has the finalizer that prevents the removal of its object until its end has been recorded.
	Tracked bool
}

// isReady reports whether the pod is ready and has not ended. A terminating pod can be ready.
func (p Pod) isReady() bool { return p.Ready && !p.Ended }

// IsAvailable reports whether the pod has been ready for minReady and is not being deleted. Source: docs/decisions, U2,
// W3.
func (p Pod) IsAvailable(minReady time.Duration, now time.Time) bool {
	return p.isReady() && !p.Terminating && (minReady <= 0 || !now.Before(p.ReadySince.Add(minReady)))
}

// isRunning reports whether the pod runs on a node that responds. Source: docs/decisions, J11.
func (p Pod) isRunning() bool { return p.Running && p.LostNode == "" }

// isLost reports whether a terminating pod is considered lost: its node is unreachable and its grace period is over. A
// pod that has ended and needs no kubelet to go is not lost: it goes as soon as its finalizers do.
func (p Pod) isLost(now time.Time) bool {
	return p.Terminating && p.Unreachable && !now.Before(p.GraceEnds) && !(p.Ended && p.Stopped)
}

// CliquePods contains the facts about a clique and its pods.
type CliquePods struct {
	// Replicas is the desired number of pods.
	Replicas int32
	// LeafMinMember is the minMember of the clique's leaf in the existing PodGroup; 0: the PodGroup does not list it.
	// Scaling in keeps that many pods until the PodGroup has been lowered.
	LeafMinMember int32
	// MinAvailable is the number of pods that must be ready. OnDelete: the update strategy is OnDelete, with which
	// scaling in deletes outdated pods first.
	MinAvailable int32
	OnDelete     bool
	// Pods are the pods that the clique owns, in any order.
	Pods []Pod
	// Others are pods that are labelled with the clique's name but have another owner or none, usually an earlier
	// PodClique of that name. They have the hostnames that pods of this clique would have.
	Others []Pod
	// Ends is the history of pods that ended, by index, as last returned by DecidePods.
	Ends map[int]Ends
}

// PodDecision is the decision on the pods of a clique.
type PodDecision struct {
	// Create are the pods to create, lowest index first.
	Create []NewPod
	// Delete are the pods to delete, in this order.
	Delete []Deletion
	// Lost are terminating pods on unreachable nodes whose index is reused by a pod in Create.
	Lost []Pod
	// Blocked are the pods of Others whose index is needed. The clique waits until they are gone.
	Blocked []Pod
	// Ends is the history to record. It must be recorded before Delete is carried out; otherwise the back-off of a
	// crash loop starts again.
	Ends map[int]Ends
	// Deferred is the number of pods that scaling in will delete once the PodGroup has been lowered.
	Deferred int
	// RequeueAfter is when the decision changes without an event; 0: it does not.
	RequeueAfter time.Duration
}

// NewPod is a pod to create.
type NewPod struct {
	Index int
	// Replaces is the UID of the lost pod whose index it reuses, usually "". It is part of the name, see
	// naming.PodName.
	Replaces string
}

// Deletion is a pod to delete, with the reason for the event.
type Deletion struct {
	Pod    Pod
	Reason DeletionReason
}

// DeletionReason is why a pod is deleted.
type DeletionReason string

const (
	// DeletedEnded: it failed or succeeded, and is replaced by a pod with the same index.
	DeletedEnded DeletionReason = "Ended"
	// DeletedScaleIn: there are more pods than replicas.
	DeletedScaleIn DeletionReason = "ScaleIn"
	// DeletedDuplicate: an older pod has the same index.
	DeletedDuplicate DeletionReason = "DuplicateIndex"
)

// DecidePods returns which pods to create and which to delete. Source: docs/decisions, W4.
//
//   - Terminating pods are not counted and not selected again. The index of a terminating pod stays in use until its
//     object is gone, or its node is unreachable and its grace period is over. A replacement waits for this index and
//     does not take a higher one.
//   - The same holds for the index of a pod of Others, whether it is terminating or not. A pod of Others that ended and
//     has no owner is ignored, because it does not run and no controller deletes it.
//   - A pod that ended keeps its index, is deleted after a back-off (EndedDelay), and is replaced when it is gone.
//   - Scaling in deletes pods in the order of InDeletionOrder, never more than the PodGroup allows.
//   - Of two pods with the same index the younger is deleted.
//
// A pod without an index, whose hostname and label were changed, is counted, and is the first to be deleted when
// scaling in.
func DecidePods(c CliquePods, now time.Time) PodDecision {
	d := PodDecision{Ends: map[int]Ends{}}

	// 1. Find the pods that count, and the indices in use.
	counted, indices := d.countPods(c, now)

	// 2. Scale in, as far as the PodGroup allows.
	surplus := len(counted) - int(max(c.Replicas, 0))
	allowed := max(0, min(surplus, len(counted)-int(c.LeafMinMember)))
	d.Deferred = max(0, surplus) - allowed
	order := InDeletionOrder(counted)
	if c.OnDelete {
		order = inDeletionOrderOnDelete(counted, c.MinAvailable)
	}
	for _, p := range order[:allowed] {
		d.Delete = append(d.Delete, Deletion{p, DeletedScaleIn})
	}

	// 3. Replace pods that ended.
	for _, p := range order[allowed:] {
		if p.Ended {
			d.replaceEnded(p, c.Ends, now)
		}
	}
	for i, e := range c.Ends {
		if _, newer := d.Ends[i]; !newer && now.Sub(e.Last) < forgetEnds {
			d.Ends[i] = e
		}
	}
	d.Ends = boundedEnds(d.Ends)

	// 4. Fill the lowest indices; wait for an index that is about to be free.
	for i, missing := 0, -surplus; missing > 0; i++ {
		x := indices[i]
		if x != nil && x.live != nil {
			continue
		}
		missing--
		switch {
		case x == nil:
			d.createAt(i, nil)
		case x.blocked != nil:
			d.Blocked = append(d.Blocked, *x.blocked)
		case x.leaving == nil:
			d.createAt(i, x.lost)
		}
	}
	return d
}

// podsByIndex contains the pods of a clique by index.
type podsByIndex map[int]*indexPods

// indexPods contains the pods with one index; nil: there is none.
type indexPods struct {
	live    *Pod // it counts
	failed  *Pod // of a Training workload, and not terminating: a container has failed, or the pod has ended
	leaving *Pod // a pod that is about to go, and not lost
	lost    *Pod // the youngest
	blocked *Pod // a pod of another owner
}

func (m podsByIndex) at(i int) *indexPods {
	if m[i] == nil {
		m[i] = &indexPods{}
	}
	return m[i]
}

// countPods returns the pods that count, the oldest first, and all by index. A younger pod of the same index is
// deleted.
func (d *PodDecision) countPods(c CliquePods, now time.Time) (counted []Pod, indices podsByIndex) {
	pods := slices.Clone(c.Pods)
	slices.SortFunc(pods, byAge)
	indices = podsByIndex{}
	for k := range pods {
		p := &pods[k]
		switch x := indices.at(p.Index); {
		case d.addTerminating(x, p, now):
		case p.Index >= 0 && x.live != nil:
			d.Delete = append(d.Delete, Deletion{*p, DeletedDuplicate})
			x.leaving = p
		default:
			x.live = p
			counted = append(counted, *p)
		}
	}
	d.addOthers(indices, c.Others, now)
	return counted, indices
}

// addTerminating adds a terminating pod to those of its index, and reports whether it is one.
func (d *PodDecision) addTerminating(x *indexPods, p *Pod, now time.Time) bool {
	switch {
	case p.isLost(now):
		x.lost = p
	case p.Terminating:
		x.leaving = p
		if p.Unreachable && now.Before(p.GraceEnds) {
			d.requeueAt(p.GraceEnds, now)
		}
	default:
		return false
	}
	return true
}

// addOthers adds the pods of other owners.
func (d *PodDecision) addOthers(indices podsByIndex, others []Pod, now time.Time) {
	for k := range others {
		p := &others[k]
		switch {
		case p.Ended && p.Orphan && !p.Terminating:
		case !p.isLost(now):
			indices.at(p.Index).blocked = p
			if p.Terminating && p.Unreachable && now.Before(p.GraceEnds) {
				d.requeueAt(p.GraceEnds, now)
			}
		case indices.at(p.Index).lost == nil:
			indices.at(p.Index).lost = p
		}
	}
}

// createAt creates a pod, which reuses the index of a lost pod, nil: there is none.
func (d *PodDecision) createAt(index int, lost *Pod) {
	created := NewPod{Index: index}
	if lost != nil {
		created.Replaces = lost.UID
		d.Lost = append(d.Lost, *lost)
	}
	d.Create = append(d.Create, created)
}

// requeueAt requests the next decision at time t.
func (d *PodDecision) requeueAt(t, now time.Time) {
	d.RequeueAfter = Sooner(d.RequeueAfter, delayUntil(t, now))
}

// replaceEnded deletes a pod that ended once its back-off is over, and adds the end to the history; its successor is
// created when the pod is gone. before is the recorded history.
func (d *PodDecision) replaceEnded(p Pod, before map[int]Ends, now time.Time) {
	ends := p.endsBefore(before)
	if due := p.EndedAt.Add(EndedDelay(ends.Count)); now.Before(due) {
		d.requeueAt(due, now)
		return
	}
	d.Delete = append(d.Delete, Deletion{p, DeletedEnded})
	d.Ends[p.Index] = Ends{Count: ends.Count + 1, Last: p.EndedAt}
}

// InDeletionOrder returns the pods in the order in which scaling in deletes them: pods that ended first, then pods
// without an index, never scheduled, not ready, outdated, newest first; then by highest index, then by name. The order
// is total. The caller must leave out terminating pods.
func InDeletionOrder(pods []Pod) []Pod {
	sorted := slices.Clone(pods)
	first := func(a, b bool) int { // true sorts first
		switch {
		case a == b:
			return 0
		case a:
			return -1
		default:
			return 1
		}
	}
	slices.SortFunc(sorted, func(a, b Pod) int {
		return cmp.Or(
			first(a.Ended, b.Ended),
			first(a.Index < 0, b.Index < 0),
			first(!a.Scheduled, !b.Scheduled),
			first(!a.Ready, !b.Ready),
			first(a.Outdated, b.Outdated),
			b.Created.Compare(a.Created),
			cmp.Compare(b.Index, a.Index),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.UID, b.UID),
		)
	})
	return sorted
}

// byAge sorts the oldest first.
func byAge(a, b Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
