// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// markdown returns a table for each shape of the runs, for the documentation: a row for each variant and figure, a column
// for each contestant, medians with their ranges; see alike.
func markdown(runs []line) string {
	var b strings.Builder
	for _, s := range allShapes {
		of := alike(runs, s.name)
		if len(of) == 0 {
			continue
		}
		variants, byEntry := entries(of)
		columns := slices.DeleteFunc(slices.Clone(contestNames), func(name string) bool {
			return !slices.ContainsFunc(of, func(r line) bool { return r.Contestant == name })
		})
		fmt.Fprintf(&b, "**%s**, %s, %d nodes, %d CPUs, %s:\n\n", s.name, days(of), of[0].Nodes, of[0].CPUs, rounds(of))
		fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
		for _, variant := range variants {
			for _, k := range allKinds {
				row, some := "", false
				for _, name := range columns {
					one, ok := barOf(byEntry[entry{variant, name}], k)
					cell := spread(k.format, one.values)
					if ok && len(one.values) == 0 {
						cell = "did not finish"
					}
					some = some || len(one.values) > 0
					row += " " + cell + " |"
				}
				if some {
					fmt.Fprintf(&b, "| %s |%s\n", strings.TrimSpace(variant+" "+k.title), row)
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// entries returns the variants in the order of their first runs, and the runs of each contestant in each.
func entries(runs []line) (variants []string, byEntry map[entry][]line) {
	byEntry = map[entry][]line{}
	for _, r := range runs {
		if !slices.Contains(variants, r.Variant) {
			variants = append(variants, r.Variant)
		}
		e := entry{r.Variant, r.Contestant}
		byEntry[e] = append(byEntry[e], r)
	}
	return variants, byEntry
}

// days returns the day of the runs, or the first and the last.
func days(runs []line) string {
	byTime := func(a, b line) int { return a.Time.Compare(b.Time) }
	first, last := slices.MinFunc(runs, byTime).Time.Format(time.DateOnly), slices.MaxFunc(runs, byTime).Time.Format(time.DateOnly)
	if first == last {
		return first
	}
	return first + " to " + last
}

// rounds returns how many rounds were run.
func rounds(runs []line) string {
	n := 0
	for _, r := range runs {
		n = max(n, r.Round)
	}
	if n == 1 {
		return "one round"
	}
	return fmt.Sprintf("%d rounds", n)
}
