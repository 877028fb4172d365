// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	SubGroups []string // "those on the node of all", as "a of a+b"
	Gangs     []string
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
	for _, u := range v.SubGroups {
		out.SubGroups = append(out.SubGroups, describeUnit(u))
	}
	for _, u := range v.Gangs {
		out.Gangs = append(out.Gangs, describeUnit(u))
	}
	return out
}

func describeUnit(u VictimUnit) string {
	return describePods(u.OnNode) + " of " + describePods(u.All)
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
			want: victims{Gangs: []string{"a+b of a+b"}},
		},
		"a gang on two nodes is preempted whole": {
			tell: func(s *story) { s.group(podGroup().MinMember(2)).pods(on("n", "a")...).pods(on("m", "b")...) },
			want: victims{Gangs: []string{"a of a+b"}},
		},
		"pods above the minimum are preempted singly, the last ones first": {
			tell: func(s *story) { s.group(podGroup().MinMember(2)).pods(on("m", "a")...).pods(on("n", "b", "c")...) },
			want: victims{Singly: []string{"c"}, Gangs: []string{"b of a+b+c"}},
		},
		"a gang on one node with surplus is preempted whole or loses the surplus": {
			tell: func(s *story) { s.group(podGroup().MinMember(1)).pods(on("n", "a", "b")...) },
			want: victims{Singly: []string{"b"}, Gangs: []string{"a of a+b"}},
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
			want: victims{Protected: isMoreImportant},
		},
		"a gang whose class is low keeps a sub-group with an important pod, and loses another one": {
			tell: func(s *story) {
				s.group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2).Priority("humble")).
					pods(memberPod("x0").SubGroup("x").Node("n").Priority(20), memberPod("y0").SubGroup("y").Node("n").Priority(20),
						memberPod("y1").SubGroup("y").Node("m").Priority(100))
			},
			want: victims{SubGroups: []string{"x0 of x0"}, Protected: isMoreImportant},
		},
		"a partially bound gang is preempted whole too": {
			tell: func(s *story) { s.group(podGroup().MinMember(3)).pods(on("n", "a", "b")...) },
			want: victims{Gangs: []string{"a+b of a+b"}},
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
			want: victims{SubGroups: []string{"y0 of y0"}},
		},
		"a sub-group above the minimum is preempted whole, on all of its nodes": {
			tell: func(s *story) {
				s.group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2)).
					pods(memberPod("x0").SubGroup("x").Node("n"), memberPod("y0").SubGroup("y").Node("n"), memberPod("y1").SubGroup("y").Node("m"))
			},
			want: victims{SubGroups: []string{"y0 of y0+y1"}, Gangs: []string{"x0 of x0+y0+y1"}},
		},
		"of a semi-preemptible gang sub-groups above the minimum are preempted": {
			tell: func(s *story) {
				s.group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 1).Spec(semi)).
					pods(memberPod("x0").SubGroup("x").Node("n"), memberPod("y0").SubGroup("y").Node("n"))
			},
			want: victims{SubGroups: []string{"y0 of y0"}, Protected: isSemiPreemptible},
		},
		"a gang that another gang is about to preempt is protected": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(1)).pods(on("n", "a", "b")...)
				s.r.gangs[gangG].victimOf = &Preemption{}
			},
			want: victims{Protected: isVictimOfOther},
		},
		"the PodGroup of an invalid gang does not protect it": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(1).MinSubGroup(1)).pods(on("n", "a")...).pods(on("m", "b")...)
			},
			want: victims{Gangs: []string{"a of a+b"}},
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

// preempted is what Preempt said about a victim of a pod without a gang.
type preempted struct {
	Evicts string // the victims that are evicted with it, as "a+b"; "": none, or they are already
	Ends   bool
	Lost   string // what the event about the gang says, after they were marked
}

