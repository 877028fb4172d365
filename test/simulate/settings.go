// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/muster-project/muster/test/shapes"
)

// job is a job of a stream, with times in seconds from its first job on.
type job struct {
	submit, duration float64
	pods, gpus       int // gpus of each pod
}

// size returns the GPUs of the job.
func (j job) size() int { return j.pods * j.gpus }

const (
	gpusPerNode = 8
	day         = 24 * 3600
)

// setting is a job stream, and the cluster that it is played on.
type setting struct {
	name  string
	nodes int
	read  func() ([]job, error)
}

// settings are the streams, on clusters of the size of their source: Venus had 133 nodes, Kalos 302; of ITP only the
// most GPUs that were in use at a time are known.
var settings = []setting{
	{"burst", 32, from("knavigator-gang-53")},
	{"helios-gangs-24h", 133, from("helios-venus-gangs-24h")},
	{"helios-7d", 133, from("helios-venus-7d")},
	{"helios-20d", 133, from("helios-venus-20d")},
	{"itp-7d", 138, func() ([]job, error) { return over("itp-c04-7d", "gang-64-every-2h", 0, day, 7) }},
	// The week of Kalos with the most jobs, among them such of 1,024 GPUs.
	{"kalos-philly-7d", 302, func() ([]job, error) { return over("philly-7d", "kalos-large", 42*day, 7*day, 1) }},
}

// from returns a function that reads a stream.
func from(name string) func() ([]job, error) {
	return func() ([]job, error) { return over(name, "", 0, 0, 0) }
}

// over returns a stream over which a part of another one is laid, repeated so many times.
func over(name, other string, offset, length, times int) ([]job, error) {
	list, err := shapes.Stream(name)
	if err != nil {
		return nil, err
	}
	jobs := jobsOf(list)
	if times == 0 {
		return jobs, nil
	}
	if list, err = shapes.Stream(other); err != nil {
		return nil, err
	}
	for k := range times {
		for _, j := range jobsOf(list) {
			if j.submit -= float64(offset); j.submit >= 0 && j.submit < float64(length) {
				j.submit += float64(k * length)
				jobs = append(jobs, j)
			}
		}
	}
	sortJobs(jobs)
	return jobs, nil
}

// file returns a setting of a stream in a file, in the format of test/shapes/testdata/streams.
func file(path string, nodes int) setting {
	return setting{path, nodes, func() ([]job, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		list, err := shapes.ParseStream(data)
		return jobsOf(list), err
	}}
}

func jobsOf(list []shapes.Job) []job {
	jobs := make([]job, len(list))
	for i, j := range list {
		jobs[i] = job{float64(j.Submit), float64(j.Duration), j.Pods, j.GPUs}
	}
	return jobs
}

func sortJobs(jobs []job) {
	slices.SortStableFunc(jobs, func(a, b job) int {
		switch {
		case a.submit < b.submit:
			return -1
		case a.submit > b.submit:
			return 1
		}
		return 0
	})
}

// atLoad returns the jobs with the times between them stretched or shortened so that they put the load on a cluster of
// so many GPUs: the part of the GPUs that is in use on average from the first job to the last one, if each begins when
// it comes. Jobs that all come at once stay as they are.
func atLoad(jobs []job, load float64, gpus int) ([]job, error) {
	if len(jobs) == 0 {
		return nil, fmt.Errorf("the stream has no jobs")
	}
	first := jobs[0].submit
	stretched := func(by float64) []job {
		out := slices.Clone(jobs)
		for i := range out {
			out[i].submit = (out[i].submit - first) * by
		}
		return out
	}
	if jobs[len(jobs)-1].submit == first {
		return stretched(1), nil
	}
	low, high := 1e-3, 1e3
	for range 50 {
		middle := (low + high) / 2
		if loadOf(stretched(middle), gpus) > load {
			low = middle
		} else {
			high = middle
		}
	}
	return stretched(high), nil
}

// loadOf returns the load that jobs put on so many GPUs (atLoad).
func loadOf(jobs []job, gpus int) float64 {
	end, used := jobs[len(jobs)-1].submit, 0.0
	for _, j := range jobs {
		used += float64(j.size()) * min(j.duration, end-j.submit)
	}
	return used / (end * float64(gpus))
}

// lowerBound returns the time at which the last job ends at the earliest, in seconds: none begins before it comes, and
// what comes from any moment on needs the GPUs.
func lowerBound(jobs []job, gpus int) float64 {
	bound, work := 0.0, 0.0
	for _, j := range slices.Backward(jobs) {
		work += float64(j.size()) * j.duration
		bound = max(bound, j.submit+j.duration, j.submit+work/float64(gpus))
	}
	return bound
}
