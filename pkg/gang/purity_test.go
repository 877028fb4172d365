package gang_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPureCoreImportsNothing keeps the pure core pure: beside the standard library, without its clock, processes, files
// and logs, a package of the core may import only the packages of the core named here.
func TestPureCoreImportsNothing(t *testing.T) {
	t.Parallel()
	const module = "github.com/muster-project/muster"
	core := map[string][]string{
		"../gang":      nil,
		"../placement": {module + "/pkg/gang"},
	}
	impure := []string{"time", "os", "io", "net", "log", "syscall", "runtime", "math/rand", "sync", "context"}
	for dir, allowed := range core {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); err != nil || len(files) == 0 {
			t.Errorf("%s has no Go files: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				first, _, _ := strings.Cut(path, "/")
				switch {
				case slices.Contains(allowed, path):
				case strings.Contains(first, "."):
					t.Errorf("%s imports %s: the pure core may not", file, path)
				case slices.Contains(impure, path) || slices.Contains(impure, first):
					t.Errorf("%s imports %s: facts in, decision out; take it as an argument", file, path)
				}
			}
		}
	}
}
