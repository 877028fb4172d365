// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/test/controlplane"
)

// The plugins in another scheduler (docs/decisions, G19), which does not schedule the members of a plan back to back:
// gangs are admitted, and are not left partly bound, even if plain pods take their nodes. Progress among such plain pods
// is not guaranteed: they stop after a while.
func TestForeignScheduler(t *testing.T) {
	c := newCluster(t, 5)
	c.startForeign()
	c.createGang("alone", 8, 4)
	c.untilBound("alone", 8)
	c.untilAdmitted("alone")
	c.deleteGang("alone")
	contend(c, 3*time.Second, false)
}

// startForeign builds test/foreignscheduler and runs it with the deployed configuration.
func (c *cluster) startForeign() {
	c.t.Helper()
	binary := filepath.Join(c.t.TempDir(), "foreignscheduler")
	// With the flags of the Makefile, whatever those of this test are: with other flags a whole scheduler is compiled
	// again, which takes five to ten minutes on a busy machine.
	build := exec.CommandContext(c.ctx, "go", "build", "-o", binary, "../../foreignscheduler")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	began := time.Now()
	if out, err := build.CombinedOutput(); err != nil {
		c.t.Fatalf("building a foreign scheduler: %v after %s\n%s", err, time.Since(began), out)
	}
	c.t.Logf("built in %s", ms(time.Since(began)))
	kubeconfig, err := cp.ServiceAccountKubeconfig(c.ctx, controlplane.MusterNamespace, "muster-scheduler")
	c.must(err, "making a kubeconfig")
	var config map[string]any
	c.must(yaml.Unmarshal(schedulerConfig(c.t, settings{lease: map[string]any{"leaderElect": false}}), &config), "reading the configuration")
	config["clientConnection"].(map[string]any)["kubeconfig"] = kubeconfig
	content, err := yaml.Marshal(config)
	c.must(err, "writing the configuration")
	file := filepath.Join(c.t.TempDir(), "config.yaml")
	c.must(os.WriteFile(file, content, 0o644), "writing the configuration")
	port, err := controlplane.FreePort()
	c.must(err, "finding a port")
	c.scheduler = cp.NewProcess(controlplane.ProcessOptions{
		Name: "foreignscheduler", Path: binary, ReadyURL: fmt.Sprintf("https://127.0.0.1:%d/readyz", port),
		Args: []string{"--config=" + file, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "-v=2"},
	})
	c.restart()
}
