// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// budgetsOf reads PodDisruptionBudgets of namespace ns with the selectors.
func budgetsOf(t *testing.T, selectors []metav1.LabelSelector) disruptionBudgets {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for i := range selectors {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(i)}}
		budget.Spec.Selector = &selectors[i]
		budget.Status.DisruptionsAllowed = int32(i) // tells which it is
		if err := indexer.Add(budget); err != nil {
			t.Fatal(err)
		}
	}
	g := &Gangs{budgets: policylisters.NewPodDisruptionBudgetLister(indexer)}
	return g.disruptionBudgets(klog.Background())
}

// TestBudgetsOfPods compares the budgets of random pods with those whose selectors match, one after the other.
func TestBudgetsOfPods(t *testing.T) {
	t.Parallel()
	keys, values := []string{"a", "b"}, []string{"", "x", "y"}
	operators := []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}
	found := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		var selectors []metav1.LabelSelector
		for range 6 {
			s := metav1.LabelSelector{}
			if r.IntN(2) == 0 {
				s.MatchLabels = map[string]string{keys[r.IntN(2)]: values[r.IntN(3)]}
			}
			for range r.IntN(3) {
				e := metav1.LabelSelectorRequirement{Key: keys[r.IntN(2)], Operator: operators[r.IntN(4)]}
				if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
					e.Values = values[r.IntN(2):]
				}
				s.MatchExpressions = append(s.MatchExpressions, e)
			}
			selectors = append(selectors, s)
		}
		b := budgetsOf(t, selectors)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{}}}
		for _, key := range keys {
			if r.IntN(3) > 0 {
				pod.Labels[key] = values[r.IntN(3)]
			}
		}
		other := pod.DeepCopy()
		other.Namespace = "other"
		of := b.ofEach([]*corev1.Pod{pod, other})
		if of == nil {
			continue
		}
		var want, got []int
		for i := range selectors {
			s, err := metav1.LabelSelectorAsSelector(&selectors[i])
			if err != nil {
				t.Fatal(err)
			}
			if !s.Empty() && s.Matches(labels.Set(pod.Labels)) {
				want = append(want, i)
			}
		}
		for _, n := range of(0) {
			got = append(got, b.allowed[n])
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || len(of(1)) > 0 {
			t.Errorf("seed %d: budgets %v of a pod with labels %v, want %v; of another namespace %v", seed, got, pod.Labels, want, of(1))
		}
		found += len(want)
	}
	if found < 500 {
		t.Errorf("only %d budgets select a pod", found)
	}
}

// TestPodsAreComparedWithFewBudgets: a budget for each of 5,000 services is no work for every pod.
func TestPodsAreComparedWithFewBudgets(t *testing.T) {
	t.Parallel()
	selectors := make([]metav1.LabelSelector, 5000)
	for i := range selectors {
		selectors[i].MatchLabels = map[string]string{"app": fmt.Sprintf("service-%d", i)}
	}
	b := budgetsOf(t, selectors)
	found := 0
	for _, byLabel := range b.byLabel {
		for label, list := range byLabel {
			if len(list) > 1 || label.value == "" {
				t.Fatalf("%d budgets are compared with each pod that has %+v", len(list), label)
			}
			found++
		}
	}
	if found != len(selectors) {
		t.Errorf("%d labels, want %d", found, len(selectors))
	}
}
