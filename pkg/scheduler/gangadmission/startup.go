// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/backlog"
	"github.com/muster-project/muster/pkg/scheduler/evict"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/marks"
	"github.com/muster-project/muster/pkg/scheduler/marks/secret"
	"github.com/muster-project/muster/pkg/scheduler/release"
	"github.com/muster-project/muster/pkg/scheduler/report"
	"github.com/muster-project/muster/pkg/topology"
)

// tickInterval is the interval of Registry.Tick.
const tickInterval = 50 * time.Millisecond

// ticksPerSecond is the number of ticks between checks that are made once a second.
const ticksPerSecond = int(time.Second / tickInterval)

// accountEvery is the number of ticks between two looks at what waits and what GPUs are used for: 5 seconds.
const accountEvery = 5 * ticksPerSecond

// start connects the core to the API server: it starts the informers (StartAfter), and the writers once this process
// leads. The scheduler starts its own informers.
func (g *Gangs) start(ctx context.Context, h fwk.Handle) error {
	RegisterMetrics()
	logger := klog.FromContext(ctx)
	g.useListers(h)
	g.evictions = evictionRunner{
		ctx: ctx, running: make(chan struct{}, parallelPreemptions),
		evictor: evict.New(evict.Options{Client: h.ClientSet(), Recorder: h.EventRecorder(), Clock: g.clock}),
	}
	g.configureRegistry(logger, h.SharedInformerFactory().Core().V1().Nodes().Lister(), func() { g.keys.RequestRead() })
	g.keys = secret.NewKeySource(secret.Options{
		Secrets: h.ClientSet().CoreV1().Secrets(secret.Namespace()), Clock: g.clock,
		SetKeys: func(keys *marks.Keys) {
			markKeys.Set(float64(keys.Len()))
			g.apply(logger, g.registry.SetKeys(keys, g.clock.Now()))
		},
	})
	pods, nodes, err := g.configureInformers(h)
	if err != nil {
		return err
	}
	client, err := report.NewPodGroupClient(h.KubeConfig())
	if err != nil {
		return fmt.Errorf("making a client for PodGroups: %w", err)
	}
	if g.topologies, err = report.NewTopologies(h.KubeConfig(), g.clock, func() { g.registry.RecordTopologyChanged("", g.clock.Now()) }); err != nil {
		return fmt.Errorf("making a client for Topologies: %w", err)
	}
	groups := client.NewInformer()
	ended, endedInformer, err := newEndedPods(h.ClientSet(), g.readPod)
	if err != nil {
		return fmt.Errorf("reading ended pods: %w", err)
	}
	g.reporter = g.newReporter(h, client, endedInformer)
	classes := h.SharedInformerFactory().Scheduling().V1().PriorityClasses().Informer()
	synced, err := g.addHandlers(logger, pods, nodes, endedInformer, groups, classes)
	if err != nil {
		return fmt.Errorf("watching the objects of gangs: %w", err)
	}
	if _, err := g.topologies.Informer.AddEventHandler(g.topologyHandler()); err != nil {
		return fmt.Errorf("watching Topologies: %w", err)
	}
	synced = append(synced, g.topologies.HasSynced)
	go func() {
		if g.startAfter != nil && !waitFor(ctx, g.startAfter) {
			return
		}
		ended.Start(ctx.Done())
		go g.keys.Run(ctx, g.leading)
		go g.topologies.Informer.Run(ctx.Done())
		groups.Run(ctx.Done())
	}()
	go g.runWhenSynced(ctx, synced)
	go g.runWhenLeading(ctx, h, client, synced)
	return nil
}

// useListers makes the core read what its decisions need beside pods, nodes and PodGroups from the scheduler's
// informers.
func (g *Gangs) useListers(h fwk.Handle) {
	g.classes = h.SharedInformerFactory().Scheduling().V1().PriorityClasses().Lister()
	g.budgets = h.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister()
}

