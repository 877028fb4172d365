// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kubelets stands in for the kubelets of all nodes. It runs in this process, watches the nodes and pods of a real API
// server, and reports what containers would do that do not exist. Nodes have clocks of their own (SetClock) and can stop
// reporting (Kill); pods take time to start and to end, and end with an exit code.
//
// What the containers of an image do is a Program (SetProgram). The annotations of pods.go control single pods.
//
// A deleted pod gets SIGTERM when its kubelet sees the deletion. Its containers exit when their program does, at the
// latest at the end of the grace period; then the pod is reported as Succeeded or Failed, and deleted with a grace period
// of 0. Finalizers keep it in the API server until their owners remove them.
//
// A real kubelet differs in this:
//   - Seconds pass until an image is pulled, a sandbox is created and a probe has passed, and status is reported with
//     delays under load.
//   - Each container has a state of its own, and is started again as its restart policy says. Here all containers of a pod
//     do the same, what the program of the first one's image says, and their end is that of the pod.
//   - Init containers, sidecars, hooks and probes run. Here init containers have succeeded when the pod starts, also the
//     one that waits for other cliques; hooks take no time.
//   - After a reboot of the node containers are lost. Here a node that is killed keeps running its containers: it is cut
//     off from the API server, and its pods continue where they are when it is revived.
//   - It rejects pods that do not fit its node, evicts pods, has readiness gates, and enforces activeDeadlineSeconds and
//     memory limits.
//   - It serves logs and exec, reports observedGeneration, and sets node conditions other than Ready.
type Kubelets struct {
	client kubernetes.Interface
	lease  time.Duration // validity of a node's lease; 0: nothing watches the nodes, and they have no leases
	pods   cache.Indexer // by namespace/name, and by node
	nodes  cache.Indexer
	queue  workqueue.TypedRateLimitingInterface[work]

	mu       sync.Mutex
	machines map[string]*machine // guarded by mu; by node name, made on demand and kept
	programs map[string]Program  // guarded by mu; by prefix of the image
	lives    map[string]*podLife // guarded by mu, their content by the queue, which has a pod in one worker at a time
	lastIP   int                 // guarded by mu
}

// work is a node or a pod (namespace/name) to look at. One of the two is "".
type work struct{ node, pod string }

// machine is a node, apart from its object.
type machine struct {
	// mu is held for reading while a node or one of its pods is reported, so that nothing is reported after Kill returned.
	mu      sync.RWMutex
	dead    bool          // guarded by mu
	skew    time.Duration // guarded by mu; by how much its clock is fast
	renewed time.Time     // when its lease was renewed; accessed by the one worker that has the node
}

// kubeletWorkers is how many statuses are written at a time.
const kubeletWorkers = 16

// byNode is an index of pods.
const byNode = "node"

// startKubelets runs kubelets for all nodes until Stop.
func (cp *ControlPlane) startKubelets(ctx context.Context) error {
	ctx, cp.stopKubelets = context.WithCancel(context.WithoutCancel(ctx)) // like the servers, they outlive the context of Start
	k := &Kubelets{
		client:   cp.client,
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[work](5*time.Millisecond, time.Second)),
		machines: map[string]*machine{}, programs: map[string]Program{"": {}}, lives: map[string]*podLife{},
	}
	if cp.watchesNodes() {
		k.lease = cp.options.NodeLease
	}
	factory := informers.NewSharedInformerFactory(cp.client, 0)
	pods, nodes := factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()
	if err := pods.AddIndexers(cache.Indexers{byNode: func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Spec.NodeName}, nil
	}}); err != nil {
		return err
	}
	k.pods, k.nodes = pods.GetIndexer(), nodes.GetIndexer()
	if _, err := pods.AddEventHandler(eachEvent(func(key string) { k.queue.Add(work{pod: key}) })); err != nil {
		return err
	}
	if _, err := nodes.AddEventHandler(eachEvent(func(key string) { k.queue.Add(work{node: key}) })); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("listing %s: %w", kind, context.Cause(ctx))
		}
	}
	for range kubeletWorkers {
		go k.work(ctx)
	}
	context.AfterFunc(ctx, k.queue.ShutDown)
	cp.kubelets = k
	return nil
}

func eachEvent(see func(key string)) cache.ResourceEventHandler {
	seeObject := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			see(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: seeObject, UpdateFunc: func(_, object any) { seeObject(object) }, DeleteFunc: seeObject,
	}
}

// SetProgram sets what the containers do of pods whose first image has this prefix; of several the longest applies. The empty
// prefix is all images that have no other, at first with the zero Program. Pods that are bound already keep their program.
func (k *Kubelets) SetProgram(imagePrefix string, program Program) {
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
// Nothing else happens: the node lifecycle controller marks the node as unreachable when its lease has expired. LoseNode
// does both.
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
	k.queue.Add(work{node: node})
}

func (k *Kubelets) machine(node string) *machine {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.machines[node] == nil {
		k.machines[node] = &machine{}
	}
	return k.machines[node]
}

