// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// bar is one bar of a plot: the median of some values, and their range as a whisker.
type bar struct {
	label  string
	class  string // of the colour: the contestant
	values []float64
}

// panel is one plot: bars from 0, one below the other.
type panel struct {
	title string // the figure, with its unit
	bars  []bar
}

// Sizes of a plot, in pixels.
const (
	plotWidth  = 860
	labelWidth = 230
	valueWidth = 170 // behind the longest bar
	barHeight  = 16
	barGap     = 5
	titleSpace = 34
	panelGap   = 18
)

// colours of the contestants; distinguishable in grey too.
var colours = map[string]string{
	muster: "#1b6ca8", musterBefore: "#8fbbd9", coscheduling: "#c8553d", stock: "#8a8f98", stockDefault: "#b9bec6", floor: "#4a9d5f",
}

// svg returns the panels below each other as a picture. Text is set in the reader's sans-serif font; no other file is
// loaded.
func svg(panels []panel) string {
	panels = slices.DeleteFunc(slices.Clone(panels), func(p panel) bool { return len(p.bars) == 0 })
	height := panelGap
	for _, p := range panels {
		height += p.height() + panelGap
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, height, plotWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", plotWidth, height)
	top := panelGap
	for _, p := range panels {
		p.draw(&b, top)
		top += p.height() + panelGap
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p panel) height() int { return titleSpace + len(p.bars)*(barHeight+barGap) }

func (p panel) draw(b *strings.Builder, top int) {
	most := 0.0
	for _, one := range p.bars {
		most = max(most, slices.Max(append([]float64{0}, one.values...)))
	}
	if most == 0 {
		most = 1
	}
	x := func(value float64) float64 {
		return labelWidth + value/most*(plotWidth-labelWidth-valueWidth)
	}
	fmt.Fprintf(b, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", top+16, html.EscapeString(p.title))
	for i, one := range p.bars {
		y := top + titleSpace + i*(barHeight+barGap)
		middle := float64(y) + barHeight/2.0
		fmt.Fprintf(b, `<text x="%d" y="%.0f" text-anchor="end">%s</text>`+"\n", labelWidth-8, middle+4, html.EscapeString(one.label))
		if len(one.values) == 0 {
			fmt.Fprintf(b, `<text x="%d" y="%.0f" fill="#a00000">did not finish</text>`+"\n", labelWidth+4, middle+4)
			continue
		}
		median, least, longest := quantile(one.values, 0.5), slices.Min(one.values), slices.Max(one.values)
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", labelWidth, y, max(1, x(median)-labelWidth), barHeight, colours[one.class])
		if longest > least {
			fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8" stroke="#202020" fill="none"/>`+"\n",
				x(least), middle, x(longest), x(least), middle-4, x(longest), middle-4)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.0f">%s</text>`+"\n", x(longest)+6, middle+4, html.EscapeString(spread(precision(median), one.values)))
	}
}

// precision returns a format with about three digits.
func precision(value float64) string {
	if value <= 0 {
		return "%.0f"
	}
	return fmt.Sprintf("%%.%df", min(2, max(0, 2-int(math.Floor(math.Log10(value))))))
}
