// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	rules "github.com/muster-project/muster/pkg/apis/scheduling/validation"
)

// nativeObjects reads groups of Kubernetes, one a line: KIND/NAME [in PARENT]: SPEC.
func nativeObjects(t *testing.T, version, lines string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for line := range strings.Lines(lines) {
		id, spec, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found {
			continue
		}
		id, parent, _ := strings.Cut(id, " in ")
		kind, name, _ := strings.Cut(id, "/")
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("spec: "+spec), &o.Object); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if parent != "" {
			o.Object["spec"].(map[string]any)["parentCompositePodGroupName"] = parent
		}
		o.SetAPIVersion("scheduling.k8s.io/" + version)
		o.SetKind(kind)
		o.SetNamespace("ns")
		o.SetName(name)
		o.SetUID("u1")
		objects = append(objects, o)
	}
	return objects
}

// TestNative: what the API of Kubernetes says, and what is made of it. Where Muster differs, docs/migration.md says
// why.
func TestNative(t *testing.T) {
	t.Parallel()
	const (
		gang2 = "{schedulingPolicy: {gang: {minCount: 2}}}"
		two   = "{schedulingPolicy: {gang: {minGroupCount: 2}}}"
		basic = "{schedulingPolicy: {basic: {}}}"
	)
	for name, tc := range map[string]struct {
		objects string // the first one is asked about
		want    string // the tree, "": none; "refused: WORDS", of which these are the beginning
	}{
		"gang":                       {"PodGroup/a: {schedulingPolicy: {gang: {minCount: 3}}}", "kubernetes-a: 3 pods"},
		"basic, which needs one pod": {"PodGroup/a: " + basic, "kubernetes-a: 1 pods"},
		"gang in a rack": {
			"PodGroup/a: {schedulingPolicy: {gang: {minCount: 3}}, schedulingConstraints: {topology: [{key: rack}]}}", "kubernetes-a: 3 pods in one rack"},
		"priority": {"PodGroup/a: {schedulingPolicy: {basic: {}}, priorityClassName: high, priority: 5}", "kubernetes-a: 1 pods at high"},
		"a group that never preempts": {
			"PodGroup/a: {schedulingPolicy: {basic: {}}, preemptionPolicy: Never}", "kubernetes-a: 1 pods, preempts after 876000h0m0s"},
		"a group that may preempt": {"PodGroup/a: {schedulingPolicy: {basic: {}}, preemptionPolicy: PreemptLowerPriority}", "kubernetes-a: 1 pods"},
		"disruptionMode all":       {"PodGroup/a: {schedulingPolicy: {gang: {minCount: 3}}, disruptionMode: {all: {}}}", "kubernetes-a: 3 pods, all end"},
		"disruptionMode single":    {"PodGroup/a: {schedulingPolicy: {gang: {minCount: 3}}, disruptionMode: {single: {}}}", "kubernetes-a: 3 pods"},
		"disruptionMode of 1.36":   {"PodGroup/a: {schedulingPolicy: {gang: {minCount: 3}}, disruptionMode: PodGroup}", "kubernetes-a: 3 pods, all end"},
		"disruptionMode Pod of 1.36, with the reference of 1.36": {
			"PodGroup/a: {podGroupTemplateRef: {workload: {workloadName: w, podGroupTemplateName: t}}, schedulingPolicy: {gang: {minCount: 3}}, disruptionMode: Pod}",
			"kubernetes-a: 3 pods"},
		"resource claims": {
			"PodGroup/a: {schedulingPolicy: {basic: {}}, resourceClaims: [{name: net, resourceClaimName: c}]}",
			"refused: spec.resourceClaims of PodGroup a cannot be obeyed: its pods wait; name the claims in the pods"},
		"a name of 253 characters": {
			"PodGroup/" + strings.Repeat("a", 253) + ": " + basic, "kubernetes-" + strings.Repeat("a", 225) + "-2fc2b37e4567e06f: 1 pods"},
		"hierarchy": {
			"CompositePodGroup/root: " + two + "\nCompositePodGroup/a in root: " + two + "\nPodGroup/b in root: " + gang2 +
				"\nPodGroup/a1 in a: " + gang2 + "\nPodGroup/a2 in a: " + basic,
			"composite-root: 2 of [composite_a: 2 of [a1: 2 pods; a2: 1 pods]; b: 2 pods]"},
		"k of n groups": {
			"CompositePodGroup/root: " + two + "\nPodGroup/a in root: " + gang2 + "\nPodGroup/b in root: " + gang2 + "\nPodGroup/c in root: " + gang2,
			"composite-root: 2 of [a: 2 pods; b: 2 pods; c: 2 pods]"},
		"a basic composite needs one child": {
			"CompositePodGroup/root: " + basic + "\nPodGroup/a in root: " + gang2 + "\nPodGroup/b in root: " + gang2,
			"composite-root: 1 of [a: 2 pods; b: 2 pods]"},
		"a group and a composite of one name": {
			"CompositePodGroup/root: " + two + "\nCompositePodGroup/a in root: " + basic + "\nPodGroup/a in root: " + gang2 + "\nPodGroup/root in a: " + gang2,
			"composite-root: 2 of [composite_a: 1 of [root: 2 pods]; a: 2 pods]"},
		"a child is still to come": {
			"CompositePodGroup/root: " + two + "\nPodGroup/a in root: " + gang2,
			"composite-root: all of [a: 2 pods; missing_root: 1 pods]"},
		"a child of a nested gang is still to come": {
			"CompositePodGroup/root: " + basic + "\nPodGroup/a in root: " + gang2 + "\nCompositePodGroup/b in root: " + two + "\nPodGroup/b1 in b: " + gang2,
			"composite-root: 1 of [a: 2 pods; composite_b: all of [b1: 2 pods; missing_b: 1 pods]]"},
		"no child yet": {"CompositePodGroup/root: " + basic, "composite-root: all of [missing_root: 1 pods]"},
		"levels of a topology, priority and disruption of a tree": {
			"CompositePodGroup/root: {schedulingPolicy: {basic: {}}, priorityClassName: high, schedulingConstraints: {topology: [{key: zone}]}, disruptionMode: {all: {}}}" +
				"\nPodGroup/a in root: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: rack}]}, disruptionMode: {all: {}}}",
			"composite-root: 1 of [a: 2 pods in one rack, all end] in one zone at high, all end"},
		"a claim anywhere in a tree": {
			"CompositePodGroup/root: " + basic + "\nPodGroup/a in root: {schedulingPolicy: {basic: {}}, resourceClaims: [{name: net, resourceClaimName: c}]}",
			"refused: spec.resourceClaims of PodGroup a cannot be obeyed"},
		"a group in a tree has no gang of its own": {"PodGroup/a in root: " + gang2 + "\nCompositePodGroup/root: " + basic, ""},
		"an inner composite has none":              {"CompositePodGroup/a in root: " + two + "\nCompositePodGroup/root: " + basic, ""},
		"the parent is missing": {
			"PodGroup/a in root: " + gang2, `refused: it is in CompositePodGroup "root", which does not exist: its pods wait; create it`},
		"the parent of the parent is missing": {
			"PodGroup/a in b: " + gang2 + "\nCompositePodGroup/b in root: " + basic, `refused: it is in CompositePodGroup "root", which does not exist`},
		"a composite is its own parent": {
			"CompositePodGroup/a in a: " + basic, `refused: the parents from CompositePodGroup "a" on form a cycle: the pods below wait`},
		"a group below a cycle": {
			"PodGroup/x in a: " + basic + "\nCompositePodGroup/a in b: " + basic + "\nCompositePodGroup/b in a: " + basic,
			"refused: the parents from CompositePodGroup "},
		"four levels": {
			"CompositePodGroup/1: " + basic + "\nCompositePodGroup/2 in 1: " + basic + "\nCompositePodGroup/3 in 2: " + basic + "\nPodGroup/4 in 3: " + gang2,
			"composite-1: 1 of [composite_2: 1 of [composite_3: 1 of [4: 2 pods]]]"},
		"five levels": {
			"CompositePodGroup/1: " + basic + "\nCompositePodGroup/2 in 1: " + basic + "\nCompositePodGroup/3 in 2: " + basic +
				"\nCompositePodGroup/4 in 3: " + basic + "\nPodGroup/5 in 4: " + gang2,
			"refused: it has groups on level 5, as 5, and Kubernetes has 4: the pods wait; use fewer levels"},
		"five levels, from below": {
			"PodGroup/5 in 4: " + gang2 + "\nCompositePodGroup/1: " + basic + "\nCompositePodGroup/2 in 1: " + basic + "\nCompositePodGroup/3 in 2: " + basic +
				"\nCompositePodGroup/4 in 3: " + basic,
			`refused: it is on level 5 below CompositePodGroup "1", and Kubernetes has 4: its pods wait; use fewer levels`},
		"more groups than a PodGroup lists": {
			"CompositePodGroup/root: " + basic + "\n" + strings.Repeat("PodGroup/a in root: "+basic+"\n", 1025),
			"refused: it has 1025 groups below it, and a PodGroup of Muster at most 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, version := range []string{"v1alpha2", "v1alpha3", "v1beta1", "v1"} {
				objects := nativeObjects(t, version, tc.objects)
				for _, o := range objects {
					if _, err := Strip(o); err != nil {
						t.Fatal(err)
					}
				}
				groups, err := kindOf(t, objects[0]).PodGroupsIn(objects[0], NewNativeGroups(objects...))
				got := ""
				if refused := (*RefusedError)(nil); errors.As(err, &refused) {
					got = "refused: " + err.Error()
				} else if err != nil {
					t.Fatal(err)
				}
				for _, g := range groups {
					got += treeInWords(g)
					if owner := g.OwnerReferences[0]; owner.APIVersion != "scheduling.k8s.io/"+version || owner.Kind != objects[0].GetKind() {
						t.Errorf("owner %v", owner)
					}
					if errs, _ := rules.ValidatePodGroup(g); len(errs) > 0 {
						t.Error(errs)
					}
				}
				if got != tc.want && !(strings.HasPrefix(tc.want, "refused") && strings.HasPrefix(got, tc.want)) {
					t.Errorf("%s: %s\nwant %s", version, got, tc.want)
				}
			}
		})
	}
}

