// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// job is a number of equal pods that start together. Times are in seconds.
type job struct {
	submit, duration int
	pods, gpus       int // gpus of each pod
}

// parseStream reads a job stream: a header, then submit_s, duration_s, pods, gpus_per_pod.
func parseStream(data []byte) ([]job, error) {
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading a job stream: %w", err)
	}
	var jobs []job
	for _, row := range rows[1:] {
		var n [4]int
		for i := range n {
			if n[i], err = strconv.Atoi(row[i]); err != nil {
				return nil, fmt.Errorf("reading a job stream: %w", err)
			}
		}
		jobs = append(jobs, job{n[0], n[1], n[2], n[3]})
	}
	return jobs, nil
}

// jittered returns copies of the jobs in the order in which they come, each up to jitter seconds later.
func jittered(jobs []job, copies, jitter int, random *rand.Rand) []job {
	var out []job
	for range copies {
		for _, j := range jobs {
			j.submit += random.IntN(jitter + 1)
			out = append(out, j)
		}
	}
	slices.SortStableFunc(out, func(a, b job) int { return cmp.Compare(a.submit, b.submit) })
	return out
}
