// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/scheduler/endpod"
)

const (
	// eventReason and eventAction are those of the stock scheduler for the victim of a preemption.
	eventReason = "Preempted"
	eventAction = "Preempting"
	// schedulerName is the name with which the message of a mark begins, as that of the stock scheduler does.
	schedulerName = "muster-scheduler"
	// planSeparator precedes the plan at the end of the message of a mark, and begun the separator in the mark of a
	// witness.
	planSeparator = "; plan "
	begun         = "; the evictions have begun"
	// maxText is the maximum length, in characters, of the text about one victim. The note of an event is limited to
	// 1024 bytes.
	maxText = 300
	// eventMemory is how long it is remembered that an event about a victim was emitted.
	eventMemory = time.Hour
	// renewAfter is the age after which a mark is written again: kube-controller-manager removes it when it is two
	// minutes old.
	renewAfter = 30 * time.Second
)

// Eviction is a preemption that was decided and recorded.
type Eviction struct {
	// Plan identifies the decision. Not "", and without spaces.
	Plan string
	// Preemptor is for what room is made, Kind what it is ("PodGroup" or "pod"), and Priority its priority. Zero: it is
	// gone, and not known any more.
	Preemptor types.NamespacedName
	Kind      string
	Priority  int32
	// Related is the preemptor, or a reference to it, for events; nil: it is unknown.
	Related runtime.Object
	// Victims are the pods to end. Each pod occurs once.
	Victims []Victim
}

// preemptor returns what texts call the preemptor, separated from its kind.
func (e *Eviction) preemptor(separator string) string {
	if e.Preemptor.Name == "" {
		return "preemptor that is gone"
	}
	return fmt.Sprintf("%s%s%s (priority %d)", e.Kind, separator, e.Preemptor, e.Priority)
}

// Victim is a pod that a preemption ends.
type Victim struct {
	Pod *corev1.Pod
	// Gang is the gang that loses the pod, zero for a pod without a gang.
	Gang types.NamespacedName
	// Text is why this pod ends, for its condition and event: "above the minimum of PodGroup ml/train (priority 100)".
	Text string
}

// Options are the dependencies of an Evictor. All are required.
type Options struct {
	Client   kubernetes.Interface // patches the status of pods, reads and deletes pods
	Recorder events.EventRecorder
	Clock    clock.Clock
}

// Evictor marks and deletes the victims of preemptions. Safe for concurrent use.
type Evictor struct {
	Options

	mu       sync.Mutex
	reported map[types.UID]time.Time // when an event about the pod was emitted; guarded by mu
}

// New returns an Evictor.
func New(o Options) *Evictor {
	return &Evictor{Options: o, reported: map[types.UID]time.Time{}}
}

// MarkVictims writes the condition DisruptionTarget on every victim that does not have the mark of the plan, or has an
// old one: it does not make a witness of a victim, and leaves those that are. Victims that are gone are skipped. If it
// returns an error, no victim may be deleted: a mark could not be written, even after repeated attempts if the error
// was transient.
func (e *Evictor) MarkVictims(ctx context.Context, eviction Eviction) error {
	failures := e.retryForVictims(ctx, len(eviction.Victims), markAttempts, func(ctx context.Context, i int) error {
		return e.markVictim(ctx, &eviction, &eviction.Victims[i])
	})
	return firstFailure("marking as preempted", eviction.Victims, failures)
}

// DeleteVictims deletes all victims, and returns how many are terminating or gone. Before any of them one victim of
// each gang, and one without a gang, is marked as a witness, and it is deleted after the other ones of its gang.
// Transient errors are retried until ctx ends. It returns an error if other victims are left: the caller must call it
// again, because the victims of a plan end together. It emits one event about each pod whose deletion the API server
// accepted, unless the pod was terminating before, and none if it is called again.
func (e *Evictor) DeleteVictims(ctx context.Context, eviction Eviction) (deleted int, err error) {
	e.forgetOldEvents()
	witnesses, others := witnessesOf(&eviction)
	failed := map[types.NamespacedName]bool{} // gangs with a failure
	keep := func(doing string, victims []Victim, failures []error) {
		for i, failure := range failures {
			failed[victims[i].Gang] = failed[victims[i].Gang] || failure != nil && victims[i].Gang.Name != ""
		}
		if err == nil {
			err = firstFailure(doing, victims, failures)
		}
	}
	keep("recording the evictions on", witnesses, e.retryForVictims(ctx, len(witnesses), unlimited, func(ctx context.Context, i int) error {
		return e.mark(ctx, &eviction, &witnesses[i], begun)
	}))
	for _, victims := range [][]Victim{others, witnesses} {
		victims = slices.DeleteFunc(victims, func(v Victim) bool { return failed[v.Gang] })
		n, failures := e.deleteAll(ctx, &eviction, victims)
		deleted += n
		keep("deleting", victims, failures)
	}
	if err != nil {
		return deleted, fmt.Errorf("preempting for %s: %w; the deletion of the victims that are left must be repeated", eviction.preemptor(" "), err)
	}
	return deleted, nil
}

