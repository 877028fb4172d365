// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// workloadShape is the benchmark of PodCliqueSets. Its variants are the steps of one run.
const workloadShape = "workload"

// allSteps are the possible steps of a workload, in a valid order.
var allSteps = []string{"create", "half", "up", "zero", "back", "delete"}

// workloadPods returns how many pods the PodCliqueSets have, each of one GPU.
func (o options) workloadPods() int {
	return o.sets * o.replicas * max(o.groupReplicas, 1) * o.cliques * o.podsPerClique
}

// workload is one run on a control plane of its own.
type workload struct {
	*cluster
	out        *outcome
	controller *controlplane.Process // nil for the floor, like process, the scheduler
	address    string                // where muster-controller serves its metrics, "" for the floor
}

var (
	podCliqueSets = v1alpha1.SchemeGroupVersion.WithResource("podcliquesets")
	scalingGroups = v1alpha1.SchemeGroupVersion.WithResource("podcliquescalinggroups")
	podCliques    = v1alpha1.SchemeGroupVersion.WithResource("podcliques")
	podGroups     = v2alpha2.SchemeGroupVersion.WithResource("podgroups")
)

// measureWorkload runs the steps, with Muster or as the floor.
func measureWorkload(ctx context.Context, cl *cluster, out *outcome) {
	if w := (&workload{cluster: cl, out: out}); cl.c.name == floor {
		w.floor(ctx, cl.earlier.objects)
	} else {
		w.muster(ctx)
	}
}

// muster runs the steps with a muster-scheduler and the muster-controller beside it, and keeps the objects that they
// created in the first.
func (w *workload) muster(ctx context.Context) {
	address := fmt.Sprintf("127.0.0.1:%d", got(controlplane.FreePort()))
	w.startReady(ctx)
	w.controller = got(w.cp.StartMusterController(ctx, controlplane.ControllerOptions{
		Path: filepath.Join(filepath.Dir(w.program.Path), "muster-controller"),
		Args: []string{"-v=0", "--metrics-bind-address=" + address},
	}))
	w.address = "https://" + address
	w.failWith(w.controller)
	defer w.profile(ctx, 15*time.Second, map[string]string{
		w.c.name + "-workload-muster-scheduler":  addressOf(w.process.ReadyURL),
		w.c.name + "-workload-muster-controller": w.address,
		w.c.name + "-workload-kube-apiserver":    w.server,
	})()

	for _, step := range w.o.variants {
		if err := attempt(func() {
			w.measured(ctx, step.name, func(out *outcome, began time.Time) { w.step(ctx, step.name, out, began) })
		}); err != nil {
			must(fmt.Errorf("%w; the end of muster-controller's log:\n%s", err, w.controller.LogTail(10)))
		}
		if step.name == "create" && slices.Contains(w.o.contestants, floor) {
			w.out.objects = w.read(ctx)
		}
	}
}

// step does one thing to the workload and waits for it.
func (w *workload) step(ctx context.Context, name string, out *outcome, began time.Time) {
	kind, names, replicas := w.scaled()
	scale := func(replicas int) {
		inParallel(len(names), func(i int) error {
			_, err := w.dynamic.Resource(kind).Namespace(namespace).Patch(ctx, names[i], types.MergePatchType,
				fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{}, "scale")
			return err
		})
	}
	switch name {
	case "create":
		inParallel(w.o.sets, func(i int) error { return w.objects.Create(ctx, w.set(i)) })
		w.untilUp(ctx, out, began)
	case "half":
		scale(replicas / 2)
		w.untilDown(ctx, w.o.workloadPods()/replicas*(replicas/2), out, began)
	case "up", "back":
		scale(replicas)
		w.untilUp(ctx, out, began)
	case "zero":
		scale(0)
		w.untilNothing(ctx, kind, out, began)
	case "delete":
		inParallel(w.o.sets, func(i int) error { return w.objects.Delete(ctx, w.set(i)) })
		w.untilNothing(ctx, podCliqueSets, out, began)
	}
}

// untilPods adds how long it takes from began until done.
func (w *workload) untilPods(ctx context.Context, out *outcome, key string, began time.Time, done func(podCounts) bool) {
	w.until(ctx, stall, 0, func() bool { return done(w.pods.counts) })
	out.add(key, since(began, time.Now()))
}

