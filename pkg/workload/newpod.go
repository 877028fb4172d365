// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

// PodOptions are options from the configuration of muster-controller.
type PodOptions struct {
	// SchedulerName is set on pods whose template has none; "" means v1alpha1.DefaultSchedulerName.
	SchedulerName string
	// WaitImage is the image of the init container that waits for the cliques that must start before.
	WaitImage string
}

// Pod returns a pod of a PodClique. The labels of the PodClique define the set and the replica that the pod belongs
// to; Pod returns an error if its labels or annotations were changed and are invalid.
func Pod(clique *v1alpha1.PodClique, n lifecycle.NewPod, o PodOptions) (*corev1.Pod, error) {
	set, i := clique.Labels[v1alpha1.LabelPartOf], naming.LabelIndex(clique.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
	if set == "" || i < 0 {
		return nil, fmt.Errorf("PodClique %s does not say which replica of which PodCliqueSet it is of: labels %s=%q, %s=%q", clique.Name,
			v1alpha1.LabelPartOf, set, v1alpha1.LabelPodCliqueSetReplicaIndex, clique.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex])
	}
	requirements, err := lifecycle.ParseRequirements(clique.Annotations[naming.AnnotationStartRequirements])
	if err != nil {
		return nil, fmt.Errorf("PodClique %s, annotation %s: %w", clique.Name, naming.AnnotationStartRequirements, err)
	}

	annotations := map[string]string{}
	for k, v := range clique.Annotations {
		if !naming.IsInternalAnnotation(k) {
			annotations[k] = v
		}
	}
	if uid := clique.Annotations[v1alpha1.AnnotationPodCliqueSetUID]; uid != "" {
		annotations[v1alpha1.AnnotationPodCliqueSetUID] = uid // it tells whose pod it is when the PodClique is gone
	}
	annotations[v2alpha2.PodGroupAnnotation] = naming.PodGroupName(set, i)
	labels := naming.PodLabels(clique.Labels, clique.Name, n.Index)
	labels[v2alpha2.SubGroupLabel] = clique.Name

	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: objectMeta(clique, v1alpha1.KindPodClique,
			naming.PodName(clique.Name, string(clique.UID), clique.Labels[v1alpha1.LabelPodTemplateHash], n.Index, n.Replaces), labels, annotations),
		Spec: *clique.Spec.PodSpec.DeepCopy(),
	}
	if IsTraining(clique) {
		pod.Finalizers = []string{v1alpha1.FinalizerPodTracking}
	}
	pod.Spec.Hostname = naming.PodHostname(clique.Name, n.Index)
	pod.Spec.Subdomain = naming.HeadlessService(set, i)
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = o.SchedulerName
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = v1alpha1.DefaultSchedulerName
	}
	env := podEnv(clique, set, i)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for k := range containers {
			containers[k].Env = withEnv(env, containers[k].Env)
		}
	}
	if len(requirements) > 0 {
		addWaitContainer(&pod.Spec, set, i, requirements, o)
	}
	return pod, nil
}

// podEnv returns the environment variables of every container. Each may refer to those before it.
func podEnv(clique *v1alpha1.PodClique, set string, i int) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: v1alpha1.EnvPodCliqueSetName, Value: set},
		{Name: v1alpha1.EnvPodCliqueSetIndex, Value: text(int32(i))},
		{Name: v1alpha1.EnvPodCliqueName, Value: clique.Name},
		{Name: v1alpha1.EnvHeadlessService, Value: naming.ServiceAddress(set, i, clique.Namespace)},
		{Name: v1alpha1.EnvPodIndex, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.labels['" + v1alpha1.LabelPodIndex + "']",
		}}},
	}
	if group := clique.Labels[v1alpha1.LabelPodCliqueScalingGroup]; group != "" {
		env = append(env,
			corev1.EnvVar{Name: v1alpha1.EnvPodCliqueScalingGroupName, Value: group},
			corev1.EnvVar{Name: v1alpha1.EnvPodCliqueScalingGroupIndex, Value: clique.Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex]},
			corev1.EnvVar{Name: v1alpha1.EnvPodCliqueScalingGroupNumPods, Value: clique.Annotations[naming.AnnotationGroupPods]},
		)
	}
	return env
}

// withEnv returns ours followed by those of a template, which may refer to ours. Ours override variables of the same
// name.
func withEnv(ours, template []corev1.EnvVar) []corev1.EnvVar {
	names := make(map[string]bool, len(ours))
	env := make([]corev1.EnvVar, 0, len(ours)+len(template))
	for k := range ours {
		names[ours[k].Name] = true
		env = append(env, *ours[k].DeepCopy())
	}
	for _, v := range template {
		if !names[v.Name] {
			env = append(env, v)
		}
	}
	return env
}
