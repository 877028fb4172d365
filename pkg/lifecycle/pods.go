package lifecycle

import (
	"cmp"
	"slices"
	"time"
)

// Pod is what is known of one pod of a clique.
type Pod struct {
	Name, UID string
	// Index in its clique; -1: the pod does not say.
	Index int
	// Created is when the object was made, Started when its node took it up; zero: it did not yet.
	Created, Started time.Time

	// Gated: it has scheduling gates. Scheduled: it has a node. Running: its phase says so. Ready: its condition Ready is
	// true.
	Gated, Scheduled, Running, Ready bool
	// Outdated: it was made from another template than the clique's present one.
	Outdated bool

	// Ended: its phase is Failed or Succeeded, since EndedAt.
	Ended   bool
	EndedAt time.Time
	// Succeeded: it ended by itself, with success. One that ended because it was deleted did not, whatever its phase.
	Succeeded bool
	// Failed: its phase is Failed, or a container ended non-zero that is not started again. End says how.
	Failed bool
	End    PodEnd

	// Orphan: no object owns it.
	Orphan bool

	// Terminating: it is being deleted; its grace period ends at GraceEnds. Unreachable: its node does not answer, so
	// that no kubelet will confirm the end.
	Terminating bool
	GraceEnds   time.Time
	Unreachable bool
	// LostNode is the name of its node, if that does not answer and the pod is being deleted, or runs and is not ready.
	LostNode string
	// Cause says in the words of a message why it is not ready, or has no node: "" if nothing is known, or the pod is starting.
	// It stays the same while the pod tries the same again.
	Cause string
	// Stopped: it is being deleted, and no container of it runs any more, or ever will.
	Stopped bool
	// Tracked: it has the finalizer that keeps its object until its end has been recorded.
	Tracked bool
}

// lost reports whether a terminating pod is given up: its node is unreachable and its grace period is over.
func (p Pod) lost(now time.Time) bool {
	return p.Terminating && p.Unreachable && !now.Before(p.GraceEnds)
}

// CliquePods is a clique and its pods.
type CliquePods struct {
	// Replicas is the number of pods wanted.
	Replicas int32
	// LeafMinMember is the minMember of the clique's leaf in the PodGroup as it is now; 0: the PodGroup does not list it.
	// Scaling in stops there until the PodGroup has been lowered.
	LeafMinMember int32
	// MinAvailable is how many pods must be ready, and OnDelete the update strategy: scaling in takes outdated pods first then.
	MinAvailable int32
	OnDelete     bool
	// Pods are those that the clique owns, in any order.
	Pods []Pod
	// Others are pods that bear the clique's name and are owned by another object, or by none: as a rule by an earlier
	// PodClique of that name. They have the host names that pods of this one would have.
	Others []Pod
	// Ends is the history of pods that ended, by index: what DecidePods returned last.
	Ends map[int]Ends
}

// PodDecision is what to do about the pods of a clique.
type PodDecision struct {
	// Create are the pods to make, lowest index first.
	Create []NewPod
	// Delete are the pods to delete, in this order.
	Delete []Deletion
	// Lost are terminating pods on unreachable nodes whose index is given to a pod of Create.
	Lost []Pod
	// Blocked are those of Others whose index is wanted: it is waited for.
	Blocked []Pod
	// Ends is the history to keep. It must be recorded before Delete is carried out, or a crash loop starts its back-off
	// anew.
	Ends map[int]Ends
	// Held is the number of pods that scaling in would delete, were the PodGroup lowered already.
	Held int
	// RequeueAfter is when the decision changes without anything happening; 0: it does not.
	RequeueAfter time.Duration
}

// NewPod is a pod to make.
type NewPod struct {
	Index int
	// Replaces is the UID of the lost pod whose index it gets, "" as a rule. It is part of the name: naming.Pod.
	Replaces string
}

// Deletion is a pod to delete and why, for the event.
type Deletion struct {
	Pod    Pod
	Reason DeletionReason
}

// DeletionReason says why a pod is deleted.
type DeletionReason string

const (
	// DeletedEnded: it failed or succeeded, and is replaced under the same index.
	DeletedEnded DeletionReason = "Ended"
	// DeletedScaleIn: there are more pods than replicas.
	DeletedScaleIn DeletionReason = "ScaleIn"
	// DeletedDuplicate: an older pod has the same index.
	DeletedDuplicate DeletionReason = "DuplicateIndex"
)

