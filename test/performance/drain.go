package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

const (
	namespace = "default"
	// writers is how many requests the plain client has in flight, for creating pods as for the floor.
	writers = 32
)

// drained is what one run leaves: raw observations.
type drained struct {
	contest  contest
	created  time.Duration // time it took to create the pods
	load     string        // load average when the clock started
	start    time.Time     // of the scheduler's process, or of the plain client
	bindings []binding     // in the order in which the API server made them
	gangOf   map[string]string
	process  usage            // the scheduler's, at the last binding; zero for the floor
	server   time.Duration    // CPU time of API server and etcd, from start to the last binding
	writes   map[string]int64 // by resource, from start until no more came
	quiet    time.Time        // when the last of them was seen, to a quarter of a second
}

// drain runs one contestant on a fresh control plane.
func drain(ctx context.Context, o options, c contest, earlier []binding) (*drained, error) {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{BinDir: bin, Verbose: o.verbose})
	if err != nil {
		return nil, err
	}
	defer cp.Stop()
	client, err := plainClient(cp.Admin())
	if err != nil {
		return nil, err
	}

	// 1. The cluster, the gangs, the pods.
	d := &drained{contest: c, gangOf: map[string]string{}}
	nodes, err := cp.CreateNodes(ctx, controlplane.NodeOptions{Count: o.nodes, GPUs: o.gpus})
	if err != nil {
		return nil, err
	}
	// The custom resource is there for everybody: it costs the API server something.
	if err := cp.ApplyManifests(ctx, "manifests/crds"); err != nil {
		return nil, err
	}
	if c.gangs {
		if err := cp.CreateNamespace(ctx, "muster-system"); err != nil {
			return nil, err
		}
		if err := createPodGroups(ctx, cp, o); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	if err := createPods(ctx, client, o, c, d.gangOf); err != nil {
		return nil, err
	}
	d.created = time.Since(began)

	// 2. Who runs, and who watches.
	var program controlplane.ProcessOptions
	if c.program != nil {
		if program, err = c.program(ctx, cp, o); err != nil {
			return nil, err
		}
	}
	var profiles *profiler
	if o.profiles != "" && c.program != nil {
		if profiles, err = newProfiler(ctx, cp, filepath.Join(o.profiles, c.name+".pprof"), o.profileFor); err != nil {
			return nil, err
		}
	}
	watch, err := watchBindings(ctx, client)
	if err != nil {
		return nil, err
	}
	defer watch.stop()
	writesBefore, err := countWrites(ctx, client)
	if err != nil {
		return nil, err
	}
	serverBefore := childrenCPU("kube-apiserver", "etcd")
	d.load = loadAverage()

	// 3. From the start to the last binding.
	var process *controlplane.Process
	failed := make(chan error, 1)
	d.start = time.Now()
	if c.program == nil {
		go func() {
			if err := post(ctx, client, o, nodes, earlier); err != nil {
				failed <- err
			}
		}()
	} else if process, err = cp.StartProcess(program); err != nil {
		return nil, err
	} else {
		go func() {
			<-process.Done()
			failed <- process.EndedEarly()
		}()
		if profiles != nil {
			defer profiles.begin(ctx, program)()
		}
	}
	d.bindings, err = watch.wait(ctx, o.pods(), o.stall, failed)
	if err != nil {
		if process != nil && process.Running() {
			err = fmt.Errorf("%w; the end of the scheduler's log:\n%s", err, process.LogTail(15))
		}
		return nil, err
	}
	d.server = childrenCPU("kube-apiserver", "etcd") - serverBefore
	if process != nil {
		if d.process, err = usageOf(process.PID()); err != nil {
			return nil, err
		}
	}

	// 4. Events and conditions may come later than the bindings they tell of.
	if d.writes, d.quiet, err = settledWrites(ctx, client, writesBefore); err != nil {
		return nil, err
	}
	return d, checkNodes(d.bindings, o.gpus)
}

// plainClient returns a client without a rate limit that speaks protobuf, as the schedulers do.
func plainClient(config *rest.Config) (*kubernetes.Clientset, error) {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.UserAgent = "muster-bench"
	return kubernetes.NewForConfig(config)
}

func gangName(gang int) string     { return fmt.Sprintf("gang-%04d", gang) }
func podName(gang, pod int) string { return fmt.Sprintf("gang-%04d-%04d", gang, pod) }

func createPodGroups(ctx context.Context, cp *controlplane.ControlPlane, o options) error {
	client, err := dynamic.NewForConfig(cp.Admin())
	if err != nil {
		return err
	}
	groups := client.Resource(v2alpha2.SchemeGroupVersion.WithResource("podgroups")).Namespace(namespace)
	return inParallel(o.gangs, func(i int) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(
			wrappers.MakePodGroup(gangName(i), namespace).MinMember(int32(o.podsPerGang)).Obj())
		if err != nil {
			return err
		}
		_, err = groups.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		return err
	})
}

// createPods creates the pods of one gang after the other, and records the gang of each.
func createPods(ctx context.Context, client kubernetes.Interface, o options, c contest, gangOf map[string]string) error {
	for gang := range o.gangs {
		for pod := range o.podsPerGang {
			gangOf[podName(gang, pod)] = gangName(gang)
		}
	}
	return inParallel(o.pods(), func(i int) error {
		gang, pod := i/o.podsPerGang, i%o.podsPerGang
		w := wrappers.MakePod(podName(gang, pod), namespace).SchedulerName(c.schedulerName).GPUs(1)
		if c.gangs {
			w.Gang(gangName(gang))
		}
		_, err := client.CoreV1().Pods(namespace).Create(ctx, w.Obj(), metav1.CreateOptions{})
		return err
	})
}

// post is the floor: it posts the bindings that a scheduler made earlier, in the same order; without one, node after node
// is filled up.
func post(ctx context.Context, client kubernetes.Interface, o options, nodes []string, earlier []binding) error {
	if earlier == nil {
		for i := range o.pods() {
			earlier = append(earlier, binding{pod: podName(i/o.podsPerGang, i%o.podsPerGang), node: nodes[i/o.gpus]})
		}
	}
	return inParallel(len(earlier), func(i int) error {
		b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: earlier[i].pod}, Target: corev1.ObjectReference{Kind: "Node", Name: earlier[i].node}}
		if earlier[i].mark != "" {
			b.Annotations = map[string]string{v2alpha2.BoundForAnnotation: earlier[i].mark}
		}
		return client.CoreV1().Pods(namespace).Bind(ctx, b, metav1.CreateOptions{})
	})
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

// inParallel does n things, writers at a time, beginning them in order. It returns the first error.
func inParallel(n int, do func(i int) error) error {
	var (
		group sync.WaitGroup
		next  atomic.Int64
		once  sync.Once
		first error
	)
	for range writers {
		group.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					once.Do(func() { first = err })
					return
				}
			}
		})
	}
	group.Wait()
	return first
}

func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	load, _, _ := strings.Cut(string(content), " ")
	return load
}
