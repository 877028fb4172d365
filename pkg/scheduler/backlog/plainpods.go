// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// plainPods contains the pods without a gang for which no node has room. The stock queue retries all of them whenever
// any pod is removed; here only as many are woken as fit into the free resources of the nodes, in the order of the
// queue. Guarded by Backlog.mu.
type plainPods struct {
	pods    map[types.UID]*plainPod
	byShape map[gangs.Shape]*plainShape
	fits    func(at gangs.Shape, a reservations.Asker) int // Backlog.fits
}

type plainPod struct {
	pod     *corev1.Pod
	since   time.Time
	shape   gangs.Shape
	woken   time.Time // zero: not woken since it was refused
	release func()
}

// plainShape contains the pods of one shape.
type plainShape struct {
	pods  map[types.UID]*plainPod
	woken int // number of pods that were woken
}

func newPlainPods(fits func(gangs.Shape, reservations.Asker) int) *plainPods {
	return &plainPods{fits: fits, pods: map[types.UID]*plainPod{}, byShape: map[gangs.Shape]*plainShape{}}
}

// add records a pod with its shape. release is called when the pod no longer waits.
func (x *plainPods) add(pod *corev1.Pod, at gangs.Shape, since time.Time, release func()) {
	x.remove(pod.UID)
	p := &plainPod{pod: pod, shape: at, since: since, release: release}
	x.pods[pod.UID] = p
	if x.byShape[at] == nil {
		x.byShape[at] = &plainShape{pods: map[types.UID]*plainPod{}}
	}
	x.byShape[at].pods[pod.UID] = p
}

// remove removes a pod that is tried again, bound or deleted.
func (x *plainPods) remove(uid types.UID) {
	p := x.pods[uid]
	if p == nil {
		return
	}
	shape := x.byShape[p.shape]
	if !p.woken.IsZero() {
		shape.woken--
	}
	delete(x.pods, uid)
	delete(shape.pods, uid)
	if len(shape.pods) == 0 {
		delete(x.byShape, p.shape)
	}
	p.release()
}

// wake returns the pods of these shapes that should be tried: as many as fit beside pods that were woken before and
// have not been tried yet, higher priority first, then those that have waited longer.
func (x *plainPods) wake(raised []gangs.Shape, now time.Time) []*corev1.Pod {
	var out []*corev1.Pod
	for _, at := range raised {
		shape := x.byShape[at]
		if shape == nil {
			continue
		}
		n := at.FittingPods() - shape.woken
		if n <= 0 {
			continue
		}
		var asleep []*plainPod
		for _, p := range shape.pods {
			if p.woken.IsZero() {
				asleep = append(asleep, p)
			}
		}
		slices.SortFunc(asleep, func(a, b *plainPod) int {
			return cmp.Or(cmp.Compare(corev1helpers.PodPriority(b.pod), corev1helpers.PodPriority(a.pod)), a.since.Compare(b.since),
				cmp.Compare(a.pod.UID, b.pod.UID))
		})
		refused, earliest := false, time.Time{} // whether one found no room, and the earliest end of these; zero: none tells it
		for _, p := range asleep {
			if n == 0 {
				break
			}
			a := AskerOf(p.pod, now)
			if refused && (a.Ends.IsZero() || !earliest.IsZero() && !a.Ends.Before(earliest)) {
				continue // its priority is not higher, and it does not end before either
			}
			if x.fits(at, a) <= shape.woken {
				refused, earliest = true, a.Ends
				continue // others may end before the room is needed that is reserved from this one
			}
			n--
			p.woken = now
			shape.woken++
			out = append(out, p.pod)
		}
	}
	return out
}

// wakeIf returns the pods for which worth returns true and that were not woken, sorted by UID.
func (x *plainPods) wakeIf(worth func(*corev1.Pod) bool, now time.Time) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range x.pods {
		if p.woken.IsZero() && worth(p.pod) {
			p.woken = now
			x.byShape[p.shape].woken++
			out = append(out, p.pod)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

// forgetWoken makes pods eligible again that were woken some time ago and have not been tried since.
func (x *plainPods) forgetWoken(now time.Time, after time.Duration) {
	for _, p := range x.pods {
		if !p.woken.IsZero() && now.Sub(p.woken) >= after {
			p.woken = time.Time{}
			x.byShape[p.shape].woken--
		}
	}
}

// shapes returns the shapes of the waiting pods.
func (x *plainPods) shapes() []gangs.Shape {
	out := make([]gangs.Shape, 0, len(x.byShape))
	for at := range x.byShape {
		out = append(out, at)
	}
	return out
}

// WaitsForRoom records a pod without a gang that was refused because no node has room for it. It returns false if the
// stock queue should decide when the pod is tried again.
func (b *Backlog) WaitsForRoom(pod *corev1.Pod) bool {
	logger := klog.Background()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved = b.registry.Reservations()
	b.updateShapes(logger)
	shape, err := b.shapes.TrackShape(context.Background(), pod)
	if err != nil {
		logger.Error(err, "Failed to count free room", "pod", klog.KObj(pod))
		return false
	}
	if b.mayPreempt(pod) || b.fits(shape, AskerOf(pod, b.clock.Now())) > 0 {
		b.shapes.ReleaseShape(shape)
		return false
	}
	b.plain.add(pod, shape, b.clock.Now(), func() { b.shapes.ReleaseShape(shape) })
	return true
}

// mayPreempt reports whether a pod could preempt another one. If so, every removed pod may matter to it.
func (b *Backlog) mayPreempt(pod *corev1.Pod) bool {
	never := pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	return !never && corev1helpers.PodPriority(pod) > b.lowest.Load()
}

// Gone removes a pod without a gang.
func (b *Backlog) Gone(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.plain.remove(uid)
}

// AskerOf returns a pod without a gang as it looks for room, if it would start now.
func AskerOf(pod *corev1.Pod, now time.Time) reservations.Asker {
	a := reservations.Asker{Priority: corev1helpers.PodPriority(pod)}
	if runtime := podgroup.MaxRuntime(pod, nil); runtime > 0 {
		a.Ends = now.Add(runtime)
	}
	return a
}
