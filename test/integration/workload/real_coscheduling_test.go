//go:build workloads

// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/test/controlplane"
)

var coschedulingGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

const nginxGroup = `
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: nginx}
spec: {scheduleTimeoutSeconds: 10, minMember: 3}
`

const nginxReplicas = `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: nginx, labels: {app: nginx}}
spec:
  replicas: 6
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {name: nginx, labels: {app: nginx, scheduling.x-k8s.io/pod-group: nginx}}
    spec:
      schedulerName: muster-scheduler
      containers: [{name: nginx, image: nginx, resources: {limits: {cpu: 3000m, memory: 500Mi}, requests: {cpu: 3000m, memory: 500Mi}}}]
`

// TestRealCoscheduling: the demo of Coscheduling, with room for 3 of 6 pods of which 3 are needed. The controller of
// scheduler-plugins runs beside Muster and writes the status of the PodGroup; when nothing happens, neither writes.
func TestRealCoscheduling(t *testing.T) {
	ctx := t.Context()
	ownPlane(t, ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true})
	startProjects(t, ctx, "scheduler-plugins")
	w := newWorldFor(t, 0, 20*time.Minute)
	witness := realKind{size: 3, gangOf: byLabels("scheduling.x-k8s.io/pod-group")}.watch(w)
	phase := func(want string) {
		t.Helper()
		w.until("the PodGroup of Coscheduling is "+want, coschedulingGroups, func(groups []*unstructured.Unstructured) bool {
			if len(groups) != 1 {
				return false
			}
			is, _, _ := unstructured.NestedString(groups[0].Object, "status", "phase")
			return is == want
		})
	}
	versions := func() string {
		t.Helper()
		var all []string
		for _, kind := range []schema.GroupVersionResource{coschedulingGroups, podGroups} {
			list, err := w.dynamic.Resource(kind).Namespace(w.namespace).List(w.ctx, metav1.ListOptions{})
			w.must(err, "listing PodGroups")
			for _, o := range list.Items {
				all = append(all, o.GetResourceVersion())
			}
		}
		return strings.Join(all, " ")
	}

	w.addSlots(2)
	replicas, group := read(w, nginxReplicas), read(w, nginxGroup)
	createWhenServed(w, replicas)
	w.untilPodCount(6)
	createWhenServed(w, group)
	w.untilShort(6)
	phase("Scheduling")
	if n := w.boundPods(); n > 0 {
		t.Fatalf("%d pods of a gang of 3 started, with room for 2", n)
	}
	w.addSlots(1)
	w.untilBoundPods(3)
	phase("Running")
	w.addSlots(3)
	w.untilReadyPods(6)
	for before, rounds := "", 0; before != versions(); rounds++ {
		if rounds == 20 {
			t.Fatal("the PodGroups are written all the time")
		}
		before = versions()
		witness.check("all run")
	}

	lost := w.pods()[0].Spec.NodeName
	w.must(cp.LoseNode(w.ctx, lost), "losing a node")
	_, err := cp.RemoveNode(w.ctx, lost)
	w.must(err, "removing the node")
	w.until("a pod waits", podsKind, func(pods []*unstructured.Unstructured) bool { return len(pods) == 6 && boundAmong(pods) == 5 })
	w.addSlots(1)
	w.untilReadyPods(6) // whatever the PodGroup of Coscheduling says: it is Failed for good if its controller saw the lost pod fail
	witness.check("another node has come")

	w.must(w.client.Delete(w.ctx, group), "deleting the PodGroup of Coscheduling")
	w.untilNames(podGroups)
	w.untilReadyPods(6)
	w.must(w.client.Delete(w.ctx, replicas, client.PropagationPolicy(background)), "deleting the ReplicaSet")
	w.untilGone()
}
