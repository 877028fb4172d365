// SPDX-License-Identifier: Apache-2.0

package naming_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/naming"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"llm-0":                      naming.PodGroupName("llm", 0),
		"llm-1":                      naming.HeadlessService("llm", 1),
		"llm-1.ml.svc.cluster.local": naming.ServiceAddress("llm", 1, "ml"),
		"llm-0-frontend":             naming.PodCliqueName("llm", 0, "frontend"),
		"llm-2-prefill":              naming.ScalingGroup("llm", 2, "prefill"),
		"llm-0-prefill-3":            naming.GroupReplica("llm", 0, "prefill", 3),
		"llm-0-prefill-3-leader":     naming.MemberPodClique("llm", 0, "prefill", 3, "leader"),
		"llm-0-prefill-3-leader-7":   naming.PodHostname("llm-0-prefill-3-leader", 7),
		"llm-0-prefill":              naming.AutoscalerName("llm-0-prefill"),
		"grove.io:pcs:llm":           naming.StartRoleName("llm"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPodGangCountsSurplusFromZero(t *testing.T) {
	t.Parallel()
	type gang struct {
		Name   string
		Scaled bool
	}
	var got []gang
	for j := range 4 {
		name, scaled := naming.PodGangLabel("llm", 0, "prefill", j, 2)
		got = append(got, gang{name, scaled})
	}
	want := []gang{{"llm-0", false}, {"llm-0", false}, {"llm-0-prefill-0", true}, {"llm-0-prefill-1", true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPodNames(t *testing.T) {
	t.Parallel()
	name := naming.PodName("llm-0-w", "uid-1", "t-1", 0, "")
	if again := naming.PodName("llm-0-w", "uid-1", "t-1", 0, ""); again != name {
		t.Errorf("the same pod is called %s and %s", name, again)
	}
	if len(name) != len("llm-0-w-0-")+5 || len(validation.IsDNS1123Label(name)) > 0 {
		t.Errorf("%q does not look like a pod of llm-0-w", name)
	}
	// These names must differ: the successor of a lost pod, a pod of a PodClique of the same name, another index,
	// another template, and cliques with confusable names.
	seen := map[string]string{}
	for _, clique := range []string{"llm-0-w", "llm-0-w-0", "llm-0", "llm-0-0"} {
		for _, uid := range []string{"uid-1", "uid-2"} {
			for index := range 200 {
				for _, replaced := range []string{"", "a", "b"} {
					for _, template := range []string{"", "t-1", "t-2"} {
						key := fmt.Sprint(clique, uid, template, index, replaced)
						name := naming.PodName(clique, uid, template, index, replaced)
						if other, ok := seen[name]; ok {
							t.Errorf("%s and %s are both called %s", key, other, name)
						}
						seen[name] = key
						if got := naming.PodIndex(name); got != index {
							t.Errorf("the index in %s is %d, and not %d", name, got, index)
						}
					}
				}
			}
		}
	}
	for _, name := range []string{"", "llm", "llm-0", "llm-a-x7k2p", "-", "--"} {
		if got := naming.PodIndex(name); got != -1 {
			t.Errorf("%q has the index %d, and is the name of no pod", name, got)
		}
	}
}

func TestNamesWithinTheBudgetAreValid(t *testing.T) {
	t.Parallel()
	a := func(n int) string { return strings.Repeat("a", n) }
	for name, tc := range map[string]struct {
		set, group, clique string
		excess             int
	}{
		"standalone, as long as may be": {a(30), "", a(15), 0},
		"standalone, one too long":      {a(30), "", a(16), 1},
		"member, as long as may be":     {a(15), a(15), a(15), 0},
		"member, three too long":        {a(15), a(16), a(17), 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := naming.ExcessLength(tc.set, tc.group, tc.clique); got != tc.excess {
				t.Errorf("Excess() = %d, want %d", got, tc.excess)
			}
			if tc.excess > 0 {
				return
			}
			// 1,000 set replicas, the most group replicas that a PodGroup can list, 10,000 pods each.
			podClique := naming.PodCliqueName(tc.set, 999, tc.clique)
			if tc.group != "" {
				podClique = naming.MemberPodClique(tc.set, 999, tc.group, 511, tc.clique)
			}
			host := naming.PodHostname(podClique, 9999)
			if errs := validation.IsDNS1123Label(host); len(errs) > 0 {
				t.Errorf("host name %q: %v", host, errs)
			}
		})
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	member := naming.MemberLabels("llm", 1, "prefill", 2, 2, "leader")
	want := map[string]string{
		"app.kubernetes.io/managed-by":                 "grove-operator",
		"app.kubernetes.io/part-of":                    "llm",
		"app.kubernetes.io/name":                       "llm-1-prefill-2-leader",
		"app.kubernetes.io/component":                  "pcsg-podclique",
		"grove.io/podcliqueset-replica-index":          "1",
		"grove.io/podcliquescalinggroup":               "llm-1-prefill",
		"grove.io/podcliquescalinggroup-replica-index": "2",
		"grove.io/podgang":                             "llm-1-prefill-0",
		"grove.io/base-podgang":                        "llm-1",
		"grove.io/template-name":                       "leader",
	}
	if diff := cmp.Diff(want, member); diff != "" {
		t.Errorf("member of a surplus replica (-want +got):\n%s", diff)
	}
	pod := naming.PodLabels(member, "llm-1-prefill-2-leader", 4)
	for key, value := range map[string]string{"grove.io/podclique": "llm-1-prefill-2-leader", "grove.io/podclique-pod-index": "4"} {
		if pod[key] != value {
			t.Errorf("pod: label %s = %q, want %q", key, pod[key], value)
		}
		if _, ok := member[key]; ok {
			t.Errorf("PodLabels wrote %s into the labels of the PodClique", key)
		}
	}
	base := naming.MemberLabels("llm", 1, "prefill", 0, 2, "leader")
	if _, ok := base[v1alpha1.LabelBasePodGang]; ok || base[v1alpha1.LabelPodGang] != "llm-1" {
		t.Errorf("member of a replica of the minimum: %v", base)
	}
	for name, labels := range map[string]map[string]string{
		"group":   naming.ScalingGroupLabels("llm", 1, "prefill"),
		"clique":  naming.PodCliqueLabels("llm", 1, "frontend"),
		"replica": naming.ReplicaLabels("llm", 1, "llm-1", v1alpha1.ComponentPodGroup),
		"member":  member, "pod": pod,
	} {
		for _, selector := range []map[string]string{naming.SelectSetObjects("llm"), naming.OfSetReplica("llm", 1)} {
			if !selects(selector, labels) {
				t.Errorf("%v does not select the %s %v", selector, name, labels)
			}
		}
		if selects(naming.OfSetReplica("llm", 11), labels) || selects(naming.SelectSetObjects("llm-1"), labels) {
			t.Errorf("the %s is selected by the selector of another set", name)
		}
		for key, value := range labels {
			if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
				t.Errorf("%s: %s=%q: %v", name, key, value, errs)
			}
		}
	}
	if !selects(naming.OfPodClique("llm-1-prefill-2-leader"), pod) || !selects(naming.OfScalingGroup("llm-1-prefill"), pod) {
		t.Error("a pod is not selected by its PodClique and its scaling group")
	}
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func TestIndex(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{"0": 0, "17": 17, "": -1, "x": -1, "-1": -1} {
		if got := naming.LabelIndex(map[string]string{"k": value}, "k"); got != want {
			t.Errorf("Index(%q) = %d, want %d", value, got, want)
		}
	}
	if got := naming.LabelIndex(nil, "k"); got != -1 {
		t.Errorf("Index of nothing = %d", got)
	}
}
