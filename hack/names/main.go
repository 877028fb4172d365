// SPDX-License-Identifier: Apache-2.0

// Command names prints, for directories of Go code, the number of files, the length of functions and the length of
// their names. Tests and generated code are left out. It judges nothing: docs/decisions says what names are to be.
//
//	go run ./hack/names pkg pkg/scheduler
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// function is a declared function or method.
type function struct {
	name  string
	lines int
	at    token.Position
}

func main() {
	fmt.Println("directory                 files  lines  per file  functions  lines median/p90/max  name median  one word  5 letters or fewer")
	for _, root := range os.Args[1:] {
		files, lines, functions, err := readFunctions(root)
		if err == nil && len(functions) == 0 {
			err = fmt.Errorf("%s has no Go function", root)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "names:", err)
			os.Exit(1)
		}
		longest := slices.MaxFunc(functions, func(a, b function) int { return cmp.Compare(a.lines, b.lines) })
		oneWord, short := 0, 0
		for _, f := range functions {
			if !strings.ContainsFunc(f.name[1:], unicode.IsUpper) {
				oneWord++
			}
			if len(f.name) <= 5 {
				short++
			}
		}
		percent := func(n int) int { return (100*n + len(functions)/2) / len(functions) }
		of := func(q float64, value func(function) int) int { return quantile(functions, q, value) }
		fmt.Printf("%-25s %5d %6d %9d %10d %10d/%d/%d %16d %8d%% %8d%%   longest: %s, %s\n", root, files, lines, lines/files, len(functions),
			of(0.5, lineCount), of(0.9, lineCount), longest.lines, of(0.5, nameLength), percent(oneWord), percent(short), longest.name, longest.at)
	}
}

func lineCount(f function) int  { return f.lines }
func nameLength(f function) int { return len(f.name) }

// quantile returns a quantile of a value of the functions, of which there is at least one.
func quantile(functions []function, q float64, value func(function) int) int {
	values := make([]int, len(functions))
	for i, f := range functions {
		values[i] = value(f)
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}

// readFunctions returns the number of files and lines below a directory, and its functions.
func readFunctions(root string) (files, lines int, functions []function, err error) {
	set := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		files++
		lines += set.File(file.FileStart).LineCount()
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				at := set.Position(f.Pos())
				functions = append(functions, function{f.Name.Name, set.Position(f.End()).Line - at.Line + 1, at})
			}
		}
		return nil
	})
	return files, lines, functions, err
}
