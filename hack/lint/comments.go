// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

var commentsAnalyzer = &analysis.Analyzer{
	Name: "comments",
	Doc:  "check that packages and what they export have comments, and that a context is the first parameter",
	Run: func(pass *analysis.Pass) (any, error) {
		documented := false
		for _, f := range pass.Files {
			documented = documented || f.Doc != nil
			for _, decl := range f.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					checkContext(pass, decl.Type)
					if decl.Doc == nil && decl.Name.IsExported() && receiverIsExported(decl) && !implementsWellKnown(decl) {
						pass.Reportf(decl.Pos(), "exported %s has no comment", decl.Name.Name)
					}
				case *ast.GenDecl:
					checkGroup(pass, decl)
				}
			}
		}
		if !documented && !strings.HasSuffix(pass.Pkg.Name(), "_test") {
			pass.Reportf(pass.Files[0].Name.Pos(), "package %s has no comment", pass.Pkg.Name())
		}
		return nil, nil
	},
}

// checkGroup reports exported types, constants and variables without a comment of their own, of their group, or, for constants
// and variables, at the end of their line.
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

// checkContext reports a context that is not the first parameter. A *testing.T, or another testing type, may come before it.
func checkContext(pass *analysis.Pass, fn *ast.FuncType) {
	for i, field := range fn.Params.List {
		if i == 0 || !isNamed(pass.TypesInfo.TypeOf(field.Type), "context", "Context") {
			continue
		}
		before := pass.TypesInfo.TypeOf(fn.Params.List[i-1].Type)
		if !inPackage(before, "testing") && !isNamed(before, "context", "Context") {
			pass.Reportf(field.Pos(), "a context is the first parameter")
		}
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

func implementsWellKnown(fn *ast.FuncDecl) bool { return fn.Recv != nil && wellKnown[fn.Name.Name] }

func isNamed(t types.Type, pkg, name string) bool {
	named, is := types.Unalias(t).(*types.Named)
	return is && named.Obj().Name() == name && inPackage(t, pkg)
}

func inPackage(t types.Type, pkg string) bool {
	if pointer, is := types.Unalias(t).(*types.Pointer); is {
		t = pointer.Elem()
	}
	named, is := types.Unalias(t).(*types.Named)
	return is && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == pkg
}
