// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/controlplane"
)

// The gangs of the story. The first two are the examples of KAI Scheduler's minSubGroups proposal, as
// manifests/samples has them.
const (
	training  = "training-job"
	inference = "inference-service"
	tuning    = "fine-tuning"
)

// The PodCliqueSets of the story, a service and a training job. Each replica is a gang.
const (
	chat     = "chat"
	pretrain = "pretrain"
)

var (
	chatGang      = naming.PodGroupName(chat, 0)
	chatGang1     = naming.PodGroupName(chat, 1)
	chatDecode    = naming.ScalingGroup(chat, 0, "decode")
	chatPrefill   = naming.ScalingGroup(chat, 0, "prefill")
	prefillWorker = naming.MemberPodClique(chat, 0, "prefill", 1, "pworker")
	pretrainGang  = naming.PodGroupName(pretrain, 0)
	trainWorkers  = naming.PodCliqueName(pretrain, 0, "worker")
)

// graceSeconds is the terminationDelay of chat in the story: long enough for a slow machine to show the breach.
const graceSeconds = 6

// gangs are the gangs in order of appearance; letters mark their GPUs.
var (
	gangs   = append([]string{training, inference, tuning, chatGang, chatGang1, pretrainGang}, rings...)
	letters = map[string]string{training: "A", inference: "B", tuning: "C", chatGang: "D", chatGang1: "E", pretrainGang: "F", rings[0]: "G", rings[1]: "H", rings[2]: "I", rings[3]: "J", rings[4]: "K"}
)

const (
	gpusPerNode  = 8
	nodesAtFirst = 5
)

// step is one scene of the story: an action with its explanation, and the claims that have to hold after it.
type step struct {
	title, why string
	do         func(context.Context, *stage) error
	throughout []claim // have to hold from before do until all claims hold; about pods only, whose events arrive in one order
	first      []claim // have to hold after do, at one moment before claims do; nil: none
	claims     []claim
	show       []string // arguments of kubectl get, to be shown with its output; nil: nothing
}

// stage is what steps act on.
type stage struct {
	cp     *controlplane.ControlPlane
	client client.Client // for objects of any kind
	// Objects of manifests/samples.
	training, inference, tuning, chat, pretrain []*unstructured.Unstructured
	said                                        string // what kubectl said while a step was done, to be shown after it; "": nothing
}

// newStage reads the samples.
func newStage(cp *controlplane.ControlPlane) (*stage, error) {
	anything, err := client.New(cp.Admin(), client.Options{})
	if err != nil {
		return nil, err
	}
	st := &stage{cp: cp, client: client.NewNamespacedClient(anything, metav1.NamespaceDefault)}
	for file, objects := range map[string]*[]*unstructured.Unstructured{
		"training-job.yaml": &st.training, "inference-service.yaml": &st.inference, "job.yaml": &st.tuning,
		"podcliqueset.yaml": &st.chat, "podcliqueset-training.yaml": &st.pretrain,
	} {
		content, err := os.ReadFile(filepath.Join("manifests", "samples", file))
		if err != nil {
			return nil, fmt.Errorf("%w (the demo runs in the root of the repository)", err)
		}
		if *objects, err = controlplane.ParseManifests(content); err != nil {
			return nil, fmt.Errorf("manifests/samples/%s: %w", file, err)
		}
	}
	// The name of the sample, training, is too similar to training-job.
	for _, object := range st.tuning {
		object.SetName(tuning)
		if object.GetKind() == "Job" {
			if err := unstructured.SetNestedField(object.Object, tuning,
				"spec", "template", "metadata", "annotations", v2alpha2.PodGroupAnnotation); err != nil {
				return nil, err
			}
		}
	}
	return st, nil
}

