// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

const (
	namespace = "default"
	// writers is how many requests the plain client has in flight, for creating pods as for the floor.
	writers = 32
)

// unfinished is the error of a contestant that did not finish in time. The other contestants continue.
type unfinished struct{ error }

// cluster is a fresh control plane with nodes, for one run of one contestant.
type cluster struct {
	o       options
	c       contest
	variant variant
	earlier []binding // the bindings of muster in this round, for the floor; nil: none
	cp      *controlplane.ControlPlane
	client  *kubernetes.Clientset
	objects client.Client // for objects of any kind
	dynamic *dynamic.DynamicClient
	nodes   []string
	pods    *podWatch                   // from before the start of the scheduler
	program controlplane.ProcessOptions // the scheduler; prepared, not started
	process *controlplane.Process       // nil before startScheduler, and for the floor
	failed  chan error                  // receives an error when the scheduler exits by itself, or the floor cannot post
}

// run does the shape once with one contestant, on a control plane of its own.
func (s shape) run(ctx context.Context, o options, c contest, v variant, earlier []binding) (out outcome, err error) {
	if s.withoutGangs {
		c.api = noGangs
	}
	cl, err := newCluster(ctx, o, c, controlplane.Options{})
	if err != nil {
		return out, err
	}
	defer cl.cp.Stop()
	cl.variant, cl.earlier = v, earlier
	if s.prepare != nil {
		if err := s.prepare(ctx, cl); err != nil {
			return out, err
		}
	}
	if cl.pods, err = watchPods(ctx, cl.client); err != nil {
		return out, err
	}
	defer cl.pods.stop()
	out.load = loadAverage()
	if !s.startsScheduler {
		if err := cl.startReady(ctx); err != nil {
			return out, err
		}
	}
	return out, cl.withLog(s.measure(ctx, cl, &out))
}

// newCluster starts a control plane and creates the nodes. The scheduler does not run yet.
func newCluster(ctx context.Context, o options, c contest, with controlplane.Options) (_ *cluster, err error) {
	if with.BinDir, err = filepath.Abs(o.bin); err != nil {
		return nil, err
	}
	with.Verbose = o.verbose
	cp, err := controlplane.Start(ctx, with)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			cp.Stop()
		}
	}()
	cl := &cluster{o: o, c: c, cp: cp, failed: make(chan error, 2)}
	if err := cl.connect(); err != nil {
		return nil, err
	}
	if cl.nodes, err = cp.CreateNodes(ctx, controlplane.NodeOptions{Count: o.nodes, GPUs: o.gpus}); err != nil {
		return nil, err
	}
	// Muster's custom resources are there for every contestant: they cost the API server something.
	if err := cp.ApplyManifests(ctx, "manifests/crds"); err != nil {
		return nil, err
	}
	if err := c.gangCRD(ctx, cp, o); err != nil {
		return nil, err
	}
	if c.program != nil {
		if cl.program, err = c.program(ctx, cp, o); err != nil {
			return nil, err
		}
	}
	return cl, nil
}

// startScheduler starts the contestant's program, without waiting until it is ready.
func (cl *cluster) startScheduler() (err error) {
	if cl.process == nil {
		cl.process, err = cl.cp.StartProcess(cl.program)
	} else {
		err = cl.process.Start()
	}
	if err != nil {
		return err
	}
	failed, process := make(chan error, 1), cl.process
	cl.failed = failed
	go func() {
		<-process.Done()
		failed <- process.EndedEarly()
	}()
	return nil
}

// startReady starts the contestant's program and returns once it is ready. The floor has none.
func (cl *cluster) startReady(ctx context.Context) error {
	if cl.c.program == nil {
		return nil
	}
	if err := cl.startScheduler(); err != nil {
		return err
	}
	return cl.cp.WaitReady(ctx, cl.process)
}

// kill kills the scheduler with SIGKILL.
func (cl *cluster) kill() {
	cl.failed = nil
	cl.process.Kill()
}

// usage returns the resource usage of the scheduler so far; zero for the floor.
func (cl *cluster) usage() (usage, error) {
	if cl.process == nil {
		return usage{}, nil
	}
	return usageOf(cl.process.PID())
}

// addUsage adds the resource usage of the scheduler since before.
func (cl *cluster) addUsage(out *outcome, before usage) error {
	u, err := cl.usage()
	if err != nil || cl.process == nil {
		return err
	}
	out.add(schedulerCPU, (u.cpu - before.cpu).Seconds())
	out.add(schedulerMemory, mebibytes(u.memory))
	return nil
}

// untilDone waits within the limits of every shape.
func (cl *cluster) untilDone(ctx context.Context, done func() bool) error {
	return cl.pods.until(ctx, cl.o.stall, cl.o.limit, cl.failed, done)
}

// withLog adds the end of the scheduler's log to an error.
func (cl *cluster) withLog(err error) error {
	if err == nil || cl.process == nil || !cl.process.Running() {
		return err
	}
	longer := fmt.Errorf("%w; the end of the scheduler's log:\n%s", err, cl.process.LogTail(15))
	var slow unfinished
	if errors.As(err, &slow) {
		return unfinished{longer}
	}
	return longer
}

// connect makes the clients, without a rate limit; the first speaks protobuf, as the schedulers do.
func (cl *cluster) connect() (err error) {
	config, scheme := cl.cp.Admin(), runtime.NewScheme()
	config.UserAgent = "muster-bench"
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v2alpha2.AddToScheme(scheme)); err != nil {
		return err
	}
	if cl.objects, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if cl.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cl.client, err = kubernetes.NewForConfig(config)
	return err
}

