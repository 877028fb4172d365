// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

func none(objects []*unstructured.Unstructured) bool { return len(objects) == 0 }

// watchIndices fails the test if two running pods of one PodClique ever have the same index. The returned function ends
// the watch.
func (w *world) watchIndices() (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	reported := map[string]bool{}
	go func() {
		defer close(done)
		_ = controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			seen := map[string]string{}
			for _, p := range pods {
				if p.DeletionTimestamp != nil || len(p.OwnerReferences) == 0 {
					continue
				}
				key := string(p.OwnerReferences[0].UID) + "/" + p.Labels[v1alpha1.LabelPodIndex]
				if other := seen[key]; other != "" && !reported[key] {
					reported[key] = true
					w.t.Errorf("pods %s and %s have the same index of the same PodClique", other, p.Name)
				}
				seen[key] = p.Name
			}
			return false
		})
	}()
	return func() { cancel(); <-done }
}

// small is a set of one clique with one pod a replica.
func small(set string, cliques ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "metadata: {name: %s}\nspec:\n  replicas: 1\n  template:\n    cliques:\n", set)
	for _, c := range cliques {
		fmt.Fprintf(&text, "    - name: %s\n      spec: {replicas: 1, podSpec: {}}\n", c)
	}
	return text.String()
}

func TestSameNameInTwoNamespaces(t *testing.T) {
	one, two := newWorld(t, 1), newWorld(t, 1)
	for _, w := range []*world{one, two} {
		w.apply(service2)
	}
	for _, w := range []*world{one, two} {
		w.untilPods(map[string]int{"s-0-w": 4}, true)
	}
	one.scale(cliques, "s-0-w", 2)
	one.untilPods(map[string]int{"s-0-w": 2}, true)
	two.untilPods(map[string]int{"s-0-w": 4}, true)
	one.delete(sets, "s")
	one.untilGone()
	two.untilPods(map[string]int{"s-0-w": 4}, true)
	two.untilAvailable("s")
}

// service2 is one clique that fills a node.
const service2 = `
metadata: {name: s}
spec:
  replicas: 1
  template:
    cliques:
    - name: w
      spec:
        replicas: 4
        podSpec: {containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 2}}}]}
`

// A quota admits half of the pods: no gang is partly started, the status has the reason, and when the quota is raised
// the gang starts without intervention.
func TestQuotaStopsHalfOfThePods(t *testing.T) {
	w := newWorld(t, 1)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "few"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
	}
	w.must(w.client.Create(w.ctx, quota), "creating the quota")
	w.until("the quota is counted", corev1.SchemeGroupVersion.WithResource("resourcequotas"), func(objects []*unstructured.Unstructured) bool {
		_, found, _ := unstructured.NestedMap(objects0(objects), "status", "hard")
		return found
	})
	w.apply(service2)
	w.untilPods(map[string]int{"s-0-w": 2}, false)
	w.untilCondition(cliques, "s-0-w", v1alpha1.ConditionReplicaFailure, "True")
	w.until("the message names the quota", cliques, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && strings.Contains(conditionOf(objects[0], v1alpha1.ConditionReplicaFailure, "message"), "exceeded quota: few")
	})
	for _, p := range w.pods() {
		if p.Spec.NodeName != "" {
			t.Errorf("pod %s was bound though the gang cannot be complete", p.Name)
		}
	}
	w.must(w.client.Patch(w.ctx, quota, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hard":{"pods":"10"}}}`))), "raising the quota")
	w.untilPods(map[string]int{"s-0-w": 4}, true)
	w.untilAvailable("s")
	w.until("the failure is forgotten", cliques, func(objects []*unstructured.Unstructured) bool {
		errors, _, _ := unstructured.NestedSlice(objects0(objects), "status", "lastErrors")
		return len(objects) == 1 && len(errors) == 0 && conditionOf(objects[0], v1alpha1.ConditionReplicaFailure, "status") == ""
	})
}

// A rejection by the API server for one replica does not prevent scaling of others, nor the creation of new ones,
// except for objects that are rejected there too.
func TestRefusedForOneReplica(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(strings.NewReplacer("replicas: 1\n  template", "replicas: 2\n  template", "replicas: 4", "replicas: 2", "nvidia.com/gpu: 2", "cpu: 1").Replace(service2))
	w.untilPods(map[string]int{"s-0-w": 2, "s-1-w": 2}, true)
	w.untilAvailable("s")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceServices: resource.MustParse("0")}},
	}
	w.must(w.client.Create(w.ctx, quota), "creating the quota")
	w.until("the quota is counted", corev1.SchemeGroupVersion.WithResource("resourcequotas"), func(objects []*unstructured.Unstructured) bool {
		_, found, _ := unstructured.NestedMap(objects0(objects), "status", "hard")
		return found
	})
	w.delete(services, "s-0")
	w.untilCondition(sets, "s", v1alpha1.ConditionReplicaFailure, "True")
	w.scale(cliques, "s-1-w", 1)
	w.untilPods(map[string]int{"s-0-w": 2, "s-1-w": 1}, true)
	w.untilLeaf("s-1", "s-1-w", 1)
	w.scale(sets, "s", 4)
	w.untilPods(map[string]int{"s-0-w": 2, "s-1-w": 1, "s-2-w": 2, "s-3-w": 2}, true)
	w.must(w.client.Delete(w.ctx, quota), "deleting the quota")
	w.untilNames(services, "s-0", "s-1", "s-2", "s-3")
	w.until("the failure is forgotten", sets, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && conditionOf(objects[0], v1alpha1.ConditionReplicaFailure, "status") == ""
	})
}

