// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/topology"
)

// fabric is a ClusterTopologyBinding with the given domains, whose keys are l/<domain>.
func fabric(domains ...string) *v1alpha1.ClusterTopologyBinding {
	binding := &v1alpha1.ClusterTopologyBinding{ObjectMeta: metav1.ObjectMeta{Name: "fabric"}}
	for _, domain := range domains {
		binding.Spec.Levels = append(binding.Spec.Levels, v1alpha1.ClusterTopologyLevel{Domain: domain, Key: "l/" + domain})
	}
	return binding
}

// packed is the set of podCliqueSet with constraints at the set, at prefill, and at the cliques worker and
// prefill-worker.
func packed(set *v1alpha1.PodCliqueSet) {
	pack := func(required, preferred string) *v1alpha1.TopologyConstraint {
		return &v1alpha1.TopologyConstraint{Pack: &v1alpha1.TopologyPackConstraint{Required: required, Preferred: preferred}}
	}
	template := &set.Spec.Template
	template.TopologyConstraint = pack("block", "rack")
	template.TopologyConstraint.TopologyName = "fabric"
	template.ScalingGroup("prefill").TopologyConstraint = pack("rack", "")
	template.Clique("worker").TopologyConstraint = pack("", "host")
	template.Clique("prefill-worker").TopologyConstraint = &v1alpha1.TopologyConstraint{PackDomain: "host"}
}

// constraints returns the constraints of a PodGroup as text, one node per line, "none" for nil.
func constraints(pg *v2alpha2.PodGroup) string {
	if pg == nil {
		return "none"
	}
	var lines []string
	add := func(name string, tc *v2alpha2.TopologyConstraint) {
		if tc != nil {
			lines = append(lines, fmt.Sprintf("%s: %s %s/%s", name, tc.Topology, tc.RequiredTopologyLevel, tc.PreferredTopologyLevel))
		}
	}
	add("root", pg.Spec.TopologyConstraint)
	for _, sg := range pg.Spec.SubGroups {
		add(sg.Name, sg.TopologyConstraint)
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "l/", "")
}

func TestTopologyConstraintsOfAPodGroup(t *testing.T) {
	t.Parallel()
	all := fabric("block", "rack", "host")
	const want = `root: TOPOLOGY block/rack
llm-0-worker: TOPOLOGY /host
llm-0-prefill-0: TOPOLOGY rack/
llm-0-prefill-0-prefill-worker: TOPOLOGY host/
llm-0-prefill-1: TOPOLOGY rack/
llm-0-prefill-1-prefill-worker: TOPOLOGY host/`
	of := func(topology string) string { return strings.ReplaceAll(want, "TOPOLOGY", topology) }
	made := PodGroup(podCliqueSet(packed), 0, Children{Topology: Topology{Binding: all, Name: "fabric"}})
	for name, tc := range map[string]struct {
		existing *v2alpha2.PodGroup
		topology Topology
		want     string
		waits    string
	}{
		"of a Topology":    {topology: Topology{Binding: all, Name: "fabric"}, want: of("fabric")},
		"without Topology": {topology: Topology{Binding: all}, want: of("")},
		"a new PodGroup waits for the binding": {want: "none",
			waits: "waits for its required topology: ClusterTopologyBinding fabric does not exist"},
		"a new PodGroup waits for a required level": {topology: Topology{Binding: fabric("block", "rack")}, want: strings.Join([]string{
			"root:  block/rack", "llm-0-prefill-0:  rack/", "llm-0-prefill-1:  rack/"}, "\n"),
			waits: "waits for its required topology: ClusterTopologyBinding fabric has no level host, only block, rack"},
		"an existing one keeps what it has when the binding is gone":  {existing: made, want: of("fabric")},
		"an existing one keeps what it has when a level is gone":      {existing: made, topology: Topology{Binding: fabric("block", "host")}, want: of("fabric")},
		"an existing one keeps its Topology when that is gone":        {existing: made, topology: Topology{Binding: all}, want: of("fabric")},
		"an existing one gets the Topology that was created later":    {existing: PodGroup(podCliqueSet(packed), 0, Children{Topology: Topology{Binding: all}}), topology: Topology{Binding: all, Name: "fabric"}, want: of("fabric")},
		"an existing one without constraints gets none from nowhere":  {existing: PodGroup(podCliqueSet(), 0, Children{}), want: ""},
		"an existing one without constraints gets them when they are": {existing: PodGroup(podCliqueSet(), 0, Children{}), topology: Topology{Binding: all, Name: "fabric"}, want: of("fabric")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := Children{Topology: tc.topology}
			if tc.existing != nil {
				live.PodGroups = map[string]*v2alpha2.PodGroup{naming.PodGroupName("llm", 0): tc.existing}
			}
			set := podCliqueSet(packed)
			if diff := cmp.Diff(tc.want, constraints(PodGroup(set, 0, live))); diff != "" {
				t.Errorf("constraints (-want +got):\n%s", diff)
			}
			if got := TopologyWait(set, 0, live); got != tc.waits {
				t.Errorf("waits: %q, want %q", got, tc.waits)
			}
		})
	}
}

