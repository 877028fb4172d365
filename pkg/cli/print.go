// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/snapshot"
)

// typeMeta is the version of what is printed as JSON or YAML. Fields are not removed within a version.
type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

func metaOf(kind string) typeMeta { return typeMeta{snapshot.APIVersion, kind} }

// print writes the value as -o says, as text by the function.
func (o *options) print(value any, text func(w io.Writer)) error {
	switch o.output {
	case "":
		text(o.Out)
		return nil
	case "json":
		lines := json.NewEncoder(o.Out)
		lines.SetIndent("", "  ")
		return lines.Encode(value)
	case "yaml":
		data, err := yaml.Marshal(value)
		if err == nil {
			_, err = o.Out.Write(data)
		}
		return err
	}
	return fmt.Errorf("unknown output format %q: json or yaml", o.output)
}

// Colours of texts, whose meaning the words have too.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

func (o *options) colour(code, text string) string {
	if !o.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// wrap divides a text into lines of at most width characters, at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for utf8.RuneCountInString(word) > width { // longer than a line
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:width])), string(runes[width:])
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// labelWidth is the width of the labels at the left of a section.
const labelWidth = 8

// section prints paragraphs beside a label. Further lines of a paragraph have its indent and two more.
func (o *options) section(w io.Writer, label string, paragraphs ...string) {
	for _, paragraph := range paragraphs {
		text := strings.TrimLeft(paragraph, " ")
		if strings.HasPrefix(text, "kubectl ") { // to be copied
			fmt.Fprintf(w, "%-*s%s\n", labelWidth, label, paragraph)
			label = ""
			continue
		}
		indent := len(paragraph) - len(text)
		hang := indent
		if strings.HasPrefix(text, "- ") {
			hang += 2
		}
		for i, line := range wrap(text, o.width()-labelWidth-hang) {
			left := indent
			if i > 0 {
				left = hang
			}
			fmt.Fprintf(w, "%-*s%s%s\n", labelWidth, label, strings.Repeat(" ", left), line)
			label = ""
		}
	}
}

// clauses divides a message into its clauses. A separator in parentheses separates nothing.
func clauses(text string) []string {
	var all []string
	for text != "" {
		first := message.FirstClause(text)
		all = append(all, first)
		text = strings.TrimPrefix(strings.TrimPrefix(text, first), "; ")
	}
	return all
}

// table prints rows in columns that are as wide as their longest cell, without blanks at the ends of lines. The last
// column is shortened to the width.
func (o *options) table(w io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for i := len(widths) - 1; i >= 0; i-- { // columns without a value but in the header are left out
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return i < len(row) && row[i] != "" }) {
			widths[i] = 0
		}
	}
	for _, row := range rows {
		var line strings.Builder
		used := 0
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			if room := o.width() - used; i == len(row)-1 && room > 0 {
				cell = message.Truncate(cell, room)
			}
			line.WriteString(cell + strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell))+2))
			used += widths[i] + 2
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// age is how long ago something was: "45s", "12m", "5h10m", "3d". "": the time is not known.
func age(since, now time.Time) string {
	switch d := now.Sub(since); {
	case since.IsZero():
		return ""
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(max(0, d).Seconds()))
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}
