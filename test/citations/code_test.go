// SPDX-License-Identifier: Apache-2.0

package citations

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The program that docs/configuration.md shows is test/sitescheduler, which an integration test builds and runs.
func TestProgramOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../sitescheduler/main.go")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "package main\n"
	shown := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindSubmatch(page)
	_, program, ok := strings.Cut(string(source), begin)
	if shown == nil || !ok {
		t.Fatalf("the page shows a program: %t, the program begins with its package: %t", shown != nil, ok)
	}
	if diff := cmp.Diff(begin+program, string(shown[1])); diff != "" {
		t.Errorf("docs/configuration.md (-test/sitescheduler +shown):\n%s", diff)
	}
}