// preempts lets the pod preempt the victims for the first of them. The others are asked about first while they are being marked,
// and must end with it.
func (s *story) preempts(by string, victims ...string) (preempted, error) {
	pods := make([]*corev1.Pod, len(victims))
	for i, name := range victims {
		pods[i] = wrappers.MakePod(name, testNamespace).UID(name).Obj()
	}
	preemptor := wrappers.MakePod(by, testNamespace).UID(by).Priority(100).Obj()
	p, ends, err := s.r.Preempt(pods[0], pods, preemptor, by, s.now)
	got := preempted{Ends: ends}
	if p == nil || err != nil {
		return got, err
	}
	got.Evicts = describePods(p.Pods())
	for _, v := range p.Victims {
		if q, ends, err := s.r.Preempt(v.Pod, pods, preemptor, by, s.now); q != nil || !ends || err != nil {
			s.t.Errorf("%s is about to end, and %v, %v, %v", v.Pod.Name, q, ends, err)
		}
	}
	lost, e, err := s.r.RecordMarkedForPod(p, nil, s.now)
	if len(lost) != 1 || len(e.Unmark) > 0 || err != nil {
		s.t.Fatalf("marked: %+v, %+v, %v", lost, e, err)
	}
	got.Lost = fmt.Sprintf("whole %v, %s on %q", lost[0].Whole, describePods(lost[0].Pods), lost[0].Node)
	s.r.RecordEvicted(p, nil, s.now)
	if g := s.r.gangs[gangG]; g.victimOf != nil {
		s.t.Error("the gang is still about to lose pods")
	}
	return got, nil
}

func describePods(pods []*corev1.Pod) string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return strings.Join(names, "+")
}

func TestPreempt(t *testing.T) {
	t.Parallel()
	ends := preempted{Ends: true}
	for name, tc := range map[string]struct {
		tell    func(s *story)
		before  []string // victims of an earlier pod
		victims []string
		want    preempted
		err     string
	}{
		"surplus": {
			tell:    func(s *story) { s.group(podGroup().MinMember(1)).pods(on("n", "a")...).pods(on("m", "b")...) },
			victims: []string{"b"}, want: preempted{"b", true, `whole false, b on "m"`},
		},
		"what another pod has preempted is not evicted again": {
			tell:   func(s *story) { s.group(podGroup().MinMember(1)).pods(on("n", "a")...).pods(on("m", "b")...) },
			before: []string{"b"}, victims: []string{"b"}, want: ends,
		},
		"all that remain, although the first deletion was not observed": {
			tell:   func(s *story) { s.group(podGroup().MinMember(1)).pods(on("n", "a")...).pods(on("m", "b")...) },
			before: []string{"b"}, victims: []string{"a", "b"}, want: preempted{"a", true, `whole true, a on "n"`},
		},
		"no pod that the gang needs when the first one is gone": {
			tell:   func(s *story) { s.group(podGroup().MinMember(2)).pods(on("n", "a")...).pods(on("m", "b", "c")...) },
			before: []string{"c"}, victims: []string{"a"}, err: isMinimum,
		},
		"a deletion that was given up": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).pods(on("n", "a")...).pods(on("m", "b", "c")...)
				_, _ = s.preempts("earlier", "c")
				s.r.RecordEvicted(&Preemption{}, []types.UID{"c"}, s.now)
			},
			victims: []string{"c"}, want: preempted{"c", true, `whole false, c on "m"`},
		},
		"a whole gang on one node": {
			tell:    func(s *story) { s.group(podGroup().MinMember(2)).pods(on("n", "a", "b")...) },
			victims: []string{"a", "b"}, want: preempted{"a+b", true, `whole true, a+b on "n"`},
		},
		"a whole gang on two nodes": {
			tell:    func(s *story) { s.group(podGroup().MinMember(2)).pods(on("n", "a")...).pods(on("m", "b")...) },
			victims: []string{"a", "b"}, want: preempted{"a+b", true, `whole true, a+b on ""`},
		},
		"two pods above the minimum": {
			tell:    func(s *story) { s.group(podGroup().MinMember(1)).pods(on("n", "a", "b")...).pods(on("m", "c")...) },
			victims: []string{"b", "c"}, want: preempted{"b+c", true, `whole false, b+c on ""`},
		},
		"a part of a sub-group is kept": {
			tell: func(s *story) {
				s.group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2)).
					pods(memberPod("x0").SubGroup("x").Node("n"), memberPod("y0").SubGroup("y").Node("n"), memberPod("y1").SubGroup("y").Node("m"))
			},
			victims: []string{"y0"}, err: isMinimum,
		},
		"a whole sub-group": {
			tell: func(s *story) {
				s.group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2)).
					pods(memberPod("x0").SubGroup("x").Node("n"), memberPod("y0").SubGroup("y").Node("n"), memberPod("y1").SubGroup("y").Node("m"))
			},
			victims: []string{"y0", "y1"}, want: preempted{"y0+y1", true, `whole false, y0+y1 on ""`},
		},
		"a pod that terminates since does not stop the eviction of its gang": {
			tell:    func(s *story) { s.group(podGroup().MinMember(2)).pods(on("n", "a", "b")...).terminates("b") },
			victims: []string{"a", "b"}, want: preempted{"a", true, `whole true, a on "n"`},
		},
		"a pod that terminates does not count": {
			tell:    func(s *story) { s.group(podGroup().MinMember(2)).pods(on("n", "a", "b")...).terminates("b") },
			victims: []string{"b", "a"},
		},
		"a gang that another gang is about to preempt is left to it": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(1)).pods(on("n", "a", "b")...)
				s.r.gangs[gangG].victimOf = &Preemption{}
			},
			victims: []string{"b"}, err: isVictimOfOther,
		},
		"a gang that has grown to another node since is left alone": {
			tell:    func(s *story) { s.group(podGroup().MinMember(2)).pods(on("n", "a", "b")...).pods(on("m", "c")...) },
			victims: []string{"a", "b"}, err: isMinimum,
		},
		"a pod without a gang": {tell: func(*story) {}, victims: []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			tc.tell(s)
			if len(tc.before) > 0 {
				if _, err := s.preempts("earlier", tc.before...); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.preempts("high", tc.victims...)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%v, want %q (-want +got):\n%s", err, tc.err, diff)
			}
		})
	}
}

