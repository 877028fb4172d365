// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
)

// disruptionBudgets are the PodDisruptionBudgets of one decision, numbered from 0.
type disruptionBudgets struct {
	allowed     []int                      // disruptions that they allow now
	byNamespace map[string][]budgetMatcher // those that select any pod
}

type budgetMatcher struct {
	number   int
	selector labels.Selector
	budget   *policyv1.PodDisruptionBudget
}

// disruptionBudgets reads the PodDisruptionBudgets. As in the stock scheduler, one with an empty selector selects nothing.
func (g *Gangs) disruptionBudgets(logger klog.Logger) disruptionBudgets {
	b := disruptionBudgets{byNamespace: map[string][]budgetMatcher{}}
	list, err := g.budgets.List(labels.Everything())
	if err != nil {
		logger.Error(err, "Failed to list PodDisruptionBudgets; victims are chosen without them")
	}
	for _, budget := range list {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || selector.Empty() {
			continue
		}
		b.byNamespace[budget.Namespace] = append(b.byNamespace[budget.Namespace], budgetMatcher{len(b.allowed), selector, budget})
		b.allowed = append(b.allowed, int(budget.Status.DisruptionsAllowed))
	}
	return b
}

// ofEach returns a function that returns, by the index of a pod, the numbers of the budgets that its end counts against. nil:
// there are no budgets.
func (b disruptionBudgets) ofEach(pods []*corev1.Pod) func(i int) []int {
	if len(b.byNamespace) == 0 {
		return nil
	}
	numbers := make([][]int, len(pods))
	for i, pod := range pods {
		for _, m := range b.byNamespace[pod.Namespace] {
			_, counted := m.budget.Status.DisruptedPods[pod.Name] // its eviction was counted already
			if !counted && m.selector.Matches(labels.Set(pod.Labels)) {
				numbers[i] = append(numbers[i], m.number)
			}
		}
	}
	return func(i int) []int { return numbers[i] }
}
