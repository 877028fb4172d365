// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/topology"
	"github.com/muster-project/muster/test/wrappers"
)

func leveledGroup(minimum int32) *wrappers.PodGroupWrapper {
	return podGroup().MinMember(minimum).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
	})
}

// Surplus waits for room in the domain in which its gang runs, until the domain may be another one.
func TestTheDomainOfARefusedGangMayChange(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(s *story)
		want   bool
	}{
		"its node is relabeled":     {func(s *story) { s.r.RecordRelabeled(sets.New("n", "x"), s.now) }, true},
		"another node is relabeled": {func(s *story) { s.r.RecordRelabeled(sets.New("x"), s.now) }, false},
		"a pod begins to terminate": {func(s *story) { s.terminates("a") }, true},
		"nothing":                   {func(*story) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(leveledGroup(1)).members("a", "b", "c").binds("a", "a").shownBound("b").leads("c").refusesFor(Wait{Needs: []Need{{&fakeShape{}, 1}}}).after(time.Minute)
			tt.change(s)
			if s.after(retryInterval); len(s.activated()) > 0 != tt.want {
				t.Errorf("activated %v, want any: %t", s.activated(), tt.want)
			}
		})
	}
}

// A pod that is bound beside a plan may run in another domain than the one that the plan has chosen.
func TestAPodIsBoundBesideThePlan(t *testing.T) {
	t.Parallel()
	required := map[string]string{"": "rack"}
	for name, tt := range map[string]struct {
		required map[string]string
		before   []string // bound when the gang is planned
		beside   *corev1.Pod
		early    bool // bound before the plan is put in force
		want     bool // the plan is bound
	}{
		"before the plan is in force":         {required: required, beside: memberPod("c").Node("x").Obj(), early: true},
		"while it is in force":                {required: required, beside: memberPod("c").Node("x").Obj()},
		"where its gang runs":                 {required: required, before: []string{"d"}, beside: memberPod("c").Node("n").Obj(), want: true},
		"elsewhere, beside others":            {required: required, before: []string{"d"}, beside: memberPod("c").Node("x").Obj()},
		"no level is required":                {beside: memberPod("c").Node("x").Obj(), want: true},
		"the pod belongs to another PodGroup": {required: required, beside: memberPod("c").Gang("other").Node("x").Obj(), want: true},
		"the pod does not count":              {required: required, beside: memberPod("c").Node("x").Terminating().Obj(), want: true},
		"nothing is bound":                    {required: required, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(leveledGroup(2)).shownBound(tt.before...).members("a", "b").leads("a")
			s.work.SetLevels(tt.required, nil)
			if tt.early {
				s.r.SetPod(tt.beside, s.now)
			}
			if s.commits("a", "b").assumes("a", "b"); tt.beside != nil && !tt.early {
				s.r.SetPod(tt.beside, s.now)
			}
			s.arrives("a", "b").wantOpen(tt.want).wantAborted(!tt.want)
			if !tt.want { // it is planned again, with the pod
				s.releases("a", "b").after(maxBackoff).leads("a")
				if got := s.work.Problem.Nodes[""]; !slices.Contains(got, "x") {
					t.Errorf("the next plan knows pods on %v, want x among them", got)
				}
			}
		})
	}
}

// A plan that was made with other topology constraints than the PodGroup has now is not bound.
func TestConstraintsChangeWhileAPlanIsInForce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from, to string // the level that is required
		want     bool   // the plan is bound
	}{
		"none was required":    {"", "rack", false},
		"another one":          {"rack", "block", false},
		"none is any more":     {"rack", "", false},
		"something else of it": {"rack", "rack", true},
		"none, something else": {"", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := func(generation int64, level string) *v2alpha2.PodGroup {
				pg := podGroup().MinMember(2).Obj()
				if pg.Generation = generation; level != "" {
					pg.Spec.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: level}
				}
				return pg
			}
			s := begin(t)
			s.r.SetGroup(group(1, tt.from), s.now)
			s.members("a", "b").leads("a").commits("a", "b").assumes("a", "b")
			s.r.SetGroup(group(2, tt.to), s.now)
			s.arrives("a", "b").wantOpen(tt.want).wantAborted(!tt.want)
		})
	}
}

// A plan that was made with other levels than the PodGroup lists now is not bound.
func TestListedLevelsChangeWhileAPlanIsInForce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		to   string
		want bool // the plan is bound
	}{
		"a level is added above":  {"zone,block,rack", false},
		"the level is taken out":  {"block", false},
		"a narrower one is added": {"block,rack,host", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := func(levels string) *v2alpha2.PodGroup {
				pg := podGroup().MinMember(2).Obj()
				pg.Annotations = map[string]string{v2alpha2.TopologyLevelsAnnotation: levels}
				pg.Spec.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
				return pg
			}
			s := begin(t)
			s.r.SetGroup(group("block,rack"), s.now)
			s.r.opts.LevelsOf = func(string) topology.Levels { return nil }
			s.members("a", "b").leads("a")
			s.work.SetLevels(map[string]string{"": "block,rack"}, nil)
			s.commits("a", "b").assumes("a", "b")
			s.r.SetGroup(group(tt.to), s.now)
			s.arrives("a", "b").wantOpen(tt.want).wantAborted(!tt.want)
		})
	}
}

