// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// roomless contains the pods without a gang for which no node has room. The stock queue retries all of them whenever
// any pod is removed; here only as many are woken as fit into the free resources of the nodes, in the order of the
// queue. Guarded by wakeups.mu.
type roomless struct {
	pods   map[types.UID]*roomlessPod
	byRoom map[gangs.Shape]*roomlessShape
	fits   func(at gangs.Shape, key gangs.Key, priority int32) int // see wakeups.fits; nil: Shape.Fits
}

type roomlessPod struct {
	pod     *corev1.Pod
	since   time.Time
	room    gangs.Shape
	woken   time.Time // zero: not woken since it was refused
	release func()
}

// roomlessShape contains the pods of one shape.
type roomlessShape struct {
	pods  map[types.UID]*roomlessPod
	woken int // number of pods that were woken
}

func newRoomless() *roomless {
	return &roomless{pods: map[types.UID]*roomlessPod{}, byRoom: map[gangs.Shape]*roomlessShape{}}
}

// add records a pod, with the room of its shape. release is called when the pod no longer waits.
func (r *roomless) add(pod *corev1.Pod, at gangs.Shape, since time.Time, release func()) {
	r.remove(pod.UID)
	p := &roomlessPod{pod: pod, room: at, since: since, release: release}
	r.pods[pod.UID] = p
	if r.byRoom[at] == nil {
		r.byRoom[at] = &roomlessShape{pods: map[types.UID]*roomlessPod{}}
	}
	r.byRoom[at].pods[pod.UID] = p
}

// remove removes a pod that is tried again, bound or deleted.
func (r *roomless) remove(uid types.UID) {
	p := r.pods[uid]
	if p == nil {
		return
	}
	shape := r.byRoom[p.room]
	if !p.woken.IsZero() {
		shape.woken--
	}
	delete(r.pods, uid)
	delete(shape.pods, uid)
	if len(shape.pods) == 0 {
		delete(r.byRoom, p.room)
	}
	p.release()
}

// wake returns the pods of these shapes that should be tried: as many as fit beside pods that were woken before and
// have not been tried yet, higher priority first, then those that have waited longer.
func (r *roomless) wake(raised []gangs.Shape, now time.Time) []*corev1.Pod {
	var out []*corev1.Pod
	for _, at := range raised {
		shape := r.byRoom[at]
		if shape == nil {
			continue
		}
		n := at.Fits() - shape.woken
		if n <= 0 {
			continue
		}
		var asleep []*roomlessPod
		for _, p := range shape.pods {
			if p.woken.IsZero() {
				asleep = append(asleep, p)
			}
		}
		slices.SortFunc(asleep, func(a, b *roomlessPod) int {
			return cmp.Or(cmp.Compare(corev1helpers.PodPriority(b.pod), corev1helpers.PodPriority(a.pod)), a.since.Compare(b.since),
				cmp.Compare(a.pod.UID, b.pod.UID))
		})
		for _, p := range asleep[:min(n, len(asleep))] {
			if r.fits != nil && r.fits(at, gangs.Key{}, corev1helpers.PodPriority(p.pod)) <= shape.woken {
				break // for pods of a lower priority even less room is available
			}
			p.woken = now
			shape.woken++
			out = append(out, p.pod)
		}
	}
	return out
}

// wakeIf returns the pods for which worth returns true and that were not woken, sorted by UID.
func (r *roomless) wakeIf(worth func(*corev1.Pod) bool, now time.Time) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range r.pods {
		if p.woken.IsZero() && worth(p.pod) {
			p.woken = now
			r.byRoom[p.room].woken++
			out = append(out, p.pod)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

// forgetful makes pods eligible again that were woken some time ago and have not been tried since.
func (r *roomless) forgetful(now time.Time, after time.Duration) {
	for _, p := range r.pods {
		if !p.woken.IsZero() && now.Sub(p.woken) >= after {
			p.woken = time.Time{}
			r.byRoom[p.room].woken--
		}
	}
}

// shapes returns the shapes of the waiting pods.
func (r *roomless) shapes() []gangs.Shape {
	out := make([]gangs.Shape, 0, len(r.byRoom))
	for at := range r.byRoom {
		out = append(out, at)
	}
	return out
}
