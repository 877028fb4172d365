// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/config/validation"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/backlog"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/marks/secret"
	"github.com/muster-project/muster/pkg/scheduler/report"
)

const (
	// GateName is the name of the plugin that gates pods.
	GateName = "GangGate"
	// Name is the name of the plugin that admits gangs.
	Name = "GangAdmission"
)

// Gangs is the state that the plugins of one scheduler share across all its profiles.
//
// A scheduler is built with app.WithPlugin(GateName, gangs.NewGate) and app.WithPlugin(Name, gangs.NewAdmission), and
// then given to Attach. Without Attach its process ends before it schedules a gang (docs/decisions, G19).
type Gangs struct {
	clock       clock.WithTickerAndDelayedExecution
	registry    *gangs.Registry
	binds       *bindLimiter
	refusals    *kubescheduler.Refusals
	released    released
	explained   sync.Map // UIDs of members whose current cycle fails for a reason that was reported for another member
	claims      allocations
	toCancel    toCancel
	othersGates othersGates
	// committed: a plan was put in force since the loop last waited for bindings (memberSource.Pace). Used only by
	// the scheduling loop.
	committed bool

	leading chan struct{} // closed when this process schedules: it must not write before
	lead    sync.Once
	backlog *backlog.Backlog     // nil before Attach
	queue   *kubescheduler.Queue // likewise
	wakes   atomic.Bool          // what waits in the backlog is woken: all PodGroups were read

	evictions  evictionRunner
	topologies *report.Topologies                      // nil until the first NewAdmission
	classes    schedulinglisters.PriorityClassLister   // of the scheduler's informer; nil until the first NewAdmission
	budgets    policylisters.PodDisruptionBudgetLister // likewise
	podLister  corelisters.PodLister                   // of the scheduler's informer; nil until the first NewAdmission

	startAfter  <-chan struct{}      // nil: immediately
	noWorkloads bool                 // see IgnoreWorkloads
	bindClient  kubernetes.Interface // nil: that of the profile
	end         func(error)          // ends the process
	// connect connects the core to the cluster when the first plugin is made.
	connect func(context.Context, fwk.Handle) error

	mu       sync.Mutex
	args     *config.GangAdmissionArgs // nil until the first NewAdmission
	reporter *report.Reporter
	keys     *secret.KeySource
	profiles map[string]kubescheduler.Profile // with GangAdmission, by name; complete before the scheduler runs
	gated    sets.Set[string]                 // profiles with the gate enabled, which therefore admit gangs; complete before the scheduler runs
}

// New returns the shared core of one scheduler.
func New() *Gangs {
	g := &Gangs{
		clock: clock.RealClock{},
		end: func(err error) {
			klog.Background().Error(err, "muster: ending the process")
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		},
		registry: gangs.New(),
		refusals: kubescheduler.NewRefusals(),
		leading:  make(chan struct{}),
		profiles: map[string]kubescheduler.Profile{},
		gated:    sets.New[string](),

		othersGates: othersGates{pods: map[types.UID]*corev1.Pod{}},
	}
	g.connect = g.start
	return g
}

var errNotAttached = errors.New("the plugins " + GateName + " and " + Name + " run in a scheduler that was not given to Gangs.Attach: gangs would not be scheduled as a whole; build the scheduler with pkg/scheduler.NewCommand")

// StartAfter makes the informers of gangs start after the channel is closed, instead of immediately. It must be called
// before app.Setup.
func (g *Gangs) StartAfter(ready <-chan struct{}) { g.startAfter = ready }

// IgnoreWorkloads makes the pods of LeaderWorkerSets, JobSets and RayClusters start one by one, unless they have
// another mark, instead of waiting for the PodGroups that muster-controller makes. It must be called before app.Setup.
func (g *Gangs) IgnoreWorkloads() { g.noWorkloads = true }

// BindThrough makes the members of gangs be bound through the client, instead of that of their profile. It must be
// called before app.Run.
func (g *Gangs) BindThrough(client kubernetes.Interface) { g.bindClient = client }

// waitsForRoom is Backlog.WaitsForRoom, and tells the reporter of the pod. Before PodGroups were read, the stock queue
// decides: nothing in the backlog would be woken.
func (g *Gangs) waitsForRoom(pod *corev1.Pod) bool {
	g.reporter.PodRefused(pod)
	return g.wakes.Load() && g.backlog.WaitsForRoom(pod)
}

// Attach checks that the plugins are enabled at the required extension points of every profile, makes the scheduling
// loop hand out the members of a plan consecutively, and delays their events until their bindings are posted. It must
// be called between app.Setup and app.Run.
func (g *Gangs) Attach(sched *kubescheduler.Scheduler) error {
	if err := kubescheduler.CheckPluginOrder(sched, GateName, Name); err != nil {
		return err
	}
	g.backlog = backlog.New(g.clock, kubescheduler.NewShapes(sched), g.registry)
	g.queue = kubescheduler.Attach(sched, memberSource{g}, kubescheduler.QueueHooks{
		Clock: g.clock, Pods: g.podLister, Gated: g.admits, Observe: g.observe, WaitsForRoom: g.waitsForRoom, Gone: g.backlog.Gone,
	})
	kubescheduler.BeforeLeaving(sched, func(pod *corev1.Pod) {
		if isMember(pod) {
			g.registry.PodLeaves(pod.UID, g.clock.Now())
		}
	})
	kubescheduler.WrapProfiles(sched, kubescheduler.MemberHooks{Member: g.admits, Binding: g.binds.busy, Slot: g.writeSlot})
	for profile := range g.profiles {
		if !g.gated.Has(profile) {
			klog.Background().Info("The profile orders its queue by GangAdmission and does not admit gangs: pods that name a PodGroup are scheduled one by one; enable GangGate and GangAdmission at every extension point to change that", "profile", profile)
		}
	}
	return nil
}