// While the victims of a pod without a gang are being marked, nothing is planned for their gangs, and no other pod takes them. If one
// of them cannot be marked, or a gang has changed, nobody ends, and the gangs are as before.
func TestVictimsOfAPodThatAreNotMarked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(s *story)
		err    error
		want   string
	}{
		"a mark was refused": {func(*story) {}, fmt.Errorf("forbidden"), "forbidden"},
		"the gang is protected": {func(s *story) {
			s.group(podGroup().MinMember(1).Spec(func(spec *v2alpha2.PodGroupSpec) { spec.Preemptibility = v2alpha2.NonPreemptible }))
		}, nil, isNonPreemptible},
		"the gang has grown": {func(s *story) { s.pods(on("m", "d")...) }, nil, isMinimum},
		"none of this":       {func(*story) {}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(podGroup().MinMember(2)).pods(on("n", "a", "b")...).members("c").leads("c")
			pods := []*corev1.Pod{s.r.members["a"].pod, s.r.members["b"].pod}
			p, _, err := s.r.Preempt(pods[0], pods, wrappers.MakePod("high", testNamespace).UID("high").Priority(100).Obj(), "plan", s.now)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.victimsOn("n", 100); got.Protected != isVictimOfOther || len(got.Gangs) > 0 {
				t.Errorf("others may preempt %+v", got)
			}
			if _, err := s.preempts("other", "a", "b"); err == nil || !strings.Contains(err.Error(), isVictimOfOther) {
				t.Errorf("another pod takes them: %v", err)
			}
			if _, state := s.r.gangs[gangG].nextTask(s.r.gangs[gangG].numbers.Profile()); state != idle {
				t.Error("c is planned meanwhile")
			}
			if plan, _ := s.tryCommit("c"); plan != nil {
				t.Error("a plan of c that was being made is put in force")
			}
			tc.change(s)
			lost, e, err := s.r.RecordMarkedForPod(p, tc.err, s.now)
			if tc.want == "" {
				if len(lost) != 1 || len(e.Unmark) > 0 || err != nil {
					t.Errorf("%+v, %+v, %v", lost, e, err)
				}
				return
			}
			if len(lost) > 0 || len(e.Unmark) != 1 || e.Unmark[0] != p || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%+v, %+v, %v, want that the marks are taken back", lost, e, err)
			}
			if g := s.r.gangs[gangG]; g.victimOf != nil || len(g.departing) > 0 {
				t.Errorf("the gang loses %v to %v", g.departing, g.victimOf)
			}
		})
	}
}

