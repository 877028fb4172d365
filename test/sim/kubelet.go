// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/podlife"
)

// Kubelet simulates the kubelets of all nodes: it starts bound pods, makes them ready, and removes those that are being
// deleted. Pods of lost nodes keep their state; after lostAfter they are deleted, but remain terminating. Its durations
// can be changed at any time.
type Kubelet struct {
	// StartAfter is the time from the binding of a pod to phase Running, ReadyAfter the time from there to Ready. A pod
	// with the init container of a start order starts when the PodCliques that it waits for have started.
	StartAfter, ReadyAfter time.Duration
	// Linger is how long a pod that is being deleted keeps running, at most its grace period. LingerUpTo, if longer,
	// makes the time vary between pods: from Linger to LingerUpTo.
	Linger, LingerUpTo time.Duration
	// FadeAfter is the time after which ready pods of images with the prefix FadingImage are no longer ready; 0: never.
	FadeAfter   time.Duration
	FadingImage string
	// StopCode is the exit code of the containers of a pod that is being deleted; nil: their exit is not reported.
	StopCode *int32
	// Skew is how far the clocks of nodes are ahead, by node; negative: behind. Kubelets write times of their own
	// clocks.
	Skew map[string]time.Duration

	api *API

	mu   sync.Mutex
	pods map[types.UID]*podState // guarded by mu; bound pods only
	lost map[string]time.Time    // guarded by mu; unreachable nodes, and since when
	gone map[string]*corev1.Node // guarded by mu; those of them that were deleted
	sick map[types.UID]bool      // guarded by mu; pods with failing readiness probes
}

// lostAfter is how long pods stay on an unreachable node before they are deleted: the toleration that admission adds to
// pods.
const lostAfter = 5 * time.Minute

// orphanedAfter is how long pods stay on a node that was deleted before the pod garbage collector deletes them.
const orphanedAfter = 40 * time.Second

// podState is a bound pod as its kubelet saw it last.
type podState struct {
	pod  *corev1.Pod
	life podlife.Life
}

func newKubelet(api *API) *Kubelet {
	k := &Kubelet{api: api, pods: map[types.UID]*podState{}, lost: map[string]time.Time{}, gone: map[string]*corev1.Node{}, sick: map[types.UID]bool{}}
	api.watch(k.see)
	return k
}

func (k *Kubelet) see(c Change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pod, _ := c.New.(*corev1.Pod)
	if pod == nil {
		if old, ok := c.Old.(*corev1.Pod); ok {
			delete(k.pods, old.UID)
			delete(k.sick, old.UID)
		}
		return
	}
	if pod.Spec.NodeName == "" {
		return
	}
	s := k.pods[pod.UID]
	if s == nil {
		s = &podState{}
		k.pods[pod.UID] = s
	}
	s.pod = pod
	s.life.See(pod, podlife.Program{}, k.api.clock.Now())
}

// kubeletAction is an action of a kubelet on a pod, with its time.
type kubeletAction struct {
	at time.Time
	step
}

// actions returns the next actions of the kubelets, the earliest first.
func (k *Kubelet) actions() []kubeletAction {
	k.mu.Lock()
	states := make([]podState, 0, len(k.pods))
	for _, s := range k.pods {
		states = append(states, *s)
	}
	lost, gone, sick := maps.Clone(k.lost), maps.Clone(k.gone), maps.Clone(k.sick)
	k.mu.Unlock()
	var actions []kubeletAction
	for _, s := range states {
		pod := s.pod
		add := func(at time.Time, what string, do func() error) {
			actions = append(actions, kubeletAction{at, step{"kubelet: pod " + pod.Name + " " + what, do}})
		}
		if since, isLost := lost[pod.Spec.NodeName]; isLost {
			if isGone := gone[pod.Spec.NodeName] != nil; isGone && (s.life.Terminating.IsZero() || *pod.DeletionGracePeriodSeconds > 0) {
				add(since.Add(orphanedAfter), "is deleted, for its node was deleted", func() error { return k.deleteOrphaned(pod) })
			} else if !isGone && s.life.Terminating.IsZero() && !podlife.Over(pod) {
				add(since.Add(lostAfter), "is deleted, for its node does not answer", func() error {
					return tolerant(k.api.Delete(context.Background(), pod))
				})
			}
		} else if event, ok := s.life.Next(pod, k.program(pod, sick[pod.UID])); ok {
			add(event.At, event.What, func() error { return k.report(pod, event) })
		}
	}
	slices.SortFunc(actions, func(x, y kubeletAction) int { return cmp.Or(x.at.Compare(y.at), strings.Compare(x.name, y.name)) })
	return actions
}

