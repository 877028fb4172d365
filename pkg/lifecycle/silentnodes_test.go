// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// nodesOf returns nodes of a zone, the first ones silent since the given times before now.
func nodesOf(zone string, count int, silent ...time.Duration) []lifecycle.Node {
	nodes := make([]lifecycle.Node, count)
	for i := range nodes {
		nodes[i] = lifecycle.Node{Name: fmt.Sprintf("%s%d", zone, i), Zone: zone}
		if i < len(silent) {
			nodes[i].SilentSince = now.Add(-silent[i])
		}
	}
	return nodes
}

func times(n int, d time.Duration) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = d
	}
	return all
}

// TestFleet: of a pod on the first node it is not known whether it runs, as long as more than half of the nodes became
// silent with it, or its grace is not over.
func TestFleet(t *testing.T) {
	t.Parallel()
	slowly := make([]time.Duration, 24)
	for i := range slowly {
		slowly[i] = time.Duration(24-i) * 2 * time.Minute
	}
	for name, tc := range map[string]struct {
		nodes  []lifecycle.Node
		others bool
		want   string // the text; "": the pod is missing
	}{
		"one of many":    {nodesOf("", 64, time.Hour), true, ""},
		"half":           {nodesOf("", 64, times(32, time.Hour)...), true, ""},
		"more than half": {nodesOf("", 64, times(40, time.Hour)...), true, "40 of 64 nodes do not answer"},
		"all, and nodes without such pods answer": {nodesOf("", 24, times(24, time.Hour)...), true, "24 of 24 nodes do not answer"},
		"a zone":              {append(nodesOf("a", 4, times(3, time.Hour)...), nodesOf("b", 20)...), true, "3 of 4 nodes of zone a do not answer"},
		"half of a zone":      {append(nodesOf("a", 6, times(3, time.Hour)...), nodesOf("b", 20)...), true, ""},
		"one after the other": {nodesOf("", 24, slowly...), true, ""},
		"beside nodes that were silent long before": {
			append(nodesOf("", 3, times(1, time.Hour)...), nodesOf("old", 8, times(8, 48*time.Hour)...)...), true, ""},
		"a single-node cluster":        {nodesOf("", 1, time.Hour), false, "1 of 1 nodes do not answer"},
		"the only node with such pods": {nodesOf("", 1, time.Hour), true, ""},
		"both nodes with such pods":    {nodesOf("", 2, times(2, time.Hour)...), true, ""},
		"two of three":                 {nodesOf("", 3, times(2, time.Hour)...), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var others []lifecycle.Node
			if tc.others {
				others = nodesOf("other", 1)
			}
			u := lifecycle.Unknowns{Fleet: lifecycle.JudgeFleet(tc.nodes, others)}
			pods, _ := u.Mark([]lifecycle.Pod{{LostNode: tc.nodes[0].Name, Tolerates: new(time.Duration)}}, now)
			if got := pods[0].Silence.Text; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestFleetThatAnswersAgain: a node that was silent together with others that answer again has its grace from then.
func TestFleetThatAnswersAgain(t *testing.T) {
	t.Parallel()
	grace := time.Minute
	back := func(n int, ago time.Duration) []lifecycle.Node {
		nodes := nodesOf("back", n)
		for i := range nodes {
			nodes[i].AnswersSince = now.Add(-ago)
		}
		return nodes
	}
	hour := func(n int) []lifecycle.Node { return nodesOf("n", n, times(n, time.Hour)...) }
	for name, tc := range map[string]struct {
		nodes, others []lifecycle.Node
		want          time.Duration // until it is missing; 0: it is
	}{
		"half of them":                         {append(hour(12), back(12, 10*time.Second)...), nil, 50 * time.Second},
		"all but one":                          {append(hour(1), back(23, 10*time.Second)...), nil, 50 * time.Second},
		"all but one, a minute ago":            {append(hour(1), back(23, time.Minute)...), nil, 0},
		"all but one, before it became silent": {append(hour(1), back(23, 2*time.Hour)...), nil, 0},
		"fewer than half were away":            {append(append(hour(1), back(5, 10*time.Second)...), nodesOf("steady", 6)...), nil, 0},
		"one of two":                           {append(hour(1), back(1, 10*time.Second)...), nil, 50 * time.Second},
		"one of two, beside one that answered": {append(hour(1), back(1, 10*time.Second)...), nodesOf("steady", 1), 0},
		"only one without such pods":           {hour(2), back(1, 10*time.Second), 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range tc.nodes {
				tc.nodes[i].Zone = "one"
			}
			u := lifecycle.Unknowns{Fleet: lifecycle.JudgeFleet(tc.nodes, tc.others), Grace: &grace}
			pods, after := u.Mark([]lifecycle.Pod{{LostNode: "n0"}}, now)
			if got := pods[0].Silence; got.IsSilent() != (tc.want > 0) || after != tc.want {
				t.Errorf("%+v, again after %s, want %s", got, after, tc.want)
			}
		})
	}
}

// TestGrace: a pod on a silent node is missing when the grace is over, not before.
func TestGrace(t *testing.T) {
	t.Parallel()
	minute, five := time.Minute, 5*time.Minute
	fleet := lifecycle.JudgeFleet(append(nodesOf("z", 9), nodesOf("n", 1, 2*time.Minute)...), nil)
	silent := lifecycle.Pod{LostNode: "n0", Tolerates: &five}
	in := func(d time.Duration) lifecycle.Silence {
		return lifecycle.Silence{Reason: lifecycle.NodesDoNotAnswer, Text: "node n0 does not answer", Until: now.Add(d)}
	}
	for name, tc := range map[string]struct {
		grace *time.Duration
		pod   func(*lifecycle.Pod)
		want  lifecycle.Silence
		after time.Duration
	}{
		"as long as the pod tolerates": {nil, nil, in(3 * time.Minute), 3 * time.Minute},
		"the grace of the set is over": {&minute, nil, lifecycle.Silence{}, 0},
		"a pod that tolerates it for ever": {nil, func(p *lifecycle.Pod) { p.Tolerates = nil },
			lifecycle.Silence{Reason: lifecycle.NodesDoNotAnswer, Text: "node n0 does not answer"}, 0},
		"a node that is not known yet": {&minute, func(p *lifecycle.Pod) { p.LostNode = "new" },
			lifecycle.Silence{Reason: lifecycle.NodesDoNotAnswer, Text: "node new does not answer", Until: now.Add(time.Minute)}, time.Minute},
		"a pod that is being deleted":  {nil, func(p *lifecycle.Pod) { p.Terminating = true }, lifecycle.Silence{}, 0},
		"a pod that has failed":        {nil, func(p *lifecycle.Pod) { p.Failed = true }, lifecycle.Silence{}, 0},
		"a pod on a node that answers": {nil, func(p *lifecycle.Pod) { p.LostNode = "" }, lifecycle.Silence{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := silent
			if tc.pod != nil {
				tc.pod(&pod)
			}
			marked, after := lifecycle.Unknowns{Fleet: fleet, Grace: tc.grace}.Mark([]lifecycle.Pod{pod}, now)
			if diff := cmp.Diff(tc.want, marked[0].Silence); diff != "" || after != tc.after {
				t.Errorf("after %s, want %s (-want +got):\n%s", after, tc.after, diff)
			}
		})
	}
}

// TestNodesThatAnswerAgain: what the control plane wrote about their pods while they were silent is believed when their
// kubelets have had the time to report.
func TestNodesThatAnswerAgain(t *testing.T) {
	t.Parallel()
	pod := lifecycle.Pod{Node: "n", Scheduled: true, Running: true}
	ready, unready := pod, pod
	ready.Ready, unready.Unready = true, true
	for name, tc := range map[string]struct {
		pod   lifecycle.Pod
		since time.Duration
		want  time.Duration // until it is missing, 0: it is known
	}{
		"a moment ago":             {pod, 5 * time.Second, 15 * time.Second},
		"for long":                 {pod, 20 * time.Second, 0},
		"its pod is ready already": {ready, 5 * time.Second, 0},
		"its kubelet has said so":  {unready, 5 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marked, after := lifecycle.Unknowns{Back: map[string]time.Time{"n": now.Add(-tc.since)}}.Mark([]lifecycle.Pod{tc.pod}, now)
			if got := marked[0].Silence; got.IsSilent() != (tc.want > 0) || after != tc.want {
				t.Errorf("%+v, after %s", got, after)
			}
		})
	}
}

// TestSilenceIsNoBreach: a minimum that may run is not in breach, one that is missing for certain is, and what is not
// known of replicas is not known of their group.
func TestSilenceIsNoBreach(t *testing.T) {
	t.Parallel()
	delay := time.Minute
	silence := lifecycle.Silence{Reason: lifecycle.NodesDoNotAnswer, Text: "40 of 64 nodes do not answer"}
	a := lifecycle.Availability{Available: 1, Silent: 1, Silence: silence, Needed: 2, Wanted: 3, WasAvailable: true,
		BreachedSince: now.Add(-time.Hour), Delay: &delay}
	want := lifecycle.Breach{Status: lifecycle.BreachUnknown, Reason: lifecycle.NodesDoNotAnswer, WasAvailable: true,
		Message: "1 pod is ready, 2 needed; 40 of 64 nodes do not answer; waiting"}
	if diff := cmp.Diff(want, lifecycle.JudgePods(a, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a.Needed = 3
	if got := lifecycle.JudgePods(a, now); got.Status != lifecycle.Breached || !got.Since.Equal(a.BreachedSince) {
		t.Errorf("one is missing for certain: %+v", got)
	}

	member := lifecycle.Clique{Observed: true, MinAvailable: 2, Ready: 1}
	dead := lifecycle.GroupReplica{Members: []lifecycle.Clique{member}}
	member.Silence = silence
	quiet := lifecycle.GroupReplica{Members: []lifecycle.Clique{member}}
	if n, got := lifecycle.SilentReplicas([]lifecycle.GroupReplica{dead, quiet}); n != 1 || got != silence {
		t.Errorf("%d replicas, %+v", n, got)
	}
	if got := lifecycle.ParseSilence(silence.Reason, silence.String()); got != silence {
		t.Errorf("read again: %+v", got)
	}
	silence.Until = now
	if got := lifecycle.ParseSilence(silence.Reason, silence.String()); got.Text != silence.Text || !got.Until.Equal(now) {
		t.Errorf("read again: %+v", got)
	}
}

// TestLostPodsOfAJob: pods that are lost with their nodes are a breach of their own kind, from when they are missing
// for certain, until another pod of the index runs; one that has failed makes it a failure.
func TestLostPodsOfAJob(t *testing.T) {
	t.Parallel()
	minute := time.Minute
	run := func(index int) lifecycle.Pod {
		return lifecycle.Pod{Name: fmt.Sprintf("w-%d", index), UID: fmt.Sprint(index), Index: index, Scheduled: true, Running: true, Tolerates: &minute}
	}
	lost := func(p lifecycle.Pod) lifecycle.Pod { p.LostNode = "n" + fmt.Sprint(p.Index); return p }
	waits := func(p lifecycle.Pod) lifecycle.Pod {
		p = lost(p)
		p.Silence = lifecycle.Silence{Reason: lifecycle.NodesDoNotAnswer, Text: "node n0 does not answer"}
		return p
	}
	leaves := func(p lifecycle.Pod) lifecycle.Pod { p.Terminating = true; return p }
	failed := func(p lifecycle.Pod) lifecycle.Pod { p.Running, p.Failed, p.Ended = false, true, true; return p }
	orphaned := func(p lifecycle.Pod) lifecycle.Pod { p = failed(leaves(p)); p.Orphaned = true; return p }
	for name, tc := range map[string]struct {
		pods     []lifecycle.Pod
		recorded lifecycle.IndexSet
		want     lifecycle.BreachReason
		lost     string
	}{
		"it is not known":                      {[]lifecycle.Pod{waits(run(0)), run(1)}, lifecycle.IndexSet{}, lifecycle.NodesDoNotAnswer, ""},
		"the grace is over":                    {[]lifecycle.Pod{lost(run(0)), run(1)}, lifecycle.IndexSet{}, lifecycle.PodsLost, "0"},
		"deleted on a silent node":             {[]lifecycle.Pod{leaves(lost(run(0))), run(1)}, lifecycle.IndexSet{}, lifecycle.PodsLost, "0"},
		"deleted, and the node answers again":  {[]lifecycle.Pod{failed(leaves(run(0))), run(1)}, lifecycle.Indices(0), lifecycle.PodsLost, "0"},
		"deleted on a node that answers":       {[]lifecycle.Pod{leaves(run(0)), run(1)}, lifecycle.IndexSet{}, lifecycle.InsufficientReadyPods, ""},
		"its node was deleted":                 {[]lifecycle.Pod{orphaned(run(0)), run(1)}, lifecycle.IndexSet{}, lifecycle.PodsLost, "0"},
		"gone, which is recorded":              {[]lifecycle.Pod{run(1)}, lifecycle.Indices(0), lifecycle.PodsLost, "0"},
		"gone":                                 {[]lifecycle.Pod{run(1)}, lifecycle.IndexSet{}, lifecycle.InsufficientReadyPods, ""},
		"another has failed":                   {[]lifecycle.Pod{lost(run(0)), failed(run(1))}, lifecycle.IndexSet{}, lifecycle.InsufficientReadyPods, "0"},
		"another has failed, one is not known": {[]lifecycle.Pod{waits(run(0)), failed(run(1))}, lifecycle.IndexSet{}, lifecycle.InsufficientReadyPods, ""},
		"it runs again":                        {[]lifecycle.Pod{run(0), run(1)}, lifecycle.Indices(0), lifecycle.SufficientReadyPods, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			training := lifecycle.TrainingPods{WasAvailable: true, Started: lifecycle.Indices(0, 1), Lost: tc.recorded}
			training.Replicas, training.MinAvailable, training.Pods = 2, 2, tc.pods
			d := lifecycle.DecideTrainingPods(training, now)
			if d.Breach.Reason != tc.want || d.Lost.String() != tc.lost {
				t.Errorf("reason %s, want %s; lost %q, want %q: %s", d.Breach.Reason, tc.want, d.Lost, tc.lost, d.Breach.Message)
			}
			if unknown := d.Breach.Status == lifecycle.BreachUnknown; unknown != training.MayBeAvailable(now) && tc.want != lifecycle.SufficientReadyPods {
				t.Errorf("it may be available: %v", !unknown)
			}
		})
	}
}

// TestSilentScheduler: a pod that waits is missing for certain as soon as its scheduler has answered, as long as that
// renews its Lease.
func TestSilentScheduler(t *testing.T) {
	t.Parallel()
	lease := lifecycle.Lease{Scheduler: "muster-scheduler", Name: "muster-system/muster-scheduler", RenewedAt: now.Add(-2 * time.Second), Expires: now.Add(13 * time.Second)}
	stale := lease
	stale.RenewedAt, stale.Expires = now.Add(-76*time.Second), now.Add(-61*time.Second)
	const lost = "muster-scheduler has not answered since 2026-05-01T11:58:44Z (Lease muster-system/muster-scheduler)"
	const idle = "muster-scheduler has not answered since 2026-05-01T11:58:00Z (but renews Lease muster-system/muster-scheduler)"
	const nobody = "other has not answered since 2026-05-01T11:58:00Z (perhaps no scheduler of that name runs)"
	for name, tc := range map[string]struct {
		lease  lifecycle.Lease
		atOnce bool
		age    time.Duration
		pod    func(*lifecycle.Pod)
		want   string
		after  time.Duration
	}{
		"a new pod":                                     {lease, false, 10 * time.Second, nil, "", 13 * time.Second},
		"a new pod, before something ends":              {lease, true, 0, nil, "muster-scheduler has not answered since 2026-05-01T12:00:00Z (but renews Lease muster-system/muster-scheduler)", 10 * time.Second},
		"an answered one, before something ends":        {lease, true, time.Hour, func(p *lifecycle.Pod) { p.Answered = true }, "", 13 * time.Second},
		"the Lease is not renewed":                      {stale, false, 0, nil, lost, 10 * time.Second},
		"the Lease is not renewed, and it had answered": {stale, false, time.Hour, func(p *lifecycle.Pod) { p.Answered = true }, lost, 10 * time.Second},
		"the Lease is held and not served":              {lease, false, 2 * time.Minute, nil, idle, 10 * time.Second},
		"another scheduler, new":                        {stale, false, 45 * time.Second, func(p *lifecycle.Pod) { p.Scheduler = "other" }, "", 15 * time.Second},
		"another scheduler that does not run":           {lease, false, 2 * time.Minute, func(p *lifecycle.Pod) { p.Scheduler = "other" }, nobody, 10 * time.Second},
		"another scheduler that has answered":           {lease, false, 2 * time.Minute, func(p *lifecycle.Pod) { p.Scheduler, p.Answered = "other", true }, "", 0},
		"a pod with a scheduling gate":                  {stale, true, time.Hour, func(p *lifecycle.Pod) { p.Gated = true }, "", 0},
		"a bound pod":                                   {stale, true, time.Hour, func(p *lifecycle.Pod) { p.Scheduled = true }, "", 0},
		"a pod that is being deleted":                   {stale, true, time.Hour, func(p *lifecycle.Pod) { p.Terminating = true }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := lifecycle.Pod{Scheduler: "muster-scheduler", WaitsSince: now.Add(-tc.age)}
			if tc.pod != nil {
				tc.pod(&pod)
			}
			marked, after := lifecycle.Unknowns{Lease: tc.lease, AtOnce: tc.atOnce}.Mark([]lifecycle.Pod{pod}, now)
			if got := marked[0].Silence.Text; got != tc.want || after != tc.after {
				t.Errorf("%q after %s, want %q after %s", got, after, tc.want, tc.after)
			}
		})
	}
}