// DecidePods says which pods to make and which to delete. Source: docs/decisions, W4.
//
//   - Terminating pods are not counted and not picked again. The index of one stays taken until its object is gone, or its
//     node is unreachable and its grace period over; a replacement waits for it rather than take a higher index.
//   - So does the index of a pod of Others, whether it terminates or not; but one that ended and has no owner holds no index:
//     it does not run, and nothing deletes it.
//   - A pod that ended keeps its index, is deleted after a back-off (EndedDelay), and replaced when it is gone.
//   - Scaling in takes pods in the order of InDeletionOrder, never more than the PodGroup allows.
//   - Of two pods with one index the younger goes.
//
// A pod without an index, whose host name and label were changed, is counted, and goes first when scaling in.
func DecidePods(c CliquePods, now time.Time) PodDecision {
	d := PodDecision{Ends: map[int]Ends{}}
	after := func(t time.Time) { d.after(t, now) }

	// 1. Who counts, and which indices are taken.
	pods := slices.Clone(c.Pods)
	slices.SortFunc(pods, byAge)
	taken := map[int]bool{}   // by a pod that counts
	leaving := map[int]bool{} // by a terminating pod that is not lost
	lost := map[int]Pod{}     // the youngest
	var counted []Pod
	for _, p := range pods {
		switch {
		case p.lost(now):
			lost[p.Index] = p
		case p.Terminating:
			leaving[p.Index] = true
			if p.Unreachable {
				after(p.GraceEnds)
			}
		case p.Index >= 0 && taken[p.Index]:
			d.Delete = append(d.Delete, Deletion{p, DeletedDuplicate})
			leaving[p.Index] = true
		default:
			taken[p.Index] = true
			counted = append(counted, p)
		}
	}
	blocked := map[int]Pod{}
	for _, p := range c.Others {
		switch {
		case p.Ended && p.Orphan && !p.Terminating:
		case !p.lost(now):
			blocked[p.Index] = p
			if p.Terminating && p.Unreachable {
				after(p.GraceEnds)
			}
		default:
			if _, own := lost[p.Index]; !own {
				lost[p.Index] = p
			}
		}
	}

	// 2. Scale in, as far as the PodGroup allows.
	surplus := len(counted) - int(max(c.Replicas, 0))
	allowed := max(0, min(surplus, len(counted)-int(c.LeafMinMember)))
	d.Held = max(0, surplus) - allowed
	order := InDeletionOrder(counted)
	if c.OnDelete {
		order = inDeletionOrderOnDelete(counted, c.MinAvailable)
	}
	for _, p := range order[:allowed] {
		d.Delete = append(d.Delete, Deletion{p, DeletedScaleIn})
	}

	// 3. Pods that ended are replaced.
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

	// 4. Fill the lowest indices; wait for one that is about to be free.
	for i, missing := 0, -surplus; missing > 0; i++ {
		if taken[i] {
			continue
		}
		missing--
		if p, held := blocked[i]; held {
			d.Blocked = append(d.Blocked, p)
			continue
		}
		if leaving[i] {
			continue
		}
		n := NewPod{Index: i}
		if p, ok := lost[i]; ok {
			n.Replaces = p.UID
			d.Lost = append(d.Lost, p)
		}
		d.Create = append(d.Create, n)
	}
	return d
}

// after asks for a decision at a time.
func (d *PodDecision) after(t, now time.Time) {
	d.RequeueAfter = Sooner(d.RequeueAfter, max(t.Sub(now), time.Millisecond))
}

// replaceEnded deletes a pod that ended when its back-off is over, and notes that in the history; its successor is made when
// it is gone. before is the history that was recorded last.
func (d *PodDecision) replaceEnded(p Pod, before map[int]Ends, now time.Time) {
	ends := p.ends(endsOf(before, p.Index))
	if own := before[p.Index]; p.Index >= 0 && own == ends && own.Last.Equal(p.EndedAt) && ends.Count > 0 {
		ends.Count-- // it was counted by a pass whose deletion failed
	}
	if due := p.EndedAt.Add(EndedDelay(ends.Count)); now.Before(due) {
		d.after(due, now)
		return
	}
	d.Delete = append(d.Delete, Deletion{p, DeletedEnded})
	d.Ends[p.Index] = Ends{Count: ends.Count + 1, Last: p.EndedAt}
}

// InDeletionOrder returns the pods in the order in which scaling in takes them: those that ended, without an index,
// never scheduled, not ready, outdated, newest first; then the highest index, then by name. The order is total. Pods that
// terminate are to be left out by the caller.
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