// TestUpdatedTopologyOfAPodGroup: an existing PodGroup gets the constraints of all its nodes, that of the root
// included.
func TestUpdatedTopologyOfAPodGroup(t *testing.T) {
	t.Parallel()
	all := Topology{Binding: fabric("block", "rack", "host"), Name: "fabric"}
	want := PodGroup(podCliqueSet(packed), 0, Children{Topology: all})
	for name, live := range map[string]*v2alpha2.PodGroup{
		"of no Topology":      PodGroup(podCliqueSet(packed), 0, Children{Topology: Topology{Binding: all.Binding}}),
		"without constraints": PodGroup(podCliqueSet(), 0, Children{}),
	} {
		updated, differs := Updated(live, want)
		if diff := cmp.Diff(constraints(want), constraints(updated)); diff != "" || !differs {
			t.Errorf("%s: differs: %t; (-want +got):\n%s", name, differs, diff)
		}
		if _, differs := Updated(updated, want); differs {
			t.Errorf("%s: differs after the update", name)
		}
	}
}

// A replica of a scaling group that is added while its required level is unknown is not listed: it would be placed
// anywhere.
func TestNewNodesWaitForTheirTopology(t *testing.T) {
	t.Parallel()
	set := podCliqueSet(packed)
	made := PodGroup(set, 0, Children{Topology: Topology{Binding: fabric("block", "rack", "host")}})
	set.Spec.Template.ScalingGroup("prefill").Replicas = new(int32(4))
	live := Children{PodGroups: map[string]*v2alpha2.PodGroup{made.Name: made}}
	if diff := cmp.Diff(outline(made), outline(PodGroup(set, 0, live))); diff != "" {
		t.Errorf("tree without the binding (-want +got):\n%s", diff)
	}
	live.Topology.Binding = fabric("block", "rack", "host")
	if got := constraints(PodGroup(set, 0, live)); !strings.Contains(got, "llm-0-prefill-3:  rack/") {
		t.Errorf("the replica is missing with the binding:\n%s", got)
	}
}

// TestDomainsOfABinding: a ClusterTopologyBinding is enough to define the domains of a required level by the labels of
// all levels above it, as the Topology with its levels does that is created later. An existing PodGroup keeps its
// domains while one of them is no level of the binding, or the binding is gone, and follows other changes of its
// levels.
func TestDomainsOfABinding(t *testing.T) {
	t.Parallel()
	set := podCliqueSet(packed)
	without := podCliqueSet()
	made := PodGroup(set, 0, Children{Topology: NewTopology(fabric("block", "rack", "host"), "fabric", nil)})
	for name, tc := range map[string]struct {
		set      *v1alpha1.PodCliqueSet // nil: with constraints
		existing *v2alpha2.PodGroup
		topology Topology
		want     string // of the replicas of prefill, that require a rack
	}{
		"no Topology":                    {topology: NewTopology(fabric("block", "rack", "host"), "fabric", nil), want: "l/block,l/rack"},
		"the Topology comes":             {existing: made, topology: NewTopology(fabric("block", "rack", "host"), "fabric", []string{"l/block", "l/rack", "l/host"}), want: "l/block,l/rack"},
		"a Topology with other levels":   {topology: NewTopology(fabric("block", "rack", "host"), "fabric", []string{"l/rack", "l/block", "l/host"}), want: "l/block,l/rack"},
		"a level is added to a binding":  {existing: made, topology: NewTopology(fabric("zone", "block", "rack", "host"), "fabric", nil), want: "l/zone,l/block,l/rack"},
		"a level that nothing names":     {topology: NewTopology(fabric("zone", "block", "rack", "host"), "fabric", nil), want: "l/zone,l/block,l/rack"},
		"a required level is taken out":  {existing: made, topology: NewTopology(fabric("rack", "host"), "fabric", nil), want: "l/block,l/rack"},
		"the binding is gone":            {existing: made, topology: Topology{}, want: "l/block,l/rack"},
		"no constraints, and no binding": {set: without},
		"no constraints":                 {set: without, topology: NewTopology(fabric("rack"), "fabric", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, of := Children{Topology: tc.topology}, set
			if tc.set != nil {
				of = tc.set
			}
			if tc.existing != nil {
				live.PodGroups = map[string]*v2alpha2.PodGroup{naming.PodGroupName("llm", 0): tc.existing}
			}
			pg := PodGroup(of, 0, live)
			if tc.existing != nil {
				pg, _ = Updated(tc.existing, pg)
			}
			tree, err := podgroup.Tree(&pg.Spec)
			if err != nil {
				t.Fatal(err)
			}
			levelsOf := func(string) topology.Levels { return topology.Levels{"l/block", "l/rack", "l/host"} }
			required, _, refusal := podgroup.Levels(tree, &pg.Spec, podgroup.WithListed(pg, levelsOf), "")
			if got := required["llm-0-prefill-0"]; refusal != nil || got != tc.want {
				t.Errorf("a domain has the labels %q, want %q; refused: %+v", got, tc.want, refusal)
			}
			if _, listed := pg.Annotations[v2alpha2.TopologyLevelsAnnotation]; listed != (tc.set == nil) {
				t.Errorf("annotations %v", pg.Annotations)
			}
		})
	}
}

