// SPDX-License-Identifier: Apache-2.0

package citations

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// passage is a text that may cite something: a comment, a string of a Go file, or a document.
type passage struct {
	lines   []string
	first   int  // number of the first line
	literal bool // a string of a Go file
}

// text returns the passage as one line.
func (p passage) text() string { return strings.Join(strings.Fields(strings.Join(p.lines, " ")), " ") }

// lineOf returns the number of the line with the citation, else that of the first line.
func (p passage) lineOf(citation string) int {
	for i, line := range p.lines {
		if strings.Contains(line, citation) {
			return p.first + i
		}
	}
	return p.first
}

func passages(name, content string) []passage {
	switch {
	case strings.HasSuffix(name, ".go"):
		return goPassages(name, content)
	case strings.HasSuffix(name, ".md"):
		return []passage{{lines: withoutFences(content), first: 1}}
	case strings.HasPrefix(name, crds):
		return []passage{{lines: strings.Split(content, "\n"), first: 1}}
	default:
		return hashPassages(content)
	}
}

// goPassages returns the comments of a Go file, and its strings. A file that does not parse has none: the compiler says
// so.
func goPassages(name, content string) []passage {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	var found []passage
	for _, group := range parsed.Comments {
		p := passage{first: files.Position(group.Pos()).Line}
		for _, comment := range group.List {
			for line := range strings.SplitSeq(comment.Text, "\n") {
				p.lines = append(p.lines, strings.TrimPrefix(line, "//"))
			}
		}
		found = append(found, p)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			found = append(found, passage{lines: strings.Split(literal.Value, "\n"), first: files.Position(literal.Pos()).Line, literal: true})
		}
		return true
	})
	return found
}

// hashPassages returns the comments of a file whose comments begin with #. Lines that follow each other are one
// comment.
func hashPassages(content string) []passage {
	var found []passage
	last := -1
	for i, line := range strings.Split(content, "\n") {
		at := strings.Index(line, "#")
		if at < 0 {
			continue
		}
		if last < 0 || last != i-1 {
			found = append(found, passage{first: i + 1})
		}
		p := &found[len(found)-1]
		p.lines, last = append(p.lines, strings.TrimLeft(line[at:], "#")), i
	}
	return found
}

// withoutFences returns the lines of a document, with those of blocks of code empty.
func withoutFences(content string) []string {
	lines, inside := strings.Split(content, "\n"), false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence || inside {
			lines[i] = ""
		}
		if fence {
			inside = !inside
		}
	}
	return lines
}