// witnessesOf divides the victims: one of each gang is its witness, the one that has the mark of it if there is one. As
// long as it exists, it shows a later process that the victims of its gang are being deleted.
func witnessesOf(eviction *Eviction) (witnesses, others []Victim) {
	chosen := map[types.NamespacedName]int{}
	for i, v := range eviction.Victims {
		if w, ok := chosen[v.Gang]; !ok || IsWitness(v.Pod) && !IsWitness(eviction.Victims[w].Pod) {
			chosen[v.Gang] = i
		}
	}
	for i, v := range eviction.Victims {
		if chosen[v.Gang] == i {
			witnesses = append(witnesses, v)
		} else {
			others = append(others, v)
		}
	}
	return witnesses, others
}

// deleteAll deletes victims, and emits the event about each of them when it is deleted: all of them in the end would be
// a flood, which keeps the API server from the deletions that are left. It returns how many are terminating or gone,
// and the errors of all.
func (e *Evictor) deleteAll(ctx context.Context, eviction *Eviction, victims []Victim) (deleted int, failures []error) {
	failures = e.retryForVictims(ctx, len(victims), unlimited, func(ctx context.Context, i int) error {
		accepted, err := endpod.Delete(ctx, e.Client, victims[i].Pod)
		if accepted {
			e.emitPreempted(ctx, eviction, &victims[i])
		}
		return err
	})
	for _, err := range failures {
		if err == nil {
			deleted++
		}
	}
	return deleted, failures
}

// UnmarkVictims sets the marks of the plan to False, on victims that are not being deleted: none was by this plan. It
// returns an error if a mark is left after repeated attempts. Such a mark has no effect.
func (e *Evictor) UnmarkVictims(ctx context.Context, eviction Eviction) error {
	failures := e.retryForVictims(ctx, len(eviction.Victims), markAttempts, func(ctx context.Context, i int) error {
		return e.unmarkVictim(ctx, &eviction, &eviction.Victims[i])
	})
	if err := firstFailure("taking back the mark of", eviction.Victims, failures); err != nil {
		return fmt.Errorf("preempting for %s: %w", eviction.preemptor(" "), err)
	}
	return nil
}

// IsMarkedFor reports whether the pod has the mark of the plan.
func IsMarkedFor(pod *corev1.Pod, plan string) bool {
	marked, ok := PlanOf(pod)
	return ok && marked == plan
}

// PlanOf returns the plan of which the pod has the mark. It returns false if it has none.
func PlanOf(pod *corev1.Pod) (plan string, ok bool) {
	c := disruptionTarget(pod)
	if c == nil || c.Status != corev1.ConditionTrue || c.Reason != corev1.PodReasonPreemptionByScheduler || !strings.HasPrefix(c.Message, schedulerName+": ") {
		return "", false
	}
	at := strings.LastIndex(c.Message, planSeparator)
	if at < 0 || at+len(planSeparator) == len(c.Message) {
		return "", false
	}
	return c.Message[at+len(planSeparator):], true
}

// IsWitness reports whether the mark of the pod says that the deletions of the plan have begun.
func IsWitness(pod *corev1.Pod) bool {
	plan, ok := PlanOf(pod)
	return ok && strings.HasSuffix(disruptionTarget(pod).Message, begun+planSeparator+plan)
}

// disruptionTarget returns the condition DisruptionTarget of a pod, nil if it does not have it.
func disruptionTarget(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget {
			return c
		}
	}
	return nil
}

// markVictim writes the mark of the plan on a victim, unless it has the mark or is gone.
func (e *Evictor) markVictim(ctx context.Context, eviction *Eviction, v *Victim) error {
	suffix := ""
	if IsMarkedFor(v.Pod, eviction.Plan) {
		if !e.isOld(disruptionTarget(v.Pod)) {
			return nil
		}
		if IsWitness(v.Pod) {
			suffix = begun
		}
	}
	return e.mark(ctx, eviction, v, suffix)
}

