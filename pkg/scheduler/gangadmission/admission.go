// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// Admission plans and admits gangs. There is one per profile; state that outlives a call is in Gangs.
type Admission struct {
	gangs       *Gangs
	registry    *gangs.Registry
	profile     kubescheduler.Profile
	args        *config.GangAdmissionArgs
	filterCache *kubescheduler.FilterCache // used only by the scheduling loop
}

var (
	_ fwk.QueueSortPlugin   = &Admission{}
	_ fwk.EnqueueExtensions = &Admission{}
	_ fwk.PreFilterPlugin   = &Admission{}
	_ fwk.FilterPlugin      = &Admission{}
	_ fwk.PostFilterPlugin  = &Admission{}
	_ fwk.ReservePlugin     = &Admission{}
	_ fwk.PermitPlugin      = &Admission{}
	_ fwk.BindPlugin        = &Admission{}
	_ fwk.PostBindPlugin    = &Admission{}
	_ fwk.SignPlugin        = &Admission{}
)

// Name implements fwk.Plugin.
func (pl *Admission) Name() string { return Name }

// Less implements fwk.QueueSortPlugin (docs/decisions, G16). For two pods without a gang it is PrioritySort's order.
func (pl *Admission) Less(a, b fwk.QueuedEntityInfo) bool {
	ra := pl.registry.RankOf(kubescheduler.PodOf(a), a.GetTimestamp())
	rb := pl.registry.RankOf(kubescheduler.PodOf(b), b.GetTimestamp())
	return ra.Compare(rb) < 0
}

// SignPod implements fwk.SignPlugin: pods without a gang keep the batching of the stock scheduler, members are
// excluded from it.
func (pl *Admission) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if isMember(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the pods of a gang are planned together")
	}
	return nil, nil
}