// program returns what the containers of a pod do.
func (k *Kubelet) program(pod *corev1.Pod, sick bool) podlife.Program {
	program := podlife.Program{
		Held:          pod.Status.Phase == corev1.PodPending && k.waits(pod),
		AcceptedAfter: k.StartAfter, ReadyAfter: k.ReadyAfter, Unready: sick, StopsAfter: k.linger(pod), StopCode: k.StopCode,
	}
	if strings.HasPrefix(pod.Spec.Containers[0].Image, k.FadingImage) {
		program.UnreadyAfter = k.FadeAfter
	}
	return program
}

// report writes what has happened to a pod.
func (k *Kubelet) report(pod *corev1.Pod, event podlife.Event) error {
	if event.Report != nil {
		if err := k.setStatus(pod, event.Report); err != nil {
			return err
		}
	}
	if !event.Gone {
		return nil
	}
	return tolerant(k.api.Delete(context.Background(), pod, client.Preconditions{UID: &pod.UID}, client.GracePeriodSeconds(0)))
}

func (k *Kubelet) linger(pod *corev1.Pod) time.Duration {
	more := int64((k.LingerUpTo - k.Linger) / time.Millisecond)
	if more <= 0 {
		return k.Linger
	}
	hash := fnv.New32a()
	hash.Write([]byte(pod.UID))
	return k.Linger + time.Duration(int64(hash.Sum32())%more)*time.Millisecond
}

// waits reports whether the start order's init container of a pod waits for other cliques.
func (k *Kubelet) waits(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.InitContainers {
		if c.Name != v1alpha1.InitContainerName {
			continue
		}
		arguments := map[string]string{}
		for _, a := range c.Args {
			name, value, _ := strings.Cut(a, "=")
			arguments[name+"="] = value
		}
		requirements, err := lifecycle.ParseRequirements(arguments[workload.WaitArgRequirements])
		if err != nil {
			return true
		}
		mine := func(o client.Object) bool {
			return o.GetNamespace() == pod.Namespace && o.GetLabels()[v1alpha1.LabelPartOf] == arguments[workload.WaitArgSet] &&
				o.GetLabels()[v1alpha1.LabelPodCliqueSetReplicaIndex] == arguments[workload.WaitArgReplica]
		}
		var cliques []lifecycle.Clique
		for _, o := range all[*v1alpha1.PodClique](k.api) {
			if mine(o) {
				cliques = append(cliques, workload.CliqueFacts(o))
			}
		}
		var groups []lifecycle.ScalingGroup
		for _, o := range all[*v1alpha1.PodCliqueScalingGroup](k.api) {
			if mine(o) {
				groups = append(groups, workload.ScalingGroupFacts(o))
			}
		}
		return len(lifecycle.Unmet(requirements, cliques, groups)) > 0
	}
	return false
}

// setStatus edits the status of the newest version of a pod, as kubelets do, at the time of its node's clock.
func (k *Kubelet) setStatus(pod *corev1.Pod, edit func(pod *corev1.Pod, clock metav1.Time)) error {
	newest := &corev1.Pod{}
	if err := k.api.Get(context.Background(), client.ObjectKeyFromObject(pod), newest); err != nil || newest.UID != pod.UID {
		return client.IgnoreNotFound(err)
	}
	edit(newest, metav1.NewTime(k.api.now().Add(k.Skew[pod.Spec.NodeName])))
	return tolerant(k.api.Status().Update(context.Background(), newest))
}

// FailReadiness makes the readiness probe of a running pod fail, until PassReadiness.
func (k *Kubelet) FailReadiness(pod *corev1.Pod) error {
	k.setSick(pod, true)
	return k.setStatus(pod, func(p *corev1.Pod, clock metav1.Time) { podlife.SetReady(p, false, clock) })
}

// PassReadiness lets the readiness probe of a pod pass again.
func (k *Kubelet) PassReadiness(pod *corev1.Pod) { k.setSick(pod, false) }

