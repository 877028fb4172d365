// SPDX-License-Identifier: Apache-2.0

package count

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Order is the sort key of the pods of one leaf: priority, pod index, creation, name (docs/decisions, G5). It is
// comparable.
type Order struct {
	Priority int32
	index    int
	created  time.Time
	name     string
}

// OrderOf returns the sort key of a pod.
func OrderOf(pod *corev1.Pod) Order {
	index, ok := PodIndex(pod)
	if !ok {
		index = 1 << 30 // above all indexes
	}
	return Order{Priority: PodPriority(pod), index: index, created: pod.CreationTimestamp.Time, name: pod.Name}
}

// Compare returns a negative number if the pod of a is planned before that of b.
func (a *Order) Compare(b *Order) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if c := cmp.Compare(a.index, b.index); c != 0 {
		return c
	}
	return a.CompareAge(b)
}

// CompareAge compares by creation time, then by name.
func (a *Order) CompareAge(b *Order) int {
	if c := a.created.Compare(b.created); c != 0 {
		return c
	}
	return strings.Compare(a.name, b.name)
}

// Sorted returns the items in the order in which their pods are planned.
func Sorted[T any](items []T, orderOf func(*T) *Order) []*T {
	type entry struct { // what decides most comparisons, close together
		priority int32
		index    int
		created  int64
		item     *T
	}
	entries := make([]entry, len(items))
	for i := range items {
		order := orderOf(&items[i])
		entries[i] = entry{order.Priority, order.index, order.created.Unix(), &items[i]}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.priority == b.priority && a.index == b.index && a.created != b.created {
			return cmp.Compare(a.created, b.created)
		}
		return orderOf(a.item).Compare(orderOf(b.item))
	})
	sorted := make([]*T, len(items))
	for i := range entries {
		sorted[i] = entries[i].item
	}
	return sorted
}

// PodPriority returns a pod's priority, 0 if it has none.
func PodPriority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// indexLabels are the labels in which workload controllers store a pod's index.
//
// The pods of a LeaderWorkerSet also have apps.kubernetes.io/pod-index, which is the number of the group for the
// leader.
var indexLabels = []string{
	"batch.kubernetes.io/job-completion-index", "leaderworkerset.sigs.k8s.io/worker-index", "apps.kubernetes.io/pod-index", "grove.io/podclique-pod-index",
}

// PodIndex returns the index that a pod's workload controller gave it, false if it has none.
func PodIndex(pod *corev1.Pod) (int, bool) {
	for _, l := range indexLabels {
		if v, ok := pod.Labels[l]; ok {
			if i, err := strconv.Atoi(v); err == nil {
				return i, true
			}
		}
	}
	return 0, false
}

// priorities counts pods by priority.
type priorities struct {
	levels []priorityLevel // sorted, the highest first
}

type priorityLevel struct {
	priority int32
	pods     int
}

func (p *priorities) add(priority int32, n int) {
	i := 0
	for i < len(p.levels) && p.levels[i].priority > priority {
		i++
	}
	if i == len(p.levels) || p.levels[i].priority != priority {
		p.levels = slices.Insert(p.levels, i, priorityLevel{priority: priority})
	}
	if p.levels[i].pods += n; p.levels[i].pods == 0 {
		p.levels = slices.Delete(p.levels, i, i+1)
	}
}

// highest returns the highest priority, 0 if there is no pod.
func (p *priorities) highest() int32 {
	if len(p.levels) == 0 {
		return 0
	}
	return p.levels[0].priority
}

// lowest returns the lowest priority, 0 if there is no pod.
func (p *priorities) lowest() int32 {
	if len(p.levels) == 0 {
		return 0
	}
	return p.levels[len(p.levels)-1].priority
}
