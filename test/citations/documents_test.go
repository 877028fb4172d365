// SPDX-License-Identifier: Apache-2.0

package citations

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// runs are what users can copy from the documents, and the test that runs or applies it: shell commands and manifests
// by a text in them, "" for all others of the document. Blocks of commands without a language are those that no test
// can run: they need a registry, a network or hours.
var runs = []struct{ document, language, mention, test string }{
	{"README.md", "yaml", "", "TestManifestsOfTheGuides"},
	{"README.md", "sh", "kubectl muster why mid", "TestGuide"},
	{"docs/configuration.md", "yaml", "pluginConfig:\n- name: GangAdmission", "TestArgumentsAsDocumented"},
	{"docs/configuration.md", "yaml", "profiles:", "TestASecondProfileIsASecondStanza"},
	{"docs/configuration.md", "yaml", "kustomize.config.k8s.io", "TestOverlayOfTheDocs"},
	{"docs/configuration.md", "yaml", "components:", "TestOverlayOfTheDocs"},
	{"docs/configuration.md", "sh", "scheduling.run.ai_podgroups.yaml", "TestTheSchedulerAlone"},
	{"docs/configuration.md", "sh", "delete -f manifests/controller", "TestTheSchedulerAlone"},
	{"docs/configuration.md", "sh", "pod-tracking", "TestInstallAndUninstall"},
	{"docs/configuration.md", "sh", "delete -k manifests/crds", "TestInstallAndUninstall"},
	{"docs/configuration.md", "sh", "", "TestOperations"},
	{"docs/events.md", "sh", "", "TestCommandsOfTheGuides"},
	{"docs/kueue.md", "yaml", "", "TestManifestsOfTheGuides"},
	{"docs/lifecycle.md", "yaml", "", "TestManifestsOfTheGuides"},
	{"docs/lifecycle.md", "sh", "", "TestCommandsOfTheGuides"},
	{"docs/migration.md", "yaml", "scheduling.x-k8s.io", "TestFromCoscheduling"},
	{"docs/migration.md", "yaml", "scheduling.volcano.sh", "TestFromVolcano"},
	{"docs/migration.md", "yaml", "scheduling.k8s.io/v1beta1", "TestFromTheInTreeGangScheduler"},
	{"docs/migration.md", "yaml", "", "TestFromKAI"},
	{"docs/operations.md", "sh", "", "TestOperations"},
	{"docs/preemption.md", "yaml", "ResourceQuota", "TestPriorityClassesAreTheDocumentedOnes"},
	{"docs/preemption.md", "yaml", "ValidatingAdmissionPolicy", "TestPolicyOfTheGuide"},
	{"docs/security.md", "sh", "", "TestOperations"},
	{"docs/topology.md", "yaml", "", "TestManifestsOfTheGuides"},
	{"docs/training.md", "yaml", "", "TestManifestsOfTheGuides"},
	{"docs/tutorial.md", "sh", "", "TestYourFirstGang"},
	{"docs/updates.md", "yaml", "", "TestManifestsOfTheGuides"},
	{"docs/updates.md", "sh", "restartedAt", "TestRestartAsDocumented"},
	{"docs/updates.md", "sh", "", "TestCommandsOfTheGuides"},
	{"docs/workloads.md", "yaml", "", "TestManifestsOfTheGuides"},
	{"docs/workloads.md", "yml", "", "TestRules"},
}

// block is a fenced block with a language, also in a list.
var block = regexp.MustCompile("(?ms)^ *```([a-z]+)\n(.*?)^ *```$")

// TestDocumentsAreRun: every command and manifest that the documents show as one to copy is run by a test.
func TestDocumentsAreRun(t *testing.T) {
	t.Parallel()
	repository := os.DirFS("../..")
	l, err := newLibrary(repository)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := fs.Glob(repository, "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	used := make([]bool, len(runs))
	for _, document := range append(documents, "README.md", "CONTRIBUTING.md") {
		content, err := fs.ReadFile(repository, document)
		if err != nil {
			t.Fatal(err)
		}
	blocks:
		for _, match := range block.FindAllStringSubmatch(string(content), -1) {
			language, text := match[1], match[2]
			if language == "go" {
				continue
			}
			for i, r := range runs {
				if r.document == document && r.language == language && strings.Contains(text, r.mention) {
					used[i] = true
					continue blocks
				}
			}
			t.Errorf("%s: no test runs this %s:\n%s", document, language, text)
		}
	}
	for i, r := range runs {
		if !l.hasTest(r.test) {
			t.Errorf("%s, %q: there is no test %s", r.document, r.mention, r.test)
		}
		if !used[i] {
			t.Errorf("%s has no %s with %q, which %s is said to run", r.document, r.language, r.mention, r.test)
		}
	}
}

var declared = regexp.MustCompile(`Subsystem:\s*"muster",\s*Name:\s*"(\w+)"`)

// TestMetricsAreInTheReference: docs/metrics.md, which is made of what the programs register, has every metric of the
// code.
func TestMetricsAreInTheReference(t *testing.T) {
	t.Parallel()
	repository := os.DirFS("../..")
	reference, err := fs.ReadFile(repository, "docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	if err := fs.WalkDir(repository, "pkg", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := fs.ReadFile(repository, name)
		for _, match := range declared.FindAllSubmatch(content, -1) {
			found++
			if !strings.Contains(string(reference), "`muster_"+string(match[1])+"`") {
				t.Errorf("%s declares muster_%s, which docs/metrics.md lacks: is it registered? run `make docs`", name, match[1])
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("only %d metrics were found", found)
	}
}