// program returns what containers of this image do. The caller holds mu.
func (k *Kubelets) program(image string) Program {
	longest := ""
	for prefix := range k.programs {
		if strings.HasPrefix(image, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	return k.programs[longest]
}

// work looks at nodes and pods until the queue is shut down. What looks at one returns after what time to look again; 0:
// after its next event.
func (k *Kubelets) work(ctx context.Context) {
	for {
		item, stopped := k.queue.Get()
		if stopped {
			return
		}
		sync, name := k.syncPod, item.pod
		if item.node != "" {
			sync, name = k.syncNode, item.node
		}
		again, err := sync(ctx, name)
		if err != nil { // the API server is away: tests restart it
			k.queue.AddRateLimited(item)
		} else {
			k.queue.Forget(item)
		}
		if again > 0 {
			k.queue.AddAfter(item, again)
		}
		k.queue.Done(item)
	}
}

// syncNode reports a node as ready, and renews its lease.
func (k *Kubelets) syncNode(ctx context.Context, name string) (time.Duration, error) {
	object, exists, err := k.nodes.GetByKey(name)
	if err != nil || !exists {
		return 0, err
	}
	node, m := object.(*corev1.Node), k.machine(name)
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.dead {
		return 0, nil
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{readyAt(time.Now().Add(m.skew))}}})
			if err != nil {
				return 0, err
			}
			if _, err := k.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				return 0, ignoreGone(err)
			}
		}
	}
	// A node that comes back, or whose object does, has pods that wait.
	keys, err := k.pods.IndexKeys(byNode, name)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		k.queue.Add(work{pod: key})
	}
	return k.renewLease(ctx, node, m)
}

// renewLease returns when the lease is to be renewed again.
func (k *Kubelets) renewLease(ctx context.Context, node *corev1.Node, m *machine) (time.Duration, error) {
	if k.lease == 0 {
		return 0, nil
	}
	if wait := time.Until(m.renewed.Add(k.lease / 4)); wait > 0 {
		return wait, nil
	}
	renewed := time.Now()
	lease := coordinationv1.Lease(node.Name, corev1.NamespaceNodeLease).
		WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("Node").WithName(node.Name).WithUID(node.UID)).
		WithSpec(coordinationv1.LeaseSpec().WithHolderIdentity(node.Name).WithLeaseDurationSeconds(int32(k.lease.Seconds())).
			WithRenewTime(metav1.NewMicroTime(renewed.Add(m.skew))))
	if _, err := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Apply(ctx, lease, metav1.ApplyOptions{FieldManager: "kubelets", Force: true}); err != nil {
		return 0, err
	}
	m.renewed = renewed
	return k.lease / 4, nil
}

// syncPod lets the time pass for a pod, and reports its status, or that it has ended.
func (k *Kubelets) syncPod(ctx context.Context, key string) (time.Duration, error) {
	object, exists, err := k.pods.GetByKey(key)
	if err != nil {
		return 0, err
	}
	if !exists {
		k.forget(key)
		return 0, nil
	}
	pod := object.(*corev1.Pod)
	if pod.Spec.NodeName == "" {
		return 0, nil
	}
	object, exists, err = k.nodes.GetByKey(pod.Spec.NodeName)
	if err != nil || !exists {
		return 0, err // looked at again with its node
	}
	m := k.machine(pod.Spec.NodeName)
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.dead {
		return 0, nil
	}

	life := k.life(key, pod)
	pod = newer(pod, life.reported)
	life.skew = m.skew
	late := life.next().After(life.now) && life.next().Before(time.Now())
	if late { // every state is reported, so that tests can rely on them on a busy machine too
		life.advance(life.next())
	} else {
		life.advance(time.Now())
		life.observe(pod)
		life.advance(life.now)
	}

	if !podutil.IsPodTerminal(pod) {
		if pod, err = k.report(ctx, pod, life, object.(*corev1.Node)); err != nil {
			return 0, ignoreGone(err)
		}
	}
	if pod.DeletionTimestamp != nil && life.over && !life.removed {
		err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
		if err := ignoreGone(err); err != nil {
			return 0, err
		}
		life.removed = true
	}
	if late {
		return time.Nanosecond, nil
	}
	if next := life.next(); !next.IsZero() {
		return max(time.Until(next), time.Nanosecond), nil
	}
	return 0, nil
}

// life returns the pod's containers, which are created with the pod.
func (k *Kubelets) life(key string, pod *corev1.Pod) *podLife {
	k.mu.Lock()
	defer k.mu.Unlock()
	life := k.lives[key]
	if life == nil || life.uid != pod.UID {
		k.lastIP++
		life = &podLife{uid: pod.UID, spec: &pod.Spec, program: k.program(pod.Spec.Containers[0].Image), now: time.Now()}
		life.ip = fmt.Sprintf("10.244.%d.%d", k.lastIP>>8&0xff, k.lastIP&0xff)
		k.lives[key] = life
	}
	return life
}

func (k *Kubelets) forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.lives, key)
}

// report writes the pod's status if it differs, and returns the pod as it is then. Like a kubelet it overwrites what
// others wrote in its fields, and leaves other fields and conditions alone.
func (k *Kubelets) report(ctx context.Context, pod *corev1.Pod, life *podLife, node *corev1.Node) (*corev1.Pod, error) {
	status := life.status(node)
	if status == nil {
		return pod, nil
	}
	after := overlay(pod.Status, *status)
	if equality.Semantic.DeepEqual(after, pod.Status) {
		return pod, nil
	}
	// With the UID in it, the patch is refused for another pod of the name.
	patch, err := client.StrategicMergeFrom(&corev1.Pod{Status: pod.Status}).Data(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: after})
	if err != nil {
		return nil, err
	}
	pod, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, err
	}
	life.reported = pod
	return pod, nil
}

// newer returns the newer one of two versions of a pod. The second may be nil, or of an earlier pod.
func newer(pod, reported *corev1.Pod) *corev1.Pod {
	if reported == nil || reported.UID != pod.UID || revision(reported) < revision(pod) {
		return pod
	}
	return reported
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
