// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// Gate keeps the pods of gangs out of the scheduling queue. It runs under the queue's lock, so it only queries the
// registry.
type Gate struct{ registry *gangs.Registry }

var (
	_ fwk.PreEnqueuePlugin  = &Gate{}
	_ fwk.EnqueueExtensions = &Gate{}
)

// Name implements fwk.Plugin.
func (pl *Gate) Name() string { return GateName }

// PreEnqueue implements fwk.PreEnqueuePlugin: only a gang's leader and the members of the plan being committed pass.
func (pl *Gate) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if ok, why := pl.registry.MayEnterQueue(pod); !ok {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
	}
	return nil
}

// EventsToRegister implements fwk.EnqueueExtensions. There are no events: gated pods are woken only by the registry,
// and therefore cost nothing when the cluster changes.
func (pl *Gate) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}
