// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// events are lines of test2json, made of "action name" or "output name text".
func events(lines ...string) string {
	var text strings.Builder
	for _, line := range lines {
		action, rest, _ := strings.Cut(line, " ")
		name, output, _ := strings.Cut(rest, " ")
		text.WriteString(`{"Action":"` + action + `","Test":"` + name + `","Output":"` + output + "\"}\n")
	}
	return text.String()
}

func readEvents(lines ...string) (*results, string) {
	r := newResults()
	var log strings.Builder
	for line := range strings.Lines(events(lines...)) {
		r.add([]byte(line), &log)
	}
	return r, log.String()
}

func TestResults(t *testing.T) {
	t.Parallel()
	r, log := readEvents("run A", "run A/1", "output A/1 good", "pass A/1", "run A/2", "run A/2/x", "output A/2/x bad", "fail A/2/x", "fail A/2", "fail A",
		"run B", "run B/1", "pass B/1", "output B itself", "fail B",
		"run C", "skip C", "run D")
	got := map[string][]string{}
	for name, set := range map[string]map[string]bool{"ran": r.ran, "failed": r.failed, "skipped": r.skipped} {
		for test := range set {
			got[name] = append(got[name], test)
		}
		slices.Sort(got[name])
	}
	for test := range r.open {
		got["open"] = append(got["open"], test)
	}
	want := map[string][]string{"ran": {"A/1", "A/2/x", "B", "B/1", "D"}, "failed": {"A/2/x", "B"}, "skipped": {"C"}, "open": {"D"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if log != "baditself" {
		t.Errorf("the log has %q, want the output of what failed alone", log)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	listed := []difference{differs("a", "A/.*", "decided")}
	for name, tc := range map[string]struct {
		events []string
		some   bool
		wrong  string // "" = as expected
	}{
		"as listed":                   {events: []string{"run A", "run A/1", "fail A/1", "fail A", "run B", "pass B"}},
		"one fails that is not":       {events: []string{"run A", "run A/1", "fail A/1", "fail A", "run B", "fail B"}, wrong: "B fails"},
		"one passes that is":          {events: []string{"run A", "run A/1", "fail A/1", "run A/2", "pass A/2", "fail A"}, wrong: "A/2 passes"},
		"there is none":               {events: []string{"run B", "pass B"}, wrong: "there is no test"},
		"there is none among some":    {events: []string{"run B", "pass B"}, some: true},
		"a test that has none passes": {events: []string{"run A", "pass A", "run A/1", "fail A/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := readEvents(tc.events...)
			text, ok := report([]string{"a"}, []*results{r}, listed, tc.some)
			if ok != (tc.wrong == "") || !strings.Contains(text, tc.wrong) {
				t.Errorf("ok %t, want %q in:\n%s", ok, tc.wrong, text)
			}
		})
	}
	broken := newResults()
	broken.broken = "it panicked"
	if text, ok := report([]string{"b"}, []*results{broken}, nil, false); ok || !strings.Contains(text, "it panicked") {
		t.Errorf("tests that ended early: ok %t\n%s", ok, text)
	}
}

func TestExactly(t *testing.T) {
	t.Parallel()
	if got, want := exactly("TestA/one_(of_two)/x"), `^TestA$/^one_\(of_two\)$/^x$`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestMoveImports(t *testing.T) {
	t.Parallel()
	const source = `
import (
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/scheduler"
	"k8s.io/kubernetes/test/integration/scheduler/queueing"
	testutils "k8s.io/kubernetes/test/integration/util"
)
func a() { scheduler.New(ctx); x = scheduler.New(ctx, scheduler.NewThing) }
`
	want := `
import (
	muster "github.com/muster-project/muster/hack/stocktests"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/test/integration/framework"
	"github.com/muster-project/muster/hack/stocktests/tables/scheduler"
	"github.com/muster-project/muster/hack/stocktests/tables/scheduler/queueing"
	testutils "github.com/muster-project/muster/hack/stocktests/tables/util"
)
func a() { muster.New(ctx); x = muster.New(ctx, scheduler.NewThing) }
`
	got, err := withMuster(moveImports(source))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, other := range []string{"", "import (\n)\nfunc a() { scheduler.New(ctx) }", "scheduler.New( scheduler.New("} {
		if _, err := withMuster(other); err == nil {
			t.Errorf("no error for %q", other)
		}
	}
}
