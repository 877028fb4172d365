// SPDX-License-Identifier: Apache-2.0

package purity

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// clockPassedIn are the packages, with those below them, that take the time as a parameter or from a clock that is passed
// in, so that their tests can set it.
var clockPassedIn = []string{"pkg/controllers", "pkg/webhooks", "pkg/scheduler/gangstate", "pkg/scheduler/report"}

// systemClock are the functions that read the system's clock.
var systemClock = map[string]map[string]bool{
	"time":                                 {"Now": true, "Since": true, "Until": true},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now": true, "NowMicro": true},
}

func TestClockIsPassedIn(t *testing.T) {
	t.Parallel()
	for _, dir := range clockPassedIn {
		files := 0
		err := filepath.WalkDir(filepath.Join("..", "..", filepath.FromSlash(dir)), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			found, err := clockReads(path, nil)
			for _, what := range found {
				t.Error(what)
			}
			return err
		})
		if err != nil || files == 0 {
			t.Errorf("%s: %d Go files, error %v", dir, files, err)
		}
	}
}

func TestClockReads(t *testing.T) {
	t.Parallel()
	source := `package p
import ("time"; m "k8s.io/apimachinery/pkg/apis/meta/v1")
var a, b, c = time.Now(), m.Now(), time.Since
var d = time.Second + time.Until(a) + clock.Now()`
	got, err := clockReads("f.go", source)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"f.go:3: reads the clock by time.Now", "f.go:3: reads the clock by m.Now", "f.go:3: reads the clock by time.Since",
		"f.go:4: reads the clock by time.Until"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// clockReads returns where a file reads the system's clock. Source is the file's content; nil: it is read.
func clockReads(name string, source any) ([]string, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	functions := map[string]map[string]bool{} // by the name of the package in this file
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		local := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		functions[local] = systemClock[path]
	}
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if selector, is := n.(*ast.SelectorExpr); is {
			if x, is := selector.X.(*ast.Ident); is && functions[x.Name][selector.Sel.Name] {
				found = append(found, fmt.Sprintf("%s:%d: reads the clock by %s.%s", name, files.Position(selector.Pos()).Line, x.Name, selector.Sel.Name))
			}
		}
		return true
	})
	return found, nil
}
