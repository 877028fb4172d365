// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
)

// Extenders asks the HTTP extenders of the scheduler for plans: once per class, about the nodes that the class's
// filters leave over (docs/decisions, G18). An extender may be slow, or not answer at all. A plan waits for Patience;
// after that the question continues without the scheduling loop, and its answer is for the next plan of the gang.
//
// While an extender has not answered a plan in time, no other plan asks it. If it fails then, it is not asked for a
// pause. Safe for concurrent use.
type Extenders struct {
	// Patience is how long one plan waits for the answers to all of its questions. Answered is called without a lock
	// when a plan that was refused because of an extender may succeed by now. Both may be changed
	// before the first plan only.
	Patience time.Duration
	Answered func()

	mu     sync.Mutex
	states map[fwk.Extender]*extenderState
	gangs  map[types.NamespacedName]*asked
	pruned time.Time // when gangs was last searched for entries that are no longer needed
}

const (
	extenderPatience = 200 * time.Millisecond
	// answersKept is how long answers that came too late for a plan are valid for the next one. An extender may read
	// anything, so no event shows that an answer has changed.
	answersKept = 30 * time.Second
	// quick: an error that comes within this part of Patience delays nobody, and may be due to the pod.
	quick = 4
	// maxWholeNodes is the number of nodes in one question to an extender that is sent whole nodes: those that come
	// first in the order of the class. A node is 5 to 20 KB of JSON.
	maxWholeNodes = 1000
)

// extenderState is what is known of one extender. Guarded by Extenders.mu.
type extenderState struct {
	late     int       // questions that were not answered in time and are still open
	failures int       // consecutive errors that did not come quickly
	until    time.Time // it is not asked before
}

// asked are the answers for one gang. Guarded by Extenders.mu.
type asked struct {
	answers map[types.UID]*answer // by the pod that was asked about
	open    int                   // questions without an answer
	late    bool                  // a plan did not wait for one of those that were open since the last call of Extenders.Answered
	about   string                // the extender of the open question
	at      time.Time             // of the last answer
	// failures are consecutive attempts that an extender failed; why is the last. It is repeated until the pause is
	// over.
	failures int
	why      string
	until    time.Time
}

// answer is what all extenders together say about a class.
type answer struct {
	accepted map[string]bool   // by node that they were asked about
	refused  map[string]string // why; nodes that are not accepted
	scores   map[string]int64  // as the stock scheduler adds them to those of its plugins
	failure  string            // an extender that is not ignorable failed; "": none
}

// ExtenderFailure is why a plan lacks the answer of an extender.
type ExtenderFailure struct {
	// Message says which extender, what happened, and what to do.
	Message string
	// Until is when the gang may be tried again. Zero: after the next call of Extenders.Answered.
	Until time.Time
}

// NewExtenders returns an Extenders that has asked nothing.
func NewExtenders() *Extenders {
	return &Extenders{Patience: extenderPatience, Answered: func() {}, states: map[fwk.Extender]*extenderState{}, gangs: map[types.NamespacedName]*asked{}}
}

// inquiry contains the questions of one plan. It is used by one goroutine.
type inquiry struct {
	of         *Extenders
	list       []fwk.Extender // of the profile
	gang       types.NamespacedName
	logger     klog.Logger
	waited     time.Duration
	reportWait func(time.Duration) // called with each wait; nil: nobody
	last       *question           // that was not answered in time
	failed     *ExtenderFailure
	partial    bool // a node was not asked about because it takes the class only since an earlier plan asked
}

// question is asked in a goroutine of its own, because an extender cannot be interrupted.
type question struct {
	about *asked
	list  []fwk.Extender
	pod   *corev1.Pod
	nodes []fwk.NodeInfo
	after *question // of the same plan; nil: none
	late  bool      // guarded by Extenders.mu
	done  chan struct{}
	*answer
}

// sentNode is a node in a question. The NodeInfos of the snapshot change with the next cycle; the object does not, and
// HTTP extenders read nothing else.
type sentNode struct {
	fwk.NodeInfo
	node *corev1.Node
}

func (n sentNode) Node() *corev1.Node { return n.node }

