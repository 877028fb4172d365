// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readLines returns the lines of results.jsonl in a directory.
func readLines(dir string) ([]line, error) {
	file, err := os.Open(filepath.Join(dir, "results.jsonl"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []line
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var one line
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file.Name(), len(all)+1, err)
		}
		all = append(all, one)
	}
	return all, scanner.Err()
}

// panels returns the plots of the runs: for every shape the figures that have targets, with a bar for each variant and
// contestant; see alike.
func panels(runs []line) []panel {
	var all []panel
	for _, s := range allShapes {
		variants, byEntry := entries(alike(runs, s.name))
		for _, k := range s.plotted() {
			p := panel{title: s.name + ": " + k.title}
			for _, variant := range variants {
				for _, name := range contestNames {
					if one, ok := barOf(byEntry[entry{variant, name}], k); ok {
						one.label, one.class = strings.TrimSpace(variant+" "+name), name
						p.bars = append(p.bars, one)
					}
				}
			}
			all = append(all, p)
		}
	}
	return all
}

// alike returns the runs of a shape that have the numbers of its last run: as many nodes, gangs, pods and CPUs. Others cannot
// be compared with them.
func alike(runs []line, shape string) []line {
	var of []line
	for _, r := range slices.Backward(runs) {
		if r.Shape != shape {
			continue
		}
		if len(of) == 0 || r.CPUs == of[0].CPUs && r.Nodes == of[0].Nodes && r.GPUs == of[0].GPUs && r.Gangs == of[0].Gangs && r.Pods == of[0].Pods {
			of = append(of, r)
		}
	}
	slices.Reverse(of)
	return of
}

// barOf returns the bar of one contestant, false if it has no such figure. Without values it did not finish.
func barOf(runs []line, k kind) (one bar, ok bool) {
	for _, r := range runs {
		if value, measured := r.Figures[k.key]; measured {
			one.values, ok = append(one.values, value), true
		} else if r.Unfinished != "" {
			ok = true
		}
	}
	return one, ok
}

// plotted returns the kinds of the shape's targets.
func (s shape) plotted() []kind {
	var kinds []kind
	for _, t := range s.targets {
		if !slices.Contains(kinds, t.kind) {
			kinds = append(kinds, t.kind)
		}
	}
	return kinds
}

// writePicture writes results.svg next to the results.
func writePicture(dir string) error {
	runs, err := readLines(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "results.svg"), []byte(svg(panels(runs))), 0o644)
}
