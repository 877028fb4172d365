// SPDX-License-Identifier: Apache-2.0

package grouper

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/test/rounds"
)

// life is a random life of workloads, whose controllers, the garbage collector, the caches and a scheduler act at any
// time.
type life struct {
	*bed
	rng     *rand.Rand
	next    int
	lowest  map[string]int     // by unit: the fewest pods that it has ever asked for
	started map[types.UID]bool // pods
	log     []string

	cachedWorkloads []*unstructured.Unstructured
	cachedGroups    []v2alpha2.PodGroup
	cachedPods      []corev1.Pod
}

// TestAnyOrder: whatever comes first, no pod of a workload starts before as many as it asked for exist, and in the end
// there is one PodGroup for each gang, and no other, and all pods have started.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	startedOf := map[string]int{}
	for seed := range uint64(20 * rounds.Number()) {
		l := &life{bed: newBed(t), rng: rand.New(rand.NewPCG(seed, 1)), lowest: map[string]int{}, started: map[types.UID]bool{}}
		for range 150 {
			l.step(startedOf)
			if t.Failed() {
				t.Fatalf("seed %d:\n%s", seed, strings.Join(l.log, "\n"))
			}
		}
		l.settle(startedOf)
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(l.log, "\n"))
		}
	}
	for i := range livingKinds {
		if kind := livingKinds[i].Kind; startedOf[kind] == 0 {
			t.Errorf("no pod of a %s has started", kind)
		}
	}
	t.Log(startedOf)
}

// unit is what must start together: a workload, a replica of a LeaderWorkerSet, or a replicated job that waits for
// another one.
type unit struct {
	name string
	pods []*corev1.Pod // as its controller makes them, without names
}

// livingKind is a kind of workloads and what its controller does.
type livingKind struct {
	schema.GroupVersionKind
	// name is that of the workload; "": each has another one, because its pods do not tell it from a former one.
	name string
	// spec is that of a new workload of a size from 1.
	spec func(size int64) map[string]any
	// scale changes the size; 0: it is to have no pods.
	scale func(o *unstructured.Unstructured, size int64)
	// units are in the order in which they are made: one that depends is made when the one before it has started.
	units func(o *unstructured.Unstructured) []unit
	// depends: see units.
	depends bool
}

var livingKinds = []livingKind{
	plainKind("batch", "Job", "a", "parallelism"),
	plainKind("apps", "StatefulSet", "b", "replicas"),
	plainKind("apps", "Deployment", "", "replicas"),
	{
		GroupVersionKind: lwsKind,
		spec: func(size int64) map[string]any {
			return map[string]any{"replicas": size, "leaderWorkerTemplate": map[string]any{"size": size + 1, "workerTemplate": template(nil)}}
		},
		scale: func(o *unstructured.Unstructured, size int64) { o.Object["spec"].(map[string]any)["replicas"] = size },
		units: func(o *unstructured.Unstructured) (units []unit) {
			size, _, _ := unstructured.NestedInt64(o.Object, "spec", "leaderWorkerTemplate", "size")
			for i := range number(o, "replicas") {
				u := unit{name: fmt.Sprintf("%s.%d", o.GetUID(), i)}
				for worker := range size {
					u.pods = append(u.pods, podOf("StatefulSet", o.GetName(), o.GetUID(), map[string]string{"leaderworkerset.sigs.k8s.io/name": o.GetName(),
						"leaderworkerset.sigs.k8s.io/group-index": fmt.Sprint(i), "leaderworkerset.sigs.k8s.io/worker-index": fmt.Sprint(worker)}))
				}
				units = append(units, u)
			}
			return units
		},
	},
	namedKind("others", corev1.DefaultSchedulerName),
	namedKind("", "muster-scheduler"),
	{GroupVersionKind: jobSetKind, name: "d", spec: jobSetSpec(false), scale: suspend, units: func(o *unstructured.Unstructured) []unit {
		driver, workers := podsOfJobs(o, "driver", 1), podsOfJobs(o, "workers", 2)
		return []unit{{string(o.GetUID()), append(driver, workers...)}}
	}},
	{GroupVersionKind: jobSetKind, name: "e", spec: jobSetSpec(true), scale: suspend, depends: true, units: func(o *unstructured.Unstructured) []unit {
		return []unit{{string(o.GetUID()) + ".driver", podsOfJobs(o, "driver", 1)}, {string(o.GetUID()) + ".workers", podsOfJobs(o, "workers", 2)}}
	}},
}

