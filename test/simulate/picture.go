// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math"
)

// colors are those of the policies, also for those who see few colors.
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// Sizes of a picture, in its units.
const (
	width, height     = 960, 360
	left, top, bottom = 50, 40, 310
	useRight          = 500
	waitLeft          = 570
	waitRight         = width - 20
	leastWait         = 1.0 // seconds, at the bottom
)

// picture returns an SVG of the runs of one setting: the GPUs in use over time, and how long jobs wait by size.
func picture(runs []*figures) []byte {
	var b bytes.Buffer
	line := func(x1, y1, x2, y2 float64, color string, thick float64) {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"/>`+"\n", x1, y1, x2, y2, color, thick)
	}
	text := func(x, y float64, anchor, format string, args ...any) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	f := runs[0]
	text(left, 20, "start", "%s at load %g, %d GPUs: GPUs in use, %%", f.Setting, f.Load, f.GPUs)
	text(waitLeft, 20, "start", "wait by GPUs of the job: p50 to max, p90 and p99 marked")

	last := 0
	for _, f := range runs {
		last = max(last, len(f.use))
	}
	at := func(percent float64) float64 { return bottom - (bottom-top)*percent/100 }
	for percent := 0.0; percent <= 100; percent += 25 {
		line(left, at(percent), useRight, at(percent), "#dddddd", 1)
		text(left-6, at(percent)+4, "end", "%g", percent)
	}
	for part := range 5 {
		x := left + (useRight-left)*float64(part)/4
		text(x, bottom+16, "middle", "%s", span(float64(last)*f.slot*float64(part)/4))
	}
	for i, f := range runs {
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.2" points="`, colors[i%len(colors)])
		for k, used := range f.use {
			fmt.Fprintf(&b, "%.1f,%.1f ", left+(useRight-left)*(float64(k)+0.5)/float64(last), at(100*used/(f.slot*float64(f.GPUs))))
		}
		b.WriteString(`"/>` + "\n")
		x := left + 110*float64(i)
		line(x, height-14, x+16, height-14, colors[i%len(colors)], 3)
		text(x+20, height-10, "start", "%s", f.Policy)
	}

	most := leastWait
	for _, f := range runs {
		for _, c := range f.Classes {
			most = max(most, c.Max)
		}
	}
	decades := math.Ceil(math.Log10(most/leastWait) + 1e-9)
	of := func(wait float64) float64 {
		return bottom - (bottom-top)*math.Log10(max(wait, leastWait)/leastWait)/max(1, decades)
	}
	for k := 0.0; k <= decades; k++ {
		wait := leastWait * math.Pow(10, k)
		line(waitLeft, of(wait), waitRight, of(wait), "#dddddd", 1)
		text(waitLeft-6, of(wait)+4, "end", "%s", span(wait))
	}
	for k, c := range f.Classes {
		each := float64(waitRight-waitLeft) / float64(len(f.Classes))
		middle := waitLeft + each*(float64(k)+0.5)
		text(middle, bottom+16, "middle", "%s", c.Name)
		for i, f := range runs {
			c, x, color := f.Classes[k], middle+(float64(i)-float64(len(runs)-1)/2)*min(16, each/float64(len(runs)+1)), colors[i%len(colors)]
			line(x, of(c.P50), x, of(c.Max), color, 2)
			line(x-5, of(c.P90), x+5, of(c.P90), color, 2)
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x, of(c.P99), color)
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