// A constraint of a sub-group of which no pod is planned does not matter to the plan.
func TestAnotherSubGroupGetsAConstraintWhileAPlanIsInForce(t *testing.T) {
	t.Parallel()
	for other, want := range map[string]bool{"y": true, "x": false} {
		group := func(generation int64) *v2alpha2.PodGroup {
			return podGroup().MinSubGroup(1).SubGroup("x", 2).SubGroup("y", 1).Spec(func(s *v2alpha2.PodGroupSpec) {
				for i := range s.SubGroups {
					if generation == 2 && s.SubGroups[i].Name == other {
						s.SubGroups[i].TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
					}
				}
			}).Generation(generation).Obj()
		}
		s := begin(t)
		s.r.SetGroup(group(1), s.now)
		for _, name := range []string{"a", "b"} {
			s.r.SetPod(memberPod(name).SubGroup("x").Obj(), s.now)
		}
		s.leads("a")
		s.commits("a", "b").assumes("a", "b")
		s.r.SetGroup(group(2), s.now)
		s.arrives("a", "b").wantOpen(want).wantAborted(!want)
	}
}

// A plan that was made with other levels of a Topology than it has now, or that no longer exists, is not bound.
func TestATopologyChangesWhileAPlanIsInForce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		level   string // that is required
		after   topology.Levels
		another topology.Levels // of the Topology of a sub-group of which no pod is planned; nil: it does not exist any more
		want    bool            // the plan is bound
	}{
		"the same levels":                       {"rack", topology.Levels{"block", "rack"}, topology.Levels{"zone"}, true},
		"it was deleted":                        {"rack", nil, topology.Levels{"zone"}, false},
		"another level before it":               {"rack", topology.Levels{"zone", "rack"}, topology.Levels{"zone"}, false},
		"it is the first level now":             {"rack", topology.Levels{"rack"}, topology.Levels{"zone"}, false},
		"it is no level any more":               {"rack", topology.Levels{"block"}, topology.Levels{"zone"}, false},
		"another level after it":                {"rack", topology.Levels{"block", "rack", "node"}, topology.Levels{"zone"}, true},
		"no level is required":                  {"", nil, topology.Levels{"zone"}, true},
		"the Topology of another sub-group":     {"rack", topology.Levels{"block", "rack"}, nil, true},
		"one after the level that it relies on": {"block", topology.Levels{"block"}, topology.Levels{"zone"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			levels := map[string]topology.Levels{"fabric": {"block", "rack"}, "other": {"zone"}}
			s.r.opts.LevelsOf = func(name string) topology.Levels { return levels[name] }
			s.r.SetGroup(podGroup().MinSubGroup(1).SubGroup("x", 2).SubGroup("y", 1).Spec(func(spec *v2alpha2.PodGroupSpec) {
				spec.SubGroups[0].TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: tt.level}
				spec.SubGroups[1].TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "other", RequiredTopologyLevel: "zone"}
			}).Obj(), s.now)
			for _, name := range []string{"a", "b"} {
				s.r.SetPod(memberPod(name).SubGroup("x").Obj(), s.now)
			}
			s.leads("a")
			required, preferred, why := podgroup.Levels(s.work.Tree, &s.work.Group.Spec, s.r.opts.LevelsOf, "")
			if why != nil {
				t.Fatal(why)
			}
			s.work.SetLevels(required, preferred)
			s.commits("a", "b").assumes("a", "b")
			levels["fabric"], levels["other"] = tt.after, tt.another
			s.arrives("a", "b").wantOpen(tt.want).wantAborted(!tt.want)
		})
	}
}

func TestLabelsOnWhichAPlanReliesAreCheckedBeforeItIsBound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels map[string]string // nil: the node is gone
		open   bool
	}{
		"the same label":   {map[string]string{"rack": "r0"}, true},
		"another rack":     {map[string]string{"rack": "r1"}, false},
		"no label":         {map[string]string{}, false},
		"the node is gone": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(leveledGroup(2)).members("a", "b").leads("a")
			s.r.opts.NodeLabels = func(string) map[string]string { return tc.labels }
			s.work.Relied = map[string]map[string]string{"n": {"rack": "r0"}}
			s.commits("a", "b").assumes("a", "b").arrives("a", "b").wantOpen(tc.open).wantAborted(!tc.open)
		})
	}
}
