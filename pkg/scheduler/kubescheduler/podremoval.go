// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
)

// BeforeLeaving makes the scheduler call leaves before its cache removes a deleted bound pod: no cycle can see the
// pod's room as free before leaves has returned. This is necessary because the handlers of an informer are not
// synchronized with each other. It must be called before the scheduler runs. leaves must not block.
func BeforeLeaving(sched *scheduler.Scheduler, leaves func(*corev1.Pod)) {
	sched.Cache = leavingCache{Cache: sched.Cache, leaves: leaves}
}

type leavingCache struct {
	cache.Cache
	leaves func(*corev1.Pod)
}

// RemovePod implements cache.Cache.
func (c leavingCache) RemovePod(logger klog.Logger, pod *corev1.Pod) error {
	c.leaves(pod)
	return c.Cache.RemovePod(logger, pod)
}
