// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/config/validation"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/markkeys"
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
// A scheduler is built with app.WithPlugin(GateName, gangs.NewGate) and app.WithPlugin(Name, gangs.NewAdmission), and then
// given to Attach. Without Attach its process ends before it schedules a gang (docs/decisions, G19).
type Gangs struct {
	clock    clock.WithTickerAndDelayedExecution
	registry *gangstate.Registry
	binds    *bindLimiter
	avoid    avoidedNodes
	released released
	unwinds  unwinds
	rooms    keptRooms
	// committed: a plan was put in force since the loop last waited for bindings (memberSource.Pace). Used only by
	// the scheduling loop.
	committed bool

	leading chan struct{} // closed when this process schedules: it must not write before
	lead    sync.Once
	wakeups *wakeups // nil before Attach

	podLister corelisters.PodLister // of the scheduler's informer; nil until the first NewAdmission

	startAfter <-chan struct{} // nil: immediately
	end        func(error)     // ends the process

	mu       sync.Mutex
	args     *config.GangAdmissionArgs // nil until the first NewAdmission
	reporter *report.Reporter
	keys     *markkeys.Source
	handles  map[string]fwk.Handle // by profile; complete before the scheduler runs
	gates    gates
	gated    sets.Set[string] // profiles with the gate enabled, which therefore admit gangs; complete before the scheduler runs
}

// New returns the shared core of one scheduler.
func New() *Gangs {
	return &Gangs{
		clock: clock.RealClock{},
		end: func(err error) {
			klog.Background().Error(err, "muster: ending the process")
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		},
		registry: gangstate.New(),
		avoid:    avoidedNodes{lasts: avoidFor},
		leading:  make(chan struct{}),
		handles:  map[string]fwk.Handle{},
		gates:    gates{pods: map[types.UID]*corev1.Pod{}},
		gated:    sets.New[string](),
	}
}

var errNotAttached = errors.New("the plugins " + GateName + " and " + Name + " run in a scheduler that was not given to Gangs.Attach: gangs would not be scheduled as a whole; build the scheduler with pkg/scheduler.NewCommand")

// StartAfter makes the informers of gangs start after the channel is closed, instead of immediately. It must be called
// before app.Setup.
func (g *Gangs) StartAfter(ready <-chan struct{}) { g.startAfter = ready }

// Attach checks that the plugins are enabled at the required extension points of every profile, makes the scheduling
// loop hand out the members of a plan consecutively, and delays their events until their bindings are posted. It must
// be called between app.Setup and app.Run.
func (g *Gangs) Attach(sched *scheduler.Scheduler) error {
	if err := kubescheduler.CheckOrder(sched, GateName, Name); err != nil {
		return err
	}
	for _, f := range sched.Profiles {
		if err := kubescheduler.GuardPreemption(f, g.preemptionHooks(f)); err != nil {
			return err
		}
	}
	g.wakeups = newWakeups(g.clock, kubescheduler.NewShapes(sched), g.registry)
	g.wakeups.reserved = g.reserved
	g.wakeups.queue = kubescheduler.Attach(sched, memberSource{g}, kubescheduler.QueueHooks{
		Gated: g.admits, Observe: g.wakeups.observe, WaitsForRoom: g.wakeups.waitsForRoom, Gone: g.wakeups.gone,
	})
	kubescheduler.BeforeLeaving(sched, func(pod *corev1.Pod) {
		if isMember(pod) {
			g.registry.PodLeaves(pod.UID, g.clock.Now())
		}
	})
	kubescheduler.DelayScheduled(sched, isMember, g.binds.busy)
	for profile := range g.handles {
		if !g.gated.Has(profile) {
			klog.Background().Info("The profile orders its queue by GangAdmission and does not admit gangs: pods that name a PodGroup are scheduled one by one; enable GangGate and GangAdmission at every extension point to change that", "profile", profile)
		}
	}
	return nil
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
	f, err := kubescheduler.Framework(h)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handles[h.ProfileName()] = h
	if g.args == nil {
		g.args = args.DeepCopy()
		g.binds = newBindLimiter(g.clock, int(args.BindParallelism))
		if err := g.start(ctx, h); err != nil {
			return nil, err
		}
	} else if !reflect.DeepEqual(g.args, args) {
		return nil, fmt.Errorf("profile %s: arguments of %s differ from those of another profile; the profiles of one scheduler share one core, make them equal", h.ProfileName(), Name)
	}
	return &Admission{gangs: g, registry: g.registry, handle: h, framework: f, args: g.args, filterCache: kubescheduler.NewFilterCache(), tried: map[gangstate.Key]int{}}, nil
}

