// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// oneReplica are the pods of a replica of the set rolled.
var oneReplica = map[string]int{"s-0-web": 3, "s-0-g-0-leader": 1, "s-0-g-0-worker": 2, "s-0-g-1-leader": 1, "s-0-g-1-worker": 2}

// An update that meets another edit: of the number of replicas at any level, before, in the middle of it and after it, of the
// template again, and of the strategy.
func TestRolloutMeetsAnEdit(t *testing.T) {
	tellStories(t, map[string]func(*world){
		"a clique is scaled out and updated together": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.scale(cliques, "s-0-web", 5)
			w.image(2, "web")
			w.untilUpdated()
			// Of the new ones, those that were ready are replaced in order, the others were replaced immediately.
			of := func(step string) bool { return step[1:] < "3" }
			if steps := strings.Fields(r.all("s-0-web")); !slices.Equal(keep(steps, of), strings.Fields("-0 +0 -1 +1 -2 +2")) {
				w.t.Errorf("steps %v", steps)
			}
			r = w.follow()
			w.scale(cliques, "s-0-web", 6)
			w.untilAllReady("s")
			r.was(map[string]string{"s-0-web": "+5"})
			w.scale(cliques, "s-0-web", 3)
			w.untilPods(oneReplica, true)
			w.untilUpdated()
		},
		"a clique is scaled out in the middle": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.midway(2, func() {
				w.scale(cliques, "s-0-web", 4)
				r.reaches("s-0-web", "-0 +3") // a new one waits for nothing
			}, "web")
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 +3 +0 -1 +1 -2 +2"})
		},
		"a clique is scaled in in the middle": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.midway(2, func() {
				w.scale(cliques, "s-0-web", 2)
				w.until("the PodClique has seen it", cliques, func(objects []*unstructured.Unstructured) bool {
					return !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return number(o, "observedGeneration") != o.GetGeneration() })
				})
			}, "web")
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 -1 +0 -2 +1"}) // index 0, which was deleted, counts as scaled in, and is the first to be free
		},
		"a scaling group is scaled out in the middle": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.midway(2, func() {
				w.scale(groups, "s-0-g", 3)
				r.reaches("s-0-g", "-0 +2")
			}, "worker")
			w.untilUpdated()
			r.was(map[string]string{"s-0-g": "-0 +2 +0 -1 +1"})
		},
		"a scaling group is scaled in in the middle": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.midway(2, func() {
				w.scale(groups, "s-0-g", 1)
				r.reaches("s-0-g", "-0 -1")
			}, "worker")
			w.untilUpdated()
			r.was(map[string]string{"s-0-g": "-0 -1 +0"})
		},
		"a set is scaled out in the middle": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.midway(2, func() {
				w.scale(sets, "s", 2)
				w.untilPodsAre("the new replica is ready", func(pods []*corev1.Pod) bool {
					return len(keep(pods, func(p *corev1.Pod) bool {
						return strings.HasPrefix(p.Spec.Hostname, "s-1-") && controlplane.PodReady(p)
					})) == 9
				})
			}, "web")
			w.untilUpdated()
			if story := r.all("s-0-web"); story != "-0 +0 -1 +1 -2 +2" {
				w.t.Errorf("replica 0: %s", story)
			}
			if story := r.all("s-1-web") + r.all("s-1-g") + r.all("s-0-g"); strings.ContainsAny(story, "-~") {
				w.t.Errorf("what was not to be updated: %s", story)
			}
		},
		"a set is scaled in in the middle": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 2))
			w.midway(2, func() { w.scale(sets, "s", 1) }, "web") // the replica that is being updated is deleted
			w.untilUpdated()
			if story := r.all("s-0-web"); story != "-0 +0 -1 +1 -2 +2" {
				w.t.Errorf("replica 0: %s", story)
			}
			if story := r.all("s-0-g"); story != "" {
				w.t.Errorf("scaling group: %s", story)
			}
			w.untilPods(oneReplica, true)
		},
		"a second edit while the first unit is down": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.midway(2, func() { w.image(3, "web") }, "web")
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 +0 -1 +1 -2 +2"}) // the first was created again with the newest template
		},
		"a second edit of another clique keeps what is done": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.holdAll()
			w.image(2, "web")
			r.reaches("s-0-web", "-0")
			w.letGo("s-0-web-0")
			r.reaches("s-0-web", "-0 +0 -1")
			done := w.hosts()["s-0-web-0"]
			w.image(2, "leader")
			w.untilObserved()
			w.letGo()
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 +0 -1 +1 -2 +2", "s-0-g": "-0 +0 -1 +1"})
			if done != w.hosts()["s-0-web-0"] {
				w.t.Error("a pod of the newest template was replaced")
			}
		},
		"rolling back in the middle": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.holdAll()
			w.image(2, "web")
			r.reaches("s-0-web", "-0")
			w.letGo("s-0-web-0")
			r.reaches("s-0-web", "-0 +0 -1")
			kept := w.hosts()["s-0-web-2"]
			w.image(1, "web")
			w.untilObserved()
			w.letGo()
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 +0 -1 +1 -0 +0"})
			if kept != w.hosts()["s-0-web-2"] {
				w.t.Error("a pod that was of the old template all the time was replaced")
			}
			w.wantRevisions(2, 3)
		},
		"rolling back afterwards": func(w *world) {
			r, before := w.started(fmt.Sprintf(rolled, 1)), w.set()
			hash := w.hashes()
			w.image(2, "web")
			w.untilUpdated()
			w.image(1, "web")
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 +0 -1 +1 -2 +2 -0 +0 -1 +1 -2 +2"})
			if is, was := *w.set().Status.CurrentGenerationHash, *before.Status.CurrentGenerationHash; is != was {
				w.t.Errorf("the hash was %s and is %s", was, is)
			}
			if is := w.hashes(); !maps.Equal(is, hash) {
				w.t.Errorf("the pods' hashes were %v and are %v", hash, is)
			}
			w.wantRevisions(2, 3)
		},
	})
}

