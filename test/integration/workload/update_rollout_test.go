// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/rounds"
)

// rolled is a set with a standalone clique of three pods and a scaling group of two replicas of three pods; without
// GPUs. %d: replicas of the set.
const rolled = `
metadata: {name: s}
spec:
  replicas: %d
  template:
    cliques:
    - {name: web, spec: {replicas: 3, podSpec: {}}}
    - {name: leader, spec: {replicas: 1, podSpec: {}}}
    - {name: worker, spec: {replicas: 2, podSpec: {}}}
    podCliqueScalingGroups:
    - {name: g, cliqueNames: [leader, worker], replicas: 2, minAvailable: 1}
`

// tellStories runs scenarios in parallel, each in a world of its own; each 20 times if ROUNDS is at least 20.
func tellStories(t *testing.T, stories map[string]func(*world)) {
	times := 1
	if rounds.Exhaustive() {
		times = 20
	}
	for name, story := range stories {
		for range times {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				story(newWorld(t, 1))
			})
		}
	}
}

// started creates a set, waits until all of it is ready, and watches its pods from then on.
func (w *world) started(text string) *rollout {
	w.t.Helper()
	return w.startedSet(w.parse(text))
}

// startedSet is started for a set. Pods, and replicas of scaling groups, have ages in the order of their indices: they
// are created in parallel, and a set of which two were created in different seconds is created again.
func (w *world) startedSet(set *v1alpha1.PodCliqueSet) *rollout {
	w.t.Helper()
	for {
		w.must(w.client.Create(w.ctx, set.DeepCopy()), "creating PodCliqueSet "+set.Name)
		w.untilAllReady(set.Name)
		if w.isAgedInOrder() {
			return w.follow()
		}
		w.delete(sets, set.Name)
		w.untilGone()
	}
}

// isAgedInOrder reports whether no pod of a PodClique, and no replica of a scaling group, is older than one of a lower
// index.
func (w *world) isAgedInOrder() bool {
	w.t.Helper()
	ages := map[string]map[string]time.Time{} // creation times of the units of a scope
	note := func(scope, index string, made time.Time) {
		if ages[scope] == nil {
			ages[scope] = map[string]time.Time{}
		}
		if first, there := ages[scope][index]; !there || made.Before(first) {
			ages[scope][index] = made
		}
	}
	for _, p := range w.pods() {
		note(p.Labels[v1alpha1.LabelPodClique], p.Labels[v1alpha1.LabelPodIndex], p.CreationTimestamp.Time)
	}
	list := &v1alpha1.PodCliqueList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace)), "listing PodCliques")
	for _, c := range list.Items {
		if group := c.Labels[v1alpha1.LabelPodCliqueScalingGroup]; group != "" {
			note(group, c.Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex], c.CreationTimestamp.Time)
		}
	}
	for _, units := range ages {
		indices := slices.Sorted(maps.Keys(units))
		if !slices.IsSortedFunc(indices, func(a, b string) int { return units[a].Compare(units[b]) }) {
			return false
		}
	}
	return true
}

// untilAllReady waits until every pod that a set wants is there and ready, not its minimum alone.
func (w *world) untilAllReady(name string) {
	w.t.Helper()
	w.untilAvailable(name)
	w.until("no PodClique lacks a pod", cliques, func(objects []*unstructured.Unstructured) bool {
		return len(objects) > 0 && !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			wants, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			return observed != o.GetGeneration() || number(o, "readyReplicas") != wants || number(o, "replicas") != wants
		})
	})
}

// image changes the image of cliques in the template of set s.
func (w *world) image(tag int, cliques ...string) {
	w.t.Helper()
	w.edit("s", func(set *v1alpha1.PodCliqueSet) { setImage(set, tag, cliques...) })
}

func setImage(set *v1alpha1.PodCliqueSet, tag int, cliques ...string) {
	for _, name := range cliques {
		set.Spec.Template.Clique(name).Spec.PodSpec.Containers[0].Image = fmt.Sprintf("registry.example/main:%d", tag)
	}
}

func (w *world) set() *v1alpha1.PodCliqueSet {
	w.t.Helper()
	set := &v1alpha1.PodCliqueSet{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "s"}, set), "reading the set")
	return set
}

// untilUpdated waits until the set reports for its present spec that its update is complete, and fails the test if it
// is not complete at that moment. After this report only the next edit changes anything.
func (w *world) untilUpdated() {
	w.t.Helper()
	w.untilProgressing(sets, "s", "False", v1alpha1.ReasonUpdateComplete)
	w.checkUpdated()
}

