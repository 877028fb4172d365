// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

// placementsOf places waiting pods of the work on one node.
func placementsOf(work *Work, uids ...string) []placement.Placement {
	var out []placement.Placement
	for _, uid := range uids {
		out = append(out, placementOf(work, uid, "n1"))
	}
	return out
}

// placementOf places a waiting pod of the work.
func placementOf(work *Work, uid, node string) placement.Placement {
	for leaf, pods := range work.Problem.Pods {
		for _, p := range pods {
			if p.ID == uid {
				return placement.Placement{Pod: p, Leaf: leaf, Node: node}
			}
		}
	}
	panic("no pod " + uid + " waits")
}

// preferRack names a topology level.
func preferRack(spec *v2alpha2.PodGroupSpec) {
	spec.TopologyConstraint = &v2alpha2.TopologyConstraint{PreferredTopologyLevel: "topology.example.com/rack"}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	pod := func(uid string) *wrappers.PodWrapper { return wrappers.MakePod(uid, "ml").UID(uid).Gang("g") }
	flat := func(n int32) *wrappers.PodGroupWrapper {
		return wrappers.MakePodGroup("g", "ml").UID("group").MinMember(n)
	}
	waiting := func(uids ...string) (out []podgroup.WaitingPod) {
		for _, uid := range uids {
			out = append(out, podgroup.WaitingPod{Pod: pod(uid).Obj(), Since: now})
		}
		return out
	}
	tests := map[string]struct {
		group *wrappers.PodGroupWrapper
		pods  []*wrappers.PodWrapper
		do    func(r *Registry)
		want  podgroup.Facts // Namespace, Name, Group and Tree are not compared; waiting pods are compared by name; Pods is the number of all pods
	}{
		"pods of a PodGroup that does not exist": {
			pods: []*wrappers.PodWrapper{pod("b"), pod("a")},
			want: podgroup.Facts{Profile: "muster-scheduler", Waiting: waiting("a", "b"), Created: gang.Counts{"": 2}, Usable: gang.Counts{"": 2}},
		},
		"pods that a plan cannot use are counted separately": {
			group: flat(8),
			pods: []*wrappers.PodWrapper{
				pod("a"), pod("b").SchedulingGate("x"), pod("c").SchedulerName("z"), pod("d").SchedulerName("default-scheduler"),
				pod("e").Terminating(), pod("f").SubGroup("x"), pod("g").SubGroup("x").SchedulingGate("y"), pod("h").Node("n1"), pod("i").Node("n1").Phase(corev1.PodFailed),
			},
			want: podgroup.Facts{
				Profile: "muster-scheduler", Gated: 2, GateNames: []string{"x", "y"}, Foreign: 2, ForeignNames: []string{"default-scheduler", "z"}, Terminating: 1,
				Created: gang.Counts{"": 7}, Usable: gang.Counts{"": 3}, Bound: gang.Counts{"": 1},
				Waiting: []podgroup.WaitingPod{
					{Pod: pod("a").Obj()}, {Pod: pod("b").Obj(), Gated: true}, {Pod: pod("f").Obj()}, {Pod: pod("g").Obj(), Gated: true},
				},
			},
		},
		"pods without a leaf are grouped by cause": {
			group: wrappers.MakePodGroup("g", "ml").UID("group").Inner("", "in", 0).SubGroupOf("in", "x", 2),
			pods: []*wrappers.PodWrapper{
				pod("a").SubGroup("x"), pod("c").SubGroup("y"), pod("b").SubGroup("y").SchedulingGate("y"), pod("d"), pod("e").SubGroup("in"),
			},
			want: podgroup.Facts{
				Profile: "muster-scheduler", Created: gang.Counts{"x": 1}, Usable: gang.Counts{"x": 1},
				MisplacedTotal: 4, Misplaced: []podgroup.Misplaced{
					{Why: `carries sub-group "y", which the PodGroup does not have`, Pods: []string{"b", "c"}, Total: 2},
					{Why: `carries sub-group "in", which has sub-groups of its own`, Pods: []string{"e"}, Total: 1},
					{Why: `has no label kai.scheduler/subgroup-name`, Pods: []string{"d"}, Total: 1},
				},
				Waiting: []podgroup.WaitingPod{
					{Pod: pod("a").Obj()},
					{Pod: pod("b").Obj(), Misplaced: `carries sub-group "y", which the PodGroup does not have`, Gated: true},
					{Pod: pod("c").Obj(), Misplaced: `carries sub-group "y", which the PodGroup does not have`},
					{Pod: pod("d").Obj(), Misplaced: `has no label kai.scheduler/subgroup-name`},
					{Pod: pod("e").Obj(), Misplaced: `carries sub-group "in", which has sub-groups of its own`},
				},
			},
		},
		"bound pods that do not count are listed": {
			group: wrappers.MakePodGroup("g", "ml").UID("group").SubGroup("y", 3),
			pods: []*wrappers.PodWrapper{
				pod("a").Node("n1").SubGroup("y"), pod("b").Node("n1").SubGroup("y").Terminating(), pod("c").Node("n1").SubGroup("x"),
				pod("d").Node("n1").SubGroup("x").Terminating(), pod("e").Node("n1").SubGroup("y").Terminating().Phase(corev1.PodFailed),
			},
			want: podgroup.Facts{
				Created: gang.Counts{"y": 1}, Usable: gang.Counts{"y": 1}, Bound: gang.Counts{"y": 1}, Leaving: 1,
				StrayTotal: 1, Stray: []podgroup.Misplaced{{Why: `carries sub-group "x", which the PodGroup does not have`, Pods: []string{"c"}, Total: 1}},
			},
		},
		"a gang that names a level has the nodes of the pods that are bound and count": {
			group: wrappers.MakePodGroup("g", "ml").UID("group").SubGroup("x", 1).SubGroup("y", 1).SubGroup("z", 1).Spec(preferRack),
			pods: []*wrappers.PodWrapper{
				pod("a").SubGroup("x").Node("n2"), pod("b").SubGroup("x").Node("n1"), pod("c").SubGroup("x").Node("n1"), pod("d").SubGroup("y").Node("n3"),
				pod("e").SubGroup("y").Node("n4").Terminating(), pod("f").SubGroup("y").Node("n5").Phase(corev1.PodFailed),
				pod("g").SubGroup("y").Node("n6").Phase(corev1.PodSucceeded), pod("h").SubGroup("other").Node("n7"), pod("i").SubGroup("z"),
			},
			want: podgroup.Facts{
				Profile: "muster-scheduler", Waiting: waiting("i"), WaitingSince: now, Leaving: 1,
				Created: gang.Counts{"x": 3, "y": 2, "z": 1}, Usable: gang.Counts{"x": 3, "y": 2, "z": 1}, Bound: gang.Counts{"x": 3, "y": 2},
				StrayTotal: 1, Stray: []podgroup.Misplaced{{Why: `carries sub-group "other", which the PodGroup does not have`, Pods: []string{"h"}, Total: 1}},
				Nodes: map[string][]string{"x": {"n1", "n2"}, "y": {"n3"}},
			},
		},
		"a gang whose PodGroup is deleted names no level": {
			group: flat(1).Spec(preferRack), pods: []*wrappers.PodWrapper{pod("a").Node("n1")},
			do:   func(r *Registry) { r.RemoveGroup(Key{Namespace: "ml", Name: "g"}, now) },
			want: podgroup.Facts{Created: gang.Counts{"": 1}, Usable: gang.Counts{"": 1}, Bound: gang.Counts{"": 1}},
		},
		"a gang that lacks pods": {
			group: wrappers.MakePodGroup("g", "ml").UID("group").SubGroup("x", 3).SubGroup("y", 1),
			pods: []*wrappers.PodWrapper{
				pod("a").SubGroup("x").Controller("StatefulSet", "web", "1"), pod("b").SubGroup("x").Controller("StatefulSet", "web", "1").Node("n1"),
				pod("c").SubGroup("y").Controller("Job", "both", "2"), pod("d").SubGroup("x").Controller("Job", "both", "2").Terminating(),
				pod("e").SubGroup("z").Controller("Job", "stray", "3"), pod("f").SubGroup("y"),
			},
			want: podgroup.Facts{
				Profile: "muster-scheduler", Created: gang.Counts{"x": 2, "y": 2}, Usable: gang.Counts{"x": 2, "y": 2}, Bound: gang.Counts{"x": 1}, Terminating: 1,
				MisplacedTotal: 1, Misplaced: []podgroup.Misplaced{{Why: `carries sub-group "z", which the PodGroup does not have`, Pods: []string{"e"}, Total: 1}},
				Waiting: []podgroup.WaitingPod{
					{Pod: pod("a").Obj()}, {Pod: pod("c").Obj()}, {Pod: pod("e").Obj(), Misplaced: `carries sub-group "z", which the PodGroup does not have`}, {Pod: pod("f").Obj()},
				},
			},
		},
		"a priority class that does not exist": {
			group: flat(1).Priority("lost"), pods: []*wrappers.PodWrapper{pod("a").Node("n1")},
			want: podgroup.Facts{Admitted: true, NoSuchClass: "lost", Created: gang.Counts{"": 1}, Usable: gang.Counts{"": 1}, Bound: gang.Counts{"": 1}},
		},
		"a priority class that exists": {
			group: flat(1).Priority("high"), pods: []*wrappers.PodWrapper{pod("a").Node("n1")},
			want: podgroup.Facts{Admitted: true, Created: gang.Counts{"": 1}, Usable: gang.Counts{"": 1}, Bound: gang.Counts{"": 1}},
		},
		"pods that other schedulers bound": {
			group: flat(3),
			pods: []*wrappers.PodWrapper{
				pod("a"), pod("b").SchedulerName("z").Node("n1"), pod("c").SchedulerName("y").Node("n1"), pod("d").SchedulerName("z").Node("n1").Terminating(),
			},
			want: podgroup.Facts{
				Profile: "muster-scheduler", Created: gang.Counts{"": 3}, Usable: gang.Counts{"": 3}, Bound: gang.Counts{"": 2}, Leaving: 1,
				BoundByOthers: 2, OtherNames: []string{"y", "z"}, WaitingSince: now, Waiting: waiting("a"),
			},
		},
		"pods that lack a schedulerName are not another product's": {
			group: flat(2),
			pods:  []*wrappers.PodWrapper{pod("a").SchedulerName("default-scheduler"), pod("b").SchedulerName("default-scheduler").Node("n1")},
			want: podgroup.Facts{
				Foreign: 1, ForeignNames: []string{"default-scheduler"}, BoundByOthers: 1, OtherNames: []string{"default-scheduler"},
				OurNames: []string{"muster-scheduler"}, Created: gang.Counts{"": 2}, Usable: gang.Counts{"": 1}, Bound: gang.Counts{"": 1},
			},
		},
		"pods of the stock scheduler in a PodGroup of Kubernetes are its own": {
			group: flat(1).Controller("PodGroup", "a", "1"), pods: []*wrappers.PodWrapper{pod("a").SchedulerName("default-scheduler").Node("n1")},
			want: podgroup.Facts{NotOurs: true, Admitted: true, BoundByOthers: 1, OtherNames: []string{"default-scheduler"}, OurNames: []string{"muster-scheduler"},
				Created: gang.Counts{"": 1}, Usable: gang.Counts{"": 1}, Bound: gang.Counts{"": 1}},
		},
		"a gang of another scheduler only": {
			group: flat(1), pods: []*wrappers.PodWrapper{pod("a").SchedulerName("z")},
			want: podgroup.Facts{NotOurs: true, UnattendedAt: now.Add(time.Minute), Foreign: 1, ForeignNames: []string{"z"}, OurNames: []string{"muster-scheduler"}, Created: gang.Counts{"": 1}},
		},
		"a gang of another scheduler that has not reacted for a minute": {
			group: flat(1), pods: []*wrappers.PodWrapper{pod("a").SchedulerName("z")},
			do:   func(r *Registry) { r.Tick(now.Add(time.Minute)) },
			want: podgroup.Facts{Unattended: true, Foreign: 1, ForeignNames: []string{"z"}, OurNames: []string{"muster-scheduler"}, Created: gang.Counts{"": 1}},
		},
		"and one that has": {
			group: flat(1), pods: []*wrappers.PodWrapper{pod("a").SchedulerName("z"), pod("b").SchedulerName("z")},
			do: func(r *Registry) {
				refused := pod("b").SchedulerName("z").Obj()
				refused.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
				r.SetPod(refused, now)
				r.Tick(now.Add(time.Minute))
			},
			want: podgroup.Facts{NotOurs: true, Foreign: 2, ForeignNames: []string{"z"}, OurNames: []string{"muster-scheduler"}, Created: gang.Counts{"": 2}},
		},
		"one that reacted later": {
			pods: []*wrappers.PodWrapper{pod("a").SchedulerName("z").Node("n1")},
			do: func(r *Registry) {
				group := flat(1).Obj()
				group.Status.Reason = v2alpha2.ReasonOtherScheduler
				r.SetGroup(group, now)
			},
			want: podgroup.Facts{Admitted: true, BoundByOthers: 1, OtherNames: []string{"z"}, OurNames: []string{"muster-scheduler"},
				Created: gang.Counts{"": 1}, Usable: gang.Counts{"": 1}, Bound: gang.Counts{"": 1}},
		},
		"bound and satisfied": {
			group: flat(1), pods: []*wrappers.PodWrapper{pod("a").Node("n1")},
			want: podgroup.Facts{Admitted: true, Created: gang.Counts{"": 1}, Usable: gang.Counts{"": 1}, Bound: gang.Counts{"": 1}},
		},
		"all have succeeded": {
			group: flat(1), pods: []*wrappers.PodWrapper{pod("a").Node("n1").Phase(corev1.PodSucceeded)},
			want: podgroup.Facts{Admitted: true, Ended: true, Created: gang.Counts{"": 1}, Usable: gang.Counts{"": 1}, Bound: gang.Counts{"": 1}},
		},
		"a refused minimum needs capacity for its missing pods only": {
			group: flat(2), pods: []*wrappers.PodWrapper{pod("a"), pod("b"), pod("c")},
			do: func(r *Registry) {
				r.RecordGangRefused(Key{Namespace: "ml", Name: "g"}, podgroup.Refusal{Reason: v2alpha2.ReasonTooLarge, Message: "m"}, Wait{}, now)
			},
			want: podgroup.Facts{
				WaitingSince: now, Profile: "muster-scheduler", Created: gang.Counts{"": 3}, Usable: gang.Counts{"": 3},
				Refused: podgroup.Refusal{Reason: v2alpha2.ReasonTooLarge, Message: "m", At: now},
				Waiting: []podgroup.WaitingPod{{Pod: pod("a").Obj(), NeedsCapacity: true}, {Pod: pod("b").Obj(), NeedsCapacity: true}, {Pod: pod("c").Obj()}},
			},
		},
		"no room in a topology domain is not a lack of capacity": {
			group: flat(1), pods: []*wrappers.PodWrapper{pod("a")},
			do: func(r *Registry) {
				r.RecordGangRefused(Key{Namespace: "ml", Name: "g"}, podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "m"}, Wait{}, now)
			},
			want: podgroup.Facts{
				WaitingSince: now, Profile: "muster-scheduler", Created: gang.Counts{"": 1}, Usable: gang.Counts{"": 1},
				Refused: podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "m", At: now},
				Waiting: waiting("a"),
			},
		},
		"an error is not a lack of capacity": {
			group: flat(1), pods: []*wrappers.PodWrapper{pod("a")},
			do: func(r *Registry) {
				r.RecordGangRefused(Key{Namespace: "ml", Name: "g"}, podgroup.Refusal{Reason: v2alpha2.ReasonSchedulerError, Message: "m"}, Wait{}, now)
			},
			want: podgroup.Facts{
				WaitingSince: now, Profile: "muster-scheduler", Created: gang.Counts{"": 1}, Usable: gang.Counts{"": 1},
				Refused: podgroup.Refusal{Reason: v2alpha2.ReasonSchedulerError, Message: "m", At: now},
				Waiting: waiting("a"),
			},
		},
		"k of n children: capacity is needed for the children that lack the least": {
			group: wrappers.MakePodGroup("g", "ml").UID("group").MinSubGroup(2).SubGroup("x", 2).SubGroup("y", 2).SubGroup("z", 2),
			pods: []*wrappers.PodWrapper{
				pod("x0").SubGroup("x"), pod("x1").SubGroup("x"), pod("y0").SubGroup("y"), pod("z0").SubGroup("z").Node("n1"), pod("z1").SubGroup("z"),
			},
			do: func(r *Registry) {
				r.RecordGangRefused(Key{Namespace: "ml", Name: "g"}, podgroup.Refusal{Reason: v2alpha2.ReasonFragmented, Message: "m"}, Wait{}, now)
			},
			want: podgroup.Facts{
				WaitingSince: now, Profile: "muster-scheduler", Created: gang.Counts{"x": 2, "y": 1, "z": 2}, Usable: gang.Counts{"x": 2, "y": 1, "z": 2}, Bound: gang.Counts{"z": 1},
				Refused: podgroup.Refusal{Reason: v2alpha2.ReasonFragmented, Message: "m", At: now},
				Waiting: []podgroup.WaitingPod{
					{Pod: pod("x0").Obj(), NeedsCapacity: true}, {Pod: pod("x1").Obj(), NeedsCapacity: true}, {Pod: pod("y0").Obj()}, {Pod: pod("z1").Obj(), NeedsCapacity: true},
				},
			},
		},
		"a sub-group above the minimum that lost a pod needs capacity for it; one without bound pods was not tried": {
			group: wrappers.MakePodGroup("g", "ml").UID("group").MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2).SubGroup("z", 1),
			pods: []*wrappers.PodWrapper{
				pod("x0").SubGroup("x").Node("n1"), pod("y0").SubGroup("y").Node("n1"), pod("y1").SubGroup("y"), pod("y2").SubGroup("y"), pod("z0").SubGroup("z"),
			},
			do: func(r *Registry) {
				r.RecordGangRefused(Key{Namespace: "ml", Name: "g"}, podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "m"}, Wait{}, now)
			},
			want: podgroup.Facts{
				Admitted: true, AdmittedGroups: sets.New("x"), Profile: "muster-scheduler",
				Created: gang.Counts{"x": 1, "y": 3, "z": 1}, Usable: gang.Counts{"x": 1, "y": 3, "z": 1}, Bound: gang.Counts{"x": 1, "y": 1},
				Refused: podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "m", At: now},
				Waiting: []podgroup.WaitingPod{{Pod: pod("y1").Obj(), NeedsCapacity: true}, {Pod: pod("y2").Obj()}, {Pod: pod("z0").Obj()}},
			},
		},
		"a gang that is being bound": {
			group: flat(1), pods: []*wrappers.PodWrapper{pod("a")},
			do: func(r *Registry) {
				work, _ := r.BeginAttempt(pod("a").Obj())
				r.CommitPlan(work, placementsOf(work, "a"), now)
			},
			want: podgroup.Facts{WaitingSince: now, Profile: "muster-scheduler", Binding: true, Created: gang.Counts{"": 1}, Usable: gang.Counts{"": 1}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New()
			r.Configure(Options{Priority: func(name string) (int32, bool) { return 0, name == "high" }})
			r.AddProfile(wrappers.SchedulerName)
			if tc.group != nil {
				r.SetGroup(tc.group.Obj(), now)
			}
			for _, p := range tc.pods {
				r.SetPod(p.Obj(), now)
			}
			if _, ok := r.Facts(Key{Namespace: "ml", Name: "g"}); ok {
				t.Error("facts before all was seen")
			}
			r.SetSynced(now)
			if tc.do != nil {
				tc.do(r)
			}
			got, ok := r.Facts(Key{Namespace: "ml", Name: "g"})
			if !ok {
				t.Fatal("no facts")
			}
			tc.want.Pods = len(tc.pods)
			if diff := cmp.Diff(tc.want, got,
				cmpopts.IgnoreFields(podgroup.Facts{}, "Namespace", "Name", "Group", "Tree", "Priority"),
				cmpopts.EquateEmpty(),
				cmpopts.SortSlices(strings.Compare), // the nodes are in no order
				cmpopts.IgnoreFields(podgroup.WaitingPod{}, "Since"),
				cmp.Transformer("name", func(p *corev1.Pod) string { return p.Name }),
			); diff != "" {
				t.Errorf("Facts (-want +got):\n%s", diff)
			}
		})
	}
	if _, ok := New().Facts(Key{Namespace: "ml", Name: "g"}); ok {
		t.Error("facts of an unknown gang")
	}
}

