// SPDX-License-Identifier: Apache-2.0

package purity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImpurities(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source  string
		allowed []string
		want    []string
	}{
		"what computes may be imported": {
			source: `import ("cmp"; "encoding/json"; "hash/fnv"; "math/bits"; "unicode/utf8")`,
		},
		"files, processes and networks may not, at any depth": {
			source: `import ("os"; "os/exec"; "net/http"; "io/fs")`,
			want: []string{
				"f.go:1: imports os: a pure package may not; take what it would give as an argument",
				"f.go:1: imports os/exec: a pure package may not; take what it would give as an argument",
				"f.go:1: imports net/http: a pure package may not; take what it would give as an argument",
				"f.go:1: imports io/fs: a pure package may not; take what it would give as an argument",
			},
		},
		"chance may not, though it lies below math": {
			source: `import ("math/rand"; "math/rand/v2")`,
			want: []string{
				"f.go:1: imports math/rand: a pure package may not; take what it would give as an argument",
				"f.go:1: imports math/rand/v2: a pure package may not; take what it would give as an argument",
			},
		},
		"others' packages only where they are allowed": {
			source:  `import ("k8s.io/api/core/v1"; "k8s.io/apimachinery"; "k8s.io/client-go/rest"; "time")`,
			allowed: []string{"k8s.io/api/...", "k8s.io/apimachinery/..."},
			want: []string{
				"f.go:1: imports k8s.io/apimachinery: a pure package may not; take what it would give as an argument",
				"f.go:1: imports k8s.io/client-go/rest: a pure package may not; take what it would give as an argument",
				"f.go:1: imports time: a pure package may not; take what it would give as an argument",
			},
		},
		"the types of package time are not its clock": {
			source:  `import "time"; func f(t time.Time) bool { return t.After(time.Time{}) || t.Sub(t) > time.Second }`,
			allowed: []string{"time"},
		},
		"no clock under any name, called or passed on": {
			source:  `import ("time"; c "time"; metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"); var a, b, d = time.Now, c.Since(c.Time{}), metav1.Now()`,
			allowed: []string{"time", "k8s.io/apimachinery/..."},
			want: []string{
				"f.go:1: uses time.Now: take what it would give as an argument",
				"f.go:1: uses c.Since: take what it would give as an argument",
				"f.go:1: uses metav1.Now: take what it would give as an argument",
			},
		},
		"nothing is printed": {
			source: `import "fmt"; func f() { fmt.Println(fmt.Sprint("x")); println("y") }`,
			want: []string{
				"f.go:1: uses fmt.Println: take what it would give as an argument",
				"f.go:1: prints",
			},
		},
		"no goroutine": {
			source: `func f() { go f() }`,
			want:   []string{"f.go:1: starts a goroutine"},
		},
		"no package hides its name": {
			source: `import . "strings"`,
			want:   []string{"f.go:1: imports strings without a name: who reads it cannot tell what is whose"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := impurities("f.go", "package f; "+tc.source, tc.allowed, map[string]bool{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// purePackages are all that are pure; make lint has no rules for them.
var purePackages = []string{
	"apis/grove/validation", "apis/scheduling/validation", "gang", "lifecycle", "message", "naming", "placement",
	"podgroup", "preemption", "scheduler/gangs/count", "scheduler/marks", "scheduler/reservations", "topology", "workload",
}

func TestPurePackagesCheckThemselves(t *testing.T) {
	t.Parallel()
	for _, pkg := range purePackages {
		tests, err := filepath.Glob(filepath.Join("..", "..", "pkg", filepath.FromSlash(pkg), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		checks := 0
		for _, name := range tests {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			checks += strings.Count(string(content), "\tpurity.Check(t")
		}
		if checks != 1 {
			t.Errorf("pkg/%s: %d calls of purity.Check, want 1", pkg, checks)
		}
	}
}

// A pure package must not be accepted because its directory has no Go files except the test.
func TestThisPackageIsNotPure(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	found, err := impurities("purity.go", nil, []string{"go/...", "strings/..."}, used)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"purity.go:10: imports path/filepath: a pure package may not; take what it would give as an argument",
		"purity.go:14: imports testing: a pure package may not; take what it would give as an argument",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"go/...": true}, used); diff != "" {
		t.Errorf("needed of what was allowed (-want +got):\n%s", diff)
	}
}
