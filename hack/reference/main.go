// SPDX-License-Identifier: Apache-2.0

// Command reference writes the references that are made of the programs themselves: docs/cli-reference.md of the
// commands of kubectl muster, and docs/metrics.md of the metrics that both programs register.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reference FOLDER")
		os.Exit(2)
	}
	for name, write := range map[string]func() (string, error){"cli-reference.md": commands, "metrics.md": metrics} {
		text, err := write()
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "writing %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// cell returns text as it stands in a table: in one line, without column separators of its own.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
