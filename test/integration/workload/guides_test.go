// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// manifest is a YAML block of a document.
var manifest = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestManifestsOfTheGuides applies every manifest of README and docs, as a reader does who copies it, and the sample of
// topology, and waits until its gangs are admitted and its sets run. docs/configuration.md has configuration, not
// objects.
func TestManifestsOfTheGuides(t *testing.T) {
	// Not beside other tests: the pods select no nodes, and would run on nodes that are deleted when another test ends.
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

// documented runs the commands of a document that mention something in the namespace of the test, with these texts
// replaced, and returns what they print.
func (w *world) documented(document, mention string, replace ...string) string {
	w.t.Helper()
	text, err := os.ReadFile("../../../docs/" + document)
	w.must(err, "reading docs")
	bin, err := filepath.Abs("../../../bin")
	w.must(err, "finding bin")
	for _, block := range strings.Split(string(text), "```sh\n")[1:] {
		commands, _, _ := strings.Cut(block, "```")
		if !strings.Contains(commands, mention) {
			continue
		}
		commands = strings.NewReplacer(append(replace, "kubectl ", "kubectl --namespace="+w.namespace+" ")...).Replace(commands)
		shell := exec.CommandContext(w.ctx, "sh", "-ec", commands)
		shell.Env = append(os.Environ(), "KUBECONFIG="+cp.AdminKubeconfig(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		output, err := shell.CombinedOutput()
		if err != nil {
			w.t.Fatalf("docs/%s: %s\n%v: %s", document, commands, err, output)
		}
		return string(output)
	}
	w.t.Fatalf("docs/%s has no command with %q", document, mention)
	return ""
}

// TestCommandsOfTheGuides runs what the guides show about a set on the set of docs/lifecycle.md.
func TestCommandsOfTheGuides(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	text, err := os.ReadFile("../../../docs/lifecycle.md")
	w.must(err, "reading docs")
	w.apply(manifest.FindStringSubmatch(string(text))[1])
	w.untilAvailable("chat")
	says := func(output string, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(output, word) {
				t.Errorf("no %q in\n%s", word, output)
			}
		}
	}
	says(w.documented("lifecycle.md", "MinAvailableBreached"), "UNTIL", "podclique.grove.io/chat-0-router", "chat-0-model: ", `"reason":`)
	says(w.documented("updates.md", "REVISION is"), "REVISION", "chat-0-model-1-worker", "POD-TEMPLATE-HASH")
	says(w.documented("updates.md", "UPDATED: replicas"), "UPDATED", "condition met", "Progressing")
	says(w.documented("events.md", "kubectl events", "NAME", "chat", "podgroup/NAME", "podgroup/chat-0"), "Admitted", "Conditions:")
	for _, pod := range w.pods() {
		if strings.HasPrefix(pod.Name, "chat-0-router-1-") {
			w.documented("updates.md", "kubectl delete pod", "chat-0-router-1-x7k2p", pod.Name)
			return
		}
	}
	t.Error("there is no pod like chat-0-router-1-x7k2p")
}

// TestPolicyOfTheGuide: with the policy of docs/preemption.md, bound to a namespace, no gang there protects itself.
func TestPolicyOfTheGuide(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	text, err := os.ReadFile("../../../docs/preemption.md")
	w.must(err, "reading docs")
	_, policy, found := strings.Cut(string(text), "  ```yaml\n  apiVersion: admissionregistration.k8s.io/v1\n")
	policy, _, closed := strings.Cut(policy, "  ```\n")
	if !found || !closed {
		t.Fatal("docs/preemption.md has no policy")
	}
	policy = "apiVersion: admissionregistration.k8s.io/v1\n" + strings.ReplaceAll(policy[len("  "):], "\n  ", "\n")
	w.must(cp.ApplyYAML(w.ctx, policy), "creating the policy")
	w.must(cp.ApplyYAML(w.ctx, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-non-preemptible-gangs}
spec:
  policyName: no-non-preemptible-gangs
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+w.namespace+`}}}
`), "binding the policy")
	create := func(name, preemptibility string) error {
		return w.client.Create(w.ctx, &v2alpha2.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
			Spec:       v2alpha2.PodGroupSpec{MinMember: ptr.To(int32(1)), Preemptibility: v2alpha2.Preemptibility(preemptibility)},
		})
	}
	tries := 0
	// The API server learns of a policy after a moment, and without an event.
	w.must(wait.PollUntilContextTimeout(w.ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		tries++
		err := create(fmt.Sprint("protected-", tries), "non-preemptible")
		return err != nil && strings.Contains(err.Error(), "gangs have to be preemptible here"), nil
	}), "creating a gang that is refused")
	for _, allowed := range []string{"", "preemptible"} {
		w.must(create("plain"+allowed, allowed), "creating a gang that is allowed")
	}
}
