// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// PodCliqueSetWrapper builds a PodCliqueSet.
type PodCliqueSetWrapper struct {
	object[*PodCliqueSetWrapper]
	set v1alpha1.PodCliqueSet
}

// MakePodCliqueSet starts a PodCliqueSet of one replica.
func MakePodCliqueSet(name, namespace string) *PodCliqueSetWrapper {
	w := &PodCliqueSetWrapper{set: v1alpha1.PodCliqueSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodCliqueSet},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       v1alpha1.PodCliqueSetSpec{Replicas: 1},
	}}
	w.object = object[*PodCliqueSetWrapper]{w, &w.set.ObjectMeta}
	return w
}

// Obj returns a copy of the PodCliqueSet built so far. An API server refuses a set without cliques: such a set gets the
// clique "main" of one pod.
func (w *PodCliqueSetWrapper) Obj() *v1alpha1.PodCliqueSet {
	set := w.set.DeepCopy()
	if len(set.Spec.Template.Cliques) == 0 {
		set.Spec.Template.Cliques = []*v1alpha1.PodCliqueTemplateSpec{MakeClique("main", 1)}
	}
	return set
}

// Replicas sets spec.replicas.
func (w *PodCliqueSetWrapper) Replicas(n int32) *PodCliqueSetWrapper {
	w.set.Spec.Replicas = n
	return w
}

// Clique appends a clique of so many pods to the template; see MakeClique.
func (w *PodCliqueSetWrapper) Clique(name string, replicas int32, options ...CliqueOption) *PodCliqueSetWrapper {
	template := &w.set.Spec.Template
	template.Cliques = append(template.Cliques, MakeClique(name, replicas, options...))
	return w
}

// ScalingGroup appends a scaling group of the named cliques to the template. replicas 0 and minAvailable 0 leave the
// field unset.
func (w *PodCliqueSetWrapper) ScalingGroup(name string, replicas, minAvailable int32, cliques ...string) *PodCliqueSetWrapper {
	group := v1alpha1.PodCliqueScalingGroupConfig{Name: name, CliqueNames: cliques}
	if replicas != 0 {
		group.Replicas = &replicas
	}
	if minAvailable != 0 {
		group.MinAvailable = &minAvailable
	}
	template := &w.set.Spec.Template
	template.PodCliqueScalingGroupConfigs = append(template.PodCliqueScalingGroupConfigs, group)
	return w
}

// StartupType sets the order in which the pods of the cliques start.
func (w *PodCliqueSetWrapper) StartupType(order v1alpha1.CliqueStartupType) *PodCliqueSetWrapper {
	w.set.Spec.Template.StartupType = &order
	return w
}

// TerminationDelay sets the termination delay of the template.
func (w *PodCliqueSetWrapper) TerminationDelay(delay time.Duration) *PodCliqueSetWrapper {
	w.set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: delay}
	return w
}

// Training makes the workload a Training workload without limits.
func (w *PodCliqueSetWrapper) Training() *PodCliqueSetWrapper {
	w.set.Spec.WorkloadType = v1alpha1.WorkloadTypeTraining
	return w
}

// Spec edits the spec, for fields without a method of their own.
func (w *PodCliqueSetWrapper) Spec(edit func(*v1alpha1.PodCliqueSetSpec)) *PodCliqueSetWrapper {
	edit(&w.set.Spec)
	return w
}

// Status edits the status.
func (w *PodCliqueSetWrapper) Status(edit func(*v1alpha1.PodCliqueSetStatus)) *PodCliqueSetWrapper {
	edit(&w.set.Status)
	return w
}

// CliqueOption changes a clique of a template.
type CliqueOption func(*v1alpha1.PodCliqueTemplateSpec)

// MakeClique returns a clique of so many pods with one container that requests nothing, for the template of a
// PodCliqueSet.
func MakeClique(name string, replicas int32, options ...CliqueOption) *v1alpha1.PodCliqueTemplateSpec {
	clique := &v1alpha1.PodCliqueTemplateSpec{Name: name, Spec: podCliqueSpec(replicas)}
	for _, option := range options {
		option(clique)
	}
	return clique
}

// MinAvailable sets the clique's minAvailable.
func MinAvailable(n int32) CliqueOption {
	return func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.MinAvailable = &n }
}

// StartsAfter names the cliques whose pods have to be ready before those of the clique start.
func StartsAfter(cliques ...string) CliqueOption {
	return func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.StartsAfter = cliques }
}

// AutoScaling gives the clique a HorizontalPodAutoscaler of at most so many replicas.
func AutoScaling(maxReplicas int32) CliqueOption {
	return func(c *v1alpha1.PodCliqueTemplateSpec) {
		c.Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: maxReplicas}
	}
}

// GPUs limits every pod of the clique to n GPUs. The API server sets the request of a pod to its limit.
func GPUs(n int64) CliqueOption {
	return func(c *v1alpha1.PodCliqueTemplateSpec) {
		c.Spec.PodSpec.Containers[0].Resources.Limits = corev1.ResourceList{GPUResource: *resource.NewQuantity(n, resource.DecimalSI)}
	}
}

// RestartPolicy sets the restart policy of the clique's pods.
func RestartPolicy(policy corev1.RestartPolicy) CliqueOption {
	return func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.PodSpec.RestartPolicy = policy }
}

// podCliqueSpec returns the spec of a clique of so many pods with one container that requests nothing.
func podCliqueSpec(replicas int32) v1alpha1.PodCliqueSpec {
	return v1alpha1.PodCliqueSpec{Replicas: replicas, PodSpec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: Image}}}}
}