// Victims without a gang end with those of gangs that were chosen for the same pod, or not at all. One that is not bound yet is left to
// the stock plugin.
func TestVictimsWithoutAGangEndWithTheOthers(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]error{"all are marked": nil, "a mark was refused": fmt.Errorf("forbidden")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(podGroup().MinMember(2)).pods(on("n", "a", "b")...)
			s.r.opts.IsAssumed = func(pod *corev1.Pod) bool { return pod.Name == "assumed" }
			plain, assumed := wrappers.MakePod("plain", testNamespace).UID("plain").Node("n").Obj(), wrappers.MakePod("assumed", testNamespace).UID("assumed").Node("n").Obj()
			victims := []*corev1.Pod{plain, assumed, s.r.members["a"].pod, s.r.members["b"].pod}
			high, other := wrappers.MakePod("high", testNamespace).UID("high").Priority(100).Obj(), wrappers.MakePod("other", testNamespace).UID("other").Priority(100).Obj()
			wantEnds := func(what string) {
				t.Helper()
				for _, v := range victims {
					if q, ends, err := s.r.Preempt(v, victims, high, "again", s.now); q != nil || ends != (v != assumed) || err != nil {
						t.Errorf("%s: %s ends: %t, %v, %v", what, v.Name, ends, q, err)
					}
				}
			}
			p, ends, err := s.r.Preempt(plain, victims, high, "plan", s.now)
			if !ends || err != nil || describePods(p.Pods()) != "a+b+plain" {
				t.Fatalf("%+v, %t, %v", p, ends, err)
			}
			wantEnds("while they are being marked")
			if q, ends, err := s.r.Preempt(plain, victims, other, "other", s.now); q != nil || ends || err == nil {
				t.Errorf("another pod preempts them: %v, %t, %v", q, ends, err)
			}
			_, e, _ := s.r.RecordMarkedForPod(p, refused, s.now)
			if unmarked := len(e.Unmark) == 1; unmarked != (refused != nil) {
				t.Errorf("the marks are taken back: %t", unmarked)
			}
			if refused != nil {
				if p, _, err = s.r.Preempt(plain, victims, other, "other", s.now); err != nil || describePods(p.Pods()) != "a+b+plain" {
					t.Errorf("another pod preempts them: %+v, %v", p, err)
				}
				return
			}
			wantEnds("while they are being deleted")
			s.r.RecordEvicted(p, nil, s.now)
			wantEnds("after their deletion")
			if s.r.RecordPlainPodGone("plain"); len(s.r.plainVictims) > 0 {
				t.Errorf("%v is remembered", s.r.plainVictims)
			}
		})
	}
}

// A pod without a gang that is about to end for a gang is left to it, and so are all others that were to end with it.
func TestAVictimWithoutAGangOfAnother(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1)).pods(on("n", "a")...)
	plain := wrappers.MakePod("plain", testNamespace).UID("plain").Node("n").Obj()
	s.r.plainVictims.Choose("plain", &Preemption{})
	victims, high := []*corev1.Pod{plain, s.r.members["a"].pod}, wrappers.MakePod("high", testNamespace).UID("high").Priority(100).Obj()
	for _, v := range victims {
		if p, ends, err := s.r.Preempt(v, victims, high, "plan", s.now); p != nil || ends || err == nil {
			t.Errorf("%s: %v, %t, %v", v.Name, p, ends, err)
		}
	}
	if s.r.gangs[gangG].victimOf != nil {
		t.Error("the gang is about to lose pods")
	}
}

