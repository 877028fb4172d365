// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/test/controlplane"
)

// claim is a condition on the cluster that has to hold after a step, or throughout it.
type claim struct {
	text  string
	holds func(scene) bool
}

// statusUpToDate belongs to every step: what is shown of a gang comes from its status.
var statusUpToDate = claim{"the status of every PodGroup counts the pods that there are", scene.upToDate}

// waits claims that a gang waits for this reason and holds no GPU.
func waits(name string, reason v2alpha2.Reason) claim {
	return claim{fmt.Sprintf("%s waits, reason %s, and holds no GPU", name, reason), func(s scene) bool {
		status := s.group(name).Status
		return status.Phase == v2alpha2.PodGroupWaiting && status.Reason == reason && s.held(name) == 0
	}}
}

// admitted claims that a gang is admitted, satisfied, and has this many pods bound. That its status counts them is
// claimed of every step.
func admitted(name string, pods int) claim {
	return claim{fmt.Sprintf("%s is admitted, with %d pods bound", name, pods), func(s scene) bool {
		status := s.group(name).Status
		return status.Phase == v2alpha2.PodGroupAdmitted && meta.IsStatusConditionTrue(status.Conditions, v2alpha2.ConditionAdmitted) &&
			meta.IsStatusConditionTrue(status.Conditions, v2alpha2.ConditionSatisfied) && total(s.bound(name)) == pods
	}}
}

// exist claims how many pods of a gang there are.
func exist(name string, pods int) claim {
	return claim{fmt.Sprintf("%d of its pods exist", pods), func(s scene) bool { return len(s.ofGang(name)) == pods }}
}

// gone claims that neither a PodGroup nor its pods exist.
func gone(name string) claim {
	return claim{name + " is gone", func(s scene) bool { return s.group(name).Name == "" && len(s.ofGang(name)) == 0 }}
}

func free(gpus int) claim {
	return claim{fmt.Sprintf("%d GPUs are free", gpus), func(s scene) bool { return s.free() == gpus }}
}

// summarized claims that the summary of a gang has these words, as text says.
func summarized(name, words, text string) claim {
	return claim{text, func(s scene) bool { return strings.Contains(s.group(name).Status.Summary, words) }}
}

// made claims how many PodGroups, PodCliqueScalingGroups, PodCliques, pods and Services exist for chat: the numbers in
// this text, without those that are 0.
func made(what string) claim {
	want := regexp.MustCompile(`\d+`).FindAllString(what, -1)
	return claim{"created for " + chat + ": " + what, func(s scene) bool {
		var got []string
		for _, n := range []int{len(ofSet(s.groups, chat)), len(ofSet(s.scalingGroups, chat)), len(ofSet(s.cliques, chat)),
			len(ofSet(s.pods, chat)), len(ofSet(s.services, chat))} {
			if n > 0 {
				got = append(got, strconv.Itoa(n))
			}
		}
		return slices.Equal(got, want)
	}}
}

// available claims that chat is Available.
func available() claim {
	return claim{chat + " is Available", func(s scene) bool {
		return meta.IsStatusConditionTrue(s.set(chat).Status.Conditions, v1alpha1.ConditionAvailable)
	}}
}

// groupHas claims how many replicas of a scaling group have their minimum bound, according to the PodGroup and to the
// group.
func groupHas(name string, replicas int32) claim {
	return claim{fmt.Sprintf("%s has %s", name, message.Count(int(replicas), "replica")), func(s scene) bool {
		status := named(s.scalingGroups, name).Status
		return status.ScheduledReplicas == replicas && status.AvailableReplicas == replicas && subGroup(s.group(chatGang), name).Bound == replicas
	}}
}

// bothServe claims that both replicas of chat are complete, and leave no GPU free.
func bothServe(more ...claim) []claim {
	return append([]claim{serving(2 * servicePods), admitted(chatGang, servicePods), admitted(chatGang1, servicePods), available(), free(0)}, more...)
}

// jobIs claims the phase of pretrain, and how often it was restarted.
func jobIs(phase v1alpha1.PodCliqueSetPhase, restarts int32) claim {
	return claim{fmt.Sprintf("%s is %s and Available, restarted %s", pretrain, phase, message.Count(int(restarts), "time")), func(s scene) bool {
		status := s.set(pretrain).Status
		return status.Phase == phase && status.RestartCount == restarts && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionAvailable)
	}}
}

// ending claims that so many pods of fine-tuning end by preemption.
func ending(pods int) claim {
	return claim{fmt.Sprintf("%d pods of %s end by preemption", pods, tuning), func(s scene) bool {
		return len(where(s.ofGang(tuning), func(pod *corev1.Pod) bool {
			return pod.DeletionTimestamp != nil && pod.Status.Phase != corev1.PodFailed &&
				slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonPreemptionByScheduler })
		})) == pods
	}}
}

