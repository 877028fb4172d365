// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evict"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/report"
)

// Offline is what the plugins decide with, for a cluster whose objects are in memory: the registry, the planner on the
// stock filters, and the search for victims. It is a scheduler that has just been restarted, without a queue and a
// loop: gangs are planned when Try is called, and nothing is written. It is not safe for concurrent use.
type Offline struct {
	gangs      *Gangs
	stock      *kubescheduler.Offline
	admissions map[string]*Admission // by profile
	nodes      []fwk.NodeInfo        // nil: they have changed
	marked     map[string][]gangs.MarkedPod
}

// OfflineInput is a cluster.
type OfflineInput struct {
	Config *kubescheduler.Configuration // of muster-scheduler
	// Objects are what muster-scheduler reads: kubescheduler.OfflineKinds, PodGroups and Topologies. They are not
	// changed.
	Objects []runtime.Object
	// UnreadTopologies is why Topologies were not read, as the end of a sentence; "": they were.
	UnreadTopologies string
	// Read is when the objects were read.
	Read time.Time
}

// settled is how long before the objects were read the Offline has observed them all: no pod has just arrived.
const settled = time.Minute

// offlineDeadline is the time for a plan, the longest that the arguments allow: there is no loop that it holds up, and
// a machine that is busy with other things must not change the answer.
const offlineDeadline = 10 * time.Second

// NewOffline returns the decisions for a cluster. It uses resources until ctx ends.
func NewOffline(ctx context.Context, in OfflineInput) (*Offline, error) {
	g := New()
	o := &Offline{gangs: g, admissions: map[string]*Admission{}, marked: map[string][]gangs.MarkedPod{}}
	g.clock = readClock{begun: g.clock.Now(), read: in.Read}
	var topologies []*topologyv1alpha1.Topology
	for _, object := range in.Objects {
		if t, ok := object.(*topologyv1alpha1.Topology); ok {
			topologies = append(topologies, t)
		}
	}
	var err error
	if g.topologies, err = report.FixedTopologies(topologies, in.UnreadTopologies); err != nil {
		return nil, err
	}
	g.connect = func(ctx context.Context, h fwk.Handle) error {
		g.useListers(h)
		g.args.PlanDeadline = metav1.Duration{Duration: offlineDeadline}
		g.configureRegistry(klog.FromContext(ctx), h.SharedInformerFactory().Core().V1().Nodes().Lister(), nil)
		return nil
	}
	factories := map[string]kubescheduler.PluginFactory{GateName: g.NewGate, kubescheduler.GPUPackingName: kubescheduler.NewGPUPacking, Name: func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		plugin, err := g.NewAdmission(ctx, args, h)
		if pl, ok := plugin.(*Admission); ok {
			o.admissions[h.ProfileName()] = pl
		}
		return plugin, err
	}}
	if o.stock, err = kubescheduler.NewOffline(ctx, in.Config, factories, in.Objects); err != nil {
		return nil, err
	}
	if len(o.admissions) == 0 {
		return nil, errors.New("no profile of the scheduler's configuration has " + Name + ": it schedules no gangs")
	}
	o.load(in)
	return o, nil
}

// load passes the objects to the registry.
func (o *Offline) load(in OfflineInput) {
	registry, now := o.gangs.registry, in.Read.Add(-settled)
	for _, object := range in.Objects {
		if group, ok := object.(*v2alpha2.PodGroup); ok {
			registry.SetGroup(group, now)
		}
	}
	for _, object := range in.Objects {
		pod, ok := object.(*corev1.Pod)
		if !ok || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		registry.SetPod(pod, now)
		if plan, ok := evict.PlanOf(pod); ok {
			o.marked[plan] = append(o.marked[plan], gangs.MarkedPod{Pod: pod, Witness: evict.IsWitness(pod)})
		}
	}
	registry.SetSynced(now)
	registry.SetLeading()
	for _, recorded := range registry.RecordedEvictions() {
		if _, ok := registry.RestorePreemption(recorded.Gang, recorded.Plan, o.marked[recorded.Plan], now); ok {
			delete(o.marked, recorded.Plan)
		}
	}
	registry.AbandonedEvictions(o.marked, now)
	registry.Tick(in.Read)
}

// Registry returns the gangs.
func (o *Offline) Registry() *gangs.Registry { return o.gangs.registry }

// Facts returns what is known about a gang, as for its status. false: it is not known.
func (o *Offline) Facts(key gangs.Key) (podgroup.Facts, bool) { return o.gangs.registry.Facts(key) }

// Now is the time at which the objects were read, and what has passed since the Offline was made.
func (o *Offline) Now() time.Time { return o.gangs.clock.Now() }