// interested returns the extenders that have a say about the pod.
func (a *inquiry) interested(pod *corev1.Pod) []fwk.Extender {
	var out []fwk.Extender
	for _, x := range a.list {
		if (x.IsFilter() || x.IsPrioritizer()) && x.IsInterested(pod) {
			out = append(out, x)
		}
	}
	return out
}

// isOptional reports whether the stock scheduler goes on without the extender if it fails.
func isOptional(x fwk.Extender) bool { return x.IsIgnorable() || !x.IsFilter() }

// sendsNames reports whether the extender is sent the names of nodes, not whole nodes.
func sendsNames(x fwk.Extender) bool {
	h, ok := x.(*scheduler.HTTPExtender)
	if !ok {
		return false
	}
	field := reflect.ValueOf(h).Elem().FieldByName("nodeCacheCapable")
	return field.Kind() == reflect.Bool && field.Bool()
}

// askExtenders takes the extenders' answer about the class into its results and its order. r is the order without it.
func (w *Snapshot) askExtenders(c *class, r *ranking) {
	list := w.inquiry.interested(c.info.Pod)
	if len(list) == 0 {
		return
	}
	var left []int32
	for _, i := range c.scan.order {
		if w.whyBarred(c, int(i)) == "" {
			left = append(left, i)
		}
	}
	if len(left) == 0 {
		return
	}
	ask, notAsked := left, ""
	if whole := slices.IndexFunc(list, func(x fwk.Extender) bool { return !sendsNames(x) }); whole >= 0 && len(left) > maxWholeNodes {
		ask = left[:maxWholeNodes]
		notAsked = fmt.Sprintf("node(s) were not sent to extender %s, which gets whole nodes, %d at most: set nodeCacheCapable", list[whole].Name(), maxWholeNodes)
	}
	nodes := make([]fwk.NodeInfo, len(ask))
	for k, i := range ask {
		nodes[k] = sentNode{node: w.nodes.objects[i]}
	}
	got := w.inquiry.askExtenders(list, c.info.Pod, nodes)

	w.recordAnswer(c, left, got, notAsked)
	known := c.known
	if r.anew && known.feasible > 0 && len(c.notExtended) > 0 {
		r = w.rankForPlan(c) // a score may depend on the other nodes that take the class
	}
	c.scan.order = nil
	for _, i := range r.order {
		if known.reasons[i] == 0 {
			c.scan.order = append(c.scan.order, i)
		}
	}
	if len(got.scores) > 0 {
		total := func(i int32) int64 { return r.scores[i] + got.scores[w.nodes.objects[i].Name] }
		slices.SortStableFunc(c.scan.order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(total(b), total(a)), cmp.Compare(r.free[a], r.free[b]))
		})
	}
}

// recordAnswer removes the nodes that the extenders do not accept from those that take the class. left are the nodes
// that take it otherwise; notAsked is why some of them were not sent, "" if all were.
func (w *Snapshot) recordAnswer(c *class, left []int32, got *answer, notAsked string) {
	known := *c.known
	known.reasons, known.slots = slices.Clone(known.reasons), slices.Clone(known.slots)
	refused := w.cache.internReason(plainReason{text: "node(s) are refused by an extender"})
	c.notExtended = map[int]string{}
	for _, i := range left {
		name := w.nodes.objects[i].Name
		why, isRefused := got.refused[name]
		switch {
		case got.accepted[name]:
			continue
		case got.failure != "":
			why = got.failure
		case !isRefused && notAsked != "":
			why = notAsked
		case !isRefused:
			why = "node(s) an extender was not asked about yet"
			w.inquiry.partial = true
		}
		c.notExtended[int(i)] = why
		known.feasible--
		known.pods -= int(known.slots[i])
		known.reasons[i], known.slots[i] = refused, 0
	}
	c.known = &known
}

// ExtenderFailure returns why a class could not be planned, if an extender was the reason; nil: none was. partial
// reports whether another plan should follow because nodes were not asked about. It must be called after the search:
// answers are kept for another plan only if there was a failure.
func (w *Snapshot) ExtenderFailure() (failure *ExtenderFailure, partial bool) {
	a := w.inquiry
	if a.failed == nil && len(a.list) > 0 {
		a.of.mu.Lock()
		defer a.of.mu.Unlock()
		delete(a.of.gangs, a.gang)
	}
	return a.failed, a.partial
}