// configureInformers configures the scheduler's informers of pods and nodes for what the core reads, and returns them.
func (g *Gangs) configureInformers(h fwk.Handle) (pods, nodes cache.SharedIndexInformer, err error) {
	core := h.SharedInformerFactory().Core().V1()
	g.podLister = core.Pods().Lister()
	pods, nodes = core.Pods().Informer(), core.Nodes().Informer()
	// kube-scheduler's pod informer has no indices: to list the pods of a namespace would visit those of all
	// namespaces.
	if err := pods.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}); err != nil {
		return nil, nil, fmt.Errorf("indexing pods by namespace: %w", err)
	}
	if err := pods.SetTransform(g.readPod); err != nil {
		return nil, nil, fmt.Errorf("reading pods: %w", err)
	}
	if err := nodes.SetTransform(withoutManagedFields); err != nil {
		return nil, nil, fmt.Errorf("reading nodes: %w", err)
	}
	return pods, nodes, nil
}

// newReporter returns the writer of status, events and conditions.
func (g *Gangs) newReporter(h fwk.Handle, client *report.PodGroupClient, ended cache.SharedIndexInformer) *report.Reporter {
	return report.New(report.Options{
		Registry: g.registry, PodGroups: client, Client: h.ClientSet(), Recorder: h.EventRecorder(), Clock: g.clock,
		StatusInterval:      g.args.StatusInterval.Duration,
		Busy:                g.binds.busy,
		WaitingForGangAfter: g.args.WaitingForGangAfter.Duration,
		NeedsCapacityAfter:  g.args.NeedsCapacityAfter.Duration,
		Pods:                g.podLister,
		Failed:              failedPods(ended),
		Nodes:               h.SharedInformerFactory().Core().V1().Nodes().Lister(),
		LevelsOf:            g.topologies.LevelsOf,
	})
}

// waitFor waits until the channel is closed. It returns false if the context ends first.
func waitFor(ctx context.Context, closed <-chan struct{}) bool {
	select {
	case <-closed:
		return true
	case <-ctx.Done():
		return false
	}
}

// configureRegistry gives the registry its limits and dependencies. unknownKey: gangs.Options.UnknownKey.
func (g *Gangs) configureRegistry(logger klog.Logger, nodes corelisters.NodeLister, unknownKey func()) {
	var unverified sync.Once
	g.registry.Configure(gangs.Options{
		Clock:              g.clock,
		RepairTimeout:      g.args.RepairTimeout.Duration,
		SingleSurplusAfter: g.args.SingleSurplusAfter.Duration,
		ReplacementTimeout: g.args.ReplacementTimeout.Duration,
		PreemptionTimeout:  g.args.PreemptionTimeout.Duration,
		MaxVictimGrace:     g.args.MaxVictimGrace.Duration,
		ReservationAfter:   g.args.ReservationAfter.Duration,
		ReservationTimeout: g.args.ReservationTimeout.Duration,
		MaxReservations: gangs.MaxReservations{
			InAll: int(g.args.MaxReservations), OfPriority: int(g.args.MaxReservationsPerPriority), OfNamespace: int(g.args.MaxReservationsPerNamespace),
		},
		PreemptionEnded: func(p *evictions.Eviction, outcome evictions.Outcome) {
			preemptionsEnded.WithLabelValues(string(outcome)).Inc()
			if !p.IsPreparing() {
				victimsEnded.WithLabelValues(string(outcome)).Add(float64(len(p.Victims)))
			}
			if outcome == evictions.Placed && !p.Decided.IsZero() {
				preemptionTime.Observe(g.clock.Since(p.Decided).Seconds())
			}
			logger.V(2).Info("Preemption ended", "preemptor", p.Preemptor(), "plan", p.ID, "outcome", outcome)
		},
		Promised: func(gang gangs.Key, event gangs.PromiseEvent) {
			promises.WithLabelValues(string(event)).Inc()
			logger.V(2).Info("Reservation of room", "podGroup", gang, "event", event)
		},
		Admitted: observeAdmitted,
		Ready:    observeReady,
		Amount:   kubescheduler.AmountOf,
		Priority: func(name string) (int32, bool) {
			class, err := g.classes.Get(name)
			if err != nil {
				return 0, false
			}
			return class.Value, true
		},
		NeverPreempts: func(class string) bool {
			c, err := g.classes.Get(class)
			return err == nil && c.PreemptionPolicy != nil && *c.PreemptionPolicy == corev1.PreemptNever
		},
		Aborted: func(gang gangs.Key, cause gangs.AbortCause, reason string) {
			plansAborted.WithLabelValues(string(cause)).Inc()
			logger.V(2).Info("Plan aborted", "podGroup", gang, "cause", cause, "reason", reason)
		},
		NodeLabels: func(name string) map[string]string {
			node, err := nodes.Get(name)
			if err != nil {
				return nil
			}
			return node.Labels
		},
		LevelsOf:   func(name string) topology.Levels { return g.topologies.LevelsOf(name) },
		UnknownKey: unknownKey,
		Unverified: func(pod *corev1.Pod) {
			unverified.Do(func() { // there may be as many as pods
				logger.Info("Pod has a mark that was not signed for it with a known key: it is ignored, and so are others like it, which are not logged", "pod", klog.KObj(pod))
			})
		},
	})
}