// treeInWords returns a PodGroup with its tree.
func treeInWords(g *v2alpha2.PodGroup) string {
	rest := func(c *v2alpha2.TopologyConstraint, mode v2alpha2.DisruptionMode, class string) string {
		text := inWordsOf(c)
		if class != "" {
			text += " at " + class
		}
		if mode == v2alpha2.DisruptAll {
			text += ", all end"
		}
		return text
	}
	var node func(name string, members, children *int32) string
	node = func(name string, members, children *int32) string {
		if members != nil {
			return fmt.Sprintf("%d pods", *members)
		}
		var below []string
		for _, s := range g.Spec.SubGroups {
			if ptr.Deref(s.Parent, "") == name {
				below = append(below, s.Name+": "+node(s.Name, s.MinMember, s.MinSubGroup)+rest(s.TopologyConstraint, s.DisruptionMode, ""))
			}
		}
		return inWords(children) + " of [" + strings.Join(below, "; ") + "]"
	}
	text := g.Name + ": " + node("", g.Spec.MinMember, g.Spec.MinSubGroup) + rest(g.Spec.TopologyConstraint, g.Spec.DisruptionMode, g.Spec.PriorityClassName)
	if d := g.Spec.PreemptionDelay; d != nil {
		text += ", preempts after " + d.Duration.String()
	}
	return text
}

