// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// Reasons of the condition MinAvailableBreached while it depends on pods of which nothing is known. Source:
// docs/decisions, T9.
const (
	NodesDoNotAnswer       BreachReason = "NodesDoNotAnswer"
	SchedulerDoesNotAnswer BreachReason = "SchedulerDoesNotAnswer"
)

// Silence is why it is not known whether a pod runs, or will run. The zero value: it is known.
type Silence struct {
	// Reason is NodesDoNotAnswer or SchedulerDoesNotAnswer.
	Reason BreachReason
	// Text is a clause about who does not answer, without what is waited for.
	Text string
	// Until is when the pod counts as missing, in whole seconds. Zero: only an answer ends the silence.
	Until time.Time
}

// IsSilent reports whether it is unknown whether the pod runs, or will run.
func (s Silence) IsSilent() bool { return s.Reason != "" }

// ofNodes returns the silence if nodes do not answer, on which the pods may run.
func (s Silence) ofNodes() Silence {
	if s.Reason != NodesDoNotAnswer {
		return Silence{}
	}
	return s
}

// Node contains the facts about a node that holds pods of PodCliqueSets.
type Node struct {
	Name string
	// Zone is the topology zone, "" if there is none.
	Zone string
	// SilentSince is since when the node has not answered, or has not existed. Zero: it answers.
	SilentSince time.Time
	// AnswersSince is since when a node that answers has answered without interruption. Zero: for ever.
	AnswersSince time.Time
}

// Fleet is what is known about the nodes that hold pods of PodCliqueSets. The zero value: nothing.
type Fleet struct {
	since map[string]time.Time // of nodes that do not answer: from when their grace counts
	held  map[string]string    // of nodes that do not answer together with most others: the clause about them
}

const (
	// silentTogether is the time within which nodes stop answering because of one event.
	silentTogether = 5 * time.Minute
	// fewSilent is the number of silent nodes up to which each counts by itself, as for the node lifecycle controller
	// of Kubernetes, as long as another node of the cluster answers.
	fewSilent = 2
	// fleetPeriod is how often pods on nodes that are silent together are judged again: what ends this may happen to
	// other nodes.
	fleetPeriod = 10 * time.Second
	// reportAfter is within how long a kubelet that answers again reports what its pods do: it writes all states every
	// 10 s.
	reportAfter = 20 * time.Second
)

// JudgeFleet returns what is known about the nodes that hold pods of PodCliqueSets. A node is silent together with
// others if more than half of the nodes, or of those in its zone, became silent within silentTogether of it: their
// network, or the API server, is the likelier cause, and their pods run. Nodes that were silent before do not count.
// When so many of them answer again that it is no longer more than half, the grace of the others counts from the latest
// answer. others are the nodes that hold no such pods and answer.
func JudgeFleet(nodes, others []Node) Fleet {
	f := Fleet{since: map[string]time.Time{}, held: map[string]string{}}
	zones := map[string][]Node{}
	for _, n := range nodes {
		if !n.SilentSince.IsZero() {
			f.since[n.Name] = n.SilentSince
		}
		if n.Zone != "" {
			zones[n.Zone] = append(zones[n.Zone], n)
		}
	}
	for zone, members := range zones {
		f.hold(members, []Node{{}}, " of zone "+zone) // as if a node elsewhere answered
	}
	f.hold(nodes, others, "")
	return f
}

// hold holds the nodes of an area that are silent together. elsewhere are further nodes that answer, where is added to
// the clause.
func (f *Fleet) hold(nodes, elsewhere []Node, where string) {
	var onsets, answers []time.Time
	for _, n := range nodes {
		if n.SilentSince.IsZero() {
			answers = append(answers, n.AnswersSince)
		} else {
			onsets = append(onsets, n.SilentSince)
		}
	}
	all := slices.Clone(answers)
	for _, n := range elsewhere {
		all = append(all, n.AnswersSince)
	}
	for _, sorted := range [][]time.Time{onsets, answers, all} {
		slices.SortFunc(sorted, time.Time.Compare)
	}
	for _, n := range nodes {
		if n.SilentSince.IsZero() {
			continue
		}
		to := len(onsets) - countAfter(onsets, n.SilentSince.Add(silentTogether))
		together := countAfter(onsets, n.SilentSince.Add(-silentTogether-1)) - (len(onsets) - to)
		others := len(answers) + len(onsets) - to // that answered then
		back := countAfter(answers, n.SilentSince)
		switch {
		case together > few(len(all)) && together > others:
			f.held[n.Name] = fmt.Sprintf("%d of %d nodes%s do not answer", together, together+others, where)
		case together+back > few(len(all)-countAfter(all, n.SilentSince)) && together+back > others-back:
			if latest := all[len(all)-1]; latest.After(f.since[n.Name]) {
				f.since[n.Name] = latest
			}
		}
	}
}

