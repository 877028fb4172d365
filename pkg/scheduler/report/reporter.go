// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/topology"
)

const (
	// gather is how long marks are collected before they are processed: the pods of a gang are created and bound in
	// bursts.
	gather = 25 * time.Millisecond
	// lookInterval is the time between two checks of all gangs, whether marked or not.
	lookInterval = time.Minute
	// workers is the maximum number of concurrent writes of a kind (statuses, pod conditions).
	workers = 4
	// writeTimeout is the timeout of a write to the API server.
	writeTimeout = 10 * time.Second
	// minRetry and maxRetry bound the pause after a failed write, which doubles with each failure.
	minRetry = 50 * time.Millisecond
	maxRetry = 10 * time.Second
)

// StatusWriter writes the status of a PodGroup, if its resourceVersion is the latest, and returns the resulting object.
type StatusWriter interface {
	UpdateStatus(ctx context.Context, group *v2alpha2.PodGroup) (*v2alpha2.PodGroup, error)
}

// Options are the dependencies and intervals of a Reporter. All are required.
type Options struct {
	Registry  *gangs.Registry
	PodGroups StatusWriter
	Client    kubernetes.Interface // for the status of pods, and to read their owners
	Recorder  events.EventRecorder
	Clock     clock.WithTicker

	// Busy reports whether there is a burst of bindings. Statuses then wait, but not longer than five seconds: a status
	// costs the API server as much work as a binding, and the next gangs wait for their bindings.
	Busy func() bool
	// Pods lists the pods of the scheduler's cache; Failed returns the failed pods that name a PodGroup, with the
	// status that podgroup.FailedStatus keeps. Both explain why a gang lacks pods.
	Pods   corelisters.PodLister
	Failed func(gangs.Key) []*corev1.Pod
	// Nodes lists the nodes of the scheduler's cache, whose labels say where gangs run.
	Nodes corelisters.NodeLister
	// LevelsOf returns the levels of a Topology, nil if it is not known.
	LevelsOf func(name string) topology.Levels
	// StatusInterval is the minimum time between two status writes of one PodGroup; a changed condition is written
	// immediately, unless Busy.
	StatusInterval time.Duration
	// WaitingForGangAfter is how long a pod is gated before it gets PodScheduled=False with reason WaitingForGang.
	WaitingForGangAfter time.Duration
	// NeedsCapacityAfter is how long a pod must have needed capacity before PodScheduled=False with reason
	// Unschedulable is written.
	NeedsCapacityAfter time.Duration
}

// Reporter informs users about the state of their gangs.
type Reporter struct {
	registry *gangs.Registry
	clock    clock.WithTicker
	statuses *statuses
	pods     *gatedPods
	ignored  *ignoredKeys
	loose    *loosePods

	mu     sync.Mutex
	runs   bool                // guarded by mu: Run has begun
	marked sets.Set[gangs.Key] // guarded by mu
	signal chan struct{}       // contains one value while marked is not empty
}

// New returns a Reporter. It writes nothing before Run.
func New(o Options) *Reporter {
	m := newMakers(o)
	return &Reporter{
		registry: o.Registry,
		clock:    o.Clock,
		statuses: newStatuses(o, m),
		pods:     newGatedPods(o, m),
		ignored:  newIgnoredKeys(o),
		loose:    newLoosePods(o),
		marked:   sets.New[gangs.Key](),
		signal:   make(chan struct{}, 1),
	}
}

// MarkChanged records that the gangs may have changed. It only stores the keys, so it may be called anywhere. Before
// Run it does nothing: Run begins with all gangs, and a process that waits to lead would keep the name of every gang
// that ever was.
func (r *Reporter) MarkChanged(keys ...gangs.Key) {
	if len(keys) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.runs {
		return
	}
	r.marked.Insert(keys...)
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// AddPod examines a new pod of this scheduler for labels and annotations that have no effect. It makes no request, so
// it may be called anywhere, including before Run.
func (r *Reporter) AddPod(pod *corev1.Pod) { r.ignored.addPod(pod) }

// PodRefused records a pod without a gang for which no node had room. It makes no request.
func (r *Reporter) PodRefused(pod *corev1.Pod) { r.loose.addRefused(pod) }

// Run writes until ctx ends. It begins with a check of every gang, so no mark of another process is missed. Until the
// registry has seen all existing objects (Synced) there are no facts, and nothing is written.
func (r *Reporter) Run(ctx context.Context) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { syncKeys(ctx, r.statuses.queue, r.statuses.syncStatus) })
		running.Go(func() { syncKeys(ctx, r.pods.queue, r.pods.syncGang) })
	}
	running.Go(func() { r.ignored.emitEvents(ctx) })
	running.Go(func() { r.loose.emitEvents(ctx) })
	look := r.clock.NewTicker(lookInterval)
	defer look.Stop()
	r.mu.Lock()
	r.runs = true
	r.mu.Unlock()
	r.MarkChanged(r.registry.Keys()...)
	for {
		select {
		case <-r.signal:
			select {
			case <-r.clock.After(gather):
			case <-ctx.Done():
			}
			for key := range r.takeMarked() {
				r.statuses.queue.Add(key)
				r.pods.queue.Add(key)
			}
		case <-look.C():
			r.MarkChanged(r.registry.Keys()...)
		case <-ctx.Done():
			r.statuses.queue.ShutDown()
			r.pods.queue.ShutDown()
			running.Wait()
			return
		}
	}
}

func (r *Reporter) takeMarked() sets.Set[gangs.Key] {
	r.mu.Lock()
	defer r.mu.Unlock()
	marked := r.marked
	r.marked = sets.New[gangs.Key]()
	return marked
}

type queue = workqueue.TypedRateLimitingInterface[gangs.Key]

func newQueue(c clock.WithTicker) queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[gangs.Key](minRetry, maxRetry),
		workqueue.TypedRateLimitingQueueConfig[gangs.Key]{Clock: c})
}

// syncKeys syncs keys of the queue until it is shut down. A key is processed by one worker at a time. sync returns the
// time until the next check of the key without a mark; 0: none is needed.
func syncKeys(ctx context.Context, q queue, sync func(context.Context, gangs.Key) (time.Duration, error)) {
	logger := klog.FromContext(ctx)
	for {
		key, shutdown := q.Get()
		if shutdown {
			return
		}
		again, err := sync(ctx, key)
		switch {
		case err != nil:
			// A conflict means that the cache lags behind, which is resolved by the next attempt.
			if !apierrors.IsConflict(err) && ctx.Err() == nil {
				logger.Error(err, "Failed to report on a gang; it is tried again", "podGroup", key)
			}
			q.AddRateLimited(key)
		default:
			q.Forget(key)
			if again > 0 {
				q.AddAfter(key, again)
			}
		}
		q.Done(key)
	}
}

// Reference returns the object reference of an event about the PodGroup.
func Reference(group *v2alpha2.PodGroup) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v2alpha2.SchemeGroupVersion.String(), Kind: "PodGroup",
		Namespace: group.Namespace, Name: group.Name, UID: group.UID, ResourceVersion: group.ResourceVersion,
	}
}

// maxNote is slightly less than the maximum length of an event's note, in bytes, that the API server accepts.
const maxNote = 1000

// emitEvent records an event.
func emitEvent(recorder events.EventRecorder, about runtime.Object, warning bool, reason, note string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	if len(note) > maxNote {
		n := maxNote
		for n > 0 && note[n]&0xC0 == 0x80 { // not inside a character
			n--
		}
		note = note[:n] + "…"
	}
	recorder.Eventf(about, nil, kind, reason, "Scheduling", "%s", note)
}