// askExtenders returns what the extenders say about the pod on the nodes, and waits for it as long as the plan may.
func (a *inquiry) askExtenders(list []fwk.Extender, pod *corev1.Pod, nodes []fwk.NodeInfo) *answer {
	e := a.of
	q, known, failure := a.beginQuestion(list, pod, nodes, time.Now())
	if q != nil {
		began := time.Now()
		timer := time.NewTimer(e.Patience - a.waited)
		defer timer.Stop()
		select {
		case <-q.done:
		case <-timer.C:
		}
		took := time.Since(began)
		a.waited += took
		if a.reportWait != nil {
			a.reportWait(took)
		}
		known, failure = a.resultOf(q)
	}
	if failure == nil {
		return known
	}
	if a.failed == nil || a.failed.Until.Before(failure.Until) {
		a.failed = failure
	}
	return &answer{failure: failure.Message}
}

// beginQuestion returns an answer that is known already, or the reason why the question cannot be asked now, or the
// question.
func (a *inquiry) beginQuestion(list []fwk.Extender, pod *corev1.Pod, nodes []fwk.NodeInfo, now time.Time) (*question, *answer, *ExtenderFailure) {
	e := a.of
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.gangs[a.gang]
	if g == nil {
		e.pruneAnswers(now)
		g = &asked{answers: map[types.UID]*answer{}}
		e.gangs[a.gang] = g
	}
	switch {
	case now.Before(g.until):
		return nil, nil, &ExtenderFailure{Message: g.why, Until: g.until}
	case a.last != nil: // asked before by this plan
	case g.open > 0:
		return nil, nil, &ExtenderFailure{Message: g.unansweredMessage()}
	case now.Sub(g.at) >= answersKept:
		clear(g.answers)
	}
	if known := g.answers[pod.UID]; known != nil {
		return nil, known, nil
	}
	q := &question{about: g, pod: pod, nodes: nodes, after: a.last, done: make(chan struct{})}
	for _, x := range list {
		state := e.stateOf(x)
		switch {
		case state.late > 0 && state.failures > 0 && isOptional(x): // the open question shows whether it works again
		case a.last == nil && state.late > 0:
			return nil, nil, &ExtenderFailure{Message: fmt.Sprintf("extender %s has not answered a question about other pods yet; the gang is tried again when it does", x.Name())}
		case !now.Before(state.until):
			q.list = append(q.list, x)
		case !isOptional(x):
			return nil, nil, &ExtenderFailure{Message: fmt.Sprintf("extender %s did not answer in time; it is asked again after a pause. %s", x.Name(), whatToDo)}
		}
	}
	g.open++
	go e.askInOrder(q, a.logger)
	return q, nil, nil
}

const whatToDo = "Repair or remove it, or set ignorable: true if pods may be placed without it"

func (g *asked) unansweredMessage() string {
	return fmt.Sprintf("extender %s has not answered yet; the gang is tried again when it does", g.about)
}

// resultOf returns the answer to a question, or why there is none.
func (a *inquiry) resultOf(q *question) (*answer, *ExtenderFailure) {
	e := a.of
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case q.answer == nil:
		q.late, q.about.late = true, true
		for _, x := range q.list {
			e.stateOf(x).late++
		}
		a.last = q
		return nil, &ExtenderFailure{Message: q.about.unansweredMessage()}
	case q.failure != "":
		return nil, &ExtenderFailure{Message: q.failure, Until: q.about.until}
	}
	return q.answer, nil
}

// askInOrder asks the extenders, one after the other, as the stock scheduler does.
func (e *Extenders) askInOrder(q *question, logger klog.Logger) {
	if q.after != nil {
		<-q.after.done
	}
	got := e.filterNodes(q, logger)
	if got.failure == "" {
		e.addScores(q, got, logger)
	}
	e.mu.Lock()
	g, now := q.about, time.Now()
	g.open--
	g.at = now
	if got.failure == "" {
		g.answers[q.pod.UID] = got
		g.failures = 0
	} else {
		g.why, g.until = got.failure, now.Add(min(minKnown<<min(g.failures, 10), maxKnown))
		g.failures++
	}
	if q.late {
		for _, x := range q.list {
			e.stateOf(x).late--
		}
	}
	lastAnswered := g.late && g.open == 0
	g.late = g.late && !lastAnswered
	q.answer = got
	close(q.done)
	e.mu.Unlock()
	if lastAnswered {
		e.Answered()
	}
}

