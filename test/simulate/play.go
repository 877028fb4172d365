// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/muster-project/muster/pkg/apis/config/v1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/backfill"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/stock"
	"github.com/muster-project/muster/test/wrappers"
)

// policy says which jobs may start before others.
type policy struct {
	name string
	// strict: none starts before one that came earlier.
	strict bool
	// after is how long a gang waits until it is promised room; 0: it never is.
	after time.Duration
	// ends: pods say how long they run at most; times is how often as long as they do, at most.
	ends  bool
	times float64
	// packed: pods go where most GPUs are in use, as with the built-in profile, and not where least is.
	packed bool
}

var policies = []policy{
	{name: "default", after: v1.DefaultReservationAfter, packed: true},
	{name: "greedy"},
	{name: "fifo", strict: true},
	{name: "reservations", after: reservationAfter},
	{name: "backfill", after: reservationAfter, ends: true, times: 1},
	{name: "backfill-2-10", after: reservationAfter, ends: true, times: 10},
	{name: "packed", packed: true},
	{name: "packed-reservations", after: reservationAfter, packed: true},
	{name: "packed-backfill", after: reservationAfter, ends: true, times: 1, packed: true},
}

// play is one run of a stream. Each job is a PodGroup with its pods, and all of them have one priority.
type play struct {
	ctx      context.Context //nolint:containedctx // of the run
	policy   policy
	stock    *stock.Scheduler
	registry *gangs.Registry
	filters  *kubescheduler.FilterCache
	shapes   *kubescheduler.Shapes
	reserved *reservations.View // for the calls of this moment
	vacated  bool               // room that was reserved has become free for all
	random   *rand.Rand

	now      time.Time
	ticked   time.Time
	runs     []*run // in the order in which they come
	come     int    // of runs: have come
	started  int    // of runs: the first ones that have all started
	byGang   map[gangs.Key]*run
	running  []*run                    // by end
	active   map[types.UID]*corev1.Pod // leaders in the queue
	free     map[string]int            // GPUs by node
	used     int                       // GPUs of all nodes
	bound    map[types.UID]bool        // pods on nodes
	observed *figures
}

// run is a job in a run.
type run struct {
	job
	index              int
	key                gangs.Key
	pods               []*corev1.Pod
	began              bool
	submit, start, end time.Time
}

