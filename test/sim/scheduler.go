// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/backfill"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/marks"
	"github.com/muster-project/muster/test/podlife"
)

// scheduler simulates muster-scheduler: the real registry elects leaders, the real planner places gangs on nodes with
// resources and node selectors only, and their pods are bound one at a time. It does not have kube-scheduler's queue
// with its back-off, other plugins, a cache that lags, and the limited rate of the reporter.
type scheduler struct {
	api      *API
	registry *gangs.Registry
	stop     func()

	mu      sync.Mutex
	changes []Change // guarded by mu; not processed yet

	dirty    map[gangs.Key]bool // gangs whose status may have changed
	bindings []binding          // to be posted
	quiet    bool               // no change since the last check of all gangs, which had no effect
	ticked   time.Time
	stopped  time.Time // since when it does nothing; zero: it runs
	deaf     string    // the gang for which it does nothing, ""
}

// binding is a pod to be bound to its node: the barrier of its plan is open.
type binding struct {
	pod        *corev1.Pod
	node, mark string
}

const (
	// tick is the interval of Registry.Tick.
	tick = 250 * time.Millisecond
	// These are the defaults of muster-scheduler, but for reservationAfter, so that room is reserved in some histories.
	repairTimeout, replacementTimeout    = 30 * time.Second, 5 * time.Minute
	reservationAfter, reservationTimeout = 5 * time.Minute, time.Hour
)

// newScheduler starts a scheduler whose registry has all objects.
func newScheduler(api *API) *scheduler {
	s := &scheduler{api: api, registry: gangs.New(), dirty: map[gangs.Key]bool{}}
	now := api.clock.Now()
	s.registry.Configure(gangs.Options{
		RepairTimeout: repairTimeout, ReplacementTimeout: replacementTimeout, SingleSurplusAfter: 300 * time.Millisecond, Amount: amountOf,
		ReservationAfter: reservationAfter, ReservationTimeout: reservationTimeout, MaxReservations: gangs.MaxReservations{OfPriority: 1, OfNamespace: 1, InAll: 4},
	})
	s.registry.AddProfile(v1alpha1.DefaultSchedulerName)
	keys, err := marks.NewKeys("sim", map[string][]byte{"sim": []byte("0123456789abcdef0123456789abcdef")})
	utilruntime.Must(err)
	s.registry.SetKeys(keys, now)
	s.stop = api.watch(func(c Change) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changes = append(s.changes, c)
	})
	for _, group := range all[*v2alpha2.PodGroup](api) {
		s.registry.SetGroup(group, now)
	}
	for _, pod := range all[*corev1.Pod](api) {
		if pod.Status.Phase != corev1.PodFailed {
			s.registry.SetPod(pod, now)
		}
	}
	s.effects(s.registry.SetSynced(now))
	s.registry.SetLeading()
	return s
}

// effects records the effects of a call of the registry.
func (s *scheduler) effects(e gangs.Effects) {
	s.quiet = s.quiet && len(e.Activate) == 0
	for _, key := range e.Dirty {
		s.dirty[key] = true
	}
	if len(e.Vacated) > 0 { // what was reserved is free for all
		s.wake(s.api.clock.Now())
	}
}

// steps returns the next step of the scheduler; none if there is nothing to do.
func (s *scheduler) steps() []step {
	if !s.stopped.IsZero() {
		return nil
	}
	s.mu.Lock()
	changed := len(s.changes) > 0
	s.mu.Unlock()
	if !changed && s.quiet && len(s.bindings) == 0 && len(s.dirty) == 0 {
		return nil
	}
	switch {
	case changed:
		return []step{{"scheduler: sees what has changed", s.see}}
	case len(s.bindings) > 0:
		return []step{{"scheduler: binds pod " + s.bindings[0].pod.Name, s.post}}
	case !s.quiet:
		return []step{{"scheduler: looks for a gang to plan", s.schedule}}
	default:
		return []step{{"scheduler: writes a status", s.report}}
	}
}

// see passes the changes to the registry.
func (s *scheduler) see() error {
	s.mu.Lock()
	changes := s.changes
	s.changes = nil
	s.mu.Unlock()
	slices.SortStableFunc(changes, func(x, y Change) int { // pods of one step may have been created in any order
		return compareKeys(x.Key, y.Key)
	})
	now, grew := s.api.clock.Now(), false
	for _, c := range changes {
		switch c.GVK.Kind {
		case "Pod":
			grew = s.seePod(c, now) || grew
		case "PodGroup":
			if c.New == nil {
				s.effects(s.registry.RemoveGroup(c.Key, now))
			} else {
				s.effects(s.registry.SetGroup(c.New.(*v2alpha2.PodGroup), now))
			}
			s.quiet = false
		case "Node":
			grew = true
		}
	}
	if grew {
		s.wake(now)
	}
	return nil
}

