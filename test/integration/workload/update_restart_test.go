// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// The command in docs/updates.md that restarts a workload without a change of its template replaces all pods, unit by
// unit, each time that it is run.
func TestRestartAsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/updates.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("(?s)## Restart without a change.*?```sh\n(.*?)```").FindStringSubmatch(string(text))
	if command == nil {
		t.Fatal("docs/updates.md has no command for a restart")
	}
	tellStories(t, map[string]func(*world){
		"all cliques": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			for k := range 2 {
				script := strings.NewReplacer("kubectl ", "$KUBECTL --kubeconfig=$CONFIG --namespace="+w.namespace+" ", "chat", "s").Replace(command[1])
				if k > 0 { // the time has a resolution of a second
					script = strings.ReplaceAll(script, "$(date -u +%Y-%m-%dT%H:%M:%SZ)", "again")
				}
				shell := exec.CommandContext(w.ctx, "sh", "-ec", script)
				shell.Env = append(os.Environ(), "KUBECTL=../../../bin/kubectl", "CONFIG="+cp.AdminKubeconfig())
				if out, err := shell.CombinedOutput(); err != nil {
					w.t.Fatalf("%s\n%v: %s", script, err, out)
				}
				w.untilUpdated()
			}
			r.was(map[string]string{
				"s-0-web": "-0 +0 -1 +1 -2 +2 -0 +0 -1 +1 -2 +2", "s-0-g": "-0 +0 -1 +1 -0 +0 -1 +1"})
			for _, p := range w.pods() {
				if p.Annotations["kubectl.kubernetes.io/restartedAt"] != "again" {
					w.t.Errorf("pod %s of clique %s has annotations %v", p.Name, p.Labels[v1alpha1.LabelTemplateName], p.Annotations)
				}
			}
		},
	})
}
