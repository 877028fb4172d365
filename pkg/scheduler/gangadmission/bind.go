// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

const (
	// bindTimeout bounds the posting of one binding.
	bindTimeout = 30 * time.Second
	// askTimeout bounds the request that finds out whether an unanswered binding was carried out.
	askTimeout = 2 * time.Second
)

// Bind implements fwk.BindPlugin. It is the barrier: no member of a gang is bound before every member of the plan has
// its reservation and its volumes. Members are then bound in the order of priorities and plans, so that one gang
// finishes before the next one of its priority starts, and in the same way as the stock binder does.
func (pl *Admission) Bind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !isMember(pod) {
		return fwk.NewStatus(fwk.Skip)
	}
	plan := pl.registry.PlanOf(pod.UID)
	if plan == nil {
		return fwk.AsStatus(fmt.Errorf("binding pod %s: no plan of its gang is in force", klog.KObj(pod)))
	}
	if err := pl.registry.WaitAtBarrier(ctx, pod.UID, pl.args.BarrierTimeout.Duration); err != nil {
		return fwk.AsStatus(fmt.Errorf("binding pod %s: %w", klog.KObj(pod), err))
	}
	mark := pl.gangs.mark(ctx, plan, pod)
	if err := pl.gangs.binds.acquire(ctx, turn{priority: plan.Priority, plan: plan.ID, index: plan.Index(pod.UID)}); err != nil {
		return fwk.AsStatus(fmt.Errorf("binding pod %s: waiting for a free slot: %w", klog.KObj(pod), err))
	}
	err := pl.post(ctx, pod, node, mark)
	if err == nil || isUnanswered(err) && pl.isPosted(ctx, pod, node) {
		return nil
	}
	bindingsFailed.Inc()
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		pl.gangs.recordRefusal(pl.profile, pod, node, fwk.AsStatus(err)) // binding to this node in particular may be forbidden
	}
	if isUnanswered(err) {
		pl.registry.RecordUnanswered(plan.Gang)
	}
	err = fmt.Errorf("binding pod %s to node %s: %w", klog.KObj(pod), node, err)
	pl.registry.RecordBindingFailed(pod.UID, err.Error())
	return fwk.AsStatus(err)
}

// markTimeout is how long bindings wait, after the start of the scheduler, for the key that signs their marks.
const markTimeout = 5 * time.Second

// mark returns the mark for a member's binding. "" without a key.
func (g *Gangs) mark(ctx context.Context, plan *gangs.Plan, pod *corev1.Pod) string {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	select {
	case <-g.keys.KeysDecided():
	case <-ctx.Done():
	}
	return g.registry.SignedMark(plan, pod.UID)
}

// post posts the binding, using the slot that the pod has acquired, and releases the slot.
func (pl *Admission) post(ctx context.Context, pod *corev1.Pod, node, mark string) error {
	defer pl.gangs.binds.release()
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	var annotations map[string]string
	if mark != "" {
		annotations = map[string]string{v2alpha2.BoundForAnnotation: mark}
	}
	client := pl.gangs.bindClient
	if client == nil {
		client = pl.profile.ClientSet()
	}
	return kubescheduler.Bind(ctx, pl.profile, client, pod, node, annotations)
}

// isPosted asks the API server whether an unanswered binding was carried out. If such a binding were treated as
// failed, the pod's condition PodScheduled would be false although the pod runs. It returns false if the pod is not
// bound, or the request fails.
func (pl *Admission) isPosted(ctx context.Context, pod *corev1.Pod, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	now, err := pl.profile.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	return err == nil && now.UID == pod.UID && now.Spec.NodeName == node
}

// isUnanswered reports whether the error is not a decision of the API server: no connection, no answer in time, or a
// failure of a component behind it (for example its storage).
func isUnanswered(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// PostBind implements fwk.PostBindPlugin.
func (pl *Admission) PostBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	if isMember(pod) {
		pl.gangs.claims.keep(pod)
		pl.gangs.apply(klog.FromContext(ctx), pl.registry.RecordPosted(pod.UID, pl.gangs.clock.Now()))
	}
}