func template(labels map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"schedulerName": "muster-scheduler"}}
}

// number returns a field of the spec.
func number(o *unstructured.Unstructured, field string) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", field)
	return n
}

// podOf returns a pod of a controller, which stands for the workload.
func podOf(kind, name string, uid types.UID, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: labels, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "x/v1", Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}}}
}

// plainKind is a kind of equal pods, as many as a field of its spec says.
func plainKind(group, kind, name, field string) livingKind {
	return livingKind{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, name: name,
		spec: func(size int64) map[string]any {
			return map[string]any{field: size, "template": template(map[string]any{v2alpha2.MinMemberKey: "all"})}
		},
		scale: func(o *unstructured.Unstructured, size int64) { o.Object["spec"].(map[string]any)[field] = size },
		units: func(o *unstructured.Unstructured) []unit {
			u := unit{name: string(o.GetUID())}
			for range number(o, field) {
				pod := podOf(kind, o.GetName(), o.GetUID(), marked("all"))
				if kind == "Deployment" {
					pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name, pod.Labels["pod-template-hash"] = "ReplicaSet", o.GetName()+"-abc", "abc"
				}
				u.pods = append(u.pods, pod)
			}
			return []unit{u}
		},
	}
}

// namedKind is that of the PodGroups of Kubernetes, whose pods name a scheduler.
func namedKind(name, scheduler string) livingKind {
	return livingKind{
		GroupVersionKind: nativeKind, name: name,
		spec: func(size int64) map[string]any {
			return map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": size}}}
		},
		scale: func(o *unstructured.Unstructured, size int64) {
			o.Object["spec"].(map[string]any)["schedulingPolicy"].(map[string]any)["gang"].(map[string]any)["minCount"] = max(size, 1)
		},
		units: func(o *unstructured.Unstructured) []unit {
			n, _, _ := unstructured.NestedInt64(o.Object, "spec", "schedulingPolicy", "gang", "minCount")
			u := unit{name: string(o.GetUID())}
			for range n {
				pod := podOf("Job", o.GetName(), o.GetUID(), nil)
				pod.Spec = corev1.PodSpec{SchedulerName: scheduler, SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To(o.GetName())}}
				u.pods = append(u.pods, pod)
			}
			return []unit{u}
		},
	}
}

// isOfOthers reports whether another scheduler runs the pod: no PodGroup is made for it.
func isOfOthers(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == corev1.DefaultSchedulerName
}

func jobSetSpec(depends bool) func(int64) map[string]any {
	return func(size int64) map[string]any {
		job := func(pods int64) map[string]any {
			return map[string]any{"spec": map[string]any{"parallelism": pods, "completions": pods, "template": template(nil)}}
		}
		workers := map[string]any{"name": "workers", "replicas": int64(2), "template": job(size)}
		if depends {
			workers["dependsOn"] = []any{map[string]any{"name": "driver", "status": "Ready"}}
		}
		return map[string]any{"replicatedJobs": []any{map[string]any{"name": "driver", "template": job(1)}, workers}}
	}
}

// suspend stands for the scaling of a JobSet, whose sizes do not change.
func suspend(o *unstructured.Unstructured, size int64) {
	o.Object["spec"].(map[string]any)["suspend"] = size == 0
}

