// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-project/muster/test/podlife"
)

// Kubelets stands in for the kubelets of all nodes. It runs in this process, watches the nodes and pods of a real API
// server, and reports what containers would do that do not exist. Nodes have clocks of their own (SetClock) and can
// stop reporting (Kill); pods take time to start and to end, and end with an exit code.
//
// What happens to a pod, and when, is in package podlife. What the containers of an image do is a podlife.Program
// (SetProgram); the annotations of pods.go control single pods.
//
// A deleted pod gets SIGTERM when its kubelet sees the deletion. Its containers exit when their program does, at the
// latest at the end of the grace period; then the pod is reported as Succeeded or Failed, and deleted with a grace
// period of 0. Finalizers keep it in the API server until their owners remove them.
//
// A real kubelet differs in this:
//   - Seconds pass until an image is pulled, a sandbox is created and a probe has passed, and status is reported with
//     delays under load.
//   - Each container has a state of its own, and is started again as its restart policy says. Here all containers of a
//     pod do the same, what the program of the first one's image says, and their end is that of the pod.
//   - Init containers, sidecars, hooks and probes run. Here init containers have succeeded when the pod starts, also
//     the one that waits for other cliques; hooks take no time.
//   - After a reboot of the node containers are lost. Here a node that is killed keeps running its containers: it is
//     cut off from the API server, and its pods continue where they are when it is revived.
//   - It rejects pods that do not fit its node, evicts pods, has readiness gates, and enforces activeDeadlineSeconds
//     and memory limits.
//   - It serves logs and exec, reports observedGeneration and the addresses of pods, and sets node conditions other
//     than Ready.
type Kubelets struct {
	client  client.Client // reads from a cache
	lease   time.Duration // validity of a node's lease; 0: nothing watches the nodes, and they have no leases
	revived struct{ nodes, pods chan event.GenericEvent }

	mu       sync.Mutex
	machines map[string]*machine               // guarded by mu; by node name, made on demand and kept
	programs map[string]podlife.Program        // guarded by mu; by prefix of the image
	seen     map[types.NamespacedName]*seenPod // guarded by mu, their content by the controller, which has a pod in one worker at a time
}

// machine is a node, apart from its object.
type machine struct {
	// mu is held for reading while a node or one of its pods is reported, so that nothing is reported after Kill
	// returned.
	mu      sync.RWMutex
	dead    bool          // guarded by mu
	skew    time.Duration // guarded by mu; by how much its clock is fast
	renewed time.Time     // when its lease was renewed; accessed by the one worker that has the node
}

// seenPod is a pod as its kubelet saw it last.
type seenPod struct {
	pod  *corev1.Pod
	life podlife.Life
	gone bool // its deletion was confirmed
}

// byNode is an index of pods.
const byNode = "spec.nodeName"

// startKubelets runs kubelets for all nodes until Stop.
func (cp *ControlPlane) startKubelets(ctx context.Context) error {
	ctx, cp.stopKubelets = context.WithCancel(context.WithoutCancel(ctx)) // like the servers, they outlive the context of Start
	m, err := manager.New(cp.admin, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true), RecoverPanic: new(false)},
	})
	if err != nil {
		return err
	}
	k := &Kubelets{
		client: m.GetClient(), machines: map[string]*machine{}, programs: map[string]podlife.Program{"": {}}, seen: map[types.NamespacedName]*seenPod{},
	}
	k.revived.nodes, k.revived.pods = make(chan event.GenericEvent), make(chan event.GenericEvent)
	if cp.watchesNodes() {
		k.lease = cp.options.NodeLease
	}
	nodeOf := func(pod client.Object) []string { return []string{pod.(*corev1.Pod).Spec.NodeName} }
	podsOf := handler.EnqueueRequestsFromMapFunc(k.podsOf)
	options := controller.Options{ // errors: the API server is away, because tests restart it
		MaxConcurrentReconciles: 16, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, time.Second),
	}
	if err := errors.Join(
		m.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, byNode, nodeOf),
		builder.ControllerManagedBy(m).For(&corev1.Node{}).WithOptions(options).
			WatchesRawSource(source.Channel(k.revived.nodes, &handler.EnqueueRequestForObject{})).Complete(reconcile.Func(k.syncNode)),
		// A node that comes back, or whose object does, has pods that wait.
		builder.ControllerManagedBy(m).For(&corev1.Pod{}).WithOptions(options).Watches(&corev1.Node{}, podsOf).
			WatchesRawSource(source.Channel(k.revived.pods, podsOf)).Complete(reconcile.Func(k.syncPod)),
	); err != nil {
		return err
	}
	go func() {
		if err := m.Start(ctx); err != nil {
			cp.say("the kubelets have ended: %v", err)
		}
	}()
	cp.kubelets = k
	return nil
}

// podsOf returns the pods of a node.
func (k *Kubelets) podsOf(ctx context.Context, node client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	if err := k.client.List(ctx, pods, client.MatchingFields{byNode: node.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has ended
	}
	requests := make([]reconcile.Request, len(pods.Items))
	for i := range pods.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&pods.Items[i])
	}
	return requests
}

// SetProgram sets what the containers do of pods whose first image has this prefix; of several the longest applies. The
// empty prefix is all images that have no other, at first with the zero Program.
func (k *Kubelets) SetProgram(imagePrefix string, program podlife.Program) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.programs[imagePrefix] = program
}

// SetClock sets by how much the clock of a node is fast, or slow if it is negative. Every time that its kubelet writes
// from then on is of this clock.
func (k *Kubelets) SetClock(node string, fast time.Duration) {
	m := k.machine(node)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skew = fast
}

