// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
	"github.com/muster-project/muster/pkg/scheduler/report"
)

const (
	// interval is the time between two checks for partial gangs.
	interval = time.Second
	// requestTimeout is the timeout of a request to the API server.
	requestTimeout = 5 * time.Second
	// probeTimeout is the maximum time in which the API server must answer a read to count as answering.
	probeTimeout = 2 * time.Second
)

// PodGroupReader reads one PodGroup from the API server, not from a cache.
type PodGroupReader interface {
	Get(ctx context.Context, namespace, name string) (*v2alpha2.PodGroup, error)
}

// Options are the dependencies of a Worker. All are required. The repair time is an option of the Registry.
type Options struct {
	Registry  *gangstate.Registry
	PodGroups PodGroupReader
	Client    kubernetes.Interface // deletes pods
	Recorder  events.EventRecorder
	Clock     clock.WithTicker
	// Apply performs the actions that the registry requests.
	Apply func(gangstate.Effects)
}

// Worker releases partial gangs and torn units of surplus. Not safe for concurrent use.
type Worker struct {
	Options

	last time.Time // time of the last step; zero: none yet
	away bool      // the API server did not answer in the last step
	// The remaining fields are by pod, and cleared when there is no partial gang.
	recorded sets.Set[types.UID]  // the pod has the condition that records its release
	reported sets.Set[types.UID]  // an event about the pod was emitted
	refusal  map[types.UID]string // the last error of releasing the pod, so that it is logged once
}

// New returns a Worker.
func New(o Options) *Worker {
	return &Worker{Options: o, recorded: sets.New[types.UID](), reported: sets.New[types.UID](), refusal: map[types.UID]string{}}
}

// Run checks for partial gangs every second until ctx ends.
func (w *Worker) Run(ctx context.Context) {
	ticker := w.Clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			w.step(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// step performs one check.
func (w *Worker) step(ctx context.Context) {
	// 1. Contact the API server only if there is a partial gang or an unanswered binding.
	now := w.Clock.Now()
	elapsed := interval
	if !w.last.IsZero() {
		elapsed = now.Sub(w.last)
	}
	w.last = now
	key, partial := w.Registry.Partial()
	asked, awaits := w.Registry.AwaitsAnswer()
	if awaits {
		key = asked
	}
	ask := partial || awaits
	answering := ask && w.answering(ctx, key)
	if answering && (awaits || w.away) {
		w.Apply(w.Registry.Answers(w.away, now))
	}
	w.away = ask && !answering
	if !partial {
		// This call stops the clocks of gangs that are no longer partial.
		w.Registry.PodsToRelease(elapsed, false)
		w.reported.Clear()
		w.recorded.Clear()
		clear(w.refusal)
		return
	}

	// 2. The clock runs while the API server answers: otherwise no gang could have been completed.
	pods := w.Registry.PodsToRelease(elapsed, answering)

	// 3. Release the pods gang by gang. The pods are sorted by namespace and name, and so are the events.
	byGang := map[gangstate.Key][]*corev1.Pod{}
	var order []gangstate.Key
	for _, pod := range pods {
		key, ok := w.Registry.PlacedFor(pod.UID) // users may have changed the annotation since
		if !ok {
			key = gangstate.Key{Namespace: pod.Namespace}
		}
		if byGang[key] == nil {
			order = append(order, key)
		}
		byGang[key] = append(byGang[key], pod)
	}
	for _, key := range order {
		w.release(ctx, key, byGang[key])
	}
}

// answering reports whether the API server answers, including its storage, by a read that is not served from a cache.
func (w *Worker) answering(ctx context.Context, key gangstate.Key) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := w.PodGroups.Get(ctx, key.Namespace, key.Name)
	return err == nil || apierrors.IsNotFound(err)
}

// release deletes the pods of a gang, or of its torn units, that a controller will replace, and emits events about all of them, once.
func (w *Worker) release(ctx context.Context, key gangstate.Key, pods []*corev1.Pod) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "podGroup", key)
	f, ok := w.Registry.Facts(key)
	what := "gang"
	if ok && f.Admitted {
		what = "sub-group above the gang's minimum"
	}
	var leaving []*corev1.Pod
	for _, pod := range pods {
		if metav1.GetControllerOf(pod) == nil {
			if !w.reported.Has(pod.UID) {
				w.reported.Insert(pod.UID)
				w.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, v2alpha2.EventPartialGangKept, "Repairing",
					"bound for PodGroup %s; its %s never became whole and cannot be completed now; no controller would replace the pod, so it is kept: delete it to free what it holds", key.Name, what)
				logger.Info("Kept a pod of a partial gang, because it has no controller", "pod", klog.KObj(pod))
			}
			continue
		}
		leaving = append(leaving, pod)
	}
	// All releases are recorded before the first deletion: after a crash in between, the remaining pods have the
	// condition.
	for _, pod := range leaving {
		if err := w.record(ctx, pod, what); err != nil {
			w.refused(logger, pod, err)
			return
		}
	}
	var deleted []string
	for _, pod := range leaving {
		if err := w.delete(ctx, pod); err != nil {
			w.refused(logger, pod, err)
			continue
		}
		if !w.reported.Has(pod.UID) {
			w.reported.Insert(pod.UID)
			deleted = append(deleted, pod.Name)
			logger.V(2).Info("Released a pod of a partial gang", "pod", klog.KObj(pod), "node", pod.Spec.NodeName)
		}
	}
	if len(deleted) == 0 {
		return
	}
	if !ok || f.Group == nil {
		return // the PodGroup is gone, or is another one of the same name
	}
	w.Recorder.Eventf(report.Reference(f.Group), nil, corev1.EventTypeWarning, v2alpha2.EventPartialGangReleased, "Repairing",
		"%d bound pods were deleted, because their %s never became whole after a crash or a failed binding and could not be completed in time; their controllers replace them: %s",
		len(deleted), what, names(deleted))
}

// refused logs once why a pod cannot be released.
func (w *Worker) refused(logger klog.Logger, pod *corev1.Pod, err error) {
	if w.refusal[pod.UID] != err.Error() {
		w.refusal[pod.UID] = err.Error()
		logger.Error(err, "Cannot release a pod of a partial gang yet", "pod", klog.KObj(pod))
	}
}

// record writes the condition that states why the pod will be deleted, unless the pod has it. what never became whole.
func (w *Worker) record(ctx context.Context, pod *corev1.Pod, what string) error {
	if w.recorded.Has(pod.UID) || gangstate.HasReleaseCondition(pod) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: v2alpha2.PodReasonPartialGangReleased,
			Message:            "its " + what + " never became whole after a crash or a failed binding, and could not be completed in time",
			LastTransitionTime: metav1.NewTime(w.Clock.Now()),
		}}},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = w.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("recording that pod %s is released: %w", klog.KObj(pod), err)
	}
	w.recorded.Insert(pod.UID)
	return nil
}

// delete deletes the pod, unless another pod has its name by now.
//
// The precondition is only the UID, not the resourceVersion: regardless of changes in the pod's status, its gang
// or unit never had its minimum and does not count the pod since the registry returned it. With a resourceVersion the
// deletion would fail whenever a kubelet has updated the status.
func (w *Worker) delete(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := w.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // deleted; a conflict means that another pod has the name
	}
	if err != nil {
		return fmt.Errorf("deleting pod %s: %w", klog.KObj(pod), err)
	}
	return nil
}

// names lists at most 10 names.
func names(all []string) string {
	const most = 10
	out := ""
	for i, n := range all[:min(len(all), most)] {
		if i > 0 {
			out += ", "
		}
		out += n
	}
	if more := len(all) - most; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
