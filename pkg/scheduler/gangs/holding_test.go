// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/ledger"
	"github.com/muster-project/muster/test/wrappers"
)

// ready delivers the informer's event that pods are ready, or not.
func (s *story) ready(is corev1.ConditionStatus, names ...string) *story {
	for _, n := range names {
		pod := s.r.members[types.UID(n)].pod.DeepCopy()
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: is}}
		s.effects = s.r.SetPod(pod, s.now)
	}
	return s
}

func TestHolding(t *testing.T) {
	t.Parallel()
	services := func() *wrappers.PodGroupWrapper { // two of the three replicas are needed
		return podGroup().Inner("", "r", 2).SubGroupOf("r", "x", 2).SubGroupOf("r", "y", 2).SubGroupOf("r", "z", 2)
	}
	replicas := func(s *story) *story {
		return s.group(services()).pods(sub("x", "x1", "x2")...).pods(sub("y", "y1", "y2")...).pods(sub("z", "z1", "z2")...)
	}
	tests := map[string]struct {
		do   func(s *story)
		want map[string]ledger.State
	}{
		"a gang that waits holds nothing": {
			do: func(s *story) { s.group(podGroup().MinMember(2)).members("a", "b") },
		},
		"a gang that is being bound starts": {
			do: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a", "b").leads("a").commits("a", "b").assumes("a", "b").arrives("a", "b").posts("a").shownBound("a").ready("True", "a")
			},
			want: map[string]ledger.State{"a": ledger.Starting},
		},
		"a gang that is bound starts until its minimum is ready": {
			do: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").ready("True", "a")
			},
			want: map[string]ledger.State{"a": ledger.Starting, "b": ledger.Starting},
		},
		"a gang whose minimum is ready works": {
			do: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").ready("True", "a", "b")
			},
		},
		"a pod above the minimum starts alone": {
			do: func(s *story) {
				s.group(podGroup().MinMember(1)).members("a").binds("a", "a").ready("True", "a").members("b").shownBound("b")
			},
		},
		"a gang starts again when a pod of its minimum is not ready any more": {
			do: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").ready("True", "a", "b").ready("False", "b")
			},
			want: map[string]ledger.State{"a": ledger.Starting, "b": ledger.Starting},
		},
		"a pod that has succeeded was ready": {
			do: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").ready("True", "a")
				s.pods(memberPod("b").Node("n").Phase(corev1.PodSucceeded))
			},
		},
		"a gang that lost a pod is below its minimum": {
			do: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").ready("True", "a", "b").pods(memberPod("b").Node("n").Terminating())
			},
			want: map[string]ledger.State{"a": ledger.BelowMinimum},
		},
		"a gang of which pods were bound one by one is partial": {
			do: func(s *story) {
				s.group(podGroup().MinMember(3)).members("a", "b", "c").shownBound("a", "b").ready("True", "a", "b")
			},
			want: map[string]ledger.State{"a": ledger.Partial, "b": ledger.Partial},
		},
		"a replica above the minimum that is bound in part is torn": {
			do: func(s *story) {
				replicas(s).binds("x1", "x1", "x2", "y1", "y2").ready("True", "x1", "x2", "y1", "y2").shownBound("z1")
			},
			want: map[string]ledger.State{"z1": ledger.TornUnit},
		},
		"a replica above the minimum that is being bound starts": {
			do: func(s *story) {
				replicas(s).binds("x1", "x1", "x2", "y1", "y2").ready("True", "x1", "x2", "y1", "y2").
					leads("z1").commits("z1", "z2").assumes("z1", "z2").arrives("z1", "z2").posts("z1").shownBound("z1")
			},
			want: map[string]ledger.State{"z1": ledger.Starting},
		},
		"a gang without its PodGroup decides about nothing": {
			do: func(s *story) { s.members("a").shownBound("a") },
		},
		"a pod without a place in its gang is as one without a gang": {
			do: func(s *story) {
				s.group(podGroup().MinMember(1)).members("a").binds("a", "a").ready("True", "a").pods(memberPod("s").SubGroup("x").Node("n"))
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			tt.do(s)
			want := map[types.UID]ledger.State{}
			for uid, state := range tt.want {
				want[types.UID(uid)] = state
			}
			if diff := gocmp.Diff(want, s.r.Holding()); diff != "" {
				t.Errorf("holding (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStartsAreTold(t *testing.T) {
	t.Parallel()
	var told []string
	tell := func(what string) func(Start) {
		return func(s Start) {
			told = append(told, fmt.Sprintf("%s %d GPUs, priority %d, %s", what, s.GPUs, s.Priority, s.Took))
		}
	}
	observe := func(s *story) *story {
		opts := s.r.opts
		opts.Admitted, opts.Ready = tell("admitted"), tell("ready")
		s.r.Configure(opts)
		return s
	}
	pods := func(s *story) *story { return s.pods(memberPod("a").Priority(7), memberPod("b").Priority(7)) }
	tests := map[string]struct {
		do   func(s *story)
		want []string
	}{
		"a gang that waits, starts and gets ready": {
			do: func(s *story) {
				pods(s.group(podGroup().MinMember(2))).after(20*time.Second).binds("a", "a", "b").after(5*time.Second).ready("True", "a").after(time.Second).ready("True", "b")
				s.ready("False", "b").ready("True", "b")
			},
			want: []string{"admitted 2 GPUs, priority 7, 20s", "ready 2 GPUs, priority 7, 6s"},
		},
		"a gang of which more than the minimum is bound": {
			do: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a", "b", "c").after(3*time.Second).leads("a").commits("a", "b", "c").assumes("a", "b", "c").arrives("a", "b", "c")
				s.posts("a", "b").after(time.Second).posts("c").shownBound("a", "b", "c").after(time.Second).ready("True", "a", "b")
			},
			want: []string{"admitted 3 GPUs, priority 0, 3s", "ready 3 GPUs, priority 0, 2s"},
		},
		"the time before it is complete does not count": {
			do: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a").after(time.Hour).members("b").after(time.Second).binds("a", "a", "b")
			},
			want: []string{"admitted 2 GPUs, priority 0, 1s"},
		},
		"the time that an earlier process has recorded counts": {
			do: func(s *story) {
				g := podGroup().MinMember(2)
				group := g.Obj()
				group.Status.WaitingSince = &metav1.Time{Time: s.now.Add(-time.Minute)}
				s.effects = s.r.SetGroup(group, s.now)
				s.members("a", "b").binds("a", "a", "b")
			},
			want: []string{"admitted 2 GPUs, priority 0, 1m0s"},
		},
		"a gang that ends before it is ready, and starts again": {
			do: func(s *story) {
				s.group(podGroup().MinMember(1)).members("a").binds("a", "a").after(time.Hour)
				s.pods(memberPod("a").Node("n").Terminating()).gone("a")
				s.members("b").after(2*time.Second).binds("b", "b").after(3*time.Second).ready("True", "b")
			},
			want: []string{"admitted 1 GPUs, priority 0, 0s", "admitted 1 GPUs, priority 0, 2s", "ready 1 GPUs, priority 0, 3s"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			told = nil
			tt.do(observe(begin(t)))
			if diff := gocmp.Diff(tt.want, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a process that does not lead tells nothing", func(t *testing.T) {
		told = nil
		observe(begin(t)).group(podGroup().MinMember(1)).members("a").shownBound("a").ready("True", "a")
		if len(told) > 0 {
			t.Errorf("told %v", told)
		}
	})
}

func TestUnsatisfied(t *testing.T) {
	t.Parallel()
	s := begin(t)
	group := func(name string, min int32) *wrappers.PodGroupWrapper {
		return wrappers.MakePodGroup(name, testNamespace).UID(name).MinMember(min)
	}
	pod := func(gang, name string) *wrappers.PodWrapper {
		return wrappers.MakePod(name, testNamespace).UID(name).Gang(gang).GPUs(4)
	}
	with := func(w *wrappers.PodGroupWrapper, phase v2alpha2.PodGroupPhase, reason v2alpha2.Reason) {
		g := w.Obj()
		g.Status.Phase, g.Status.Reason = phase, reason
		s.r.SetGroup(g, s.now)
	}
	with(group("runs", 1), v2alpha2.PodGroupAdmitted, "")
	s.pods(pod("runs", "r").Node("n"))
	with(group("idle", 1), v2alpha2.PodGroupIdle, v2alpha2.ReasonWaitingForPods)
	with(group("done", 1), v2alpha2.PodGroupCompleted, "")
	with(group("lacks-pods", 3), "", "")
	s.pods(pod("lacks-pods", "l1"), pod("lacks-pods", "l2"))
	with(group("new", 2), "", "")
	s.pods(pod("new", "n1"), pod("new", "n2"))
	with(group("refused", 1), v2alpha2.PodGroupWaiting, v2alpha2.ReasonFragmented)
	s.pods(pod("refused", "f1"))
	with(group("degraded", 2), v2alpha2.PodGroupDegraded, v2alpha2.ReasonWaitingForPods)
	s.pods(pod("degraded", "d1").Node("n"), pod("degraded", "d2"))
	with(group("invalid", 1).SubGroup("x", 1).SubGroup("x", 1), v2alpha2.PodGroupWaiting, v2alpha2.ReasonBehindInQueue)
	s.pods(pod("nobody", "p"))

	want := []Unsatisfied{
		{Reason: v2alpha2.ReasonBehindInQueue, GPUs: 8, Lacks: 8, Since: s.now},
		{Reason: v2alpha2.ReasonFragmented, GPUs: 4, Lacks: 4, Since: s.now},
		{Reason: v2alpha2.ReasonInvalid},
		{Reason: v2alpha2.ReasonWaitingForPods, GPUs: 8, Lacks: 4, Since: s.now},
		{Reason: v2alpha2.ReasonWaitingForPods, GPUs: 8, Lacks: 8},
	}
	got := s.r.Unsatisfied()
	slices.SortFunc(got, func(a, b Unsatisfied) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Lacks, b.Lacks))
	})
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
}

