// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
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

// TestMain runs the command instead of the tests if asked to: a process can run it once.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_COMMAND") == "" {
		os.Exit(m.Run())
	}
	cmd := NewCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestStartWithGangsOfKubernetes: the command says it before it looks for a cluster, if flags or the configuration
// bring the gangs of kube-scheduler. Feature gates in the file, where other components of Kubernetes have them, are an
// error.
func TestStartWithGangsOfKubernetes(t *testing.T) {
	t.Parallel()
	const (
		head   = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
		plugin = head + "profiles:\n- schedulerName: s\n  plugins: {%s: {enabled: [{name: GangScheduling}]}}\n"
	)
	for name, tc := range map[string]struct {
		flags, file string
		want        string
	}{
		"a gate":             {flags: "--feature-gates=GenericWorkload=true", want: "feature gates GenericWorkload bring"},
		"all gates":          {flags: "--feature-gates=AllAlpha=true,AllBeta=true", want: "CompositePodGroup=false,"},
		"all of them again":  {flags: "--feature-gates=AllAlpha=true,AllBeta=true", want: "InPlacePodVerticalScalingSchedulerPreemption brings"},
		"a dependant alone":  {flags: "--feature-gates=CompositePodGroup=true", want: "CompositePodGroup"},
		"a gate beside file": {flags: "--feature-gates=GenericWorkload=true", file: head, want: "feature gates GenericWorkload bring"},
		"gates in the file":  {file: head + "featureGates: {GenericWorkload: true}\n", want: `unknown field "featureGates"`},
		"a plugin":           {file: fmt.Sprintf(plugin, "multiPoint"), want: "profile s enables plugin GangScheduling,"},
		"a plugin at Permit": {file: fmt.Sprintf(plugin, "permit"), want: "profile s enables plugin GangScheduling,"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--master=https://127.0.0.1:1", "--secure-port=0"}
			if tc.flags != "" {
				args = append(args, tc.flags)
			}
			if tc.file != "" {
				file := filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(file, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config="+file)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
			cmd.Env = append(os.Environ(), "RUN_COMMAND=yes")
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), tc.want) {
				t.Errorf("%v\n%s\nlacks %s", err, out, tc.want)
			}
		})
	}
}

// TestStartsAgainWithoutAGate: an API server that did not answer at the start does not serve what a feature gate needs.
// The process ends, and says why; the next one turns the gate off.
func TestStartsAgainWithoutAGate(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz":
		case r.URL.Path == "/apis/resource.k8s.io/v1" && asked.Add(1) == 1:
			http.Error(w, "starting", http.StatusInternalServerError)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--master="+server.URL, "--secure-port=0")
	cmd.Env = append(os.Environ(), "RUN_COMMAND=yes")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v, want the exit code 1", err)
	}
	if want := `starting again without it" gate="DRADeviceTaintRules"`; !strings.Contains(string(out), want) || asked.Load() != 2 {
		t.Errorf("asked %d times, want 2, and\n%s\nlacks %s", asked.Load(), out, want)
	}
}
