// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/podlife"
)

// fading is an image whose containers become ready, and are not ready 1.5 s later, for good.
const fading = "registry.example/fades:2"

// fades is its program. As a real one, and unlike the other images of these tests, it takes a while to start.
var fades = podlife.Program{StartsAfter: time.Second, UnreadyAfter: 1500 * time.Millisecond, StopsAfter: 100 * time.Millisecond}

// fleets are sets of many equal units, of which each level has its own rollout.
var fleets = map[string]struct {
	text    string // %d: minReadySeconds of the unit
	units   int
	perUnit int
}{
	"8 pods of a clique": {`
metadata: {name: s}
spec:
  replicas: 1
  template:
    cliques:
    - {name: web, spec: {replicas: 8, minAvailable: 2, minReadySeconds: %d, podSpec: {}}}
`, 8, 1},
	"6 replicas of a scaling group": {`
metadata: {name: s}
spec:
  replicas: 1
  template:
    cliques:
    - {name: leader, spec: {replicas: 1, podSpec: {}}}
    - {name: worker, spec: {replicas: 1, podSpec: {}}}
    podCliqueScalingGroups:
    - {name: g, cliqueNames: [leader, worker], replicas: 6, minAvailable: 1, minReadySeconds: %d}
`, 6, 2},
	"5 replicas of a set": {`
metadata: {name: s}
spec:
  replicas: 5
  template:
    cliques:
    - {name: web, spec: {replicas: 1, minReadySeconds: %d, podSpec: {}}}
`, 5, 1},
}

// A release becomes ready, and is not ready any more soon after. If its units have to be ready for longer than that, one is
// replaced; the update waits for it, and completes when the image is corrected.
func TestRolloutOfAReleaseThatFades(t *testing.T) {
	stories := map[string]func(*world){}
	for name, tc := range fleets {
		stories[name] = func(w *world) {
			r := w.startedFleet(fmt.Sprintf(tc.text, 2))
			w.fade()
			w.untilPodsAre("the first unit is ready", func(pods []*corev1.Pod) bool { return r.replacedReady(pods) == tc.perUnit })
			w.untilPodsAre("the first unit is not ready any more", func(pods []*corev1.Pod) bool {
				return r.replaced(pods) > tc.perUnit || r.replaced(pods) == tc.perUnit && r.replacedReady(pods) == 0
			})
			w.untilProgressing(sets, "s", "True", v1alpha1.ReasonWaitingForReadiness, v1alpha1.ReasonUpdateStalled)
			w.staySo("at most one unit is replaced, and the others are ready", 3*time.Second, func(pods []*corev1.Pod) bool {
				return r.replaced(pods) <= tc.perUnit && readyPods(pods) >= (tc.units-1)*tc.perUnit
			})
			w.untilProgressing(sets, "s", "True", v1alpha1.ReasonWaitingForReadiness, v1alpha1.ReasonUpdateStalled)
			w.correct()
		}
	}
	tellStories(t, stories)
}

// If they need not be ready for long, those are replaced that follow while the first is ready, and no more.
func TestRolloutStopsWhenWhatItMadeFails(t *testing.T) {
	stories := map[string]func(*world){}
	for name, tc := range fleets {
		stories[name] = func(w *world) {
			r := w.startedFleet(fmt.Sprintf(tc.text, 0))
			w.fade()
			w.until("the update waits for what it made", sets, func(objects []*unstructured.Unstructured) bool {
				return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
					return conditionOf(o, v1alpha1.ConditionProgressing, "status") == "True" && slices.Contains(
						[]string{v1alpha1.ReasonWaitingForReadiness, v1alpha1.ReasonUpdateStalled}, conditionOf(o, v1alpha1.ConditionProgressing, "reason")) &&
						r.hasFaded(tc.perUnit)
				})
			})
			// A unit takes more than 1 s, so that at most the third is begun while the first is ready.
			w.staySo("at most three units are replaced, and the others are ready", 3*time.Second, func(pods []*corev1.Pod) bool {
				return r.replaced(pods) <= 3*tc.perUnit && r.readyOfBefore(pods) >= (tc.units-3)*tc.perUnit
			})
			if progressing := conditionOf(w.only(sets), v1alpha1.ConditionProgressing, "reason"); progressing == v1alpha1.ReasonUpdateComplete {
				w.t.Errorf("the update is said to be complete")
			}
			w.correct()
		}
	}
	tellStories(t, stories)
}

// fleet is the pods of a set before its update.
type fleet struct {
	w      *world
	before map[string]bool // UIDs
}

// startedFleet creates a set, and waits until all of it is ready.
func (w *world) startedFleet(text string) fleet {
	w.t.Helper()
	w.apply(text)
	w.untilAllReady("s")
	f := fleet{w, map[string]bool{}}
	for _, uid := range w.uids() {
		f.before[string(uid)] = true
	}
	return f
}

// fade changes the images of all cliques to one that fades.
func (w *world) fade() {
	w.t.Helper()
	cp.Kubelets().SetProgram(fading, fades)
	w.edit("s", func(set *v1alpha1.PodCliqueSet) {
		for _, c := range set.Spec.Template.Cliques {
			c.Spec.PodSpec.Containers[0].Image = fading
		}
	})
}

// correct changes them to one that stays ready, and waits until the update is complete.
func (w *world) correct() {
	w.t.Helper()
	w.edit("s", func(set *v1alpha1.PodCliqueSet) {
		for _, c := range set.Spec.Template.Cliques {
			setImage(set, 3, c.Name)
		}
	})
	w.untilUpdated()
}

// replaced returns how many of the pods from before are gone, or going.
func (f fleet) replaced(pods []*corev1.Pod) int {
	kept := 0
	for _, p := range pods {
		if f.before[string(p.UID)] && p.DeletionTimestamp == nil {
			kept++
		}
	}
	return len(f.before) - kept
}

// replacedReady returns how many other pods are ready.
func (f fleet) replacedReady(pods []*corev1.Pod) int {
	return readyPods(slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return f.before[string(p.UID)] }))
}

// readyOfBefore returns how many of the pods from before are ready.
func (f fleet) readyOfBefore(pods []*corev1.Pod) int {
	return readyPods(slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !f.before[string(p.UID)] }))
}

// hasFaded reports whether so many of the new pods run without being ready.
func (f fleet) hasFaded(n int) bool {
	faded := 0
	for _, p := range f.w.pods() {
		if !f.before[string(p.UID)] && p.Status.Phase == corev1.PodRunning && !controlplane.PodReady(&p) {
			faded++
		}
	}
	return faded >= n
}

// readyPods returns how many pods are ready and not terminating.
func readyPods(pods []*corev1.Pod) (n int) {
	for _, p := range pods {
		if p.DeletionTimestamp == nil && controlplane.PodReady(p) {
			n++
		}
	}
	return n
}

// staySo watches the pods of the namespace for that long, and fails the test if it is not so at any time.
func (w *world) staySo(what string, long time.Duration, is func([]*corev1.Pod) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, long)
	defer cancel()
	if err := controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		return !is(pods)
	}); err == nil {
		w.t.Errorf("it does not stay so that %s", what)
	}
}
