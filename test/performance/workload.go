// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// workloadOptions are the shape of the workload and its steps. Each flag has an environment variable for use with make.
type workloadOptions struct {
	sets, replicas, cliques, podsPerClique int
	groupReplicas, groupMin                int // 0: the cliques are standalone
	repeat                                 int
	steps                                  []string
	contestants                            []string
	bin                                    string
	stall                                  time.Duration
	profiles                               string
	profileFor                             time.Duration
	verbose                                io.Writer
}

func (o workloadOptions) pods() int {
	return o.sets * o.replicas * max(o.groupReplicas, 1) * o.cliques * o.podsPerClique
}

// allSteps are the possible steps of a workload, in a valid order.
var allSteps = []string{"create", "half", "up", "zero", "back", "delete"}

func parseWorkload(args []string) (workloadOptions, error) {
	var o workloadOptions
	var steps string
	var floor int
	flags := flag.NewFlagSet("performance workload", flag.ContinueOnError)
	with := &environment{flags: flags}
	with.number(&o.sets, "sets", 1, "PodCliqueSets, created together")
	with.number(&o.replicas, "replicas", 500, "replicas of each")
	with.number(&o.cliques, "cliques", 1, "cliques of each replica")
	with.number(&o.podsPerClique, "pods-per-clique", 2, "pods of each clique, each with one GPU, all of them its minimum")
	with.number(&o.groupReplicas, "group-replicas", 0, "if not 0, the cliques of a replica are a scaling group with so many replicas")
	with.number(&o.groupMin, "group-min", 1, "how many of those are its minimum; below it nothing can be scaled")
	with.number(&o.repeat, "repeat", 3, "how often every contestant runs")
	with.word(&steps, "steps", "create,zero", "what is done, in this order: "+strings.Join(allSteps, ", "))
	with.number(&floor, "floor", 1, "0: without the floor")
	with.word(&o.bin, "bin", "bin", "directory of the programs")
	with.word(&o.profiles, "profiles", "", "directory for CPU profiles of muster-controller, muster-scheduler and kube-apiserver")
	flags.DurationVar(&o.profileFor, "profile-for", 15*time.Second, "length of a CPU profile, from the start of the first step")
	flags.DurationVar(&o.stall, "stall", time.Minute, "give up when nothing has changed for so long")
	verbose := flags.Bool("v", false, "one line per step of the control plane")
	if err := errors.Join(with.err, flags.Parse(args)); err != nil {
		return o, err
	}
	if o.sets < 1 || o.replicas < 1 || o.cliques < 1 || o.podsPerClique < 1 || o.groupReplicas < 0 || o.repeat < 1 {
		return o, fmt.Errorf("sets, replicas, cliques, pods-per-clique and repeat must be positive")
	}
	o.steps, o.contestants = strings.Split(steps, ","), []string{"muster"}
	if floor != 0 {
		o.contestants = append(o.contestants, "floor") // after muster: it creates the same objects
	}
	for i, step := range o.steps {
		if !slices.Contains(allSteps, step) || (i == 0) != (step == "create") {
			return o, fmt.Errorf("step %q: the first is create, the others are some of %s", step, strings.Join(allSteps[1:], ", "))
		}
	}
	o.verbose = io.Discard
	if *verbose {
		o.verbose = os.Stderr
	}
	return o, nil
}

// stepResult is one step of one run. Times in seconds since its beginning; 0 if not applicable.
type stepResult struct {
	name                   string
	created, bound, ready  float64            // the last pod of those wanted
	gone                   float64            // the last pod of those not wanted
	settled                float64            // the set is Available, or all of its objects are gone
	cpu                    map[string]float64 // by program
	writesPerPod           float64            // until writes ended
	writes                 map[string]float64 // by resource, per pod
	controllerMiB          float64            // largest resident sets so far
	schedulerMiB           float64
	reconciles             map[string]float64 // by controller
	webhookMillis, webhook float64            // mean latency that the API server saw, number of calls
}

