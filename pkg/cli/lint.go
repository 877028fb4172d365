// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/config/profile"
	grovev1alpha1 "github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/snapshot"
)

// Problem is what is wrong with an object of a manifest.
type Problem struct {
	Object string `json:"object"` // "PodGroup ml/train"
	// Severity is error (it is refused, or never starts) or warning.
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

const (
	severityError   = "error"
	severityWarning = "warning"
)

// Lint are the problems of manifests.
type Lint struct {
	typeMeta `json:",inline"`
	Problems []Problem `json:"problems"`
}

func newLint(o *options) *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use: "lint -f FILE...", Short: "Check manifests as the webhooks do, without a cluster",
		Long: `Check the PodGroups and PodCliqueSets of manifests as muster-controller's webhooks do, and whether the pods that the files make are enough
for the minimums and name the scheduler. No cluster is asked. Exit code 2: there are errors.`,
		Example: "  kubectl muster lint -f deploy/",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			m, err := o.readManifest(files, cmp.Or(o.overrides.Context.Namespace, metav1.NamespaceDefault))
			if err != nil {
				return err
			}
			m.sets = slices.DeleteFunc(m.sets, func(set *grovev1alpha1.PodCliqueSet) bool {
				has := slices.ContainsFunc(m.bindings, func(b *grovev1alpha1.ClusterTopologyBinding) bool { return b.Name == set.Spec.Template.TopologyName() })
				if !has && set.Spec.Template.TopologyName() != "" {
					m.unplanned = append(m.unplanned, fmt.Sprintf("the topology constraints of PodCliqueSet %s, whose ClusterTopologyBinding the files do not have", set.Name))
				}
				return !has && set.Spec.Template.TopologyName() != ""
			})
			if err := m.addSets(&snapshot.Snapshot{}); err != nil {
				return err
			}
			m.checkPods()
			for _, what := range m.unplanned {
				m.problems = append(m.problems, Problem{what, severityWarning, "not checked"})
			}
			x := &Lint{typeMeta: metaOf("Lint"), Problems: m.problems}
			if err := o.print(x, func(w io.Writer) { o.printLint(w, x) }); err != nil {
				return err
			}
			if slices.ContainsFunc(x.Problems, func(p Problem) bool { return p.Severity == severityError }) {
				return errBlocked
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "Manifests: files, folders, or - for the standard input.")
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

// problem adds a problem.
func (m *manifest) problem(kind, namespace, name, severity, text string) {
	m.problems = append(m.problems, Problem{fmt.Sprintf("%s %s/%s", kind, namespace, name), severity, text})
}

// validated adds the result of a validation, and reports whether the object is valid.
func (m *manifest) validated(kind, namespace, name string, errs field.ErrorList, warnings []string) bool {
	for _, err := range errs {
		m.problem(kind, namespace, name, severityError, err.Error())
	}
	for _, warning := range warnings {
		m.problem(kind, namespace, name, severityWarning, warning)
	}
	return len(errs) == 0
}

// checkPods compares the pods with the PodGroups.
func (m *manifest) checkPods() {
	type key struct{ namespace, name string }
	counts, others := map[key]gang.Counts{}, map[key]string{}
	known := map[key]*gang.Tree{}
	for _, g := range m.groups {
		if tree, err := podgroup.Tree(&g.Spec); err == nil {
			known[key{g.Namespace, g.Name}] = tree
		}
	}
	for _, pod := range m.pods {
		k := key{pod.Namespace, membership.Group(pod)}
		if k.name == "" {
			continue
		}
		if counts[k] == nil {
			counts[k] = gang.Counts{}
		}
		leaf := membership.Leaf(pod)
		if tree := known[k]; tree != nil && (tree.Group(leaf) == nil && leaf != "" || tree.Group(leaf) != nil && !tree.Group(leaf).IsLeaf()) {
			m.problem("Pod", pod.Namespace, pod.Name, severityError, fmt.Sprintf("label %s names %q, which is no leaf of PodGroup %s", v2alpha2.SubGroupLabel, leaf, k.name))
			continue
		}
		counts[k][leaf]++
		if pod.Spec.SchedulerName != profile.SchedulerName {
			others[k] = cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
		}
	}
	for _, g := range m.groups {
		k := key{g.Namespace, g.Name}
		tree := known[k]
		if tree == nil || counts[k] == nil {
			continue
		}
		if missing := tree.MissingPods(counts[k]); missing > 0 {
			m.problem("PodGroup", g.Namespace, g.Name, severityWarning, fmt.Sprintf("the minimum needs %s, the files make %d of them", message.Count(tree.MinPods(), "pod"), tree.MinPods()-missing))
		}
		if name, ok := others[k]; ok {
			m.problem("PodGroup", g.Namespace, g.Name, severityWarning, fmt.Sprintf("pods of it have schedulerName %q, not %s: they start one by one", name, profile.SchedulerName))
		}
	}
}

func (o *options) printLint(w io.Writer, x *Lint) {
	if len(x.Problems) == 0 {
		fmt.Fprintln(w, "No problems were found.")
	}
	for _, p := range x.Problems {
		colour := yellow
		if p.Severity == severityError {
			colour = red
		}
		for i, line := range wrap(p.Object+": "+p.Message, o.width()-9) {
			label := ""
			if i == 0 {
				label = p.Severity
			}
			fmt.Fprintf(w, "%s%s%s\n", o.colour(colour, label), strings.Repeat(" ", 9-len(label)), line)
		}
	}
}
