// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// The output of kubectl get and kubectl wait during a rollout.
func TestRolloutAsSeenByUsers(t *testing.T) {
	tellStories(t, map[string]func(*world){
		"kubectl waits": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 2))
			wait := "--timeout=" + patience.String()
			image := func(tag int) {
				w.kubectl("patch", "pcs", "s", "--type=json", "-p", fmt.Sprintf(
					`[{"op": "replace", "path": "/spec/template/cliques/0/spec/podSpec/containers/0/image", "value": "registry.example/main:%d"}]`, tag))
			}
			w.kubectl("wait", "--for=condition=Progressing=False", wait, "pcs/s") // also if the template was never edited
			// Nothing is updated, so this does not wait for the count: that of a new replica may come after it is
			// available.
			w.kubectl("wait", "--for=jsonpath={.status.updatedReplicas}=2", wait, "pcs/s")
			w.wantTable("pcs", "s", map[string]string{"REPLICAS": "2", "UPDATED": "2", "UPDATE": ""})
			image(2)
			w.kubectl("wait", "--for=condition=Progressing=False", wait, "pcs/s")
			w.checkUpdated()
			r.was(map[string]string{"s-1-web": "-0 +0 -1 +1 -2 +2", "s-0-web": "-0 +0 -1 +1 -2 +2"})
			image(3)
			w.kubectl("wait", fmt.Sprintf("--for=jsonpath={.status.observedGeneration}=%d", w.set().Generation), wait, "pcs/s")
			w.kubectl("wait", "--for=jsonpath={.status.updatedReplicas}=2", wait, "pcs/s")
			for _, p := range w.pods() {
				if p.Labels[v1alpha1.LabelTemplateName] == "web" && p.Spec.Containers[0].Image != "registry.example/main:3" {
					w.t.Errorf("all replicas are said to be updated, and pod %s has image %s", p.Name, p.Spec.Containers[0].Image)
				}
			}
			w.kubectl("wait", "--for=condition=Progressing=False", wait, "pcs/s")
			w.checkUpdated()
			w.wantTable("pcs", "s", map[string]string{"REPLICAS": "2", "AVAILABLE": "2", "UPDATED": "2", "UPDATE": "UpdateComplete"})
			w.wantTable("pcsg", "s-0-g", map[string]string{"REPLICAS": "2", "UPDATED": "2"})
			w.wantTable("pclq", "s-0-web", map[string]string{"REPLICAS": "3", "UPDATED": "3", "UPDATE": "UpdateComplete"})
		},
		"revisions": func(w *world) {
			w.apply(fmt.Sprintf(rolled, 0))
			for tag := 2; tag <= 13; tag++ {
				w.untilObserved()
				w.image(tag, "web")
			}
			w.untilUpdated()
			w.wantRevisions(4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
			listed := strings.Fields(w.kubectl("get", "controllerrevisions", "-l", v1alpha1.LabelPartOf+"=s", "-o", "jsonpath={.items[*].metadata.name}"))
			if len(listed) != 10 {
				w.t.Errorf("kubectl lists %v", listed)
			}
			if out := w.kubectl("get", "controllerrevision", "s-"+*w.set().Status.CurrentGenerationHash, "-o", "jsonpath={.metadata.ownerReferences[0].kind}/{.metadata.ownerReferences[0].name} {.revision}"); out != "PodCliqueSet/s 13" {
				w.t.Errorf("the present revision: %s", out)
			}
			w.delete(sets, "s")
			w.untilGone()
			w.until("the revisions go with the set", revisions, func(objects []*unstructured.Unstructured) bool { return len(objects) == 0 })
		},
		"the status": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.holdAll()
			w.image(2, "web", "worker")
			r.reaches("s-0-web", "-0")
			r.reaches("s-0-g", "-0")
			first := w.heldPod("s-0-web-0")
			w.letGo("s-0-web-0")
			r.reaches("s-0-web", "-0 +0 -1")
			second, hash := w.heldPod("s-0-web-1"), *w.set().Status.CurrentGenerationHash

			w.wantStatus("pcs", "s", `{.status.updateProgress.currentlyUpdating.replicaIndex}`, "0")
			w.wantStatus("pcs", "s", `{.status.updateProgress.updateEndedAt}`, "")
			w.wantStatus("pclq", "s-0-web", `{.status.updateProgress.readyPodsSelectedToUpdate.current}`, second)
			w.wantStatus("pclq", "s-0-web", `{.status.updateProgress.readyPodsSelectedToUpdate.completed[*]}`, first)
			w.wantStatus("pclq", "s-0-web", `{.status.updateProgress.podCliqueSetGenerationHash}`, hash)
			w.wantStatus("pclq", "s-0-web", `{.status.updateProgress.podTemplateHash}`, w.kubectl("get", "pclq", "s-0-web", "-o", `jsonpath={.metadata.labels.grove\.io/pod-template-hash}`))
			w.wantStatus("pclq", "s-0-web", `{.status.updateProgress.updateEndedAt}`, "")
			w.wantStatus("pcsg", "s-0-g", `{.status.updateProgress.readyReplicaIndicesSelectedToUpdate.current}`, "0") // zero, but there
			w.wantStatus("pcsg", "s-0-g", `{.status.updateProgress.podCliqueSetGenerationHash}`, hash)
			w.letGo()
			w.untilUpdated()
			w.wantStatus("pcs", "s", `{.status.updateProgress.currentlyUpdating}`, "")
			for _, object := range [][2]string{{"pcs", "s"}, {"pclq", "s-0-web"}, {"pcsg", "s-0-g"}} {
				if w.kubectl("get", object[0], object[1], "-o", "jsonpath={.status.updateProgress.updateEndedAt}") == "" {
					w.t.Errorf("%s %s: its update has not ended", object[0], object[1])
				}
			}
			w.wantStatus("pclq", "s-0-web", `{.status.currentPodCliqueSetGenerationHash}`, hash)
			w.wantStatus("pcsg", "s-0-g", `{.status.currentPodCliqueSetGenerationHash}`, hash)
			w.wantStatus("pcsg", "s-0-g", `{.status.updateProgress.readyReplicaIndicesSelectedToUpdate.completed[*]}`, "0 1")
			for _, reason := range []string{v1alpha1.EventUpdateStarted, v1alpha1.EventReplicaUpdated, v1alpha1.EventUpdateCompleted} {
				w.toldOnce("s", reason)
			}
		},
	})
}

