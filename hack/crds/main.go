// SPDX-License-Identifier: Apache-2.0

// Command crds shortens the CRDs of a directory: it removes the descriptions from the schemas of embedded types of
// Kubernetes (a PodSpec has 500 KB of them), and keeps those of Muster's own fields. The result fits into the
// annotation of a client-side apply.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// embedded are the names of our fields whose types are Kubernetes' own.
var embedded = []string{"podSpec", "metrics", "templateSpec"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crds FOLDER")
		os.Exit(2)
	}
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*.yaml"))
	if err == nil {
		for _, file := range files {
			if err = shorten(file); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shortening CRDs:", err)
		os.Exit(1)
	}
}

func shorten(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !shortenBelow(crd, false) {
		return nil
	}
	content, err = yaml.Marshal(crd)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, append([]byte("---\n"), content...), 0o644)
}

// shortenBelow removes the descriptions below node if inside is true, otherwise those below its embedded fields, and
// reports whether there were any. The description of an embedded field itself is kept.
func shortenBelow(node any, inside bool) bool {
	changed := false
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			changed = shortenBelow(item, inside) || changed
		}
	case map[string]any:
		for name, child := range node {
			// A description is text; a property of that name is a schema.
			if _, isText := child.(string); name == "description" && isText && inside {
				delete(node, name)
				changed = true
				continue
			}
			if schema, ok := child.(map[string]any); ok && !inside && slices.Contains(embedded, name) {
				for keyword, below := range schema {
					if keyword != "description" {
						changed = shortenBelow(below, true) || changed
					}
				}
				continue
			}
			changed = shortenBelow(child, inside) || changed
		}
	}
	return changed
}