// benchWorkload runs every contestant o.repeat times, one after the other, and prints the comparison.
func benchWorkload(ctx context.Context, o workloadOptions, out io.Writer) error {
	group := ""
	if o.groupReplicas > 0 {
		group = fmt.Sprintf("%d replicas of a scaling group x ", o.groupReplicas)
	}
	fmt.Fprintf(out, "Workload: %d PodCliqueSets x %d replicas x %s%d cliques x %d pods of one GPU = %d pods.\n\n",
		o.sets, o.replicas, group, o.cliques, o.podsPerClique, o.pods())
	results := map[string][][]stepResult{}
	for round := range o.repeat {
		var made *objects
		for _, name := range o.contestants {
			w, err := newWorkload(ctx, o)
			if err != nil {
				return err
			}
			load := loadAverage()
			var steps []stepResult
			if name == "muster" {
				steps, made, err = w.muster(ctx)
			} else {
				steps, err = w.floor(ctx, made)
			}
			w.close()
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, name, err)
			}
			results[name] = append(results[name], steps)
			for _, s := range steps {
				fmt.Fprintf(out, "round %d  %-7s %-7s %s (load average before %s)\n", round+1, name, s.name, s.times(), load)
			}
		}
	}
	fmt.Fprintln(out)
	return reportWorkload(out, o, results)
}

// workload is one run on a control plane of its own.
type workload struct {
	o       workloadOptions
	cp      *controlplane.ControlPlane
	client  *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
	nodes   []string
	pods    *podWatch
	failed  chan error

	controller, scheduler *controlplane.Process // nil for the floor
	metrics               string                // URL of muster-controller's, "" for the floor
}

var (
	podCliqueSets = v1alpha1.SchemeGroupVersion.WithResource("podcliquesets")
	scalingGroups = v1alpha1.SchemeGroupVersion.WithResource("podcliquescalinggroups")
	podCliques    = v1alpha1.SchemeGroupVersion.WithResource("podcliques")
	podGroups     = v2alpha2.SchemeGroupVersion.WithResource("podgroups")
)

func newWorkload(ctx context.Context, o workloadOptions) (*workload, error) {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{BinDir: bin, Verbose: o.verbose, WithControllerManager: true, WithKwok: true})
	if err != nil {
		return nil, err
	}
	w := &workload{o: o, cp: cp, failed: make(chan error, 2)}
	for _, step := range []func() error{
		func() (err error) { w.client, w.dynamic, err = plainClients(cp); return err },
		func() (err error) {
			w.nodes, err = cp.CreateNodes(ctx, controlplane.NodeOptions{Count: (o.pods() + 7) / 8, GPUs: 8})
			return err
		},
		func() error { return cp.InstallMuster(ctx) },
		func() (err error) { w.pods, err = watchPods(ctx, w.client); return err },
	} {
		if err := step(); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

func (w *workload) close() {
	if w.pods != nil {
		w.pods.stop()
	}
	w.cp.Stop()
}

// muster runs the steps with muster-controller and muster-scheduler, and returns the objects that they created in the
// first.
func (w *workload) muster(ctx context.Context) ([]stepResult, *objects, error) {
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
	var made *objects
	for _, name := range w.o.steps {
		r, err := w.measured(ctx, name, func(r *stepResult, began time.Time) error { return w.step(ctx, name, r, began) })
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w; the end of muster-controller's log:\n%s", name, err, w.controller.LogTail(10))
		}
		results = append(results, r)
		if name == "create" && slices.Contains(w.o.contestants, "floor") {
			if made, err = w.read(ctx); err != nil {
				return nil, nil, err
			}
		}
	}
	return results, made, nil
}

