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
	// interval is the time between two looks at partial gangs.
	interval = time.Second
	// requestTimeout ends a request that the API server does not answer.
	requestTimeout = 5 * time.Second
	// probeTimeout is how long the API server may take to answer a read, and still counts as answering.
	probeTimeout = 2 * time.Second
)

// PodGroupReader reads one PodGroup from the API server, not from a cache.
type PodGroupReader interface {
	Get(ctx context.Context, namespace, name string) (*v2alpha2.PodGroup, error)
}

// Options are what a Worker needs. All are required. The repair time is an option of the Registry.
type Options struct {
	Registry  *gangstate.Registry
	PodGroups PodGroupReader
	Client    kubernetes.Interface // deletes pods
	Recorder  events.EventRecorder
	Clock     clock.WithTicker
	// Apply does what the registry asks for.
	Apply func(gangstate.Effects)
}

// Worker releases partial gangs. Not safe for concurrent use.
type Worker struct {
	Options

	last time.Time // of the last look; zero: none yet
	away bool      // the API server did not answer then
	// The rest is by pod, and emptied when there is no partial gang.
	recorded sets.Set[types.UID]  // the pod has the condition that it is released
	told     sets.Set[types.UID]  // an event about the pod was emitted
	refusal  map[types.UID]string // the last error of releasing the pod, to be logged once
}

// New returns a Worker.
func New(o Options) *Worker {
	return &Worker{Options: o, recorded: sets.New[types.UID](), told: sets.New[types.UID](), refusal: map[types.UID]string{}}
}

// Run looks at partial gangs every second until ctx ends.
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

// step looks once.
func (w *Worker) step(ctx context.Context) {
	// 1. Only a partial gang, or a binding that got no answer, is a reason to ask the API server anything.
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
		// Asked all the same: it stops the clocks of gangs that are not partial any more.
		w.Registry.PodsToRelease(elapsed, false)
		w.told.Clear()
		w.recorded.Clear()
		clear(w.refusal)
		return
	}

	// 2. The clock runs while the API server answers: otherwise no gang could have been completed.
	pods := w.Registry.PodsToRelease(elapsed, answering)

	// 3. Release, a gang at a time. The pods come sorted by namespace and name, so events do too.
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

// answering reports whether the API server answers, storage included: a read that no cache may serve.
func (w *Worker) answering(ctx context.Context, key gangstate.Key) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := w.PodGroups.Get(ctx, key.Namespace, key.Name)
	return err == nil || apierrors.IsNotFound(err)
}

// release deletes the pods of a gang that a controller will replace, and emits events about all of them, once.
func (w *Worker) release(ctx context.Context, key gangstate.Key, pods []*corev1.Pod) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "podGroup", key)
	var leaving []*corev1.Pod
	for _, pod := range pods {
		if metav1.GetControllerOf(pod) == nil {
			if !w.told.Has(pod.UID) {
				w.told.Insert(pod.UID)
				w.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, v2alpha2.EventPartialGangKept, "Repairing",
					"bound for PodGroup %s, which never became whole and cannot be completed now; no controller would replace the pod, so it is kept: delete it to free what it holds", key.Name)
				logger.Info("Kept a pod of a gang that was never whole, because it has no controller", "pod", klog.KObj(pod))
			}
			continue
		}
		leaving = append(leaving, pod)
	}
	// All are on record before the first is deleted: what is left after a crash in between says that it has to go.
	for _, pod := range leaving {
		if err := w.record(ctx, pod); err != nil {
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
		if !w.told.Has(pod.UID) {
			w.told.Insert(pod.UID)
			deleted = append(deleted, pod.Name)
			logger.V(2).Info("Released a pod of a gang that was never whole", "pod", klog.KObj(pod), "node", pod.Spec.NodeName)
		}
	}
	if len(deleted) == 0 {
		return
	}
	f, ok := w.Registry.Facts(key)
	if !ok || f.Group == nil {
		return // the PodGroup is gone, or is another one of the same name
	}
	w.Recorder.Eventf(report.Reference(f.Group), nil, corev1.EventTypeWarning, v2alpha2.EventPartialGangReleased, "Repairing",
		"%d bound pods were deleted, because the gang never became whole after a crash or a failed binding and could not be completed in time; their controllers replace them: %s",
		len(deleted), names(deleted))
}

// refused logs why a pod cannot be released, once.
func (w *Worker) refused(logger klog.Logger, pod *corev1.Pod, err error) {
	if w.refusal[pod.UID] != err.Error() {
		w.refusal[pod.UID] = err.Error()
		logger.Error(err, "Cannot release a pod of a gang that was never whole yet", "pod", klog.KObj(pod))
	}
}

// record writes the condition that says why the pod is going to be deleted, unless it has it.
func (w *Worker) record(ctx context.Context, pod *corev1.Pod) error {
	if w.recorded.Has(pod.UID) || gangstate.HasReleaseCondition(pod) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: v2alpha2.PodReasonPartialGangReleased,
			Message:            "its gang never became whole after a crash or a failed binding, and could not be completed in time",
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

// delete deletes the pod, unless it is another one of the same name by now.
//
// The precondition is the UID alone, without the resourceVersion: whatever the pod's status has become, its gang was
// never whole and does not count on it since the registry returned it. A resourceVersion would only make the deletion
// lose against a kubelet that reports often.
func (w *Worker) delete(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := w.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone; a conflict says that another pod has the name
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