// checkUpdated fails the test unless every pod of set s has the newest template and is ready, and every status reports
// that.
func (w *world) checkUpdated() {
	w.t.Helper()
	// A pod that was scaled out during the update may be created after its end.
	for _, kind := range []schema.GroupVersionResource{cliques, sets} {
		w.until("all of it is updated", kind, func(objects []*unstructured.Unstructured) bool {
			return !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
				wanted, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
				mine := o.GetName() == "s" || o.GetLabels()[v1alpha1.LabelPartOf] == "s"
				return mine && number(o, "updatedReplicas") != wanted
			})
		})
	}
	set := w.set()
	if p := set.Status.UpdateProgress; p == nil || p.UpdateEndedAt == nil || p.CurrentlyUpdating != nil || set.Status.UpdatedReplicas != set.Spec.Replicas {
		w.t.Errorf("%d of %d replicas updated, progress %+v", set.Status.UpdatedReplicas, set.Spec.Replicas, p)
	}
	hashes := map[string]string{}
	list := &v1alpha1.PodCliqueList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelPartOf: "s"}), "listing PodCliques")
	for _, c := range list.Items {
		hashes[c.Name] = c.Labels[v1alpha1.LabelPodTemplateHash]
		s := c.Status
		if s.UpdatedReplicas != c.Spec.Replicas || s.CurrentPodTemplateHash == nil || *s.CurrentPodTemplateHash != hashes[c.Name] ||
			s.CurrentPodCliqueSetGenerationHash == nil || *s.CurrentPodCliqueSetGenerationHash != *set.Status.CurrentGenerationHash {
			w.t.Errorf("PodClique %s: %+v", c.Name, s)
		}
	}
	for _, p := range w.pods() {
		if p.Labels[v1alpha1.LabelPartOf] != "s" {
			continue
		}
		want := set.Spec.Template.Clique(p.Labels[v1alpha1.LabelTemplateName]).Spec.PodSpec.Containers[0].Image
		if image := p.Spec.Containers[0].Image; image != want || p.Labels[v1alpha1.LabelPodTemplateHash] != hashes[p.Labels[v1alpha1.LabelPodClique]] {
			w.t.Errorf("pod %s has image %s and hash %s, want %s and %s", p.Name, image, p.Labels[v1alpha1.LabelPodTemplateHash],
				want, hashes[p.Labels[v1alpha1.LabelPodClique]])
		}
		if !controlplane.PodReady(&p) || p.DeletionTimestamp != nil {
			w.t.Errorf("pod %s is not ready though the update is complete", p.Name)
		}
	}
}

// untilProgressing waits until condition Progressing has this status, of the present spec, and one of the reasons.
func (w *world) untilProgressing(kind schema.GroupVersionResource, name, status string, reasons ...string) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s %s is Progressing=%s, %v", kind.Resource, name, status, reasons), kind, func(objects []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			return o.GetName() == name && observed == o.GetGeneration() && conditionOf(o, v1alpha1.ConditionProgressing, "status") == status &&
				slices.Contains(reasons, conditionOf(o, v1alpha1.ConditionProgressing, "reason"))
		})
	})
}

// rollout watches the pods of a namespace and records the steps of the units that an update replaces: of each pod of a
// standalone clique, and of each replica of a scaling group.
type rollout struct {
	w *world

	mu       sync.Mutex
	units    map[string]*unit
	versions map[types.UID]string // of the pods in their last observed versions
	steps    []unitStep
	changed  chan struct{} // closed when there is news
}

// unit is a pod or a replica of a scaling group. It is up when all of its pods are ready.
type unit struct {
	scope, name string
	isUp        bool
	down        map[types.UID]bool // pods that were observed as not terminating, and whose deletion was not recorded yet
	ofUp        map[types.UID]bool // its pods when it was up last
}

// unitStep is a step of a unit. "-": it was up and is not. "+": it is up. "~": a pod was deleted with which it had not
// been up.
type unitStep struct{ what, scope, unit string }

// follow watches the pods from now on.
func (w *world) follow() *rollout {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 15*time.Minute)
	r := &rollout{w: w, units: map[string]*unit{}, changed: make(chan struct{})}
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		first := true
		_ = controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			r.see(pods)
			if first {
				first, r.steps = false, nil // the state before
				close(begun)
			}
			return false
		})
	}()
	w.t.Cleanup(func() { cancel(); <-done })
	select {
	case <-begun:
	case <-done:
		w.t.Fatal("the pods cannot be watched")
	}
	return r
}

