// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// A site's own plugin in muster-scheduler (docs/decisions, G19): plans of gangs ask it, and its nodes stay empty.
func TestPluginOfASite(t *testing.T) {
	c := newCluster(t, 5)
	c.change(c.nodes[0], func(n *corev1.Node) { n.Labels["example.com/quarantine"] = "yes" })
	c.startSite()
	c.createGang("too-large", 5, 8)
	c.untilSays("too-large", v2alpha2.ReasonFragmented, "4 of 5 pods can be placed", "1 node: node(s) are in quarantine")
	c.createGang("fits", 4, 8) // all other nodes
	c.untilBound("fits", 4)
	c.untilAdmitted("fits")
}

// startSite builds test/sitescheduler and runs it with the deployed configuration and its plugin.
func (c *cluster) startSite() {
	c.t.Helper()
	binary := filepath.Join(c.t.TempDir(), "sitescheduler")
	// With the flags of the Makefile, whatever those of this test are: with other flags a whole scheduler is compiled
	// again, which takes five to ten minutes on a busy machine.
	build := exec.CommandContext(c.ctx, "go", "build", "-o", binary, "../../sitescheduler")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	began := time.Now()
	if out, err := build.CombinedOutput(); err != nil {
		c.t.Fatalf("building the scheduler of the site: %v after %s\n%s", err, time.Since(began), out)
	}
	c.t.Logf("built in %s", ms(time.Since(began)))
	kubeconfig, err := cp.ServiceAccountKubeconfig(c.ctx, controlplane.MusterNamespace, "muster-scheduler")
	c.must(err, "making a kubeconfig")
	var config map[string]any
	c.must(yaml.Unmarshal(schedulerConfig(c.t, settings{lease: map[string]any{"leaderElect": false}}), &config), "reading the configuration")
	config["clientConnection"].(map[string]any)["kubeconfig"] = kubeconfig
	filter := config["profiles"].([]any)[0].(map[string]any)["plugins"].(map[string]any)["filter"].(map[string]any)
	filter["enabled"] = append(filter["enabled"].([]any), map[string]any{"name": "Quarantine"})
	content, err := yaml.Marshal(config)
	c.must(err, "writing the configuration")
	file := filepath.Join(c.t.TempDir(), "config.yaml")
	c.must(os.WriteFile(file, content, 0o644), "writing the configuration")
	port, err := controlplane.FreePort()
	c.must(err, "finding a port")
	c.scheduler = cp.NewProcess(controlplane.ProcessOptions{
		Name: "sitescheduler", Path: binary, ReadyURL: fmt.Sprintf("https://127.0.0.1:%d/readyz", port),
		Args: []string{"--config=" + file, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "-v=2"},
	})
	c.restart()
}