const (
	// reservationAfter is that of policies with reservations, unless others are asked for.
	reservationAfter = 5 * time.Minute
	// tick is how often the registry's timers are looked at while jobs wait.
	tick = time.Minute
	// patience is how many ticks pass, while nothing runs and nothing comes, until jobs that wait never start.
	patience = 100
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// simulate plays jobs on so many nodes until all have ended.
func simulate(ctx context.Context, jobs []job, nodes int, policy policy) (*figures, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &play{
		ctx: ctx, policy: policy, registry: gangs.New(), filters: kubescheduler.NewFilterCache(), now: epoch, ticked: epoch,
		random: rand.New(rand.NewPCG(1, 0)), byGang: map[gangs.Key]*run{}, active: map[types.UID]*corev1.Pod{}, free: map[string]int{}, bound: map[types.UID]bool{}, observed: newFigures(jobs, nodes*gpusPerNode),
	}
	var objects []*corev1.Node
	for i := range nodes {
		node := wrappers.MakeNode(fmt.Sprintf("n%04d", i)).GPUs(gpusPerNode).Obj()
		objects, p.free[node.Name] = append(objects, node), gpusPerNode
	}
	var err error
	scores := stock.LeastAllocated
	if policy.packed {
		scores = stock.GPUPacking
	}
	if p.stock, err = stock.New(ctx, scores, objects); err != nil {
		return nil, err
	}
	p.shapes = kubescheduler.NewShapes(p.stock.Scheduler)
	p.registry.Configure(gangs.Options{
		Amount: kubescheduler.AmountOf, ReservationAfter: policy.after, ReservationTimeout: time.Hour,
		MaxReservations: gangs.MaxReservations{OfPriority: 1, OfNamespace: 4, InAll: 4},
	})
	p.registry.AddProfile(corev1.DefaultSchedulerName)
	p.apply(p.registry.SetSynced(p.now))
	p.registry.SetLeading()
	for i, j := range jobs {
		r := &run{job: j, index: i, key: gangs.Key{Namespace: "sim", Name: fmt.Sprintf("job-%06d", i)}, submit: epoch.Add(seconds(j.submit))}
		p.runs, p.byGang[r.key] = append(p.runs, r), r
	}
	for idle := 0; p.come < len(p.runs) || p.started < len(p.runs) || len(p.running) > 0; {
		if idle = idle + 1; p.come < len(p.runs) || len(p.running) > 0 {
			idle = 0
		}
		if idle > patience {
			first := p.runs[p.started]
			return nil, fmt.Errorf("%s with %d pods of %d GPUs never starts", first.key, first.job.pods, first.gpus)
		}
		if err := p.step(); err != nil {
			return nil, fmt.Errorf("after %s: %w", p.now.Sub(epoch), err)
		}
	}
	p.observed.finish(p.runs)
	return p.observed, nil
}

// step goes to the next moment at which something happens.
func (p *play) step() error {
	next := time.Time{}
	consider := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if p.come < len(p.runs) {
		consider(p.runs[p.come].submit)
	}
	if len(p.running) > 0 {
		consider(p.running[0].end)
	}
	if p.started < p.come {
		consider(p.ticked.Add(tick))
	}
	p.observed.observe(p.now.Sub(epoch).Seconds(), next.Sub(epoch).Seconds(), p.used, p.held())
	p.now = next
	for len(p.running) > 0 && !p.running[0].end.After(p.now) {
		if err := p.finish(p.running[0]); err != nil {
			return err
		}
		p.running = p.running[1:]
	}
	for p.come < len(p.runs) && !p.runs[p.come].submit.After(p.now) {
		p.submit(p.runs[p.come])
		p.come++
	}
	if !p.now.Before(p.ticked.Add(tick)) {
		p.ticked = p.now
		p.apply(p.registry.Tick(p.now))
	}
	if err := p.wake(); err != nil {
		return err
	}
	for leader := p.first(); leader != nil; leader = p.first() {
		if err := p.cycle(leader); err != nil {
			return err
		}
	}
	return nil
}

// held returns the GPUs that no pod uses and that are kept for jobs that wait.
func (p *play) held() int {
	sum := 0
	for node, list := range p.registry.Reservations().ByNode() {
		kept := int64(0)
		for _, x := range list {
			rest := x.Rest(func(uid types.UID) bool { return p.bound[uid] })
			kept += rest.Resources[wrappers.GPUResource]
		}
		sum += min(p.free[node], int(kept))
	}
	return sum
}

// submit creates the PodGroup and the pods of a job. CPU and memory are in proportion to the GPUs.
func (p *play) submit(r *run) {
	p.apply(p.registry.SetGroup(wrappers.MakePodGroup(r.key.Name, r.key.Namespace).MinMember(int32(r.job.pods)).Obj(), p.now))
	share := func(all int64) resource.Quantity {
		return *resource.NewQuantity(all*int64(r.gpus)/gpusPerNode, resource.BinarySI)
	}
	runtime := r.duration
	if p.policy.times > 1 {
		runtime *= 2 + (p.policy.times-2)*p.random.Float64()
	}
	for i := range r.job.pods {
		name := fmt.Sprintf("%s-%d", r.key.Name, i)
		pod := wrappers.MakePod(name, r.key.Namespace).UID(name).Gang(r.key.Name).SchedulerName(corev1.DefaultSchedulerName).GPUs(int64(r.gpus)).
			Resource(corev1.ResourceCPU, share(128)).Resource(corev1.ResourceMemory, share(1<<40)).Obj()
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		if p.policy.ends {
			pod.Spec.ActiveDeadlineSeconds = new(int64(math.Ceil(runtime)))
		}
		r.pods = append(r.pods, pod)
		p.apply(p.registry.SetPod(pod, p.now))
	}
}

// finish ends a job: its pods succeed, and are deleted with their PodGroup.
func (p *play) finish(r *run) error {
	for _, pod := range r.pods {
		ended := pod.DeepCopy()
		ended.Status.Phase = corev1.PodSucceeded
		p.apply(p.registry.SetPod(ended, p.now))
		if err := p.stock.Remove(pod); err != nil {
			return err
		}
		delete(p.bound, pod.UID)
		p.free[pod.Spec.NodeName] += r.gpus
	}
	p.used -= r.size()
	p.registry.RecordRoomGrowth()
	p.apply(p.registry.RemoveGroup(r.key, p.now))
	for _, pod := range r.pods {
		p.apply(p.registry.RemoveSucceededPod(pod.UID, p.now))
	}
	r.pods = nil
	delete(p.byGang, r.key)
	return nil
}

// apply lets the leaders of gangs into the queue.
func (p *play) apply(e gangs.Effects) {
	p.vacated = p.vacated || len(e.Vacated) > 0
	for _, pod := range e.Activate {
		if ok, _ := p.registry.MayEnterQueue(pod); ok {
			p.active[pod.UID] = pod
		}
	}
}

// wake lets refused gangs be tried again for which there may be room by now.
func (p *play) wake() error {
	raised, err := p.shapes.UpdateNodes()
	if err != nil {
		return err
	}
	var list []gangs.Shape
	for shape := range raised.Shapes {
		list = append(list, shape)
	}
	if p.vacated {
		list, p.vacated = p.registry.AwaitedShapes(), false
	}
	p.reserved = p.registry.Reservations()
	p.apply(p.registry.RetryWaiting(list, nil, p.now))
	return nil
}

// first returns the first leader in the queue that the policy lets start. nil: none.
func (p *play) first() (first *corev1.Pod) {
	if p.policy.strict {
		if p.started == p.come {
			return nil
		}
		if first = p.registry.Leader(p.runs[p.started].key); first == nil {
			return nil
		}
		return p.active[first.UID]
	}
	for _, pod := range p.active {
		if first == nil || cmp.Or(p.registry.RankOf(pod, p.now).Compare(p.registry.RankOf(first, p.now)), cmp.Compare(pod.Name, first.Name)) < 0 {
			first = pod
		}
	}
	return first
}

func (p *play) runOf(pod *corev1.Pod) *run {
	return p.byGang[gangs.Key{Namespace: pod.Namespace, Name: pod.Annotations[v2alpha2.PodGroupAnnotation]}]
}

// cycle is the scheduling cycle of a leader, as the plugin has it, and those of the members of its plan.
func (p *play) cycle(leader *corev1.Pod) error {
	r := p.runOf(leader)
	delete(p.active, leader.UID)
	p.registry.RecordPopped(leader.UID)
	if err := p.wake(); err != nil {
		return err
	}
	var work *gangs.Work
	if !p.registry.MustYield(leader, p.now) {
		work, _ = p.registry.BeginAttempt(leader)
	}
	if work == nil {
		p.registry.RecordCycleFailed(leader.UID, p.now)
		p.apply(p.registry.RecordRequeued(leader.UID, p.now))
		return nil
	}
	nodes, err := p.stock.Nodes()
	if err != nil {
		return err
	}
	world, err := kubescheduler.NewSnapshot(p.ctx, p.stock.Profile, nodes, work.Classes, kubescheduler.Options{
		Cache: p.filters, Pods: []int{len(work.Pods)}, Now: p.now, Reserved: p.registry.Reservations(), Asker: work.Asker(), Leaves: work.Leaves(),
	})
	if err != nil {
		return err
	}
	placements, short := placement.Minimum(work.Problem, world, placement.Budget{Unexplained: true})
	if short != nil {
		p.promise(work, world)
		return p.refuse(work)
	}
	return p.start(r, work, placements)
}

// promise chooses room for a gang that does not fit, if it is to be promised some.
func (p *play) promise(work *gangs.Work, world *kubescheduler.Snapshot) {
	if s := p.registry.BeginPromise(work, world, p.now); s != nil {
		world.AskForLater()
		promise, keep := backfill.Revise(work.Required(), world, s.Held, s.Pods, p.now, placement.Budget{})
		p.apply(p.registry.RecordPromise(work, s, promise, keep, p.now))
	}
	p.reserved = p.registry.Reservations()
}

// refuse records that a gang does not fit.
func (p *play) refuse(work *gangs.Work) error {
	shape, err := p.shapes.TrackShape(p.ctx, work.Classes[0])
	if err != nil {
		return err
	}
	asker := work.Asker()
	p.apply(p.registry.RecordGangRefused(work.Gang, podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs}, gangs.Wait{
		Needs:   []gangs.Need{{Shape: shape, Pods: len(work.Pods)}},
		Fits:    func(gangs.Shape) int { return shape.FittingPods() - p.shapes.Reserved(shape, p.reserved, asker) },
		Release: func() { p.shapes.ReleaseShape(shape) },
	}, p.now))
	return nil
}

