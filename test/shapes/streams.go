// SPDX-License-Identifier: Apache-2.0

package shapes

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"path"
	"strconv"
)

// Job is a number of equal pods that start together. Times are in seconds.
type Job struct {
	Submit, Duration int
	Pods, GPUs       int // GPUs of each pod
}

// Stream returns the jobs of a file of testdata/streams, in the order in which they come.
func Stream(name string) ([]Job, error) {
	data, err := files.ReadFile(path.Join("testdata/streams", name+".csv"))
	if err != nil {
		return nil, err
	}
	jobs, err := ParseStream(data)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", name, err)
	}
	return jobs, nil
}

// ParseStream reads a job stream: a header, then submit_s, duration_s, pods, gpus_per_pod, and columns that are not
// read.
func ParseStream(data []byte) ([]Job, error) {
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading a job stream: %w", err)
	}
	var jobs []Job
	for i, row := range rows[min(1, len(rows)):] {
		var n [4]int
		if len(row) < len(n) {
			return nil, fmt.Errorf("reading a job stream: row %d has %d columns, want 4: submit_s, duration_s, pods, gpus_per_pod", i+1, len(row))
		}
		for k := range n {
			if n[k], err = strconv.Atoi(row[k]); err != nil {
				return nil, fmt.Errorf("reading a job stream: row %d: %w", i+1, err)
			}
		}
		if j := (Job{n[0], n[1], n[2], n[3]}); j.Submit < 0 || j.Duration <= 0 || j.Pods <= 0 || j.GPUs <= 0 {
			return nil, fmt.Errorf("reading a job stream: row %d: a job of %+v", i+1, j)
		} else if len(jobs) > 0 && j.Submit < jobs[len(jobs)-1].Submit {
			return nil, fmt.Errorf("reading a job stream: row %d comes before row %d", i+1, i)
		} else {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}