func podsOfJobs(o *unstructured.Unstructured, replicatedJob string, jobs int) (pods []*corev1.Pod) {
	if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended {
		return nil
	}
	for i := range jobs {
		n := int64(1)
		if replicatedJob == "workers" {
			workers := o.Object["spec"].(map[string]any)["replicatedJobs"].([]any)[1].(map[string]any)
			n, _, _ = unstructured.NestedInt64(workers, "template", "spec", "parallelism")
		}
		for range n {
			pods = append(pods, podOf("Job", o.GetName(), o.GetUID(), map[string]string{"jobset.sigs.k8s.io/jobset-name": o.GetName(),
				"jobset.sigs.k8s.io/jobset-uid": string(o.GetUID()), "jobset.sigs.k8s.io/replicatedjob-name": replicatedJob, "jobset.sigs.k8s.io/job-index": fmt.Sprint(i)}))
		}
	}
	return pods
}

// kindOf returns the kind of a workload.
func kindOf(o *unstructured.Unstructured) livingKind {
	i := slices.IndexFunc(livingKinds, func(k livingKind) bool {
		return k.Kind == o.GetKind() && (k.name == "" || k.name == o.GetName())
	})
	return livingKinds[i]
}

// workloads returns those that exist.
func (l *life) workloads() []*unstructured.Unstructured {
	l.t.Helper()
	var out []*unstructured.Unstructured
	seen := map[schema.GroupVersionKind]bool{}
	for i := range livingKinds {
		kind := livingKinds[i].GroupVersionKind
		if seen[kind] {
			continue
		}
		seen[kind] = true
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		l.must(l.api.List(l.t.Context(), list))
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

func (l *life) step(startedOf map[string]int) {
	l.t.Helper()
	workloads := l.workloads()
	var some *unstructured.Unstructured
	if len(workloads) > 0 {
		some = workloads[l.rng.IntN(len(workloads))]
	}
	note := func(format string, args ...any) { l.log = append(l.log, fmt.Sprintf(format, args...)) }
	switch what := l.rng.IntN(15); {
	case what == 0 && len(workloads) < 4:
		l.create(note)
	case some == nil:
	case what == 1:
		note("delete %s %s", some.GetKind(), some.GetName())
		l.must(l.api.Delete(l.t.Context(), some))
	case what == 2:
		size := l.rng.Int64N(5)
		kindOf(some).scale(some, size)
		note("scale %s %s to %d", some.GetKind(), some.GetName(), size)
		l.must(l.api.Update(l.t.Context(), some))
		l.asked(some)
	case what <= 7:
		l.controllerActs(some, note)
	case what == 8:
		l.collectGarbage(1)
	case what == 9:
		note("the cache observes workloads")
		l.cachedWorkloads = workloads
	case what == 10:
		note("the cache observes PodGroups")
		l.cachedGroups = l.podGroups()
	case what == 11:
		note("the cache observes pods")
		l.cachedPods = l.pods()
	case what == 12:
		note("pass over %s %s", some.GetKind(), some.GetName())
		l.reconcile(some)
	default:
		l.schedule(note, startedOf)
	}
}

func (l *life) create(note func(string, ...any)) {
	l.next++
	kind := livingKinds[l.rng.IntN(len(livingKinds))]
	uid := types.UID(fmt.Sprintf("uid-%d", l.next))
	object := &unstructured.Unstructured{Object: map[string]any{"spec": kind.spec(1 + l.rng.Int64N(4))}}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	object.SetNamespace("ns")
	object.SetName(kind.name)
	if kind.name == "" {
		object.SetName("c-" + string(uid))
	}
	object.SetUID(uid)
	if err := l.api.Create(l.t.Context(), object); err != nil {
		return // it exists
	}
	l.asked(object)
	note("create %s %s", object.GetKind(), object.GetName())
}

// asked records how many pods a workload asks for.
func (l *life) asked(o *unstructured.Unstructured) {
	for _, u := range kindOf(o).units(o) {
		if low, known := l.lowest[u.name]; len(u.pods) > 0 && (!known || len(u.pods) < low) {
			l.lowest[u.name] = len(u.pods)
		}
	}
}

// unitOf is the annotation with the unit of a pod.
const unitOf = "unit"

// controllerActs lets the controller of a workload make one pod that it lacks, or remove those of units that are too
// many.
func (l *life) controllerActs(o *unstructured.Unstructured, note func(string, ...any)) {
	l.t.Helper()
	there := map[string][]corev1.Pod{}
	for _, pod := range l.pods() {
		if pod.OwnerReferences[0].UID == o.GetUID() {
			there[pod.Annotations[unitOf]] = append(there[pod.Annotations[unitOf]], pod)
		}
	}
	lacking := []func(){}
	for _, u := range kindOf(o).units(o) {
		made := len(there[u.name])
		if len(u.pods) > 0 {
			delete(there, u.name)
		}
		if made < len(u.pods) {
			lacking = append(lacking, func() {
				l.next++
				pod := u.pods[made].DeepCopy()
				pod.Name, pod.UID = fmt.Sprintf("pod-%d", l.next), types.UID(fmt.Sprintf("pod-%d", l.next))
				pod.Annotations = map[string]string{unitOf: u.name}
				note("%s of %s %s (%s)", pod.Name, o.GetKind(), o.GetName(), u.name)
				l.must(l.api.Create(l.t.Context(), pod))
			})
		}
		if kindOf(o).depends && !l.hasStarted(u.name, len(u.pods)) {
			break
		}
	}
	for _, pods := range there {
		for i := range pods {
			l.must(l.api.Delete(l.t.Context(), &pods[i]))
		}
	}
	if len(lacking) > 0 {
		lacking[l.rng.IntN(len(lacking))]()
	}
}

func (l *life) hasStarted(unit string, pods int) bool {
	for _, pod := range l.pods() {
		if pod.Annotations[unitOf] == unit && l.started[pod.UID] {
			pods--
		}
	}
	return pods <= 0 // fewer than there are, of one that was scaled in
}

func (l *life) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("%v\n%s", err, strings.Join(l.log, "\n"))
	}
}