// start puts a plan in force, and binds its pods.
func (p *play) start(r *run, work *gangs.Work, placements []placement.Placement) error {
	if r.began {
		return fmt.Errorf("%s starts twice", r.key)
	}
	if plan, why := p.registry.CommitPlan(work, placements, p.now); plan == nil {
		return fmt.Errorf("the plan of %s is stale: %s", r.key, why)
	}
	var bound []*corev1.Pod
	for pod := p.registry.NextMember(); pod != nil; pod = p.registry.NextMember() {
		node, _ := p.registry.PlannedNode(pod.UID)
		if err := p.registry.AssumeMember(pod.UID, node, p.now); err != nil {
			return fmt.Errorf("assuming %s: %w", pod.Name, err)
		}
		pod = pod.DeepCopy()
		pod.Spec.NodeName = node
		pod.Status.StartTime = &metav1.Time{Time: p.now}
		p.bound[pod.UID] = true
		bound = append(bound, pod)
		if p.free[node] -= r.gpus; p.free[node] < 0 {
			return fmt.Errorf("%s has too many pods when %s starts", node, r.key)
		}
	}
	if len(bound) != r.job.pods {
		return fmt.Errorf("%s starts with %d of %d pods", r.key, len(bound), r.job.pods)
	}
	// None returns before the last one has arrived.
	errs := make([]error, len(bound))
	var group sync.WaitGroup
	for i, pod := range bound {
		group.Go(func() { errs[i] = p.registry.WaitAtBarrier(p.ctx, pod.UID, time.Hour) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, pod := range bound {
		p.apply(p.registry.RecordPosted(pod.UID, p.now))
	}
	for _, pod := range bound {
		p.apply(p.registry.SetPod(pod, p.now))
		if err := p.stock.Bind(pod); err != nil {
			return err
		}
	}
	p.used += r.size()
	r.pods, r.began, r.start, r.end = bound, true, p.now, p.now.Add(seconds(r.duration))
	at, _ := slices.BinarySearchFunc(p.running, r, func(a, b *run) int { return cmp.Or(a.end.Compare(b.end), cmp.Compare(a.index, b.index)) })
	p.running = slices.Insert(p.running, at, r)
	for p.started < len(p.runs) && p.runs[p.started].began {
		p.started++
	}
	return nil
}
