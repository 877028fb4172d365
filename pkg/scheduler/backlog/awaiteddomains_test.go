// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/wrappers"
)

// TestTopicsOfAGangWithManyDomains: more domains than are tracked add the changes of nodes to what a gang waits for,
// and replace nothing.
func TestTopicsOfAGangWithManyDomains(t *testing.T) {
	t.Parallel()
	label := &labelTopic{key: "selects app=x"}
	for name, tc := range map[string]struct {
		labels []*labelTopic
		helps  causes
		want   []gangs.Topic
	}{
		"room alone decides":                       {nil, moreRoom, []gangs.Topic{otherNodes}},
		"labels of other pods decide, too":         {[]*labelTopic{label}, moreRoom, []gangs.Topic{gangs.Topic(anyPod), otherNodes, label}},
		"the room of a class would not be noticed": {nil, anything, (anything &^ boundPod).topics()},
	} {
		for _, domains := range []int{maxShapes, 40} {
			for _, task := range []gangs.Task{gangs.Minimum, gangs.Refill} {
				a := Attempt{Task: task, Classes: []*corev1.Pod{wrappers.MakePod("a", "ml").Obj()}, Problem: placement.Problem{Required: map[string]string{}},
					Domains: Domains{Pinned: map[int][]placement.Domain{}, ValueOf: func(a placement.Area) string { return fmt.Sprint(a) }}}
				for i := range domains {
					at := placement.Domain{Level: "rack", Area: placement.Area(i + 1)}
					a.Problem.Required[fmt.Sprintf("g-%d", i)] = at.Level
					a.Domains.Needs = append(a.Domains.Needs, placement.DomainNeed{Level: at.Level, Area: at.Area, Pods: 2})
					a.Domains.Pinned[0] = append(a.Domains.Pinned[0], at)
				}
				class := &kubescheduler.Shape{}
				b, tr := &Backlog{shapes: kubescheduler.NewShapes(nil)}, &tracked{byClass: []gangs.Shape{class}, labels: tc.labels, helps: tc.helps}
				b.addDomains(tr, &a, &gangs.Wait{Needs: []gangs.Need{{Shape: class, Pods: 2}}, Fits: func(s gangs.Shape) int { return s.FittingPods() }})
				helps, topics := tr.events(a)
				want := tc.want
				if domains <= maxShapes && tc.labels == nil && tc.helps == moreRoom {
					want = nil // each domain is tracked
				}
				if !slices.Equal(topics, want) {
					t.Errorf("%s, %d domains, task %d: waits for %v, want %v", name, domains, task, topics, want)
				}
				if helps&moreRoom == 0 || want != nil && helps&otherNodes == 0 {
					t.Errorf("%s, %d domains, task %d: an event during the attempt may be missed: %b", name, domains, task, helps)
				}
			}
		}
	}
}

// TestDomainsOfAGangAreBounded: at most maxShapes domains are tracked for one gang. Of the others the room of the
// cluster counts, and changes of nodes help.
func TestDomainsOfAGangAreBounded(t *testing.T) {
	t.Parallel()
	for domains, bounded := range map[int]bool{3: false, maxShapes: false, maxShapes + 1: true, 1000: true} {
		for _, task := range []gangs.Task{gangs.Minimum, gangs.Refill} {
			a := Attempt{Task: task, Domains: Domains{Pinned: map[int][]placement.Domain{}, ValueOf: func(a placement.Area) string { return fmt.Sprint(a) }}}
			for i := range domains {
				area := placement.Area(i + 1)
				a.Domains.Needs = append(a.Domains.Needs, placement.DomainNeed{Level: "rack", Area: area, Pods: 2})
				a.Domains.Pinned[0] = append(a.Domains.Pinned[0], placement.Domain{Level: "rack", Area: area})
			}
			class := &kubescheduler.Shape{}
			b, tr := &Backlog{shapes: kubescheduler.NewShapes(nil)}, &tracked{byClass: []gangs.Shape{class}}
			what := gangs.Wait{Needs: []gangs.Need{{Shape: class, Pods: 2}}, Fits: func(s gangs.Shape) int { return s.FittingPods() }}
			b.addDomains(tr, &a, &what)
			if len(tr.domains) != min(domains, maxShapes) || (tr.helps&otherNodes != 0) != bounded {
				t.Errorf("%d domains, task %d: %d are tracked, changes of nodes help: %t", domains, task, len(tr.domains), tr.helps&otherNodes != 0)
			}
			ofCluster := 0
			for _, n := range what.Needs {
				if n.Shape == gangs.Shape(class) {
					ofCluster++
				}
			}
			if task == gangs.Minimum { // it has one of the cluster beside those of domains
				ofCluster--
				what.Needs = what.Needs[1:]
			}
			if len(what.Needs) != domains || ofCluster != domains-len(tr.domains) {
				t.Errorf("%d domains, task %d: %d conditions, %d of them of the cluster", domains, task, len(what.Needs), ofCluster)
			}
			if what.MayFit != nil && what.MayFit() {
				t.Errorf("%d domains, task %d: there is room on no node", domains, task)
			}
		}
	}
}
