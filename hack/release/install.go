// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const installHeader = `# Muster %s. To install, or to upgrade:
#
#   kubectl apply --server-side -f install.yaml
#
# It has the CRDs: to delete what is in this file deletes every workload. uninstall.yaml is without them.
`

const uninstallHeader = `# What install.yaml of Muster %s has, without the CRDs. This leaves all workloads and running pods:
#
#   kubectl delete -f uninstall.yaml
`

// writeInstallFiles renders the kustomizations with the images of this release: install.yaml with the CRDs,
// uninstall.yaml without them.
func (r Release) writeInstallFiles() error {
	for _, file := range []struct {
		name, header string
		folders      []string
	}{
		{"install.yaml", installHeader, []string{"crds", "."}},
		{"uninstall.yaml", uninstallHeader, []string{"."}},
	} {
		rendered, err := r.render(kustomization{folders: file.folders})
		if err != nil {
			return fmt.Errorf("%s: %w", file.name, err)
		}
		content := append(fmt.Appendf(nil, file.header, r.Version), rendered...)
		if err := os.WriteFile(filepath.Join(r.Out, file.name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// kustomization names folders of the manifests.
type kustomization struct{ folders, components []string }

// render returns the objects in an order in which they can be created: CRDs and the namespace first, webhooks last.
func (r Release) render(of kustomization) ([]byte, error) {
	// An overlay like that of a user: kustomize takes bases by a relative path only.
	overlay, err := os.MkdirTemp(r.Out, "overlay")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(overlay)
	absolute, err := filepath.Abs(overlay)
	if err != nil {
		return nil, err
	}
	manifests, err := filepath.Abs(r.Manifests)
	if err != nil {
		return nil, err
	}
	base, err := filepath.Rel(absolute, manifests)
	if err != nil {
		return nil, err
	}

	k := types.Kustomization{
		TypeMeta:    types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		SortOptions: &types.SortOptions{Order: types.LegacySortOrder},
	}
	for _, folder := range of.components {
		k.Components = append(k.Components, filepath.Join(base, folder))
	}
	for _, folder := range of.folders {
		k.Resources = append(k.Resources, filepath.Join(base, folder))
	}
	for _, program := range programs {
		k.Images = append(k.Images, types.Image{
			Name:    DefaultRegistry + "/" + program.name,
			NewName: r.Registry + "/" + program.name,
			NewTag:  r.Version,
		})
	}
	data, err := yaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), data, 0o644); err != nil {
		return nil, err
	}

	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	objects, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), absolute)
	if err != nil {
		return nil, err
	}
	rendered, err := objects.AsYaml()
	if err != nil {
		return nil, err
	}
	// The image transformer does not look at arguments.
	return waitImage.ReplaceAll(rendered, []byte("--wait-image="+r.Registry+"/muster-wait:"+r.Version)), nil
}

var waitImage = regexp.MustCompile(`--wait-image=\S+`)
