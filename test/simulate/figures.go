// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
)

// figures is what was seen in a run. Times are in seconds.
type figures struct {
	Setting string  `json:"setting"`
	Load    float64 `json:"load"`
	Policy  string  `json:"policy"`
	GPUs    int     `json:"gpus"`
	Jobs    int     `json:"jobs"`
	// Utilisation is the part of the GPUs in use on average from the first job to the last one.
	Utilisation float64 `json:"utilisation"`
	// Held are the GPU-hours for which GPUs were free and kept for jobs that waited.
	Held float64 `json:"heldGPUHours"`
	// Makespan is the time until the last job has ended, LowerBound what it is at least.
	Makespan   float64 `json:"makespanSeconds"`
	LowerBound float64 `json:"lowerBoundSeconds"`
	// Inversions are the pairs of jobs of which the later one started first.
	Inversions int      `json:"inversions"`
	Classes    []*class `json:"classes"`

	window float64   // from the first job to the last one
	slot   float64   // length of the slots of use
	use    []float64 // GPU-seconds in use, by slot from the first job on
}

// class is the jobs of a size.
type class struct {
	Name       string `json:"gpus"`
	least      int
	Jobs       int     `json:"jobs"`
	P50        float64 `json:"waitP50Seconds"`
	P90        float64 `json:"waitP90Seconds"`
	P99        float64 `json:"waitP99Seconds"`
	Max        float64 `json:"waitMaxSeconds"`
	Slowdown   float64 `json:"slowdown"` // mean of (wait + run time) / run time, which counts as leastRun at least
	waits      []float64
	normalised float64 // sum of slowdowns
}

const (
	slots    = 400
	leastRun = 60
)

// newFigures returns the figures of jobs that have not begun.
func newFigures(jobs []job, gpus int) *figures {
	f := &figures{GPUs: gpus, Jobs: len(jobs), LowerBound: lowerBound(jobs, gpus), window: jobs[len(jobs)-1].submit, Classes: []*class{
		{Name: "1-8", least: 1}, {Name: "9-63", least: 9}, {Name: "64 and more", least: 64},
	}}
	f.slot = max(f.LowerBound, 1) / slots
	return f
}

// observe records that so many GPUs are in use, and free but held, from one moment to another.
func (f *figures) observe(from, to float64, used, held int) {
	f.Held += float64(held) * (to - from) / 3600
	for at := from; at < to; {
		slot := int(at / f.slot)
		end := min(to, float64(slot+1)*f.slot)
		if end <= at { // rounding
			slot, end = slot+1, min(to, float64(slot+2)*f.slot)
		}
		for len(f.use) <= slot {
			f.use = append(f.use, 0)
		}
		f.use[slot] += float64(used) * (end - at)
		at = end
	}
	if f.window > 0 {
		f.Utilisation += float64(used) * max(0, min(to, f.window)-from) / (f.window * float64(f.GPUs))
	}
}

// finish computes the figures when all jobs have ended. runs are in the order in which they came.
func (f *figures) finish(runs []*run) {
	starts := make([]float64, len(runs))
	for i, r := range runs {
		wait := r.start.Sub(r.submit).Seconds()
		starts[i] = r.start.Sub(epoch).Seconds()
		f.Makespan = max(f.Makespan, r.end.Sub(epoch).Seconds())
		at := slices.IndexFunc(f.Classes, func(c *class) bool { return c.least > r.size() })
		if at < 0 {
			at = len(f.Classes)
		}
		c := f.Classes[at-1]
		c.waits = append(c.waits, wait)
		c.normalised += max(1, (wait+r.duration)/max(r.duration, leastRun))
	}
	for _, c := range f.Classes {
		slices.Sort(c.waits)
		c.Jobs = len(c.waits)
		c.P50, c.P90, c.P99, c.Max = quantile(c.waits, 0.5), quantile(c.waits, 0.9), quantile(c.waits, 0.99), quantile(c.waits, 1)
		c.Slowdown = c.normalised / float64(max(1, c.Jobs))
	}
	f.Inversions = inversions(starts)
}

// quantile returns the value that so large a part of the sorted values does not exceed, 0 of none.
func quantile(sorted []float64, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}

// inversions returns the number of pairs of which the first value is greater. It sorts the values.
func inversions(values []float64) int {
	if len(values) < 2 {
		return 0
	}
	middle := len(values) / 2
	left, right := slices.Clone(values[:middle]), slices.Clone(values[middle:])
	n := inversions(left) + inversions(right)
	for i := range values {
		if len(right) == 0 || len(left) > 0 && left[0] <= right[0] {
			values[i], left = left[0], left[1:]
		} else {
			values[i], right = right[0], right[1:]
			n += len(left)
		}
	}
	return n
}