// midway edits the images of cliques, keeps the first deleted unit terminating, calls a function meanwhile, and releases
// the unit when the set has observed that.
func (w *world) midway(tag int, act func(), names ...string) {
	w.t.Helper()
	w.holdAll()
	w.image(tag, names...)
	w.until("a unit goes", podsKind, func(pods []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(pods, func(p *unstructured.Unstructured) bool { return p.GetDeletionTimestamp() != nil })
	})
	act()
	w.untilObserved()
	w.letGo()
}

// holdAll keeps all existing pods terminating after their deletion, until letGo.
func (w *world) holdAll() {
	w.t.Helper()
	for i := range int(w.set().Spec.Replicas) {
		w.hold(fmt.Sprintf("s-%d", i))
	}
}

// letGo releases pods that were kept: those of these host names, all if there are none.
func (w *world) letGo(hosts ...string) {
	w.t.Helper()
	var names []string
	for _, p := range w.pods() {
		if p.Annotations[controlplane.StuckAnnotation] == "true" && (len(hosts) == 0 || slices.Contains(hosts, p.Spec.Hostname)) {
			names = append(names, p.Name)
		}
	}
	w.release(names)
}

// untilObserved waits until the statuses of the set, and then of its PodCliques, describe their present specs: a pod that is
// created from then on has the newest template.
func (w *world) untilObserved() {
	w.t.Helper()
	for _, kind := range []schema.GroupVersionResource{sets, cliques} {
		w.until(kind.Resource+" were observed", kind, func(objects []*unstructured.Unstructured) bool {
			return !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return number(o, "observedGeneration") != o.GetGeneration() })
		})
	}
}

// hashes returns the pods' label grove.io/pod-template-hash by host name.
func (w *world) hashes() map[string]string {
	w.t.Helper()
	hashes := map[string]string{}
	for _, p := range w.pods() {
		hashes[p.Spec.Hostname] = p.Labels[v1alpha1.LabelPodTemplateHash]
	}
	return hashes
}

// wantRevisions fails the test unless the ControllerRevisions of the namespace have these numbers.
func (w *world) wantRevisions(want ...int64) {
	w.t.Helper()
	list, err := cp.Client().AppsV1().ControllerRevisions(w.namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err, "listing ControllerRevisions")
	var numbers []int64
	for _, r := range list.Items {
		numbers = append(numbers, r.Revision)
	}
	slices.Sort(numbers)
	if !slices.Equal(numbers, want) {
		w.t.Errorf("revisions %v, want %v", numbers, want)
	}
}

// keep returns the items for which is holds.
func keep[T any](items []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(items), func(item T) bool { return !is(item) })
}
