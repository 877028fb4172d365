// SPDX-License-Identifier: Apache-2.0

// Package stock is kube-scheduler without its queue and its loop, for tests that decide themselves what is placed and
// when: its plugins, its cache and its snapshot, with its own scores or those of muster-scheduler. There is no API
// server.
package stock

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	kubeschedulerconfigv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	builtinprofile "github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// Scheduler is kube-scheduler with its default profile, whose pods have schedulerName default-scheduler. Not safe for
// concurrent use.
type Scheduler struct {
	*scheduler.Scheduler
	Profile framework.Framework
}

// Scores is how nodes are scored by what is in use on them.
type Scores string

const (
	// LeastAllocated is the strategy of NodeResourcesFit that kube-scheduler has by default.
	LeastAllocated = Scores(config.LeastAllocated)
	// MostAllocated is another one.
	MostAllocated = Scores(config.MostAllocated)
	// GPUPacking is what muster-scheduler has: the plugin of this name takes the place of NodeResourcesFit.
	GPUPacking Scores = kubescheduler.GPUPackingName
)

// New returns a scheduler with nodes. It ends with the context.
func New(ctx context.Context, scores Scores, nodes []*corev1.Node) (*Scheduler, error) {
	var versioned kubeschedulerconfigv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var cfg config.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &cfg, nil); err != nil {
		return nil, fmt.Errorf("reading the default configuration: %w", err)
	}
	if scores == GPUPacking {
		builtin, err := builtinprofile.Default()
		if err != nil {
			return nil, err
		}
		from := builtin.Profiles[0].Plugins
		cfg.Profiles[0].Plugins.PreScore, cfg.Profiles[0].Plugins.Score = from.PreScore, from.Score
	} else {
		for _, plugin := range cfg.Profiles[0].PluginConfig {
			if args, ok := plugin.Args.(*config.NodeResourcesFitArgs); ok {
				args.ScoringStrategy.Type = config.ScoringStrategyType(scores)
			}
		}
	}
	client := fake.NewClientset()
	informers := scheduler.NewInformerFactory(client, 0, nil)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	sched, err := scheduler.New(ctx, client, informers, nil, profile.NewRecorderFactory(broadcaster), scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{kubescheduler.GPUPackingName: kubescheduler.NewGPUPacking}))
	if err != nil {
		return nil, fmt.Errorf("starting a scheduler: %w", err)
	}
	s := &Scheduler{sched, sched.Profiles[corev1.DefaultSchedulerName]}
	// The planner uses these listers; their informers must run.
	s.Profile.SharedInformerFactory().Core().V1().Namespaces().Lister()
	s.Profile.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister()
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return nil, fmt.Errorf("starting a scheduler: %w", err)
	}
	for _, n := range nodes {
		sched.Cache.AddNode(klog.FromContext(ctx), n)
	}
	return s, nil
}

// Nodes takes a new snapshot, as every cycle does, and returns its nodes.
func (s *Scheduler) Nodes() ([]fwk.NodeInfo, error) {
	snapshot, ok := s.Profile.SnapshotSharedLister().(*cache.Snapshot)
	if !ok {
		return nil, fmt.Errorf("the snapshot of kube-scheduler is a %T", s.Profile.SnapshotSharedLister())
	}
	if err := s.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
		return nil, err
	}
	return snapshot.NodeInfos().List()
}

// Bind adds a pod to the node that it names.
func (s *Scheduler) Bind(pod *corev1.Pod) error { return s.Cache.AddPod(klog.Background(), pod) }

// Remove takes pods off their nodes.
func (s *Scheduler) Remove(pods ...*corev1.Pod) error {
	for _, p := range pods {
		if err := s.Cache.RemovePod(klog.Background(), p); err != nil {
			return err
		}
	}
	return nil
}