// step does one thing to the workload and waits for it.
func (w *workload) step(ctx context.Context, name string, r *stepResult, began time.Time) error {
	all := w.o.pods()
	switch name {
	case "create":
		if err := w.createSets(ctx); err != nil {
			return err
		}
		return w.untilUp(ctx, all, r, began)
	case "half":
		if err := w.scale(ctx, 2); err != nil {
			return err
		}
		return w.untilDown(ctx, w.share(2), r, began)
	case "up", "back":
		if err := w.scale(ctx, 1); err != nil {
			return err
		}
		return w.untilUp(ctx, all, r, began)
	case "zero":
		if err := w.scale(ctx, 0); err != nil {
			return err
		}
		if err := w.untilDown(ctx, 0, r, began); err != nil {
			return err
		}
		return w.untilNothing(ctx, false, r, began)
	default: // delete
		if err := inParallel(w.o.sets, func(i int) error {
			return w.dynamic.Resource(podCliqueSets).Namespace(namespace).Delete(ctx, setName(i), metav1.DeleteOptions{})
		}); err != nil {
			return err
		}
		if err := w.untilDown(ctx, 0, r, began); err != nil {
			return err
		}
		return w.untilNothing(ctx, true, r, began)
	}
}

// untilUp waits until there are n pods, bound and ready, and the sets are Available.
func (w *workload) untilUp(ctx context.Context, n int, r *stepResult, began time.Time) error {
	for _, wait := range []struct {
		at   *float64
		done func(podCounts) bool
	}{
		{&r.created, func(c podCounts) bool { return c.exist >= n }},
		{&r.bound, func(c podCounts) bool { return c.bound >= n }},
		{&r.ready, func(c podCounts) bool { return c.exist == n && c.ready == n }},
	} {
		at, err := w.pods.until(ctx, w.o.stall, w.failed, wait.done)
		if err != nil {
			return err
		}
		*wait.at = since(began, at)
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
	r.settled = since(began, time.Now())
	if err != nil {
		return fmt.Errorf("waiting for the sets to be Available: %w", err)
	}
	return nil
}

// untilDown waits until n pods are left.
func (w *workload) untilDown(ctx context.Context, n int, r *stepResult, began time.Time) error {
	at, err := w.pods.until(ctx, w.o.stall, w.failed, func(c podCounts) bool { return c.exist == n })
	r.gone = since(began, at)
	return err
}

// untilNothing waits until no child of any set is left except objects that were scaled to zero, which stay as long as
// their set.
func (w *workload) untilNothing(ctx context.Context, deleted bool, r *stepResult, began time.Time) error {
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
		if err := controlplane.Until(limit, w.client.CoreV1().Services(namespace), metav1.ListOptions{LabelSelector: ours},
			func(left []*corev1.Service) bool { return len(left) == 0 }); err != nil {
			return fmt.Errorf("waiting for the last Service to go: %w", err)
		}
	}
	r.settled = since(began, time.Now())
	return nil
}

// ours selects the objects of PodCliqueSets.
const ours = v1alpha1.LabelManagedBy + "=" + v1alpha1.LabelManagedByValue

func setName(i int) string    { return fmt.Sprintf("set-%03d", i) }
func cliqueName(i int) string { return fmt.Sprintf("c%d", i) }

const groupName = "g"

func (w *workload) createSets(ctx context.Context) error {
	return inParallel(w.o.sets, func(i int) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.set(i))
		if err != nil {
			return err
		}
		delete(content, "status")
		_, err = w.dynamic.Resource(podCliqueSets).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		return err
	})
}

func (w *workload) set(i int) *v1alpha1.PodCliqueSet {
	set := &v1alpha1.PodCliqueSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodCliqueSet},
		ObjectMeta: metav1.ObjectMeta{Name: setName(i), Namespace: namespace},
		Spec:       v1alpha1.PodCliqueSetSpec{Replicas: int32(w.o.replicas)},
	}
	gpu := corev1.ResourceList{wrappers.GPUResource: *resource.NewQuantity(1, resource.DecimalSI)}
	grace := int64(0)
	for c := range w.o.cliques {
		set.Spec.Template.Cliques = append(set.Spec.Template.Cliques, &v1alpha1.PodCliqueTemplateSpec{
			Name: cliqueName(c),
			Spec: v1alpha1.PodCliqueSpec{
				Replicas: int32(w.o.podsPerClique),
				PodSpec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{
					Name: "main", Image: "registry.example/main:1", Resources: corev1.ResourceRequirements{Requests: gpu, Limits: gpu}}}},
			},
		})
	}
	if o := w.o; o.groupReplicas > 0 {
		replicas, least := int32(o.groupReplicas), int32(o.groupMin)
		group := v1alpha1.PodCliqueScalingGroupConfig{Name: groupName, Replicas: &replicas}
		if least > 1 {
			group.MinAvailable = &least
		}
		for c := range o.cliques {
			group.CliqueNames = append(group.CliqueNames, cliqueName(c))
		}
		set.Spec.Template.PodCliqueScalingGroupConfigs = []v1alpha1.PodCliqueScalingGroupConfig{group}
	}
	return set
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
				names = append(names, naming.PodClique(setName(i), 0, cliqueName(c)))
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
	return w.o.pods() / replicas * part(replicas, of)
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

