// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"

	"github.com/muster-project/muster/test/wrappers"
)

// TestBindPostsWhatTheStockBinderPosts compares the requests, apart from the annotations.
func TestBindPostsWhatTheStockBinderPosts(t *testing.T) {
	t.Parallel()
	pod := wrappers.MakePod("p", "ml").UID("u").Obj()
	posted := func(bind func(c *cluster) error) runtime.Object {
		c := newCluster(t, pod)
		var binding runtime.Object
		c.f.ClientSet().(*fake.Clientset).PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			binding = a.(clienttesting.CreateAction).GetObject()
			return true, binding, nil
		})
		if err := bind(c); err != nil {
			t.Fatal(err)
		}
		return binding
	}
	want := posted(func(c *cluster) error {
		binder, err := defaultbinder.New(c.ctx, nil, c.f)
		if err != nil {
			return err
		}
		return binder.(*defaultbinder.DefaultBinder).Bind(c.ctx, nil, pod, "n").AsError()
	})
	got := posted(func(c *cluster) error {
		return Bind(c.ctx, c.f, c.f.ClientSet(), pod, "n", map[string]string{"a": "b"})
	}).(*corev1.Binding)
	if got.Annotations["a"] != "b" {
		t.Errorf("annotations %v", got.Annotations)
	}
	got.Annotations = nil
	if diff := cmp.Diff(want, runtime.Object(got)); diff != "" {
		t.Errorf("(-stock +ours):\n%s", diff)
	}
}

// TestUpstreamDocument: docs/upstream.md names the packages of kube-scheduler that are imported, and the files that
// read its types by reflection, and no others. The tests that it names exist.
func TestUpstreamDocument(t *testing.T) {
	t.Parallel()
	const root = "../../../"
	text, err := os.ReadFile(root + "docs/upstream.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(s, "\n")
		sections[title] = body
	}
	used := usesOfUpstream(t, root+"cmd", root+"pkg")
	if diff := cmp.Diff(quoted(sections["Imported"], `(?:cmd|pkg)/[\w/-]+`), used.packages); diff != "" {
		t.Errorf("imported packages of %s (-listed +imported):\n%s", upstreamModule, diff)
	}
	if diff := cmp.Diff(quoted(sections["Read by reflection"], `\w+\.go`), used.reflecting); diff != "" {
		t.Errorf("files that read values by reflection (-listed +found):\n%s", diff)
	}
	if len(used.unsafe) > 0 {
		t.Errorf("files with unsafe or go:linkname: %v", used.unsafe)
	}

	tests := map[string]bool{}
	for _, folder := range []string{"pkg/scheduler/kubescheduler", "pkg/scheduler/gangadmission", "pkg/podgroup", "pkg/apis/config/profile", "pkg/scheduler", "test/integration/scheduler", "test/upstream"} {
		files, err := filepath.Glob(root + folder + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(source), -1) {
				tests[name[1]] = true
			}
		}
	}
	named := quoted(string(text), `Test[A-Z]\w+`)
	if len(named) < 10 {
		t.Errorf("%d tests are named", len(named))
	}
	for _, name := range named {
		if !tests[name] {
			t.Errorf("there is no test %s", name)
		}
	}
}

const upstreamModule = "k8s.io/kubernetes/"

// quoted returns what a text has between backquotes and matches the expression, each once, sorted.
func quoted(text, expression string) []string {
	var out []string
	for _, match := range regexp.MustCompile("`("+expression+")`").FindAllStringSubmatch(text, -1) {
		out = append(out, match[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// upstreamUses are the packages of kube-scheduler that some files import, without their common prefix; and the names of
// the files of pkg/scheduler that read values by reflection, and of all that use unsafe or go:linkname. All are sorted.
type upstreamUses struct{ packages, reflecting, unsafe []string }

// usesOfUpstream returns what the files of these folders use; tests do not count.
func usesOfUpstream(t *testing.T, folders ...string) (out upstreamUses) {
	t.Helper()
	files := 0
	visit := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		isUnsafe := bytes.Contains(source, []byte("//go:linkname"))
		for _, i := range file.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if upstream, ok := strings.CutPrefix(name, upstreamModule); ok {
				out.packages = append(out.packages, upstream)
			}
			isUnsafe = isUnsafe || name == "unsafe"
		}
		if isUnsafe {
			out.unsafe = append(out.unsafe, path)
		}
		if strings.Contains(filepath.ToSlash(path), "pkg/scheduler/") && bytes.Contains(source, []byte("reflect.ValueOf(")) {
			out.reflecting = append(out.reflecting, entry.Name())
		}
		return nil
	}
	for _, folder := range folders {
		if err := filepath.WalkDir(folder, visit); err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Fatalf("%d files were read", files)
	}
	slices.Sort(out.packages)
	slices.Sort(out.reflecting)
	out.packages = slices.Compact(out.packages)
	return out
}
