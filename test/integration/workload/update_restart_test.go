// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"testing"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// The command in docs/updates.md that restarts a workload without a change of its template replaces all pods, unit by
// unit, each time that it is run.
func TestRestartAsDocumented(t *testing.T) {
	tellStories(t, map[string]func(*world){
		"all cliques": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			for k := range 2 {
				replace := []string{"chat", "s"}
				if k > 0 { // the time has a resolution of a second
					replace = append(replace, "$(date -u +%Y-%m-%dT%H:%M:%SZ)", "again")
				}
				w.documented("updates.md", "restartedAt", replace...)
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
