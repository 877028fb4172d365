// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// plugin is the program that people have on their own machines: by krew, or in a folder of their PATH.
var plugin = program{"kubectl-muster", "Say why gangs of Muster wait, and what would start them"}

// writePlugin writes an archive of the plugin for each platform, and .krew.yaml, from which krew installs it.
func (r Release) writePlugin() error {
	license, err := os.ReadFile(filepath.Join(r.Manifests, "..", "LICENSE")) // krew wants it in each archive
	if err != nil {
		return err
	}
	var platforms []any
	for _, platform := range r.Platforms {
		system, architecture, _ := strings.Cut(platform, "/")
		name := plugin.name
		if system == "windows" {
			name += ".exe"
		}
		binary := filepath.Join(r.Binaries, system+"-"+architecture, name)
		content, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		archive, err := r.archive([]file{{name, 0o755, content}, {"LICENSE", 0o644, license}})
		if err != nil {
			return err
		}
		base := fmt.Sprintf("%s-%s-%s-%s", plugin.name, r.Version, system, architecture)
		if err := os.WriteFile(filepath.Join(r.Out, base+".tar.gz"), archive, 0o644); err != nil {
			return err
		}
		if err := r.writeModules(plugin, binary, filepath.Join(r.Out, base+".cdx.json")); err != nil {
			return fmt.Errorf("modules of %s: %w", binary, err)
		}
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": system, "arch": architecture}},
			"uri":      fmt.Sprintf("%s/releases/download/%s/%s.tar.gz", repository, r.Version, base),
			"sha256":   fmt.Sprintf("%x", sha256.Sum256(archive)),
			"bin":      name,
		})
	}
	manifest, err := yaml.Marshal(map[string]any{ // https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": strings.TrimPrefix(plugin.name, "kubectl-")},
		"spec": map[string]any{
			"version": r.Version, "homepage": repository, "platforms": platforms,
			"shortDescription": plugin.description,
			"description":      "It reads what muster-scheduler reads, and decides with its code. It writes nothing.",
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, ".krew.yaml"), manifest, 0o644)
}