func TestTopologyOfABinding(t *testing.T) {
	t.Parallel()
	binding := fabric("block", "rack")
	binding.Spec.SchedulerTopologyBindings = []v1alpha1.SchedulerTopologyBinding{{SchedulerName: "kai-scheduler", TopologyReference: "external"}}
	for scheduler, want := range map[string]string{"kai-scheduler": "external", "muster-scheduler": "fabric", "": "fabric"} {
		if got := TopologyReference(binding, scheduler); got != want {
			t.Errorf("TopologyReference(%q) = %q, want %q", scheduler, got, want)
		}
	}
	for name, tc := range map[string]struct {
		labels []string
		want   string
	}{
		"the same levels":       {[]string{"l/block", "l/rack"}, "t"},
		"more levels":           {[]string{"l/zone", "l/block", "l/rack", "l/host"}, "t"},
		"another order":         {[]string{"l/rack", "l/block"}, ""},
		"a level is missing":    {[]string{"l/rack"}, ""},
		"there is no Topology":  {nil, ""},
		"other labels entirely": {[]string{"a", "b"}, ""},
	} {
		got := NewTopology(binding, "t", tc.labels)
		if got.Name != tc.want || (got.Unused == "t") == (tc.want == "t") {
			t.Errorf("%s: refers to %q, does not use %q, want %q", name, got.Name, got.Unused, tc.want)
		}
	}
	if got := NewTopology(binding, binding.Name, nil); got.Name != "" || got.Unused != "" {
		t.Errorf("a binding that names no Topology, without one of its name: %+v", got)
	}
}

func TestTopologyCondition(t *testing.T) {
	t.Parallel()
	nameless := func(set *v1alpha1.PodCliqueSet) {
		packed(set)
		set.Spec.Template.TopologyConstraint.TopologyName = ""
	}
	for name, tc := range map[string]struct {
		set      *v1alpha1.PodCliqueSet
		topology Topology
		want     string
	}{
		"no constraints":             {podCliqueSet(), Topology{Binding: fabric("rack")}, "none"},
		"no name":                    {podCliqueSet(nameless), Topology{}, "Unknown TopologyNameMissing: no topologyConstraint has a topologyName"},
		"no binding":                 {podCliqueSet(packed), Topology{}, "Unknown ClusterTopologyNotFound: ClusterTopologyBinding fabric does not exist"},
		"levels are missing":         {podCliqueSet(packed), Topology{Binding: fabric("zone", "block")}, "True ClusterTopologyLevelsUnavailable: ClusterTopologyBinding fabric has no level host, rack, only zone, block"},
		"all levels, of a Topology":  {podCliqueSet(packed), Topology{Binding: fabric("block", "rack", "host"), Name: "t"}, "False AllClusterTopologyLevelsAvailable: ClusterTopologyBinding fabric has all levels"},
		"all levels, of the binding": {podCliqueSet(packed), Topology{Binding: fabric("block", "rack", "host")}, "False AllClusterTopologyLevelsAvailable: ClusterTopologyBinding fabric has all levels"},
		"a Topology cannot be used":  {podCliqueSet(packed), Topology{Binding: fabric("block", "rack", "host"), Unused: "t"}, "False AllClusterTopologyLevelsAvailable: ClusterTopologyBinding fabric has all levels; new PodGroups use these, since Topology t does not exist or has others"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionTopologyLevelsUnavailable, Reason: "Former"}}
			status := PodCliqueSetStatus(tc.set, SetStatusFacts{Topology: tc.topology}, metav1.Time{})
			got := "none"
			if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionTopologyLevelsUnavailable); c != nil {
				got = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			}
			if got != tc.want {
				t.Errorf("condition %q, want %q", got, tc.want)
			}
		})
	}
}
