// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// orderKey is the sort key of the members of one leaf: priority, pod index, creation, name (docs/decisions, G5).
type orderKey struct {
	priority int32
	index    int
	created  time.Time
	name     string
}

func orderOf(pod *corev1.Pod) orderKey {
	return orderKey{priority: podPriority(pod), index: podIndex(pod), created: pod.CreationTimestamp.Time, name: pod.Name}
}

// inOrder returns the rows in the order in which their pods are planned.
func inOrder(rows []row) []*row {
	type entry struct { // what decides most comparisons, close together
		priority int32
		index    int
		created  int64
		row      *row
	}
	entries := make([]entry, len(rows))
	for i := range rows {
		key := &rows[i].key
		entries[i] = entry{key.priority, key.index, key.created.Unix(), &rows[i]}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.priority == b.priority && a.index == b.index && a.created != b.created {
			return cmp.Compare(a.created, b.created)
		}
		return a.row.key.compare(&b.row.key)
	})
	sorted := make([]*row, len(rows))
	for i := range entries {
		sorted[i] = entries[i].row
	}
	return sorted
}

// preferred compares members of a leaf by the order in which they are planned.
func preferred(a, b *member) int { return a.key.compare(&b.key) }

func (a *orderKey) compare(b *orderKey) int {
	if c := cmp.Compare(b.priority, a.priority); c != 0 {
		return c
	}
	if c := cmp.Compare(a.index, b.index); c != 0 {
		return c
	}
	return a.age(b)
}

// age compares by creation time, then by name.
func (a *orderKey) age(b *orderKey) int {
	if c := a.created.Compare(b.created); c != 0 {
		return c
	}
	return strings.Compare(a.name, b.name)
}

func podPriority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// indexLabels are the labels in which workload controllers store a pod's index.
var indexLabels = []string{"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index", "grove.io/podclique-pod-index"}

// podIndex returns a pod's index, or a number above all indexes if it has none.
func podIndex(pod *corev1.Pod) int {
	for _, l := range indexLabels {
		if v, ok := pod.Labels[l]; ok {
			if i, err := strconv.Atoi(v); err == nil {
				return i
			}
		}
	}
	return 1 << 30
}

// priorities counts members by priority.
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
		p.levels = append(p.levels, priorityLevel{})
		copy(p.levels[i+1:], p.levels[i:])
		p.levels[i] = priorityLevel{priority: priority}
	}
	if p.levels[i].pods += n; p.levels[i].pods == 0 {
		p.levels = append(p.levels[:i], p.levels[i+1:]...)
	}
}

// highest returns the highest priority, 0 if there is no member.
func (p *priorities) highest() int32 {
	if len(p.levels) == 0 {
		return 0
	}
	return p.levels[0].priority
}
