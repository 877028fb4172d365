// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/wrappers"
)

// Options of a cluster.
type Options struct {
	// WithoutControllers runs the cluster without muster-controller.
	WithoutControllers bool
	// Nodes exist from the beginning.
	Nodes []*corev1.Node
	// Seed determines the order of steps. 0: the fixed order.
	Seed int64
	// Interleaved lets the other controllers take steps before each write of a pass. Otherwise nothing else happens
	// during a pass.
	Interleaved bool
	// Check, if not nil, is called after every step; its error fails the test.
	Check func(*Cluster) error
}

// Cluster is a simulated cluster. It is used by one goroutine.
type Cluster struct {
	// API is the API server, for users and tests.
	API *API
	// Clock is the virtual clock. Advance moves it.
	Clock *clocktesting.FakeClock
	// Kubelet runs the pods.
	Kubelet *Kubelet
	// Timeline records the events of the cluster.
	Timeline *Timeline
	// Steps counts the steps taken so far, Crashes the crashes of the controllers.
	Steps, Crashes int

	t         testing.TB
	options   Options
	random    *rand.Rand
	scheduler *scheduler
	process   *process
	passing   *controllerQueue // the controller of the current pass; nil: none is under way
	nested    sync.Mutex       // held while the other controllers take steps before a write
	paused    bool             // the controllers stand still
	broken    error            // the first error of Options.Check
	last      []string         // names of the latest steps
}

// step is a step that the cluster can take next.
type step struct {
	name string
	do   func() error
}

// epoch is the time at which every cluster begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	// stepLimit bounds the steps at one moment; more of them are treated as a loop.
	stepLimit = 100_000
	// kept is the number of steps that a failure shows, told the number of lines of the timeline.
	kept, told = 40, 400
)

// New returns a new cluster. Pods start a second after they are bound, become ready two seconds later, and take a
// second to terminate.
func New(t testing.TB, options Options) *Cluster {
	t.Helper()
	c := &Cluster{t: t, options: options, Clock: clocktesting.NewFakeClock(epoch)}
	if options.Seed != 0 {
		c.random = rand.New(rand.NewSource(options.Seed))
	}
	c.API = NewAPI(c.Clock)
	c.Timeline = newTimeline(c.API, epoch)
	for _, node := range options.Nodes {
		c.Create(node.DeepCopy())
	}
	c.Kubelet = newKubelet(c.API)
	c.Kubelet.StartAfter, c.Kubelet.ReadyAfter, c.Kubelet.Linger = time.Second, 2*time.Second, time.Second
	c.scheduler = newScheduler(c.API)
	c.start()
	t.Cleanup(func() {
		if c.process != nil {
			c.process.end()
		}
	})
	return c
}

// start starts muster-controller.
func (c *Cluster) start() {
	c.t.Helper()
	if c.options.WithoutControllers {
		return
	}
	var err error
	if c.process, err = start(c.API, c.Timeline, c.lease); err != nil {
		c.t.Fatal(err)
	}
	if c.options.Interleaved {
		c.process.before = c.interleave
	}
}

// interleave lets the controllers that are not passing take steps in the middle of a pass, until none is possible.
func (c *Cluster) interleave() {
	if !c.nested.TryLock() {
		return // a write of such a step, or one that the pass makes in parallel
	}
	defer c.nested.Unlock()
	for range stepLimit {
		steps := c.deliveries()
		for _, q := range c.process.controllers {
			if q != c.passing && len(steps) == 0 {
				steps = c.passesOf(q)
			}
		}
		if len(steps) == 0 {
			return
		}
		name := "in between: " + steps[0].name
		c.note(name)
		_ = steps[0].do() // passes and deliveries return no error
		c.check(name)
	}
}

// check records the first error of Options.Check. Only the test's goroutine may fail the test, and writes of a pass are
// made by others.
func (c *Cluster) check(step string) {
	if c.options.Check == nil || c.broken != nil {
		return
	}
	if err := c.options.Check(c); err != nil {
		c.broken = fmt.Errorf("after %s: %w", step, err)
	}
}

// Nodes returns nodes n0, n1, ... that have GPUs.
func Nodes(count int, gpus int64) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range count {
		nodes = append(nodes, wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(gpus).Obj())
	}
	return nodes
}

// steps returns the steps that are possible now. In the fixed order: only the first of them.
func (c *Cluster) steps() []step {
	var steps []step
	for _, of := range []func() []step{c.deliveries, c.passes, c.scheduler.steps, c.kubeletSteps, c.API.garbage} {
		steps = append(steps, of()...)
		if c.random == nil && len(steps) > 0 {
			return steps[:1]
		}
	}
	return steps
}

