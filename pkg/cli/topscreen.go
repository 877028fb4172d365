// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/muster-project/muster/pkg/message"
)

// topScreen is the full screen of top --watch: one of three lists, of which only the rows that are seen are made.
type topScreen struct {
	o             *options
	top           *Top // nil: nothing has been read yet
	lost          string
	width, height int
	list          int // of topLists
	offset        [3]int
	filter        string
	typing        bool // keys go into the filter
	rows          [3][]int
}

// topLists are the names of the lists: nodes, gangs that hold GPUs, gangs that wait.
var topLists = [3]string{"nodes", "holding", "waiting"}

// topScreen runs the screen until it is left.
func (o *options) topScreen(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	watcher, err := o.watch(ctx)
	if err != nil {
		cancel()
		return err
	}
	m, changes, failed := &topScreen{o: o}, make(chan func()), make(chan error, 1)
	go func() {
		failed <- o.onChanges(ctx, watcher, func(lost string) error {
			on, end := context.WithCancel(ctx)
			defer end()
			w, err := newWorld(on, watcher.Snapshot())
			if err != nil {
				return err
			}
			top := w.top()
			select {
			case changes <- func() { m.read(top, lost) }:
			case <-ctx.Done():
			}
			return nil
		})
		cancel()
	}()
	err = o.fullScreen(ctx, changes, m.draw, m.key)
	cancel()
	return errors.Join(err, <-failed)
}

// read takes new facts.
func (m *topScreen) read(top *Top, lost string) {
	m.top, m.lost = top, lost
	m.choose()
	m.scroll(0)
}

// draw returns the lines of a screen of the size.
func (m *topScreen) draw(width, height int) []string {
	m.width, m.height = width, height
	m.scroll(0)
	return m.lines()
}

// key obeys a key. It reports whether the screen is left.
func (m *topScreen) key(k key) (leave bool) {
	page := max(1, m.visible()-1)
	switch {
	case k.name == "ctrl+c":
		return true
	case m.typing:
		m.typeFilter(k)
		return false
	}
	switch cmp.Or(k.name, k.text) {
	case "q":
		return true
	case "esc":
		m.filter = ""
		m.choose()
	case "/":
		m.typing = true
	case "tab", "right", "l":
		m.list = (m.list + 1) % len(topLists)
	case "shift+tab", "left", "h":
		m.list = (m.list + len(topLists) - 1) % len(topLists)
	case "up", "k":
		m.scroll(-1)
	case "down", "j":
		m.scroll(1)
	case "pgup":
		m.scroll(-page)
	case "pgdown", " ":
		m.scroll(page)
	case "home", "g":
		m.scroll(-len(m.rows[m.list]))
	case "end", "G":
		m.scroll(len(m.rows[m.list]))
	}
	return false
}

func (m *topScreen) typeFilter(k key) {
	switch k.name {
	case "enter":
		m.typing = false
		return
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-size]
	default:
		m.filter += k.text
	}
	m.choose()
}

// choose finds the rows that the filter lets through: nodes by their names and by their gangs, and gangs.
func (m *topScreen) choose() {
	m.rows = [3][]int{}
	if m.top == nil {
		return
	}
	has := func(text string) bool { return m.filter == "" || strings.Contains(text, m.filter) }
	for i := range m.top.Nodes {
		if n := &m.top.Nodes[i]; has(n.Name) || has(n.Where) || slices.ContainsFunc(n.Gangs, has) {
			m.rows[0] = append(m.rows[0], i)
		}
	}
	for i := range m.top.Gangs {
		if has(m.top.Gangs[i].Gang) {
			m.rows[1] = append(m.rows[1], i)
		}
	}
	for i := range m.top.Waiting {
		if g := &m.top.Waiting[i]; has(g.Gang) || has(g.Reason) {
			m.rows[2] = append(m.rows[2], i)
		}
	}
}

// scroll moves the list by so many rows, as far as it goes.
func (m *topScreen) scroll(by int) {
	for i := range m.offset {
		if i == m.list {
			m.offset[i] += by
		}
		m.offset[i] = max(0, min(m.offset[i], len(m.rows[i])-m.visible()))
	}
}

// screenFrame is the number of lines around the rows: two of the head, that of the lists, that of the columns, and that
// of the keys.
const screenFrame = 5

// visible returns the number of rows that have room.
func (m *topScreen) visible() int {
	n := m.height - screenFrame
	if m.lost != "" {
		n--
	}
	return max(1, n)
}

// lines returns the screen; of one that is too low for its frame and a row, the last lines.
func (m *topScreen) lines() []string {
	if m.top == nil {
		return []string{"reading the cluster ..."}
	}
	var lines []string
	add := func(code, text string) {
		lines = append(lines, m.o.colour(code, message.Truncate(printable(text), m.width)))
	}
	if m.lost != "" {
		add(red, m.lost)
	}
	for _, line := range m.top.head() {
		add("", line)
	}
	var tabs []string
	for i, name := range topLists {
		tab := fmt.Sprintf("%s (%d)", name, len(m.rows[i]))
		if i == m.list {
			tab = "[" + tab + "]"
		}
		tabs = append(tabs, tab)
	}
	add(bold, strings.Join(tabs, "  "))
	from := m.offset[m.list]
	seen := m.rows[m.list][from:min(len(m.rows[m.list]), from+m.visible())]
	switch m.list {
	case 0:
		lines = append(lines, m.nodeLines(seen)...)
	case 1:
		rows := [][]string{{"", "HOLDS", "GPUS", "STATE"}}
		for _, i := range seen {
			rows = append(rows, m.top.Gangs[i].holdsRow())
		}
		lines = append(lines, m.columns(rows)...)
	case 2:
		rows := [][]string{{"WAITS", "GPUS", "SINCE", "REASON", "MESSAGE"}}
		for _, i := range seen {
			rows = append(rows, m.top.Waiting[i].waitsRow(m.top.Taken))
		}
		lines = append(lines, m.columns(rows)...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	keys := "q leave  / filter  tab other list  arrows, page up and down scroll"
	if m.typing || m.filter != "" {
		keys = "filter: " + m.filter
		if m.typing {
			keys += "_  (enter keeps it, esc ends it)"
		}
	}
	add("", keys)
	return lines[max(0, len(lines)-m.height):]
}

// columns returns rows as lines.
func (m *topScreen) columns(rows [][]string) []string {
	lines := alignedRows(printableRows(rows))
	for i := range lines {
		lines[i] = message.Truncate(lines[i], m.width)
	}
	return lines
}

// nodeLines returns the rows of nodes; the cells have colours.
func (m *topScreen) nodeLines(seen []int) []string {
	rows := [][]string{{"NODE", "WHERE", "STATE", "GPUS"}}
	for _, i := range seen {
		n := &m.top.Nodes[i]
		rows = append(rows, []string{n.Name, n.Where, n.State, n.Cells})
	}
	lines := m.columns(rows)
	paintColumn(lines, printableRows(rows), 3, m.o.colourCells)
	return lines
}
