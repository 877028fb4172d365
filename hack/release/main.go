// SPDX-License-Identifier: Apache-2.0

// Command release writes what users install: images of the programs, install.yaml and checksums, into one folder, from
// binaries that are built already. No container engine is needed.
//
//	release -version v0.1.0 -commit 1a2b -created 2026-03-01T10:00:00Z -binaries bin -out dist
//	release -files -version v0.1.0 -out dist
//	release -readme docs/chart.md
//	release -push registry.example.com/muster -version v0.1.0 -out dist
//
// The same binaries give the same bytes: the only time in what is written is that of -created. It is a module of its
// own, so that its dependencies stay out of the programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runCommand(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func runCommand(ctx context.Context, args []string) error {
	var (
		r       Release
		push    string
		files   bool
		given   string
		readme  string
		created string
		archs   string
		plugins string
	)
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.Version, "version", "", "The tag of the images.")
	flags.StringVar(&r.Commit, "commit", "", "The commit that the binaries were built from.")
	flags.StringVar(&created, "created", "", "The time of the commit, RFC 3339.")
	flags.StringVar(&r.Registry, "registry", DefaultRegistry, "Where install.yaml finds the images.")
	flags.StringVar(&archs, "architectures", "amd64 arm64", "Those of the images, separated by spaces.")
	flags.StringVar(&plugins, "platforms", "linux/amd64 linux/arm64", "Those of the plugin of kubectl, separated by spaces.")
	flags.StringVar(&r.Binaries, "binaries", "bin", "Folder with the programs of each platform in SYSTEM-ARCH.")
	flags.StringVar(&r.Manifests, "manifests", "manifests", "Folder of the kustomizations.")
	flags.StringVar(&r.Out, "out", "dist", "Folder to write; what is there is replaced.")
	flags.BoolVar(&files, "files", false, "Write only what needs no binaries, and chart.yaml, which is what the chart installs.")
	flags.StringVar(&given, "values", "", "Values of the chart for chart.yaml, as YAML.")
	flags.StringVar(&readme, "readme", "", "Write only the README of the chart, with the table of its values, into this file.")
	flags.StringVar(&push, "push", "", "Push the images in -out to this registry instead of writing them.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown arguments %q: there are only flags", flags.Args())
	}
	if readme != "" {
		return r.WriteReadme(readme)
	}
	if r.Version == "" {
		return errors.New("-version is missing")
	}
	if push != "" {
		return Push(ctx, r.Out, r.Version, push)
	}
	if files {
		return r.WriteFiles(given)
	}
	if r.Architectures = strings.Fields(archs); len(r.Architectures) == 0 {
		return errors.New("-architectures is empty")
	}
	r.Platforms = strings.Fields(plugins)
	var err error
	if r.Created, err = time.Parse(time.RFC3339, created); err != nil {
		return fmt.Errorf("-created: %w", err)
	}
	return r.Write()
}