// The priority that is shown is the one that the gang counts with (docs/security.md, "Priority").
func TestThePriorityOfAGang(t *testing.T) {
	t.Parallel()
	five, seven, none := int32(5), int32(7), int32(0)
	now := time.Unix(1_000_000, 0)
	pod := func(name string) *wrappers.PodWrapper {
		return wrappers.MakePod(name, testNamespace).UID(name).Gang("g")
	}
	for name, tc := range map[string]struct {
		class string
		pods  []*wrappers.PodWrapper
		want  *int32
	}{
		"of its pods":              {pods: []*wrappers.PodWrapper{pod("a").Priority(5), pod("b").Priority(7)}, want: &seven},
		"of its pods, without any": {pods: []*wrappers.PodWrapper{pod("a")}, want: &none},
		"of a lower class":         {class: "five", pods: []*wrappers.PodWrapper{pod("a").Priority(7)}, want: &five},
		"of a higher class":        {class: "nine", pods: []*wrappers.PodWrapper{pod("a").Priority(7)}, want: &seven},
		"of an unknown class":      {class: "x", pods: []*wrappers.PodWrapper{pod("a").Priority(7)}, want: &seven},
		"no pods":                  {class: "five"},
		"all pods have ended":      {class: "five", pods: []*wrappers.PodWrapper{pod("a").Priority(7).Node("n1").Phase(corev1.PodSucceeded)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New()
			classes := map[string]int32{"five": 5, "nine": 9}
			r.Configure(Options{Priority: func(name string) (int32, bool) { p, ok := classes[name]; return p, ok }})
			r.AddProfile(wrappers.SchedulerName)
			r.SetGroup(podGroup().MinMember(2).Priority(tc.class).Obj(), now)
			for _, p := range tc.pods {
				r.SetPod(p.Obj(), now)
			}
			r.SetSynced(now)
			f, _ := r.Facts(gangG)
			if diff := cmp.Diff(tc.want, f.Priority); diff != "" {
				t.Errorf("priority (-want +got):\n%s", diff)
			}
		})
	}
}