// runWhenSynced lets gangs be scheduled, and runs what wakes them, as soon as all existing objects and the keys were
// read.
func (g *Gangs) runWhenSynced(ctx context.Context, synced []cache.InformerSynced) {
	// Without the keys it is not known which gangs are partially bound.
	if !cache.WaitForCacheSync(ctx.Done(), synced...) || !waitFor(ctx, g.keys.FirstRead()) {
		return
	}
	if g.backlog == nil {
		g.end(errNotAttached)
		return
	}
	logger := klog.FromContext(ctx)
	g.apply(logger, g.registry.SetSynced(g.clock.Now()))
	logger.Info("Existing gangs were read, scheduling of gangs starts", "gangs", len(g.registry.Keys()))
	g.wakes.Store(true)
	go g.backlog.Run(ctx, func(r backlog.Ready) { g.wake(logger, r) })
	g.tick(ctx)
}

// runWhenLeading runs the writers as soon as this process leads.
func (g *Gangs) runWhenLeading(ctx context.Context, h fwk.Handle, client *report.PodGroupClient, synced []cache.InformerSynced) {
	if !waitFor(ctx, g.leading) {
		return
	}
	logger := klog.FromContext(ctx)
	releaser := release.NewReleaser(release.Options{
		Released: func(ofGang bool) {
			of := "sub-group"
			if ofGang {
				of = "gang"
			}
			releasedPods.WithLabelValues(of).Inc()
		},
		Registry: g.registry, PodGroups: client, Client: h.ClientSet(), Recorder: h.EventRecorder(), Clock: g.clock,
		Apply: func(e gangs.Effects) { g.apply(logger, e) },
	})
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), synced...) {
			g.resumeEvictions(logger)
		}
	}()
	go releaser.Run(ctx)
	g.reporter.Run(ctx)
}

// tick repeats wake-ups that the scheduling queue may have dropped.
func (g *Gangs) tick(ctx context.Context) {
	ticker := g.clock.NewTicker(tickInterval)
	defer ticker.Stop()
	logger := klog.FromContext(ctx)
	accounts := newAccounts()
	for ticks := 0; ; ticks++ {
		select {
		case now := <-ticker.C():
			g.apply(logger, g.registry.Tick(now))
			g.wakeReady(logger) // pauses may be over
			g.cancelPreparation(nil)
			if ticks%ticksPerSecond == 0 {
				g.queue.ActivateInOrder(logger, g.backlog.EvaluatePods(logger))
				g.recheckAllGates(logger)
				gatedPods.Set(float64(g.queue.Gated()))
				reportKeptRooms(g.registry.Reservations())
			}
			if ticks%accountEvery == 0 && g.isLeading() {
				g.account(logger, accounts, g.clock.Now())
			}
		case <-ctx.Done():
			return
		}
	}
}
