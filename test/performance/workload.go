// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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

func parseSteps(names string) ([]variant, error) {
	var steps []variant
	for i, step := range strings.Split(names, ",") {
		if !slices.Contains(allSteps, step) || (i == 0) != (step == "create") {
			return nil, fmt.Errorf("step %q: the first is create, the others are some of %s", step, strings.Join(allSteps[1:], ", "))
		}
		steps = append(steps, variant{kind: step})
	}
	return steps, nil
}

// workloadPods returns how many pods the PodCliqueSets have, each of one GPU.
func (o options) workloadPods() int {
	return o.sets * o.replicas * max(o.groupReplicas, 1) * o.cliques * o.podsPerClique
}

// workloadTargets are for 1,000 pods in 500 cliques; for others there is only the ratio to the floor.
func (o options) workloadTargets() []target {
	targets := []target{{kind: podsReady, variant: "create", contestant: floor}, {kind: podsGone, variant: "zero", contestant: floor}}
	if o.workloadPods() == 1000 && o.sets*o.replicas*o.cliques == 500 {
		targets = append(targets, target{kind: podsReady, variant: "create", bound: 30}, target{kind: podsGone, variant: "zero", bound: 15})
	}
	return targets
}

// benchWorkload runs every contestant o.repeat times, one after the other.
func benchWorkload(ctx context.Context, p plan, out io.Writer) (results, error) {
	o, all := p.o, results{}
	fmt.Fprintf(out, "%d PodCliqueSets x %d replicas x %d replicas of a scaling group (0: none) x %d cliques x %d pods of one GPU = %d pods.\n\n",
		o.sets, o.replicas, o.groupReplicas, o.cliques, o.podsPerClique, o.workloadPods())
	for round := range o.repeat {
		var made []client.Object
		for _, name := range o.contestants {
			w, err := newWorkload(ctx, o)
			if err != nil {
				return nil, err
			}
			load := loadAverage()
			var steps []stepResult
			if name == muster {
				steps, made, err = w.muster(ctx)
			} else {
				steps, err = w.floor(ctx, made)
			}
			w.close()
			if err != nil {
				return nil, fmt.Errorf("round %d, %s: %w", round+1, name, err)
			}
			for _, s := range steps {
				s.load = load
				if err := p.record(out, all, round, variant{kind: s.step}, name, s.outcome); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// stepResult is one step of one run.
type stepResult struct {
	step string
	outcome
}

// workload is one run on a control plane of its own.
type workload struct {
	*cluster
	controller, scheduler *controlplane.Process // nil for the floor
	metrics               string                // URL of muster-controller's, "" for the floor
}

var (
	podCliqueSets = v1alpha1.SchemeGroupVersion.WithResource("podcliquesets")
	scalingGroups = v1alpha1.SchemeGroupVersion.WithResource("podcliquescalinggroups")
	podCliques    = v1alpha1.SchemeGroupVersion.WithResource("podcliques")
	podGroups     = v2alpha2.SchemeGroupVersion.WithResource("podgroups")
)

func newWorkload(ctx context.Context, o options) (*workload, error) {
	cl, err := newCluster(ctx, o, contest{}, controlplane.Options{WithControllerManager: true, WithKwok: true})
	if err != nil {
		return nil, err
	}
	if err = cl.cp.InstallMuster(ctx); err == nil {
		cl.pods, err = watchPods(ctx, cl.client)
	}
	if err != nil {
		cl.cp.Stop()
		return nil, err
	}
	return &workload{cluster: cl}, nil
}

func (w *workload) close() {
	w.pods.stop()
	w.cp.Stop()
}

// muster runs the steps with muster-controller and muster-scheduler, and returns the objects that they created in the
// first.
func (w *workload) muster(ctx context.Context) ([]stepResult, []client.Object, error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return nil, nil, err
	}
	pprofPort, err := controlplane.FreePort()
	if err != nil {
		return nil, nil, err
	}
	if w.scheduler, err = w.cp.StartMusterScheduler(ctx, controlplane.SchedulerOptions{Args: []string{"-v=0"}}); err != nil {
		return nil, nil, err
	}
	args := []string{"-v=0", fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", port)}
	if w.o.profiles != "" {
		args = append(args, fmt.Sprintf("--pprof-bind-address=127.0.0.1:%d", pprofPort))
	}
	if w.controller, err = w.cp.StartMusterController(ctx, controlplane.ControllerOptions{Args: args}); err != nil {
		return nil, nil, err
	}
	w.metrics = fmt.Sprintf("http://127.0.0.1:%d/metrics", port)
	for _, p := range []*controlplane.Process{w.scheduler, w.controller} {
		go func() {
			<-p.Done()
			w.failed <- p.EndedEarly()
		}()
	}
	if w.o.profiles != "" {
		wait, err := w.profile(ctx, pprofPort)
		if err != nil {
			return nil, nil, err
		}
		defer wait()
	}

	var results []stepResult
	var made []client.Object
	for _, step := range w.o.variants {
		r, err := w.measured(ctx, step.kind, func(out *outcome, began time.Time) error { return w.step(ctx, step.kind, out, began) })
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w; the end of muster-controller's log:\n%s", step, err, w.controller.LogTail(10))
		}
		results = append(results, r)
		if step.kind == "create" && slices.Contains(w.o.contestants, floor) {
			if made, err = w.read(ctx); err != nil {
				return nil, nil, err
			}
		}
	}
	return results, made, nil
}

// step does one thing to the workload and waits for it.
func (w *workload) step(ctx context.Context, name string, out *outcome, began time.Time) error {
	var err error
	switch name {
	case "create":
		err = w.createSets(ctx)
	case "half":
		err = w.scale(ctx, 2)
	case "up", "back":
		err = w.scale(ctx, 1)
	case "zero":
		err = w.scale(ctx, 0)
	default: // delete
		err = inParallel(w.o.sets, func(i int) error {
			return w.objects.Delete(ctx, w.set(i))
		})
	}
	if err != nil {
		return err
	}
	switch name {
	case "create", "up", "back":
		return w.untilUp(ctx, w.o.workloadPods(), out, began)
	case "half":
		return w.untilDown(ctx, w.share(2), out, began)
	default:
		if err := w.untilDown(ctx, 0, out, began); err != nil {
			return err
		}
		return w.untilNothing(ctx, name == "delete", out, began)
	}
}

// untilPods adds how long it takes from began until done.
func (w *workload) untilPods(ctx context.Context, out *outcome, k kind, began time.Time, done func(podCounts) bool) error {
	err := w.pods.until(ctx, w.o.stall, 0, w.failed, func() bool { return done(w.pods.counts) })
	out.add(k, since(began, time.Now()))
	return err
}

// untilUp waits until there are n pods, bound and ready, and the sets are Available.
func (w *workload) untilUp(ctx context.Context, n int, out *outcome, began time.Time) error {
	for _, wait := range []struct {
		kind kind
		done func(podCounts) bool
	}{
		{podsCreated, func(c podCounts) bool { return c.exist >= n }},
		{podsBound, func(c podCounts) bool { return c.bound >= n }},
		{podsReady, func(c podCounts) bool { return c.exist == n && c.ready == n }},
	} {
		if err := w.untilPods(ctx, out, wait.kind, began, wait.done); err != nil {
			return err
		}
	}
	limit, cancel := context.WithTimeout(ctx, w.o.stall)
	defer cancel()
	replicas := w.o.replicas
	err := controlplane.Until(limit, w.dynamic.Resource(podCliqueSets).Namespace(namespace), metav1.ListOptions{},
		func(sets []*unstructured.Unstructured) bool {
			for _, set := range sets {
				if available, _, _ := unstructured.NestedInt64(set.Object, "status", "availableReplicas"); int(available) != replicas {
					return false
				}
			}
			return true
		})
	out.add(settled, since(began, time.Now()))
	if err != nil {
		return fmt.Errorf("waiting for the sets to be Available: %w", err)
	}
	return nil
}

// untilDown waits until n pods are left.
func (w *workload) untilDown(ctx context.Context, n int, out *outcome, began time.Time) error {
	return w.untilPods(ctx, out, podsGone, began, func(c podCounts) bool { return c.exist == n })
}

// untilNothing waits until no child of any set is left except objects that were scaled to zero, which stay as long as
// their set.
func (w *workload) untilNothing(ctx context.Context, deleted bool, out *outcome, began time.Time) error {
	limit, cancel := context.WithTimeout(ctx, w.o.stall)
	defer cancel()
	kinds, scaled := []schema.GroupVersionResource{podGroups, podCliques}, podCliqueSets
	if !deleted {
		if scaled, _, _ = w.scaled(); scaled == podCliques {
			kinds = kinds[:1]
		}
	}
	for _, kind := range kinds {
		if err := controlplane.Until(limit, w.dynamic.Resource(kind).Namespace(namespace), metav1.ListOptions{},
			func(left []*unstructured.Unstructured) bool { return len(left) == 0 }); err != nil {
			return fmt.Errorf("waiting for the last of %s to go: %w", kind.Resource, err)
		}
	}
	if scaled == podCliqueSets {
		if err := controlplane.Until(limit, w.client.CoreV1().Services(namespace), metav1.ListOptions{LabelSelector: labels.Set(ours).String()},
			func(left []*corev1.Service) bool { return len(left) == 0 }); err != nil {
			return fmt.Errorf("waiting for the last Service to go: %w", err)
		}
	}
	out.add(settled, since(began, time.Now()))
	return nil
}

// ours selects the objects of PodCliqueSets.
var ours = client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue}

func setName(i int) string    { return fmt.Sprintf("set-%03d", i) }
func cliqueName(i int) string { return fmt.Sprintf("c%d", i) }

const groupName = "g"

func (w *workload) createSets(ctx context.Context) error {
	return inParallel(w.o.sets, func(i int) error { return w.objects.Create(ctx, w.set(i)) })
}

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

// scaled returns the objects that the steps scale, by name, with their initial replicas: the sets, or if those have only
// one replica their scaling groups, or if they have none their cliques.
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

// part returns how many of n are left of the workload scaled to one part in so many; 0: none.
func part(n, of int) int {
	if of == 0 {
		return 0
	}
	return n / of
}

// share returns how many pods those are.
func (w *workload) share(of int) int {
	_, _, replicas := w.scaled()
	return w.o.workloadPods() / replicas * part(replicas, of)
}

// scale scales the workload to this fraction of its initial size; 0: to zero.
func (w *workload) scale(ctx context.Context, of int) error {
	kind, names, replicas := w.scaled()
	return inParallel(len(names), func(i int) error {
		_, err := w.dynamic.Resource(kind).Namespace(namespace).Patch(ctx, names[i], types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, part(replicas, of)), metav1.PatchOptions{}, "scale")
		return err
	})
}

// programs are the programs whose CPU time is reported.
var programs = []string{"muster-controller", "muster-scheduler", "kube-apiserver", "etcd", "kube-controller-manager", "kwok"}

// measured runs one step and adds its cost.
func (w *workload) measured(ctx context.Context, name string, do func(*outcome, time.Time) error) (stepResult, error) {
	r := stepResult{step: name}
	writes, err := countWrites(ctx, w.client)
	if err != nil {
		return r, err
	}
	before, err := w.counters(ctx)
	if err != nil {
		return r, err
	}
	cpuBefore := childrenCPU()

	if err := do(&r.outcome, time.Now()); err != nil {
		return r, err
	}

	cpu := childrenCPU()
	for _, program := range programs {
		comm := program[:min(len(program), 15)] // as in /proc
		r.addPositive(kind{"cpu_seconds:" + program, "CPU of " + program + ", s", "%.1f"}, (cpu[comm] - cpuBefore[comm]).Seconds())
	}
	for _, one := range []struct {
		program *controlplane.Process
		memory  kind
	}{{w.controller, controllerMemory}, {w.scheduler, schedulerMemory}} {
		if one.program != nil {
			u, err := usageOf(one.program.PID())
			if err != nil {
				return r, err
			}
			r.add(one.memory, mebibytes(u.memory))
		}
	}
	written, _, err := settledWrites(ctx, w.client, writes)
	if err != nil {
		return r, err
	}
	r.addWrites(writesButEvents, written, float64(w.o.workloadPods()))
	after, err := w.counters(ctx)
	if err != nil {
		return r, err
	}
	for _, controller := range slices.Sorted(maps.Keys(after.reconciles)) {
		r.addPositive(kind{"passes:" + controller, "passes of " + controller, "%.0f"}, after.reconciles[controller]-before.reconciles[controller])
	}
	if calls := after.webhookCalls - before.webhookCalls; calls > 0 {
		r.add(webhookCalls, calls)
		r.add(webhookLatency, 1000*(after.webhookSeconds-before.webhookSeconds)/calls)
	}
	return r, nil
}

// counters are figures that only grow.
type counters struct {
	reconciles                   map[string]float64 // by controller
	webhookSeconds, webhookCalls float64            // of Muster's admission webhooks, as measured by the API server
}

// counters reads them.
func (w *workload) counters(ctx context.Context) (counters, error) {
	c := counters{reconciles: map[string]float64{}}
	if w.metrics == "" {
		return c, nil
	}
	families, err := serverMetrics(ctx, w.client)
	if err != nil {
		return c, err
	}
	for _, metric := range families["apiserver_admission_webhook_admission_duration_seconds"].GetMetric() {
		c.webhookSeconds += metric.GetHistogram().GetSampleSum()
		c.webhookCalls += float64(metric.GetHistogram().GetSampleCount())
	}
	if families, err = fetchMetrics(ctx, http.DefaultClient, w.metrics); err != nil {
		return c, err
	}
	for _, metric := range families["controller_runtime_reconcile_total"].GetMetric() {
		c.reconciles[label(metric, "controller")] += metric.GetCounter().GetValue()
	}
	return c, nil
}

// profile fetches CPU profiles of both programs and the API server from now on. The returned function waits for them.
func (w *workload) profile(ctx context.Context, port int) (wait func(), err error) {
	prefix := filepath.Join(w.o.profiles, "workload-")
	scheduler, err := newProfiler(ctx, w.cp, prefix+"muster-scheduler.pprof", w.o.profileFor)
	if err != nil {
		return nil, err
	}
	controller := &profiler{client: scheduler.client, path: prefix + "muster-controller.pprof", length: w.o.profileFor}
	admin, err := rest.HTTPClientFor(w.cp.Admin())
	if err != nil {
		return nil, err
	}
	server := &profiler{client: admin, path: prefix + "kube-apiserver.pprof", length: w.o.profileFor}
	var all sync.WaitGroup
	for p, address := range map[*profiler]string{
		scheduler:  strings.TrimSuffix(w.scheduler.ReadyURL(), "/readyz"),
		controller: fmt.Sprintf("http://127.0.0.1:%d", port),
		server:     w.cp.Admin().Host,
	} {
		all.Go(p.begin(ctx, address))
	}
	return all.Wait, nil
}
