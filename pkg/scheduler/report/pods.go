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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
)

// arrivalGrace is how long a pod may be ahead of its PodGroup, or outlive its place in it, before an event complains: both
// are often made by one command, in either order, and whoever scales in lowers the PodGroup before deleting pods.
const arrivalGrace = 2 * time.Second

// heldPods writes what people see of a pod that is held: the condition PodScheduled, and events for pods whose PodGroup
// or sub-group does not exist.
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
	announced    map[string]sets.Set[string] // by the PodGroup's reason: leaves of which a pod was told by an event
}

// heldPod is what is remembered of one waiting pod.
type heldPod struct {
	written   string           // the reason that was written last, "" = none
	idleSince time.Time        // since when the pod has waited for something else than capacity; zero: it does not
	lostSince time.Time        // since when it has had no place in a PodGroup; zero: it has one
	told      sets.Set[string] // events
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

	var next time.Duration
	var errs []error
	for _, w := range f.Waiting {
		wait := h.tell(f, w, held.pods[w.Pod.UID], now)
		reason, due := h.verdict(f, w, held, now)
		switch {
		case reason == "":
		case due > 0:
			wait = sooner(wait, due)
		default:
			written, err := h.write(ctx, f, w, held.pods[w.Pod.UID], reason, now)
			if err != nil {
				errs = append(errs, err)
			}
			if written {
				h.announce(f, w, held, reason, now)
			}
		}
		next = sooner(next, wait)
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
		held = &heldGang{pods: map[types.UID]*heldPod{}, announced: map[string]sets.Set[string]{}}
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
			p = &heldPod{idleSince: w.Since, told: sets.New[string]()}
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

// verdict returns the reason for PodScheduled=False that the pod is to have, and in how long. "": none.
func (h *heldPods) verdict(f podgroup.Facts, w podgroup.WaitingPod, held *heldGang, now time.Time) (string, time.Duration) {
	if w.Gated {
		return "", 0 // the API server said so, with a reason of its own
	}
	unschedulable := f.Group == nil || f.Group.Spec.MarkUnschedulable == nil || *f.Group.Spec.MarkUnschedulable
	if w.NeedsCapacity && unschedulable {
		return corev1.PodReasonUnschedulable, max(0, held.refusedSince.Add(h.needsCapacityAfter).Sub(now))
	}
	since := held.pods[w.Pod.UID].idleSince
	if w.NeedsCapacity {
		since = w.Since
	}
	return v2alpha2.EventWaitingForGang, max(0, since.Add(h.waitingForGangAfter).Sub(now))
}

// write patches PodScheduled, unless the pod has it or had it from here already: the scheduler writes the condition of a
// leader that it tried, and the two must not take turns.
//
// The patch touches this condition only, and succeeds only on the version of the pod that it was decided on: a pod that
// is bound meanwhile keeps PodScheduled=True. It reports whether the pod did not have the condition yet and has it now.
func (h *heldPods) write(ctx context.Context, f podgroup.Facts, w podgroup.WaitingPod, p *heldPod, reason string, now time.Time) (bool, error) {
	condition := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason,
		LastProbeTime: metav1.Time{}, LastTransitionTime: metav1.NewTime(now),
	}
	for _, c := range w.Pod.Status.Conditions {
		if c.Type != corev1.PodScheduled {
			continue
		}
		if c.Status == corev1.ConditionTrue || c.Reason == reason {
			p.written = reason
			return false, nil
		}
		if c.Status == condition.Status {
			condition.LastTransitionTime = c.LastTransitionTime
		}
	}
	if p.written == reason {
		return false, nil
	}
	name := message.Truncate(f.Name, message.MaxName)
	switch {
	case reason == corev1.PodReasonUnschedulable:
		condition.Message = fmt.Sprintf("waits for capacity together with its gang; PodGroup %s says what is missing", name)
	case f.Group == nil:
		condition.Message = fmt.Sprintf("held until PodGroup %s exists and can start", name)
	default:
		condition.Message = fmt.Sprintf("held until its gang can start; PodGroup %s says what it waits for", name)
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
	p.written = reason
	return err == nil, nil
}

// maxAnnounced is how many leaves of a gang are told why they wait, for each reason.
const maxAnnounced = 8

// announce emits an event on the first waiting pod of a leaf: kubectl describe prints no message of a condition. Source:
// docs/decisions, G13.
func (h *heldPods) announce(f podgroup.Facts, w podgroup.WaitingPod, held *heldGang, reason string, now time.Time) {
	if f.Group == nil || w.Misplaced != "" {
		return // these have events of their own
	}
	status := podgroup.Status(f, metav1.NewTime(now))
	satisfied := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionSatisfied)
	why, text := satisfied.Reason, satisfied.Message
	if satisfied.Status == metav1.ConditionTrue { // the gang runs, and the pod is above its minimum
		why, text = string(f.Refused.Reason), "above the minimum of its gang, which runs without it"
		if f.Refused.Reason != "" {
			text += ": " + f.Refused.Message
		}
	}
	leaf := w.Pod.Labels[v2alpha2.SubGroupLabel]
	told := held.announced[why]
	if told.Has(leaf) || len(told) >= maxAnnounced {
		return
	}
	if told == nil {
		told = sets.New[string]()
		held.announced[why] = told
	}
	told.Insert(leaf)
	text, _, _ = strings.Cut(text, "; ")
	note := fmt.Sprintf("PodGroup %s: %s", f.Name, text)
	if reason == corev1.PodReasonUnschedulable {
		emit(h.recorder, w.Pod, true, v2alpha2.EventFailedScheduling, note)
		return
	}
	emit(h.recorder, w.Pod, false, reason, note)
}

// tell emits the event of a pod that counts nowhere, once, and returns in how long it is due if it is not yet.
func (h *heldPods) tell(f podgroup.Facts, w podgroup.WaitingPod, p *heldPod, now time.Time) time.Duration {
	var reason, note string
	name := message.Truncate(f.Name, message.MaxName)
	switch {
	case f.Group == nil:
		reason = v2alpha2.EventPodGroupNotFound
		note = fmt.Sprintf("annotation %s names PodGroup %q, and namespace %s has none of that name: create it (apiVersion %s), or correct the annotation; the pod waits",
			v2alpha2.PodGroupAnnotation, name, f.Namespace, v2alpha2.SchemeGroupVersion)
	case w.Misplaced != "":
		reason = v2alpha2.EventSubGroupNotFound
		note = fmt.Sprintf("counts nowhere in PodGroup %q: it %s; correct label %s", name, w.Misplaced, v2alpha2.SubGroupLabel)
	default:
		return 0
	}
	if p.told.Has(reason) {
		return 0
	}
	if wait := p.lostSince.Add(arrivalGrace).Sub(now); wait > 0 {
		return wait
	}
	p.told.Insert(reason)
	emit(h.recorder, w.Pod, true, reason, note)
	return 0
}
