// SPDX-License-Identifier: Apache-2.0

package citations

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// library is what can be cited.
type library struct {
	repository fs.FS
	codes      map[string]bool
	letters    string              // those that codes begin with
	proposals  string              // the table in the README of the decisions
	anchors    map[string][]string // by document
	tests      map[string]string   // by name: the files that declare it
	problems   []string            // in the pages of the decisions
}

var (
	section = regexp.MustCompile(`(?m)^### ([A-Z][0-9]{1,2}): `)
	test    = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`)
	anchor  = regexp.MustCompile(`<a id="([^"]+)"></a>`)
)

func newLibrary(repository fs.FS) (*library, error) {
	l := &library{repository: repository, codes: map[string]bool{}, anchors: map[string][]string{}, tests: map[string]string{}}
	index, err := fs.ReadFile(repository, decisions+"/README.md")
	if err != nil {
		return nil, err
	}
	l.proposals = string(index)
	pages, err := fs.Glob(repository, decisions+"/*.md")
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		content, err := fs.ReadFile(repository, page)
		if err != nil {
			return nil, err
		}
		for _, match := range section.FindAllStringSubmatch(string(content), -1) {
			code, id := match[1], strings.ToLower(match[1])
			if l.codes[code] {
				l.problems = append(l.problems, fmt.Sprintf("%s: %s has two sections", page, code))
			}
			l.codes[code] = true
			l.letters += code[:1]
			if !strings.Contains(string(content), fmt.Sprintf("<a id=%q></a>\n%s", id, match[0])) {
				l.problems = append(l.problems, fmt.Sprintf("%s: the line above the heading of %s must be <a id=%q></a>", page, code, id))
			}
			if link := fmt.Sprintf("[%s](%s#%s)", code, path.Base(page), id); !strings.Contains(l.proposals, link) {
				l.problems = append(l.problems, fmt.Sprintf("%s/README.md: the list of all codes lacks %s", decisions, link))
			}
		}
	}
	if len(l.codes) == 0 {
		return nil, fmt.Errorf("%s has no sections", decisions)
	}
	return l, l.readTests()
}

// readTests reads the tests and benchmarks of all folders.
func (l *library) readTests() error {
	for _, folder := range folders {
		err := fs.WalkDir(l.repository, folder, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, "_test.go") {
				return err
			}
			content, err := fs.ReadFile(l.repository, name)
			for _, match := range test.FindAllStringSubmatch(string(content), -1) {
				l.tests[match[1]] += string(content)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// hasTest reports whether a test exists and, if it is called name/case, has a string of this case.
func (l *library) hasTest(cited string) bool {
	name, subtest, _ := strings.Cut(cited, "/")
	content, exists := l.tests[name]
	return exists && (subtest == "" || strings.Contains(content, strconv.Quote(subtest)))
}

// resolve returns why a target in a file leads nowhere, "" if it leads somewhere. Addresses of the web are not
// followed.
func (l *library) resolve(from, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	file, fragment, _ := strings.Cut(target, "#")
	if file == "" {
		file = from
	} else {
		file = path.Join(path.Dir(from), file)
	}
	if !fs.ValidPath(file) {
		return "it is not in the repository"
	}
	if _, err := fs.Stat(l.repository, file); err != nil {
		return "there is no such file"
	}
	if fragment == "" || !strings.HasSuffix(file, ".md") {
		return ""
	}
	if _, known := l.anchors[file]; !known {
		content, err := fs.ReadFile(l.repository, file)
		if err != nil {
			return err.Error()
		}
		l.anchors[file] = anchorsOf(string(content))
	}
	if !slices.Contains(l.anchors[file], fragment) {
		return fmt.Sprintf("%s has no heading or anchor of that name", file)
	}
	return ""
}

var (
	linkText  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchorsOf returns the anchors of a document, those that GitHub makes of headings included: lower case, without
// punctuation, with a number from the second of the same name on.
func anchorsOf(content string) []string {
	var anchors []string
	seen := map[string]int{}
	for _, line := range withoutFences(content) {
		for _, match := range anchor.FindAllStringSubmatch(line, -1) {
			anchors = append(anchors, match[1])
		}
		title := strings.TrimLeft(line, "#")
		if title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		slug := notInSlug.ReplaceAllString(strings.ToLower(linkText.ReplaceAllString(strings.TrimSpace(title), "$1")), "")
		slug = strings.ReplaceAll(slug, " ", "-")
		seen[slug]++
		if n := seen[slug]; n > 1 {
			slug = fmt.Sprintf("%s-%d", slug, n-1)
		}
		anchors = append(anchors, slug)
	}
	return anchors
}
