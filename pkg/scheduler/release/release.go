// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
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
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/scheduler/endpod"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/report"
)

const (
	// interval is the time between two checks for partial gangs.
	interval = time.Second
	// probeTimeout is the maximum time in which the API server must answer a read to count as answering.
	probeTimeout = 2 * time.Second
)

// PodGroupReader reads one PodGroup from the API server, not from a cache.
type PodGroupReader interface {
	Get(ctx context.Context, namespace, name string) (*v2alpha2.PodGroup, error)
}

// Options are the dependencies of a Releaser. All are required but Released. The repair time is an option of the
// Registry.
type Options struct {
	Registry  *gangs.Registry
	PodGroups PodGroupReader
	Client    kubernetes.Interface // deletes pods
	Recorder  events.EventRecorder
	Clock     clock.WithTicker
	// Apply performs the actions that the registry requests.
	Apply func(gangs.Effects)
	// Released is called for every pod that was released: of a gang, or of a sub-group above the minimum of its gang.
	// nil: no callback.
	Released func(ofGang bool)
}

// Releaser releases partial gangs and torn units of surplus. Not safe for concurrent use.
type Releaser struct {
	Options

	last time.Time // time of the last step; zero: none yet
	away bool      // the API server did not answer in the last step
	// The remaining fields are by pod, and cleared when there is no partial gang.
	recorded sets.Set[types.UID]  // the pod has the condition that records its release
	reported sets.Set[types.UID]  // an event about the pod was emitted
	refusal  map[types.UID]string // the last error of releasing the pod, so that it is logged once
}

// NewReleaser returns a Releaser.
func NewReleaser(o Options) *Releaser {
	return &Releaser{Options: o, recorded: sets.New[types.UID](), reported: sets.New[types.UID](), refusal: map[types.UID]string{}}
}

// Run checks for partial gangs every second until ctx ends.
func (r *Releaser) Run(ctx context.Context) {
	ticker := r.Clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			r.checkPartialGangs(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// checkPartialGangs performs one check.
func (r *Releaser) checkPartialGangs(ctx context.Context) {
	// 1. Contact the API server only if there is a partial gang or an unanswered binding.
	now := r.Clock.Now()
	elapsed := interval
	if !r.last.IsZero() {
		elapsed = now.Sub(r.last)
	}
	r.last = now
	key, partial := r.Registry.NeedsRelease()
	asked, awaits := r.Registry.AwaitsAnswer()
	if awaits {
		key = asked
	}
	ask := partial || awaits
	answering := ask && r.serverAnswers(ctx, key)
	if answering && (awaits || r.away) {
		r.Apply(r.Registry.RecordServerAnswers(r.away, now))
	}
	r.away = ask && !answering
	if !partial {
		// This call stops the clocks of gangs that are no longer partial.
		r.Registry.PodsToRelease(elapsed, false)
		r.reported.Clear()
		r.recorded.Clear()
		clear(r.refusal)
		return
	}

	// 2. The clock runs while the API server answers: otherwise no gang could have been completed.
	pods := r.Registry.PodsToRelease(elapsed, answering)

	// 3. Release the pods gang by gang. The pods are sorted by namespace and name, and so are the events.
	byGang := map[gangs.Key][]*corev1.Pod{}
	var order []gangs.Key
	for _, pod := range pods {
		key, ok := r.Registry.PlacedFor(pod.UID) // users may have changed the annotation since
		if !ok {
			key = gangs.Key{Namespace: pod.Namespace}
		}
		if byGang[key] == nil {
			order = append(order, key)
		}
		byGang[key] = append(byGang[key], pod)
	}
	for _, key := range order {
		r.releasePods(ctx, key, byGang[key])
	}
}

// serverAnswers reports whether the API server answers, including its storage, by a read that is not served from a
// cache.
func (r *Releaser) serverAnswers(ctx context.Context, key gangs.Key) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := r.PodGroups.Get(ctx, key.Namespace, key.Name)
	return err == nil || apierrors.IsNotFound(err)
}

// releasePods deletes the pods of a gang, or of its torn units, that a controller will replace, and emits events about
// all of them, once.
func (r *Releaser) releasePods(ctx context.Context, key gangs.Key, pods []*corev1.Pod) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "podGroup", key)
	f, ok := r.Registry.Facts(key)
	what := "gang"
	if ok && f.Admitted {
		what = "sub-group above the gang's minimum"
	}
	var leaving []*corev1.Pod
	for _, pod := range pods {
		if metav1.GetControllerOf(pod) == nil {
			if !r.reported.Has(pod.UID) {
				r.reported.Insert(pod.UID)
				r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, v2alpha2.EventPartialGangKept, "Repairing",
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
		if err := r.recordRelease(ctx, pod, what); err != nil {
			r.logRefusal(logger, pod, err)
			return
		}
	}
	var deleted []string
	for _, pod := range leaving {
		if err := r.deletePod(ctx, pod); err != nil {
			r.logRefusal(logger, pod, err)
			continue
		}
		if !r.reported.Has(pod.UID) {
			r.reported.Insert(pod.UID)
			deleted = append(deleted, pod.Name)
			if r.Released != nil {
				r.Released(!ok || !f.Admitted)
			}
			logger.V(2).Info("Released a pod of a partial gang", "pod", klog.KObj(pod), "node", pod.Spec.NodeName)
		}
	}
	if len(deleted) == 0 {
		return
	}
	if !ok || f.Group == nil {
		return // the PodGroup is gone, or is another one of the same name
	}
	r.Recorder.Eventf(report.Reference(f.Group), nil, corev1.EventTypeWarning, v2alpha2.EventPartialGangReleased, "Repairing",
		"%d bound pods were deleted, because their %s never became whole after a crash or a failed binding and could not be completed in time; their controllers replace them: %s",
		len(deleted), what, message.ListNames(deleted, 10, len(deleted), ", "))
}

// logRefusal logs once why a pod cannot be released.
func (r *Releaser) logRefusal(logger klog.Logger, pod *corev1.Pod, err error) {
	if r.refusal[pod.UID] != err.Error() {
		r.refusal[pod.UID] = err.Error()
		logger.Error(err, "Failed to release a pod of a partial gang; it is tried again", "pod", klog.KObj(pod))
	}
}

// recordRelease writes the condition that states why the pod will be deleted, unless the pod has it. what never became
// whole.
func (r *Releaser) recordRelease(ctx context.Context, pod *corev1.Pod, what string) error {
	if r.recorded.Has(pod.UID) || gangs.HasReleaseCondition(pod) {
		return nil
	}
	err := endpod.PatchCondition(ctx, r.Client, pod, map[string]any{"uid": pod.UID}, &corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: v2alpha2.PodReasonPartialGangReleased,
		Message:            "its " + what + " never became whole after a crash or a failed binding, and could not be completed in time",
		LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	})
	if err != nil && !endpod.IsGone(ctx, r.Client, pod, err) {
		return fmt.Errorf("recording that pod %s is released: %w", klog.KObj(pod), err)
	}
	r.recorded.Insert(pod.UID)
	return nil
}

// deletePod deletes the pod, unless another pod has its name by now.
//
// The precondition is only the UID, not the resourceVersion: regardless of changes in the pod's status, its gang
// or unit never had its minimum and does not count the pod since the registry returned it. With a resourceVersion the
// deletion would fail whenever a kubelet has updated the status.
func (r *Releaser) deletePod(ctx context.Context, pod *corev1.Pod) error {
	if _, err := endpod.Delete(ctx, r.Client, pod); err != nil {
		return fmt.Errorf("deleting pod %s: %w", klog.KObj(pod), err)
	}
	return nil
}
