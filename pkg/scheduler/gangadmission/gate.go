package gangadmission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangstate"
)

// Gate holds the pods of gangs before the queue. It is asked under the queue's lock, so it only asks the registry.
type Gate struct{ registry *gangstate.Registry }

var (
	_ fwk.PreEnqueuePlugin  = &Gate{}
	_ fwk.EnqueueExtensions = &Gate{}
)

// Name implements fwk.Plugin.
func (pl *Gate) Name() string { return GateName }

// PreEnqueue implements fwk.PreEnqueuePlugin: only a gang's leader passes, and the members of the plan being committed.
func (pl *Gate) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if ok, why := pl.registry.Pass(pod); !ok {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
	}
	return nil
}

// EventsToRegister implements fwk.EnqueueExtensions: no event. Held pods are woken by the registry alone, and so cost
// nothing when the cluster changes.
func (pl *Gate) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}
