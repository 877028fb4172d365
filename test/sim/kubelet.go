// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
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
	// Skew is how far the clocks of nodes are ahead, by node; negative: behind. Kubelets write times of their own clocks.
	Skew map[string]time.Duration

	api *API

	mu   sync.Mutex
	pods map[types.UID]*podState // guarded by mu; bound pods only
	lost map[string]time.Time    // guarded by mu; unreachable nodes, and since when
	sick map[types.UID]bool      // guarded by mu; pods with failing readiness probes
}

// lostAfter is how long pods stay on an unreachable node before they are deleted: the toleration that admission adds to
// pods.
const lostAfter = 5 * time.Minute

// podState is the kubelet's state of a bound pod: the times at which it observed what it acts on.
type podState struct {
	pod                                *corev1.Pod
	bound, running, ready, terminating time.Time
}

func newKubelet(api *API) *Kubelet {
	k := &Kubelet{api: api, pods: map[types.UID]*podState{}, lost: map[string]time.Time{}, sick: map[types.UID]bool{}}
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
	now := k.api.clock.Now()
	s := k.pods[pod.UID]
	if s == nil {
		s = &podState{bound: now}
		k.pods[pod.UID] = s
	}
	if pod.Status.Phase == corev1.PodRunning && s.running.IsZero() {
		s.running = now
	}
	if workload.IsReady(pod) && s.ready.IsZero() {
		s.ready = now
	}
	if pod.DeletionTimestamp != nil && s.terminating.IsZero() {
		s.terminating = now
	}
	s.pod = pod
}

// kubeletAction is an action of a kubelet on a pod, with its time.
type kubeletAction struct {
	at time.Time
	step
}

// actions returns the next actions of the kubelets, the earliest first.
func (k *Kubelet) actions() []kubeletAction {
	k.mu.Lock()
	states := make([]*podState, 0, len(k.pods))
	lost, sick := map[string]time.Time{}, map[types.UID]bool{}
	for _, s := range k.pods {
		states = append(states, s)
		sick[s.pod.UID] = k.sick[s.pod.UID]
	}
	for node, since := range k.lost {
		lost[node] = since
	}
	k.mu.Unlock()
	var actions []kubeletAction
	for _, s := range states {
		pod := s.pod
		add := func(at time.Time, what string, do func() error) {
			actions = append(actions, kubeletAction{at, step{"kubelet: pod " + pod.Name + " " + what, do}})
		}
		over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if since, isLost := lost[pod.Spec.NodeName]; isLost {
			if s.terminating.IsZero() && !over {
				add(since.Add(lostAfter), "is deleted, for its node does not answer", func() error {
					return tolerant(k.api.Delete(context.Background(), pod))
				})
			}
			continue
		}
		switch {
		case !s.terminating.IsZero() && *pod.DeletionGracePeriodSeconds == 0 && len(pod.Finalizers) > 0:
			// It has finished, and exists until its finalizers are removed.
		case !s.terminating.IsZero():
			wait := min(k.linger(pod), seconds(*pod.DeletionGracePeriodSeconds))
			add(s.terminating.Add(wait), "has ended and goes", func() error {
				if err := k.stop(pod); err != nil {
					return err
				}
				zero, uid := int64(0), pod.UID
				return tolerant(k.api.Delete(context.Background(), pod, client.Preconditions{UID: &uid}, client.GracePeriodSeconds(zero)))
			})
		case over:
		case pod.Status.Phase == corev1.PodPending && !k.waits(pod):
			add(s.bound.Add(k.StartAfter), "starts", func() error { return k.setStatus(pod, k.runs) })
		case k.FadeAfter > 0 && workload.IsReady(pod) && strings.HasPrefix(pod.Spec.Containers[0].Image, k.FadingImage):
			add(s.ready.Add(k.FadeAfter), "is no longer ready", func() error { return k.FailReadiness(pod) })
		case pod.Status.Phase == corev1.PodRunning && !workload.IsReady(pod) && !sick[pod.UID]:
			add(s.running.Add(k.ReadyAfter), "becomes ready", func() error {
				return k.setStatus(pod, func(p *corev1.Pod) { k.setReady(p, true) })
			})
		}
	}
	slices.SortFunc(actions, func(x, y kubeletAction) int { return cmp.Or(x.at.Compare(y.at), strings.Compare(x.name, y.name)) })
	return actions
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

// setStatus edits the status of the newest version of a pod, as kubelets do.
func (k *Kubelet) setStatus(pod *corev1.Pod, edit func(*corev1.Pod)) error {
	newest := &corev1.Pod{}
	if err := k.api.Get(context.Background(), client.ObjectKeyFromObject(pod), newest); err != nil || newest.UID != pod.UID {
		return client.IgnoreNotFound(err)
	}
	edit(newest)
	return tolerant(k.api.Status().Update(context.Background(), newest))
}

// nowOn returns the time by the clock of the pod's node.
func (k *Kubelet) nowOn(pod *corev1.Pod) metav1.Time {
	return metav1.NewTime(k.api.now().Add(k.Skew[pod.Spec.NodeName]))
}

// runs starts the containers of a pod.
func (k *Kubelet) runs(pod *corev1.Pod) {
	now := k.nowOn(pod)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = &now
	setPodCondition(pod, corev1.PodInitialized, true, now)
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
}

func (k *Kubelet) setReady(pod *corev1.Pod, ready bool) {
	setPodCondition(pod, corev1.ContainersReady, ready, k.nowOn(pod))
	setPodCondition(pod, corev1.PodReady, ready, k.nowOn(pod))
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = ready
	}
}

