// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// An update that cannot continue stops after one unit, reports what it waits for, and continues when it can.
func TestRolloutInTrouble(t *testing.T) {
	tellStories(t, map[string]func(*world){
		"a broken template is repaired": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 2))
			w.edit("s", func(set *v1alpha1.PodCliqueSet) {
				set.Spec.Template.Clique("web").Spec.PodSpec.Containers[0].Image = controlplane.BrokenImage
			})
			w.untilStalled("s", "s-1-web", "pod s-1-web-0-")
			r.was(map[string]string{"s-1-web": "-0"})
			w.edit("s", func(set *v1alpha1.PodCliqueSet) { setImage(set, 3, "web") })
			w.untilUpdated()
			r.was(map[string]string{"s-1-web": "-0 ~0 +0 -1 +1 -2 +2", "s-0-web": "-0 +0 -1 +1 -2 +2"})
			r.inOrder("s-1", "s-0")
		},
		"a broken template of a scaling group is rolled back": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.edit("s", func(set *v1alpha1.PodCliqueSet) { broken(set, "leader", true) })
			w.untilStalled("s", "s-0-g", "replica 0")
			r.was(map[string]string{"s-0-g": "-0"})
			w.edit("s", func(set *v1alpha1.PodCliqueSet) { broken(set, "leader", false) })
			w.untilUpdated()
			r.was(map[string]string{"s-0-g": "-0 ~0 +0"})
		},
		"pods that cannot be placed": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			place := func(world string) {
				w.edit("s", func(set *v1alpha1.PodCliqueSet) {
					set.Spec.Template.Clique("web").Spec.PodSpec.NodeSelector["world"] = world
				})
			}
			place("elsewhere")
			w.untilStalled("s", "WaitingForCapacity", "pod s-0-web-0-")
			r.was(map[string]string{"s-0-web": "-0"})
			place(w.namespace)
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 ~0 +0"})
		},
		"capacity goes in the middle and comes back": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.holdAll()
			w.image(2, "web", "worker")
			r.reaches("s-0-web", "-0")
			r.reaches("s-0-g", "-0")
			w.cordon(w.nodes[0], true)
			w.letGo()
			w.untilStalled("s", "WaitingForCapacity", "is not bound to a node")
			r.was(map[string]string{"s-0-web": "-0", "s-0-g": "-0"})
			w.cordon(w.nodes[0], false)
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 +0 -1 +1 -2 +2", "s-0-g": "-0 +0 -1 +1"})
		},
		"a pod that is not ready goes first": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.ready("s-0-web", false) // pod 0; the others are replaced when it is ready again: all three are needed
			r.reaches("s-0-web", "-0")
			w.holdAll()
			w.image(2, "web")
			w.untilPodsAre("the pod goes", func(pods []*corev1.Pod) bool {
				return slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
			})
			w.untilProgressing(cliques, "s-0-web", "True", v1alpha1.ReasonWaitingForMinAvailable, v1alpha1.ReasonWaitingForDeletion, v1alpha1.ReasonUpdateStalled)
			r.was(map[string]string{"s-0-web": "-0"})
			w.letGo()
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 +0 -1 +1 -2 +2"})
		},
	})
}

// untilStalled waits until the update of a set has stalled, and the message names these.
func (w *world) untilStalled(name string, words ...string) {
	w.t.Helper()
	w.until(fmt.Sprintf("the update of %s has stalled on %v", name, words), sets, func(objects []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			message := conditionOf(o, v1alpha1.ConditionProgressing, "message")
			return o.GetName() == name && number(o, "observedGeneration") == o.GetGeneration() &&
				conditionOf(o, v1alpha1.ConditionProgressing, "status") == "True" &&
				conditionOf(o, v1alpha1.ConditionProgressing, "reason") == v1alpha1.ReasonUpdateStalled &&
				!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(message, word) })
		})
	})
}
