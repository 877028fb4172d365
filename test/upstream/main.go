// SPDX-License-Identifier: Apache-2.0

// Command upstream tries Muster with another version of Kubernetes; `make canary` runs it. It moves a copy of the
// repository there and prints, for each row of docs/upstream.md, whether its files compile and what its tests say. The
// test of this package, which needs nothing of Muster, says which methods of replaced interfaces are new.
//
//	go run ./test/upstream v1.38.0-beta.0  # the copy is of the last commit, without control plane
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/upstream v1.X.Y")
		os.Exit(2)
	}
	if err := try(ctx, os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// try prints the report of a version. That something does not compile or fails is no error.
func try(ctx context.Context, version string, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "muster-upstream-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	tree := filepath.Join(folder, "muster")
	if err := run(ctx, ".", os.Stderr, "git", "worktree", "add", "--quiet", "--detach", tree); err != nil {
		return err
	}
	defer func() { // also when interrupted
		err = cmp.Or(err, run(context.WithoutCancel(ctx), ".", os.Stderr, "git", "worktree", "remove", "--force", tree))
	}()
	if err := run(ctx, tree, os.Stderr, "hack/update-kubernetes.sh", version, "."); err != nil {
		return fmt.Errorf("moving the copy to %s (if it needs another Go, name it: GOTOOLCHAIN=go1.X.Y): %w", version, err)
	}
	page, err := os.ReadFile(filepath.Join(tree, "docs/upstream.md"))
	if err != nil {
		return err
	}
	seams := seamsOf(string(page))
	if len(seams) == 0 {
		return errors.New("docs/upstream.md has no table with tests")
	}
	packages, err := packagesOf(tree, testsOf(seams))
	if err != nil {
		return err
	}

	fmt.Fprintf(os.Stderr, "building with Kubernetes %s; all of it is compiled the first time\n", version)
	var built, tested bytes.Buffer
	_ = run(ctx, tree, &built, "go", "build", "-mod=mod", "-gcflags=-e", "./cmd/...", "./pkg/...") // its output says why
	args := []string{"test", "-mod=mod", "-gcflags=-e", "-count=1", "-json", "-run", "^(" + strings.Join(testsOf(seams), "|") + ")$"}
	for _, p := range packages {
		if !strings.HasPrefix(p, integration) && !slices.Contains(args, "./"+p) {
			args = append(args, "./"+p)
		}
	}
	_ = run(ctx, tree, &tested, "go", args...)
	if err := ctx.Err(); err != nil {
		return err
	}
	results, err := resultsOf(tested.Bytes())
	if err != nil {
		return err
	}
	results.addErrors(built.String())
	var imports bytes.Buffer
	if err := run(ctx, tree, &imports, "go", "list", "-mod=mod", "-f", `{{.Dir}} {{join .Deps " "}}`, "./cmd/...", "./pkg/..."); err != nil {
		return fmt.Errorf("%s%w", imports.String(), err)
	}
	results.markUnreached(strings.ReplaceAll(imports.String(), tree+"/", ""))
	fmt.Fprintf(out, "Kubernetes %s\n%s", version, report(seams, packages, results))
	return nil
}

// run runs a command in a folder with both of its outputs to one writer.
func run(ctx context.Context, folder string, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)`)

// packagesOf returns by test the folder that it is in, below the root. Tests that are in none are left out.
func packagesOf(root string, tests []string) (map[string]string, error) {
	packages := map[string]string{}
	for _, top := range []string{"pkg", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			for _, match := range testFunction.FindAllStringSubmatch(string(source), -1) {
				if slices.Contains(tests, match[1]) {
					packages[match[1]] = filepath.ToSlash(folder)
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return packages, nil
}
