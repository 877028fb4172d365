// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// arrivalGrace is how long a pod may exist before its PodGroup, or after its place in it was removed, before an event
// reports this. Pods and PodGroup are often created by one command, in any order, and a controller that scales in
// lowers the PodGroup before it deletes pods.
const arrivalGrace = 2 * time.Second

const (
	// maxRefused is the number of failed writes after which a check of a gang ends and is retried later. The API server
	// may be down, or the gang being bound since its facts were read, and it may have thousands of waiting pods.
	maxRefused = 10
	// writingLimit is how long a check of a gang writes before the facts are read again, by which it may have moved on.
	writingLimit = time.Second
)

// gatedPods writes the information about gated pods for users: the condition PodScheduled, and events.
type gatedPods struct {
	Options
	pace   *pacer
	queue  queue
	makers *makers

	mu    sync.Mutex
	gangs map[gangs.Key]*gatedGang // guarded by mu; an entry belongs to the worker that processes the key
}

// gatedGang is the state of a gang's waiting pods between two checks.
type gatedGang struct {
	refusedSince time.Time // since when the gang has needed capacity without interruption; zero: it does not
	lackingSince time.Time // since when the gang has lacked pods without interruption; zero: it does not
	pods         map[types.UID]*gatedPod
	announced    map[string]sets.Set[string] // by HeldNote.Kind: leaves for which an event was emitted on a pod
	lost         sets.Set[string]            // causes for which an event about pods without a place in the gang was emitted
}

// gatedPod is the state of one waiting pod.
type gatedPod struct {
	written   string    // the last reason written, "" = none
	said      said      // the last message written
	note      said      // the message that the pod should have
	noteSince time.Time // since when the pod should have this message
	idleSince time.Time // since when the pod has waited for something other than capacity; zero: it does not
	lostSince time.Time // since when it has had no place in a PodGroup; zero: it has one
}

// said is the part of a message that is written again when it changes.
type said struct{ head, advice string }

func saidBy(n podgroup.HeldNote) said { return said{head: n.Head, advice: n.Advice} }

func newGatedPods(o Options, m *makers) *gatedPods {
	return &gatedPods{Options: o, pace: newPacer(o.Registry), queue: newQueue(o.Clock), makers: m, gangs: map[gangs.Key]*gatedGang{}}
}

// syncGang processes the waiting pods of one gang, and returns the time until the next of them is due.
func (h *gatedPods) syncGang(ctx context.Context, key gangs.Key) (time.Duration, error) {
	now := h.Clock.Now()
	f, ok, wait := h.pace.factsIfDue(key, now)
	if wait > 0 {
		return wait, nil
	}
	if !ok || len(f.Waiting) == 0 {
		h.mu.Lock()
		delete(h.gangs, key)
		h.mu.Unlock()
		return 0, nil
	}
	gated := h.gangOf(key)
	gated.observePods(f, now)

	next := h.reportLost(f, gated, now)
	if !gated.lackingSince.IsZero() {
		// The statuses' path does the same. What it reads is shared, so an owner is read once.
		if wait := gated.lackingSince.Add(makersAfter).Sub(now); wait > 0 {
			next = shorterWait(next, wait)
		} else {
			h.makers.completeFacts(ctx, &f)
		}
	}
	var errs []error
	notes, until := podgroup.NotesOf(f), h.Clock.Now().Add(writingLimit)
	for _, w := range f.Waiting {
		reason, due := h.reasonFor(f, w, gated, notes, now)
		switch {
		case reason == "":
		case due > 0:
			next = shorterWait(next, due)
		default:
			if !h.Clock.Now().Before(until) {
				return gather, errors.Join(errs...)
			}
			note := notes.NoteOf(w)
			written, err := h.writeCondition(ctx, w, gated.pods[w.Pod.UID], reason, note, now)
			if err != nil {
				if errs = append(errs, err); len(errs) == maxRefused {
					return next, errors.Join(errs...)
				}
			}
			if written {
				h.announceReason(f, w, gated, reason, note)
			}
		}
	}
	return next, errors.Join(errs...)
}