func (c *Cluster) deliveries() []step {
	if c.process == nil || c.paused {
		return nil
	}
	c.process.cache.settle()
	var steps []step
	for _, gvk := range c.process.cache.waiting() {
		steps = append(steps, step{"cache: shows a " + gvk.Kind, func() error {
			c.process.cache.deliver(gvk)
			return nil
		}})
	}
	return steps
}

func (c *Cluster) passes() []step {
	if c.process == nil || c.paused {
		return nil
	}
	var steps []step
	for _, q := range c.process.controllers {
		steps = append(steps, c.passesOf(q)...)
	}
	return steps
}

// passesOf returns the passes of one controller.
func (c *Cluster) passesOf(q *controllerQueue) []step {
	var steps []step
	for _, r := range q.queue.ready() {
		steps = append(steps, step{fmt.Sprintf("%s: %s", q.name, r.Name), func() error {
			if c.passing == nil {
				c.passing = q
				defer func() { c.passing = nil }()
			}
			if err := q.run(context.Background(), r); err != nil && !errors.Is(err, errCrashed) {
				c.note(fmt.Sprintf("%s: %s failed: %v", q.name, r.Name, err)) // retried, as it is in a cluster
			}
			return nil
		}})
	}
	return steps
}

func (c *Cluster) kubeletSteps() []step {
	var steps []step
	for _, a := range c.Kubelet.actions() {
		if !a.at.After(c.Clock.Now()) {
			steps = append(steps, a.step)
		}
	}
	return steps
}

// Step takes one step, if one is possible without moving the clock.
func (c *Cluster) Step() bool {
	c.t.Helper()
	steps := c.steps()
	if len(steps) == 0 {
		return false
	}
	next := steps[0]
	if c.random != nil {
		next = steps[c.random.Intn(len(steps))]
	}
	c.Steps++
	c.note(next.name)
	if err := next.do(); err != nil {
		c.Fatalf("%s: %v", next.name, err)
	}
	c.Timeline.endStep()
	if c.process != nil && c.process.crashed.Load() {
		c.Restart()
	}
	if c.check(next.name); c.broken != nil {
		c.Fatalf("%v", c.broken)
	}
	return true
}

// note adds a line to the latest steps.
func (c *Cluster) note(line string) {
	if c.last = append(c.last, line); len(c.last) > 2*kept {
		c.last = c.last[kept:]
	}
}

// Settle takes steps until none is possible without moving the clock.
func (c *Cluster) Settle() {
	c.t.Helper()
	for range stepLimit {
		if !c.Step() {
			return
		}
	}
	c.Fatalf("there is no end of steps at one moment")
}

// Advance settles the cluster, and then moves the clock by d, with all steps that become due until then.
func (c *Cluster) Advance(d time.Duration) {
	c.t.Helper()
	end := c.Clock.Now().Add(d)
	for {
		c.Settle()
		next, ok := c.next()
		if !ok || next.After(end) {
			break
		}
		c.moveTo(next)
	}
	c.moveTo(end)
	c.Settle()
}

// moveTo moves the clock. It does not move it back.
func (c *Cluster) moveTo(to time.Time) {
	if to.After(c.Clock.Now()) {
		for at := c.Clock.Now(); c.process != nil && !c.paused && at.Before(to); at = at.Add(time.Second) {
			c.process.pulse.Beat(at)
		}
		c.Clock.SetTime(to)
	}
	if at, ok := c.scheduler.next(); ok && !at.After(c.Clock.Now()) {
		c.scheduler.tick(c.Clock.Now())
	}
}