// A gang whose pods were preempted is not planned before the end of each of them is observed: new pods could be bound beside none of
// the old ones. It is planned then, and if the rest cannot be deleted.
func TestAGangThatLosesPodsIsNotPlanned(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		left []types.UID           // victims that were given up
		last func(s *story)        // what is observed of b, the last victim
		held func(s *story) *story // what does not suffice; nil: nothing
	}{
		"its last pod terminates": {last: func(s *story) { s.terminates("b") }},
		"its last pod terminates late": {
			held: func(s *story) *story { return s.after(2 * time.Minute) },
			last: func(s *story) { s.terminates("b") },
		},
		"its last pod fails": {last: func(s *story) { s.effects = s.r.RemoveFailedPod("b", s.now) }},
		"its last pod is gone, and was not seen to terminate": {
			held: func(s *story) *story { return s.gone("b") },
			last: func(s *story) { s.after(departure) },
		},
		"its last pod was given up": {left: []types.UID{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(podGroup().MinMember(2)).pods(on("n", "a", "b")...)
			pods := []*corev1.Pod{s.r.members["a"].pod, s.r.members["b"].pod}
			p, _, err := s.r.Preempt(pods[0], pods, wrappers.MakePod("high", testNamespace).UID("high").Priority(100).Obj(), "plan", s.now)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.r.RecordMarkedForPod(p, nil, s.now); err != nil {
				t.Fatal(err)
			}
			s.terminates("a").gone("a").members("c", "d")
			losesPods := func() bool { f, _ := s.r.Facts(gangG); return f.LosesPods }
			if !losesPods() || s.leader() != "" {
				t.Fatalf("b is about to be deleted: the gang is said to lose pods: %t; its leader is %q", losesPods(), s.leader())
			}
			s.effects = s.r.RecordEvicted(p, tc.left, s.now)
			if tc.last != nil {
				if tc.held != nil {
					tc.held(s)
				}
				if !losesPods() || s.leader() != "" {
					t.Fatalf("b was not seen to end: the gang is said to lose pods: %t; its leader is %q", losesPods(), s.leader())
				}
				tc.last(s)
			}
			if losesPods() || s.leader() != "c" {
				t.Errorf("the gang is said to lose pods: %t; its leader is %q, want c", losesPods(), s.leader())
			}
		})
	}
}

func TestVictimsOfAPodAreForgotten(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1)).pods(on("n", "a")...)
	if _, err := s.preempts("high", "a"); err != nil {
		t.Fatal(err)
	}
	s.terminates("a").gone("a").after(time.Second)
	if n := len(s.r.gangs[gangG].departing); n != 0 {
		t.Errorf("%d victims are remembered", n)
	}
}

// shape is the tree of a random gang: leaves by parent, "" for leaves of the root.
type shape struct {
	root   int // children that are needed
	inner  map[string]int
	parent map[string]string // of each leaf
	leaves map[string]int    // pods that are needed
}

func randomShape(rng *rand.Rand) (shape, *wrappers.PodGroupWrapper) {
	group, s := podGroup(), shape{inner: map[string]int{}, parent: map[string]string{}, leaves: map[string]int{}}
	children := 1 + rng.IntN(3)
	s.root = 1 + rng.IntN(children)
	group.MinSubGroup(int32(s.root))
	for i := range children {
		name := fmt.Sprintf("s%d", i)
		if rng.IntN(2) == 0 {
			s.leaves[name], s.parent[name] = 1+rng.IntN(2), ""
			group.SubGroup(name, int32(s.leaves[name]))
			continue
		}
		below := 1 + rng.IntN(2)
		s.inner[name] = 1 + rng.IntN(below)
		group.Inner("", name, int32(s.inner[name]))
		for k := range below {
			leaf := fmt.Sprintf("%s-%d", name, k)
			s.leaves[leaf], s.parent[leaf] = 1+rng.IntN(2), name
			group.SubGroupOf(name, leaf, int32(s.leaves[leaf]))
		}
	}
	return s, group
}

