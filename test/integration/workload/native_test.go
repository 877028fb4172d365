// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

const (
	// nativeGates let kube-apiserver serve PodGroups and CompositePodGroups, and keep the field of pods.
	nativeGates = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true,WorkloadWithJob=true," +
		"PodGroupPreemptionPolicy=true,DRAWorkloadResourceClaims=true"
	nativeVersions = "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"
)

func nativePlane(t *testing.T, ctx context.Context) {
	t.Helper()
	ownPlane(t, ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true,
		APIServerArgs: []string{nativeGates, nativeVersions}, ControllerManagerArgs: []string{nativeGates}})
}

// TestFromTheInTreeGangScheduler: the manifest of the guide, and the published behaviour of PodGroups of Kubernetes,
// through the API that kube-apiserver itself serves with its feature gates on.
func TestFromTheInTreeGangScheduler(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	nativePlane(t, ctx)
	if err := startMuster(cp, ctx); err != nil {
		t.Fatal(err)
	}
	served := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}
	w := newWorld(t, 1) // 8 GPUs
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}
	w.must(w.client.Create(w.ctx, class), "creating a PriorityClass")
	create := func(name, spec string) *unstructured.Unstructured {
		group := read(w, fmt.Sprintf("{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: %s}, spec: {%s}}", name, spec))
		w.must(w.client.Create(w.ctx, group), "creating PodGroup "+name+" of Kubernetes")
		return group
	}
	pods := func(group string, n int, gpus int64) {
		for i := range n {
			pod := wrappers.MakePod(fmt.Sprintf("%s-%d", group, i), w.namespace).NodeSelector("world", w.namespace).NativeGroup(group).GPUs(gpus).Obj()
			w.must(w.client.Create(w.ctx, pod), "creating a pod")
		}
	}
	untilCondition := func(name, kind, status, reason string) {
		w.until("PodGroup "+name+" has "+kind+" "+status, served, func(groups []*unstructured.Unstructured) bool {
			return slices.ContainsFunc(groups, func(g *unstructured.Unstructured) bool {
				return g.GetName() == name && conditionOf(g, kind, "status") == status && conditionOf(g, kind, "reason") == reason
			})
		})
	}
	end := func(group *unstructured.Unstructured) {
		w.must(w.client.DeleteAllOf(w.ctx, &corev1.Pod{}, client.InNamespace(w.namespace)), "deleting the pods")
		w.untilBoundPods(0)
		if group != nil {
			w.must(client.IgnoreNotFound(w.client.Delete(w.ctx, group)), "deleting the PodGroup")
		}
	}

	// The guide: pods that come first wait.
	objects := guide(w, "From the in-tree gang scheduler")
	train, job := objects[0], objects[1]
	w.must(w.client.Create(w.ctx, job), "creating the Job")
	w.until("the pods say what they wait for", podsKind, func(pods []*unstructured.Unstructured) bool {
		return len(pods) == 4 && !slices.ContainsFunc(pods, func(p *unstructured.Unstructured) bool {
			return !strings.Contains(conditionOf(p, "PodScheduled", "message"), "kubernetes-train")
		})
	})
	w.must(w.client.Create(w.ctx, train), "creating the PodGroup of Kubernetes")
	w.untilReadyPods(4)
	untilCondition("train", "PodGroupInitiallyScheduled", "True", "Scheduled")
	w.must(w.dynamic.Resource(jobs).Namespace(w.namespace).Delete(w.ctx, "train", metav1.DeleteOptions{PropagationPolicy: &background}), "deleting the Job")
	w.untilBoundPods(0)

	// G126, G176: a gang starts when its pods are there, and as a whole.
	gang := create("g", "schedulingPolicy: {gang: {minCount: 3}}")
	pods("g", 2, 2)
	w.untilReason("kubernetes-g", string(v2alpha2.ReasonWaitingForPods))
	w.untilBoundPods(0)
	w.must(w.client.Create(w.ctx, wrappers.MakePod("g-2", w.namespace).NodeSelector("world", w.namespace).NativeGroup("g").GPUs(2).Obj()), "creating the third pod")
	w.untilReadyPods(3)
	untilCondition("g", "PodGroupInitiallyScheduled", "True", "Scheduled")

	// G151: another one joins. G291: there is no room for a second gang, of which no pod starts.
	w.must(w.client.Create(w.ctx, wrappers.MakePod("g-3", w.namespace).NodeSelector("world", w.namespace).NativeGroup("g").GPUs(1).Obj()), "creating a fourth pod")
	w.untilReadyPods(4)
	second := create("second", "schedulingPolicy: {gang: {minCount: 2}}")
	pods("second", 2, 1)
	untilCondition("second", "PodGroupInitiallyScheduled", "False", "Unschedulable")
	w.untilBoundPods(4)

	// What is immutable is refused by the API server, and nothing happens.
	before := gang.DeepCopy()
	w.must(unstructured.SetNestedField(gang.Object, int64(9), "spec", "schedulingPolicy", "gang", "minCount"), "editing minCount")
	if err := w.client.Patch(w.ctx, gang, client.MergeFrom(before)); err == nil {
		t.Log("minCount is mutable")
	}
	w.untilBoundPods(4)
	end(gang)
	w.must(w.client.Delete(w.ctx, second), "deleting the second PodGroup")

	// G362: basic is no minimum. P321 with all: a pod of higher priority takes the room of one, and all end.
	basic := create("b", "schedulingPolicy: {basic: {}}, disruptionMode: {all: {}}")
	pods("b", 1, 2)
	w.untilReadyPods(1)
	for i := range 2 {
		w.must(w.client.Create(w.ctx, wrappers.MakePod(fmt.Sprintf("more-%d", i), w.namespace).NodeSelector("world", w.namespace).NativeGroup("b").GPUs(3).Obj()), "creating a pod")
	}
	w.untilReadyPods(3)
	w.must(w.client.Create(w.ctx, wrappers.MakePod("urgent", w.namespace).NodeSelector("world", w.namespace).PriorityClass("urgent").GPUs(1).Obj()), "creating a pod of higher priority")
	w.until("the whole group has ended", podsKind, func(pods []*unstructured.Unstructured) bool {
		return len(pods) == 1 && pods[0].GetName() == "urgent"
	})
	untilCondition("b", "DisruptionTarget", "True", "PreemptionByScheduler")
	end(basic)

	// T135: no rack has room for all.
	rack := create("r", "schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: kubernetes.io/hostname}]}")
	pods("r", 2, 5)
	untilCondition("r", "PodGroupInitiallyScheduled", "False", "Unschedulable")
	w.addNodes(1)
	w.untilBoundPods(0)
	end(rack)

	// A PodGroup that is deleted before its pods stays while they run, as Kubernetes wants it, and they go on.
	last := create("last", "schedulingPolicy: {gang: {minCount: 2}}")
	pods("last", 2, 1)
	w.untilReadyPods(2)
	w.must(w.client.Delete(w.ctx, last), "deleting the PodGroup before its pods")
	w.untilReadyPods(2)
	end(nil)
}