// next returns the earliest time at which a step becomes due.
func (c *Cluster) next() (next time.Time, ok bool) {
	consider := func(at time.Time) {
		if !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	if c.process != nil && !c.paused {
		for _, q := range c.process.controllers {
			if at, waits := q.queue.next(); waits {
				consider(at)
			}
		}
	}
	if actions := c.Kubelet.actions(); len(actions) > 0 {
		consider(actions[0].at)
	}
	if at, waits := c.scheduler.next(); waits {
		consider(at)
	}
	return next, ok
}

// Restart ends the controllers' process, like a crash, and starts a new one with empty memory.
func (c *Cluster) Restart() {
	c.t.Helper()
	c.process.end()
	c.Crashes++
	c.Timeline.say("muster-controller restarts")
	c.start()
}

// CrashAfterWrites makes the controllers crash in place of a write, after n further writes.
func (c *Cluster) CrashAfterWrites(n int) { c.process.writesLeft.Store(int64(n)) }

// RefuseWrite makes one write of the controllers a conflict, after n further writes, as if another client had changed
// the object at the last moment.
func (c *Cluster) RefuseWrite(n int) { c.process.acceptsLeft.Store(int64(n)) }

// RefusesWrite reports whether the write of RefuseWrite is still to come.
func (c *Cluster) RefusesWrite() bool { return c.process.acceptsLeft.Load() >= 0 }

// RestartScheduler ends the scheduler, including its bindings that are not posted yet, and starts a new one with empty
// memory.
func (c *Cluster) RestartScheduler() {
	c.scheduler.stop()
	c.Timeline.say("muster-scheduler restarts")
	c.scheduler = newScheduler(c.API)
}

// StopScheduler makes the scheduler stand still, as by a SIGSTOP: it does not renew its Lease. ContinueScheduler ends
// that.
func (c *Cluster) StopScheduler() {
	c.Timeline.say("muster-scheduler stands still")
	c.scheduler.stopped = c.Clock.Now()
}

// ContinueScheduler ends StopScheduler.
func (c *Cluster) ContinueScheduler() {
	c.Timeline.say("muster-scheduler continues")
	c.scheduler.stopped = time.Time{}
}

// PauseControllers makes the controllers stand still, as by a SIGSTOP, with their caches; ResumeControllers ends that.
func (c *Cluster) PauseControllers() {
	c.Timeline.say("muster-controller stands still")
	c.paused = true
}

// ResumeControllers ends PauseControllers.
func (c *Cluster) ResumeControllers() {
	c.Timeline.say("muster-controller continues")
	c.paused = false
}

// lease returns the Lease that the scheduler renews.
func (c *Cluster) lease() *coordinationv1.Lease {
	renewed := c.Clock.Now()
	if stopped := c.scheduler.stopped; !stopped.IsZero() {
		renewed = stopped
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: schedulerLease.Namespace, Name: schedulerLease.Name}}
	lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &metav1.MicroTime{Time: renewed}, ptr.To(int32(15))
	return lease
}

// schedulerLease is the name of the scheduler's Lease.
var schedulerLease = types.NamespacedName{Namespace: "muster-system", Name: v1alpha1.DefaultSchedulerName}

// HoldBack stops the controllers' caches of these kinds; Deliver resumes them. A restart resumes them too.
func (c *Cluster) HoldBack(kinds ...client.Object) {
	for _, kind := range kinds {
		c.process.cache.hold(kind, true)
	}
}

// Deliver ends HoldBack.
func (c *Cluster) Deliver(kinds ...client.Object) {
	for _, kind := range kinds {
		c.process.cache.hold(kind, false)
	}
}

// Show delivers the oldest pending change of each kind, also of those that are held back.
func (c *Cluster) Show() {
	c.process.cache.settle()
	for _, gvk := range c.API.kinds() {
		if len(c.process.cache.views[gvk].pending) > 0 {
			c.process.cache.deliver(gvk)
		}
	}
}

// Create creates an object, as a user.
func (c *Cluster) Create(o client.Object) {
	c.t.Helper()
	if err := c.API.Create(context.Background(), o); err != nil {
		c.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

// Delete deletes an object, as a user.
func (c *Cluster) Delete(o client.Object, options ...client.DeleteOption) {
	c.t.Helper()
	if err := c.API.Delete(context.Background(), o, options...); err != nil {
		c.Fatalf("deleting %T %s: %v", o, o.GetName(), err)
	}
}

// Edit changes the object of that namespace and name, as a user.
func Edit[T client.Object](c *Cluster, o T, edit func(T)) {
	c.t.Helper()
	ctx := context.Background()
	if err := c.API.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		c.Fatalf("reading %T %s: %v", o, o.GetName(), err)
	}
	edit(o)
	if err := c.API.Update(ctx, o); err != nil {
		c.Fatalf("changing %T %s: %v", o, o.GetName(), err)
	}
}

// All returns the objects of a kind, by namespace and name. Read-only.
func All[T client.Object](c *Cluster) []T { return all[T](c.API) }

// Elapsed is the virtual time since the cluster began.
func (c *Cluster) Elapsed() time.Duration { return c.Clock.Now().Sub(epoch) }

// Fatalf fails the test, with the latest steps and the end of the timeline.
func (c *Cluster) Fatalf(format string, arguments ...any) {
	c.t.Helper()
	c.t.Fatalf("%s\nseed %d, step %d, after %s\nlast steps:\n  %s\ntimeline:\n%s", fmt.Sprintf(format, arguments...),
		c.options.Seed, c.Steps, c.Elapsed(), strings.Join(c.last[max(0, len(c.last)-kept):], "\n  "), c.Timeline.tail(told))
}
