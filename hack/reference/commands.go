// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-project/muster/pkg/cli"
)

const commandsIntro = `<!-- Written by "make docs" from pkg/cli. Do not edit. -->

# Commands of kubectl muster

Every command with its flags. What the answers mean is in [cli.md](cli.md).
`

// commands returns the reference of kubectl muster: a section for each command.
func commands() (string, error) {
	var text strings.Builder
	text.WriteString(commandsIntro)
	root := cli.NewCommand("kubectl-muster", cli.Streams{})
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	writeCommand(&text, root)
	for _, c := range root.Commands() { // in the order of their names
		if c.IsAvailableCommand() {
			writeCommand(&text, c)
		}
	}
	return text.String(), nil
}

func writeCommand(text *strings.Builder, c *cobra.Command) {
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	fmt.Fprintf(text, "\n## %s\n\n```\n%s\n```\n\n%s\n", c.CommandPath(), c.UseLine(), strings.TrimSpace(long))
	if c.Example != "" {
		fmt.Fprintf(text, "\n```\n%s\n```\n", strings.Trim(c.Example, "\n"))
	}
	title, flags := "flag", c.LocalFlags()
	if !c.HasParent() {
		title = "flag of all commands"
	}
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(text, "\n| %s | default | |\n|---|---|---|\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" && c.HasParent() {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			name += " " + value
		}
		byDefault := f.DefValue
		if byDefault != "" && byDefault != "[]" {
			byDefault = "`" + byDefault + "`"
		} else {
			byDefault = ""
		}
		fmt.Fprintf(text, "| %s | %s | %s |\n", name, byDefault, cell(usage))
	})
}
