// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// preemption returns the steps in which services take the room of a training gang of lower priority.
func preemption() []step {
	started := false
	return []step{
		{
			title: "fine-tuning with 16 pods of 4 GPUs, 10 of them its minimum; then inference-service, of higher priority",
			why: "fine-tuning takes all 64 GPUs. inference-service needs 24: the 6 pods above the minimum of fine-tuning end, and no other " +
				"pod. The fourth group of inference-service is above a minimum, so no pod ends for it.",
			do: func(ctx context.Context, st *stage) error {
				if err := st.startTuning(ctx, 16, 10, 4); err != nil {
					return err
				}
				return st.preempt(ctx, inference, st.inference, 6, "condition=Preempted")
			},
			throughout: []claim{{"since fine-tuning started, at least the 10 pods of its minimum run", func(s scene) bool {
				started = started || total(s.bound(tuning)) >= 10
				return !started || total(s.bound(tuning)) >= 10
			}}},
			claims: []claim{admitted(inference, 24), admitted(tuning, 10), free(0), preempted("inference-service (priority 1000 over 100): 6 pods above its minimum")},
		},
		{
			title: "chat, of the same high priority",
			why: "It needs 24 GPUs. Of lower priority there is only the minimum of fine-tuning. A part of it is worth nothing without the rest, so all " +
				"10 pods end. chat does not need 16 of the GPUs: the fourth group of inference-service, which has waited, takes 8 of them.",
			do: func(ctx context.Context, st *stage) error {
				return st.preempt(ctx, chatGang, st.chat, 10, "jsonpath={.status.scheduled}=0/10")
			},
			claims: []claim{admitted(inference, 32), preempted("chat-0 (priority 1000 over 100): all 10 pods"), {"chat-0 is Admitted; fine-tuning waits, and holds no GPU", func(s scene) bool {
				return phase(s, chatGang) == v2alpha2.PodGroupAdmitted && phase(s, tuning) == v2alpha2.PodGroupWaiting && s.held(tuning) == 0
			}}},
		},
	}
}

// startTuning starts fine-tuning with a low priority, and returns when all pods are bound. Pods without a class have a high
// one. The pods of chat need 4 GPUs each: if these have fewer, which of them end decides whether chat fits afterwards.
func (st *stage) startTuning(ctx context.Context, pods, minimum, gpus int64) error {
	group, job := st.tuning[0].Object["spec"].(map[string]any), st.tuning[1].Object["spec"].(map[string]any)
	group["minMember"], job["completions"], job["parallelism"] = minimum, pods, pods
	pod := job["template"].(map[string]any)["spec"].(map[string]any)
	pod["priorityClassName"] = "training"
	container := pod["containers"].([]any)[0].(map[string]any)
	if err := unstructured.SetNestedField(container, gpus, "resources", "limits", string(controlplane.GPUResource)); err != nil {
		return err
	}
	_, low := st.kubectl(ctx, "create", "priorityclass", "training", "--value=100")
	_, high := st.kubectl(ctx, "create", "priorityclass", "services", "--value=1000", "--global-default")
	applied := st.cp.Apply(ctx, st.tuning...)
	_, bound := st.kubectl(ctx, "wait", "pg/"+tuning, fmt.Sprintf("--for=jsonpath={.status.gpus}=%d/%d", pods*gpus, pods*gpus))
	return errors.Join(low, high, applied, bound)
}

// preempt applies a service that preempts. It keeps what kubectl says while the victims end, all of them pods of fine-tuning,
// and then reports their end, as kubelets do. until is the condition of kubectl wait after which fine-tuning has been told.
func (st *stage) preempt(ctx context.Context, preemptor string, service []*unstructured.Unstructured, victims int, until string) error {
	if err := st.cp.Apply(ctx, service...); err != nil {
		return err
	}
	pods := st.cp.Client().CoreV1().Pods(metav1.NamespaceDefault)
	var ending []*corev1.Pod
	if err := controlplane.Until(ctx, pods, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + tuning}, func(all []*corev1.Pod) bool {
		ending = slices.DeleteFunc(all, func(pod *corev1.Pod) bool {
			return pod.DeletionTimestamp == nil || pod.Status.Phase == corev1.PodFailed || !strings.Contains(fmt.Sprint(pod.Status.Conditions), corev1.PodReasonPreemptionByScheduler)
		})
		return len(ending) >= victims
	}); err != nil {
		return fmt.Errorf("waiting until %d pods of %s end by preemption, %d do: %w", victims, tuning, len(ending), err)
	}
	about := regexp.MustCompile(`Message: +(makes room|preempted at).*`)
	st.said = "\n"
	for _, arguments := range [][]string{
		{"wait", "pg/" + preemptor, "--for=jsonpath={.status.reason}=Preempting"}, {"wait", "pg/" + tuning, "--for=" + until},
		{"get", "pg", preemptor, tuning}, {"describe", "pg", preemptor}, {"describe", "pg", tuning},
	} {
		output, err := st.kubectl(ctx, arguments...)
		if err != nil {
			return err
		}
		shown := "    " + strings.ReplaceAll(strings.TrimSpace(output), "\n", "\n    ") + "\n"
		if arguments[0] == "describe" {
			shown = wrap(about.FindString(output), "    ", "      ")
		}
		st.said += "    $ kubectl " + strings.Join(arguments, " ") + "\n" + shown
	}
	for _, pod := range ending {
		if _, err := pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}

// preempted claims what the condition of fine-tuning says about the preemptor, and what it took.
func preempted(by string) claim {
	return claim{tuning + " was preempted by " + by, func(s scene) bool {
		g := s.group(tuning)
		return g != nil && strings.Contains(fmt.Sprint(g.Status.Conditions), "by default/"+by)
	}}
}
