// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// claimCounts is a cache of which snapshots are taken beside that of the scheduling loop. The stock cache keeps what
// has changed in the numbers of pods of each PersistentVolumeClaim until a snapshot is taken, whichever it is, and the
// next snapshot does not get it: the loop would bind two pods with one ReadWriteOncePod claim, or refuse all. So the
// snapshot of the loop is made anew after another one got such a change. That costs a copy of all nodes, some
// milliseconds for a thousand, when pods with claims have come or gone while the loop was busy or waited.
type claimCounts struct {
	cache.Cache
	loop fwk.SharedLister // the snapshot of the loop

	mu      sync.Mutex // held while pods with claims change, and while snapshots are taken
	changed bool       // pods with claims have changed since the last snapshot
	missed  bool       // that of the loop did not get a change
}

// countClaims makes the scheduler's cache one of which others may take snapshots.
func countClaims(sched *scheduler.Scheduler) {
	c := &claimCounts{Cache: sched.Cache}
	for _, f := range sched.Profiles {
		c.loop = f.SnapshotSharedLister()
	}
	sched.Cache = c
}

// UpdateSnapshot implements cache.Cache.
func (c *claimCounts) UpdateSnapshot(logger klog.Logger, s *cache.Snapshot) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s != c.loop {
		c.missed = c.missed || c.changed
		logger = klog.New(nil) // its own counts are not complete, which it would say
	} else if c.missed {
		*s = *cache.NewEmptySnapshot() // plugins have the pointer
		c.missed = false
	}
	c.changed = false
	return c.Cache.UpdateSnapshot(logger, s)
}

// change performs a change of pods.
func (c *claimCounts) change(pod *corev1.Pod, do func() error) error {
	for range framework.PodPVCKeys(pod) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed = true
		break
	}
	return do()
}

// AssumePod implements cache.Cache.
func (c *claimCounts) AssumePod(logger klog.Logger, pod *corev1.Pod) error {
	return c.change(pod, func() error { return c.Cache.AssumePod(logger, pod) })
}

// ForgetPod implements cache.Cache.
func (c *claimCounts) ForgetPod(logger klog.Logger, pod *corev1.Pod) error {
	return c.change(pod, func() error { return c.Cache.ForgetPod(logger, pod) })
}

// RemoveAssumedPod implements cache.Cache.
func (c *claimCounts) RemoveAssumedPod(logger klog.Logger, pod *corev1.Pod) error {
	return c.change(pod, func() error { return c.Cache.RemoveAssumedPod(logger, pod) })
}

// AddPod implements cache.Cache.
func (c *claimCounts) AddPod(logger klog.Logger, pod *corev1.Pod) error {
	return c.change(pod, func() error { return c.Cache.AddPod(logger, pod) })
}

// UpdatePod implements cache.Cache. The volumes of a pod do not change.
func (c *claimCounts) UpdatePod(logger klog.Logger, oldPod, newPod *corev1.Pod) error {
	return c.change(newPod, func() error { return c.Cache.UpdatePod(logger, oldPod, newPod) })
}

// RemovePod implements cache.Cache.
func (c *claimCounts) RemovePod(logger klog.Logger, pod *corev1.Pod) error {
	return c.change(pod, func() error { return c.Cache.RemovePod(logger, pod) })
}
