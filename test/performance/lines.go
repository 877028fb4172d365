// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// line is one run as a line of JSON.
type line struct {
	Time       time.Time          `json:"time"`
	Shape      string             `json:"shape"`
	Variant    string             `json:"variant,omitempty"`
	Contestant string             `json:"contestant"`
	Round      int                `json:"round"` // from 1
	CPUs       int                `json:"cpus"`
	Load       string             `json:"loadAverageBefore,omitempty"`
	Nodes      int                `json:"nodes"`
	GPUs       int                `json:"gpusPerNode"`
	Gangs      int                `json:"gangs"`
	Pods       int                `json:"podsPerGang"`
	Unfinished string             `json:"unfinished,omitempty"` // the reason why the run did not finish
	Figures    map[string]float64 `json:"figures"`              // by key, which ends in the unit
}

// lines appends runs to a file. Without a directory for results it does nothing.
type lines struct {
	p    plan
	path string
	now  func() time.Time
}

func newLines(p plan) lines {
	l := lines{p: p, now: time.Now}
	if p.o.out != "" {
		l.path = filepath.Join(p.o.out, "results.jsonl")
	}
	return l
}

func (l lines) write(v variant, contestant string, round int, r outcome) error {
	if l.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	return json.NewEncoder(file).Encode(l.line(v, contestant, round, r))
}

func (l lines) line(v variant, contestant string, round int, r outcome) line {
	o := l.p.o
	one := line{
		Time: l.now().UTC().Truncate(time.Second), Shape: l.p.shape.name, Variant: v.String(), Contestant: contestant, Round: round + 1,
		CPUs: runtime.NumCPU(), Load: r.load, Nodes: o.nodes, GPUs: o.gpus, Gangs: o.gangs, Pods: o.podsPerGang,
		Unfinished: r.unfinished, Figures: map[string]float64{},
	}
	for _, f := range r.figures {
		one.Figures[f.kind.key] = f.value
	}
	return one
}