// apply performs the actions that the registry requested. It must not be called while holding a lock that PreEnqueue
// acquires.
func (g *Gangs) apply(logger klog.Logger, e gangstate.Effects) {
	if len(e.Dirty) > 0 {
		g.reporter.Mark(e.Dirty...)
	}
	g.cancel(e.Cancel)
	g.vacate(logger, e.Vacated)
	if len(e.Activate) == 0 {
		return
	}
	g.activate(logger, g.withoutGated(logger, e.Activate))
}

// wakeReady wakes the refused gangs that recent changes in the cluster may help. before: as in wakeups.look.
func (g *Gangs) wakeReady(logger klog.Logger, before gangstate.Key) {
	g.wake(logger, g.wakeups.look(logger, before))
}

func (g *Gangs) wake(logger klog.Logger, r ready) {
	if len(r.gangs) > 0 {
		g.apply(logger, g.registry.Wake(r.gangs, g.clock.Now()))
		g.wakeups.leaveIdle(r.gangs)
	}
	g.activate(logger, r.pods)
}

// activate moves pods to the active queue, in this order.
func (g *Gangs) activate(logger klog.Logger, pods []*corev1.Pod) {
	if len(pods) > 0 {
		g.wakeups.queue.ActivateInOrder(logger, pods)
	}
}

// refuseWithoutNodes records a refusal for the gang of a leader that the scheduler did not try because there are no
// nodes.
func (g *Gangs) refuseWithoutNodes(ctx context.Context, pod *corev1.Pod) {
	logger := klog.FromContext(ctx)
	work, _ := g.registry.Begin(pod)
	if work == nil {
		return
	}
	a := attempt{key: work.Gang, problem: work.Problem, classes: work.Classes, roomDecides: func(int) (bool, bool) { return true, true }, task: work.Task}
	g.wake(logger, g.wakeups.park(logger, a))
	g.apply(logger, g.registry.Refuse(work.Gang, podgroup.Refusal{Reason: v2alpha2.ReasonNoNodeMatches, Message: "the cluster has no nodes"}, g.clock.Now()))
}

// leads records that the scheduling loop runs in this process.
func (g *Gangs) leads() {
	g.lead.Do(func() {
		if g.wakeups == nil {
			g.end(errNotAttached)
		}
		g.registry.SetLeading()
		close(g.leading)
	})
}

// memberSource provides the members of plans from the registry to the scheduling loop.
type memberSource struct{ g *Gangs }

var _ kubescheduler.MemberSource = memberSource{}

func (s memberSource) Next() *corev1.Pod {
	s.g.leads()
	return s.g.registry.Next()
}

func (s memberSource) Lost(uid types.UID) {
	s.g.apply(klog.Background(), s.g.registry.Abort(uid, gangstate.AbortLate, "a member is not in the scheduling queue", s.g.clock.Now()))
}

func (s memberSource) Popped(uid types.UID) {
	s.g.wakeups.attemptBegins()
	s.g.registry.Popped(uid)
}

// paceLimit bounds one wait for bindings. Binding a gang of 16 takes some 15 ms.
const paceLimit = 50 * time.Millisecond

