// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-project/muster/pkg/snapshot"
	"github.com/muster-project/muster/test/wrappers"
)

// The guide has every command and every flag of its own, and its screens, and that of README, are those of the golden
// files.
func TestGuide(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(data)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	check := func(cmd *cobra.Command) {
		if !strings.Contains(guide, "\n## "+cmd.Name()+"\n") {
			t.Errorf("docs/cli.md has no section about %s", cmd.Name())
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(guide, "--"+f.Name) && !strings.Contains(guide, " -"+f.Shorthand+" ") {
				t.Errorf("docs/cli.md does not name --%s of %s", f.Name, cmd.Name())
			}
		})
	}
	for _, cmd := range NewCommand("kubectl-muster", Streams{}).Commands() {
		check(cmd)
	}
	for _, name := range []string{"cordoned-why-mid-80", "topology-tree-chat-80", "cordoned-top-80"} {
		screen, err := os.ReadFile("testdata/" + name + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(guide, "```\n"+string(screen)+"```") {
			t.Errorf("docs/cli.md has another screen than testdata/%s.golden", name)
		}
		if name == "cordoned-why-mid-80" && !strings.Contains(string(readme), "```sh\nkubectl muster why mid\n```\n\n```\n"+string(screen)+"```") {
			t.Errorf("README.md has another screen than testdata/%s.golden", name)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	file := scenes["cordoned"]().file(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown name, with what is similar":          {[]string{"why", "midd"}, "there is no PodGroup, and no owner of pods, midd in namespace ml; did you mean job/mid, podgroup/mid?"},
		"an unknown kind of a known name":                {[]string{"why", "pcs/mid"}, "there is no PodGroup, and no owner of pods, podcliqueset/mid in namespace ml; did you mean"},
		"a pod without a gang":                           {[]string{"why", "pod/nb-0", "-n", "nb"}, "pod nb-0 belongs to no gang: kubectl describe pod nb-0 -n nb says why it waits"},
		"no name":                                        {[]string{"why"}, "name one gang: kubectl muster why NAME, or --all"},
		"a name and --all":                               {[]string{"why", "mid", "--all"}, "name one gang"},
		"an unknown format":                              {[]string{"top", "-o", "xml"}, `unknown output format "xml": json or yaml`},
		"an unknown flag":                                {[]string{"top", "--watch"}, "unknown flag: --watch"},
		"nothing to try":                                 {[]string{"what-if"}, "name files with -f, or nodes with --drain"},
		"an unknown node":                                {[]string{"what-if", "--drain", "node-9"}, "there is no node node-9"},
		"a file that does not exist":                     {[]string{"what-if", "-f", "no.yaml"}, "no.yaml: no such file"},
		"a manifest on the standard input that is empty": {[]string{"what-if", "-f", "-"}, "the files have no objects that make pods"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(t, 80, append([]string{"--snapshot", file, "-n", "ml"}, tc.args...)...)
			if code != exitError || out != "" || !strings.Contains(errs, tc.want) {
				t.Errorf("exit code %d, output %q, errors %q, want 1, nothing, and %q", code, out, errs, tc.want)
			}
		})
	}
	if code, _, errs := run(t, 80, "top", "--snapshot", "/dev/null"); code != exitError || !strings.Contains(errs, "reading snapshot /dev/null: it is no snapshot of kubectl muster") {
		t.Errorf("exit code %d, errors %q for a file that is no snapshot", code, errs)
	}
}

// A gang of 10,000 pods is one row, and 40 columns are enough.
func TestTreeOfALargeGang(t *testing.T) {
	t.Parallel()
	s := (&scene{}).nodes(2, nil).gang(wrappers.MakePodGroup("huge", "ml").UID("huge").MinMember(10_000), members("huge", 10_000, 1)...)
	code, out, errs := run(t, 40, "tree", "huge", "-n", "ml", "--snapshot", s.file(t))
	lines := strings.Split(out, "\n")
	if code != 0 || errs != "" || len(lines) > 16 || !strings.Contains(out, "10000 pods") {
		t.Errorf("exit code %d, %q, %d lines:\n%s", code, errs, len(lines), out)
	}
}

// Programs read the fields by these names.
func TestJSON(t *testing.T) {
	t.Parallel()
	file := scenes["cordoned"]().file(t)
	for command, want := range map[string][]string{
		"why mid":                   {"Explanation", "verdict", "reason", "message", "advice", "holders", "priority"},
		"why --all":                 {"Waiting", "gangs", "gpus", "reasons"},
		"tree mid":                  {"Tree", "phase", "need", "bound", "exist", "ready"},
		"top":                       {"Top", "gpus", "used", "free", "closed", "fits", "nodes", "waiting"},
		"doctor":                    {"Doctor", "checks"},
		"what-if --drain node-0000": {"WhatIf", "fits", "gangs"},
	} {
		args := append(strings.Fields(command), "-n", "ml", "--snapshot", file)
		_, out, _ := run(t, 80, append(args, "-o", "json")...)
		var fields map[string]any
		if err := json.Unmarshal([]byte(out), &fields); err != nil {
			t.Errorf("%s: %v: %s", command, err, out)
			continue
		}
		if fields["apiVersion"] != snapshot.APIVersion || fields["kind"] != want[0] {
			t.Errorf("%s: apiVersion %v, kind %v, want %s", command, fields["apiVersion"], fields["kind"], want[0])
		}
		for _, name := range want[1:] {
			if _, ok := fields[name]; !ok {
				t.Errorf("%s: no field %s in %s", command, name, out)
			}
		}
		if _, yaml, _ := run(t, 80, append(args, "-o", "yaml")...); !strings.Contains(yaml, "apiVersion: "+snapshot.APIVersion) {
			t.Errorf("%s as YAML: %s", command, yaml)
		}
	}
}