// broken returns the sub-groups, "" for the gang, that are below their minimum, and the number of pods in each.
func (s shape) broken(pods map[string]int) (broken sets.Set[string], in map[string]int) {
	broken, in = sets.New[string](), map[string]int{}
	whole := map[string]int{} // children that have their minimum, by parent
	for leaf, minimum := range s.leaves {
		in[leaf] = pods[leaf]
		in[s.parent[leaf]] += pods[leaf]
		if pods[leaf] < minimum {
			broken.Insert(leaf)
		} else {
			whole[s.parent[leaf]]++
		}
	}
	for name, minimum := range s.inner {
		in[""] += in[name]
		if whole[name] < minimum {
			broken.Insert(name)
		} else {
			whole[""]++
		}
	}
	if whole[""] < s.root {
		broken.Insert("")
	}
	return broken, in
}

// torn returns what is left of the gang without its minimum: the gang, or a sub-group that had its own before.
func (s shape) torn(before, after map[string]int) string {
	was, _ := s.broken(before)
	is, in := s.broken(after)
	if in[""] == 0 {
		return ""
	}
	if is.Has("") {
		return "the gang"
	}
	for name := range is.Difference(was) {
		if in[name] > 0 {
			return "sub-group " + name
		}
	}
	return ""
}

// TestAnyVictimsLeaveWholeGangs lets plain pods preempt random parts of what Victims returns for random nodes, some of them
// before the deletions of others are observed.
func TestAnyVictimsLeaveWholeGangs(t *testing.T) {
	t.Parallel()
	taken := map[string]int{}
	preemptor := wrappers.MakePod("high", testNamespace).UID("high").Priority(100).Obj()
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s := begin(t)
		shape, group := randomShape(rng)
		if rng.IntN(4) == 0 {
			group.Spec(func(spec *v2alpha2.PodGroupSpec) { spec.Preemptibility = v2alpha2.SemiPreemptible })
		}
		s.group(group)
		left := map[types.UID]string{} // the leaf of each pod
		for leaf, minimum := range shape.leaves {
			for i := range rng.IntN(minimum + 2) {
				name := fmt.Sprintf("%s-pod%d", leaf, i)
				s.pods(memberPod(name).SubGroup(leaf).Node(fmt.Sprintf("n%d", rng.IntN(3))))
				left[types.UID(name)] = leaf
			}
		}
		for range 3 {
			before := countByLeaf(left)
			victims := s.randomVictims(rng, fmt.Sprintf("n%d", rng.IntN(3)), taken)
			pods := s.podsOf(victims)
			for _, pod := range pods {
				p, ends, err := s.r.Preempt(pod, pods, preemptor, "plan", s.now)
				if !ends || err != nil {
					t.Fatalf("seed %d: %s of %v: ends %v, %v", seed, pod.Name, sets.List(victims), ends, err)
				}
				if p != nil {
					lost, _, err := s.r.RecordMarkedForPod(p, nil, s.now)
					if len(lost) != 1 || err != nil {
						t.Fatalf("seed %d: %+v, %v", seed, lost, err)
					}
					if lost[0].Whole {
						taken["reported whole"]++
					}
					s.r.RecordEvicted(p, nil, s.now)
				}
				delete(left, pod.UID)
			}
			if why := shape.torn(before, countByLeaf(left)); why != "" && len(victims) > 0 {
				t.Fatalf("seed %d: of %+v with %v pods, %v end, and %s is torn", seed, shape, before, sets.List(victims), why)
			}
			if rng.IntN(2) == 0 { // the deletions are observed
				for uid := range victims {
					s.r.RemovePod(uid, s.now)
				}
			}
		}
	}
	t.Logf("taken: %v", taken)
	for _, what := range []string{"single pods", "sub-groups", "gangs", "reported whole"} {
		if taken[what] < 100 {
			t.Errorf("%d %s were taken: too few to say anything", taken[what], what)
		}
	}
}

// podsOf returns the members with these UIDs.
func (s *story) podsOf(uids sets.Set[types.UID]) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, uid := range sets.List(uids) {
		pods = append(pods, s.r.members[uid].pod)
	}
	return pods
}

