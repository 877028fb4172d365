// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
)

const (
	// maxPending is the maximum number of pods about whose keys an event is due.
	maxPending = 1000
	// maxRemembered is the number of owners after which it is forgotten which of them had an event.
	maxRemembered = 10_000
)

// ignoredKeys tells users that labels and annotations of their pods have no effect: one event per owner. It reads
// nothing but the owner of a ReplicaSet.
type ignoredKeys struct {
	Options
	signal chan struct{} // contains one value while pending is not empty

	mu         sync.Mutex
	pending    []*corev1.Pod       // guarded by mu
	remembered sets.Set[types.UID] // guarded by mu; the owners of pending pods, and those that had an event
}

func newIgnoredKeys(o Options) *ignoredKeys {
	return &ignoredKeys{Options: o, signal: make(chan struct{}, 1), remembered: sets.New[types.UID]()}
}

// addPod examines a new pod. Bound pods are left out: this, or another process, saw them before.
func (k *ignoredKeys) addPod(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	owner := ownerUID(pod)
	if k.remembered.Has(owner) || len(k.pending) >= maxPending || podgroup.IgnoredKeys(pod) == "" {
		return
	}
	if k.remembered.Len() >= maxRemembered {
		k.remembered = sets.New[types.UID]()
	}
	k.remembered.Insert(owner)
	k.pending = append(k.pending, pod)
	select {
	case k.signal <- struct{}{}:
	default:
	}
}

// ownerUID returns the UID of the pod's controller, or its own.
func ownerUID(pod *corev1.Pod) types.UID {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return ref.UID
	}
	return pod.UID
}

// emitEvents emits events until ctx ends. Of the pods that were seen before, only those that still wait matter: the
// process that led then told about the others.
func (k *ignoredKeys) emitEvents(ctx context.Context) {
	k.dropSettled()
	for {
		select {
		case <-k.signal:
			k.tellPending(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// dropSettled forgets pending pods that no longer wait.
func (k *ignoredKeys) dropSettled() {
	k.mu.Lock()
	defer k.mu.Unlock()
	waiting := k.pending[:0]
	for _, pod := range k.pending {
		if now, err := k.Pods.Pods(pod.Namespace).Get(pod.Name); err == nil && now.UID == pod.UID && now.Spec.NodeName == "" {
			waiting = append(waiting, pod)
		} else {
			k.remembered.Delete(ownerUID(pod))
		}
	}
	k.pending = waiting
}

func (k *ignoredKeys) tellPending(ctx context.Context) {
	k.mu.Lock()
	pending := k.pending
	k.pending = nil
	k.mu.Unlock()
	for _, pod := range pending {
		emitEvent(k.Recorder, k.ownerOf(ctx, pod), true, v2alpha2.EventIgnoredKeys,
			fmt.Sprintf("muster-scheduler does not obey all keys of pod %s: %s", pod.Name, podgroup.IgnoredKeys(pod)))
	}
}

// ownerOf returns the object that users wrote: the pod, its controller, or the controller of its ReplicaSet.
func (k *ignoredKeys) ownerOf(ctx context.Context, pod *corev1.Pod) *corev1.ObjectReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	}
	if owner.Kind == "ReplicaSet" && owner.APIVersion == appsv1.SchemeGroupVersion.String() {
		reading, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		set, err := k.Client.AppsV1().ReplicaSets(pod.Namespace).Get(reading, owner.Name, metav1.GetOptions{})
		if err == nil && set.UID == owner.UID { // otherwise the ReplicaSet is told
			if deployment := metav1.GetControllerOfNoCopy(set); deployment != nil {
				owner = deployment
			}
		}
	}
	return referenceTo(owner, pod.Namespace)
}

func referenceTo(owner *metav1.OwnerReference, namespace string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: namespace, Name: owner.Name, UID: owner.UID}
}