// seePod passes a change of a pod to the registry, and reports whether it has freed room.
func (s *scheduler) seePod(c Change, now time.Time) bool {
	s.quiet = false
	old, _ := c.Old.(*corev1.Pod)
	if c.New == nil {
		if old.Status.Phase == corev1.PodSucceeded {
			s.effects(s.registry.RemoveSucceededPod(old.UID, now))
		} else {
			s.effects(s.registry.RemovePod(old.UID, now))
			s.effects(s.registry.RemoveFailedPod(old.UID, now)) // no informer of finished pods will report it
		}
		if old.Spec.NodeName == "" {
			return false
		}
		s.registry.RecordPodsEnded([]*corev1.Pod{old}, now)
		return true
	}
	pod := c.New.(*corev1.Pod)
	if pod.Status.Phase == corev1.PodFailed {
		s.effects(s.registry.RemoveFailedPod(pod.UID, now))
		s.registry.RecordPodsEnded([]*corev1.Pod{pod}, now)
		return true
	}
	s.effects(s.registry.SetPod(pod, now))
	return pod.Status.Phase == corev1.PodSucceeded
}

// wake makes every refused gang eligible again, because there may be room.
func (s *scheduler) wake(now time.Time) {
	s.quiet = false
	s.effects(s.registry.RetryWaiting(nil, []gangs.Topic{gangs.Anything}, now))
}

// tick runs what is due, and deletes the pods of partial gangs that are to be released.
func (s *scheduler) tick(now time.Time) {
	if _, partial := s.registry.NeedsRelease(); partial {
		for _, pod := range s.registry.PodsToRelease(now.Sub(s.ticked), true) {
			if metav1.GetControllerOfNoCopy(pod) != nil {
				uid := pod.UID
				utilruntime.Must(tolerant(s.api.Delete(context.Background(), pod, client.Preconditions{UID: &uid})))
			}
		}
	}
	s.ticked = now
	s.effects(s.registry.Tick(now))
	s.effects(s.registry.RetryWaiting(nil, nil, now))
	s.quiet = false
}

// next returns the time of the next tick; false if no pod waits and no gang is partly bound.
func (s *scheduler) next() (time.Time, bool) {
	if !s.stopped.IsZero() {
		return time.Time{}, false
	}
	_, partial := s.registry.NeedsRelease()
	if !partial && !slices.ContainsFunc(all[*corev1.Pod](s.api), isWaiting) {
		return time.Time{}, false
	}
	return s.ticked.Add(tick), true
}

func isWaiting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0
}

// schedule makes one attempt for the first gang in rank order that is worth an attempt.
func (s *scheduler) schedule() error {
	now := s.api.clock.Now()
	var leaders []*corev1.Pod
	ranks := map[types.UID]gangs.Rank{}
	for _, pod := range all[*corev1.Pod](s.api) {
		if !isWaiting(pod) || pod.Annotations[v2alpha2.PodGroupAnnotation] == s.deaf {
			continue
		}
		if ok, _ := s.registry.MayEnterQueue(pod); ok && pod.Annotations[v2alpha2.PodGroupAnnotation] != "" {
			leaders = append(leaders, pod)
			ranks[pod.UID] = s.registry.RankOf(pod, now)
		}
	}
	slices.SortStableFunc(leaders, func(x, y *corev1.Pod) int { return ranks[x.UID].Compare(ranks[y.UID]) })
	for _, pod := range leaders {
		s.registry.RecordPopped(pod.UID)
		work, _ := s.registry.BeginAttempt(pod)
		if work == nil {
			continue
		}
		return s.attempt(work, now)
	}
	s.quiet = true
	return nil
}

