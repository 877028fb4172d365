// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// runs creates a pod of the service's first clique that runs on a node.
func (u *user) runs(set string) {
	u.t.Helper()
	// No controller runs that would create the namespace's service account.
	u.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: set + "-0-frontend-0", Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue, v1alpha1.LabelPartOf: set, v1alpha1.LabelTemplateName: "frontend"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	u.create(pod)
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: u.namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	check(u.t, u.SubResource("binding").Create(u.t.Context(), pod, binding))
	check(u.t, u.Get(u.t.Context(), client.ObjectKeyFromObject(pod), pod))
	pod.Status.Phase = corev1.PodRunning
	check(u.t, u.Status().Update(u.t.Context(), pod))
}

// TestTemplateOfRunningPods: the template of running pods may be edited under every update strategy, and the strategy
// be changed at any time; only changes that do not reach running pods give a warning.
func TestTemplateOfRunningPods(t *testing.T) {
	t.Parallel()
	const onDelete, nothing = "  updateStrategy: {type: OnDelete}\n", "nothing is replaced: delete pods or PodCliques to replace them"
	strategies := map[string]string{
		"none given":      "",
		"an empty one":    "  updateStrategy: {}\n",
		"an empty type":   "  updateStrategy: {type: \"\"}\n",
		"RollingRecreate": "  updateStrategy: {type: RollingRecreate}\n",
		"OnDelete":        onDelete,
	}
	for name, tc := range map[string]struct {
		edit        []string
		wantWarning string // under OnDelete
	}{
		"nothing":            {},
		"an image":           {[]string{"image: none", "image: other"}, "spec.template.cliques[0].spec.podSpec: updateStrategy is OnDelete"},
		"a member's image":   {[]string{"replicas: 1\n        podSpec: {", "replicas: 1\n        podSpec: {hostNetwork: true, "}, "spec.template.cliques[1].spec.podSpec: updateStrategy is OnDelete"},
		"a label":            {[]string{"name: frontend", "name: frontend\n      labels: {a: b}"}, "spec.template.cliques[0].labels: updateStrategy is OnDelete"},
		"an annotation":      {[]string{"name: frontend", "name: frontend\n      annotations: {a: b}"}, "spec.template.cliques[0].annotations: updateStrategy is OnDelete"},
		"the priority class": {[]string{"cliques:", "priorityClassName: system-cluster-critical\n    cliques:"}, "spec.template.priorityClassName: updateStrategy is OnDelete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, cluster)
			u.runs("svc")
			set := func(strategy string, edit []string) *unstructured.Unstructured {
				return u.read(service(append([]string{"spec:\n", "spec:\n" + strategy}, edit...)...))
			}
			for before, old := range strategies {
				for now, strategy := range strategies {
					what := fmt.Sprintf("from %s to %s", before, now)
					if err := u.DeleteAllOf(t.Context(), &v1alpha1.PodCliqueSet{}, client.InNamespace(u.namespace)); err != nil {
						t.Fatal(err)
					}
					live, edited := set(old, nil), set(strategy, tc.edit)
					u.create(live)
					u.warnings.Take()
					edited.SetResourceVersion(live.GetResourceVersion())
					if err := u.Update(t.Context(), edited); err != nil {
						t.Errorf("%s: refused: %v", what, err)
					}
					warnings := u.warnings.Take()
					switch {
					case strategy == onDelete && tc.wantWarning != "":
						if !strings.HasPrefix(warnings, tc.wantWarning) || !strings.HasSuffix(warnings, nothing) || strings.Contains(warnings, "\n") {
							t.Errorf("%s: warnings %q, want %q", what, warnings, tc.wantWarning)
						}
					case strategy != onDelete && old == onDelete && len(tc.edit) == 0:
						if !strings.HasPrefix(warnings, "spec.updateStrategy.type: replaces nothing by itself") || strings.Contains(warnings, "\n") {
							t.Errorf("%s: warnings %q", what, warnings)
						}
					case warnings != "":
						t.Errorf("%s: warnings %q, want none", what, warnings)
					}
				}
			}
		})
	}
}

// TestPodCliquesFollowTheTemplate: while the template and the priority class of the set change and change back,
// PodCliques can be updated to the current template, but neither to the previous one nor to another.
func TestPodCliquesFollowTheTemplate(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster)
	pcs := u.typed()
	_, standalone, member := u.family(pcs)
	u.runs(pcs.Name)

	type template struct{ image, class string }
	edit := func(to template) {
		t.Helper()
		live := &v1alpha1.PodCliqueSet{}
		check(t, u.Get(t.Context(), client.ObjectKeyFromObject(pcs), live))
		live.Spec.Template.PriorityClassName = to.class
		for _, clique := range live.Spec.Template.Cliques {
			clique.Spec.PodSpec.Containers[0].Image = to.image
		}
		check(t, u.Update(t.Context(), live))
	}
	give := func(to template, want ...string) {
		t.Helper()
		for _, clique := range []*v1alpha1.PodClique{standalone, member} {
			live := &v1alpha1.PodClique{}
			check(t, u.Get(t.Context(), client.ObjectKeyFromObject(clique), live))
			live.Spec.PodSpec.PriorityClassName = to.class
			live.Spec.PodSpec.Containers[0].Image = to.image
			check(t, u.Update(t.Context(), live), want...)
		}
	}
	refused := []string{"spec.podSpec", "is set by the template of the PodCliqueSet", "of PodCliqueSet svc instead"}
	first, second, third, ranked := template{"none", ""}, template{"2", ""}, template{"3", ""}, template{"3", "high"}

	give(second, refused...) // before the template has it
	edit(second)
	give(template{"mine", ""}, refused...)
	give(second)
	give(first, refused...)
	edit(third)
	give(first, refused...) // of two before
	give(ranked, refused...)
	edit(ranked)
	give(third, refused...) // one that it never had
	give(template{"2", "high"}, refused...)
	give(ranked)
	give(third, refused...)
	edit(second) // back, and the class away
	give(template{"2", "high"}, refused...)
	give(second)
	give(ranked, refused...)
}
