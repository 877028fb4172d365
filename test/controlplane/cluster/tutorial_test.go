// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const repository = "../../.."

// command is a line of a shell block, with the output that the document shows for it.
type command struct {
	line   string
	output []string // nil: none is shown
}

// commandsOf returns the lines of the shell blocks of a section of a document. A block without a language shows the
// output of the last line before it.
func commandsOf(t *testing.T, document, heading string) []command {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, document))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(content), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", document, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []command
	language, inside := "", false
	for line := range strings.Lines(section) {
		line = strings.TrimSuffix(line, "\n")
		switch mark, isFence := strings.CutPrefix(line, "```"); {
		case isFence && !inside:
			language, inside = mark, true
		case isFence:
			inside = false
		case inside && language == "sh":
			commands = append(commands, command{line: line})
		case inside && language == "" && len(commands) > 0:
			last := &commands[len(commands)-1]
			last.output = append(last.output, line)
		}
	}
	return commands
}

// The commands of the tutorial work, and print the output that it shows.
func TestYourFirstGang(t *testing.T) {
	commands := commandsOf(t, "docs/tutorial.md", "Your first gang")
	dir := filepath.Join(t.TempDir(), "cluster")
	t.Cleanup(func() { _ = down(context.Background(), dir) })
	var env []string
	shell := func(line string) (string, error) {
		c := exec.CommandContext(t.Context(), "sh", "-c", line)
		c.Dir, c.Env = repository, append(os.Environ(), env...)
		output, err := c.CombinedOutput()
		return string(output), err
	}
	run := map[string]func(args []string) error{
		"make cluster-up": func(args []string) error {
			flags := []string{"up", "-dir", dir}
			for _, arg := range args {
				name, value, _ := strings.Cut(arg, "=")
				flags = append(flags, "-"+strings.ToLower(name), value)
			}
			return run(t.Context(), flags)
		},
		"make cluster-down": func([]string) error { return run(t.Context(), []string{"down", "-dir", dir}) },
		"export KUBECONFIG=$PWD/.muster/kubeconfig": func([]string) error {
			env = append(env, "KUBECONFIG="+filepath.Join(dir, "kubeconfig"))
			return nil
		},
	}
	done := map[string]bool{}
next:
	for _, c := range commands {
		began := time.Now()
		for start, do := range run {
			if args, is := strings.CutPrefix(c.line, start); is {
				if err := do(strings.Fields(args)); err != nil {
					t.Fatalf("%s: %v", c.line, err)
				}
				done[start] = true
				continue next
			}
		}
		// Output that is shown may take a moment to appear, and then stays: a reader is slower than this test. A
		// command without output has to succeed.
		var appeared time.Time
		for {
			output, err := shell(c.line)
			var exit *exec.ExitError
			waits := strings.HasPrefix(c.line, "bin/kubectl-muster why ") && errors.As(err, &exit) && exit.ExitCode() == 2
			if err != nil && !waits {
				t.Fatalf("%s: %v\n%s", c.line, err, output)
			}
			if c.output == nil {
				break
			}
			diff := cmp.Diff(comparable(c.output), comparable(elided(strings.Split(strings.TrimSuffix(output, "\n"), "\n"), c.output)))
			if diff != "" {
				appeared = time.Time{}
			} else if appeared.IsZero() {
				appeared = time.Now()
			} else if time.Since(appeared) > 2*time.Second {
				break
			}
			if time.Since(began) > 30*time.Second {
				t.Fatalf("%s (-tutorial +got):\n%s\n%s", c.line, diff, output)
			}
		}
		t.Logf("%5.1f s  %s", time.Since(began).Seconds(), c.line)
	}
	for start := range run {
		if !done[start] {
			t.Errorf("%q is not among the commands: %q", start, commands)
		}
	}
}

// elided shortens the lines whose counterpart in shown ends with "...".
func elided(lines, shown []string) []string {
	lines = slices.Clone(lines)
	for i := range min(len(lines), len(shown)) {
		if start, is := strings.CutSuffix(shown[i], "..."); is && strings.HasPrefix(lines[i], start) {
			lines[i] = shown[i]
		}
	}
	return lines
}

// comparable returns the words of each line without the last column of tables that end with AGE, or the last two with
// SINCE.
func comparable(lines []string) []string {
	var out []string
	aged := 0
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) == 0 {
			aged = 0
		} else if words[len(words)-1] == "AGE" {
			aged = 1
			if len(words) > 1 && words[len(words)-2] == "SINCE" {
				aged = 2
			}
		} else {
			words = words[:max(0, len(words)-aged)]
		}
		out = append(out, fmt.Sprint(words))
	}
	return out
}