// comm is a program's name in /proc, which is cut there.
func comm(program string) string { return program[:min(len(program), 15)] }

// measured runs one step and adds its cost.
func (w *workload) measured(ctx context.Context, name string, do func(*stepResult, time.Time) error) (stepResult, error) {
	r := stepResult{name: name, cpu: map[string]float64{}, writes: map[string]float64{}, reconciles: map[string]float64{}}
	writes, err := countWrites(ctx, w.client)
	if err != nil {
		return r, err
	}
	before, err := w.counters(ctx)
	if err != nil {
		return r, err
	}
	for _, program := range programs {
		r.cpu[program] = -childrenCPU(comm(program)).Seconds()
	}

	if err := do(&r, time.Now()); err != nil {
		return r, err
	}

	for _, program := range programs {
		r.cpu[program] += childrenCPU(comm(program)).Seconds()
	}
	for program, memory := range map[*controlplane.Process]*float64{w.controller: &r.controllerMiB, w.scheduler: &r.schedulerMiB} {
		if program != nil {
			u, err := usageOf(program.PID())
			if err != nil {
				return r, err
			}
			*memory = float64(u.memory) / (1 << 20)
		}
	}
	written, _, err := settledWrites(ctx, w.client, writes)
	if err != nil {
		return r, err
	}
	pods := float64(w.o.pods())
	for resource, n := range written {
		r.writes[resource] = float64(n) / pods
		if resource != "events" {
			r.writesPerPod += float64(n) / pods
		}
	}
	after, err := w.counters(ctx)
	if err != nil {
		return r, err
	}
	for controller, n := range after.reconciles {
		r.reconciles[controller] = n - before.reconciles[controller]
	}
	if r.webhook = after.webhookCalls - before.webhookCalls; r.webhook > 0 {
		r.webhookMillis = 1000 * (after.webhookSeconds - before.webhookSeconds) / r.webhook
	}
	return r, nil
}

// profile fetches CPU profiles of both programs and the API server from now on. The returned function waits for them.
func (w *workload) profile(ctx context.Context, port int) (wait func(), err error) {
	prefix := filepath.Join(w.o.profiles, "workload-")
	scheduler, err := newProfiler(ctx, w.cp, prefix+"muster-scheduler.pprof", w.o.profileFor)
	if err != nil {
		return nil, err
	}
	controller := &profiler{client: scheduler.client, path: prefix + "muster-controller.pprof", length: w.o.profileFor}
	var all sync.WaitGroup
	all.Go(func() {
		path := prefix + "kube-apiserver.pprof"
		content, err := w.client.Discovery().RESTClient().Get().AbsPath("/debug/pprof/profile").
			Param("seconds", strconv.Itoa(int(w.o.profileFor.Seconds()))).DoRaw(ctx)
		if err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "fetching a CPU profile of kube-apiserver:", err)
			return
		}
		fmt.Fprintln(os.Stderr, "CPU profile:", path)
	})
	for p, address := range map[*profiler]string{
		scheduler:  strings.TrimSuffix(w.scheduler.ReadyURL(), "/readyz"),
		controller: fmt.Sprintf("http://127.0.0.1:%d", port),
	} {
		all.Go(func() { p.beginAt(ctx, address)() })
	}
	return all.Wait, nil
}
