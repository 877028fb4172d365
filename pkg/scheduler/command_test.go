// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"
)

// The help begins with what the program is and how to configure it, in half a page, before the flags of the stock
// scheduler.
func TestHelpBeginsWithWhatTheProgramIs(t *testing.T) {
	t.Parallel()
	cmd := NewCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--help"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	intro, flags, found := strings.Cut(out.String(), "Usage:")
	if !found || !strings.Contains(flags, "--leader-elect ") {
		t.Fatalf("the flags do not follow:\n%s", out.String())
	}
	for _, words := range []string{"schedulerName", "pod-group-name", "--config", "GangGate", "GangAdmission", "docs/configuration.md#arguments-of-gangadmission"} {
		if !strings.Contains(intro, words) {
			t.Errorf("the help does not begin with %q:\n%s", words, intro)
		}
	}
	if lines := strings.Count(intro, "\n"); lines < 15 || lines > 35 {
		t.Errorf("%d lines before the flags, want about half a page:\n%s", lines, intro)
	}
	for line := range strings.Lines(intro) {
		if len(line) > 121 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
}

// What the help points to is there.
func TestHelpPointsToTheArguments(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n### Arguments of GangAdmission\n")
	if !found {
		t.Fatal("docs/configuration.md has no section Arguments of GangAdmission")
	}
	for _, argument := range regexp.MustCompile(`such as (\w+),\s+(\w+) and (\w+)`).FindStringSubmatch(long)[1:] {
		if !strings.Contains(section, "| `"+argument+"` |") {
			t.Errorf("argument %s is not in the section", argument)
		}
	}
}

func TestLogFormats(t *testing.T) {
	t.Parallel()
	if usage := NewCommand().Flags().Lookup("logging-format").Usage; !strings.Contains(usage, `"json"`) || !strings.Contains(usage, `"text"`) {
		t.Errorf("--logging-format: %s", usage)
	}
	c := logsapi.NewLoggingConfiguration()
	c.Format = logsapi.JSONLogFormat
	if err := logsapi.Validate(c, nil, nil); len(err) > 0 {
		t.Errorf("format json: %v", err)
	}
}

// TestStartWithGatesOfOtherGangs: the command says it before it looks for a cluster, also when all gates that are alpha
// are turned on.
func TestStartWithGatesOfOtherGangs(t *testing.T) { // gates are those of the process
	cmd := NewCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--feature-gates", "AllAlpha=true"})
	if err := cmd.Execute(); err == nil || !strings.HasPrefix(err.Error(), "feature gates GenericWorkload, GangScheduling, ") {
		t.Error(err)
	}
}
