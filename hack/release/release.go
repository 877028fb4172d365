// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// repository is where the project and the files of its releases are.
const repository = "https://github.com/muster-project/muster"

// DefaultRegistry is the one whose images the manifests name.
const DefaultRegistry = "ghcr.io/muster-project"

// Release is one version of Muster and where its parts are.
type Release struct {
	Version, Commit string
	Created         time.Time
	// Registry is where install.yaml says that the images are.
	Registry string
	// Architectures are those of the images, such as "amd64".
	Architectures []string
	// Platforms are those of the plugin of kubectl, such as "darwin/arm64".
	Platforms []string
	// Binaries is a folder with SYSTEM-ARCH/PROGRAM, Manifests that of the
	// kustomizations, Out the folder that Write writes.
	Binaries, Manifests, Out string
}

// file is one of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// archive returns a .tar.gz of the files, with the time of the commit.
func (r Release) archive(files []file) ([]byte, error) {
	var archive bytes.Buffer
	zip := gzip.NewWriter(&archive)
	w := tar.NewWriter(zip)
	for _, f := range files {
		header := tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: r.Created}
		if err := w.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), zip.Close())
	return archive.Bytes(), err
}

// WriteFiles writes into Out, which has to be empty, what needs no binaries: install.yaml, uninstall.yaml, the chart,
// and chart.yaml, which is what the chart installs in muster-system with these values (YAML).
func (r Release) WriteFiles(values string) error {
	if err := emptyFolder(r.Out); err != nil {
		return err
	}
	if err := r.writeInstallFiles(); err != nil {
		return err
	}
	if err := r.writeChart(); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	rendered, err := renderChart(r.chartFile(), "muster-system", values)
	if err != nil {
		return fmt.Errorf("rendering the chart: %w", err)
	}
	var all strings.Builder
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		fmt.Fprintf(&all, "---\n%s\n", rendered[file])
	}
	return os.WriteFile(filepath.Join(r.Out, "chart.yaml"), []byte(all.String()), 0o644)
}

// WriteReadme writes the README of the chart, which is the same for all versions.
func (r Release) WriteReadme(file string) (err error) {
	r.Version = "v0.0.0"
	if r.Out, err = os.MkdirTemp("", "release"); err != nil {
		return err
	}
	defer os.RemoveAll(r.Out)
	chart, err := r.chart()
	if err != nil {
		return err
	}
	return os.WriteFile(file, chart["README.md"], 0o644)
}

// Write replaces Out by:
//
//	install.yaml                             CRDs and programs, to be applied with one command
//	uninstall.yaml                           the same without the CRDs
//	muster-VERSION.tgz                       the Helm chart
//	images/PROGRAM/                          an OCI layout for all architectures
//	PROGRAM-VERSION-linux-ARCH.tar           the same for docker load, ctr images import and kind load image-archive
//	PROGRAM-VERSION-linux-ARCH.cdx.json      the modules in it (CycloneDX)
//	kubectl-muster-VERSION-SYSTEM-ARCH...    the plugin of kubectl for each platform (.tar.gz), and its modules
//	.krew.yaml                               with which krew installs the plugin
//	SHA256SUMS
func (r Release) Write() error {
	if err := emptyFolder(r.Out); err != nil {
		return err
	}
	for _, program := range programs {
		if err := r.writeImage(program); err != nil {
			return fmt.Errorf("image of %s: %w", program.name, err)
		}
	}
	if err := r.writeInstallFiles(); err != nil {
		return err
	}
	if err := r.writeChart(); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	if err := r.writePlugin(); err != nil {
		return fmt.Errorf("plugin of kubectl: %w", err)
	}
	return writeChecksums(r.Out)
}

// emptyFolder empties the folder if Write has written it: nobody loses a folder by a wrong flag.
func emptyFolder(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(out, checksums)); err != nil {
			return fmt.Errorf("%s is not empty and has no %s, so it is not the folder of a release: name another one, or delete it",
				out, checksums)
		}
		if err := os.RemoveAll(out); err != nil {
			return err
		}
	}
	return os.MkdirAll(out, 0o755)
}

const checksums = "SHA256SUMS"

// writeChecksums writes one for each file beside it; those of a layout are in its blobs' names.
func writeChecksums(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		sum, err := checksum(filepath.Join(out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sum, entry.Name())
	}
	return os.WriteFile(filepath.Join(out, checksums), []byte(lines.String()), 0o644)
}

func checksum(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}
