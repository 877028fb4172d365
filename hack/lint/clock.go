// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

var clockAnalyzer = &analysis.Analyzer{
	Name: "clock",
	Doc:  "report uses of the system clock where the time is a parameter or comes from a clock that is passed in",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, f := range pass.Files {
			forbidden := clockFunctions(fileOf(pass, f.FileStart))
			if forbidden == nil {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				id, is := n.(*ast.Ident)
				if !is {
					return true
				}
				fn, is := pass.TypesInfo.Uses[id].(*types.Func)
				if is && fn.Signature().Recv() == nil && fn.Pkg() != nil && forbidden[fn.Pkg().Path()+"."+fn.Name()] {
					pass.Reportf(id.Pos(), "uses %s.%s: the time is a parameter, or comes from a clock that is passed in", fn.Pkg().Name(), fn.Name())
				}
				return true
			})
		}
		return nil, nil
	},
}
