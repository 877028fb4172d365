// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
)

// aloneAfter is how long pods of a controller must have waited for room before it is told that they start one by one.
// It is also the interval between two looks at the pods.
const aloneAfter = 10 * time.Second

// loosePods tells the controllers of pods that are in no gang that some of their pods run and others have no room: one
// event per controller. Pods of the scheduler's cache are counted, and no object is read.
type loosePods struct {
	Options

	mu    sync.Mutex
	waits map[types.UID]loosePod // guarded by mu; by controller, at most maxPending
	told  sets.Set[types.UID]    // guarded by mu; at most maxRemembered
}

// loosePod is the first pod of a controller that was refused.
type loosePod struct {
	pod   *corev1.Pod
	since time.Time
}

func newLoosePods(o Options) *loosePods {
	return &loosePods{Options: o, waits: map[types.UID]loosePod{}, told: sets.New[types.UID]()}
}

// addRefused records a pod without a gang for which no node had room. Pods of Deployments and DaemonSets are meant to
// start one by one.
func (l *loosePods) addRefused(pod *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind == "DaemonSet" || owner.Kind == "ReplicaSet" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, waits := l.waits[owner.UID]; !waits && !l.told.Has(owner.UID) && len(l.waits) < maxPending {
		l.waits[owner.UID] = loosePod{pod, l.Clock.Now()}
	}
}

// emitEvents emits events until ctx ends.
func (l *loosePods) emitEvents(ctx context.Context) {
	look := l.Clock.NewTicker(aloneAfter)
	defer look.Stop()
	for {
		select {
		case <-look.C():
			l.tellDue()
		case <-ctx.Done():
			return
		}
	}
}

// podCount counts the pods of a controller that have not ended.
type podCount struct{ bound, all int }

// tellDue tells the controllers of which a pod waits while others run, and forgets those of which none waits.
func (l *loosePods) tellDue() {
	counts := l.countPods()
	isFull := len(counts) >= maxPending
	for owner, count := range counts {
		l.mu.Lock()
		first, due := l.waits[owner]
		switch {
		case count.bound == count.all:
			delete(l.waits, owner)
			due = false
		case count.bound == 0 && isFull:
			delete(l.waits, owner) // there may be others to tell; its next refused pod adds it again
			due = false
		case count.bound == 0 || l.Clock.Since(first.since) < aloneAfter:
			due = false
		default:
			delete(l.waits, owner)
			if l.told.Len() >= maxRemembered {
				l.told = sets.New[types.UID]()
			}
			l.told.Insert(owner)
		}
		l.mu.Unlock()
		if due {
			about := referenceTo(metav1.GetControllerOfNoCopy(first.pod), first.pod.Namespace)
			emitEvent(l.Recorder, about, false, v2alpha2.EventStartsAlone, fmt.Sprintf("%d of %s of %s %s run; without a PodGroup each starts alone (docs/workloads.md)",
				count.bound, message.Count(count.all, "pod"), about.Kind, about.Name))
		}
	}
}

// countPods counts the pods of the controllers that were recorded. It visits the pods of their namespaces.
func (l *loosePods) countPods() map[types.UID]podCount {
	counts, namespaces := map[types.UID]podCount{}, sets.New[string]()
	l.mu.Lock()
	for owner, first := range l.waits {
		counts[owner] = podCount{}
		namespaces.Insert(first.pod.Namespace)
	}
	l.mu.Unlock()
	for namespace := range namespaces {
		pods, err := l.Pods.Pods(namespace).List(labels.Everything())
		if err != nil { // a lister of a cache returns none
			continue
		}
		for _, pod := range pods {
			owner := metav1.GetControllerOfNoCopy(pod)
			if owner == nil || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
				continue
			}
			if count, recorded := counts[owner.UID]; recorded {
				count.all++
				if pod.Spec.NodeName != "" {
					count.bound++
				}
				counts[owner.UID] = count
			}
		}
	}
	return counts
}