// see records the steps of the units.
func (r *rollout) see(pods []*corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	present, ready, size := map[string]map[types.UID]bool{}, map[string]int{}, map[string]int{}
	r.versions = map[types.UID]string{}
	for _, p := range pods {
		r.versions[p.UID] = p.ResourceVersion
		scope, name, of := p.Labels[v1alpha1.LabelPodClique], p.Spec.Hostname, 1
		if group := p.Labels[v1alpha1.LabelPodCliqueScalingGroup]; group != "" {
			scope, name = group, group+"-"+p.Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex]
			for _, e := range p.Spec.Containers[0].Env {
				if e.Name == v1alpha1.EnvPodCliqueScalingGroupNumPods {
					of, _ = strconv.Atoi(e.Value)
				}
			}
		}
		if r.units[name] == nil {
			r.units[name] = &unit{scope: scope, name: name, down: map[types.UID]bool{}}
		}
		size[name] = of
		if p.DeletionTimestamp != nil {
			continue
		}
		if present[name] == nil {
			present[name] = map[types.UID]bool{}
		}
		present[name][p.UID] = true
		if controlplane.PodReady(p) {
			ready[name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.units)) {
		u := r.units[name]
		for uid := range u.down {
			if !present[name][uid] {
				delete(u.down, uid)
				if !u.isUp && !u.ofUp[uid] {
					r.note("~", u)
				}
			}
		}
		for uid := range present[name] {
			u.down[uid] = true
		}
		switch isUp := ready[name] > 0 && ready[name] == size[name] && len(present[name]) == size[name]; {
		case isUp && !u.isUp:
			u.isUp = true
			r.note("+", u)
		case !isUp && u.isUp:
			u.isUp = false
			r.note("-", u)
		}
		if u.isUp {
			u.ofUp = present[name]
		}
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// note adds a step; consecutive deletions of pods of one replica are one step.
func (r *rollout) note(what string, u *unit) {
	next := unitStep{what, u.scope, u.name}
	for _, last := range slices.Backward(r.steps) {
		if last.unit == u.name {
			if what == "~" && last == next {
				return
			}
			break
		}
	}
	r.steps = append(r.steps, next)
}

// story returns the steps of a scope in order, as text: -2 +2 for unit 2 that went down and came up.
func (r *rollout) story(scope string) string {
	var steps []string
	for _, s := range r.steps {
		if s.scope == scope {
			steps = append(steps, s.what+strings.TrimPrefix(s.unit, scope+"-"))
		}
	}
	return strings.Join(steps, " ")
}

// all returns the steps of a scope until now.
func (r *rollout) all(scope string) string {
	r.w.t.Helper()
	r.catchUp()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.story(scope)
}

// reaches waits until the steps of a scope are these.
func (r *rollout) reaches(scope, want string) {
	r.w.t.Helper()
	ctx, cancel := r.w.patient()
	defer cancel()
	for {
		r.mu.Lock()
		got, changed := r.story(scope), r.changed
		r.mu.Unlock()
		if got == want {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r.w.t.Fatalf("waiting until the steps of %s are %q: they are %q", scope, want, got)
		}
	}
}

// was fails the test unless these are the steps of all scopes until now. No pod of any other unit was replaced, nor is
// any terminating or not ready yet.
func (r *rollout) was(want map[string]string) {
	r.w.t.Helper()
	r.catchUp()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := map[string]string{}
	for _, s := range r.steps {
		got[s.scope] = r.story(s.scope)
	}
	if !maps.Equal(got, want) {
		r.w.t.Errorf("the steps were\n%s, want\n%s", linesOf(got), linesOf(want))
	}
}

func linesOf(stories map[string]string) string {
	var lines []string
	for _, scope := range slices.Sorted(maps.Keys(stories)) {
		lines = append(lines, "  "+scope+": "+stories[scope])
	}
	return strings.Join(lines, "\n")
}

// inOrder fails the test unless all steps of the first set replica came before all of the next, and so on.
func (r *rollout) inOrder(replicas ...string) {
	r.w.t.Helper()
	r.catchUp()
	r.mu.Lock()
	defer r.mu.Unlock()
	var order []string
	for _, s := range r.steps {
		if replica := strings.Join(strings.Split(s.scope, "-")[:2], "-"); len(order) == 0 || order[len(order)-1] != replica {
			order = append(order, replica)
		}
	}
	if !slices.Equal(order, replicas) {
		r.w.t.Errorf("set replicas were touched in the order %v, want %v: %v", order, replicas, r.steps)
	}
}

// catchUp waits until the watch has shown the pods as they are now.
func (r *rollout) catchUp() {
	r.w.t.Helper()
	now := map[types.UID]string{}
	for _, p := range r.w.pods() {
		now[p.UID] = p.ResourceVersion
	}
	ctx, cancel := r.w.patient()
	defer cancel()
	for {
		r.mu.Lock()
		seen, changed := r.hasSeen(now), r.changed
		r.mu.Unlock()
		if seen {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r.w.t.Fatal("the watch of pods is behind")
		}
	}
}

// hasSeen reports whether the watch has shown pods of these versions or later ones, and that all others are gone.
func (r *rollout) hasSeen(now map[types.UID]string) bool {
	version := func(text string) uint64 {
		n, _ := strconv.ParseUint(text, 10, 64)
		return n
	}
	for uid, v := range now {
		if version(r.versions[uid]) < version(v) {
			return false
		}
	}
	for uid, v := range r.versions {
		latest := uint64(0)
		for _, n := range now {
			latest = max(latest, version(n))
		}
		if now[uid] == "" && version(v) <= latest {
			return false
		}
	}
	return true
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

// untilObserved waits until the statuses of the set, and then of its PodCliques, describe their present specs: a pod
// that is created from then on has the newest template.
func (w *world) untilObserved() {
	w.t.Helper()
	for _, kind := range []schema.GroupVersionResource{sets, cliques} {
		w.until(kind.Resource+" were observed", kind, func(objects []*unstructured.Unstructured) bool {
			return !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return number(o, "observedGeneration") != o.GetGeneration() })
		})
	}
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