func (k *Kubelet) setSick(pod *corev1.Pod, sick bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if sick {
		k.sick[pod.UID] = true
	} else {
		delete(k.sick, pod.UID)
	}
}

// Exit makes the containers of a running pod exit with a code. Depending on the pod's restartPolicy they are restarted,
// and ready after ReadyAfter, or the pod is Succeeded or Failed.
func (k *Kubelet) Exit(pod *corev1.Pod, code int32) error {
	again := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && code != 0
	if !again {
		return k.setStatus(pod, func(p *corev1.Pod, clock metav1.Time) { podlife.Exit(p, code, clock) })
	}
	k.mu.Lock()
	if s := k.pods[pod.UID]; s != nil {
		s.life.Running = k.api.clock.Now()
	}
	k.mu.Unlock()
	return k.setStatus(pod, func(p *corev1.Pod, clock metav1.Time) {
		podlife.SetReady(p, false, clock)
		for i := range p.Status.ContainerStatuses {
			s := &p.Status.ContainerStatuses[i]
			s.RestartCount++
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: clock}
		}
	})
}

// Evict makes a pod Failed, like a kubelet under memory pressure.
func (k *Kubelet) Evict(pod *corev1.Pod) error {
	return k.setStatus(pod, func(p *corev1.Pod, clock metav1.Time) {
		p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
		podlife.SetReady(p, false, clock)
	})
}

// LoseNode makes a node unreachable: its pods are no longer ready, and deleted ones remain terminating.
func (k *Kubelet) LoseNode(name string) error {
	k.mu.Lock()
	k.lost[name] = k.api.clock.Now()
	k.mu.Unlock()
	if err := k.setNode(name, corev1.ConditionUnknown, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}); err != nil {
		return err
	}
	for _, pod := range all[*corev1.Pod](k.api) {
		if pod.Spec.NodeName == name && workload.IsReady(pod) {
			if err := k.setStatus(pod, func(p *corev1.Pod, _ metav1.Time) { podlife.SetCondition(p, corev1.PodReady, false, k.api.now()) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// DeleteNode deletes a node that has stopped answering. The conditions of its pods stay as they are, and the garbage
// collector deletes them after orphanedAfter.
func (k *Kubelet) DeleteNode(name string) error {
	node := &corev1.Node{}
	if err := k.api.Get(context.Background(), client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	k.mu.Lock()
	k.lost[name], k.gone[name] = k.api.clock.Now(), node
	k.mu.Unlock()
	return k.api.Delete(context.Background(), node)
}

// deleteOrphaned fails a pod whose node was deleted, and deletes it by force.
func (k *Kubelet) deleteOrphaned(pod *corev1.Pod) error {
	if err := k.setStatus(pod, func(p *corev1.Pod, _ metav1.Time) {
		if p.Status.Phase != corev1.PodSucceeded {
			p.Status.Phase = corev1.PodFailed
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", LastTransitionTime: k.api.now()})
		}
	}); err != nil {
		return err
	}
	uid := pod.UID
	return tolerant(k.api.Delete(context.Background(), pod, client.Preconditions{UID: &uid}, client.GracePeriodSeconds(0)))
}

// RestoreNode makes a lost node reachable again. One that was deleted is registered again, with the pods that are left.
func (k *Kubelet) RestoreNode(name string) error {
	k.mu.Lock()
	deleted := k.gone[name]
	delete(k.lost, name)
	delete(k.gone, name)
	k.mu.Unlock()
	if deleted != nil {
		node := deleted.DeepCopy()
		node.ResourceVersion, node.UID = "", ""
		if err := k.api.Create(context.Background(), node); err != nil {
			return fmt.Errorf("registering node %s again: %w", name, err)
		}
	}
	return k.setNode(name, corev1.ConditionTrue)
}

// setNode sets the condition Ready of a node, and its taints.
func (k *Kubelet) setNode(name string, ready corev1.ConditionStatus, taints ...corev1.Taint) error {
	ctx := context.Background()
	node := &corev1.Node{}
	if err := k.api.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	node.Spec.Taints = taints
	if err := k.api.Update(ctx, node); err != nil {
		return err
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: k.api.now()}}
	if err := k.api.Status().Update(ctx, node); err != nil {
		return fmt.Errorf("setting the condition of node %s: %w", name, err)
	}
	return nil
}
