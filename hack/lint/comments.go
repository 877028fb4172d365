// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
	"unicode/utf8"

	"golang.org/x/tools/go/analysis"
)

var commentsAnalyzer = &analysis.Analyzer{
	Name: "comments",
	Doc:  "check that programs and exported names have comments, and that a context is the first parameter",
	Run: func(pass *analysis.Pass) (any, error) {
		documented := pass.Pkg.Name() != "main" // others are for ST1000
		for _, f := range pass.Files {
			documented = documented || f.Doc != nil
			for _, decl := range f.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					checkContext(pass, decl.Type)
					if decl.Doc == nil && decl.Name.IsExported() && receiverIsExported(decl) && !(decl.Recv != nil && wellKnown[decl.Name.Name]) {
						pass.Reportf(decl.Pos(), "exported %s has no comment", decl.Name.Name)
					}
				case *ast.GenDecl:
					checkGroup(pass, decl)
				}
			}
		}
		if !documented {
			pass.Reportf(pass.Files[0].Name.Pos(), "package main has no comment")
		}
		return nil, nil
	},
}

// checkGroup reports exported types, constants and variables without a comment of their own, of their group, or, for
// constants and variables, at the end of their line.
func checkGroup(pass *analysis.Pass, group *ast.GenDecl) {
	for _, spec := range group.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && spec.Doc == nil && (group.Doc == nil || group.Lparen.IsValid()) {
				pass.Reportf(spec.Pos(), "exported type %s has no comment", spec.Name.Name)
			}
		case *ast.ValueSpec:
			if spec.Names[0].IsExported() && spec.Doc == nil && spec.Comment == nil && group.Doc == nil {
				pass.Reportf(spec.Pos(), "exported %s has no comment", spec.Names[0].Name)
			}
		}
	}
}

// checkContext reports a context that is not the first parameter. A *testing.T, or another testing type, may come
// before it.
func checkContext(pass *analysis.Pass, fn *ast.FuncType) {
	before := "context.Context"
	for _, field := range fn.Params.List {
		is := types.TypeString(types.Unalias(pass.TypesInfo.TypeOf(field.Type)), nil)
		if is == "context.Context" && before != is && !strings.HasPrefix(strings.TrimPrefix(before, "*"), "testing.") {
			pass.Reportf(field.Pos(), "a context is the first parameter")
		}
		before = is
	}
}

func receiverIsExported(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		id, is := n.(*ast.Ident)
		if is {
			exported = token.IsExported(id.Name)
		}
		return !is
	})
	return exported
}

// wellKnown are methods that need no comment.
var wellKnown = map[string]bool{"Error": true, "String": true, "Len": true, "Less": true, "Swap": true, "Unwrap": true, "ServeHTTP": true,
	"Read": true, "Write": true}

// maxColumns is where a line with a comment alone ends, with tabs of 4 columns.
const maxColumns = 120

var columnsAnalyzer = &analysis.Analyzer{
	Name: "columns",
	Doc:  "check that comments wrap at 120 columns",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, f := range pass.Files {
			content, err := pass.ReadFile(pass.Fset.File(f.FileStart).Name())
			if err != nil {
				return nil, err
			}
			lines := strings.Split(string(content), "\n")
			for _, group := range f.Comments {
				for _, c := range group.List {
					checkColumns(pass, c, lines[pass.Fset.PositionFor(c.Pos(), false).Line-1])
				}
			}
		}
		return nil, nil
	},
}

// checkColumns reports a comment whose line is too long. One behind code, a directive and a word that cannot be wrapped
// may be longer.
func checkColumns(pass *analysis.Pass, c *ast.Comment, line string) {
	text, found := strings.CutPrefix(strings.TrimLeft(line, "\t"), "// ")
	columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
	if found && columns > maxColumns && strings.Contains(text, " ") {
		pass.Reportf(c.Pos(), "the comment ends in column %d: wrap it at %d", columns, maxColumns)
	}
}
