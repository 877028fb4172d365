// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// answers fails the test unless one kubectl command prints all of these words.
func (w *world) answers(question, command string, words ...string) {
	w.t.Helper()
	out := w.kubectl(strings.Fields(command)...)
	for _, word := range words {
		if !strings.Contains(out, word) {
			w.t.Errorf("%s: kubectl %s does not print %q:\n%s", question, command, word, out)
		}
	}
}

// untilReason waits until a PodGroup has a reason.
func (w *world) untilReason(group, reason string) {
	w.t.Helper()
	w.until(group+" says "+reason, podGroups, func(objects []*unstructured.Unstructured) bool {
		for _, o := range objects {
			if is, _, _ := unstructured.NestedString(o.Object, "status", "reason"); o.GetName() == group && is == reason {
				return true
			}
		}
		return false
	})
}

// Six questions of new users. Each is answered by one command, which docs/troubleshooting.md and the guides name.
func TestQuestionsOfNewUsers(t *testing.T) {
	tellStories(t, map[string]func(*world){
		"why it waits": func(w *world) {
			w.apply(`
metadata: {name: big}
spec:
  replicas: 1
  template:
    cliques:
    - {name: leader, spec: {replicas: 1, podSpec: {}}}
    - {name: worker, spec: {replicas: 3, podSpec: {containers: [{name: main, image: registry.example/main:1, resources: {limits: {nvidia.com/gpu: 4}}}]}}}
`)
			w.untilReason("big-0", "TooLarge")
			w.answers("why does it wait", "describe pg big-0", "TooLarge", "needs 12 nvidia.com/gpu for 3 pods", "have 8 in all")
			w.answers("what is it made of", "describe pg big-0", "big-0-leader", "big-0-worker")
			w.until("the set says what its gang says", sets, func(objects []*unstructured.Unstructured) bool {
				return len(objects) == 1 && strings.Contains(conditionOf(objects[0], v1alpha1.ConditionAvailable, "message"), "TooLarge")
			})
			w.answers("why does the set wait", "describe pcs big", "the minimum of replica 0 is not bound: TooLarge: ", "(PodGroup big-0)")
			w.answers("and why does the pod", "get pods -o wide", "big-0-worker-0-")
		},
		"is the update stuck": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.answers("before the first edit", "describe pcs s", "UpdateComplete")
			w.holdAll()
			w.image(2, "web")
			r.reaches("s-0-web", "-0")
			w.answers("is the update stuck", "describe pcs s", "Updating", "updating replica 0")
			w.letGo()
			w.untilUpdated()
		},
		"why did my job fail": func(w *world) {
			w.apply(fmt.Sprintf(trainingJob, ""))
			w.untilJob("runs", "Running", 0)
			w.untilRunning(nil)
			w.answers("who holds the GPUs", "get pg -A", w.namespace, "3/3")
			w.exit(3, "job-0-launcher-0")
			w.kubectl("wait", "--for=jsonpath={.status.completionTime}", "pcs/job", "--timeout="+patience.String()) // as documented
			w.untilJob("has failed", "Failed", 0)
			w.answers("why did my job fail", "describe pcs job", "MaxRestartsExceeded", "container main exited with code 3")
			w.wantTable("pcs", "job", map[string]string{"PHASE": "Failed", "REASON": "MaxRestartsExceeded", "AVAILABLE": "0"})
		},
		"until when": func(w *world) {
			w.watched("1h")
			w.ready("chat-0-model-1-worker", false)
			_, deadline := w.untilBreached("chat-0-model-1-worker")
			w.untilEvent("chat", "TerminationDue")
			w.answers("until when", "get pcs chat -o wide", deadline)
			w.ready("chat-0-model-1-worker", true)
		},
	})
}
