// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// Names of the largest valid length, with indices of two and three digits, become pods, PodGroups, Services and
// autoscalers that the API server accepts; one character more is rejected before any child is created.
func TestLongestNames(t *testing.T) {
	w := newWorld(t, 4)
	set, group, member, clique := strings.Repeat("s", 15), strings.Repeat("g", 15), strings.Repeat("m", 15), strings.Repeat("c", 30)
	text := func(clique string) string {
		return fmt.Sprintf(`
metadata: {name: %s}
spec:
  replicas: 0
  template:
    cliques:
    - {name: %s, spec: {replicas: 102, minAvailable: 1, podSpec: {}, autoScalingConfig: {maxReplicas: 110}}}
    - {name: %s, spec: {replicas: 1, podSpec: {}}}
    podCliqueScalingGroups:
    - {name: %s, cliqueNames: [%s], replicas: 101, minAvailable: 1, scaleConfig: {maxReplicas: 105}}
`, set, clique, member, group, member)
	}
	if err := w.client.Create(w.ctx, w.parse(text(clique+"c"))); err == nil || !strings.Contains(err.Error(), "shorten them by 1") {
		t.Errorf("one character too many: %v", err)
	}
	w.apply(text(clique))
	w.scale(sets, set, 1)
	want := map[string]int{set + "-0-" + clique: 102}
	for j := range 101 {
		want[fmt.Sprintf("%s-0-%s-%d-%s", set, group, j, member)] = 1
	}
	w.untilPods(want, true)
	w.untilAvailable(set)
	w.checkIndices()
	w.scale(sets, set, 0)
	w.untilPods(map[string]int{}, true)

	// Three digits of the set's replicas too.
	w.edit(set, func(s *v1alpha1.PodCliqueSet) {
		for _, c := range s.Spec.Template.Cliques {
			c.Spec.Replicas = 1
		}
		s.Spec.Template.Cliques[0].Spec.ScaleConfig = nil
		one := int32(1)
		s.Spec.Template.PodCliqueScalingGroupConfigs[0].Replicas, s.Spec.Template.PodCliqueScalingGroupConfigs[0].ScaleConfig = &one, nil
		s.Spec.Replicas = 101
	})
	want = map[string]int{}
	for i := range 101 {
		want[fmt.Sprintf("%s-%d-%s", set, i, clique)], want[fmt.Sprintf("%s-%d-%s-0-%s", set, i, group, member)] = 1, 1
	}
	w.untilPods(want, true)
	w.untilAvailable(set)
}

// owned are the kinds of objects that are created for a PodCliqueSet, with one of service each.
var owned = []struct {
	kind schema.GroupVersionResource
	name string
	make func(metav1.ObjectMeta) client.Object
}{
	{podGroups, "llm-0", func(m metav1.ObjectMeta) client.Object {
		one := int32(1)
		return &v2alpha2.PodGroup{ObjectMeta: m, Spec: v2alpha2.PodGroupSpec{MinMember: &one}}
	}},
	{services, "llm-0", func(m metav1.ObjectMeta) client.Object {
		return &corev1.Service{ObjectMeta: m, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	}},
	{hpas, "llm-0-decode", func(m metav1.ObjectMeta) client.Object {
		return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: m, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 1,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "theirs"}}}
	}},
	{groups, "llm-0-decode", func(m metav1.ObjectMeta) client.Object {
		return &v1alpha1.PodCliqueScalingGroup{ObjectMeta: m, Spec: v1alpha1.PodCliqueScalingGroupSpec{CliqueNames: []string{"theirs"}}}
	}},
	{cliques, "llm-0-frontend", func(m metav1.ObjectMeta) client.Object {
		return &v1alpha1.PodClique{ObjectMeta: m, Spec: v1alpha1.PodCliqueSpec{PodSpec: theirPods}}
	}},
	{cliques, "llm-0-decode-1-dworker", func(m metav1.ObjectMeta) client.Object {
		return &v1alpha1.PodClique{ObjectMeta: m, Spec: v1alpha1.PodCliqueSpec{PodSpec: theirPods}}
	}},
}

var theirPods = corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "registry.example/theirs:1"}}}

// An object of each kind that the controllers own is deleted by a user: it is created again with another UID, and the
// workload recovers.
func TestEachOwnedObjectDeletedByHand(t *testing.T) {
	w := newWorld(t, 4)
	w.apply(service)
	w.untilPods(servicePods("llm"), true)
	w.untilAvailable("llm")
	stop := w.watchIndices()
	for _, o := range owned {
		there, err := w.dynamic.Resource(o.kind).Namespace(w.namespace).Get(w.ctx, o.name, metav1.GetOptions{})
		w.must(err, "reading "+o.name)
		w.delete(o.kind, o.name)
		w.until(o.kind.Resource+" "+o.name+" is back", o.kind, func(objects []*unstructured.Unstructured) bool {
			return slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool {
				return u.GetName() == o.name && u.GetUID() != there.GetUID() && u.GetDeletionTimestamp() == nil
			})
		})
		w.untilPods(servicePods("llm"), true)
		w.untilAvailable("llm")
	}
	for _, clique := range []string{"llm-0-frontend", "llm-0-decode-0-dleader"} {
		gone := types.UID("")
		for _, p := range w.pods() {
			if p.Labels[v1alpha1.LabelPodClique] == clique && gone == "" {
				gone = p.UID
				w.delete(podsKind, p.Name)
			}
		}
		w.until("a pod is replaced", podsKind, func(objects []*unstructured.Unstructured) bool {
			return !slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetUID() == gone })
		})
		w.untilPods(servicePods("llm"), true)
	}
	stop()
	w.checkIndices()
	w.untilNames(hpas, "llm-0-decode")
	w.untilNames(services, "llm-0")
}

