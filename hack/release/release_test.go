// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/yaml"
)

const version = "v0.0.0-test"

// release returns one of the programs in bin/linux-ARCH, which make release-dry-run builds.
func release(t *testing.T) Release {
	return Release{
		Version: version, Commit: "1a2b", Created: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC),
		Registry:      "registry.example.com/team",
		Architectures: []string{runtime.GOARCH}, Platforms: []string{"linux/" + runtime.GOARCH}, Binaries: "../../bin", Manifests: "../../manifests", Out: t.TempDir(),
	}
}

// writeRelease writes a release and returns its folder.
func writeRelease(t *testing.T) string {
	t.Helper()
	r := release(t)
	if err := r.Write(); err != nil {
		t.Fatal(err)
	}
	return r.Out
}

// readFiles returns the files below the folder with their content.
func readFiles(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		relative, _ := filepath.Rel(folder, path)
		found[relative] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRelease(t *testing.T) {
	out := writeRelease(t)
	t.Run("the same binaries give the same bytes", func(t *testing.T) { testEqual(t, out, writeRelease(t)) })
	t.Run("the programs start from their images", func(t *testing.T) { testPrograms(t, out) })
	t.Run("krew installs the plugin of kubectl", func(t *testing.T) { testPlugin(t, out) })
	t.Run("the images can be pushed", func(t *testing.T) { testPush(t, out) })
	t.Run("the chart installs what the kustomizations do", func(t *testing.T) { testChart(t, out) })
	t.Run("install.yaml has the images", func(t *testing.T) { testInstallFile(t, out) })
}

func testEqual(t *testing.T, out, again string) {
	one, two := readFiles(t, out), readFiles(t, again)
	if len(one) != len(two) {
		t.Errorf("%d files, then %d", len(one), len(two))
	}
	for file, content := range one {
		if two[file] != content {
			t.Errorf("%s differs", file)
		}
	}
}

// testPrograms unpacks the archives that docker load takes and starts their entrypoints: with root's rights as the user
// of the image, with nothing but its files.
func testPrograms(t *testing.T, out string) {
	for _, program := range programs {
		t.Run(program.name, func(t *testing.T) {
			archive := filepath.Join(out, program.name+"-"+version+"-linux-"+runtime.GOARCH+".tar")
			image, err := tarball.ImageFromPath(archive, nil)
			if err != nil {
				t.Fatal(err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if config.Config.User != user || config.Config.Labels["org.opencontainers.image.version"] != version {
				t.Errorf("user %q, labels %v", config.Config.User, config.Config.Labels)
			}

			root := t.TempDir()
			content := mutate.Extract(image)
			defer content.Close()
			unpack(t, content, root)
			cmd := exec.Command(filepath.Join(root, config.Config.Entrypoint[0]), "--version")
			if os.Getuid() == 0 {
				if err := os.Chmod(root, 0o755); err != nil {
					t.Fatal(err)
				}
				cmd = exec.Command(config.Config.Entrypoint[0], "--version")
				cmd.Dir = "/"
				cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
			}
			cmd.Env = []string{}
			output, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(output), "v") {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

// testPlugin does what krew does: it takes the archive of this platform, whose checksum the manifest has, and runs the
// program in it.
func testPlugin(t *testing.T, out string) {
	data, err := os.ReadFile(filepath.Join(out, ".krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Metadata.Name != "muster" || manifest.Spec.Version != version || len(manifest.Spec.Platforms) != 1 {
		t.Fatalf("%s", data)
	}
	platform := manifest.Spec.Platforms[0]
	if platform.Selector.MatchLabels["os"] != "linux" || platform.Selector.MatchLabels["arch"] != runtime.GOARCH {
		t.Errorf("the platform is %v", platform.Selector.MatchLabels)
	}
	archive := filepath.Join(out, path.Base(platform.URI))
	if sum, err := checksum(archive); err != nil || fmt.Sprintf("%x", sum) != platform.SHA256 {
		t.Errorf("checksum %x, %v, want %s", sum, err, platform.SHA256)
	}
	content, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	zip, err := gzip.NewReader(content)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	unpack(t, zip, root)
	if _, err := os.Stat(filepath.Join(root, "LICENSE")); err != nil {
		t.Error(err)
	}
	if output, err := exec.Command(filepath.Join(root, platform.Bin), "--version").CombinedOutput(); err != nil || !strings.Contains(string(output), "v") {
		t.Errorf("%v: %s", err, output)
	}
}

func unpack(t *testing.T, content io.Reader, root string) {
	t.Helper()
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, filepath.Clean("/"+header.Name)), data, header.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

func testPush(t *testing.T, out string) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	if err := Push(t.Context(), out, version, host+"/muster"); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		reference, err := name.NewTag(host + "/muster/" + program.name + ":" + version)
		if err != nil {
			t.Fatal(err)
		}
		index, err := remote.Index(reference)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil || len(manifest.Manifests) == 0 || manifest.Manifests[0].Platform.OS != "linux" {
			t.Errorf("%s: %v, %v", reference, manifest, err)
		}
	}
}

func testInstallFile(t *testing.T, out string) {
	data, err := os.ReadFile(filepath.Join(out, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	content := string(data)
	images := regexp.MustCompile(`(?:image: |image=)(\S+)`).FindAllStringSubmatch(content, -1)
	var names []string
	for _, match := range images {
		names = append(names, match[1])
	}
	slices.Sort(names)
	want := []string{
		"registry.example.com/team/muster-controller:" + version,
		"registry.example.com/team/muster-scheduler:" + version,
		"registry.example.com/team/muster-wait:" + version,
	}
	if !slices.Equal(names, want) {
		t.Errorf("images %q, want %q", names, want)
	}
	// So that the kubelet does not reject an image where a pod only has runAsNonRoot.
	users := regexp.MustCompile(`runAsGroup: (\d+)\s+runAsNonRoot: true\s+runAsUser: (\d+)`).FindAllStringSubmatch(content, -1)
	for _, match := range users {
		if match[2]+":"+match[1] != user {
			t.Errorf("the images run as %s, a Deployment as %s:%s", user, match[2], match[1])
		}
	}
	if len(users) != 2 {
		t.Errorf("%d Deployments have a user, want 2", len(users))
	}
	uninstall, err := os.ReadFile(filepath.Join(out, "uninstall.yaml"))
	if err != nil || strings.Contains(string(uninstall), "kind: CustomResourceDefinition") ||
		!strings.Contains(string(uninstall), "kind: Deployment") {
		t.Errorf("uninstall.yaml has a CRD, or no Deployment: %v", err)
	}
	if first := strings.Index(content, "kind: CustomResourceDefinition"); first < 0 || first > strings.Index(content, "kind: Deployment") {
		t.Error("the CRDs are not before the Deployments")
	}
}

func TestAFolderOfAnotherKindIsNotReplaced(t *testing.T) {
	out := t.TempDir()
	precious := filepath.Join(out, "thesis.txt")
	if err := os.WriteFile(precious, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := Release{Version: version, Binaries: "../../bin", Manifests: "../../manifests", Out: out}.Write()
	if err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}