func (l *life) pods() []corev1.Pod {
	list := &corev1.PodList{}
	l.must(l.api.List(l.t.Context(), list))
	return list.Items
}

func (l *life) podGroups() []v2alpha2.PodGroup {
	list := &v2alpha2.PodGroupList{}
	l.must(l.api.List(l.t.Context(), list))
	return list.Items
}

// reconcile lets the controller pass, with its caches as they are.
func (l *life) reconcile(workload *unstructured.Unstructured) {
	l.t.Helper()
	var cached []client.Object
	for _, w := range l.cachedWorkloads {
		cached = append(cached, w.DeepCopy())
	}
	for i := range l.cachedGroups {
		cached = append(cached, l.cachedGroups[i].DeepCopy())
	}
	for i := range l.cachedPods {
		if !isOfOthers(&l.cachedPods[i]) {
			cached = append(cached, l.cachedPods[i].DeepCopy())
		}
	}
	l.cache = newClient(l.t, cached...)
	kind := workload.GetKind()
	if kind == nativeKind.Kind {
		kind = nativeKind.GroupKind().String()
	}
	l.pass(kind, workload.GetName())
}

// collectGarbage deletes at most n objects without an owner.
func (l *life) collectGarbage(n int) {
	owners := map[types.UID]bool{}
	for _, w := range l.workloads() {
		owners[w.GetUID()] = true
	}
	var gone []client.Object
	for _, pod := range l.pods() {
		if !owners[pod.OwnerReferences[0].UID] {
			gone = append(gone, &pod)
		}
	}
	for _, g := range l.podGroups() {
		if !owners[g.OwnerReferences[0].UID] {
			gone = append(gone, &g)
		}
	}
	l.rng.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
	for _, o := range gone[:min(n, len(gone))] {
		l.must(l.api.Delete(l.t.Context(), o))
	}
}

