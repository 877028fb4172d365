// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/klog/v2"
)

// disruptionBudgets are the PodDisruptionBudgets of one decision, numbered from 0.
type disruptionBudgets struct {
	allowed []int // disruptions that they allow now
	// byLabel contains those that select any pod, by namespace and by a label that these pods have: most pods are in a
	// namespace without budgets, and the others are compared with few.
	byLabel map[string]map[budgetLabel][]budgetMatcher
}

// budgetLabel is a label of the pods that a PodDisruptionBudget selects. No value: the key alone matters; no key: none
// is needed.
type budgetLabel struct{ key, value string }

type budgetMatcher struct {
	number   int
	selector labels.Selector
	budget   *policyv1.PodDisruptionBudget
}

// disruptionBudgets reads the PodDisruptionBudgets. As in the stock scheduler, one with an empty selector selects
// nothing.
func (g *Gangs) disruptionBudgets(logger klog.Logger) disruptionBudgets {
	b := disruptionBudgets{byLabel: map[string]map[budgetLabel][]budgetMatcher{}}
	list, err := g.budgets.List(labels.Everything())
	if err != nil {
		logger.Error(err, "Failed to list PodDisruptionBudgets; victims are chosen without them")
	}
	for _, budget := range list {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || selector.Empty() {
			continue
		}
		for _, label := range labelsOf(selector) {
			byLabel := b.byLabel[budget.Namespace]
			if byLabel == nil {
				byLabel = map[budgetLabel][]budgetMatcher{}
				b.byLabel[budget.Namespace] = byLabel
			}
			byLabel[label] = append(byLabel[label], budgetMatcher{len(b.allowed), selector, budget})
		}
		b.allowed = append(b.allowed, int(budget.Status.DisruptionsAllowed))
	}
	return b
}

// labelsOf returns labels of which each selected pod has one. nil: no pod is selected.
func labelsOf(selector labels.Selector) []budgetLabel {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil
	}
	found := []budgetLabel{{}}
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			var list []budgetLabel
			for value := range r.Values() {
				list = append(list, budgetLabel{r.Key(), value})
			}
			return list
		case selection.Exists:
			found = []budgetLabel{{r.Key(), ""}}
		}
	}
	return found
}

// ofEach returns a function that returns, by the index of a pod, the numbers of the budgets that its end counts
// against, ascending. nil: there are no budgets.
func (b disruptionBudgets) ofEach(pods []*corev1.Pod) func(i int) []int {
	if len(b.byLabel) == 0 {
		return nil
	}
	return func(i int) []int {
		pod := pods[i]
		byLabel := b.byLabel[pod.Namespace]
		if byLabel == nil {
			return nil
		}
		var numbers []int
		add := func(label budgetLabel) {
			for _, m := range byLabel[label] {
				_, counted := m.budget.Status.DisruptedPods[pod.Name] // its eviction was counted already
				if !counted && m.selector.Matches(labels.Set(pod.Labels)) {
					numbers = append(numbers, m.number)
				}
			}
		}
		add(budgetLabel{})
		for key, value := range pod.Labels {
			add(budgetLabel{key, value})
			if value != "" {
				add(budgetLabel{key, ""})
			}
		}
		slices.Sort(numbers)
		return slices.Compact(numbers)
	}
}
