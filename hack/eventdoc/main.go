// SPDX-License-Identifier: Apache-2.0

// Command eventdoc writes docs/events.md: every reason of an event and of a condition, with the comment of its constant
// in the API packages.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const intro = `<!-- Written by "make docs" from the constants in pkg/apis. Do not edit. -->

# Events and conditions

Every condition type, every reason of a condition and every reason of an event that Muster adds to those of kube-scheduler. Reasons do not change
between releases without a note in the changelog; messages may change at any time.

` + "```" + `sh
kubectl events --for podgroup/NAME          # why a gang waits
kubectl events --for podcliqueset/NAME      # what became of a workload
kubectl describe podgroup NAME              # conditions, with reasons and messages
` + "```" + `
`

// An api is one package of constants, and the title of its part of the document.
type api struct{ title, dir string }

var apis = []api{
	{"PodGroups and their pods (muster-scheduler)", "pkg/apis/scheduling/v2alpha2"},
	{"PodCliqueSets, PodCliqueScalingGroups and PodCliques (muster-controller)", "pkg/apis/grove/v1alpha1"},
}

// kinds are how the names of the constants begin that are documented, in the order of the document.
var kinds = []string{"Condition", "Reason", "Event", "PodReason"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: eventdoc FILE")
		os.Exit(2)
	}
	text := bytes.NewBufferString(intro)
	for _, a := range apis {
		tables, err := read(a.dir)
		if err != nil {
			fmt.Fprintf(os.Stderr, "reading the constants of %s: %v\n", a.dir, err)
			os.Exit(1)
		}
		fmt.Fprintf(text, "\n## %s\n", a.title)
		for _, t := range tables {
			t.write(text)
		}
	}
	if err := os.WriteFile(os.Args[1], text.Bytes(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "writing the document:", err)
		os.Exit(1)
	}
}

// A table is one block of constants.
type table struct {
	comment string
	rows    []row
}

// A row is one constant: its value, its type and object ("" if the comment does not name them), and its meaning.
type row struct{ value, about, meaning string }

// read returns a table for each block of constants of a folder that has a documented one, conditions first, then their
// reasons, then events; within these in the order of files and lines. A constant without a comment is an error.
func read(dir string) ([]table, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var blocks []*ast.GenDecl
	values := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			block, ok := d.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			blocks = append(blocks, block)
			for _, s := range block.Specs {
				spec := s.(*ast.ValueSpec)
				if len(spec.Values) == 0 {
					continue
				}
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if values[spec.Names[0].Name], err = strconv.Unquote(literal.Value); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	order := func(block *ast.GenDecl) int {
		return slices.Index(kinds, kindOf(block.Specs[0].(*ast.ValueSpec).Names[0].Name))
	}
	slices.SortStableFunc(blocks, func(a, b *ast.GenDecl) int { return order(a) - order(b) })
	var tables []table
	for _, block := range blocks {
		t := table{comment: named(values, block.Doc.Text())}
		for _, s := range block.Specs {
			spec := s.(*ast.ValueSpec)
			name := spec.Names[0].Name
			if kindOf(name) == "" || values[name] == "" {
				continue
			}
			doc := spec.Doc.Text()
			if doc == "" {
				doc, t.comment = block.Doc.Text(), "" // a constant by itself
			}
			if !strings.HasPrefix(doc, name) {
				return nil, fmt.Errorf("%s: the comment of %s does not begin with its name", set.Position(spec.Pos()), name)
			}
			about, meaning, found := strings.Cut(strings.TrimPrefix(doc, name), ":")
			if !found {
				about, meaning = "", strings.TrimPrefix(doc, name+" is ")
			}
			t.rows = append(t.rows, row{
				value:   values[name],
				about:   named(values, strings.TrimPrefix(about, ", ")),
				meaning: sentence(named(values, meaning)),
			})
		}
		if len(t.rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables, nil
}

// kindOf returns the prefix of the name of a documented constant, "" for any other.
func kindOf(name string) string {
	for _, kind := range kinds {
		if rest, ok := strings.CutPrefix(name, kind); ok && rest != "" {
			return kind
		}
	}
	return ""
}

var identifier = regexp.MustCompile(`\b[A-Z]\w+\b`)

// named puts the values of constants in the place of their names, and all in one line.
func named(values map[string]string, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return identifier.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := values[name]; ok && kindOf(name) != "" {
			return "`" + value + "`"
		}
		return name
	})
}

// sentence begins with a capital, but for a name of a field (minAvailable).
func sentence(text string) string {
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, " ")
	if text == "" || strings.ToLower(first) != first || strings.ContainsAny(first, ".`") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func (t table) write(text *bytes.Buffer) {
	about := slices.ContainsFunc(t.rows, func(r row) bool { return r.about != "" })
	if t.comment != "" {
		fmt.Fprintf(text, "\n### %s\n", heading(t.comment))
		if rest := strings.TrimSpace(strings.TrimPrefix(t.comment, heading(t.comment)+".")); rest != "" {
			fmt.Fprintf(text, "\n%s\n", rest)
		}
	}
	if about {
		fmt.Fprint(text, "\n| name | type, object | meaning |\n|---|---|---|\n")
	} else {
		fmt.Fprint(text, "\n| name | meaning |\n|---|---|\n")
	}
	for _, r := range t.rows {
		if about {
			fmt.Fprintf(text, "| `%s` | %s | %s |\n", r.value, sentence(r.about), r.meaning)
		} else {
			fmt.Fprintf(text, "| `%s` | %s |\n", r.value, r.meaning)
		}
	}
}

// heading returns the first sentence, without its full stop.
func heading(comment string) string {
	if before, _, found := strings.Cut(comment, ". "); found {
		return before
	}
	return strings.TrimSuffix(comment, ".")
}