// attempt plans a gang, and takes its members to the barrier.
func (s *scheduler) attempt(work *gangs.Work, now time.Time) error {
	world := newWorld(s.api, s.bindings, work.Classes)
	world.subtractReserved(s.registry.Reservations(), work)
	placements, refusal := place(work, world)
	if refusal != nil {
		if search := s.registry.BeginPromise(work, world, now); search != nil {
			promise, keep := backfill.Revise(work.Required(), world, search.Held, search.Pods, now, placement.Budget{})
			s.effects(s.registry.RecordPromise(work, search, promise, keep, now))
		}
		s.effects(s.registry.RecordGangRefused(work.Gang, *refusal, gangs.Wait{}, now))
		return nil
	}
	plan, why := s.registry.CommitPlan(work, placements, now)
	if plan == nil {
		return fmt.Errorf("a plan of %s is stale, and nothing happens beside it: %s", work.Gang, why)
	}
	s.dirty[work.Gang] = true
	var members []binding
	for pod := s.registry.NextMember(); pod != nil; pod = s.registry.NextMember() {
		node, _ := s.registry.PlannedNode(pod.UID)
		if err := s.registry.AssumeMember(pod.UID, node, now); err != nil {
			return fmt.Errorf("assuming pod %s: %w", pod.Name, err)
		}
		members = append(members, binding{pod, node, s.registry.SignedMark(plan, pod.UID)})
	}
	// Members arrive concurrently: none returns before the last one has arrived.
	errs := make([]error, len(members))
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() { errs[i] = s.registry.WaitAtBarrier(context.Background(), m.pod.UID, time.Hour) })
	}
	group.Wait()
	for i, m := range members {
		if errs[i] != nil {
			s.effects(s.registry.ReleaseMember(m.pod.UID, now))
			continue
		}
		s.bindings = append(s.bindings, m)
	}
	return nil
}

// place searches a plan in the same way as the plugin.
func place(work *gangs.Work, world *world) ([]placement.Placement, *podgroup.Refusal) {
	var placements []placement.Placement
	var short *placement.Shortfall
	budget := placement.Budget{}
	switch work.Task {
	case gangs.LostUnit, gangs.SurplusUnit:
		placements = placement.Unit(work.Problem, world, budget).Placements
	case gangs.SurplusSingle:
		placements = placement.Singles(work.Problem, world, budget)
	default:
		placements, short = placement.Minimum(work.Problem, world, budget)
		if len(placements) == 0 && work.Task == gangs.Refill {
			placements = work.Limit(placement.Singles(work.Singles, world, budget))
		}
		if len(placements) == 0 && short == nil {
			placements = placement.Unit(work.Problem, world, budget).Placements
		}
	}
	switch {
	case len(placements) > 0:
		return placements, nil
	case short != nil:
		why := podgroup.Explain(work.Problem, world, short)
		return nil, &why
	default:
		why := podgroup.ExplainSurplus(work.Problem, work.Singles, world)
		return nil, &why
	}
}

// post binds the next pod.
func (s *scheduler) post() error {
	b := s.bindings[0]
	s.bindings = s.bindings[1:]
	now := s.api.clock.Now()
	if err := s.api.bind(client.ObjectKeyFromObject(b.pod), b.pod.UID, b.node, map[string]string{v2alpha2.BoundForAnnotation: b.mark}); err != nil {
		s.effects(s.registry.ReleaseMember(b.pod.UID, now)) // the scheduler continues without the pod
		s.wake(now)
	} else {
		s.effects(s.registry.RecordPosted(b.pod.UID, now))
	}
	return nil
}

// answer reports that a pod waits, without saying why.
func (s *scheduler) answer(ctx context.Context, pod *corev1.Pod) error {
	newest := &corev1.Pod{}
	if err := s.api.Get(ctx, client.ObjectKeyFromObject(pod), newest); err != nil || newest.UID != pod.UID || newest.Spec.NodeName != "" {
		return client.IgnoreNotFound(err)
	}
	if slices.ContainsFunc(newest.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled }) {
		return nil
	}
	podlife.SetCondition(newest, corev1.PodScheduled, false, s.api.now())
	return tolerant(s.api.Status().Update(ctx, newest))
}

// report writes the status of one PodGroup, and answers its pods. Changes of counts alone are written together with the
// next other change.
func (s *scheduler) report() error {
	var key gangs.Key
	for k := range s.dirty {
		if key.Name == "" || compareKeys(k, key) < 0 {
			key = k
		}
	}
	delete(s.dirty, key)
	facts, ok := s.registry.Facts(key)
	if !ok || facts.Group == nil || key.Name == s.deaf {
		return nil
	}
	ctx := context.Background()
	newest := &v2alpha2.PodGroup{}
	if err := s.api.Get(ctx, key, newest); err != nil || newest.UID != facts.Group.UID {
		return client.IgnoreNotFound(err)
	}
	facts.Group = newest
	for _, w := range facts.Waiting {
		if err := s.answer(ctx, w.Pod); err != nil {
			return err
		}
	}
	after := podgroup.Status(facts, metav1.NewTime(s.api.clock.Now()))
	switch podgroup.Compare(&newest.Status, &after) {
	case podgroup.Same, podgroup.Numbers:
		return nil
	}
	newest.Status = after
	return tolerant(s.api.Status().Update(ctx, newest))
}