// story is the demo.
func story() []step {
	last := func(objects []*unstructured.Unstructured) int { return len(objects) - 1 }
	broken := []string{nodeName(2), nodeName(3), nodeName(4), nodeName(5)} // two racks
	steps := []step{
		{
			title: "training-job: the PodGroup and three of its four Jobs are created",
			why: "The gang has two groups, decode and prefill, each with a leader and 4 workers, and needs all 10 pods. Only 6 exist. " +
				"40 GPUs are free, but Muster binds no pod of a gang before all the pods that it needs exist.",
			do: func(ctx context.Context, st *stage) error {
				return st.cp.Apply(ctx, st.training[:last(st.training)]...)
			},
			claims: []claim{
				waits(training, v2alpha2.ReasonWaitingForPods),
				{"6 of its pods exist", func(s scene) bool { return s.created(training) == 6 }},
			},
		},
		{
			title: "training-job: the fourth Job is created",
			why:   "All 10 pods exist now. They fit, and are bound together.",
			do: func(ctx context.Context, st *stage) error {
				return st.cp.Apply(ctx, st.training[last(st.training):]...)
			},
			claims: []claim{admitted(training, 10), free(30)},
		},
		{
			title: "inference-service: 4 groups of 8 pods, any 3 of them are the minimum",
			why: "30 GPUs are free. Three groups fit and are admitted. The fourth group is above the minimum. It too starts as a whole " +
				"or not at all, so none of its pods takes one of the remaining 6 GPUs.",
			do: func(ctx context.Context, st *stage) error { return st.cp.Apply(ctx, st.inference...) },
			claims: []claim{
				admitted(inference, 24), free(6),
				{"three groups have 8 pods bound each, the fourth has none", func(s scene) bool {
					return slices.Equal(sizes(s, inference), []int{0, 8, 8, 8})
				}},
				{"the status says that the fourth lacks GPUs", func(s scene) bool {
					g := s.group(inference)
					return g != nil && g.Status.Scheduled == "24/24" && strings.Contains(g.Status.Summary, string(v2alpha2.ReasonInsufficientGPUs))
				}},
			},
		},
		{
			title: "fine-tuning: a plain Job of 8 pods that needs all of them",
			why: "6 GPUs are free. Starting 6 of the 8 pods would only keep these GPUs from other gangs. The gang waits, and none of its " +
				"pods is bound.",
			do: func(ctx context.Context, st *stage) error { return st.cp.Apply(ctx, st.tuning...) },
			claims: []claim{
				waits(tuning, v2alpha2.ReasonInsufficientGPUs),
				{"8 of its pods exist", func(s scene) bool { return s.created(tuning) == 8 }},
				free(6),
			},
		},
		{
			title: "A node joins: 8 more GPUs",
			why: "14 GPUs are free. Two candidates need 8 each: fine-tuning, for its minimum, and the fourth group of inference-service, " +
				"which is above a minimum. Minimums go first: fine-tuning starts.",
			do: func(ctx context.Context, st *stage) error { return st.join(ctx, nodesAtFirst) },
			claims: []claim{
				admitted(tuning, 8), admitted(inference, 24), free(6),
			},
		},
		{
			title: "training-job is deleted, and the 8 pods of fine-tuning exit with 0",
			why: "Now the fourth group of inference-service starts, as a whole. fine-tuning is Completed and its GPUs are free again. " +
				"(The next step begins by deleting its Job and PodGroup.)",
			do: func(ctx context.Context, st *stage) error {
				if err := st.delete(ctx, st.training...); err != nil {
					return err
				}
				return st.eachPod(ctx, "batch.kubernetes.io/job-name="+tuning, func(pod *corev1.Pod) error {
					return st.cp.AnnotatePod(ctx, pod.Namespace, pod.Name, map[string]string{controlplane.ExitCodeAnnotation: "0"})
				})
			},
			claims: []claim{
				{"training-job is gone", func(s scene) bool { return s.group(training) == nil && s.created(training) == 0 }},
				admitted(inference, 32),
				{"prefill-0 to prefill-3 are admitted", func(s scene) bool {
					for _, name := range []string{"prefill-0", "prefill-1", "prefill-2", "prefill-3"} {
						if !s.subGroup(inference, name).Admitted {
							return false
						}
					}
					return true
				}},
				{"fine-tuning is Completed", func(s scene) bool { return phase(s, tuning) == v2alpha2.PodGroupCompleted }},
				free(16),
			},
		},
		{
			title: "Four of six nodes are drained for repair",
			why: "Their pods are evicted, and the StatefulSets create new ones. 16 GPUs are left for a gang that needs 24. Muster does not " +
				"stop a gang that was admitted once: the other pods keep running, and the condition Admitted stays True. The new pods " +
				"wait for free GPUs, ahead of other gangs.",
			do: func(ctx context.Context, st *stage) error {
				if err := st.delete(ctx, st.tuning...); err != nil {
					return err
				}
				_, err := st.kubectl(ctx, append([]string{"drain"}, broken...)...)
				return err
			},
			claims: []claim{
				{"inference-service is Degraded: below its minimum, and still Admitted", func(s scene) bool {
					g := s.group(inference)
					return g != nil && g.Status.Phase == v2alpha2.PodGroupDegraded &&
						meta.IsStatusConditionTrue(g.Status.Conditions, v2alpha2.ConditionAdmitted) &&
						meta.IsStatusConditionFalse(g.Status.Conditions, v2alpha2.ConditionSatisfied)
				}},
				{"all 32 pods exist again, at most 16 have a GPU", func(s scene) bool {
					return s.created(inference) == 32 && s.held(inference) <= 16
				}},
				{"no pod is left on the drained nodes", func(s scene) bool {
					return !slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool {
						return slices.Contains(broken, pod.Spec.NodeName) && holdsGPUs(pod)
					})
				}},
				{"the status states the reason", func(s scene) bool {
					g := s.group(inference)
					return g != nil && g.Status.Reason != "" && g.Status.Reason != v2alpha2.ReasonWaitingForPods && g.Status.Reason != v2alpha2.ReasonBinding
				}},
			},
		},
		{
			title: "The four nodes are back in service, one rack after the other",
			why: "The first rack has the 16 GPUs that the gang lacks: it gets its minimum again, and then its fourth group. The second rack " +
				"stays free.",
			// If all nodes came back together, the pods could be spread over them, and the 16 GPUs that are free afterwards would be in
			// parts that are of no use to the pods of chat.
			do: func(ctx context.Context, st *stage) error {
				_, first := st.kubectl(ctx, append([]string{"uncordon"}, broken[:2]...)...)
				_, bound := st.kubectl(ctx, "wait", "pg/"+inference, "--for=jsonpath={.status.gpus}=32/32")
				_, second := st.kubectl(ctx, append([]string{"uncordon"}, broken[2:]...)...)
				return errors.Join(first, bound, second)
			},
			claims: []claim{admitted(inference, 32), free(16)},
		},
		{
			title: "chat: a PodCliqueSet, a complete service in one object",
			why: "It has three roles: frontend, 2 pods without GPUs, 1 of them needed; prefill, 2 replicas of 8 GPUs, 1 of them needed; " +
				"decode, 1 replica of 16 GPUs. A replica is a leader with its workers. muster-controller creates the pods; " +
				"muster-scheduler starts the minimum of all roles together or not at all. The minimum needs 24 GPUs; 16 are free.",
			do: func(ctx context.Context, st *stage) error { return st.cp.Apply(ctx, st.chat...) },
			claims: []claim{
				made("1 PodGroup, 2 PodCliqueScalingGroups, 7 PodCliques, 10 pods and 1 Service"),
				waits(chatGang, v2alpha2.ReasonInsufficientGPUs),
				{"chat is not Available, and its condition names the PodGroup to look at", func(s scene) bool {
					set := s.set(chat)
					return set != nil && meta.IsStatusConditionFalse(set.Status.Conditions, v1alpha1.ConditionAvailable) &&
						strings.Contains(availability(set), "PodGroup "+chatGang)
				}},
				free(16),
			},
		},
		{
			title: "A node joins: 24 GPUs are free",
			why: "The minimum needs exactly 24. The whole service starts together: frontend, prefill and decode, leaders and workers. " +
				"Pods above the minimum follow: the second frontend needs no GPU and starts, the second prefill replica waits.",
			do: func(ctx context.Context, st *stage) error { return st.join(ctx, nodesAtFirst+1) },
			claims: []claim{
				admitted(chatGang, 8), available(), groupHas(chatPrefill, 1), groupHas(chatDecode, 1), free(0),
			},
		},
		{
			title: "inference-service is deleted",
			why:   "32 GPUs are free. The second prefill replica starts, its leader and worker together.",
			do:    func(ctx context.Context, st *stage) error { return st.delete(ctx, st.inference...) },
			claims: []claim{
				{"inference-service is gone", func(s scene) bool { return s.group(inference) == nil && s.created(inference) == 0 }},
				admitted(chatGang, 10), groupHas(chatPrefill, 2), free(24),
			},
		},
		{
			title: "kubectl scale podcliquescalinggroup " + chatDecode + " --replicas=3",
			why: "Two more replicas, each with a leader, 3 workers and 16 GPUs. Each of them starts as a whole or not at all. 24 GPUs are " +
				"free: one replica starts with all of its 4 pods, the other waits, and the remaining 8 GPUs stay free.",
			do: func(ctx context.Context, st *stage) error { return st.scale(ctx, chatDecode, 3) },
			claims: []claim{
				admitted(chatGang, 14), available(), groupHas(chatDecode, 2), free(8),
				// The two are created at the same time, and the first whose pods are complete starts.
				{"of the second and the third decode replica one holds GPUs with its 4 pods, the other exists and holds none", func(s scene) bool {
					second, third := s.below(chatDecode, 1), s.below(chatDecode, 2)
					runs := func(pods []*corev1.Pod) bool {
						return len(pods) == 4 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return !holdsGPUs(pod) })
					}
					waits := func(pods []*corev1.Pod) bool { return len(pods) == 4 && !slices.ContainsFunc(pods, holdsGPUs) }
					return s.created(chatGang) == 18 && (runs(second) && waits(third) || waits(second) && runs(third))
				}},
				{"the status says that it lacks GPUs", func(s scene) bool {
					g := s.group(chatGang)
					return g != nil && strings.Contains(g.Status.Summary, string(v2alpha2.ReasonInsufficientGPUs))
				}},
			},
		},
		{
			title: "decode is scaled back to 1, a node joins, and podcliqueset.yaml is applied with replicas: 2",
			why: "The decode replicas with the highest indices are deleted; the remaining one keeps running. A second complete service starts " +
				"beside the first: chat-1, a gang of its own, on the 32 free GPUs.",
			do: func(ctx context.Context, st *stage) error {
				if err := errors.Join(st.scale(ctx, chatDecode, 1), st.join(ctx, nodesAtFirst+2)); err != nil {
					return err
				}
				return st.applyChat(ctx, "")
			},
			throughout: []claim{{"the 4 pods of the first decode replica run", func(s scene) bool {
				pods := s.below(chatDecode, 0)
				return len(pods) == 4 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil || !holdsGPUs(pod) })
			}}},
			claims: append(bothServe(), groupHas(chatDecode, 1),
				made("2 PodGroups, 4 PodCliqueScalingGroups, 14 PodCliques, 20 pods and 2 Services")),
		},
		{
			title: fmt.Sprintf("chat gets a terminationDelay of %d s, and a prefill worker fails its readiness probe", graceSeconds),
			why: fmt.Sprintf("The PodClique of the worker is below its minAvailable: a breach. Its status has the deadline, in %d seconds. Until then no "+
				"pod is deleted. The worker does not recover: the whole prefill replica is deleted, including its healthy leader, and created "+
				"again. All other pods keep running, and chat stays Available with the other prefill replica.", graceSeconds),
			do: func(ctx context.Context, st *stage) error {
				if err := st.setDelay(ctx); err != nil {
					return err
				}
				return st.eachPod(ctx, v1alpha1.LabelPodClique+"="+prefillWorker, func(pod *corev1.Pod) error {
					return st.cp.AnnotatePod(ctx, pod.Namespace, pod.Name, map[string]string{controlplane.ReadyAnnotation: "false"})
				})
			},
			first: []claim{
				{fmt.Sprintf("PodClique %s is in breach, with a deadline, and no pod is deleted", prefillWorker), func(s scene) bool {
					clique := s.clique(prefillWorker)
					return clique != nil && clique.Status.TerminationDeadline != nil &&
						meta.IsStatusConditionTrue(clique.Status.Conditions, v1alpha1.ConditionMinAvailableBreached) &&
						admitted(chatGang, servicePods).holds(s) && available().holds(s)
				}},
			},
			claims: append(bothServe(),
				claim{"the second prefill replica was replaced, reason Termination", func(s scene) bool {
					group := s.scalingGroup(chatPrefill)
					return group != nil && len(group.Status.ReplicaAttempts) == 1 && group.Status.ReplicaAttempts[0].Index == 1 &&
						group.Status.ReplicaAttempts[0].Reason == v1alpha1.ReasonTermination
				}},
				claim{"its 2 pods are new, and no other is", func(s scene) bool {
					replaced := func(pod *corev1.Pod) bool { return workload.Attempt(pod).Group == 1 }
					return len(s.pods) == 2*servicePods && len(s.below(chatPrefill, 1)) == 2 &&
						!slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool {
							return replaced(pod) != slices.Contains(s.below(chatPrefill, 1), pod)
						})
				}},
				groupHas(chatPrefill, 2)),
		},
	}
	steps = append(steps, rollout()...)
	steps = append(steps, []step{
		{
			title: "chat is deleted, and pretrain applied: a training job of a launcher and 2 workers of 8 GPUs each",
			why: "All objects that muster-controller created for chat are deleted too. A PodCliqueSet with workloadType Training runs until " +
				"its pods have succeeded. This one allows one restart.",
			do: func(ctx context.Context, st *stage) error {
				return errors.Join(st.delete(ctx, st.chat...), st.cp.Apply(ctx, st.pretrain...))
			},
			claims: []claim{
				{"the PodCliqueSet chat is gone", func(s scene) bool { return s.set(chat) == nil }},
				made("nothing"),
				{"no other pod and no other PodGroup is left", func(s scene) bool { return len(s.pods) == 3 && len(s.groups) == 1 }},
				admitted(pretrainGang, 3), jobIs(v1alpha1.PodCliqueSetPhaseRunning, 0), free(48),
			},
		},
		{
			title: "A worker exits with 137",
			why:   "The other pods cannot continue without it. The whole gang is deleted and started again. That uses the one restart.",
			do: func(ctx context.Context, st *stage) error {
				exited := false
				return st.eachPod(ctx, v1alpha1.LabelPodClique+"="+trainWorkers, func(pod *corev1.Pod) error {
					if exited {
						return nil
					}
					exited = true
					return st.cp.ExitPod(ctx, pod.Namespace, pod.Name, 137)
				})
			},
			claims: []claim{
				jobIs(v1alpha1.PodCliqueSetPhaseRunning, 1), admitted(pretrainGang, 3),
				{"all 3 pods are new, and run", func(s scene) bool {
					return len(s.pods) == 3 && !slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool {
						return workload.Attempt(pod).Set != 1 || pod.Status.Phase != corev1.PodRunning
					})
				}},
			},
		},
		{
			title: "The launcher and the workers exit with 0",
			why:   "The job has succeeded. Its pods are kept for their logs, and hold no GPUs.",
			do: func(ctx context.Context, st *stage) error {
				exit := func(pod *corev1.Pod) error { return st.cp.ExitPod(ctx, pod.Namespace, pod.Name, 0) }
				if err := st.eachPod(ctx, v1alpha1.LabelPodClique+"="+trainWorkers, exit); err != nil {
					return err
				}
				return st.eachPod(ctx, v1alpha1.LabelPodClique+"="+naming.PodCliqueName(pretrain, 0, "launcher"), exit)
			},
			claims: []claim{
				jobIs(v1alpha1.PodCliqueSetPhaseSucceeded, 1), free(64),
				{"its 3 pods exist, in phase Succeeded", func(s scene) bool {
					return len(s.pods) == 3 && !slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool { return pod.Status.Phase != corev1.PodSucceeded })
				}},
			},
		},
	}...)
	return slices.Concat(steps, preemption(), topology())
}