// Of the surplus only what was tried is said to lack capacity.
func TestOnlyTriedSurplusNeedsCapacity(t *testing.T) {
	t.Parallel()
	lacking := func(s *story) (out []string) {
		f, _ := s.r.Facts(gangG)
		for _, w := range f.Waiting {
			if w.NeedsCapacity {
				out = append(out, w.Pod.Name)
			}
		}
		slices.Sort(out)
		return out
	}
	// The gang needs x. Of y and z, which are surplus, y lost its pods.
	s := begin(t).group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2).SubGroup("z", 1)).pods(sub("x", "x0")...).pods(sub("y", "y0", "y1")...)
	s.shownBound("x0", "y0", "y1").deleted("y0", "y1").pods(sub("y", "Y0", "Y1")...).pods(sub("z", "z0")...).leads("Y0").wantTask(LostUnit).refuses()
	if diff := cmp.Diff([]string{"Y0", "Y1"}, lacking(s)); diff != "" {
		t.Errorf("a lost sub-group was refused (-want +got):\n%s", diff)
	}
	s.after(time.Second).wantRank(SurplusUnit, TierSurplusUnit)
	if diff := cmp.Diff([]string{"Y0", "Y1"}, lacking(s)); diff != "" {
		t.Errorf("what follows it is about to be tried (-want +got):\n%s", diff)
	}
	s.leads("Y0").refuses()
	if diff := cmp.Diff([]string{"Y0", "Y1", "z0"}, lacking(s)); diff != "" {
		t.Errorf("what follows it was refused, too (-want +got):\n%s", diff)
	}
}
