// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/test/podlife"
)

// Annotations of a pod that say what its containers do, beyond what the program of its image does. They may be set and
// changed at any time.
const (
	// HoldAnnotation "true": the pod stays Pending after it was bound.
	HoldAnnotation = "fake-kubelet.muster.test/hold"
	// StartAfterAnnotation is the time from binding to running, such as "2s".
	StartAfterAnnotation = "fake-kubelet.muster.test/start-after"
	// ReadyAnnotation "false": the pod runs without being ready.
	ReadyAnnotation = "fake-kubelet.muster.test/ready"
	// ExitCodeAnnotation ends the pod once it runs, whatever its restart policy is: "0" succeeds, any other number
	// fails with that exit code.
	ExitCodeAnnotation = "fake-kubelet.muster.test/exit-code"
	// ExitAfterAnnotation delays the exit, such as "5s", counted from the pod's last change. Jobs with such pods
	// complete by themselves.
	ExitAfterAnnotation = "fake-kubelet.muster.test/exit-after"
	// LingerAnnotation is the time from SIGTERM to the exit of the containers, such as "3s"; at the end of the grace
	// period they are killed.
	LingerAnnotation = "fake-kubelet.muster.test/linger"
	// StopCodeAnnotation is the exit code of the containers after SIGTERM.
	StopCodeAnnotation = "fake-kubelet.muster.test/stop-code"
	// StuckAnnotation "true": the containers cannot be killed, such as for a hung volume, and the pod remains
	// terminating beyond its grace period.
	StuckAnnotation = "fake-kubelet.muster.test/stuck"
)

// BrokenImage cannot be pulled: a pod that has it stays Pending on its node, with the reason ErrImagePull.
const BrokenImage = unpullable + "server:1"

// unpullable is the registry that does not exist.
const unpullable = "registry.invalid/"

// exitSIGTERM is the exit code of a container that ends as soon as it gets SIGTERM.
const exitSIGTERM = 143

// annotated returns what the containers of a pod do whose image has this program. They exit with 143 after SIGTERM
// unless one of the two says otherwise.
func annotated(program podlife.Program, pod *corev1.Pod) podlife.Program {
	text := func(annotation string) string { return pod.Annotations[annotation] }
	for annotation, duration := range map[string]*time.Duration{
		StartAfterAnnotation: &program.AcceptedAfter, ExitAfterAnnotation: &program.ExitsAfter, LingerAnnotation: &program.StopsAfter,
	} {
		if d, err := time.ParseDuration(text(annotation)); err == nil {
			*duration = d
		}
	}
	if program.StopCode == nil {
		program.StopCode = new(int32(exitSIGTERM))
	}
	for annotation, code := range map[string]**int32{ExitCodeAnnotation: &program.ExitCode, StopCodeAnnotation: &program.StopCode} {
		if n, err := strconv.Atoi(text(annotation)); err == nil {
			*code = new(int32(n))
		}
	}
	program.Held, program.Stuck, program.Unready = text(HoldAnnotation) == "true", text(StuckAnnotation) == "true", text(ReadyAnnotation) == "false"
	program.Unpullable = slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return strings.HasPrefix(c.Image, unpullable) })
	return program
}

// StartPod makes a bound pod Running and Ready in a cluster without kubelets.
func (cp *ControlPlane) StartPod(ctx context.Context, namespace, name string) error {
	return cp.changePodStatus(ctx, namespace, name, func(pod *corev1.Pod) {
		podlife.Run(pod, metav1.Now())
		podlife.SetReady(pod, true, metav1.Now())
	})
}

// ExitPod makes a running pod exit with this code and returns when it has finished: Succeeded for 0, otherwise Failed.
func (cp *ControlPlane) ExitPod(ctx context.Context, namespace, name string, code int) error {
	if cp.kubelets == nil {
		return cp.changePodStatus(ctx, namespace, name, func(pod *corev1.Pod) { podlife.Exit(pod, int32(code), metav1.Now()) })
	}
	if err := cp.AnnotatePod(ctx, namespace, name, map[string]string{ExitCodeAnnotation: strconv.Itoa(code)}); err != nil {
		return err
	}
	return cp.untilPod(ctx, namespace, name, podlife.Over)
}

// AnnotatePod sets annotations of a pod.
func (cp *ControlPlane) AnnotatePod(ctx context.Context, namespace, name string, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = cp.client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// RemovePod deletes the pod and returns when it is gone. Without kubelets, which confirm deletions, the pod is removed
// immediately, as by kubectl delete --force.
func (cp *ControlPlane) RemovePod(ctx context.Context, namespace, name string) error {
	options := metav1.DeleteOptions{}
	if cp.kubelets == nil {
		options.GracePeriodSeconds = new(int64)
	}
	pods := cp.client.CoreV1().Pods(namespace)
	pod, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := pods.Delete(ctx, name, options); client.IgnoreNotFound(err) != nil {
		return err
	}
	return Until(ctx, pods, metav1.ListOptions{FieldSelector: "metadata.name=" + name},
		func(found []*corev1.Pod) bool { return len(found) == 0 || found[0].UID != pod.UID })
}

// PodReady reports whether the pod's Ready condition is True.
func PodReady(pod *corev1.Pod) bool { return podutil.IsPodReady(pod) }

func (cp *ControlPlane) untilPod(ctx context.Context, namespace, name string, done func(*corev1.Pod) bool) error {
	return untilNamed(ctx, cp.client.CoreV1().Pods(namespace), name, done)
}

func (cp *ControlPlane) changePodStatus(ctx context.Context, namespace, name string, edit func(*corev1.Pod)) error {
	pods := cp.client.CoreV1().Pods(namespace)
	return rewrite(ctx, name, pods.Get, edit, pods.UpdateStatus)
}