// A set is deleted and immediately created again under the same name: the new workload is complete, and no object of
// the old one is left.
func TestRecreatedUnderTheSameName(t *testing.T) {
	w := newWorld(t, 4)
	w.apply(service)
	w.untilPods(servicePods("llm"), true)
	old := map[string]bool{}
	for _, p := range w.pods() {
		old[string(p.UID)] = true
	}
	stop := w.watchIndices()
	for range 3 {
		w.delete(sets, "llm")
		w.until("the set is gone", sets, none)
		w.apply(service)
	}
	w.untilPods(servicePods("llm"), true)
	w.untilAvailable("llm")
	stop()
	for _, p := range w.pods() {
		if old[string(p.UID)] {
			t.Errorf("pod %s is of the first workload", p.Name)
		}
	}
	w.checkIndices()
}

// Objects that the controllers own and a user deletes are created again, with the replicas to which they had been
// scaled.
func TestOwnedObjectsDeletedByHand(t *testing.T) {
	w := newWorld(t, 4)
	w.apply(service)
	w.untilPods(servicePods("llm"), true)
	w.scale(cliques, "llm-0-frontend", 4)
	w.scale(groups, "llm-0-prefill", 3)
	want := servicePods("llm")
	want["llm-0-frontend"], want["llm-0-prefill-2-pworker"] = 4, 2
	w.untilPods(want, true)
	w.untilRecorded(map[string]int64{"frontend of 0": 4, "prefill of 0": 3})
	for _, o := range []client.Object{
		&v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "llm-0"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "llm-0"}},
		&v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "llm-0-frontend"}},
		&v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "llm-0-decode-0-dworker"}},
		&v1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: "llm-0-prefill"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: w.pods()[0].Name}},
	} {
		o.SetNamespace(w.namespace)
		w.must(client.IgnoreNotFound(w.client.Delete(w.ctx, o)), "deleting "+o.GetName())
	}
	w.untilNames(podGroups, "llm-0")
	w.untilNames(services, "llm-0")
	w.untilPods(want, true)
	w.untilAvailable("llm")
	w.checkIndices()

	// Back to the replicas of the template: nothing is recorded any longer.
	w.scale(cliques, "llm-0-frontend", 2)
	w.scale(groups, "llm-0-prefill", 2)
	w.untilPods(servicePods("llm"), true)
	w.untilRecorded(map[string]int64{})
}

// untilRecorded waits until the status of the one set remembers these replicas.
func (w *world) untilRecorded(want map[string]int64) {
	w.t.Helper()
	w.until(fmt.Sprintf("the set remembers %v", want), sets, func(objects []*unstructured.Unstructured) bool {
		got := map[string]int64{}
		list, _, _ := unstructured.NestedSlice(objects0(objects), "status", "recordedReplicas")
		for _, r := range list {
			entry := r.(map[string]any)
			got[fmt.Sprintf("%s of %s", entry["name"], entry["indices"])], _ = entry["replicas"].(int64)
		}
		return maps.Equal(got, want)
	})
}