// few returns the number of silent nodes up to which each counts by itself, if so many nodes of the cluster answer.
func few(answer int) int {
	if answer == 0 {
		return 0 // what could take over does not answer either
	}
	return fewSilent
}

// countAfter returns the number of times after t.
func countAfter(sorted []time.Time, t time.Time) int {
	return len(sorted) - sort.Search(len(sorted), func(i int) bool { return sorted[i].After(t) })
}

// Knows reports whether a node was silent when the fleet was judged.
func (f Fleet) Knows(node string) bool {
	_, known := f.since[node]
	return known
}

// Lease is the sign of life of a scheduler. The zero value: it is not known.
type Lease struct {
	// Scheduler is the schedulerName of the pods that the scheduler places, Name the namespace and name of the Lease.
	Scheduler, Name string
	// RenewedAt is when it was renewed, Expires when it is no longer valid.
	RenewedAt, Expires time.Time
}

const (
	// unansweredAfter is the age at which a pod for which its scheduler has done nothing shows that the scheduler does
	// not answer, although it has no Lease, or renews it.
	unansweredAfter = time.Minute
	// leasePeriod is how often the Lease of a scheduler that does not answer is looked at again.
	leasePeriod = 10 * time.Second
)

// Unknowns contains the facts about those who do not answer. Source: docs/decisions, T9.
type Unknowns struct {
	Fleet Fleet
	Lease Lease
	// Back are nodes that have begun to answer again, and since when.
	Back map[string]time.Time
	// Grace is how long a node may be silent before its pods count as missing; nil: as long as each pod tolerates.
	Grace *time.Duration
	// AtOnce: a pod for which its scheduler has done nothing counts as unknown from its creation on. Otherwise a
	// scheduler has unansweredAfter.
	AtOnce bool
}

// Mark returns the pods with their Silence, and when that changes without an event; 0: it does not. A pod that is being
// deleted, or has failed, is missing for certain.
func (u Unknowns) Mark(pods []Pod, now time.Time) (marked []Pod, after time.Duration) {
	marked = slices.Clone(pods)
	oldest := map[string]time.Time{} // by scheduler
	for i := range marked {
		p := &marked[i]
		if p.Terminating || p.Ended || p.Failed {
			continue
		}
		switch {
		case p.LostNode != "":
			p.Silence, after = u.ofNode(*p, after, now)
		case p.AwaitsReport():
			if due := wholeSecond(u.Back[p.Node].Add(reportAfter)); now.Before(due) {
				p.Silence = Silence{Reason: NodesDoNotAnswer, Text: "node " + p.Node + " has not reported since it answers again", Until: due}
				after = Sooner(after, delayUntil(due, now))
			}
		case p.AwaitsScheduler():
			if first := oldest[p.Scheduler]; first.IsZero() || p.WaitsSince.Before(first) {
				oldest[p.Scheduler] = p.WaitsSince
			}
		}
	}
	for i := range marked {
		if p := &marked[i]; p.AwaitsScheduler() {
			p.Silence, after = u.ofScheduler(*p, oldest[p.Scheduler], after, now)
		}
	}
	return marked, after
}

// ofNode returns the silence of the node of a pod.
func (u Unknowns) ofNode(p Pod, after time.Duration, now time.Time) (Silence, time.Duration) {
	if held := u.Fleet.held[p.LostNode]; held != "" {
		return Silence{Reason: NodesDoNotAnswer, Text: held}, Sooner(after, fleetPeriod)
	}
	grace := u.Grace
	if grace == nil {
		grace = p.Tolerates
	}
	s := Silence{Reason: NodesDoNotAnswer, Text: "node " + p.LostNode + " does not answer"}
	if grace == nil {
		return s, after
	}
	since, known := u.Fleet.since[p.LostNode]
	if !known {
		since = now
	}
	if s.Until = wholeSecond(since.Add(max(*grace, 0))); !now.Before(s.Until) {
		return Silence{}, after
	}
	return s, Sooner(after, delayUntil(s.Until, now))
}

// AwaitsReport reports whether the pod was running when something was heard of it last, and is said not to be ready,
// which the control plane writes of pods on nodes that do not answer. A pod of which its kubelet has said so is not
// ready for certain.
func (p Pod) AwaitsReport() bool {
	return p.Running && !p.Ready && !p.Unready && !p.Terminating && !p.Failed && p.LostNode == ""
}

// AwaitsScheduler reports whether the pod waits until a scheduler binds it.
func (p Pod) AwaitsScheduler() bool {
	return p.Scheduler != "" && !p.Scheduled && !p.Gated && !p.Terminating && !p.Ended
}

