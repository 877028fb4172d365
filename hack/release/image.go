// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// program is one that has an image.
type program struct{ name, description string }

var programs = []program{
	{"muster-scheduler", "The gang scheduler of Muster"},
	{"muster-controller", "The workload controllers and webhooks of Muster"},
	{"muster-wait", "The init container of pods of Muster that start after others"},
}

// user is the one that all programs run as, 65532 in the manifests too: "nonroot" of the distroless images.
const user = "65532:65532"

// writeImage writes the layout of the program, and for each architecture an archive and the list of modules.
func (r Release) writeImage(p program) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range r.Architectures {
		binary := filepath.Join(r.Binaries, "linux-"+architecture, p.name)
		image, err := r.image(p, architecture, binary)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})

		file := filepath.Join(r.Out, fmt.Sprintf("%s-%s-linux-%s", p.name, r.Version, architecture))
		reference, err := name.NewTag(path.Join(r.Registry, p.name) + ":" + r.Version)
		if err != nil {
			return err
		}
		if err := tarball.WriteToFile(file+".tar", reference, image); err != nil {
			return err
		}
		if err := r.writeModules(p, binary, file+".cdx.json"); err != nil {
			return fmt.Errorf("modules of %s: %w", binary, err)
		}
	}
	folder := filepath.Join(r.Out, "images", p.name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	_, err := layout.Write(folder, index)
	return err
}

// image returns one with the binary as its only file.
func (r Release) image(p program, architecture, binary string) (v1.Image, error) {
	layer, err := r.layer(binary)
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{CreatedBy: "hack/release", Created: v1.Time{Time: r.Created}},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: r.Created}
	config.OS, config.Architecture = "linux", architecture
	config.Config.User = user
	config.Config.Entrypoint = []string{"/" + p.name}
	config.Config.Labels = map[string]string{ // https://github.com/opencontainers/image-spec/blob/main/annotations.md
		"org.opencontainers.image.title":       p.name,
		"org.opencontainers.image.description": p.description,
		"org.opencontainers.image.version":     r.Version,
		"org.opencontainers.image.revision":    r.Commit,
		"org.opencontainers.image.source":      repository,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	return mutate.ConfigFile(image, config)
}

func (r Release) layer(binary string) (v1.Layer, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	header := tar.Header{
		Typeflag: tar.TypeReg, Name: filepath.Base(binary), Mode: 0o755, Size: int64(len(content)), ModTime: r.Created,
	}
	if err := w.WriteHeader(&header); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// Push sends the images of the folder, with all architectures, to the registry, with the credentials of docker login.
func Push(ctx context.Context, out, version, registry string) error {
	for _, program := range programs {
		index, err := layout.ImageIndexFromPath(filepath.Join(out, "images", program.name))
		if err != nil {
			return fmt.Errorf("image of %s (make release writes it): %w", program.name, err)
		}
		reference, err := name.NewTag(path.Join(registry, program.name) + ":" + version)
		if err != nil {
			return err
		}
		if err := remote.WriteIndex(reference, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("push %s: %w", reference, err)
		}
		fmt.Println("pushed", reference)
	}
	return nil
}
