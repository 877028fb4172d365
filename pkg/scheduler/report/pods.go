package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
)

// arrivalGrace is how long a pod may be ahead of its PodGroup, or outlive its place in it, before an event complains: both
// are often made by one command, in either order, and whoever scales in lowers the PodGroup before deleting pods.
const arrivalGrace = 2 * time.Second

// heldPods writes what users see of a pod that is held: the condition PodScheduled, and events.
type heldPods struct {
	pace                                    *pacer
	client                                  kubernetes.Interface
	recorder                                events.EventRecorder
	clock                                   clock.WithTicker
	waitingForGangAfter, needsCapacityAfter time.Duration
	queue                                   queue

	mu    sync.Mutex
	gangs map[gangstate.Key]*heldGang // guarded by mu; the entries belong to the worker that has the key
}

// heldGang is what is remembered of a gang's waiting pods between two looks.
type heldGang struct {
	refusedSince time.Time // since when the gang has needed capacity without a break; zero: it does not
	pods         map[types.UID]*heldPod
	announced    map[string]sets.Set[string] // by HeldNote.Kind: leaves of which a pod had an event
	lost         sets.Set[string]            // by event and cause: what pods that have no place in the gang were told
}

// heldPod is what is remembered of one waiting pod.
type heldPod struct {
	written   string    // the reason that was written last, "" = none
	head      string    // HeldNote.Head of the message that was written last
	note      string    // HeldNote.Head of the message that the pod should have
	noteSince time.Time // since when it should have that
	idleSince time.Time // since when the pod has waited for something else than capacity; zero: it does not
	lostSince time.Time // since when it has had no place in a PodGroup; zero: it has one
}

func newHeldPods(o Options) *heldPods {
	return &heldPods{
		pace: newPacer(o.Registry), client: o.Client, recorder: o.Recorder, clock: o.Clock,
		waitingForGangAfter: o.WaitingForGangAfter, needsCapacityAfter: o.NeedsCapacityAfter,
		queue: newQueue(o.Clock), gangs: map[gangstate.Key]*heldGang{},
	}
}

// sync looks at the waiting pods of one gang, and returns when the next of them is due.
func (h *heldPods) sync(ctx context.Context, key gangstate.Key) (time.Duration, error) {
	now := h.clock.Now()
	f, ok, wait := h.pace.look(key, now)
	if wait > 0 {
		return wait, nil
	}
	if !ok || len(f.Waiting) == 0 {
		h.mu.Lock()
		delete(h.gangs, key)
		h.mu.Unlock()
		return 0, nil
	}
	held := h.of(key)
	held.observe(f, now)

	next := h.tellLost(f, held, now)
	var errs []error
	notes := podgroup.NotesOf(f)
	for _, w := range f.Waiting {
		note := notes.Of(w)
		reason, due := h.verdict(f, w, held, note, now)
		switch {
		case reason == "":
		case due > 0:
			next = sooner(next, due)
		default:
			written, err := h.write(ctx, w, held.pods[w.Pod.UID], reason, note, now)
			if err != nil {
				errs = append(errs, err)
			}
			if written {
				h.announce(f, w, held, reason, note)
			}
		}
	}
	return next, errors.Join(errs...)
}

// sooner returns the shorter of two waits, where 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (h *heldPods) of(key gangstate.Key) *heldGang {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.gangs[key]
	if held == nil {
		held = &heldGang{pods: map[types.UID]*heldPod{}, announced: map[string]sets.Set[string]{}, lost: sets.New[string]()}
		h.gangs[key] = held
	}
	return held
}