func countByLeaf(pods map[types.UID]string) map[string]int {
	counts := map[string]int{}
	for _, leaf := range pods {
		counts[leaf]++
	}
	return counts
}

// randomVictims returns a part of what may be preempted on a node, and the pods that end with it. It counts the kinds.
func (s *story) randomVictims(rng *rand.Rand, node string, taken map[string]int) sets.Set[types.UID] {
	var pods []*corev1.Pod
	for _, uid := range s.uids() {
		if m := s.r.members[uid]; m.pod.Spec.NodeName == node && !m.isDeparting() {
			pods = append(pods, m.pod)
		}
	}
	v := s.r.Victims(pods, 100, s.now)
	victims := sets.New[types.UID]()
	for _, uid := range sets.List(v.Singly) {
		if rng.IntN(2) == 0 {
			victims.Insert(uid)
			taken["single pods"]++
		}
	}
	for kind, units := range map[string][]VictimUnit{"sub-groups": v.SubGroups, "gangs": v.Gangs} {
		for _, u := range units {
			if rng.IntN(2) == 0 && (kind != "gangs" || rng.IntN(3) == 0) {
				taken[kind]++
				for _, pod := range u.All {
					victims.Insert(pod.UID)
				}
			}
		}
	}
	return victims
}

// BenchmarkPreempt measures what a pod asks about each of its victims while they are being marked.
func BenchmarkPreempt(b *testing.B) {
	for _, n := range []int{512, 5120} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newLargePreemption(b, n)
			preemptor := wrappers.MakePod("pod", "ml").UID("pod").Priority(200).Obj()
			i := 0
			for b.Loop() {
				if _, ends, err := l.r.Preempt(l.low[i%n], l.low, preemptor, "plan", l.now); !ends || err != nil {
					b.Fatal(ends, err)
				}
				i++
			}
		})
	}
}

// BenchmarkVictims measures what a preemptor asks for all of 1,000 full nodes, more than a second after the one before.
func BenchmarkVictims(b *testing.B) {
	// gangs: pods of each gang are on so many nodes. leaves: each pod has a sub-group of its own.
	for _, bb := range []struct {
		name                 string
		gangs, pods, minimum int
		nodes                int
		leaves               bool
	}{
		{"a gang of 1000 leaves, nothing above the minimum", 1, 1000, 1000, 1000, true},
		{"a gang of 1000 leaves, half above the minimum", 1, 1000, 500, 1000, true},
		{"1000 gangs on one node each, nothing above the minimum", 1000, 8, 8, 1, false},
		{"1000 gangs on one node each, a quarter above the minimum", 1000, 8, 6, 1, false},
		{"1000 gangs on eight nodes each, nothing above the minimum", 1000, 8, 8, 8, false},
		{"1000 gangs on eight nodes each, a quarter above the minimum", 1000, 8, 6, 8, false},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := newBenchRegistry()
			now := benchStart
			r.SetSynced(now)
			nodes := make([][]*corev1.Pod, 1000)
			for k := range bb.gangs {
				name := fmt.Sprintf("g%d", k)
				group := wrappers.MakePodGroup(name, "ml").UID(name)
				if bb.leaves {
					group.MinSubGroup(int32(bb.minimum))
				} else {
					group.MinMember(int32(bb.minimum))
				}
				pods := make([]*corev1.Pod, bb.pods)
				for i := range pods {
					node := (k + i*bb.nodes/bb.pods) % len(nodes)
					pod := benchPod(name, i).Node(fmt.Sprintf("n%d", node))
					if bb.leaves {
						group.SubGroup(fmt.Sprintf("leaf-%d", i), 1)
						pod.SubGroup(fmt.Sprintf("leaf-%d", i))
					}
					pods[i] = pod.Obj()
					nodes[node] = append(nodes[node], pods[i])
				}
				r.SetGroup(group.Obj(), now)
				for _, pod := range pods {
					r.SetPod(pod, now)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(2 * time.Second)
				for _, pods := range nodes {
					r.Victims(pods, 100, now)
				}
			}
		})
	}
}