// waits claims that a gang waits for this reason and holds no GPU.
func waits(name string, reason v2alpha2.Reason) claim {
	return claim{fmt.Sprintf("%s waits, reason %s, and holds no GPU", name, reason), func(s scene) bool {
		g := s.group(name)
		return g != nil && g.Status.Phase == v2alpha2.PodGroupWaiting && g.Status.Reason == reason && s.held(name) == 0
	}}
}

// admitted claims that a gang is admitted, satisfied, and has this many pods bound, and that its status counts them.
func admitted(name string, pods int) claim {
	return claim{fmt.Sprintf("%s is admitted, with %d pods bound", name, pods), func(s scene) bool {
		g := s.group(name)
		if g == nil || g.Status.Phase != v2alpha2.PodGroupAdmitted ||
			!meta.IsStatusConditionTrue(g.Status.Conditions, v2alpha2.ConditionAdmitted) ||
			!meta.IsStatusConditionTrue(g.Status.Conditions, v2alpha2.ConditionSatisfied) {
			return false
		}
		bound := s.bound(name)
		for _, sub := range g.Status.SubGroups {
			if here, leaf := bound[sub.Name]; leaf && int(sub.Bound) != here {
				return false
			}
		}
		return total(bound) == pods
	}}
}

func free(gpus int) claim {
	return claim{fmt.Sprintf("%d GPUs are free", gpus), func(s scene) bool { return s.free() == gpus }}
}

