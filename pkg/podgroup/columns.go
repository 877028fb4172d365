// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
)

// describeMinimum describes how much of a gang must start together: the number of pods without sub-groups, otherwise of
// direct children. "" if there is no tree.
func describeMinimum(tree *gang.Tree) string {
	switch {
	case tree == nil:
		return ""
	case tree.Root().IsLeaf():
		return message.Count(tree.Root().Min(), "pod")
	case tree.Root().Min() >= len(tree.Root().Children()):
		return "all"
	default:
		return fmt.Sprintf("%d of %d", tree.Root().Min(), len(tree.Root().Children()))
	}
}

// boundOfRequestedGPUs returns the GPUs of a gang's bound pods and the GPUs requested by all of its pods: "8/16". "":
// none requested.
func boundOfRequestedGPUs(f Facts) string {
	if f.GPUs == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", f.HeldGPUs, f.GPUs)
}

// GPUs returns how many GPUs a pod requests by extended resources: those of the vendors' device plugins, including
// slices of GPUs. Devices of resource claims are not counted.
func GPUs(pod *corev1.Pod) int64 {
	running, most := int64(0), int64(0)
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		n := containerGPUs(c)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways { // a sidecar container keeps running
			running += n
			n = 0
		}
		most = max(most, running+n)
	}
	for i := range pod.Spec.Containers {
		running += containerGPUs(&pod.Spec.Containers[i])
	}
	return max(most, running)
}

// containerGPUs returns how many GPUs a container requests. Requests and limits of extended resources are equal.
func containerGPUs(c *corev1.Container) int64 { return NodeGPUs(c.Resources.Requests) }

// NodeGPUs returns how many GPUs are among resources, for example those that a node offers, as GPUs counts them.
func NodeGPUs(resources corev1.ResourceList) int64 {
	n := int64(0)
	for name, amount := range resources {
		if IsGPU(name) {
			n += amount.Value()
		}
	}
	return n
}

// IsExtended reports whether the resource is an extended one: these have a domain in their names.
func IsExtended(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

// IsGPU reports whether the resource is one that GPUs counts.
func IsGPU(name corev1.ResourceName) bool {
	domain, kind, extended := strings.Cut(string(name), "/")
	return extended && (strings.Contains(kind, "gpu") || strings.HasPrefix(domain, "gpu.") || strings.HasPrefix(kind, "mig-"))
}
