package desired

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTranslatorsDoNothing keeps this package and observed what they are: API objects in, values out. No client, no
// context, no logger, no file; the time is an argument.
func TestTranslatorsDoNothing(t *testing.T) {
	t.Parallel()
	impure := []string{"context", "os", "io", "net", "log", "syscall", "runtime", "math/rand", "sync",
		"k8s.io/client-go", "k8s.io/klog", "k8s.io/kubernetes", "sigs.k8s.io/controller-runtime",
		"github.com/muster-project/muster/pkg/controllers", "github.com/muster-project/muster/pkg/scheduler", "github.com/muster-project/muster/pkg/webhooks"}
	clocks := []string{"time.Now", "time.Since", "time.Until", "time.After", "time.Sleep", "metav1.Now", "metav1.NowMicro"}
	for _, dir := range []string{".", "../observed"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no Go files: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(impure, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") }) {
					t.Errorf("%s imports %s", file, path)
				}
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && slices.Contains(clocks, x.Name+"."+s.Sel.Name) {
						t.Errorf("%s calls %s.%s: take the time as an argument", file, x.Name, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}