// TestSurplusDoesNotMakeAGangOld: a gang that loses a pod of its minimum has not waited since its surplus does.
func TestSurplusDoesNotMakeAGangOld(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b", "c").binds("a", "a", "b").after(72 * time.Hour)
	s.pods(memberPod("b").Node("n").Terminating()).gone("b")
	for _, u := range s.r.Unsatisfied() {
		if !u.Since.IsZero() {
			t.Errorf("it waits since %s, %s before it lost a pod", u.Since, s.now.Sub(u.Since))
		}
	}
}

// TestOverdue: a pod breaks the promise of its PodGroup when it runs for longer, and as long as it does.
func TestOverdue(t *testing.T) {
	t.Parallel()
	promising := podGroup().MinMember(1)
	promising.Annotation(v2alpha2.MaxRuntimeAnnotation, "1h")
	s := begin(t).group(promising).members("a", "waits").binds("a", "a")
	pod := memberPod("a").Node("n").Obj()
	pod.Status.StartTime = new(metav1.NewTime(s.now))
	s.r.SetPod(pod, s.now)
	for after, want := range map[time.Duration]int{-time.Hour: 0, time.Hour: 0, time.Hour + 1: 1, 1000 * time.Hour: 1} {
		if got := s.r.Overdue(s.now.Add(after)); got != want {
			t.Errorf("after %s: %d pods, want %d", after, got, want)
		}
	}
}

// BenchmarkHolding is what the Registry adds to the ledger: 5,000 gangs that work, 500 that start, and 2,000 that wait.
func BenchmarkHolding(b *testing.B) {
	r, _ := waitingGangs(2000)
	for i := range 5500 {
		name := fmt.Sprintf("bound%04d", i)
		r.SetGroup(wrappers.MakePodGroup(name, "ml").UID("uid-"+name).MinMember(8).Obj(), benchStart)
		for k := range 8 {
			w := benchPod(name, k).Node("n")
			pod := w.Obj()
			if i < 5000 {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			r.SetPod(pod, benchStart)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(r.Holding()) != 4000 || len(r.Unsatisfied()) != 2000 {
			b.Fatal(len(r.Holding()), len(r.Unsatisfied()))
		}
	}
}