// Kill makes a node stop reporting: neither its status nor that of its pods changes any more, and deleted pods stay.
// Nothing else happens: the node lifecycle controller marks the node as unreachable when its lease has expired.
// LoseNode does both.
func (k *Kubelets) Kill(node string) {
	m := k.machine(node)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

// Revive reverts Kill. What its containers did meanwhile is reported, and pods that were deleted get SIGTERM now.
func (k *Kubelets) Revive(node string) {
	m := k.machine(node)
	m.mu.Lock()
	m.dead = false
	m.mu.Unlock()
	revived := event.GenericEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}}
	k.revived.nodes <- revived
	k.revived.pods <- revived
}

func (k *Kubelets) machine(node string) *machine {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.machines[node] == nil {
		k.machines[node] = &machine{}
	}
	return k.machines[node]
}

// program returns what the containers of a pod do.
func (k *Kubelets) program(pod *corev1.Pod) podlife.Program {
	k.mu.Lock()
	defer k.mu.Unlock()
	longest := ""
	for prefix := range k.programs {
		if strings.HasPrefix(pod.Spec.Containers[0].Image, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	return annotated(k.programs[longest], pod)
}

// syncNode reports a node as ready, and renews its lease.
func (k *Kubelets) syncNode(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node, m := &corev1.Node{}, k.machine(request.Name)
	if err := k.client.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.dead {
		return reconcile.Result{}, nil
	}
	before := node.DeepCopy()
	for i, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			node.Status.Conditions[i] = readyAt(time.Now().Add(m.skew))
			if err := k.client.Status().Patch(ctx, node, client.StrategicMergeFrom(before)); err != nil {
				return reconcile.Result{}, ignoreGone(err)
			}
		}
	}
	if k.lease == 0 {
		return reconcile.Result{}, nil
	}
	now := time.Now()
	if wait := m.renewed.Add(k.lease / 4).Sub(now); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	lease := coordinationv1.Lease(node.Name, corev1.NamespaceNodeLease).
		WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("Node").WithName(node.Name).WithUID(node.UID)).
		WithSpec(coordinationv1.LeaseSpec().WithHolderIdentity(node.Name).WithLeaseDurationSeconds(int32(k.lease.Seconds())).
			WithRenewTime(metav1.NewMicroTime(now.Add(m.skew))))
	if err := k.client.Apply(ctx, lease, client.FieldOwner("kubelets"), client.ForceOwnership); err != nil {
		return reconcile.Result{}, err
	}
	m.renewed = now
	return reconcile.Result{RequeueAfter: k.lease / 4}, nil
}

// syncPod lets happen to a pod what is due, one event at a time: every state is reported, so that tests can rely on
// them on a busy machine too.
func (k *Kubelets) syncPod(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := k.client.Get(ctx, request.NamespacedName, pod); err != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.seen, request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := k.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &corev1.Node{}); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // looked at again when it is bound, or with its node
	}
	m := k.machine(pod.Spec.NodeName)
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.dead {
		return reconcile.Result{}, nil
	}
	s, now := k.seenPod(pod), time.Now()
	next, ok := s.life.Next(s.pod, k.program(s.pod))
	// What was due before a newer version of the pod was seen comes first, such as what happened while its node was
	// dead.
	if newer := revision(pod) > revision(s.pod); newer && (!ok || next.At.After(now) || podlife.Over(pod)) {
		s.pod = pod
		s.life.See(pod, k.program(pod), now)
		next, ok = s.life.Next(pod, k.program(pod))
	}
	switch wait := next.At.Sub(now); {
	case !ok || s.gone:
		return reconcile.Result{}, nil
	case wait > 0:
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	err := k.report(ctx, s, next, m.skew)
	return reconcile.Result{RequeueAfter: time.Nanosecond}, ignoreGone(err)
}

// seenPod returns the pod as it was seen last, now if it has not been seen.
func (k *Kubelets) seenPod(pod *corev1.Pod) *seenPod {
	program := k.program(pod)
	k.mu.Lock()
	defer k.mu.Unlock()
	key := client.ObjectKeyFromObject(pod)
	s := k.seen[key]
	if s == nil || s.pod.UID != pod.UID {
		s = &seenPod{pod: pod}
		s.life.See(pod, program, time.Now())
		k.seen[key] = s
	}
	return s
}

// report writes what has happened to a pod, with the time of the node's clock in whole seconds, as the API server keeps
// it. Like a kubelet it leaves fields and conditions of others alone.
func (k *Kubelets) report(ctx context.Context, s *seenPod, event podlife.Event, skew time.Duration) error {
	if event.Report != nil {
		at := event.At
		if at.Before(s.life.Latest) {
			at = s.life.Latest
		}
		before, pod := s.pod.DeepCopy(), s.pod.DeepCopy()
		event.Report(pod, metav1.NewTime(at.Add(skew).Truncate(time.Second)))
		before.UID = "" // with the UID in it, the patch is refused for another pod of the name
		if err := k.client.Status().Patch(ctx, pod, client.StrategicMergeFrom(before)); err != nil {
			return err
		}
		s.pod = pod
		s.life.See(pod, k.program(pod), at)
	}
	if event.Gone {
		if err := k.client.Delete(ctx, s.pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &s.pod.UID}); err != nil {
			return err
		}
		s.gone = true
	}
	return nil
}

// revision returns the resource version as a number: those of the API server are comparable.
func revision(pod *corev1.Pod) uint64 {
	n, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	return n
}

// ignoreGone returns nil if the object is gone, or replaced by another of its name.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Kubelets returns the stand-in for the kubelets, nil without WithKubelets.
func (cp *ControlPlane) Kubelets() *Kubelets { return cp.kubelets }
