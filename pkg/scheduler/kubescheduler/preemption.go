// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// MayPreempt reports whether a node that refused a pod may take it when other pods have ended, and returns all nodes.
func MayPreempt(profile Profile, statuses fwk.NodeToStatusReader) (nodes []fwk.NodeInfo, mayHelp bool, err error) {
	lister := profile.SnapshotSharedLister().NodeInfos()
	if nodes, err = lister.List(); err != nil {
		return nil, false, err
	}
	resolvable, err := statuses.NodesForStatusCode(lister, fwk.Unschedulable)
	return nodes, len(resolvable) > 0, err
}

// Nominate returns the result of PostFilter for a pod that waits for room on a node; "": on none.
func Nominate(node string) *fwk.PostFilterResult {
	return framework.NewPostFilterResultWithNominatedNode(node)
}

// CountPreemptionAttempt counts an attempt to preempt as the stock plugin does.
func CountPreemptionAttempt() { metrics.PreemptionAttempts.Inc() }

// CountPreemption counts the victims of one preemption as the stock plugin does.
func CountPreemption(victims int) { metrics.PreemptionVictims.Observe(float64(victims)) }