// shorterWait returns the shorter of two waiting times, where 0 means none.
func shorterWait(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (h *gatedPods) gangOf(key gangs.Key) *gatedGang {
	h.mu.Lock()
	defer h.mu.Unlock()
	gated := h.gangs[key]
	if gated == nil {
		gated = &gatedGang{pods: map[types.UID]*gatedPod{}, announced: map[string]sets.Set[string]{}, lost: sets.New[string]()}
		h.gangs[key] = gated
	}
	return gated
}

// observePods records when states began, and removes pods that no longer wait.
func (gated *gatedGang) observePods(f podgroup.Facts, now time.Time) {
	needs, isNew := false, len(gated.pods) == 0
	waiting := sets.New[types.UID]()
	for _, w := range f.Waiting {
		waiting.Insert(w.Pod.UID)
		p := gated.pods[w.Pod.UID]
		if p == nil {
			p = &gatedPod{idleSince: w.Since}
			gated.pods[w.Pod.UID] = p
		}
		switch lost := f.Group == nil || w.Misplaced != ""; {
		case !lost:
			p.lostSince = time.Time{}
		case p.lostSince.IsZero():
			p.lostSince = now
		}
		switch {
		case w.NeedsCapacity:
			needs, p.idleSince = true, time.Time{}
		case p.idleSince.IsZero():
			p.idleSince = now
		}
	}
	switch {
	case !podgroup.LacksPods(f):
		gated.lackingSince = time.Time{}
	case gated.lackingSince.IsZero():
		gated.lackingSince = now
		for _, w := range f.Waiting {
			if isNew && w.Since.Before(gated.lackingSince) {
				gated.lackingSince = w.Since // the first check is later than the first pod
			}
		}
	}
	switch {
	case !needs:
		gated.refusedSince = time.Time{}
	case gated.refusedSince.IsZero():
		gated.refusedSince = f.Refused.At // later refusals without interruption do not change it
	}
	for uid := range gated.pods {
		if !waiting.Has(uid) {
			delete(gated.pods, uid)
		}
	}
}

// reasonFor returns the reason for PodScheduled=False that the pod should have, and the time until it should be
// written. "": none, or the written reason is still correct.
func (h *gatedPods) reasonFor(f podgroup.Facts, w podgroup.WaitingPod, gated *gatedGang, notes *podgroup.HeldNotes, now time.Time) (string, time.Duration) {
	if w.Gated {
		return "", 0 // the API server sets the condition, with its own reason
	}
	p := gated.pods[w.Pod.UID]
	var note podgroup.HeldNote
	if p.written != "" { // before the first write, which most pods do not wait for, no note is compared
		if note = notes.NoteOf(w); p.note != saidBy(note) {
			p.note, p.noteSince = saidBy(note), now
		}
	}
	unschedulable := f.Group == nil || f.Group.Spec.MarkUnschedulable == nil || *f.Group.Spec.MarkUnschedulable
	reason, since, after := v2alpha2.EventWaitingForGang, p.idleSince, h.WaitingForGangAfter
	switch {
	case w.NeedsCapacity && unschedulable:
		reason, since, after = corev1.PodReasonUnschedulable, gated.refusedSince, h.NeedsCapacityAfter
	case w.NeedsCapacity:
		since = w.Since
	case w.Misplaced == "" && gated.lackingSince.After(since):
		since = gated.lackingSince // so that the first message has the advice, which is known after makersAfter
	}
	if p.written == reason {
		if p.said == saidBy(note) {
			return "", 0
		}
		// Only the message would change. The reason of a PodGroup may change with every attempt, and some pass by
		// themselves, so the new one must last first, and so must advice.
		since, after = p.noteSince, h.WaitingForGangAfter
	}
	return reason, max(0, since.Add(after).Sub(now))
}

// writeCondition patches PodScheduled, unless the pod has the condition already: the scheduler writes the condition of
// a leader that it tried, and the two must not alternate. A change of numbers in the message does not justify a write;
// another reason or other advice does.
//
// The patch changes only this condition, and succeeds only on the version of the pod for which it was computed: a pod
// that was bound in the meantime keeps PodScheduled=True. It reports whether the condition was new for the pod and
// was written.
func (h *gatedPods) writeCondition(ctx context.Context, w podgroup.WaitingPod, p *gatedPod, reason string, note podgroup.HeldNote, now time.Time) (bool, error) {
	condition := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: note.Text,
		LastProbeTime: metav1.Time{}, LastTransitionTime: metav1.NewTime(now),
	}
	for _, c := range w.Pod.Status.Conditions {
		if c.Type != corev1.PodScheduled {
			continue
		}
		if c.Status == corev1.ConditionTrue || c.Reason == reason && note.IsIn(c.Message) {
			p.written, p.said = reason, saidBy(note)
			return false, nil
		}
		if c.Status == condition.Status {
			condition.LastTransitionTime = c.LastTransitionTime
		}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": w.Pod.UID, "resourceVersion": w.Pod.ResourceVersion},
		"status":   map[string]any{"conditions": []corev1.PodCondition{condition}},
	})
	if err != nil {
		return false, err
	}
	writing, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = h.Client.CoreV1().Pods(w.Pod.Namespace).Patch(writing, w.Pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("writing condition PodScheduled of %s: %w", klog.KObj(w.Pod), err)
	}
	p.written, p.said = reason, saidBy(note)
	return err == nil, nil
}

// maxAnnounced is the maximum number of leaves of a gang with an event about the reason why they wait, per reason.
const maxAnnounced = 8

// announceReason emits an event on the first waiting pod of a leaf, because kubectl describe does not print the message
// of a condition. Source: docs/decisions, G13.
func (h *gatedPods) announceReason(f podgroup.Facts, w podgroup.WaitingPod, gated *gatedGang, reason string, note podgroup.HeldNote) {
	if f.Group == nil || w.Misplaced != "" {
		return // these pods have events of their own
	}
	leaf := membership.Leaf(w.Pod)
	leaves := gated.announced[note.Kind]
	if leaves.Has(leaf) || len(leaves) >= maxAnnounced {
		return
	}
	if leaves == nil {
		leaves = sets.New[string]()
		gated.announced[note.Kind] = leaves
	}
	leaves.Insert(leaf)
	if reason == corev1.PodReasonUnschedulable {
		emitEvent(h.Recorder, w.Pod, true, v2alpha2.EventFailedScheduling, note.Text)
		return
	}
	emitEvent(h.Recorder, w.Pod, false, reason, note.Text)
}

// reportLost emits the events about pods that have no place in the gang: one per cause, on the first pod with this
// cause, and for at most maxAnnounced causes. It returns the time until the next one is due, 0: none.
func (h *gatedPods) reportLost(f podgroup.Facts, gated *gatedGang, now time.Time) time.Duration {
	var next time.Duration
	var due []podgroup.LostPods
	for _, lost := range podgroup.FindLostPods(f) {
		if gated.lost.Has(lost.Cause) || len(gated.lost)+len(due) >= maxAnnounced {
			continue
		}
		if wait := gated.pods[lost.First.UID].lostSince.Add(arrivalGrace).Sub(now); wait > 0 {
			next = shorterWait(next, wait)
			continue
		}
		due = append(due, lost)
	}
	for _, lost := range due {
		gated.lost.Insert(lost.Cause)
		emitEvent(h.Recorder, lost.First, true, lost.Reason, lost.Note)
	}
	return next
}
