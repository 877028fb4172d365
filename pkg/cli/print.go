// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
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
	if !o.Colour || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// printable returns a text in which each character that would move the cursor, change colours or the direction of
// writing is replaced: names and messages of a cluster or of a file must not rule the terminal. Breaks of lines and
// tabs become blanks.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return utf8.RuneError
	}, text)
}

// printableRows returns the rows of a table with printable cells.
func printableRows(rows [][]string) [][]string {
	clean := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			clean[i] = append(clean[i], printable(cell))
		}
	}
	return clean
}

// complain writes a line about an error or a warning. The breaks of lines within it stay.
func (s Streams) complain(what, text string) {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	fmt.Fprintln(s.Err, what+": "+strings.Join(lines, "\n"))
}

// wrap divides a text into lines of at most width characters, at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(printable(text)) {
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
			fmt.Fprintf(w, "%-*s%s\n", labelWidth, label, printable(paragraph))
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

// minLastColumn is the width of the last column below which a table is folded.
const minLastColumn = 16

// table prints rows in columns that are as wide as their longest cell, without blanks at the ends of lines. The last
// column is shortened to the width. If that leaves too little of it, each row is a paragraph: the first cell, and below
// it the others, after the names of their columns.
func (o *options) table(w io.Writer, rows [][]string) { o.paintedTable(w, rows, 0, nil) }

// paintedTable is table, with what paint makes of the cells of a column, unless the table is folded; nil: of none.
func (o *options) paintedTable(w io.Writer, rows [][]string, column int, paint func(cell string) string) {
	rows = printableRows(rows)
	used, last := 0, 0
	for _, width := range columnWidths(rows) {
		if width > 0 {
			used, last = used+width+2, width
		}
	}
	if used-2-max(0, last-minLastColumn) > o.width() {
		o.foldedTable(w, rows)
		return
	}
	lines := alignedRows(rows)
	for i := range lines {
		lines[i] = message.Truncate(lines[i], o.width())
	}
	if paint != nil {
		paintColumn(lines, rows, column, paint)
	}
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
}

// paintColumn replaces the cells of a column, but for its header, by what paint makes of them. lines are the aligned
// rows; a cell that was shortened stays as it is.
func paintColumn(lines []string, rows [][]string, column int, paint func(cell string) string) {
	at := 0
	for _, width := range columnWidths(rows)[:column] {
		if width > 0 {
			at += width + 2
		}
	}
	for i := 1; i < len(lines); i++ {
		line, cell := []rune(lines[i]), rows[i][column]
		if end := at + utf8.RuneCountInString(cell); end <= len(line) && string(line[at:end]) == cell {
			lines[i] = string(line[:at]) + paint(cell) + string(line[end:])
		}
	}
}

// columnWidths returns the widths of columns; 0: only the header has a cell there.
func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for i := range widths {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "" }) {
			widths[i] = 0
		}
	}
	return widths
}

// alignedRows returns the lines of rows, without columns of which only the header has a cell.
func alignedRows(rows [][]string) []string {
	widths := columnWidths(rows)
	lines := make([]string, len(rows))
	for n, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if widths[i] > 0 {
				line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		lines[n] = strings.TrimRight(line.String(), " ")
	}
	return lines
}

// foldedTable prints rows as paragraphs.
func (o *options) foldedTable(w io.Writer, rows [][]string) {
	for _, row := range rows[1:] {
		first, rest := "", []string{}
		for i, cell := range row {
			switch {
			case cell == "":
			case first == "":
				first = cell
			case rows[0][i] == "":
				rest = append(rest, cell)
			default:
				rest = append(rest, strings.ToLower(rows[0][i])+" "+cell)
			}
		}
		fmt.Fprintln(w, message.Truncate(first, o.width()))
		for _, line := range wrap(strings.Join(rest, ", "), o.width()-2) {
			fmt.Fprintln(w, strings.TrimRight("  "+line, " "))
		}
	}
}

// age is how long ago something was, as kubectl writes it: "45s", "12m", "5h10m", "3d". "": the time is not known.
func age(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(since)))
}