func (e *Evictor) isOld(mark *corev1.PodCondition) bool {
	return e.Clock.Since(mark.LastTransitionTime.Time) > renewAfter
}

// mark writes the mark of the plan on a victim, unless it has it, and it is not old, or it is gone. Its time is that of
// the mark, also if another disruption was announced before: by it the mark expires. suffix follows the text about the
// victim.
func (e *Evictor) mark(ctx context.Context, eviction *Eviction, v *Victim, suffix string) error {
	c := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
		ObservedGeneration: v.Pod.Generation, LastTransitionTime: metav1.NewTime(e.Clock.Now()),
		Message: fmt.Sprintf("%s: preempting to accommodate a higher priority %s: %s%s%s%s", schedulerName,
			eviction.preemptor(", "), message.Truncate(v.Text, maxText), suffix, planSeparator, eviction.Plan),
	}
	if before := disruptionTarget(v.Pod); before != nil && before.Status == c.Status && before.Message == c.Message && !e.isOld(before) {
		return nil
	}
	err := endpod.PatchCondition(ctx, e.Client, v.Pod, map[string]any{"uid": v.Pod.UID}, &c)
	if err != nil && endpod.IsGone(ctx, e.Client, v.Pod, err) {
		return nil
	}
	return err
}

// unmarkVictim sets the mark of the plan on a victim to False, if it has it and is not terminating.
func (e *Evictor) unmarkVictim(ctx context.Context, eviction *Eviction, v *Victim) error {
	requestCtx, cancel := context.WithTimeout(ctx, endpod.RequestTimeout)
	defer cancel()
	live, err := e.Client.CoreV1().Pods(v.Pod.Namespace).Get(requestCtx, v.Pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case live.UID != v.Pod.UID || live.DeletionTimestamp != nil || !IsMarkedFor(live, eviction.Plan):
		return nil
	}
	c := *disruptionTarget(live)
	c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(e.Clock.Now())
	c.Message = schedulerName + ": the preemption does not end the pod"
	// The resource version is a precondition, too: another disruption may be announced meanwhile.
	err = endpod.PatchCondition(ctx, e.Client, live, map[string]any{"uid": live.UID, "resourceVersion": live.ResourceVersion}, &c)
	if err != nil && endpod.IsGone(ctx, e.Client, live, err) {
		return nil
	}
	return err
}

// emitPreempted emits the event about a victim whose deletion was accepted, unless it was emitted before.
func (e *Evictor) emitPreempted(ctx context.Context, eviction *Eviction, v *Victim) {
	e.mu.Lock()
	_, before := e.reported[v.Pod.UID]
	if !before {
		e.reported[v.Pod.UID] = e.Clock.Now()
	}
	e.mu.Unlock()
	if before {
		return
	}
	e.Recorder.Eventf(v.Pod, eviction.Related, corev1.EventTypeNormal, eventReason, eventAction, "Preempted by %s on node %s: %s",
		eviction.preemptor(" "), v.Pod.Spec.NodeName, message.Truncate(v.Text, maxText))
	klog.FromContext(ctx).V(2).Info("Preempted a pod", "pod", klog.KObj(v.Pod), "node", v.Pod.Spec.NodeName, "preemptor", eviction.Preemptor, "plan", eviction.Plan)
}

// ReportSentBack emits the event about each victim, which was not bound yet, and is back in the queue in place of being
// deleted.
func (e *Evictor) ReportSentBack(eviction Eviction) {
	for i := range eviction.Victims {
		v := &eviction.Victims[i]
		e.Recorder.Eventf(v.Pod, eviction.Related, corev1.EventTypeNormal, eventReason, eventAction, "Preempted by %s before it was bound to node %s: %s; it is scheduled again",
			eviction.preemptor(" "), v.Pod.Spec.NodeName, message.Truncate(v.Text, maxText))
	}
}

// forgetOldEvents drops the events that are older than eventMemory.
func (e *Evictor) forgetOldEvents() {
	e.mu.Lock()
	defer e.mu.Unlock()
	oldest := e.Clock.Now().Add(-eventMemory)
	for uid, at := range e.reported {
		if at.Before(oldest) {
			delete(e.reported, uid)
		}
	}
}
