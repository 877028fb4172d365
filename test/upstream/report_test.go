// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReport: each seam with what its files and its tests say, then the reasons.
func TestReport(t *testing.T) {
	t.Parallel()
	const page = "# Title\n\n## Imported\n\n| package | for |\n|---|---|\n| `pkg/a` | all |\n\n" +
		"## Replaced\n\n| what | by | test |\n|---|---|---|\n" +
		"| `Scheduler.NextEntity` | members first (`loop.go`) | `TestLoop`, `TestOrder` |\n" +
		"| informers | [`scheduler/informers.go`](../pkg/scheduler/informers.go) | `TestInformers` |\n\n" +
		"## Assumed\n\n| what | where | test |\n|---|---|---|\n" +
		"| [texts](events.md) | `explain.go` | `TestTexts` |\n| times | `late.go` | `TestOnAServer` |\n"
	const built = "# muster/pkg/scheduler/kubescheduler\npkg/scheduler/kubescheduler/loop.go:1:2: undefined: NextEntity\n" +
		"pkg/scheduler/kubescheduler/other.go:3:4: undefined: other\nnote: module requires Go 1.27\n"
	const tested = "pkg/scheduler/kubescheduler/loop.go:1:2: undefined: NextEntity\n" +
		`{"Action":"build-output","ImportPath":"p","Output":"pkg/scheduler/kubescheduler/late.go:5:6: missing return\n"}` + "\n" +
		`{"Action":"run","Package":"p","Test":"TestInformers"}` + "\n" +
		`{"Action":"output","Package":"p","Test":"TestInformers","Output":"=== RUN TestInformers\n"}` + "\n" +
		`{"Action":"output","Package":"p","Test":"TestInformers/sub","Output":"    informers_test.go:7: too early\n"}` + "\n" +
		`{"Action":"fail","Package":"p","Test":"TestInformers/sub"}` + "\n" +
		`{"Action":"fail","Package":"p","Test":"TestInformers"}` + "\n" +
		`{"Action":"pass","Package":"q","Test":"TestOrder"}` + "\n" + `{"Action":"pass","Package":"q","Test":"TestTexts"}` + "\n" +
		`{"Action":"pass","Package":"q"}` + "\n"
	seams := seamsOf(page)
	r, err := resultsOf([]byte(tested))
	if err != nil {
		t.Fatal(err)
	}
	r.addErrors(built)
	r.markUnreached("pkg/scheduler " + module + "pkg/message " + module + "pkg/scheduler/kubescheduler\npkg/message fmt\n")
	got := report(seams, map[string]string{"TestOnAServer": "test/integration/scheduler"}, r)
	const want = `
Replaced
  1 errors   in part    Scheduler.NextEntity (TestLoop, TestOrder)
  not tried  FAILS      informers (TestInformers)

Assumed
  compiles   passes     texts (TestTexts)
  1 errors   passes     times (TestOnAServer)

TestInformers fails
    informers_test.go:7: too early

pkg/scheduler/kubescheduler/late.go
    5:6: missing return

pkg/scheduler/kubescheduler/loop.go
    1:2: undefined: NextEntity

pkg/scheduler/kubescheduler/other.go, which no row names
    3:4: undefined: other
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEverySeamOfTheDocument: the table that is read is that of the project; every test of it is found.
func TestEverySeamOfTheDocument(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/upstream.md")
	if err != nil {
		t.Fatal(err)
	}
	seams := seamsOf(string(page))
	if rows := strings.Count(string(page), "`Test"); len(seams) < 15 || len(seams) > rows {
		t.Errorf("%d seams were read", len(seams))
	}
	packages, err := packagesOf("../..", testsOf(seams))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range seams {
		for _, file := range s.files {
			if _, err := os.Stat("../../" + file); err != nil {
				t.Errorf("%s: %v", s.what, err)
			}
		}
		for _, test := range s.tests {
			if packages[test] == "" {
				t.Errorf("%s: %s is in no package", s.what, test)
			}
		}
	}
}