// TestPodGroupsIn: all that is below, once; parents may form a cycle.
func TestPodGroupsIn(t *testing.T) {
	t.Parallel()
	in := NewNativeGroups(nativeObjects(t, "v1alpha3", "CompositePodGroup/root: {}\nCompositePodGroup/n in root: {}\nPodGroup/a in n: {}\nPodGroup/b in root: {}\n"+
		"CompositePodGroup/x in y: {}\nCompositePodGroup/y in x: {}\nPodGroup/c in x: {}\nCompositePodGroup/z in z: {}\nPodGroup/d in z: {}")...)
	for composite, want := range map[string]string{"root": "a b", "n": "a", "x": "c", "y": "c", "z": "d", "none": ""} {
		got := in.PodGroupsIn(composite)
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", composite, got, want)
		}
	}
}

// TestNativeChildrenInOrder: the older child is preferred, as by kube-scheduler.
func TestNativeChildrenInOrder(t *testing.T) {
	t.Parallel()
	objects := nativeObjects(t, "v1beta1", "CompositePodGroup/root: {}\nPodGroup/a in root: {}\nPodGroup/b in root: {}\nPodGroup/c in root: {}")
	for i, age := range []int{0, 1, 3, 3} {
		objects[i].SetCreationTimestamp(metav1.Unix(int64(100-age), 0))
	}
	groups, err := kindOf(t, objects[0]).PodGroupsIn(objects[0], NewNativeGroups(objects...))
	if err != nil {
		t.Fatal(err)
	}
	if got := treeInWords(groups[0]); got != "composite-root: 1 of [b: 1 pods; c: 1 pods; a: 1 pods]" {
		t.Error(got)
	}
}