// untilUp waits until all pods are there, bound and ready, and the sets are Available.
func (w *workload) untilUp(ctx context.Context, out *outcome, began time.Time) {
	n, replicas := w.o.workloadPods(), int64(w.o.replicas)
	w.untilPods(ctx, out, "last_created_seconds", began, func(c podCounts) bool { return c.exist >= n })
	w.untilPods(ctx, out, "last_bound_seconds", began, func(c podCounts) bool { return c.bound >= n })
	w.untilPods(ctx, out, podsReady, began, func(c podCounts) bool { return c.exist == n && c.ready == n })
	w.untilObjects(ctx, podCliqueSets, metav1.ListOptions{}, stall, func(sets []*unstructured.Unstructured) bool {
		return !slices.ContainsFunc(sets, func(set *unstructured.Unstructured) bool {
			available, _, _ := unstructured.NestedInt64(set.Object, "status", "availableReplicas")
			return available != replicas
		})
	})
	out.add(settled, since(began, time.Now()))
}

// untilDown waits until n pods are left.
func (w *workload) untilDown(ctx context.Context, n int, out *outcome, began time.Time) {
	w.untilPods(ctx, out, podsGone, began, func(c podCounts) bool { return c.exist == n })
}

// untilNothing waits until no pod and no child of any set is left except objects that were scaled to zero, which stay
// as long as their set.
func (w *workload) untilNothing(ctx context.Context, scaled schema.GroupVersionResource, out *outcome, began time.Time) {
	w.untilDown(ctx, 0, out, began)
	none := func(left []*unstructured.Unstructured) bool { return len(left) == 0 }
	w.untilObjects(ctx, podGroups, metav1.ListOptions{}, stall, none)
	if scaled != podCliques {
		w.untilObjects(ctx, podCliques, metav1.ListOptions{}, stall, none)
	}
	if scaled == podCliqueSets {
		services := metav1.ListOptions{LabelSelector: labels.Set(ours).String()}
		w.untilObjects(ctx, corev1.SchemeGroupVersion.WithResource("services"), services, stall, none)
	}
	out.add(settled, since(began, time.Now()))
}

// ours selects the objects of PodCliqueSets.
var ours = client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue}

func setName(i int) string    { return fmt.Sprintf("set-%03d", i) }
func cliqueName(i int) string { return fmt.Sprintf("c%d", i) }

const groupName = "g"

func (w *workload) set(i int) *v1alpha1.PodCliqueSet {
	set := wrappers.MakePodCliqueSet(setName(i), namespace).Replicas(int32(w.o.replicas))
	var names []string
	for c := range w.o.cliques {
		names = append(names, cliqueName(c))
		set.Clique(names[c], int32(w.o.podsPerClique), wrappers.GPUs(1), func(clique *v1alpha1.PodCliqueTemplateSpec) {
			clique.Spec.PodSpec.TerminationGracePeriodSeconds = new(int64)
		})
	}
	if least := w.o.groupMin; w.o.groupReplicas > 0 {
		if least == 1 {
			least = 0 // unset, so that the group can be scaled to zero
		}
		set.ScalingGroup(groupName, int32(w.o.groupReplicas), int32(least), names...)
	}
	return set.Obj()
}

// scaled returns the objects that the steps scale, by name, with their initial replicas: the sets, or if those have
// only one replica their scaling groups, or if they have none their cliques.
func (w *workload) scaled() (kind schema.GroupVersionResource, names []string, replicas int) {
	for i := range w.o.sets {
		switch {
		case w.o.replicas > 1:
			kind, replicas, names = podCliqueSets, w.o.replicas, append(names, setName(i))
		case w.o.groupReplicas > 0:
			kind, replicas, names = scalingGroups, w.o.groupReplicas, append(names, naming.ScalingGroup(setName(i), 0, groupName))
		default:
			kind, replicas = podCliques, w.o.podsPerClique
			for c := range w.o.cliques {
				names = append(names, naming.PodCliqueName(setName(i), 0, cliqueName(c)))
			}
		}
	}
	return kind, names, replicas
}

