// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

const namespace = "default"

// unfinished is the error of a contestant that did not finish in time. The other contestants continue.
type unfinished struct{ error }

// cluster is a fresh control plane with nodes, for one run of one contestant.
type cluster struct {
	o       options
	c       contest
	variant variant
	earlier outcome // of muster in this round, for the floor
	cp      *controlplane.ControlPlane
	client  *kubernetes.Clientset
	objects client.Client // for objects of any kind
	dynamic *dynamic.DynamicClient
	http    *http.Client // for what programs tell about themselves
	server  string       // URL of the API server
	nodes   []string
	pods    *podWatch                   // from before the start of the scheduler
	program controlplane.ProcessOptions // the scheduler; prepared, not started
	process *controlplane.Process       // nil before startScheduler, and for the floor
	failed  chan error                  // receives an error when a program exits by itself, or what is done meanwhile fails
	probed  int                         // probes so far
}

// run does the shape once with one contestant, on a control plane of its own.
func (s shape) run(ctx context.Context, o options, c contest, earlier outcome, out *outcome) {
	if s.withoutGangs {
		c.api = noGangs
	}
	cp := got(controlplane.Start(ctx, s.servers))
	defer cp.Stop()
	cl := &cluster{o: o, c: c, variant: out.variant, earlier: earlier, cp: cp, failed: make(chan error, maxFailures)}
	cl.connect(ctx)
	cl.nodes = got(cp.CreateNodes(ctx, controlplane.NodeOptions{Count: o.nodes, GPUs: o.gpus}))
	// Muster's custom resources are there for every contestant: they cost the API server something.
	must(cp.InstallMuster(ctx))
	if c.program != nil {
		cl.program = c.program(ctx, cp, o)
	}
	if s.prepare != nil {
		s.prepare(ctx, cl)
	}
	cl.pods = watchPods(ctx, cl.client)
	defer cl.pods.stop()
	out.load = loadAverage()
	if !s.startsScheduler {
		cl.startReady(ctx)
	}
	err := attempt(func() {
		s.measure(ctx, cl, out)
		select {
		case err := <-cl.failed:
			must(err)
		default:
		}
		must(checkNodes(out.bindings, o.gpus))
	})
	if err != nil && cl.process != nil && cl.process.Running() {
		err = fmt.Errorf("%w; the end of the scheduler's log:\n%s", err, cl.process.LogTail(15))
	}
	must(err)
}

// checkNodes reports a node that got more pods than it has GPUs.
func checkNodes(bindings []binding, gpus int) error {
	pods := map[string]int{}
	for _, b := range bindings {
		if pods[b.node]++; pods[b.node] > gpus {
			return fmt.Errorf("node %s got more pods than its %d GPUs", b.node, gpus)
		}
	}
	return nil
}

// maxFailures is how many of a run there can be: of two programs, and of two things that are done meanwhile.
const maxFailures = 4

// startScheduler starts the contestant's program, without waiting until it is ready.
func (cl *cluster) startScheduler() {
	if cl.process == nil {
		cl.process = cl.cp.NewProcess(cl.program)
	}
	must(cl.process.Start())
	cl.failed = make(chan error, maxFailures)
	cl.failWith(cl.process)
}

// failWith ends the run when the process exits by itself.
func (cl *cluster) failWith(process *controlplane.Process) {
	failed, done := cl.failed, process.Done()
	go func() {
		<-done
		failed <- process.EndedEarly()
	}()
}

// meanwhile does something in the background until stop is called. If it fails before, the run ends.
func (cl *cluster) meanwhile(ctx context.Context, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	failed, ended := cl.failed, make(chan struct{})
	go func() {
		defer close(ended)
		if err := attempt(func() { do(ctx) }); err != nil && ctx.Err() == nil {
			failed <- err
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// pause returns after so long.
func pause(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		must(context.Cause(ctx))
	}
}

// startReady starts the contestant's program and returns once it is ready. The floor has none.
func (cl *cluster) startReady(ctx context.Context) {
	if cl.c.program != nil {
		cl.startScheduler()
		must(cl.process.WaitReady(ctx))
	}
}

// kill kills the scheduler with SIGKILL.
func (cl *cluster) kill() {
	cl.failed = nil
	cl.process.Kill()
}

// usage returns the resource usage of the scheduler so far; zero for the floor.
func (cl *cluster) usage() usage { return usageOf(cl.process) }

// until waits until done returns true; see podWatch.until.
func (cl *cluster) until(ctx context.Context, stall, most time.Duration, done func() bool) {
	must(cl.pods.until(ctx, stall, most, cl.failed, done))
}

// untilBound waits until the gangs are bound, and returns when the first and the last of their pods were.
func (cl *cluster) untilBound(ctx context.Context, gangs ...gang) (first, last time.Time) {
	names := podNames(gangs...)
	cl.until(ctx, stall, limit, cl.pods.allBound(names))
	return cl.pods.boundAt(names)
}

// untilObjects waits until the objects of a kind satisfy done.
func (cl *cluster) untilObjects(ctx context.Context, kind schema.GroupVersionResource, options metav1.ListOptions, most time.Duration, done func([]*unstructured.Unstructured) bool) {
	limited, cancel := context.WithTimeoutCause(ctx, most, unfinished{fmt.Errorf("waiting for %s: not done after %s", kind.Resource, most)})
	defer cancel()
	err := controlplane.Until(limited, cl.dynamic.Resource(kind).Namespace(namespace), options, done)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = context.Cause(limited)
	}
	must(err)
}

// connect makes the clients, without a rate limit; the typed one speaks protobuf, as the schedulers do.
func (cl *cluster) connect(ctx context.Context) {
	config, scheme := cl.cp.Admin(), runtime.NewScheme()
	config.UserAgent = "muster-bench"
	must(errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v2alpha2.AddToScheme(scheme)))
	cl.objects = got(client.New(config, client.Options{Scheme: scheme}))
	cl.dynamic = got(dynamic.NewForConfig(config))
	cl.server = config.Host
	reader := got(cl.cp.MetricsConfig(ctx))
	reader.Insecure, reader.CAData = true, nil // the programs sign their own certificates
	cl.http = got(rest.HTTPClientFor(reader))
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cl.client = got(kubernetes.NewForConfig(config))
}