// observe notes when what began, and forgets pods that wait no more.
func (held *heldGang) observe(f podgroup.Facts, now time.Time) {
	needs := false
	waiting := sets.New[types.UID]()
	for _, w := range f.Waiting {
		waiting.Insert(w.Pod.UID)
		p := held.pods[w.Pod.UID]
		if p == nil {
			p = &heldPod{idleSince: w.Since}
			held.pods[w.Pod.UID] = p
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
	case !needs:
		held.refusedSince = time.Time{}
	case held.refusedSince.IsZero():
		held.refusedSince = f.Refused.At // later refusals without a break do not start it afresh
	}
	for uid := range held.pods {
		if !waiting.Has(uid) {
			delete(held.pods, uid)
		}
	}
}

// verdict returns the reason for PodScheduled=False that the pod is to have, and in how long. "": none, or what was written
// stands.
func (h *heldPods) verdict(f podgroup.Facts, w podgroup.WaitingPod, held *heldGang, note podgroup.HeldNote, now time.Time) (string, time.Duration) {
	if w.Gated {
		return "", 0 // the API server said so, with a reason of its own
	}
	p := held.pods[w.Pod.UID]
	if p.note != note.Head {
		p.note, p.noteSince = note.Head, now
	}
	unschedulable := f.Group == nil || f.Group.Spec.MarkUnschedulable == nil || *f.Group.Spec.MarkUnschedulable
	reason, since, after := v2alpha2.EventWaitingForGang, p.idleSince, h.waitingForGangAfter
	switch {
	case w.NeedsCapacity && unschedulable:
		reason, since, after = corev1.PodReasonUnschedulable, held.refusedSince, h.needsCapacityAfter
	case w.NeedsCapacity:
		since = w.Since
	}
	if p.written == reason {
		if p.head == note.Head || note.Passing {
			return "", 0
		}
		// Only the message would change. Reasons of a PodGroup may change with every attempt: this one has to last.
		since, after = p.noteSince, h.waitingForGangAfter
	}
	return reason, max(0, since.Add(after).Sub(now))
}

// write patches PodScheduled, unless the pod has it: the scheduler writes the condition of a leader that it tried, and the
// two must not take turns. Numbers in the message alone are no reason to write.
//
// The patch touches this condition only, and succeeds only on the version of the pod that it was decided on: a pod that
// is bound meanwhile keeps PodScheduled=True. It reports whether the pod did not have the condition yet and has it now.
func (h *heldPods) write(ctx context.Context, w podgroup.WaitingPod, p *heldPod, reason string, note podgroup.HeldNote, now time.Time) (bool, error) {
	condition := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: note.Text,
		LastProbeTime: metav1.Time{}, LastTransitionTime: metav1.NewTime(now),
	}
	for _, c := range w.Pod.Status.Conditions {
		if c.Type != corev1.PodScheduled {
			continue
		}
		if c.Status == corev1.ConditionTrue || c.Reason == reason && strings.HasPrefix(c.Message, note.Head) {
			p.written, p.head = reason, note.Head
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
	_, err = h.client.CoreV1().Pods(w.Pod.Namespace).Patch(writing, w.Pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("writing condition PodScheduled of %s: %w", klog.KObj(w.Pod), err)
	}
	p.written, p.head = reason, note.Head
	return err == nil, nil
}

// maxAnnounced is how many leaves of a gang are told why they wait, for each reason.
const maxAnnounced = 8

// announce emits an event on the first waiting pod of a leaf: kubectl describe prints no message of a condition. Source:
// docs/decisions, G13.
func (h *heldPods) announce(f podgroup.Facts, w podgroup.WaitingPod, held *heldGang, reason string, note podgroup.HeldNote) {
	if f.Group == nil || w.Misplaced != "" {
		return // these have events of their own
	}
	leaf := w.Pod.Labels[v2alpha2.SubGroupLabel]
	told := held.announced[note.Kind]
	if told.Has(leaf) || len(told) >= maxAnnounced {
		return
	}
	if told == nil {
		told = sets.New[string]()
		held.announced[note.Kind] = told
	}
	told.Insert(leaf)
	if reason == corev1.PodReasonUnschedulable {
		emit(h.recorder, w.Pod, true, v2alpha2.EventFailedScheduling, note.Text)
		return
	}
	emit(h.recorder, w.Pod, false, reason, note.Text)
}

// tellLost emits the events about pods that have no place in the gang: one for each cause, on the first of the pods that have
// it, and for at most maxAnnounced causes. It returns in how long the next one is due, 0: none is.
func (h *heldPods) tellLost(f podgroup.Facts, held *heldGang, now time.Time) time.Duration {
	var next time.Duration
	var due []podgroup.LostPods
	for _, lost := range podgroup.Lost(f) {
		if held.lost.Has(lost.Cause) || len(held.lost)+len(due) >= maxAnnounced {
			continue
		}
		if wait := held.pods[lost.First.UID].lostSince.Add(arrivalGrace).Sub(now); wait > 0 {
			next = sooner(next, wait)
			continue
		}
		due = append(due, lost)
	}
	for _, lost := range due {
		held.lost.Insert(lost.Cause)
		emit(h.recorder, lost.First, true, lost.Reason, lost.Note)
	}
	return next
}