// measured runs one step and adds it with its cost. A step that does not finish ends the benchmark: the next ones
// follow from it.
func (w *workload) measured(ctx context.Context, name string, do func(*outcome, time.Time)) {
	r := outcome{variant: variant{name: name}, load: w.out.load}
	writes := w.countWrites(ctx)
	passesBefore, webhooksBefore := w.counters(ctx)
	cpuBefore := childrenCPU()
	if err := attempt(func() { do(&r, time.Now()) }); err != nil {
		must(fmt.Errorf("%s: %v", name, err))
	}
	cpu := childrenCPU()
	for _, program := range slices.Sorted(maps.Keys(cpu)) {
		r.addPositive("cpu_seconds:"+program, (cpu[program] - cpuBefore[program]).Seconds())
	}
	r.addPositive("controller_peak_mib", usageOf(w.controller).mebibytes)
	r.addPositive(schedulerMemory, w.usage().mebibytes)
	written, _ := w.settledWrites(ctx, writes)
	r.addWrites(writesButEvents, written, float64(w.o.workloadPods()))
	passes, webhooks := w.counters(ctx)
	for _, controller := range slices.Sorted(maps.Keys(passes)) {
		r.addPositive("passes:"+controller, passes[controller].sum-passesBefore[controller].sum)
	}
	r.addPositive("webhook_calls", webhooks.count-webhooksBefore.count)
	for _, mean := range webhooks.meanSince(webhooksBefore) {
		r.add("webhook_latency_ms", 1000*mean)
	}
	w.out.steps = append(w.out.steps, r)
}

// counters returns figures that only grow: reconciliations by controller, and the calls of Muster's admission webhooks,
// as measured by the API server. The floor has none.
func (w *workload) counters(ctx context.Context) (passes map[string]sample, webhooks sample) {
	if w.address == "" {
		return nil, sample{}
	}
	passes = byLabel(w.metrics(ctx, w.address)["controller_runtime_reconcile_total"], "controller")
	return passes, byLabel(w.metrics(ctx, w.server)["apiserver_admission_webhook_admission_duration_seconds"], "")[""]
}

// read returns the objects that muster-controller created for a workload, in the form and order in which a plain client
// can create them. Pods have the node that muster chose.
func (w *workload) read(ctx context.Context) []client.Object {
	var made []client.Object
	for _, list := range []client.ObjectList{&v2alpha2.PodGroupList{}, &v1alpha1.PodCliqueList{}, &corev1.ServiceList{}, &corev1.PodList{}} {
		must(w.objects.List(ctx, list, client.InNamespace(namespace), ours))
		must(meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			m := object.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
			*m = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations}
			switch o := object.(type) {
			case *v2alpha2.PodGroup:
				o.Status = v2alpha2.PodGroupStatus{}
			case *v1alpha1.PodClique:
				o.Status = v1alpha1.PodCliqueStatus{}
			case *corev1.Pod:
				o.Status, o.Spec.SchedulerName = corev1.PodStatus{}, "nobody"
			}
			made = append(made, object)
			return nil
		}))
	}
	return made
}

// floor creates the same objects with a plain client, which binds each pod after its creation to the node that muster
// chose, and deletes all of them, one by one.
func (w *workload) floor(ctx context.Context, made []client.Object) {
	w.measured(ctx, "create", func(out *outcome, began time.Time) {
		inParallel(len(made), func(i int) error {
			pod, isPod := made[i].(*corev1.Pod)
			if !isPod {
				return w.objects.Create(ctx, made[i].DeepCopyObject().(client.Object))
			}
			unbound := pod.DeepCopy()
			unbound.Spec.NodeName = ""
			if err := w.createPod(ctx, unbound); err != nil {
				return err
			}
			return w.bind(ctx, binding{pod: pod.Name, node: pod.Spec.NodeName})
		})
		w.untilPods(ctx, out, podsReady, began, func(c podCounts) bool { return c.ready == w.o.workloadPods() })
	})
	if slices.Contains(w.o.variants, variant{name: "zero", kind: "zero"}) {
		w.measured(ctx, "zero", func(out *outcome, began time.Time) {
			inParallel(len(made), func(i int) error { return w.objects.Delete(ctx, made[len(made)-1-i]) })
			w.untilDown(ctx, 0, out, began)
			out.add(settled, since(began, time.Now()))
		})
	}
}