// preempted claims what the condition of fine-tuning says about the preemptor, and what it took.
func preempted(by string) claim {
	return claim{tuning + " was preempted by " + by, func(s scene) bool {
		return strings.Contains(fmt.Sprint(s.group(tuning).Status.Conditions), "by default/"+by)
	}}
}

// inOneRack claims that all pods of a gang are in one rack, and that its status names it.
func inOneRack(name string) claim {
	return claim{name + " runs in one rack, which its status names", func(s scene) bool {
		racks := map[string]bool{}
		for _, pod := range where(s.ofGang(name), holdsGPUs) {
			racks["rack "+named(s.nodes, pod.Spec.NodeName).Labels[controlplane.RackLabel]] = true
		}
		return len(racks) == 1 && racks[s.group(name).Status.Placement]
	}}
}

// servicePods is the number of pods of a replica of chat; rolledPods of them belong to frontend and prefill, whose
// image changes.
const (
	servicePods = 10
	rolledPods  = 6
)

// serves reports whether the pod is ready and not being deleted.
func serves(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && controlplane.PodReady(pod) }

// having, lacking and inReplica are conditions for serving.
func having(image string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image == image }
}

func lacking(image string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image != image }
}

func inReplica(replica string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex] == replica }
}

func inDecode(pod *corev1.Pod) bool {
	return strings.HasSuffix(pod.Labels[v1alpha1.LabelPodCliqueScalingGroup], "-decode")
}

// serving counts the pods of chat that serve and satisfy these conditions.
func (s scene) serving(conditions ...func(*corev1.Pod) bool) int {
	pods := where(ofSet(s.pods, chat), serves)
	for _, is := range conditions {
		pods = where(pods, is)
	}
	return len(pods)
}

// atLeast reports whether at least this many pods of chat serve.
func atLeast(pods int) func(scene) bool {
	return func(s scene) bool { return s.serving() >= pods }
}

// serving claims that exactly this many pods of chat serve.
func serving(pods int) claim {
	return claim{fmt.Sprintf("%d pods are ready", pods), func(s scene) bool { return s.serving() == pods }}
}

func decodeServes(s scene) bool { return s.serving(inDecode) == 8 }

// unchanged reports whether all pods of chat-0 serve, none of them with the image.
func unchanged(image string) func(scene) bool {
	return func(s scene) bool { return s.serving(inReplica("0"), lacking(image)) == servicePods }
}

// highestFirst reports whether chat-0 is unchanged, or chat-1 serves with the image.
func highestFirst(image string) func(scene) bool {
	return func(s scene) bool {
		return unchanged(image)(s) || s.serving(inReplica("1"), having(image)) == rolledPods
	}
}

// wholeReplicas reports whether no replica of a scaling group has pods of two images.
func wholeReplicas(s scene) bool {
	images := map[string]string{}
	for _, pod := range ofSet(s.pods, chat) {
		group, image := pod.Labels[v1alpha1.LabelPodCliqueScalingGroup], pod.Spec.Containers[0].Image
		replica := group + "/" + pod.Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex]
		if other, known := images[replica]; known && group != "" && other != image {
			return false
		}
		images[replica] = image
	}
	return true
}

// updateStops claims that the update waits for three pods of chat-1 that have a broken image, and that the status
// reports it.
func updateStops() claim {
	return claim{"3 pods of chat-1 have the broken image, and the status reports that the update waits for them", func(s scene) bool {
		set := s.set(chat)
		broken := where(where(ofSet(s.pods, chat), having(controlplane.BrokenImage)), inReplica("1"))
		return len(broken) == 3 && updates(set, metav1.ConditionTrue, v1alpha1.ReasonWaitingForReadiness) && set.Status.UpdatedReplicas < 2
	}}
}

// updates reports whether the update of the latest template has this state, according to the condition and the
// progress.
func updates(set *v1alpha1.PodCliqueSet, status metav1.ConditionStatus, reason string) bool {
	c, progress := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing), set.Status.UpdateProgress
	return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == set.Generation &&
		progress != nil && (progress.UpdateEndedAt == nil) == (status == metav1.ConditionTrue)
}

// rolledOut claims that the update to the new image is complete, and that every pod of frontend and prefill has it and
// serves.
func rolledOut() claim {
	return claim{"the update is complete: frontend and prefill of both replicas have " + newImage, func(s scene) bool {
		set := s.set(chat)
		return set.Status.UpdatedReplicas == 2 && set.Status.ObservedGeneration == set.Generation &&
			updates(set, metav1.ConditionFalse, v1alpha1.ReasonUpdateComplete) &&
			s.serving(having(newImage)) == 2*rolledPods && s.serving() == 2*servicePods && len(ofSet(s.pods, chat)) == 2*servicePods
	}}
}