// Nodes returns the nodes with their pods, in the order of the scheduler.
func (o *Offline) Nodes() ([]fwk.NodeInfo, error) {
	var err error
	if o.nodes == nil {
		o.nodes, err = o.stock.Nodes()
	}
	return o.nodes, err
}

// SetNode adds a node, or replaces that of its name.
func (o *Offline) SetNode(node *corev1.Node) {
	o.nodes = nil
	o.stock.SetNode(node)
}

// RemoveNode removes a node; pods on it stay known to the registry.
func (o *Offline) RemoveNode(node *corev1.Node) error {
	o.nodes = nil
	return o.stock.RemoveNode(node)
}

// FreeRoom takes pods off their nodes. The registry is not told, so that no room is kept for their replacements.
func (o *Offline) FreeRoom(pods ...*corev1.Pod) error {
	o.nodes = nil
	for _, pod := range pods {
		if err := o.stock.RemovePod(pod); err != nil {
			return err
		}
	}
	return nil
}

// TakeRoom reverses FreeRoom.
func (o *Offline) TakeRoom(pods ...*corev1.Pod) error {
	o.nodes = nil
	for _, pod := range pods {
		if err := o.stock.AddPod(pod); err != nil {
			return err
		}
	}
	return nil
}

// SetGroup adds a PodGroup, or replaces that of its name. Its generation must differ from before if it is to be tried
// again.
func (o *Offline) SetGroup(group *v2alpha2.PodGroup) { o.gangs.registry.SetGroup(group, o.Now()) }

// SetPod adds a pod that waits, or replaces that of its UID.
func (o *Offline) SetPod(pod *corev1.Pod) { o.gangs.registry.SetPod(pod, o.Now().Add(-settled)) }

// SetClaim adds a ResourceClaim, or replaces that of its name.
func (o *Offline) SetClaim(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	return o.stock.SetClaim(ctx, claim)
}

// Replace removes a pod that was on a node, and has ended, and adds one that its controller creates instead; nil: it
// creates none.
func (o *Offline) Replace(ended, by *corev1.Pod) {
	registry := o.gangs.registry
	registry.RemovePod(ended.UID, o.Now())
	registry.RemoveFailedPod(ended.UID, o.Now()) // it does not count any longer
	if by != nil {
		o.SetPod(by)
	}
}

// Outcome is what an attempt to plan a gang leads to.
type Outcome struct {
	// Work is what was planned. nil: nothing can be planned now, for the reason in Idle.
	Work *gangs.Work
	Idle string
	// Placements are the nodes of the pods. nil: there is no plan.
	Placements []placement.Placement
	// Short is what the minimum lacks; nil: there is a plan, or the attempt was not for the minimum, or failed earlier.
	Short *placement.Shortfall
	// Refusal is why there is no plan. Its Message is empty unless Options.Explain. zero: there is a plan.
	Refusal podgroup.Refusal
	// Preempting are the pods of lower priority that would end for it, and where it would be. nil: none, or the search
	// was not asked for.
	Preempting *gangs.Preempting
	// Waits: it would start on the room of pods that are ending, or of plans of lower priority.
	Waits bool
	// Cut: the time was over before it was certain that there is no plan, or no victims.
	Cut bool

	claims  []kubescheduler.SharedClaim // that get the devices of the plan
	profile kubescheduler.Profile
}

// Starts reports whether the gang would start, or make others end so that it starts.
func (x *Outcome) Starts() bool { return len(x.Placements) > 0 || x.Preempting != nil || x.Waits }

// Options define how much an attempt is to find out.
type Options struct {
	Explain bool // why there is no plan
	Preempt bool // whether pods of lower priority would end
	// Record: Facts contain the refusal afterwards.
	Record bool
}

// Try attempts to plan a gang as its leader's scheduling cycle would. What it finds is not put in force.
func (o *Offline) Try(ctx context.Context, key gangs.Key, opts Options) (*Outcome, error) {
	nodes, err := o.Nodes()
	if err != nil {
		return nil, err
	}
	registry := o.gangs.registry
	facts, ok := registry.Facts(key)
	if !ok || facts.Group == nil {
		return &Outcome{Idle: "there is no PodGroup of this name"}, nil
	}
	again := facts.Group.DeepCopy()
	again.Generation++ // it is tried whatever an earlier attempt has found
	registry.SetGroup(again, o.Now())
	for range 2 {
		leader := registry.Leader(key)
		if leader == nil {
			return &Outcome{Idle: "nothing is to be planned"}, nil
		}
		registry.MayEnterQueue(leader)
		registry.RecordPopped(leader.UID)
		work, why := registry.BeginAttempt(leader)
		if work == nil {
			return &Outcome{Idle: why}, nil
		}
		pl := o.admissions[leader.Spec.SchedulerName]
		if pl == nil {
			return nil, fmt.Errorf("planning %s: there is no profile %s", key, leader.Spec.SchedulerName)
		}
		if gated := pl.gatedByOthers(ctx, work); len(gated) > 0 {
			reasons := map[types.UID]string{}
			for pod, why := range gated {
				reasons[pod.UID] = why
			}
			registry.SetGates(reasons, o.Now())
			continue
		}
		return o.try(ctx, pl, work, nodes, opts), nil
	}
	return &Outcome{Idle: "its pods are gated"}, nil
}