// Pace implements kubescheduler.MemberSource. Plans are made much faster than bindings are posted. A member that
// waits for its slot occupies a goroutine and the state of its cycle, some 20 KiB; thousands of them accounted for
// most of the scheduler's memory when a large backlog was scheduled. The loop waits once per plan, so that refused
// leaders are not delayed by a gang that is being bound.
func (s memberSource) Pace() {
	if s.g.committed {
		s.g.committed = false
		s.g.binds.settle(paceLimit)
	}
}

// Explained implements kubescheduler.MemberSource. Of a plan that was aborted, only a member that is the cause is reported by
// the stock scheduler; the log has the reason of every abort.
func (s memberSource) Explained(ctx context.Context, pod *corev1.Pod, err error) bool {
	if kubescheduler.NoNodes(err) {
		s.g.refuseWithoutNodes(ctx, pod)
		return true
	}
	return kubescheduler.RejectedBy(err, Name) || err != nil && strings.Contains(err.Error(), gangstate.PlanAborted)
}

func (s memberSource) Failed(uid types.UID) {
	s.g.released.remove(uid)
	s.g.registry.CycleFailed(uid, s.g.clock.Now())
}

func (s memberSource) Unwinding() bool { return s.g.registry.Unwinding() || s.g.released.any() }

// released contains the members whose reservation the plugins have released, but the scheduler's cache possibly has
// not, because the scheduler calls Unreserve first. A plan made in between would be refused although the room is
// about to become free.
type released struct {
	mu   sync.Mutex
	pods sets.Set[types.UID]
}

func (r *released) add(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods == nil {
		r.pods = sets.New[types.UID]()
	}
	r.pods.Insert(uid)
}

func (r *released) remove(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods.Delete(uid)
}

func (r *released) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pods) > 0
}

// isMember reports whether the pod belongs to a gang (docs/decisions, G1).
func isMember(pod *corev1.Pod) bool { return pod.Annotations[v2alpha2.PodGroupAnnotation] != "" }

// avoidNode keeps the gang's plans off the node for a short time.
func (g *Gangs) avoidNode(key gangstate.Key, node string) {
	g.avoid.add(key, node, g.clock.Now())
	// The gang may need this node: then it is refused in the meantime, and must be tried again.
	g.retryAfter(g.avoid.lasts, key)
}

// retryAfter retries the gang when the reason that kept its plans off a node has expired.
func (g *Gangs) retryAfter(d time.Duration, key gangstate.Key) {
	g.clock.AfterFunc(d, func() {
		g.avoid.of(key, g.clock.Now()) // removes expired entries
		g.apply(klog.Background(), g.registry.Retry(key, g.clock.Now()))
	})
}

// avoidedNodes stores, for a short time, nodes that a plan chose and that the real cycle, or the API server, refused,
// so that the next plan of the gang uses other nodes (docs/decisions, G18).
type avoidedNodes struct {
	lasts time.Duration

	mu    sync.Mutex
	nodes map[gangstate.Key]map[string]time.Time // by gang and node: end of the avoidance
}

const avoidFor = 5 * time.Second

func (a *avoidedNodes) add(key gangstate.Key, node string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nodes == nil {
		a.nodes = map[gangstate.Key]map[string]time.Time{}
	}
	if a.nodes[key] == nil {
		a.nodes[key] = map[string]time.Time{}
	}
	a.nodes[key][node] = now.Add(a.lasts)
}

// forget removes the entries of a node that has changed, and returns the gangs that avoided it.
func (a *avoidedNodes) forget(node string) []gangstate.Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []gangstate.Key
	for key, nodes := range a.nodes {
		if _, ok := nodes[node]; ok {
			keys = append(keys, key)
			delete(nodes, node)
		}
	}
	return keys
}

// of returns the nodes to be avoided now, nil if there are none, and removes expired entries.
func (a *avoidedNodes) of(key gangstate.Key, now time.Time) map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out map[string]bool
	for node, until := range a.nodes[key] {
		if now.After(until) {
			delete(a.nodes[key], node)
			continue
		}
		if out == nil {
			out = map[string]bool{}
		}
		out[node] = true
	}
	if len(a.nodes[key]) == 0 {
		delete(a.nodes, key)
	}
	return out
}