// inParallel does n things, writers at a time, beginning them in order. It returns the first error.
func inParallel(n int, do func(i int) error) error { return controlplane.InParallel(n, writers, do) }

// createGangs creates the PodGroups, then the pods of one gang after the other.
func (cl *cluster) createGangs(ctx context.Context, gangs ...gang) error {
	if err := cl.createPodGroups(ctx, gangs...); err != nil {
		return err
	}
	return cl.createPods(ctx, gangs...)
}

func (cl *cluster) createPodGroups(ctx context.Context, gangs ...gang) error {
	return inParallel(len(gangs), func(i int) error {
		if group := gangs[i].podGroup(cl.c.api); group != nil {
			return cl.objects.Create(ctx, group)
		}
		return nil
	})
}

func (cl *cluster) createPods(ctx context.Context, gangs ...gang) error {
	type member struct{ gang, pod int }
	var members []member
	for i, g := range gangs {
		for pod := range g.pods {
			members = append(members, member{i, pod})
		}
	}
	return inParallel(len(members), func(i int) error {
		m := members[i]
		_, err := cl.client.CoreV1().Pods(namespace).Create(ctx, gangs[m.gang].pod(cl.c, m.pod), metav1.CreateOptions{})
		return err
	})
}

// deleteGangs deletes the pods, with a grace period of 0 since no kubelet would end them, and the PodGroups.
func (cl *cluster) deleteGangs(ctx context.Context, gangs ...gang) error {
	names := podNames(gangs...)
	if err := inParallel(len(names), func(i int) error { return cl.deletePod(ctx, names[i]) }); err != nil {
		return err
	}
	return inParallel(len(gangs), func(i int) error {
		if group := gangs[i].podGroup(cl.c.api); group != nil {
			return client.IgnoreNotFound(cl.objects.Delete(ctx, group))
		}
		return nil
	})
}

func (cl *cluster) deletePod(ctx context.Context, name string) error {
	grace := int64(0)
	return client.IgnoreNotFound(cl.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
}

// fillersPerNode pods take all GPUs of a node together. More than one, so that a node is not empty while one of them is
// replaced.
const fillersPerNode = 2

// fill fills every node with pods that are bound at creation.
func (cl *cluster) fill(ctx context.Context) error {
	return inParallel(len(cl.nodes)*fillersPerNode, func(i int) error {
		return cl.createFiller(ctx, i, 0, func(w *wrappers.PodWrapper) { w.SchedulerName("nobody").Node(cl.nodes[i/fillersPerNode]) })
	})
}

// createFiller creates the i-th filler for the n-th time.
func (cl *cluster) createFiller(ctx context.Context, i, n int, edit func(*wrappers.PodWrapper)) error {
	gpus := cl.o.gpus / fillersPerNode
	if i%fillersPerNode == 0 {
		gpus = cl.o.gpus - gpus*(fillersPerNode-1)
	}
	pod := wrappers.MakePod(fillerName(i, n), namespace).GPUs(int64(gpus))
	edit(pod)
	_, err := cl.client.CoreV1().Pods(namespace).Create(ctx, pod.Obj(), metav1.CreateOptions{})
	return err
}

const fillerPrefix = "filler-"

func fillerName(i, n int) string { return fmt.Sprintf("%s%05d-%d", fillerPrefix, i, n) }

// churn replaces one filler after the other, perSecond of them, until ctx ends: each is deleted, and a similar one is
// created for the scheduler to bind, which fits only on that node.
func (cl *cluster) churn(ctx context.Context, perSecond int) error {
	if perSecond == 0 {
		return nil
	}
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	fillers := len(cl.nodes) * fillersPerNode
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C: // the work is to replace so many a second
		}
		// Fillers far apart, so that no node is met twice in a row.
		filler, n := (i*7919)%fillers, i/fillers
		if err := cl.deletePod(ctx, fillerName(filler, n)); err != nil && ctx.Err() == nil {
			return err
		}
		free := func(w *wrappers.PodWrapper) { w.SchedulerName(cl.c.schedulerName) }
		if err := cl.createFiller(ctx, filler, n+1, free); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// startPosting posts bindings in the background; an error is sent to failed.
func (cl *cluster) startPosting(ctx context.Context, gangs []gang) {
	go func() {
		if err := cl.post(ctx, gangs, cl.earlier); err != nil {
			cl.failed <- err
		}
	}()
}

// post is the floor: it posts the earlier bindings of a scheduler in the same order; without any, it fills node after
// node.
func (cl *cluster) post(ctx context.Context, gangs []gang, earlier []binding) error {
	if earlier == nil {
		i := 0
		for _, g := range gangs {
			for _, name := range g.podNames() {
				earlier = append(earlier, binding{pod: name, node: cl.nodes[i/cl.o.gpus]})
				i++
			}
		}
	}
	return inParallel(len(earlier), func(i int) error { return cl.bind(ctx, earlier[i]) })
}

func (cl *cluster) bind(ctx context.Context, b binding) error {
	post := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: b.pod}, Target: corev1.ObjectReference{Kind: "Node", Name: b.node}}
	if b.mark != "" { // without it muster-scheduler's binding would be smaller
		post.Annotations = map[string]string{v2alpha2.BoundForAnnotation: b.mark}
	}
	return cl.client.CoreV1().Pods(namespace).Bind(ctx, post, metav1.CreateOptions{})
}