// revisions are the stored templates of sets.
var revisions = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")

// wantStatus fails the test unless kubectl prints this of an object.
func (w *world) wantStatus(kind, name, path, want string) {
	w.t.Helper()
	if got := w.kubectl("get", kind, name, "-o", "jsonpath="+path); got != want {
		w.t.Errorf("%s %s: %s is %q, want %q", kind, name, path, got, want)
	}
}

// wantTable fails the test unless kubectl get -o wide shows these values in the columns of an object. They are parsed
// as the API server prints them: a value may be empty.
func (w *world) wantTable(kind, name string, want map[string]string) {
	w.t.Helper()
	table := w.kubectl("get", kind, name, "-o", "wide")
	head, row, _ := strings.Cut(strings.TrimSuffix(table, "\n"), "\n")
	for column, value := range want {
		at := strings.Index(head+" ", column+" ")
		for at > 0 && head[at-1] != ' ' { // the end of the name of another column
			next := strings.Index((head + " ")[at+1:], column+" ")
			if next < 0 {
				at = -1
				break
			}
			at += 1 + next
		}
		if at < 0 || at > len(row) || !strings.HasPrefix(row[at:]+" ", value+" ") {
			w.t.Errorf("kubectl get %s: column %s is not %q\n%s", kind, column, value, table)
		}
	}
}

// heldPod returns the name of the terminating pod of a host name.
func (w *world) heldPod(host string) string {
	w.t.Helper()
	for _, p := range w.pods() {
		if p.Spec.Hostname == host && p.DeletionTimestamp != nil {
			return p.Name
		}
	}
	w.t.Fatalf("no pod %s ends", host)
	return ""
}