// filterNodes asks each extender about the nodes that the ones before it accept.
func (e *Extenders) filterNodes(q *question, logger klog.Logger) *answer {
	got := &answer{accepted: map[string]bool{}, refused: map[string]string{}, scores: map[string]int64{}}
	left := q.nodes
	for _, x := range q.list {
		if !x.IsFilter() || len(left) == 0 {
			continue
		}
		var accepted []fwk.NodeInfo
		var failed, forGood extenderv1.FailedNodesMap
		err := e.callExtender(q, x, func() (err error) {
			accepted, failed, forGood, err = x.Filter(q.pod, left)
			return err
		})
		names := map[string]bool{}
		for _, node := range accepted {
			names[node.Node().Name] = true
		}
		var kept []fwk.NodeInfo
		for _, node := range left {
			if names[node.Node().Name] {
				kept = append(kept, node)
			}
		}
		if err == nil && len(kept) < len(names) {
			err = fmt.Errorf("it accepts nodes that it was not asked about")
		}
		if err != nil && x.IsIgnorable() {
			logger.Info("Skipping extender in a plan as it returned error and has ignorable flag set", "extender", x.Name(), "err", err)
			continue
		}
		if err != nil {
			got.failure = fmt.Sprintf("extender %s failed: %v. %s", x.Name(), err, whatToDo)
			return got
		}
		for _, node := range left {
			name := node.Node().Name
			if !names[name] {
				got.refused[name] = cmp.Or(forGood[name], failed[name], "node(s) are refused by extender "+x.Name())
			}
		}
		left = kept
	}
	for _, node := range left {
		got.accepted[node.Node().Name] = true
	}
	return got
}

// addScores adds the scores of the extenders for the nodes that all of them accept.
func (e *Extenders) addScores(q *question, got *answer, logger klog.Logger) {
	var nodes []fwk.NodeInfo
	for _, node := range q.nodes {
		if got.accepted[node.Node().Name] {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) < 2 {
		return // there is nothing to choose
	}
	for _, x := range q.list {
		if !x.IsPrioritizer() {
			continue
		}
		var scores *extenderv1.HostPriorityList
		var weight int64
		if err := e.callExtender(q, x, func() (err error) {
			scores, weight, err = x.Prioritize(q.pod, nodes)
			return err
		}); err != nil {
			logger.V(2).Info("Extender failed to score nodes for a plan; it gives no score", "extender", x.Name(), "err", err)
			continue
		}
		for _, s := range *scores {
			got.scores[s.Host] += s.Score * weight * (fwk.MaxScore / extenderv1.MaxExtenderPriority)
		}
	}
}

// callExtender runs a request to an extender, and records whether it is able to answer.
func (e *Extenders) callExtender(q *question, x fwk.Extender, request func() error) error {
	e.mu.Lock()
	q.about.about = x.Name()
	e.mu.Unlock()
	began := time.Now()
	err := request()
	e.mu.Lock()
	defer e.mu.Unlock()
	state, now := e.stateOf(x), time.Now()
	switch {
	case err == nil:
		state.failures, state.until = 0, time.Time{}
	case now.Sub(began) >= e.Patience/quick:
		pause := min(minKnown<<min(state.failures, 10), maxKnown)
		state.failures++
		state.until = now.Add(pause)
		time.AfterFunc(pause, e.Answered)
	}
	return err
}

// stateOf returns the state of an extender.
func (e *Extenders) stateOf(x fwk.Extender) *extenderState {
	if e.states[x] == nil {
		e.states[x] = &extenderState{}
	}
	return e.states[x]
}

// pruneAnswers removes entries that no plan will use, once a minute at most: of gangs that were deleted while they
// waited.
func (e *Extenders) pruneAnswers(now time.Time) {
	if now.Sub(e.pruned) < time.Minute {
		return
	}
	e.pruned = now
	for gang, g := range e.gangs {
		if g.open == 0 && now.Sub(g.at) >= answersKept && now.Sub(g.until) >= maxKnown {
			delete(e.gangs, gang)
		}
	}
}
