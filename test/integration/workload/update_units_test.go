// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// An edit of the template replaces the units that it concerns, one by one, at every level.
func TestRolloutOfEveryLevel(t *testing.T) {
	tellStories(t, map[string]func(*world){
		"two replicas of a set": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 2))
			w.image(2, "web", "leader", "worker")
			w.untilUpdated()
			web, group := "-0 +0 -1 +1 -2 +2", "-0 +0 -1 +1"
			r.was(map[string]string{"s-1-web": web, "s-1-g": group, "s-0-web": web, "s-0-g": group})
			r.inOrder("s-1", "s-0")
		},
		"an edit that means the same": func(w *world) {
			r, before := w.started(fmt.Sprintf(rolled, 1)), w.set()
			w.edit("s", func(set *v1alpha1.PodCliqueSet) {
				set.Spec.Template.Cliques[0].Labels = map[string]string{}
				set.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy = "Always"
			})
			w.untilProgressing(sets, "s", "False", v1alpha1.ReasonUpdateComplete)
			r.was(map[string]string{})
			if s := w.set().Status; s.UpdateProgress != nil || *s.CurrentGenerationHash != *before.Status.CurrentGenerationHash {
				w.t.Errorf("an update began: %+v", s)
			}
		},
		"the priority class": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			class := w.priorityClass(5)
			w.edit("s", func(set *v1alpha1.PodCliqueSet) { set.Spec.Template.PriorityClassName = class })
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 +0 -1 +1 -2 +2", "s-0-g": "-0 +0 -1 +1"})
			for _, p := range w.pods() {
				if p.Spec.PriorityClassName != class || *p.Spec.Priority != 5 {
					w.t.Errorf("pod %s has priority %s", p.Name, p.Spec.PriorityClassName)
				}
			}
			gang := &v2alpha2.PodGroup{}
			w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "s-0"}, gang), "reading the PodGroup")
			if gang.Spec.PriorityClassName != class {
				w.t.Errorf("the PodGroup has priority %q", gang.Spec.PriorityClassName)
			}
		},
	})
}

// priorityClass creates a class of this priority, with the name of the namespace.
func (w *world) priorityClass(value int32) string {
	w.t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Value: value}
	w.must(w.client.Create(w.ctx, class), "creating a priority class")
	w.t.Cleanup(func() { _ = w.client.Delete(context.Background(), class) })
	return class.Name
}
