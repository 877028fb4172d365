// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// longestRuntime stands for all longer run times, so that times which contain them can be represented.
const longestRuntime = 50 * 365 * 24 * time.Hour

// MaxRuntime returns how long a pod runs at most, from its start: by its activeDeadlineSeconds, or by what its PodGroup
// promises (v2alpha2.MaxRuntimeAnnotation); the shorter of both. 0: neither says. group may be nil.
func MaxRuntime(pod *corev1.Pod, group *v2alpha2.PodGroup) time.Duration {
	runtime := time.Duration(0)
	consider := func(d time.Duration) {
		if d > 0 && (runtime == 0 || d < runtime) {
			runtime = d
		}
	}
	if s := pod.Spec.ActiveDeadlineSeconds; s != nil && *s > 0 {
		consider(time.Duration(min(*s, int64(longestRuntime/time.Second))) * time.Second)
	}
	if group == nil {
		return runtime
	}
	if text, promised := group.Annotations[v2alpha2.MaxRuntimeAnnotation]; promised { // most promise nothing: their errors cost more than this
		if d, err := time.ParseDuration(text); err == nil {
			consider(min(d, longestRuntime))
		}
	}
	return runtime
}

// EndsBy returns until when a pod on a node runs at most. A pod that its node has not started starts now. Zero: neither
// the pod nor its PodGroup says.
func EndsBy(pod *corev1.Pod, group *v2alpha2.PodGroup, now time.Time) time.Time {
	runtime := MaxRuntime(pod, group)
	switch {
	case runtime == 0:
		return time.Time{}
	case pod.Status.StartTime == nil:
		return now.Add(runtime)
	}
	return pod.Status.StartTime.Add(runtime)
}