// observe processes an event that the scheduler's cache has processed.
func (g *Gangs) observe(event fwk.ClusterEvent, oldObj, newObj any) {
	g.backlog.Observe(event, oldObj, newObj)
	g.recheckGateOfOwner(oldObj, newObj)
}

// admits reports whether the pod belongs to a gang and to a profile that admits gangs as a whole.
func (g *Gangs) admits(pod *corev1.Pod) bool {
	return isMember(pod) && g.gated.Has(pod.Spec.SchedulerName)
}

// NewGate is the factory of GangGate.
func (g *Gangs) NewGate(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gated.Insert(h.ProfileName())
	g.registry.AddProfile(h.ProfileName())
	return &Gate{registry: g.registry}, nil
}

// NewAdmission is the factory of GangAdmission. It runs once per profile; the arguments must be equal in all of them.
func (g *Gangs) NewAdmission(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.GangAdmissionArgs)
	if !ok {
		return nil, fmt.Errorf("profile %s: arguments of %s are %T, want GangAdmissionArgs", h.ProfileName(), Name, obj)
	}
	if err := validation.ValidateGangAdmissionArgs(field.NewPath("pluginConfig").Key(Name).Child("args"), args); err != nil {
		return nil, err
	}
	profile, err := kubescheduler.ProfileOf(h)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.profiles[h.ProfileName()] = profile
	if g.args == nil {
		g.args = args.DeepCopy()
		g.binds = newBindLimiter(g.clock, int(args.BindParallelism))
		if err := g.connect(ctx, h); err != nil {
			return nil, err
		}
	} else if !reflect.DeepEqual(g.args, args) {
		return nil, fmt.Errorf("profile %s: arguments of %s differ from those of another profile; the profiles of one scheduler share one core, make them equal", h.ProfileName(), Name)
	}
	return &Admission{gangs: g, registry: g.registry, profile: profile, args: g.args, filterCache: kubescheduler.NewFilterCache()}, nil
}

// apply performs the actions that the registry requested. It must not be called while holding a lock that PreEnqueue
// acquires.
func (g *Gangs) apply(logger klog.Logger, e gangs.Effects) {
	if len(e.Dirty) > 0 {
		g.reporter.MarkChanged(e.Dirty...)
	}
	g.cancelPreparation(e.Cancel)
	g.carryOut(logger, e)
	g.reportVacated(logger, e.Vacated)
	if len(e.Activate) == 0 {
		return
	}
	g.queue.ActivateInOrder(logger, g.withoutGated(logger, e.Activate))
}

// reportVacated reports the removal of pods whose reservations have ended. At the time of their deletion the room was
// available only to their replacements.
func (g *Gangs) reportVacated(logger klog.Logger, pods []*corev1.Pod) {
	if len(pods) == 0 {
		return
	}
	g.backlog.ReservationsEnded()
	// For the queue the event of one pod stands for all of them: hints only evaluate that a pod with a node was
	// removed.
	g.queue.RepeatDeletion(logger, pods[0])
}

// wakeReady wakes the refused gangs that recent changes in the cluster may help.
func (g *Gangs) wakeReady(logger klog.Logger) {
	g.wake(logger, g.backlog.Evaluate(logger))
}

func (g *Gangs) wake(logger klog.Logger, r backlog.Ready) {
	g.apply(logger, r.Gangs)
	g.queue.ActivateInOrder(logger, r.Pods)
}

// refuseWithoutNodes records a refusal for the gang of a leader that the scheduler did not try because there are no
// nodes.
func (g *Gangs) refuseWithoutNodes(ctx context.Context, pod *corev1.Pod) {
	logger := klog.FromContext(ctx)
	work, _ := g.registry.BeginAttempt(pod)
	if work == nil {
		return
	}
	a := backlog.Attempt{Gang: work.Gang, Problem: work.Problem, Classes: work.Classes, RefusedBy: func(int) (kubescheduler.Inputs, bool) { return kubescheduler.Inputs{}, true }, Task: work.Task}
	why := podgroup.Refusal{Reason: v2alpha2.ReasonNoNodeMatches, Message: "the cluster has no nodes", NoNodeHelps: podgroup.RequiresLevel(&work.Group.Spec)}
	g.refuse(logger, a, why)
}

// refuse records why there is no plan, and which changes make another attempt worthwhile.
func (g *Gangs) refuse(logger klog.Logger, a backlog.Attempt, why podgroup.Refusal) {
	g.apply(logger, g.backlog.Refuse(logger, a, why))
	g.wakeReady(logger)
}

// recordLeading records that the scheduling loop runs in this process.
func (g *Gangs) recordLeading() {
	g.lead.Do(func() {
		if g.backlog == nil {
			g.end(errNotAttached)
		}
		g.registry.SetLeading()
		close(g.leading)
	})
}

// isLeading reports whether recordLeading was called.
func (g *Gangs) isLeading() bool {
	select {
	case <-g.leading:
		return true
	default:
		return false
	}
}

// isMember reports whether the pod belongs to a gang (docs/decisions, G1).
func isMember(pod *corev1.Pod) bool { return membership.Group(pod) != "" }