// made claims that exactly these objects exist for chat.
func made(what string) claim {
	return claim{"created for " + chat + ": " + what, func(s scene) bool { return s.made(chat) == what }}
}

// available claims that chat is Available.
func available() claim {
	return claim{chat + " is Available", func(s scene) bool {
		set := s.set(chat)
		return set != nil && meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionAvailable)
	}}
}

// groupHas claims how many replicas of a scaling group have their minimum bound, according to the PodGroup and to the group.
func groupHas(name string, replicas int32) claim {
	return claim{fmt.Sprintf("%s has %d %s", name, replicas, plural(int(replicas), "replica", "replicas")), func(s scene) bool {
		group := s.scalingGroup(name)
		return group != nil && group.Status.ScheduledReplicas == replicas && group.Status.AvailableReplicas == replicas &&
			s.subGroup(chatGang, name).Bound == replicas
	}}
}

// jobIs claims the phase of pretrain, and how often it was restarted.
func jobIs(phase v1alpha1.PodCliqueSetPhase, restarts int32) claim {
	return claim{fmt.Sprintf("%s is %s and Available, restarted %d %s", pretrain, phase, restarts, plural(int(restarts), "time", "times")), func(s scene) bool {
		set := s.set(pretrain)
		return set != nil && set.Status.Phase == phase && set.Status.RestartCount == restarts &&
			meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionAvailable)
	}}
}

