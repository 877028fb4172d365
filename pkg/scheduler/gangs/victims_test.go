// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/test/wrappers"
)

// victims lists the pods that may be preempted, by name.
type victims struct {
	Singly    []string
	Whole     [][]string
	Protected string
}

// victimsOn returns the victims on a node for a preemptor of the given priority.
func (s *story) victimsOn(node string, priority int32) victims {
	var pods []*corev1.Pod
	for _, uid := range s.uids() {
		if pod := s.r.members[uid].pod; pod.Spec.NodeName == node && count.PodPriority(pod) < priority {
			pods = append(pods, pod)
		}
	}
	v := s.r.Victims(pods, priority, s.now)
	out := victims{Protected: v.Protected}
	for _, uid := range sets.List(v.Singly) {
		out.Singly = append(out.Singly, string(uid))
	}
	for _, whole := range v.Whole {
		var names []string
		for _, pod := range whole {
			names = append(names, pod.Name)
		}
		slices.Sort(names)
		out.Whole = append(out.Whole, names)
	}
	return out
}

func (s *story) uids() []types.UID {
	var uids []types.UID
	for uid := range s.r.members {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}

func on(node string, names ...string) (out []*wrappers.PodWrapper) {
	for _, n := range names {
		out = append(out, memberPod(n).Node(node))
	}
	return out
}

func TestVictims(t *testing.T) {
	t.Parallel()
	semi := func(spec *v2alpha2.PodGroupSpec) { spec.Preemptibility = v2alpha2.SemiPreemptible }
	non := func(spec *v2alpha2.PodGroupSpec) { spec.Preemptibility = v2alpha2.NonPreemptible }
	for name, tc := range map[string]struct {
		tell func(s *story)
		want victims
	}{
		"a gang on one node is preempted whole": {
			tell: func(s *story) { s.group(podGroup().MinMember(2)).pods(on("n", "a", "b")...) },
			want: victims{Whole: [][]string{{"a", "b"}}},
		},
		"a gang on two nodes is protected": {
			tell: func(s *story) { s.group(podGroup().MinMember(2)).pods(on("n", "a")...).pods(on("m", "b")...) },
			want: victims{Protected: isSpreadOverNodes},
		},
		"pods above the minimum are preempted singly, the last ones first": {
			tell: func(s *story) { s.group(podGroup().MinMember(2)).pods(on("m", "a")...).pods(on("n", "b", "c")...) },
			want: victims{Singly: []string{"c"}, Protected: isSpreadOverNodes},
		},
		"a gang on one node with surplus is preempted whole or loses the surplus": {
			tell: func(s *story) { s.group(podGroup().MinMember(1)).pods(on("n", "a", "b")...) },
			want: victims{Singly: []string{"b"}, Whole: [][]string{{"a", "b"}}},
		},
		"of a semi-preemptible gang only surplus is preempted": {
			tell: func(s *story) { s.group(podGroup().MinMember(1).Spec(semi)).pods(on("n", "a", "b")...) },
			want: victims{Singly: []string{"b"}, Protected: isSemiPreemptible},
		},
		"no pod of a non-preemptible gang is preempted": {
			tell: func(s *story) { s.group(podGroup().MinMember(1).Spec(non)).pods(on("n", "a", "b")...) },
			want: victims{Protected: isNonPreemptible},
		},
		"a gang whose highest priority is that of the preemptor is protected": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(1)).pods(on("n", "a")...).pods(memberPod("b").Node("n").Priority(100))
			},
			want: victims{Protected: isMoreImportant},
		},
		"a gang whose class is low, and one of whose pods is not, is not preempted whole": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2).Priority("humble")).pods(memberPod("a").Node("n").Priority(20)).pods(memberPod("b").Node("n").Priority(100))
			},
			want: victims{Protected: isSpreadOverNodes},
		},
		"a partially bound gang is preempted whole too": {
			tell: func(s *story) { s.group(podGroup().MinMember(3)).pods(on("n", "a", "b")...) },
			want: victims{Whole: [][]string{{"a", "b"}}},
		},
		"a gang that is being bound is protected": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(1)).pods(on("n", "a")...).members("b").leads("b").commits("b")
			},
			want: victims{Protected: isBeingBound},
		},
		"surplus of a tree is what its minimum does not need": {
			tell: func(s *story) {
				s.group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 1)).
					pods(memberPod("x0").SubGroup("x").Node("m"), memberPod("y0").SubGroup("y").Node("n"))
			},
			want: victims{Singly: []string{"y0"}},
		},
		"pods that do not count, are being deleted or have no PodGroup are treated as pods without a gang": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(1)).pods(memberPod("a").SubGroup("nowhere").Node("n"), memberPod("b").Node("n").Terminating()).
					pods(on("m", "c")...).pods(wrappers.MakePod("d", testNamespace).UID("d").Gang("other").Node("n"))
			},
			want: victims{Singly: []string{"a", "b", "d"}},
		},
		"a gang that may have lost a vanished pod is protected": {
			tell: func(s *story) { s.group(podGroup().MinMember(1)).pods(on("n", "a", "b")...).gone("b") },
			want: victims{Protected: isBeingBound},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			tc.tell(s)
			if diff := cmp.Diff(tc.want, s.victimsOn("n", 100), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPreempt(t *testing.T) {
	t.Parallel()
	preempts := func(s *story, uid string, victims ...types.UID) (*Preempted, error) {
		p, err := s.r.Preempt(types.UID(uid), sets.New(victims...), 100, s.now)
		if p != nil {
			p.Group = nil
		}
		return p, err
	}
	t.Run("surplus is taken once, also by preemptors that chose before the first deletion was seen", func(t *testing.T) {
		t.Parallel()
		s := begin(t).group(podGroup().MinMember(1)).pods(on("n", "a")...).pods(on("m", "b")...)
		got, err := preempts(s, "b", "b")
		if diff := cmp.Diff(&Preempted{Pods: 1}, got); diff != "" || err != nil {
			t.Fatalf("the first: %v (-want +got):\n%s", err, diff)
		}
		if _, err := preempts(s, "a", "a", "c"); err != nil {
			t.Fatalf("all remaining pods are on one node, and are preempted: %v", err)
		}
		s = begin(t).group(podGroup().MinMember(2)).pods(on("n", "a")...).pods(on("m", "b", "c")...)
		if _, err := preempts(s, "c", "c"); err != nil {
			t.Fatal(err)
		}
		if _, err := preempts(s, "a", "a"); err == nil {
			t.Error("a second pod was taken, and the minimum is lost")
		}
		if diff := cmp.Diff(victims{Singly: []string{"c"}, Protected: isSpreadOverNodes}, s.victimsOn("m", 100)); diff != "" {
			t.Errorf("victims (-want +got):\n%s", diff)
		}
		// The deletion never happened.
		s.after(preemptionReported)
		if _, err := preempts(s, "c", "c"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a gang that is preempted whole is reported once", func(t *testing.T) {
		t.Parallel()
		s := begin(t).group(podGroup().MinMember(2)).pods(on("n", "a", "b")...)
		for i, want := range []*Preempted{{Whole: true, Pods: 2}, {Whole: true}} {
			got, err := preempts(s, []string{"a", "b"}[i], "a", "b")
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("pod %d: %v (-want +got):\n%s", i, err, diff)
			}
		}
	})
	t.Run("a gang that has grown to another node since is left alone", func(t *testing.T) {
		t.Parallel()
		s := begin(t).group(podGroup().MinMember(2)).pods(on("n", "a", "b")...).pods(on("m", "c")...)
		if _, err := preempts(s, "a", "a", "b"); err == nil {
			t.Error("a part of the gang was taken")
		}
	})
	t.Run("a pod without a gang", func(t *testing.T) {
		t.Parallel()
		if got, err := preempts(begin(t), "x", "x"); got != nil || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("a gang that is gone is forgotten", func(t *testing.T) {
		t.Parallel()
		s := begin(t).group(podGroup().MinMember(1)).pods(on("n", "a")...)
		if _, err := preempts(s, "a", "a"); err != nil {
			t.Fatal(err)
		}
		s.terminates("a").gone("a").after(time.Second)
		if n := len(s.r.gangs[gangG].victims); n != 0 {
			t.Errorf("%d victims are remembered", n)
		}
	})
}

// BenchmarkVictims measures the calls of a preemptor for each of 1,000 nodes: a gang of 1,000 leaves has one pod on
// each, with and without surplus.
func BenchmarkVictims(b *testing.B) {
	for name, minimum := range map[string]int32{"nothing above the minimum": 1000, "half above the minimum": 500} {
		b.Run(name, func(b *testing.B) {
			r := New()
			r.AddProfile(wrappers.SchedulerName)
			now := time.Unix(1_000_000, 0)
			r.SetSynced(now)
			group := podGroup().MinSubGroup(minimum)
			nodes := make([][]*corev1.Pod, 1000)
			for i := range nodes {
				leaf := fmt.Sprintf("leaf-%d", i)
				group.SubGroup(leaf, 1)
				pod := memberPod(leaf).SubGroup(leaf).Node(leaf).Obj()
				nodes[i] = []*corev1.Pod{pod}
			}
			r.SetGroup(group.Obj(), now)
			for _, pods := range nodes {
				r.SetPod(pods[0], now)
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, pods := range nodes {
					r.Victims(pods, 100, now)
				}
			}
		})
	}
}
