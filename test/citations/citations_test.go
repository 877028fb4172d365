// SPDX-License-Identifier: Apache-2.0

package citations

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// folders are what is checked beside the files at the top of the repository.
var folders = []string{"cmd", "docs", "hack", "manifests", "pkg", "test"}

const (
	decisions = "docs/decisions"
	crds      = "manifests/crds/"
	// itself has citations of what does not exist.
	itself = "test/citations/"
)

func TestRepository(t *testing.T) {
	t.Parallel()
	found, read, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
	if read < 500 {
		t.Errorf("only %d files were read", read)
	}
}

// pages are a repository with two decisions and one proposal.
var pages = map[string]string{
	"docs/decisions/README.md": "| GREP-0285 | jobs |\n| [G1](gangs.md#g1) | gangs |\n| [G2](gangs.md#g2) | minimums |\n",
	"docs/decisions/gangs.md":  "<a id=\"g1\"></a>\n### G1: Gangs\n\nSee [G2](#g2).\n\n<a id=\"g2\"></a>\n### G2: Minimums\n",
	"docs/guide.md":            "# Guide\n\n## What `it` does\n\n## Seen\n\n## Seen\n\n[G1](decisions/gangs.md#g1), [seen](#seen-1), [it](guide.md#what-it-does)\n",
}

