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
	"github.com/muster-project/muster/pkg/naming"
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

// admitted claims that a gang is admitted, satisfied, and has this many pods bound, and that its status counts them.
func admitted(name string, pods int) claim {
	return claim{fmt.Sprintf("%s is admitted, with %d pods bound", name, pods), func(s scene) bool {
		status, bound := s.group(name).Status, s.bound(name)
		return status.Phase == v2alpha2.PodGroupAdmitted && meta.IsStatusConditionTrue(status.Conditions, v2alpha2.ConditionAdmitted) &&
			meta.IsStatusConditionTrue(status.Conditions, v2alpha2.ConditionSatisfied) && total(bound) == pods &&
			!slices.ContainsFunc(status.SubGroups, func(sub v2alpha2.SubGroupStatus) bool {
				here, isLeaf := bound[sub.Name]
				return isLeaf && int(sub.Bound) != here
			})
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

// made claims how many PodGroups, PodCliqueScalingGroups, PodCliques, pods and Services exist for chat: the numbers in this
// text, without those that are 0.
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

// groupHas claims how many replicas of a scaling group have their minimum bound, according to the PodGroup and to the group.
func groupHas(name string, replicas int32) claim {
	return claim{fmt.Sprintf("%s has %s", name, plural(int(replicas), "replica")), func(s scene) bool {
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
	return claim{fmt.Sprintf("%s is %s and Available, restarted %s", pretrain, phase, plural(int(restarts), "time")), func(s scene) bool {
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

// The numbers of pods and units of chat while it has two replicas.
const (
	servicePods     = 10 // of a replica
	frontends       = 4
	prefillReplicas = 4
	decodePods      = 8
)

// rolledCliques are the cliques of chat whose image changes: a standalone one, and both of a scaling group.
var rolledCliques = []string{"frontend", "pleader", "pworker"}

// serves reports whether the pod is ready and not being deleted.
func serves(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && controlplane.PodReady(pod) }

func image(pod *corev1.Pod) string { return pod.Spec.Containers[0].Image }

// cliqueOf returns the name that the clique of a pod of chat has in the template, and the index of its replica of chat.
func cliqueOf(pod *corev1.Pod) (name string, replica int) {
	replica, err := strconv.Atoi(pod.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex])
	if err != nil {
		return "", -1
	}
	full := pod.Labels[v1alpha1.LabelPodClique]
	return full[strings.LastIndex(full, "-")+1:], replica
}

// of returns the pods of chat of these cliques.
func (s scene) of(cliques ...string) []*corev1.Pod {
	return where(ofSet(s.pods, chat), func(pod *corev1.Pod) bool {
		name, _ := cliqueOf(pod)
		return slices.Contains(cliques, name)
	})
}

// prefills returns the pods of each replica of prefill.
func (s scene) prefills() [][]*corev1.Pod {
	var replicas [][]*corev1.Pod
	for i := range prefillReplicas {
		replicas = append(replicas, s.below(naming.ScalingGroup(chat, i/2, "prefill"), i%2))
	}
	return replicas
}

// oneAtATime reports whether at most one unit of each kind is not ready.
func oneAtATime(s scene) bool {
	whole := where(s.prefills(), func(pods []*corev1.Pod) bool { return each(pods, 2, serves) })
	return len(whole) >= prefillReplicas-1 && len(where(s.of("frontend"), serves)) >= frontends-1
}

// hasServing reports whether all pods of a replica of chat serve, and those of the cliques that are rolled out satisfy is.
func hasServing(s scene, replica int, is func(*corev1.Pod) bool) bool {
	return servicePods == len(where(ofSet(s.pods, chat), func(pod *corev1.Pod) bool {
		name, of := cliqueOf(pod)
		return of == replica && serves(pod) && (!slices.Contains(rolledCliques, name) || is(pod))
	}))
}

// untouched reports whether all pods of a replica of chat serve, with this image in the cliques that are rolled out.
func untouched(s scene, replica int, with string) bool {
	return hasServing(s, replica, func(pod *corev1.Pod) bool { return image(pod) == with })
}

// highestFirst reports whether chat-0 serves without the image, or chat-1 serves with it.
func highestFirst(with string) func(scene) bool {
	return func(s scene) bool {
		return hasServing(s, 0, func(pod *corev1.Pod) bool { return image(pod) != with }) || untouched(s, 1, with)
	}
}

// wholeReplicas reports whether no replica of prefill has pods of two templates.
func wholeReplicas(s scene) bool {
	return !slices.ContainsFunc(s.prefills(), func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return image(pod) != image(pods[0]) })
	})
}

func decodeServes(s scene) bool { return len(where(s.of("dleader", "dworker"), serves)) == decodePods }

// atLeast reports whether at least this many pods of chat serve.
func atLeast(pods int) func(scene) bool {
	return func(s scene) bool { return len(where(ofSet(s.pods, chat), serves)) >= pods }
}

// serving claims that exactly this many pods of chat serve.
func serving(pods int) claim {
	return claim{fmt.Sprintf("%d pods are ready", pods), func(s scene) bool { return len(where(ofSet(s.pods, chat), serves)) == pods }}
}

// progressing claims that the update is in progress, with this reason.
func progressing(reason string) claim {
	return claim{"the status reports that the update waits: Progressing, reason " + reason, func(s scene) bool {
		return updates(s.set(chat), metav1.ConditionTrue, reason) && s.set(chat).Status.UpdatedReplicas < 2
	}}
}

// updates reports whether the update of the latest template has this state, according to the condition and the progress.
func updates(set *v1alpha1.PodCliqueSet, status metav1.ConditionStatus, reason string) bool {
	c, progress := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing), set.Status.UpdateProgress
	return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == set.Generation &&
		progress != nil && (progress.UpdateEndedAt == nil) == (status == metav1.ConditionTrue)
}

// rolledOut claims that the update to the new image is complete, and that every pod of the cliques that are rolled out has
// it and serves.
func rolledOut() claim {
	return claim{"the update is complete: frontend and prefill of both replicas have " + newImage, func(s scene) bool {
		set := s.set(chat)
		return set.Status.UpdatedReplicas == 2 && set.Status.ObservedGeneration == set.Generation &&
			updates(set, metav1.ConditionFalse, v1alpha1.ReasonUpdateComplete) &&
			untouched(s, 0, newImage) && untouched(s, 1, newImage) && len(ofSet(s.pods, chat)) == 2*servicePods
	}}
}

// brokenPods reports whether these pods have the broken image: a frontend, and a leader with its worker.
func brokenPods(s scene) bool {
	var cliques []string
	for _, pod := range ofSet(s.pods, chat) {
		if image(pod) == controlplane.BrokenImage {
			name, _ := cliqueOf(pod)
			cliques = append(cliques, name)
		}
	}
	slices.Sort(cliques)
	return slices.Equal(cliques, rolledCliques)
}