// FailReadiness makes the readiness probe of a running pod fail, until PassReadiness.
func (k *Kubelet) FailReadiness(pod *corev1.Pod) error {
	k.setSick(pod, true)
	return k.setStatus(pod, func(p *corev1.Pod) { k.setReady(p, false) })
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
	if again {
		k.mu.Lock()
		if s := k.pods[pod.UID]; s != nil {
			s.running = k.api.clock.Now()
		}
		k.mu.Unlock()
	}
	return k.setStatus(pod, func(p *corev1.Pod) {
		k.setReady(p, false)
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: k.nowOn(p)}}
		for i := range p.Status.ContainerStatuses {
			if again {
				p.Status.ContainerStatuses[i].LastTerminationState = ended
				p.Status.ContainerStatuses[i].RestartCount++
			} else {
				p.Status.ContainerStatuses[i].State = ended
			}
		}
		switch {
		case again:
		case code == 0:
			p.Status.Phase = corev1.PodSucceeded
		default:
			p.Status.Phase = corev1.PodFailed
		}
	})
}

// stop reports the exit of the containers of a pod that is being deleted, with StopCode.
func (k *Kubelet) stop(pod *corev1.Pod) error {
	if k.StopCode == nil || pod.Status.Phase != corev1.PodRunning {
		return nil
	}
	return k.setStatus(pod, func(p *corev1.Pod) {
		k.setReady(p, false)
		for i := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[i].State = corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: *k.StopCode, FinishedAt: k.nowOn(p)}}
		}
		p.Status.Phase = corev1.PodFailed
		if *k.StopCode == 0 {
			p.Status.Phase = corev1.PodSucceeded
		}
	})
}

// Evict makes a pod Failed, like a kubelet under memory pressure.
func (k *Kubelet) Evict(pod *corev1.Pod) error {
	return k.setStatus(pod, func(p *corev1.Pod) {
		k.setReady(p, false)
		p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
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
			if err := k.setStatus(pod, func(p *corev1.Pod) { setPodCondition(p, corev1.PodReady, false, k.api.now()) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// RestoreNode makes a lost node reachable again.
func (k *Kubelet) RestoreNode(name string) error {
	k.mu.Lock()
	delete(k.lost, name)
	k.mu.Unlock()
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
