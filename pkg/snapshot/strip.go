// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	grovev1alpha1 "github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// A snapshot has no values that no decision depends on: commands and environments, which may contain secrets, probes,
// and the images of nodes.

// lastApplied is what kubectl apply adds, a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// strip drops from an object what no decision depends on.
func (k *Kind) stripObject(o client.Object) {
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[lastApplied] != "" {
		delete(annotations, lastApplied)
		o.SetAnnotations(annotations)
	}
	if k.strip != nil {
		k.strip(o)
	}
}

func stripNode(o client.Object) {
	node := o.(*corev1.Node)
	node.Status.Images, node.Status.VolumesInUse, node.Status.Addresses = nil, nil, nil
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
}

func stripPod(o client.Object) {
	pod := o.(*corev1.Pod)
	stripPodSpec(&pod.Spec)
	pod.Status.PodIPs, pod.Status.HostIPs = nil, nil
}

func stripTemplate(t *corev1.PodTemplateSpec) {
	if t != nil {
		stripPodSpec(&t.Spec)
	}
}

func stripSet(set *grovev1alpha1.PodCliqueSet) {
	for _, clique := range set.Spec.Template.Cliques {
		if clique != nil {
			stripPodSpec(&clique.Spec.PodSpec)
		}
	}
}

func stripPodSpec(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			containers[i] = corev1.Container{
				Name: c.Name, Image: c.Image, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy, ResizePolicy: c.ResizePolicy,
			}
		}
	}
	spec.EphemeralContainers, spec.ImagePullSecrets, spec.HostAliases, spec.SecurityContext, spec.DNSConfig = nil, nil, nil, nil, nil
}
