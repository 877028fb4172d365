// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/muster-project/muster/pkg/message"
)

// press sends keys to a screen, as a terminal does.
func press(t testing.TB, m *topScreen, keys string) (left bool) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(keys))
	for {
		k, err := readKey(in)
		if errors.Is(err, io.EOF) {
			return left
		}
		if err != nil {
			t.Fatal(err)
		}
		left = m.key(k)
	}
}

// largeTop is a cluster of 5,000 nodes, on each of which a gang of its own runs.
func largeTop() *Top {
	t := &Top{GPUs: 40_000, Used: 35_000, Free: 5000, Fits: map[string]int64{"1": 5000}, Taken: taken}
	for i := range 5000 {
		gang := fmt.Sprintf("ml/run-%04d", i)
		t.Nodes = append(t.Nodes, TopNode{Name: fmt.Sprintf("node-%04d", i), GPUs: 8, Cells: "AAAAAAA.", Gangs: []string{gang}})
		t.Gangs = append(t.Gangs, TopGang{Letter: "A", Gang: gang, GPUs: 7, HeldGPUs: 7})
	}
	t.Waiting = []TopGang{{Gang: "ml/big", GPUs: 64, Reason: "InsufficientGPUs", Message: "0 are free", Since: taken.Add(-time.Hour)}}
	return t
}

func TestTopScreen(t *testing.T) {
	t.Parallel()
	m := &topScreen{o: &options{}}
	if got := strings.Join(m.draw(60, 15), "\n"); got != "reading the cluster ..." {
		t.Errorf("before anything was read: %s", got)
	}
	m.read(largeTop(), "")
	check := func(what string, has, hasNot []string) {
		t.Helper()
		lines := m.draw(60, 15)
		text := strings.Join(lines, "\n")
		if len(lines) != 15 {
			t.Errorf("%s: %d lines", what, len(lines))
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > 60 {
				t.Errorf("%s: a line of %d columns: %s", what, utf8.RuneCountInString(line), line)
			}
		}
		for _, want := range has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", what, want, text)
			}
		}
		for _, not := range hasNot {
			if strings.Contains(text, not) {
				t.Errorf("%s: %q in\n%s", what, not, text)
			}
		}
	}
	check("at first", []string{"GPUs 40000: 35000 used", "[nodes (5000)]", "node-0000", "node-0009", "AAAAAAA."}, []string{"node-0010"})
	press(t, m, "\x1b[B\x1b[6~")
	check("further down", []string{"node-0010", "node-0019"}, []string{"node-0009", "node-0020"})
	press(t, m, "\x1bOF")
	check("at the end", []string{"node-4999"}, []string{"node-4989"})
	press(t, m, "j\x1b[5~\x1b[1~")
	check("at the beginning again", []string{"node-0000"}, nil)
	press(t, m, "/run-04321\x7f\x7f\x7f")
	check("while a filter is written", []string{"[nodes (100)]", "node-0400", "filter: run-04_"}, []string{"node-0000"})
	press(t, m, "\r\t")
	check("the gangs that hold", []string{"[holding (100)]", "ml/run-0400", "filter: run-04"}, nil)
	press(t, m, "\t\x1b")
	check("the gangs that wait", []string{"[waiting (1)]", "ml/big", "InsufficientGPUs", "q leave"}, nil)
	m.read(largeTop(), "The API server has not answered since 10:00:00")
	check("when the API server is lost", []string{"The API server has not answered", "ml/big"}, nil)
	hostile := largeTop()
	hostile.Waiting[0].Message = "\x1b[2J\x1b]0;title\a\u202etxt\n\u009b7m" + hostile.Waiting[0].Message
	m.read(hostile, "")
	check("with characters that rule terminals", []string{"ml/big", "\ufffd[2J\ufffd]0;title\ufffd\ufffdtxt "}, []string{"\x1b", "\a", "\u009b", "\u202e"})
	for height := 1; height < 9; height++ {
		if lines := m.draw(60, height); len(lines) != height || !strings.Contains(lines[height-1], "q leave") || height > 1 && !strings.Contains(lines[max(0, height-2)]+lines[max(0, height-3)]+lines[max(0, height-4)], "ml/big") {
			t.Errorf("%d lines on a screen of %d:\n%s", len(lines), height, strings.Join(lines, "\n"))
		}
	}
	m.draw(60, 15)
	m.read(&Top{Fits: map[string]int64{}}, "")
	check("when everything is gone", []string{"[waiting (0)]"}, nil)
	if press(t, m, "x\x1b[24~\x01") || !press(t, m, "q") || !press(t, m, "/\x03") {
		t.Error("the screen is not left by q alone")
	}
	m.o.Colour = true
	m.list = 0
	m.read(largeTop(), "")
	if text := strings.Join(m.lines(), "\n"); !strings.Contains(text, "\x1b[36mAAAAAAA\x1b[0m.") {
		t.Errorf("the cells of a gang have no colour: %q", text)
	}
}

// Cells have colours on a terminal, behind names that have the same letters, and in a folded table none.
func TestColoursOfCells(t *testing.T) {
	t.Parallel()
	top := &Top{Fits: map[string]int64{}, Nodes: []TopNode{{Name: "AAB", Cells: "AAB.o"}, {Name: "oo", Cells: "oo", State: "cordoned"}, {Name: "AA", Cells: "AA", State: "not ready"}}}
	for width, want := range map[int]string{
		80: "AAB   \x1b[36mAA\x1b[0m\x1b[35mB\x1b[0m.o\noo    oo     cordoned\nAA    \x1b[36mAA\x1b[0m     not ready\n", 12: "AAB\n  gpus AAB.o\n",
	} {
		var out strings.Builder
		o := &options{Streams: Streams{Width: width, Colour: true}}
		if width < 40 {
			top.Nodes[0].Name = strings.Repeat("AAB", 20)
			want = strings.Replace(want, "AAB\n", message.Truncate(top.Nodes[0].Name, 40)+"\n", 1)
		}
		o.printTop(&out, top, 0)
		if !strings.Contains(out.String(), want) {
			t.Errorf("width %d: %q\nwant %q", width, out.String(), want)
		}
		top.Nodes[0].Name = "AAB"
	}
}

// BenchmarkTopScreen draws a screen of a large cluster.
func BenchmarkTopScreen(b *testing.B) {
	m := &topScreen{o: &options{Streams: Streams{Colour: true}}}
	m.read(largeTop(), "")
	for b.Loop() {
		press(b, m, "\x1b[6~")
		_ = screenOf(m.draw(120, 50))
	}
}
