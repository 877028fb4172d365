// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-project/muster/test/controlplane"
)

// manifest is a YAML block of a document.
var manifest = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestManifestsOfTheGuides applies every manifest of README and docs, as a reader does who copies it, and the sample of
// topology, and waits until its gangs are admitted and its sets run. docs/configuration.md has configuration, not
// objects.
func TestManifestsOfTheGuides(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	applied := 0
	for _, file := range append(files, "../../../README.md", "../../../manifests/samples/topology.yaml") {
		switch filepath.Base(file) {
		case "configuration.md", "preemption.md":
			continue // their manifests change the cluster for all
		case "migration.md":
			continue // its manifests need CRDs of others: TestFromCoscheduling, TestFromVolcano, TestFromTheInTreeGangScheduler
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(file) == ".yaml" {
			content = []byte("```yaml\n" + string(content) + "```\n")
		}
		for _, block := range manifest.FindAllStringSubmatch(string(content), -1) {
			applied++
			w := newWorld(t, 0)
			names, err := cp.CreateNodes(w.ctx, controlplane.NodeOptions{Count: 8, GPUs: 8, NamePrefix: w.namespace, Labels: map[string]string{
				"world": w.namespace, "topology.example.com/leaf": "l0", "topology.example.com/spine": "s0",
			}})
			w.must(err, "creating nodes")
			w.nodes = names
			objects := filepath.Join(t.TempDir(), "objects.yaml")
			if err := os.WriteFile(objects, []byte(block[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if output := w.kubectl("apply", "--server-side", "-f", objects); strings.Contains(output, "Warning") {
				t.Errorf("%s: a manifest gives a warning:\n%s\n%s", file, output, block[1])
			}
			if strings.Contains(block[1], "kind: PodCliqueSet") {
				w.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pcs", "--all", "--timeout=60s")
			}
			w.kubectl("wait", "--for=create", "pg", "--all", "--timeout=60s")
			w.kubectl("wait", "--for=condition=Admitted", "pg", "--all", "--timeout=60s")
			w.kubectl("delete", "pcs,pg,jobs", "--all", "--cascade=foreground", "--timeout=60s")
		}
	}
	if applied < 6 {
		t.Errorf("%d manifests found, want at least those of README, topology.md, training.md, lifecycle.md and updates.md", applied)
	}
}