// ofScheduler returns the silence of the scheduler of a pod. since is when the oldest such pod began to wait.
func (u Unknowns) ofScheduler(p Pod, since time.Time, after time.Duration, now time.Time) (Silence, time.Duration) {
	lease := Lease{}
	if p.Scheduler == u.Lease.Scheduler {
		lease = u.Lease
	}
	silent := func(since time.Time, why string) (Silence, time.Duration) {
		text := fmt.Sprintf("%s has not answered since %s (%s)", p.Scheduler, Timestamp(since), why)
		return Silence{Reason: SchedulerDoesNotAnswer, Text: text}, Sooner(after, leasePeriod)
	}
	if !lease.Expires.IsZero() {
		if !now.Before(lease.Expires) {
			return silent(lease.RenewedAt, "Lease "+lease.Name)
		}
		after = Sooner(after, max(delayUntil(lease.Expires, now), leasePeriod))
	}
	switch due := p.WaitsSince.Add(unansweredAfter); {
	case p.Answered:
		return Silence{}, after
	case !u.AtOnce && now.Before(due):
		return Silence{}, Sooner(after, delayUntil(due, now))
	case lease.Expires.IsZero():
		return silent(since, "perhaps no scheduler of that name runs")
	}
	return silent(since, "but renews Lease "+lease.Name)
}

// silenceOf returns the number of pods of which it is not known whether they run, and what is waited for.
func silenceOf(silences []Silence) (int32, Silence) {
	const shown = 3
	var all Silence
	var texts []string
	n := int32(0)
	for _, s := range silences {
		if !s.IsSilent() {
			continue
		}
		n++
		if all.Reason != NodesDoNotAnswer {
			all.Reason = s.Reason
		}
		if !slices.Contains(texts, s.Text) {
			texts = append(texts, s.Text)
		}
		if all.Until.IsZero() || !s.Until.IsZero() && s.Until.Before(all.Until) {
			all.Until = s.Until
		}
	}
	slices.Sort(texts)
	all.Text = message.ListNames(texts, shown, len(texts), ", ")
	return n, all
}

// SilentPods returns the number of pods of which it is not known whether they run, or will run, and why.
func SilentPods(pods []Pod) (int32, Silence) {
	silences := make([]Silence, len(pods))
	for i, p := range pods {
		silences[i] = p.Silence
	}
	return silenceOf(silences)
}

// SilentReplicas returns the number of replicas of a scaling group that would be available if the pods of which nothing
// is known ran, and why it is not known.
func SilentReplicas(replicas []GroupReplica) (int32, Silence) {
	silences := make([]Silence, len(replicas))
	for i, r := range replicas {
		silences[i] = r.silence()
	}
	return silenceOf(silences)
}

// silence returns why it is not known whether the replica is available.
func (r GroupReplica) silence() Silence {
	if r.isReady() || !r.allMembers(func(c Clique) bool { return r.isReadyMember(c) || r.isSilentMember(c) }) {
		return Silence{}
	}
	if i := slices.IndexFunc(r.Members, r.isSilentMember); i >= 0 {
		return r.Members[i].Silence
	}
	return Silence{}
}

func (r GroupReplica) isSilentMember(c Clique) bool {
	return !c.Attempt.Precedes(r.Attempt) && !c.Terminating && c.Observed && c.Silence.IsSilent()
}

// Silence returns the first clique or scaling group of the replica of whose minimum it is not known whether it runs, or
// whose restart waits, and why; "": there is none.
func (r SetReplica) Silence() (name string, s Silence) {
	if r.Held.IsSilent() {
		name, _ = r.Unavailable()
		return name, r.Held
	}
	for _, c := range r.Cliques {
		if c.Silence.IsSilent() && c.Attempt.Set >= r.Attempt {
			return c.Name, c.Silence
		}
	}
	for _, g := range r.Groups {
		if g.Silence.IsSilent() && g.Attempt >= r.Attempt {
			return g.Name, g.Silence
		}
	}
	return "", Silence{}
}

// waits separates who does not answer from what is waited for, in a message.
const waits = "; waiting"

// String returns a clause about who does not answer, and until when that is waited for.
func (s Silence) String() string {
	if s.Until.IsZero() {
		return s.Text + waits
	}
	return s.Text + waits + " until " + Timestamp(s.Until)
}

// ParseSilence returns a silence from the reason of a condition and the clause in its message. An invalid time is
// ignored.
func ParseSilence(reason BreachReason, clause string) Silence {
	text, until, _ := strings.Cut(clause, waits)
	s := Silence{Reason: reason, Text: text}
	if at, err := time.Parse(time.RFC3339, strings.TrimPrefix(until, " until ")); err == nil {
		s.Until = at
	}
	return s
}