// TestNativeConditions: what PodGroups of Kubernetes are told, as their API defines it.
func TestNativeConditions(t *testing.T) {
	t.Parallel()
	const more = ": kubectl describe podgroups.scheduling.run.ai kubernetes-a says more"
	condition := func(kind string, status metav1.ConditionStatus, reason v2alpha2.Reason) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: string(reason)}
	}
	unsatisfied := func(reason v2alpha2.Reason) []metav1.Condition {
		return []metav1.Condition{condition(v2alpha2.ConditionSatisfied, metav1.ConditionFalse, reason)}
	}
	admitted := []metav1.Condition{condition(v2alpha2.ConditionAdmitted, metav1.ConditionTrue, "Admitted")}
	for name, tc := range map[string]struct {
		version string
		is      []string // conditions that it has
		made    []metav1.Condition
		tree    []v2alpha2.SubGroupStatus
		want    []string // nil: nothing is written
	}{
		"nothing is known":                 {},
		"its pods are still to come":       {made: unsatisfied(v2alpha2.ReasonWaitingForPods)},
		"its pods are another scheduler's": {made: unsatisfied(v2alpha2.ReasonOtherScheduler)},
		"no room":                          {made: unsatisfied(v2alpha2.ReasonInsufficientGPUs), want: []string{"PodGroupInitiallyScheduled=False Unschedulable InsufficientGPUs" + more}},
		"no room, of 1.36":                 {version: "v1alpha2", made: unsatisfied(v2alpha2.ReasonFragmented), want: []string{"PodGroupScheduled=False Unschedulable Fragmented" + more}},
		"victims leave":                    {made: unsatisfied(v2alpha2.ReasonPreempting), want: []string{"PodGroupInitiallyScheduled=False Unschedulable Preempting" + more}},
		"an error":                         {made: unsatisfied(v2alpha2.ReasonSchedulerError), want: []string{"PodGroupInitiallyScheduled=False SchedulerError SchedulerError" + more}},
		"told before":                      {is: []string{"PodGroupInitiallyScheduled=False Unschedulable InsufficientGPUs" + more}, made: unsatisfied(v2alpha2.ReasonInsufficientGPUs)},
		"started":                          {made: admitted, want: []string{"PodGroupInitiallyScheduled=True Scheduled "}},
		"started later":                    {is: []string{"PodGroupInitiallyScheduled=False Unschedulable x"}, made: admitted, want: []string{"PodGroupInitiallyScheduled=True Scheduled "}},
		"started once, and lost its pods":  {is: []string{"PodGroupInitiallyScheduled=True Scheduled "}, made: unsatisfied(v2alpha2.ReasonInsufficientGPUs)},
		"its tree has started without it":  {made: admitted, tree: []v2alpha2.SubGroupStatus{{Name: "a"}, {Name: "b", Admitted: true}}},
		"its tree has started, and so it":  {made: admitted, tree: []v2alpha2.SubGroupStatus{{Name: "a", Admitted: true}}, want: []string{"PodGroupInitiallyScheduled=True Scheduled "}},
		"preempted": {
			is: []string{"PodGroupInitiallyScheduled=True Scheduled ", "Other=True Mine x"}, made: []metav1.Condition{condition(v2alpha2.ConditionPreempted, metav1.ConditionTrue, v2alpha2.ReasonGangPreempted)},
			want: []string{"PodGroupInitiallyScheduled=True Scheduled ", "Other=True Mine x", "DisruptionTarget=True PreemptionByScheduler kubectl describe podgroups.scheduling.run.ai kubernetes-a says more"}},
		"preempted as soon as it ran": {
			made: append(unsatisfied(v2alpha2.ReasonInsufficientGPUs), condition(v2alpha2.ConditionPreempted, metav1.ConditionTrue, v2alpha2.ReasonGangPreempted)),
			want: []string{"PodGroupInitiallyScheduled=True Scheduled ", "DisruptionTarget=True PreemptionByScheduler kubectl describe podgroups.scheduling.run.ai kubernetes-a says more"}},
		"another scheduler's, which was preempted": {is: []string{"DisruptionTarget=True PreemptionByScheduler x"}, made: unsatisfied(v2alpha2.ReasonWaitingForPods)},
		"lost surplus": {is: []string{"PodGroupInitiallyScheduled=True Scheduled "}, made: []metav1.Condition{condition(v2alpha2.ConditionPreempted, metav1.ConditionTrue, v2alpha2.ReasonSurplusPreempted)}},
		"runs again": {
			is: []string{"PodGroupInitiallyScheduled=True Scheduled ", "DisruptionTarget=True PreemptionByScheduler x"}, made: admitted,
			want: []string{"PodGroupInitiallyScheduled=True Scheduled ", "DisruptionTarget=False Scheduled "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := "v1beta1"
			if tc.version != "" {
				version = tc.version
			}
			object := nativeObjects(t, version, "PodGroup/a: {}")[0]
			var conditions []any
			for _, text := range tc.is {
				id, rest, _ := strings.Cut(text, "=")
				parts := strings.SplitN(rest, " ", 3)
				conditions = append(conditions, map[string]any{"type": id, "status": parts[0], "reason": parts[1], "message": parts[2]})
			}
			if err := unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"); err != nil {
				t.Fatal(err)
			}
			made := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes-a"}, Status: v2alpha2.PodGroupStatus{Conditions: tc.made, SubGroups: tc.tree}}
			for _, s := range tc.tree {
				made.Spec.SubGroups = append(made.Spec.SubGroups, v2alpha2.SubGroup{Name: s.Name})
			}
			var got []string
			for _, c := range NativeConditions(object, made, metav1.Unix(100, 0)) {
				got = append(got, fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