// Labels that a user removes, including the one by which muster-controller finds its objects, are restored: no object
// is created twice, and none is missed.
func TestStrippedLabels(t *testing.T) {
	w := newWorld(t, 4)
	w.apply(service)
	w.untilAvailable("llm")
	w.untilPods(servicePods("llm"), true)
	stop := w.watchIndices()
	pod := w.pods()[0]
	everything := map[schema.GroupVersionResource]string{
		podGroups: "llm-0", services: "llm-0", hpas: "llm-0-decode", groups: "llm-0-decode", cliques: "llm-0-frontend", podsKind: pod.Name,
	}
	before := map[schema.GroupVersionResource]*unstructured.Unstructured{}
	for kind, name := range everything {
		o, err := w.dynamic.Resource(kind).Namespace(w.namespace).Get(w.ctx, name, metav1.GetOptions{})
		w.must(err, "reading "+name)
		before[kind] = o
		_, err = w.dynamic.Resource(kind).Namespace(w.namespace).Patch(w.ctx, name, types.MergePatchType, fmt.Appendf(nil,
			`{"metadata":{"labels":{%q:null,%q:null}}}`, v1alpha1.LabelManagedBy, v1alpha1.LabelPodCliqueSetReplicaIndex), metav1.PatchOptions{})
		w.must(err, "stripping "+name)
	}
	for kind, name := range everything {
		w.until(name+" has its labels back", kind, func(objects []*unstructured.Unstructured) bool {
			return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
				return o.GetUID() == before[kind].GetUID() && maps.Equal(o.GetLabels(), before[kind].GetLabels())
			})
		})
	}
	stop()
	w.untilPods(servicePods("llm"), true)
	w.untilAvailable("llm")
	w.delete(sets, "llm")
	w.untilGone()
}

// An object without its owner reference has no owner: it conflicts with its replacement, and the object that needs the
// name reports it until a user decides. No second object is created.
func TestStrippedOwner(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(service2)
	w.untilAvailable("s")
	orphan := func(kind schema.GroupVersionResource, name string) {
		t.Helper()
		_, err := w.dynamic.Resource(kind).Namespace(w.namespace).Patch(w.ctx, name, types.MergePatchType,
			[]byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{})
		w.must(err, "orphaning "+name)
	}
	pod := w.pods()[0].Name
	orphan(podsKind, pod)
	w.untilCondition(cliques, "s-0-w", v1alpha1.ConditionForeignObject, "True")
	if n := len(w.pods()); n != 4 {
		t.Errorf("%d pods, want the 4 that there were", n)
	}
	w.delete(podsKind, pod)
	w.untilPods(map[string]int{"s-0-w": 4}, true)
	w.until("nothing is in the way of the clique", cliques, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && conditionOf(objects[0], v1alpha1.ConditionForeignObject, "status") == ""
	})

	for kind, name := range map[schema.GroupVersionResource]string{podGroups: "s-0", services: "s-0", cliques: "s-0-w"} {
		orphan(kind, name)
		w.untilCondition(sets, "s", v1alpha1.ConditionForeignObject, "True")
		w.delete(kind, name)
		w.until("nothing is in the way of the set", sets, func(objects []*unstructured.Unstructured) bool {
			return len(objects) == 1 && conditionOf(objects[0], v1alpha1.ConditionForeignObject, "status") == ""
		})
		w.untilPods(map[string]int{"s-0-w": 4}, true)
	}
	w.untilAvailable("s")
	w.checkIndices()
}

// untilCollected returns when the garbage collector watches the kinds of the workload API, up to half a minute after
// they were installed. Before that it does not know the dependents of their objects, and may delete what it should
// orphan.
func (w *world) untilCollected() {
	w.t.Helper()
	set := w.apply(strings.Replace(small("canary", "w"), "replicas: 1\n  template", "replicas: 0\n  template", 1))
	w.must(w.client.Delete(w.ctx, set, client.PropagationPolicy(metav1.DeletePropagationForeground)), "deleting the canary")
	w.until("the canary is gone", sets, none)
}

