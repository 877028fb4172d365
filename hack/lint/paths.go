// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

const module = "github.com/muster-project/muster"

// ours reports whether an import path is one of this module.
func ours(path string) bool { return matches(module+"/...", path) }

// isStandard reports whether an import path is one of the standard library: its first element has no dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// fileOf returns the path of a file relative to the module, with slashes: pkg/gang/tree.go.
func fileOf(pass *analysis.Pass, pos token.Pos) string {
	dir := strings.TrimSuffix(strings.TrimPrefix(pass.Pkg.Path(), module+"/"), "_test")
	return dir + "/" + filepath.Base(pass.Fset.Position(pos).Filename)
}

// split returns directory and name of a file.
func split(file string) (dir, base string) {
	i := strings.LastIndex(file, "/")
	return file[:max(i, 0)], file[i+1:]
}

// matches reports whether a path equals the pattern, or, if the pattern ends with "/...", is equal to or below it.
func matches(pattern, path string) bool {
	top, below := strings.CutSuffix(pattern, "/...")
	return path == top || below && (top == "" || strings.HasPrefix(path, top+"/"))
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}
