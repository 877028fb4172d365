// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// Trees that got past admission: the API server has a CRD without rules here, and no webhook.
func TestTreesThatBypassedValidation(t *testing.T) {
	c := newCluster(t, 1)
	c.withoutRules()
	c.startQuick()
	cases := map[string]struct {
		pg    *wrappers.PodGroupWrapper
		leaf  string // that the pods name
		words []string
	}{
		"cycle": {
			pg:    c.group("cycle").Inner("b", "a", 1).Inner("a", "b", 1).SubGroupOf("b", "leaf", 2),
			leaf:  "leaf",
			words: []string{"spec.subGroups", "is its own ancestor"},
		},
		"own-parent": {
			pg:    c.group("own-parent").SubGroup("leaf", 2).Inner("a", "a", 1),
			leaf:  "leaf",
			words: []string{"spec.subGroups[1].parent"},
		},
		"missing-parent": {
			pg:    c.group("missing-parent").SubGroupOf("nobody", "leaf", 2),
			leaf:  "leaf",
			words: []string{"spec.subGroups[0].parent", `no sub-group is named "nobody"`},
		},
		"leaf-without-minimum": {
			pg:    c.group("leaf-without-minimum").Inner("", "leaf", 0),
			leaf:  "leaf",
			words: []string{"spec.subGroups[0].minMember"},
		},
		"more-children-than-there-are": {
			pg:    c.group("more-children-than-there-are").Inner("", "a", 3).SubGroupOf("a", "leaf", 1).SubGroupOf("a", "other", 1),
			leaf:  "leaf",
			words: []string{"spec.subGroups[0].minSubGroup"},
		},
		"both-minimums": {
			pg:    c.group("both-minimums").MinMember(2).MinSubGroup(1).SubGroup("leaf", 2),
			leaf:  "leaf",
			words: []string{"spec.minMember"},
		},
		"required-topology": {
			pg: c.group("required-topology").MinMember(2).Spec(func(s *v2alpha2.PodGroupSpec) {
				s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "a/b/c"}
			}),
			words: []string{"spec.topologyConstraint.requiredTopologyLevel"},
		},
		"too-deep": {
			pg:    tooDeep(c.group("too-deep")),
			leaf:  "level-9",
			words: []string{"spec.subGroups", "8"},
		},
	}
	for name, tc := range cases {
		c.apply(tc.pg)
		for i := range 2 {
			w := c.pod(fmt.Sprintf("%s-%d", name, i), name, 1)
			if tc.leaf != "" {
				w.SubGroup(tc.leaf)
			}
			c.create(w)
		}
	}
	for name, tc := range cases {
		s := c.untilSays(name, v2alpha2.ReasonInvalid, tc.words...)
		if s.Phase != v2alpha2.PodGroupInvalid {
			t.Errorf("%s: the phase is %s", name, s.Phase)
		}
		t.Logf("%s: %s", name, s.Summary)
		c.untilTold("PodGroup", name, "GangInvalid", tc.words...)
	}
	for name := range cases {
		c.untilPodSays("WaitingForGang", numbered(name, 2)...)
		c.notBound(numbered(name, 2)...)
	}
	c.stillSchedules()

	// The correction is enough.
	c.addNodes(1)
	for name, tc := range cases {
		pg := c.group(name)
		if tc.leaf == "" {
			pg.MinMember(2)
		} else {
			pg.SubGroup(tc.leaf, 2)
		}
		c.apply(pg)
		c.untilBound(name, 2)
		c.untilSatisfied(name)
	}
}

// The tree of a running gang becomes invalid: its pods are not deleted, and Admitted stays True.
func TestTreeOfARunningGangThatBypassedValidation(t *testing.T) {
	c := newCluster(t, 1)
	c.withoutRules()
	c.startQuick()
	c.apply(c.group("g").SubGroup("leaf", 2))
	for _, n := range numbered("g", 2) {
		c.create(c.pod(n, "g", 1).SubGroup("leaf"))
	}
	c.untilSatisfied("g")
	c.apply(c.group("g").SubGroupOf("nobody", "leaf", 2))
	s := c.untilSays("g", v2alpha2.ReasonInvalid, `"nobody"`)
	if condition(s, v2alpha2.ConditionAdmitted).Status != metav1.ConditionTrue {
		t.Errorf("Admitted went: %v", s.Conditions)
	}
	c.create(c.pod("g-2", "g", 1).SubGroup("leaf"))
	c.stillSchedules()
	c.notBound("g-2")
	c.untilBound("g", 2)
	c.apply(c.group("g").SubGroup("leaf", 3))
	c.untilBound("g", 3)
	c.untilSatisfied("g")
}