// A foreign object with a needed name, of each kind: it is not changed and is reported, all other objects are created,
// and the workload recovers when it is deleted.
func TestForeignObjectsInTheWayOfEachKind(t *testing.T) {
	w := newWorld(t, 4)
	for _, foreign := range owned {
		t.Run(foreign.kind.Resource+" "+foreign.name, func(t *testing.T) {
			w.t = t
			theirs := foreign.make(metav1.ObjectMeta{Namespace: w.namespace, Name: foreign.name, Labels: map[string]string{"whose": "theirs"}})
			if foreign.kind.Group == v1alpha1.GroupName { // which needs an owner; this one exists and causes no deletion
				other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "other-"}}
				w.must(w.client.Create(w.ctx, other), "creating the owner of theirs")
				theirs.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap"))})
			}
			w.withoutAdmission(func() { w.must(w.client.Create(w.ctx, theirs), "creating theirs") })
			uid := theirs.GetUID()
			w.apply(service)
			kind, name := sets, "llm"
			if foreign.name == "llm-0-decode-1-dworker" {
				kind, name = groups, "llm-0-decode"
			}
			w.until("it is named", kind, func(objects []*unstructured.Unstructured) bool {
				return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
					return o.GetName() == name && strings.Contains(conditionOf(o, v1alpha1.ConditionForeignObject, "message"), foreign.name)
				})
			})
			there := foreign.make(metav1.ObjectMeta{})
			w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(theirs), there), "reading theirs")
			if there.GetUID() != uid || there.GetLabels()["whose"] != "theirs" || there.GetResourceVersion() != theirs.GetResourceVersion() && foreign.kind == services {
				t.Errorf("theirs was changed: %v", there)
			}
			w.must(w.client.Delete(w.ctx, theirs), "deleting theirs")
			w.untilPods(servicePods("llm"), true)
			w.untilAvailable("llm")
			w.until("nothing is in the way any more", kind, func(objects []*unstructured.Unstructured) bool {
				return !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
					return conditionOf(o, v1alpha1.ConditionForeignObject, "status") != ""
				})
			})
			w.must(w.client.DeleteAllOf(w.ctx, &v1alpha1.PodCliqueSet{}, client.InNamespace(w.namespace)), "deleting the sets")
			w.untilGone()
		})
	}
	w.t = t
}

// An autoscaler that scales out and in with minAvailable unset: in is never blocked, and lowers the minimum; out again
// raises it when the pods are ready (docs/decisions, W1). An explicit minimum stops it.
func TestAutoscalerOutAndIn(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(strings.Replace(service2, "replicas: 4", "replicas: 4\n        autoScalingConfig: {minReplicas: 1, maxReplicas: 4}", 1))
	w.untilPods(map[string]int{"s-0-w": 4}, true)
	w.untilNames(hpas, "s-0-w")
	// Without metrics an autoscaler only enforces its bounds, so the test changes the bounds: kube-controller-manager
	// scales, as its own user, through the scale subresource.
	bounds := func(least, most int32) {
		w.edit("s", func(set *v1alpha1.PodCliqueSet) {
			set.Spec.Template.Cliques[0].Spec.Replicas = min(most, 4)
			set.Spec.Template.Cliques[0].Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: &least, MaxReplicas: most}
		})
	}
	w.scale(cliques, "s-0-w", 3) // it was scaled, so the template's replicas no longer apply
	w.untilPods(map[string]int{"s-0-w": 3}, true)
	bounds(1, 2)
	w.untilPods(map[string]int{"s-0-w": 2}, true)
	w.untilLeaf("s-0", "s-0-w", 2)
	w.untilAvailable("s")
	bounds(4, 4)
	w.untilPods(map[string]int{"s-0-w": 4}, true)
	w.untilLeaf("s-0", "s-0-w", 4)
	w.untilAvailable("s")

	// An explicit minimum is a lower bound of scaling.
	w.apply(strings.NewReplacer("name: s}", "name: f}", "replicas: 4", "replicas: 3\n        minAvailable: 2",
		"nvidia.com/gpu: 2", "cpu: 1").Replace(service2))
	w.untilPods(map[string]int{"s-0-w": 4, "f-0-w": 3}, true)
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "theirs"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		MaxReplicas: 1, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodClique, Name: "f-0-w"}}}
	w.must(w.client.Create(w.ctx, hpa), "creating an autoscaler of a person")
	w.until("the autoscaler is refused", hpas, func(objects []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetName() == "theirs" && strings.Contains(conditionOf(o, "AbleToScale", "message"), "minAvailable")
		})
	})
	w.untilPods(map[string]int{"s-0-w": 4, "f-0-w": 3}, true)
}