// try is what a cycle does with the work.
func (o *Offline) try(ctx context.Context, pl *Admission, work *gangs.Work, nodes []fwk.NodeInfo, opts Options) *Outcome {
	registry, start := o.gangs.registry, o.Now()
	out := &Outcome{Work: work}
	defer func() {
		why := out.Refusal
		why.Reason = cmp.Or(why.Reason, v2alpha2.ReasonBehindInQueue)
		registry.RecordGangRefused(work.Gang, why, gangs.Wait{}, o.Now())
		if opts.Record && out.Preempting != nil {
			registry.RecordPreemption(work, *out.Preempting, o.Now())
		}
	}()
	snapshot, limit, refused := pl.prepare(ctx, work, nodes, start)
	if refused != nil {
		out.Refusal = refused.why
		return out
	}
	defer deallocateOwn(ctx, pl.profile, work.Pods...)
	budget := placement.Budget{
		Placements: int(pl.args.PlanBudget), Expired: limit.isOver, PreferencesExpired: limit.preferencesExpired, Unexplained: !opts.Explain,
	}
	out.Placements, out.Short, out.Cut = pl.findNodes(work, snapshot, budget)
	if len(out.Placements) > 0 {
		if err := shareClaims(ctx, pl.profile, work, snapshot, out.Placements); err != nil {
			out.Placements, out.Refusal = nil, podgroup.Refusal{Reason: v2alpha2.ReasonClaimsNotReady, Message: err.Error()}
		}
		out.Short, out.Cut = nil, false
		planned, on := make([]*corev1.Pod, len(out.Placements)), make([]string, len(out.Placements))
		for i, p := range out.Placements {
			planned[i], on[i] = work.Pods[p.Pod.Index], p.Node
		}
		out.claims, out.profile = append(snapshot.SharedClaims(planned), snapshot.OwnClaims(planned, on)...), pl.profile
		return out
	}
	out.Refusal.Reason = v2alpha2.ReasonFragmented // of an attempt that is not explained
	if opts.Explain {
		out.Refusal = *pl.explain(work, snapshot, out.Short)
	}
	if opts.Preempt && !out.Cut {
		o.searchVictims(ctx, pl, work, snapshot, limit, out, opts.Record)
	}
	return out
}

// searchVictims finds out whether pods of lower priority would end for the work.
func (o *Offline) searchVictims(ctx context.Context, pl *Admission, work *gangs.Work, snapshot *kubescheduler.Snapshot, limit *deadline, out *Outcome, record bool) {
	registry, now := o.gangs.registry, o.Now()
	step, _ := registry.NextPreemptionStep(work, now)
	if step == gangs.PreemptNothing {
		return
	}
	s, decision, result := pl.searchVictims(klog.FromContext(ctx), work, snapshot, limit, step, now)
	switch result {
	case decided:
		p := s.describe(decision)
		out.Preempting = &p
	case unneeded, aborts:
		out.Waits = true
	case cut:
		out.Cut = true
	case hopeless:
		if record {
			registry.RecordHopeless(work.Gang, s.why, false, 0, now)
		}
	}
}

// Start binds the pods of a plan, so that it takes its room, and its devices, from then on.
func (o *Offline) Start(ctx context.Context, x *Outcome) error {
	for i := range x.claims {
		if err := x.claims[i].ReserveDevices(ctx, x.profile, nil); err != nil {
			return err
		}
	}
	for _, p := range x.Placements {
		bound := x.Work.Pods[p.Pod.Index].DeepCopy()
		bound.Spec.NodeName = p.Node
		if err := o.TakeRoom(bound); err != nil {
			return err
		}
		o.gangs.registry.SetPod(bound, o.Now())
	}
	return nil
}

// VictimsOf returns the pods that end for the gang of the outcome.
func VictimsOf(x *Outcome) []evictions.Victim {
	if x.Preempting == nil {
		return nil
	}
	return x.Preempting.Victims
}

// readClock is a clock that begins at the time at which objects were read.
type readClock struct {
	clock.RealClock
	begun, read time.Time
}

// Now implements clock.PassiveClock.
func (c readClock) Now() time.Time { return c.read.Add(c.RealClock.Since(c.begun)) }

// Since implements clock.PassiveClock.
func (c readClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