// schedule starts the pods of every PodGroup that has its minimum, as muster-scheduler does: of what is above it, units
// as a whole.
func (l *life) schedule(note func(string, ...any), startedOf map[string]int) {
	l.t.Helper()
	trees, members, there := map[string]*gang.Tree{}, map[string][]corev1.Pod{}, map[string]int{}
	for _, g := range l.podGroups() {
		tree, errs := validation.BuildTree(&g.Spec)
		if len(errs) > 0 {
			l.t.Errorf("PodGroup %s: %v", g.Name, errs)
		}
		trees[g.Name] = tree
	}
	for _, pod := range l.pods() {
		if isOfOthers(&pod) {
			continue
		}
		group := membership.Group(&pod)
		if group == "" {
			l.t.Errorf("pod %s is in no gang: it starts alone", pod.Name)
		}
		members[group] = append(members[group], pod)
		there[pod.Annotations[unitOf]]++
	}
	for name, pods := range members {
		tree := trees[name]
		if tree == nil {
			continue
		}
		counts := gang.Counts{}
		leaves := make([]*gang.Group, len(pods))
		for i := range pods {
			if leaves[i] = tree.Group(membership.Leaf(&pods[i])); leaves[i] == nil && tree.Root().IsLeaf() {
				leaves[i] = tree.Root()
			}
			if leaves[i] != nil {
				counts[leaves[i].Name()]++
			}
		}
		for i := range pods {
			whole := leaves[i] != nil
			for g := leaves[i]; g != nil; g = g.Parent() {
				whole = whole && g.Satisfied(counts)
			}
			if !whole || l.started[pods[i].UID] {
				continue
			}
			if u := pods[i].Annotations[unitOf]; there[u] < l.lowest[u] {
				l.t.Errorf("%d pods of %s start in %s, which never asked for fewer than %d", there[u], u, name, l.lowest[u])
			}
			l.started[pods[i].UID] = true
			for i := range livingKinds {
				if kind := livingKinds[i].Kind; strings.HasPrefix(name, strings.ToLower(kind)+"-") || kind == nativeKind.Kind && strings.HasPrefix(name, "kubernetes-") {
					startedOf[kind]++
					break
				}
			}
			note("%s starts in %s", pods[i].Name, name)
		}
	}
}

// settle lets everything catch up, and compares the PodGroups with the workloads.
func (l *life) settle(startedOf map[string]int) {
	l.t.Helper()
	quiet := func(string, ...any) {}
	for range 4 {
		for _, w := range l.workloads() { // of what pods name, there is a PodGroup when there is a pod
			l.controllerActs(w, quiet)
		}
		l.cachedWorkloads, l.cachedGroups, l.cachedPods = l.workloads(), l.podGroups(), l.pods()
		for _, w := range l.cachedWorkloads {
			l.reconcile(w)
		}
		l.collectGarbage(1 << 10)
	}
	pods := map[string]int{}
	for _, w := range l.workloads() {
		for _, u := range kindOf(w).units(w) {
			for _, pod := range u.pods {
				if !isOfOthers(pod) {
					pods[membership.Group(pod)]++
				}
			}
		}
	}
	var want []string
	for group, n := range pods {
		want = append(want, fmt.Sprintf("%s needs %d", group, n))
	}
	slices.Sort(want)
	if got := l.groups(); got != strings.Join(want, ", ") {
		l.t.Errorf("PodGroups %s\nwant %s", got, strings.Join(want, ", "))
	}
	for range 2 * 16 { // a JobSet has at most 9 pods, a LeaderWorkerSet 4 replicas of at most 5
		for _, w := range l.workloads() {
			l.controllerActs(w, quiet)
		}
		l.schedule(quiet, startedOf)
	}
	for _, w := range l.workloads() {
		for _, u := range kindOf(w).units(w) {
			if len(u.pods) > 0 && !isOfOthers(u.pods[0]) && !l.hasStarted(u.name, len(u.pods)) {
				l.t.Errorf("not all of the %d pods of %s %s (%s) have started", len(u.pods), w.GetKind(), w.GetName(), u.name)
			}
		}
	}
}
