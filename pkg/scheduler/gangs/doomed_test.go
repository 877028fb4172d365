// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/placement"
)

// TestPlanThatWasRefused covers the events between the first refusal of a member by its node and the next plan.
func TestPlanThatWasRefused(t *testing.T) {
	// The cycle of a has begun, which leads a gang of four: a and b are planned on node m, c on n, and d on o.
	planned := func(t *testing.T) *story {
		s := begin(t).group(podGroup().MinMember(4)).members("a", "b", "c", "d").leads("a")
		var placements []placement.Placement
		for _, p := range [][2]string{{"a", "m"}, {"b", "m"}, {"c", "n"}, {"d", "o"}} {
			placements = append(placements, placementOf(s.work, p[0], p[1]))
		}
		plan, why := s.r.CommitPlan(s.work, placements, s.now)
		if plan == nil {
			t.Fatalf("plan refused: %s", why)
		}
		s.plan = plan
		return s
	}
	next := func(s *story, want string) {
		s.t.Helper()
		got := ""
		if p := s.r.NextMember(); p != nil {
			got = p.Name
		}
		if got != want {
			s.t.Fatalf("Next() = %q, want %q", got, want)
		}
	}
	assume := func(s *story, name, node string) {
		s.t.Helper()
		if err := s.r.AssumeMember(types.UID(name), node, s.now); err != nil {
			s.t.Fatalf("assuming %s: %v", name, err)
		}
	}
	permit := func(s *story, name string) {
		s.t.Helper()
		if err := s.r.PermitMember(types.UID(name)); err != nil {
			s.t.Fatalf("permitting %s: %v", name, err)
		}
	}
	refused := func(s *story, name string, taught, wantFirst bool) {
		s.t.Helper()
		if first := s.r.RecordMemberRefused(types.UID(name), "no", taught, s.now); first != wantFirst {
			s.t.Fatalf("the refusal of %s is the first: %t, want %t", name, first, wantFirst)
		}
	}
	returned := func(s *story, name string, wantFails bool) {
		s.t.Helper()
		e, fails, _ := s.r.ReleaseUnexplained(types.UID(name), s.now)
		if s.effects = e; fails != wantFails {
			s.t.Fatalf("%s failed by itself: %t, want %t", name, fails, wantFails)
		}
	}
	for name, tell := range map[string]func(t *testing.T, s *story){
		"the other nodes are tried before the plan is aborted, and the next one is made at once": func(t *testing.T, s *story) {
			assume(s, "a", "m")
			next(s, "b")
			assume(s, "b", "m")
			next(s, "c")
			refused(s, "c", true, true)
			s.wantAborted(false)
			next(s, "d")
			refused(s, "d", true, false)
			next(s, "")
			s.wantAborted(false)
			if !s.r.IsUnwinding() {
				t.Fatal("another gang may be planned before the members are released")
			}
			s.effects = s.r.EndDoomedPlans(s.now)
			s.wantAborted(true)
			returned(s, "a", false)
			returned(s, "b", false)
			s.wantQuiet().leads("a")
		},
		"the leader may be the first": func(t *testing.T, s *story) {
			refused(s, "a", true, true)
			next(s, "c") // b is like a, and planned on the same node
			assume(s, "c", "n")
			next(s, "d")
			assume(s, "d", "o")
			next(s, "")
			s.r.EndDoomedPlans(s.now)
			returned(s, "c", false)
			returned(s, "d", false)
			s.wantQuiet().leads("a")
		},
		"there is a pause if nothing was learned": func(t *testing.T, s *story) {
			refused(s, "a", false, true)
			next(s, "c")
			refused(s, "c", false, false)
			next(s, "d")
			refused(s, "d", false, false)
			next(s, "")
			s.effects = s.r.EndDoomedPlans(s.now)
			s.wantQuiet().wantLeader("").after(minBackoff).wantLeader("a")
		},
		"members of a doomed plan are not prepared": func(t *testing.T, s *story) {
			assume(s, "a", "m")
			permit(s, "a")
			if s.r.IsDoomed("a") {
				t.Fatal("doomed before a member was refused")
			}
			next(s, "b")
			returned(s, "b", true) // another plugin does not reserve it
			next(s, "c")
			assume(s, "c", "n")
			permit(s, "c")
			if !s.r.IsDoomed("c") || !s.r.HoldOnNode("c") {
				t.Fatal("c is prepared")
			}
			s.r.RecordReason("b", "no volume", true, s.now)
			next(s, "d")
			assume(s, "d", "o")
			next(s, "")
			s.r.EndDoomedPlans(s.now)
			s.wantAborted(true)
		},
		"the preparation of the other members is waited for": func(t *testing.T, s *story) {
			for _, p := range [][2]string{{"a", "m"}, {"b", "m"}, {"c", "n"}, {"d", "o"}} {
				if p[0] != "a" {
					next(s, p[0])
				}
				assume(s, p[0], p[1])
				permit(s, p[0])
			}
			returned(s, "c", true)
			if s.r.IsDoomed("d") {
				t.Fatal("the preparation of d is stopped")
			}
			s.arrives("a", "b")
			s.r.RecordReason("c", "no volume", true, s.now)
			s.wantAborted(false)
			returned(s, "d", true)
			s.r.EndDoomedPlans(s.now)
			s.wantAborted(false) // why d failed is not known yet
			s.r.RecordReason("d", "no volume", true, s.now)
			s.wantAborted(true)
			returned(s, "a", false)
			returned(s, "b", false)
			s.wantQuiet().leads("a")
		},
		"but not for long": func(t *testing.T, s *story) {
			for _, p := range [][2]string{{"a", "m"}, {"b", "m"}, {"c", "n"}, {"d", "o"}} {
				if p[0] != "a" {
					next(s, p[0])
				}
				assume(s, p[0], p[1])
				permit(s, p[0])
			}
			returned(s, "c", true)
			s.r.RecordReason("c", "no volume", true, s.now)
			s.after(prepareLimit - time.Millisecond).wantAborted(false)
			s.after(time.Millisecond).wantAborted(true)
		},
		"a large plan is not tried to its end": func(t *testing.T, s *story) {
			refused(s, "a", true, true)
			s.after(tryLimit)
			next(s, "")
			s.r.EndDoomedPlans(s.now)
			s.wantAborted(true).wantQuiet()
		},
		"a member deleted meanwhile ends it": func(t *testing.T, s *story) {
			refused(s, "a", true, true)
			next(s, "c")
			assume(s, "c", "n")
			s.gone("a").wantAborted(true)
			s.r.EndDoomedPlans(s.now)
			returned(s, "c", false)
			s.wantQuiet()
		},
		"what the node took is known": func(t *testing.T, s *story) {
			assume(s, "a", "m")
			next(s, "b")
			isMember, beside, _ := s.r.PodsBeside("b")
			if len(beside) != 1 || !isMember("a") || !isMember("d") || isMember("x") {
				t.Fatalf("%d members beside b, want a; of a, d and x are members: %t, %t, %t", len(beside), isMember("a"), isMember("d"), isMember("x"))
			}
			if _, beside, late := s.r.PodsBeside("c"); len(beside) != 0 || late {
				t.Fatalf("%d members beside c, late %t, want none", len(beside), late)
			}
		},
		"a member may be refused after the plan was aborted": func(t *testing.T, s *story) {
			assume(s, "a", "m")
			next(s, "b")
			assume(s, "b", "m")
			next(s, "c")
			refused(s, "c", true, true)
			s.after(tryLimit)
			next(s, "")
			s.r.EndDoomedPlans(s.now)
			s.wantAborted(true)
			returned(s, "a", false)
			if _, beside, late := s.r.PodsBeside("b"); len(beside) != 1 || !late {
				t.Fatalf("%d members beside b, late %t, want a, which was planned there", len(beside), late)
			}
			returned(s, "b", false)
		},
	} {
		t.Run(name, func(t *testing.T) { tell(t, planned(t)) })
	}
}