func phase(s scene, name string) v2alpha2.PodGroupPhase {
	if g := s.group(name); g != nil {
		return g.Status.Phase
	}
	return ""
}

// sizes returns how many pods each sub-group has bound, according to the status, smallest first. nil without a PodGroup.
func sizes(s scene, name string) []int {
	var n []int
	g := s.group(name)
	if g == nil {
		return nil
	}
	for _, sub := range g.Status.SubGroups {
		n = append(n, int(sub.Bound))
	}
	slices.Sort(n)
	return n
}

// delete deletes the objects, and what they own.
func (st *stage) delete(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := st.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// join creates the node with this number.
func (st *stage) join(ctx context.Context, number int) error {
	_, err := st.cp.CreateNodes(ctx, controlplane.NodeOptions{Count: 1, First: number, GPUs: gpusPerNode, NodesPerRack: 2})
	return err
}

// scale sets the replicas of a PodCliqueScalingGroup.
func (st *stage) scale(ctx context.Context, group string, replicas int) error {
	_, err := st.kubectl(ctx, "scale", "podcliquescalinggroup", group, fmt.Sprintf("--replicas=%d", replicas))
	return err
}

// setDelay gives chat a terminationDelay.
func (st *stage) setDelay(ctx context.Context) error {
	_, err := st.kubectl(ctx, "patch", "podcliqueset", chat, "--type=merge", fmt.Sprintf(`--patch={"spec":{"template":{"terminationDelay":"%ds"}}}`, graceSeconds))
	return err
}

// eachPod calls do for every pod that the selector selects, up to the first error.
func (st *stage) eachPod(ctx context.Context, selector string, do func(*corev1.Pod) error) error {
	pods, err := st.cp.Client().CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		if err := do(&pods.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func nodeName(number int) string { return fmt.Sprintf("node-%04d", number) }

// statusUpToDate belongs to every step: what is shown of a gang comes from its status.
var statusUpToDate = claim{"the status of every PodGroup counts the pods that there are", scene.upToDate}