// inParallel does n things, 32 at a time, for creating pods as for the floor, beginning them in order. It ends the run
// at the first error.
func inParallel(n int, do func(i int) error) { must(controlplane.InParallel(n, 32, do)) }

// createGangs creates the PodGroups, then the pods of one gang after the other.
func (cl *cluster) createGangs(ctx context.Context, gangs ...gang) {
	cl.createPodGroups(ctx, gangs...)
	cl.createPods(ctx, gangs...)
}

func (cl *cluster) createPodGroups(ctx context.Context, gangs ...gang) {
	cl.eachPodGroup(gangs, func(group client.Object) error { return cl.objects.Create(ctx, group) })
}

// eachPodGroup calls do for the PodGroups of the gangs, in the API of the contestant.
func (cl *cluster) eachPodGroup(gangs []gang, do func(client.Object) error) {
	inParallel(len(gangs), func(i int) error {
		if group := gangs[i].podGroup(cl.c); group != nil {
			return do(group)
		}
		return nil
	})
}

func (cl *cluster) createPods(ctx context.Context, gangs ...gang) {
	var pods []func() *corev1.Pod // which are made only then: there may be many
	for _, g := range gangs {
		for i := range g.pods {
			pods = append(pods, func() *corev1.Pod { return g.pod(cl.c, i) })
		}
	}
	inParallel(len(pods), func(i int) error { return cl.createPod(ctx, pods[i]()) })
}

func (cl *cluster) createPod(ctx context.Context, pod *corev1.Pod) error {
	_, err := cl.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// deleteGangs deletes the pods, with a grace period of 0 since no kubelet would end them, and the PodGroups.
func (cl *cluster) deleteGangs(ctx context.Context, gangs ...gang) {
	names := podNames(gangs...)
	inParallel(len(names), func(i int) error { return cl.deletePod(ctx, names[i]) })
	cl.eachPodGroup(gangs, func(group client.Object) error { return client.IgnoreNotFound(cl.objects.Delete(ctx, group)) })
}

func (cl *cluster) deletePod(ctx context.Context, name string) error {
	return client.IgnoreNotFound(cl.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}

// fillersPerNode pods take all GPUs of a node together. More than one, so that a node is not empty while one of them is
// replaced.
const fillersPerNode = 2

// fill fills every node with pods that are bound at creation.
func (cl *cluster) fill(ctx context.Context) {
	inParallel(len(cl.nodes)*fillersPerNode, func(i int) error {
		return cl.createPod(ctx, cl.filler(i, 0).SchedulerName("nobody").Node(cl.nodes[i/fillersPerNode]).Obj())
	})
}

// filler returns the i-th filler for the n-th time.
func (cl *cluster) filler(i, n int) *wrappers.PodWrapper {
	gpus := cl.o.gpus / fillersPerNode
	if i%fillersPerNode == 0 {
		gpus = cl.o.gpus - gpus*(fillersPerNode-1)
	}
	return wrappers.MakePod(fillerName(i, n), namespace).GPUs(int64(gpus))
}

const fillerPrefix = "filler-"

func fillerName(i, n int) string { return fmt.Sprintf("%s%05d-%d", fillerPrefix, i, n) }

// churn replaces one filler after the other, o.churn a second, until ctx ends: each is deleted, and a similar one is
// created for the scheduler to bind, which fits only on that node.
func (cl *cluster) churn(ctx context.Context) {
	if cl.o.churn == 0 {
		return
	}
	ticker := time.NewTicker(time.Second / time.Duration(cl.o.churn))
	defer ticker.Stop()
	fillers := len(cl.nodes) * fillersPerNode
	for i := 0; ctx.Err() == nil; i++ {
		// Fillers far apart, so that no node is met twice in a row.
		filler, n := (i*7919)%fillers, i/fillers
		must(cl.deletePod(ctx, fillerName(filler, n)))
		must(cl.createPod(ctx, cl.filler(filler, n+1).SchedulerName(cl.c.schedulerName).Obj()))
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// startPosting posts the bindings of the floor in the background.
func (cl *cluster) startPosting(ctx context.Context, gangs []gang) {
	cl.meanwhile(ctx, func(ctx context.Context) { cl.post(ctx, gangs, cl.earlier.bindings) })
}

// post is the floor: it posts the earlier bindings of a scheduler in the same order; without any, it fills node after
// node.
func (cl *cluster) post(ctx context.Context, gangs []gang, earlier []binding) {
	if earlier == nil {
		for i, name := range podNames(gangs...) {
			earlier = append(earlier, binding{pod: name, node: cl.nodes[i/cl.o.gpus]})
		}
	}
	inParallel(len(earlier), func(i int) error { return cl.bind(ctx, earlier[i]) })
}

func (cl *cluster) bind(ctx context.Context, b binding) error {
	post := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: b.pod}, Target: corev1.ObjectReference{Kind: "Node", Name: b.node}}
	if b.mark != "" { // without it muster-scheduler's binding would be smaller
		post.Annotations = map[string]string{v2alpha2.BoundForAnnotation: b.mark}
	}
	return cl.client.CoreV1().Pods(namespace).Bind(ctx, post, metav1.CreateOptions{})
}