const orphans = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: s}
spec:
  replicas: 2
  template:
    cliqueStartupType: CliqueStartupTypeInOrder
    cliques:
    - name: front
      spec:
        replicas: 1
        autoScalingConfig: {maxReplicas: 2}
        podSpec: {containers: [{name: main, image: "registry.example/main:1"}]}
    - name: leader
      spec: {replicas: 1, podSpec: {containers: [{name: main, image: "registry.example/main:1"}]}}
    - name: worker
      spec: {replicas: 2, podSpec: {containers: [{name: main, image: "registry.example/main:1"}]}}
    podCliqueScalingGroups:
    - {name: g, replicas: 1, minAvailable: 1, cliqueNames: [leader, worker]}
`

// A set that is deleted with --cascade=orphan and applied again goes on with all that it has left: the same pods run
// on, also those of a later attempt and of a scaled group. A changed manifest is an update of it. Source:
// docs/decisions, W14.
func TestDeletedWithCascadeOrphan(t *testing.T) {
	w := newWorld(t, 2)
	w.untilCollected()
	again := func(manifest string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "set.yaml")
		w.must(os.WriteFile(file, []byte(manifest), 0o600), "writing the manifest")
		w.kubectl("apply", "-f", file)
	}
	again(orphans)
	w.untilAvailable("s")
	w.must(w.client.DeleteAllOf(w.ctx, &v1alpha1.PodClique{}, client.InNamespace(w.namespace),
		client.MatchingLabels{v1alpha1.LabelPodCliqueSetReplicaIndex: "1"}), "deleting the PodCliques of replica 1")
	attempt := func(objects []*unstructured.Unstructured) bool {
		attempts, _, _ := unstructured.NestedSlice(objects0(objects), "status", "replicaAttempts")
		return len(attempts) == 1 && attempts[0].(map[string]any)["attempt"] == int64(1)
	}
	w.until("replica 1 has attempt 1", sets, attempt)
	w.scale(groups, "s-0-g", 2)
	want := map[string]int{"s-0-front": 1, "s-0-g-0-leader": 1, "s-0-g-0-worker": 2, "s-0-g-1-leader": 1, "s-0-g-1-worker": 2,
		"s-1-front": 1, "s-1-g-0-leader": 1, "s-1-g-0-worker": 2}
	w.untilPods(want, true)
	w.untilAvailable("s")
	uids := map[string]types.UID{}
	for _, p := range w.pods() {
		uids[p.Name] = p.UID
	}
	kinds := []schema.GroupVersionResource{podGroups, cliques, groups, services, hpas, rolesKind, bindingsKind, appsv1.SchemeGroupVersion.WithResource("controllerrevisions")}

	w.kubectl("delete", "pcs", "s", "--cascade=orphan")
	again(orphans)
	w.untilAvailable("s")
	w.until("replica 1 still has attempt 1", sets, attempt)
	for _, kind := range kinds {
		w.until("all "+kind.Resource+" have an owner", kind, func(objects []*unstructured.Unstructured) bool {
			return len(objects) > 0 && !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return metav1.GetControllerOf(o) == nil })
		})
	}
	same := func() {
		t.Helper()
		w.untilPods(want, true)
		for _, p := range w.pods() {
			if uids[p.Name] != p.UID {
				t.Errorf("pod %s is new", p.Name)
			}
		}
	}
	same()
	w.scale(groups, "s-1-g", 2) // a pass of each controller has observed all of it when the new pods are ready
	want["s-1-g-1-leader"], want["s-1-g-1-worker"] = 1, 2
	w.untilPods(want, true)
	for _, p := range w.pods() {
		if strings.HasPrefix(p.Name, "s-1-g-1-") {
			uids[p.Name] = p.UID
		}
	}
	same()

	w.kubectl("delete", "pcs", "s", "--cascade=orphan")
	again(strings.Replace(orphans, "main:1", "main:2", 1))
	w.untilPodsAre("the fronts are updated", func(pods []*corev1.Pod) bool {
		updated := 0
		for _, p := range pods {
			if p.Spec.Containers[0].Image == "registry.example/main:2" && controlplane.PodReady(p) {
				updated++
			}
		}
		return updated == 2
	})
	w.until("the update is complete", sets, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && conditionOf(objects[0], v1alpha1.ConditionProgressing, "reason") == v1alpha1.ReasonUpdateComplete
	})
	for _, p := range w.pods() {
		if !strings.Contains(p.Name, "-front-") && uids[p.Name] != p.UID {
			t.Errorf("pod %s is new, and its template has not changed", p.Name)
		}
	}
	w.kubectl("delete", "pcs", "s")
	w.untilGone()
	for _, kind := range kinds {
		w.until("no "+kind.Resource+" is left", kind, none)
	}
}

// A PodClique that is deleted with --cascade=orphan leaves its pods: the PodClique that is created again reports them,
// and creates none of them twice.
func TestCliqueDeletedWithCascadeOrphan(t *testing.T) {
	w := newWorld(t, 2)
	w.untilCollected()
	w.apply(service2)
	w.untilPods(map[string]int{"s-0-w": 4}, true)
	w.untilAvailable("s")
	left := w.pods()
	clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "s-0-w"}}
	w.must(w.client.Delete(w.ctx, clique, client.PropagationPolicy(metav1.DeletePropagationOrphan)), "deleting with orphans")
	w.untilCondition(cliques, "s-0-w", v1alpha1.ConditionForeignObject, "True")
	w.until("the set says what is in the way", sets, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && strings.Contains(conditionOf(objects[0], v1alpha1.ConditionAvailable, "message"), "has no owner")
	})
	w.checkIndices()
	for i := range left { // a person clears the way
		w.must(w.client.Delete(w.ctx, &left[i]), "deleting an orphan")
	}
	w.untilAvailable("s")
	w.untilPods(map[string]int{"s-0-w": 4}, true)
	w.untilCondition(cliques, "s-0-w", v1alpha1.ConditionForeignObject, "")
	w.checkIndices()
	w.delete(sets, "s")
	w.untilGone()
}

// The same within half a minute of the installation, when the garbage collector does not watch the kinds yet: no
// running pod is lost.
func TestDeletedWithCascadeOrphanAfterTheInstallation(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	ownPlane(t, ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true})
	installed := time.Now()
	if err := startMuster(cp, ctx); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 4)
	var all []*v1alpha1.PodCliqueSet
	for i := range 8 {
		all = append(all, w.apply(strings.Replace(service2, "{name: s}", fmt.Sprintf("{name: s%d}", i), 1)))
	}
	want := map[string]int{}
	for _, set := range all {
		want[set.Name+"-0-w"] = 4
	}
	w.untilPods(want, false)
	uids := map[types.UID]bool{}
	for _, p := range w.pods() {
		uids[p.UID] = true
	}
	for _, set := range all {
		w.must(w.client.Delete(w.ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan)), "deleting with orphans")
	}
	t.Logf("deleted %s after the installation", time.Since(installed).Round(time.Second))
	w.until("the sets are gone", sets, none)
	w.untilCollected() // and the garbage collector has processed all objects
	for _, p := range w.pods() {
		if p.DeletionTimestamp == nil {
			delete(uids, p.UID)
		}
	}
	if len(uids) > 0 {
		t.Errorf("%d of %d pods are lost", len(uids), 4*len(all))
	}
	for _, kind := range []schema.GroupVersionResource{podGroups, cliques} {
		if got := len(w.names(kind)); got != len(all) {
			t.Errorf("%d %s are left, want %d", got, kind.Resource, len(all))
		}
	}
	for _, kind := range []schema.GroupVersionResource{cliques, podGroups, services} {
		w.must(w.dynamic.Resource(kind).Namespace(w.namespace).DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "clearing "+kind.Resource)
	}
}

// With --cascade=foreground the set stays until all dependents are gone; no object is created again meanwhile.
func TestDeletedInTheForeground(t *testing.T) {
	w := newWorld(t, 4)
	set := w.apply(service)
	w.untilPods(servicePods("llm"), true)
	w.must(w.client.Delete(w.ctx, set, client.PropagationPolicy(metav1.DeletePropagationForeground)), "deleting in the foreground")
	w.untilGone()
}