// tooDeep has nine levels below the root.
func tooDeep(pg *wrappers.PodGroupWrapper) *wrappers.PodGroupWrapper {
	parent := ""
	for level := 1; level <= 8; level++ {
		name := fmt.Sprintf("level-%d", level)
		pg.Inner(parent, name, 1)
		parent = name
	}
	return pg.SubGroupOf(parent, "level-9", 2)
}

// withoutRules removes the CRD's rules (the CEL ones; the schema stays) until the end of the test.
func (c *cluster) withoutRules() {
	c.t.Helper()
	crds, err := controlplane.ReadManifests(os.DirFS("../../../manifests"), "crds")
	c.must(err, "reading the CRD")
	var lax []*unstructured.Unstructured
	for _, crd := range crds {
		lax = append(lax, &unstructured.Unstructured{Object: withoutKey(crd.Object, "x-kubernetes-validations").(map[string]any)})
	}
	// The response to an invalid PodGroup shows whether the API server uses the new rules; it sends no event about it.
	until := func(ctx context.Context, accepted bool) error {
		probe := wrappers.MakePodGroup("rules-probe", c.namespace).SubGroupOf("nobody", "leaf", 1).Obj()
		content, err := toUnstructured(probe)
		if err != nil {
			return err
		}
		for {
			_, err := c.dynamic.Resource(podGroups).Namespace("default").Create(ctx, content, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if accepted && err == nil || !accepted && apierrors.IsInvalid(err) {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the API server does not act on the CRD: %w", err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := cp.Apply(ctx, crds...); err != nil {
			c.t.Errorf("restoring the CRD: %v", err)
		}
		if err := until(ctx, false); err != nil {
			c.t.Error(err)
		}
	})
	c.must(cp.Apply(c.ctx, lax...), "applying a CRD without rules")
	c.must(until(c.ctx, true), "waiting for the CRD without rules")
}

// withoutKey returns a copy of a JSON value without the key, at any depth.
func withoutKey(value any, key string) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if k != key {
				out[k] = withoutKey(x, key)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = withoutKey(x, key)
		}
		return out
	default:
		return v
	}
}

func toUnstructured(pg *v2alpha2.PodGroup) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pg)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	content["metadata"].(map[string]any)["namespace"] = metav1.NamespaceDefault
	return &unstructured.Unstructured{Object: content}, nil
}

// The largest number of sub-groups, with names of the largest length: all messages about them fit into their fields.
func TestLargestTree(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	pg := c.group("wide")
	leaf := func(i int) string { return fmt.Sprintf("%s-%04d", strings.Repeat("x", 58), i) }
	for i := range v2alpha2.MaxSubGroups {
		pg.SubGroup(leaf(i), 2)
	}
	c.apply(pg)
	c.create(c.pod("w-0", "wide", 1).SubGroup(leaf(1023)))
	s := c.untilSays("wide", v2alpha2.ReasonWaitingForPods, "needs 2048 pods, 1 exist")
	if len(s.SubGroups) != v2alpha2.MaxSubGroups || len(s.Summary) > 300 {
		t.Errorf("status has %d sub-groups and a summary of %d bytes", len(s.SubGroups), len(s.Summary))
	}
	c.untilTold("PodGroup", "wide", "GangIncomplete", "needs 2048 pods")
	c.stillSchedules()
	c.apply(pg.MinSubGroup(1))
	c.create(c.pod("w-1", "wide", 1).SubGroup(leaf(1023)))
	c.untilBound("wide", 2)
	c.untilSatisfied("wide")
}
