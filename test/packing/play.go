// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/test/shapes"
)

// scheduler places the pods of jobs.
type scheduler interface {
	// place binds all pods of a job and returns them; nil: it binds none.
	place(j job) ([]*corev1.Pod, error)
	// remove removes the pods of a job that ends.
	remove(pods []*corev1.Pod) error
}

// figures is what was seen of a contestant. Gangs are jobs of several pods.
type figures struct {
	jobs, wait    int         // wait in seconds, of all jobs
	gangs         [levels]int // that fit in an empty domain of the level
	split         [levels]int // of these
	needless      [levels]int // of these, with room in one domain when they were placed
	racks, fewest int         // of all gangs: racks used, and the fewest in which they fitted then

	window    int         // seconds
	used      int         // GPU-seconds in the window
	free      [levels]int // largest free domain, in GPU-seconds of the window
	leastFree [levels]int // in GPUs
	makespan  int         // seconds until the last job has ended
}

// running is a job that runs.
type running struct {
	job
	until int
	pods  []*corev1.Pod
}

// play plays a stream until all jobs have ended. The window is in seconds from the start. requires says which gangs
// must be in one rack; the scheduler has to know by itself.
func play(f *fabric, jobs []job, window int, s scheduler, requires func(job) bool) (*figures, error) {
	o, out := newOccupancy(f), &figures{window: window, leastFree: [levels]int{math.MaxInt, math.MaxInt}}
	var queue []job
	var runs []running // by end
	now := 0
	for len(jobs) > 0 || len(queue) > 0 || len(runs) > 0 {
		next := math.MaxInt
		if len(jobs) > 0 {
			next = jobs[0].Submit
		}
		if len(runs) > 0 {
			next = min(next, runs[0].until)
		}
		if next == math.MaxInt {
			return nil, fmt.Errorf("%d jobs, the first one %+v, never start", len(queue), queue[0])
		}
		out.observe(o, now, next)
		now = next
		for len(runs) > 0 && runs[0].until <= now {
			for _, p := range runs[0].pods {
				if err := o.take(p.Spec.NodeName, -runs[0].GPUs); err != nil {
					return nil, err
				}
			}
			if err := s.remove(runs[0].pods); err != nil {
				return nil, err
			}
			runs = runs[1:]
		}
		for len(jobs) > 0 && jobs[0].Submit <= now {
			queue, jobs = append(queue, jobs[0]), jobs[1:]
		}
		refused := map[job]bool{} // by pods and their GPUs; placing other jobs does not make room
		var waiting []job
		for _, j := range queue {
			size := job{Pods: j.Pods, GPUs: j.GPUs}
			var pods []*corev1.Pod
			if !refused[size] {
				var err error
				if pods, err = place(o, s, j, requires(j), out); err != nil {
					return nil, err
				}
			}
			if pods == nil {
				refused[size] = true
				waiting = append(waiting, j)
				continue
			}
			out.jobs, out.wait = out.jobs+1, out.wait+now-j.Submit
			r := running{j, now + j.Duration, pods}
			at, _ := slices.BinarySearchFunc(runs, r, func(a, b running) int { return cmp.Or(cmp.Compare(a.until, b.until), -1) })
			runs = slices.Insert(runs, at, r)
		}
		queue = waiting
	}
	out.observe(o, now, max(now, window))
	out.makespan = now
	return out, nil
}

// place lets the scheduler place a job, and judges what it does. nil: it waits.
func place(o *occupancy, s scheduler, j job, required bool, out *figures) ([]*corev1.Pod, error) {
	var fewest [levels]int
	for l := range levels {
		fewest[l] = o.fewest(l, j)
	}
	hasRoom := fewest[rack] > 0 && (!required || fewest[rack] == 1)
	pods, err := s.place(j)
	switch {
	case err != nil:
		return nil, err
	case pods == nil && hasRoom:
		return nil, fmt.Errorf("job %+v is refused, but there is room", j)
	case pods == nil:
		return nil, nil
	case len(pods) != j.Pods:
		return nil, fmt.Errorf("%d pods of job %+v are placed", len(pods), j)
	}
	var nodes []string
	for _, p := range pods {
		nodes = append(nodes, p.Spec.NodeName)
		if err := o.take(p.Spec.NodeName, j.GPUs); err != nil {
			return nil, err
		}
	}
	if required && o.used(rack, nodes) > 1 {
		return nil, fmt.Errorf("job %+v requires a rack, and is in %d", j, o.used(rack, nodes))
	}
	if j.Pods > 1 {
		for l := range levels {
			if !o.holds(l, j) {
				continue
			}
			out.gangs[l]++
			if o.used(l, nodes) > 1 {
				out.split[l]++
				if fewest[l] == 1 {
					out.needless[l]++
				}
			}
		}
		out.racks, out.fewest = out.racks+o.used(rack, nodes), out.fewest+fewest[rack]
	}
	return pods, nil
}

// observe adds what holds from one time to another.
func (out *figures) observe(o *occupancy, from, to int) {
	if to = min(to, out.window); to <= from {
		return
	}
	for _, free := range o.free {
		out.used += (o.gpus - free) * (to - from)
	}
	for l := range levels {
		largest := o.largestFree(l)
		out.free[l] += largest * (to - from)
		out.leastFree[l] = min(out.leastFree[l], largest)
	}
}

// job is a number of equal pods that start together.
type job = shapes.Job

// jittered returns copies of the jobs in the order in which they come, each up to jitter seconds later.
func jittered(jobs []job, copies, jitter int, random *rand.Rand) []job {
	var out []job
	for range copies {
		for _, j := range jobs {
			j.Submit += random.IntN(jitter + 1)
			out = append(out, j)
		}
	}
	slices.SortStableFunc(out, func(a, b job) int { return cmp.Compare(a.Submit, b.Submit) })
	return out
}
