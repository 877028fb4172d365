// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/stock"
	"github.com/muster-project/muster/test/wrappers"
)

// cluster is a stock scheduler on the nodes of a fabric.
type cluster struct {
	*stock.Scheduler
	ctx     context.Context //nolint:containedctx // of the run
	gpus    int             // of each node
	created int             // pods
}

// newCluster starts a scheduler on a fabric. It ends with the context.
func newCluster(ctx context.Context, scores stock.Scores, f *fabric) (*cluster, error) {
	s, err := stock.New(ctx, scores, f.objects())
	if err != nil {
		return nil, err
	}
	return &cluster{Scheduler: s, ctx: ctx, gpus: f.gpus}, nil
}

// bind adds a copy of the pod to a node.
func (c *cluster) bind(pod *corev1.Pod, node string) (*corev1.Pod, error) {
	c.created++
	p := pod.DeepCopy()
	p.Name = fmt.Sprintf("pod-%d", c.created)
	p.UID, p.Spec.NodeName = types.UID(p.Name), node
	return p, c.Bind(p)
}

// remove removes pods.
func (c *cluster) remove(pods []*corev1.Pod) error { return c.Remove(pods...) }

// podOf returns a pod of a job. CPU and memory are in proportion to the GPUs, on which the default scores depend.
func podOf(j job, gpusPerNode int) *corev1.Pod {
	share := func(all int64) resource.Quantity {
		return *resource.NewQuantity(all*int64(j.GPUs)/int64(gpusPerNode), resource.BinarySI)
	}
	return wrappers.MakePod("pod", "default").SchedulerName(corev1.DefaultSchedulerName).GPUs(int64(j.GPUs)).
		Resource(corev1.ResourceCPU, share(128)).Resource(corev1.ResourceMemory, share(1<<40)).Obj()
}

// plain places each pod by a cycle of the stock scheduler.
type plain struct{ *cluster }

// place implements scheduler.
func (s plain) place(j job) ([]*corev1.Pod, error) {
	nodes, err := s.Nodes()
	if err != nil {
		return nil, err
	}
	room := 0 // decides for equal pods, so that none has to be taken back
	for _, n := range nodes {
		room += int(n.GetAllocatable().GetScalarResources()[wrappers.GPUResource]-n.GetRequested().GetScalarResources()[wrappers.GPUResource]) / j.GPUs
	}
	if room < j.Pods {
		return nil, nil
	}
	pod := podOf(j, s.gpus)
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, err
	}
	var bound []*corev1.Pod
	for len(bound) < j.Pods {
		if _, err := s.Nodes(); err != nil {
			return nil, err
		}
		result, err := s.SchedulePod(s.ctx, s.Profile, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
		if err != nil {
			return nil, fmt.Errorf("scheduling a pod: %w", err)
		}
		p, err := s.bind(pod, result.SuggestedHost)
		if err != nil {
			return nil, err
		}
		bound = append(bound, p)
	}
	return bound, nil
}

// muster plans jobs as gangs.
type muster struct {
	*cluster
	filters  *kubescheduler.FilterCache
	requires func(job) bool // jobs that require a rack; others prefer one
}

// place implements scheduler.
func (m muster) place(j job) ([]*corev1.Pod, error) {
	nodes, err := m.Nodes()
	if err != nil {
		return nil, err
	}
	size := int32(j.Pods)
	tree, err := gang.Build(gang.Node{MinMember: &size}, nil)
	if err != nil {
		return nil, err
	}
	problem := placement.Problem{Tree: tree, Pods: map[string][]placement.Pod{}}
	for i := range j.Pods {
		problem.Pods[""] = append(problem.Pods[""], placement.Pod{ID: strconv.Itoa(i), Index: i})
	}
	levels := map[string]string{"": rackLevel}
	if m.requires(j) {
		problem.Required = levels
	} else {
		problem.Preferred = levels
	}
	pod := podOf(j, m.gpus)
	world, err := kubescheduler.NewSnapshot(m.ctx, m.Profile, nodes, []*corev1.Pod{pod}, kubescheduler.Options{Cache: m.filters, Pods: []int{j.Pods}})
	if err != nil {
		return nil, err
	}
	plan, _ := placement.Minimum(problem, world, placement.Budget{PreferencesExpired: func() bool { return false }})
	var bound []*corev1.Pod
	for _, p := range plan {
		b, err := m.bind(pod, p.Node)
		if err != nil {
			return nil, err
		}
		bound = append(bound, b)
	}
	return bound, nil
}