func TestFindings(t *testing.T) {
	t.Parallel()
	goFile := func(comment string) map[string]string {
		return map[string]string{"pkg/p/p.go": "package p\n\n" + comment + "\nvar x int\n"}
	}
	markdown := func(text string) map[string]string { return map[string]string{"README.md": text} }
	tests := map[string]struct {
		files map[string]string // beside pages, or in the place of one of them
		want  []string
	}{
		"nothing is wrong": {},
		"all that is cited exists": {files: map[string]string{
			"README.md":          "[guide](docs/guide.md#seen-1), [folder](docs), [web](https://example.com/x.md#y), G2\n```\n[no](link) G9\n```\n",
			"pkg/p/p.go":         "package p\n\n// A rule. Sources: GREP-0285, \"Phase\"; docs/decisions, G1,\n// G2. See docs/guide.md#seen and https://example.com/no.md.\nvar x = \"H100 B2 (x)\"\n",
			"pkg/p/doc.go":       "// Package p has a rule (docs/decisions, G1 to G2). 0.001 of 1,000 H100.\npackage p\n",
			"manifests/pod.yaml": "# See docs/guide.md, and docs/decisions, G1.\nkind: Pod\n",
		}},
		"a code without a section": {
			files: goFile("// A rule.\n// Source: docs/decisions, G1, G99."),
			want:  []string{"pkg/p/p.go:4: cites G99, which has no section in docs/decisions"}},
		"a code without a section, across a line break": {
			files: goFile("// A rule. Source:\n// docs/decisions,\n// G99."),
			want:  []string{"pkg/p/p.go:5: cites G99, which has no section in docs/decisions"}},
		"a code of a letter that no decision has": {
			files: goFile("// A rule. Source: docs/decisions, X1."),
			want:  []string{"pkg/p/p.go:3: cites X1, which has no section in docs/decisions"}},
		"other forms": {
			files: goFile("// A rule (G1).\n\n// Another. Source: decision G2.\n\n// A third, (B5).\n\n// What G1 says."),
			want: []string{
				`pkg/p/p.go:3: cites G1: write "docs/decisions, G1", if it is a decision`,
				`pkg/p/p.go:5: cites G2: write "docs/decisions, G2", if it is a decision`,
				`pkg/p/p.go:7: cites B5: write "docs/decisions, B5", if it is a decision`,
				`pkg/p/p.go:9: cites G1: write "docs/decisions, G1", if it is a decision`,
			}},
		"a code in the name of a test": {
			files: map[string]string{"pkg/p/p_test.go": "package p\n\nvar tests = []string{\n\t\"whole or not at all (G1)\",\n}\n"},
			want:  []string{"pkg/p/p_test.go:4: (G1) in a string: state the rule, and cite the code in a comment"}},
		"a code in a manifest, a script and the Makefile": {
			files: map[string]string{"manifests/pod.yaml": "kind: Pod # docs/decisions, G98\n", "hack/x.sh": "true\n# decision G1\n", "Makefile": "# G2\n"},
			want: []string{
				`Makefile:1: cites G2: write "docs/decisions, G2", if it is a decision`,
				`hack/x.sh:2: cites G1: write "docs/decisions, G1", if it is a decision`,
				`manifests/pod.yaml:1: cites G98, which has no section in docs/decisions`,
			}},
		"a code in a CRD": {
			files: map[string]string{"manifests/crds/x.yaml": "properties:\n  description: needs all (docs/decisions, G1)\n"},
			want:  []string{"manifests/crds/x.yaml:2: cites G1: users of kubectl explain cannot look it up, state the rule"}},
		"a code in a document": {
			files: markdown("One\nG77\n"),
			want:  []string{"README.md:2: cites G77, which has no section in docs/decisions"}},
		"tests that exist, and others": {
			files: map[string]string{
				"pkg/p/p_test.go": "package p\n\nfunc TestP(t *testing.T) { t.Run(\"a case, or more\", nil) }\n\nfunc BenchmarkP(b *testing.B) {}\n",
				"README.md":       "`TestP`, `TestP/a case, or more`, `BenchmarkP`, `TestPs`\n`TestP/another case`\n",
			},
			want: []string{
				"README.md:1: names TestPs: there is no such test",
				"README.md:2: names TestP/another case: there is no such test",
			}},
		"papers that are not in the repository": {
			files: goFile("// Source: design 003, \"Rules\".\n\n// What 003's rules say.\n\n// See users.md.\n\n// Source: GREP-291.\n\n// Source: Other Design Doc."),
			want: []string{
				"pkg/p/p.go:11: cites Other Design Doc, which docs/decisions/README.md does not list",
				`pkg/p/p.go:3: cites "design 003", which is not in the repository`,
				`pkg/p/p.go:5: cites "003's", which is not in the repository`,
				"pkg/p/p.go:7: cites users.md: there is no such file",
				"pkg/p/p.go:9: cites GREP-291, which docs/decisions/README.md does not list",
			}},
		"a section of a document that is not there": {
			files: goFile("// See docs/guide.md#nothing."),
			want:  []string{"pkg/p/p.go:3: cites docs/guide.md#nothing: docs/guide.md has no heading or anchor of that name"}},
		"links that lead nowhere": {
			files: markdown("[a](docs/none.md)\n[b](docs/guide.md#seen-2)\n[c](#top)\n[d](../outside.md)\n[e](docs/decisions/gangs.md#g3)\n"),
			want: []string{
				"README.md:1: links to docs/none.md: there is no such file",
				"README.md:2: links to docs/guide.md#seen-2: docs/guide.md has no heading or anchor of that name",
				"README.md:3: links to #top: README.md has no heading or anchor of that name",
				"README.md:4: links to ../outside.md: it is not in the repository",
				"README.md:5: links to docs/decisions/gangs.md#g3: docs/decisions/gangs.md has no heading or anchor of that name",
			}},
		"a section without its anchor, twice, and not in the list of all codes": {
			files: map[string]string{"docs/decisions/more.md": "### G3: More\n\n<a id=\"g1\"></a>\n### G1: Again\n"},
			want: []string{
				"docs/decisions/README.md: the list of all codes lacks [G1](more.md#g1)",
				"docs/decisions/README.md: the list of all codes lacks [G3](more.md#g3)",
				`docs/decisions/more.md: G1 has two sections`,
				`docs/decisions/more.md: the line above the heading of G3 must be <a id="g3"></a>`,
			}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repository := fstest.MapFS{}
			for _, files := range []map[string]string{pages, tc.files} {
				for file, content := range files {
					repository[file] = &fstest.MapFile{Data: []byte(content)}
				}
			}
			got, read, err := check(repository)
			if err != nil {
				t.Fatal(err)
			}
			if read < len(pages) {
				t.Errorf("%d files were read", read)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// check returns everything that cannot be looked up, sorted, and how many files were read.
func check(repository fs.FS) (found []string, read int, err error) {
	l, err := newLibrary(repository)
	if err != nil {
		return nil, 0, err
	}
	err = fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch kind := path.Ext(name); {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && !strings.Contains(name, "/") && !slices.Contains(folders, name):
			return fs.SkipDir
		case entry.IsDir() || strings.HasPrefix(name, itself) && strings.HasSuffix(name, "_test.go"),
			kind != ".go" && kind != ".md" && kind != ".yaml" && kind != ".sh" && path.Base(name) != "Makefile":
			return nil
		}
		content, err := fs.ReadFile(repository, name)
		read++
		for _, p := range passages(name, string(content)) {
			found = append(found, l.check(name, p)...)
		}
		return err
	})
	found = append(found, l.problems...)
	slices.Sort(found)
	return found, read, err
}

var (
	code      = `[A-Z][0-9]{1,2}`
	list      = code + `(?:(?:, | and | to )` + code + `)*`
	citation  = regexp.MustCompile(`\bdocs/decisions, ` + list + `\b`)
	inParens  = regexp.MustCompile(`\(` + list + `\)`)
	otherForm = regexp.MustCompile(`\(` + list + `\)|\b[Dd]ecisions? ` + list + `\b`)
	anyCode   = regexp.MustCompile(`\b` + code + `\b`)
	proposal  = regexp.MustCompile(`\bGREP-[0-9]+\b|\b(?:[A-Z][a-z]+ )+Design Doc\b`)
	numbered  = regexp.MustCompile(`\b(?:design|document|requirement|seed) 0[0-9]{2}\b|(?:^| |\()00[0-9](?:'s)?(?: |\.|,|$|\))`)
	document  = regexp.MustCompile(`[A-Za-z0-9_./:-]+\.md\b(?:#[A-Za-z0-9_-]+)?`)
	namedTest = regexp.MustCompile("`((?:Test|Benchmark)[A-Z]\\w*(?:/[^`]+)?)`")
	link      = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
)

// check returns what a passage of a file cites and cannot be looked up.
func (l *library) check(name string, p passage) (found []string) {
	text, isDocument := p.text(), strings.HasSuffix(name, ".md")
	problem := func(cited, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: %s", name, p.lineOf(cited), fmt.Sprintf(format, args...)))
	}
	known := func(codes []string) {
		for _, c := range codes {
			if !l.codes[c] {
				problem(c, "cites %s, which has no section in %s", c, decisions)
			}
		}
	}
	switch {
	case p.literal: // of strings, names of tests alone cite codes
		for _, cited := range inParens.FindAllString(text, -1) {
			problem(cited, "%s in a string: state the rule, and cite the code in a comment", cited)
		}
		return found
	case strings.HasPrefix(name, crds):
		for _, c := range l.codesIn(text) {
			problem(c, "cites %s: users of kubectl explain cannot look it up, state the rule", c)
		}
		return found
	case isDocument:
		known(l.codesIn(text))
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if why := l.resolve(name, match[1]); why != "" {
				problem(match[1], "links to %s: %s", match[1], why)
			}
		}
		for _, match := range namedTest.FindAllStringSubmatch(text, -1) {
			if !l.hasTest(match[1]) {
				problem(match[1], "names %s: there is no such test", match[1])
			}
		}
	default:
		for _, match := range citation.FindAllString(text, -1) {
			known(anyCode.FindAllString(match, -1))
		}
		rest := citation.ReplaceAllString(text, "")
		others := l.codesIn(rest)
		for _, match := range otherForm.FindAllString(rest, -1) {
			others = append(others, anyCode.FindAllString(match, -1)...)
		}
		slices.Sort(others)
		for _, c := range slices.Compact(others) {
			problem(c, "cites %s: write %q, if it is a decision", c, decisions+", "+c)
		}
		for _, cited := range numbered.FindAllString(text, -1) {
			cited = strings.TrimSpace(cited)
			problem(cited, "cites %q, which is not in the repository", cited)
		}
		for _, cited := range document.FindAllString(text, -1) {
			if why := l.resolve("", cited); why != "" && l.resolve(name, cited) != "" {
				problem(cited, "cites %s: %s", cited, why)
			}
		}
	}
	for _, cited := range proposal.FindAllString(text, -1) {
		cited = strings.TrimPrefix(cited, "The ")
		if !strings.Contains(l.proposals, "| "+cited+" |") {
			problem(cited, "cites %s, which %s/README.md does not list", cited, decisions)
		}
	}
	return found
}

// codesIn returns the words that look like codes of a letter that decisions have.
func (l *library) codesIn(text string) []string {
	var codes []string
	for _, c := range anyCode.FindAllString(text, -1) {
		if strings.Contains(l.letters, c[:1]) {
			codes = append(codes, c)
		}
	}
	return codes
}
