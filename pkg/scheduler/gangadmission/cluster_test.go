// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedresourcev1 "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulerprofile "k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/fakeapi"
	"github.com/muster-project/muster/test/wrappers"
)

// cluster is the whole scheduler with the built-in profile, in memory: a fake clientset for the Kubernetes API, and a
// small HTTP server for PodGroups.
type cluster struct {
	t      testing.TB
	ctx    context.Context
	client *fake.Clientset
	groups *fakeapi.PodGroups
	gangs  *Gangs
	sched  *scheduler.Scheduler

	mu     sync.Mutex
	popped []string                         // names of pods, in the order of their cycles
	bound  []string                         // names of pods, in the order of their bindings
	marks  map[string]string                // by pod
	writes []string                         // other writes: "delete pods x"
	events []eventsv1.Event                 // as recorded, except those of bindings, which are posted later
	refuse func(pod string) (post, ok bool) // reaction to a binding: whether it is stored, and whether the answer is a success
	// lingering: deleted pods are terminating until deletePod removes them.
	lingering bool
	answer    func(ctx context.Context, pod string) error // called before a binding reaches the API server
	onClaim   func(ctx context.Context)                   // called before the status of a claim reaches the API server
	onMark    func()                                      // called before a mark of a victim, or its removal, reaches the API server
	onEvent   func(*corev1.Pod)                           // called before the informer is told of a pod that was not listed; nil: nothing
	onPop     func(pod string)
	onCycle   func(pod string) bool                             // used by the plugin moody: whether the real cycle refuses the node
	cycles    int                                               // of onCycle
	prepare   func(ctx context.Context, pod string) *fwk.Status // PreBind of the plugin moody
	permit    func(pod string) *fwk.Status                      // Permit of the plugin moody
	onNode    func(point, pod, node string) *fwk.Status         // what the plugin moody says about a node in real cycles, at Filter, Reserve, PreBind and Unreserve; nil: nothing
	plugins   func(p *kubeconfig.Plugins)                       // modifies the built-in profile
	extends   []kubeconfig.Extender
	clock     clock.WithTickerAndDelayedExecution               // nil: the usual
	end       func(error)                                       // instead of ending the process; nil: the usual
	alone     bool                                              // IgnoreWorkloads
	readable  <-chan struct{}                                   // PodGroups are not read before it is closed; nil: they are at once
	wrap      func(kubescheduler.Profile) kubescheduler.Profile // wraps the profile before any pod is scheduled; nil: no wrapper
}

// moody is a filter that refuses in a real cycle a node that it accepted in the plan.
type moody struct{ c *cluster }

func (moody) Name() string { return "Moody" }

// SignPod keeps the batching of the stock scheduler: a single filter without it would disable it for all pods.
func (moody) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) { return nil, nil }

// PreFilter excludes the plugin from plans, which then depend only on the free resources of nodes.
func (moody) PreFilter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if kubescheduler.IsPlanning(state) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

func (moody) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (m moody) Filter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if m.c.onNode != nil {
		return m.c.onNode("Filter", pod.Name, node.Node().Name)
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if !kubescheduler.IsPlanning(state) && m.c.onCycle != nil && m.c.onCycle(pod.Name) {
		return fwk.NewStatus(fwk.Unschedulable, "in a bad mood")
	}
	return nil
}

// PreBindPreFlight implements fwk.PreBindPlugin.
func (moody) PreBindPreFlight(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

// PreBind implements fwk.PreBindPlugin, in clusters with prepares.
func (m moody) PreBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if m.c.onNode != nil {
		return m.c.onNode("PreBind", pod.Name, node)
	}
	return m.c.prepare(ctx, pod.Name)
}

// Permit implements fwk.PermitPlugin, in clusters with permits.
func (m moody) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	return m.c.permit(pod.Name), time.Hour
}

// Reserve implements fwk.ReservePlugin, in clusters with opinions.
func (m moody) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	return m.c.onNode("Reserve", pod.Name, node)
}

// Unreserve implements fwk.ReservePlugin. What the plugin says is ignored.
func (m moody) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) {
	m.c.onNode("Unreserve", pod.Name, node)
}

// opinions is the option of a cluster in which the plugin moody refuses nodes in real cycles.
func opinions(onNode func(point, pod, node string) *fwk.Status) clusterOption {
	return func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) {
		c.onNode = onNode
		c.plugins = func(p *kubeconfig.Plugins) {
			p.Reserve.Enabled = append(p.Reserve.Enabled, kubeconfig.Plugin{Name: "Moody"})
			p.PreBind.Enabled = append(p.PreBind.Enabled, kubeconfig.Plugin{Name: "Moody"})
		}
	}
}

// extended is the option of a cluster with an extender that filters.
func extended(e *fakeapi.Extender, change func(*kubeconfig.Extender)) clusterOption {
	return func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) {
		extender := kubeconfig.Extender{URLPrefix: e.Serve(c.t), FilterVerb: "filter", NodeCacheCapable: true, Weight: 1}
		change(&extender)
		c.extends = append(c.extends, extender)
	}
}

// extenderConfig is the configuration of an extender.
type extenderConfig = kubeconfig.Extender

func manages(name string) func(e *kubeconfig.Extender) {
	return func(e *kubeconfig.Extender) {
		e.ManagedResources = []kubeconfig.ExtenderManagedResource{{Name: name, IgnoredByScheduler: true}}
	}
}

// prepares is the option of a cluster in which the plugin moody prepares pods.
func prepares(pod func(ctx context.Context, name string) *fwk.Status) clusterOption {
	return func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) {
		c.prepare = pod
		c.plugins = func(p *kubeconfig.Plugins) {
			p.PreBind.Enabled = append(p.PreBind.Enabled, kubeconfig.Plugin{Name: "Moody"})
		}
	}
}

// delaysEvents is the option of a cluster whose informer is told of changes of pods when the function returns.
func delaysEvents(pod func(*corev1.Pod)) clusterOption {
	return func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) { c.onEvent = pod }
}

// permits is the option of a cluster in which the plugin moody lets pods wait at Permit.
func permits(pod func(name string) *fwk.Status) clusterOption {
	return func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) {
		c.permit = pod
		c.plugins = func(p *kubeconfig.Plugins) {
			p.Permit.Enabled = append(p.Permit.Enabled, kubeconfig.Plugin{Name: "Moody"})
		}
	}
}

// sortOnly is the option of a cluster whose profile only orders its queue by GangAdmission.
func sortOnly(c *cluster, _ *bool, _ *config.GangAdmissionArgs) {
	c.plugins = func(p *kubeconfig.Plugins) {
		for _, set := range []*kubeconfig.PluginSet{
			&p.MultiPoint, &p.PreEnqueue, &p.PreFilter, &p.Filter, &p.PostFilter, &p.Reserve, &p.Permit, &p.Bind, &p.PostBind,
		} {
			set.Enabled = slices.DeleteFunc(set.Enabled, func(p kubeconfig.Plugin) bool { return p.Name == Name || p.Name == GateName })
		}
	}
}

// slowClient delays a binding until answer returns, and the status of a claim until onClaim does. The fake clientset
// itself processes one request at a time.
type slowClient struct {
	kubernetes.Interface
	c *cluster
}

func (s slowClient) CoreV1() typedcorev1.CoreV1Interface { return slowCore{s.Interface.CoreV1(), s.c} }

// IsWatchListSemanticsUnSupported returns the same value to informers as the fake clientset.
func (slowClient) IsWatchListSemanticsUnSupported() bool { return true }

func (s slowClient) ResourceV1() typedresourcev1.ResourceV1Interface {
	return slowResources{s.Interface.ResourceV1(), s.c}
}

type slowResources struct {
	typedresourcev1.ResourceV1Interface
	c *cluster
}

func (s slowResources) ResourceClaims(namespace string) typedresourcev1.ResourceClaimInterface {
	return slowClaims{s.ResourceV1Interface.ResourceClaims(namespace), s.c}
}

type slowClaims struct {
	typedresourcev1.ResourceClaimInterface
	c *cluster
}

func (s slowClaims) UpdateStatus(ctx context.Context, claim *resourcev1.ResourceClaim, o metav1.UpdateOptions) (*resourcev1.ResourceClaim, error) {
	if s.c.onClaim != nil {
		s.c.onClaim(ctx)
	}
	return s.ResourceClaimInterface.UpdateStatus(ctx, claim, o)
}

type slowCore struct {
	typedcorev1.CoreV1Interface
	c *cluster
}

func (s slowCore) Pods(namespace string) typedcorev1.PodInterface {
	return slowPods{s.CoreV1Interface.Pods(namespace), s.c}
}

type slowPods struct {
	typedcorev1.PodInterface
	c *cluster
}

func (s slowPods) Bind(ctx context.Context, binding *corev1.Binding, o metav1.CreateOptions) error {
	if s.c.answer != nil {
		if err := s.c.answer(ctx, binding.Name); err != nil {
			return err
		}
	}
	return s.PodInterface.Bind(ctx, binding, o)
}

func (s slowPods) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	if s.c.onMark != nil && strings.Contains(string(data), string(corev1.DisruptionTarget)) {
		s.c.onMark()
	}
	return s.PodInterface.Patch(ctx, name, pt, data, o, subresources...)
}

type clusterOption func(c *cluster, attach *bool, args *config.GangAdmissionArgs)

func newCluster(t testing.TB, options ...clusterOption) *cluster {
	t.Helper()
	groups := fakeapi.NewPodGroups()
	url := groups.Serve(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel) // before the server is closed, which waits for its watchers
	c := &cluster{t: t, ctx: ctx, client: fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}), groups: groups, marks: map[string]string{}}
	c.client.PrependReactor("*", "pods", c.react)
	noEndedPods := func(f string) bool { return f == endedPods } // the fake clientset does not support field selectors
	c.client.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return noEndedPods(a.(clienttesting.ListAction).GetListRestrictions().Fields.String()), &corev1.PodList{}, nil
	})
	c.client.PrependWatchReactor("pods", func(a clienttesting.Action) (bool, watch.Interface, error) {
		switch restrictions := a.(clienttesting.WatchActionImpl); {
		case noEndedPods(restrictions.GetWatchRestrictions().Fields.String()):
			return true, watch.NewFake(), nil
		case c.onEvent == nil:
			return false, nil, nil
		default:
			w, err := c.client.Tracker().Watch(a.GetResource(), a.GetNamespace(), restrictions.ListOptions)
			if err != nil {
				return true, nil, err
			}
			return true, watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
				if pod, ok := e.Object.(*corev1.Pod); ok {
					c.onEvent(pod)
				}
				return e, true
			}), nil
		}
	})

	cfg, err := profile.Default()
	if err != nil {
		t.Fatal(err)
	}
	attach := true
	cfg.Profiles[0].Plugins.PreFilter.Enabled = append(cfg.Profiles[0].Plugins.PreFilter.Enabled, kubeconfig.Plugin{Name: "Moody"})
	cfg.Profiles[0].Plugins.Filter.Enabled = append(cfg.Profiles[0].Plugins.Filter.Enabled, kubeconfig.Plugin{Name: "Moody"})
	for _, p := range cfg.Profiles[0].PluginConfig {
		if args, ok := p.Args.(*kubeconfig.PodTopologySpreadArgs); ok {
			args.DefaultingType = kubeconfig.ListDefaulting // with default constraints the stock scheduler signs no pod at all
		}
		if p.Name == Name {
			args := p.Args.(*config.GangAdmissionArgs)
			args.BarrierTimeout.Duration = 5 * time.Second
			for _, o := range options {
				o(c, &attach, args)
			}
		}
	}
	if c.plugins != nil {
		c.plugins(cfg.Profiles[0].Plugins)
	}
	c.gangs = New()
	if c.alone {
		c.gangs.IgnoreWorkloads()
	}
	if c.clock != nil {
		c.gangs.clock = c.clock
	}
	if c.readable != nil {
		c.gangs.StartAfter(c.readable)
	}
	if c.end != nil {
		c.gangs.end = c.end
	}
	informers := scheduler.NewInformerFactory(c.client, 0, nil)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.client.EventsV1()})
	t.Cleanup(broadcaster.Shutdown)
	if _, err := broadcaster.StartEventWatcher(c.recordEvent); err != nil {
		t.Fatal(err)
	}
	c.sched, err = scheduler.New(ctx, slowClient{c.client, c}, informers, nil, schedulerprofile.NewRecorderFactory(broadcaster),
		scheduler.WithComponentConfigVersion(cfg.APIVersion), scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithKubeConfig(&rest.Config{Host: url}), scheduler.WithExtenders(c.extends...),
		scheduler.WithPodInitialBackoffSeconds(1), scheduler.WithPodMaxBackoffSeconds(1),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{GateName: c.gangs.NewGate, Name: c.gangs.NewAdmission,
			kubescheduler.GPUPackingName: kubescheduler.NewGPUPacking,
			"Moody":                      func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return moody{c}, nil }}))
	if err != nil {
		t.Fatal(err)
	}
	if attach {
		if err := c.gangs.Attach(c.sched); err != nil {
			t.Fatal(err)
		}
	}
	if c.wrap != nil {
		c.sched.Profiles[wrappers.SchedulerName] = c.wrap(c.sched.Profiles[wrappers.SchedulerName])
	}
	pop := c.sched.NextEntity
	c.sched.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		entity, err := pop(logger)
		if info, ok := entity.(*framework.QueuedPodInfo); ok && info.Pod != nil {
			c.mu.Lock()
			c.popped = append(c.popped, info.Pod.Name)
			hook := c.onPop
			c.mu.Unlock()
			if hook != nil {
				hook(info.Pod.Name)
			}
		}
		return entity, err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := c.sched.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// run starts the scheduling loop. Objects created before are all seen by the initial list.
func (c *cluster) run() *cluster {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.sched.Run(c.ctx)
	}()
	return c
}

func (c *cluster) recordEvent(obj runtime.Object) {
	if e, ok := obj.(*eventsv1.Event); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, *e)
	}
}

// eventsWith returns the events with this reason that were recorded before, as "object: note". Recorders deliver events
// in order.
func (c *cluster) eventsWith(reason string) (out []string) {
	c.t.Helper()
	last := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprintf("last-%d", time.Now().UnixNano())}}
	c.sched.Profiles[wrappers.SchedulerName].EventRecorder().Eventf(last, nil, corev1.EventTypeNormal, "Last", "Test", "")
	c.eventually("all events delivered", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.events, func(e eventsv1.Event) bool { return e.Regarding.Name == last.Name })
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.events {
		if e := &c.events[i]; e.Reason == reason {
			out = append(out, e.Regarding.Name+": "+e.Note)
		}
	}
	return out
}

// react processes bindings like an API server, and records writes.
func (c *cluster) react(a clienttesting.Action) (bool, runtime.Object, error) {
	switch {
	case a.GetVerb() == "create" && a.GetSubresource() == "binding":
		b := a.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
		post, ok := true, true
		c.mu.Lock()
		if c.refuse != nil {
			post, ok = c.refuse(b.Name)
		}
		c.mu.Unlock()
		if post {
			obj, err := c.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), b.Namespace, b.Name)
			if err != nil {
				return true, nil, err
			}
			pod := obj.(*corev1.Pod).DeepCopy()
			if pod.Spec.NodeName != "" {
				return true, nil, fmt.Errorf("pod %s is assigned to node %s already", b.Name, pod.Spec.NodeName)
			}
			pod.Spec.NodeName = b.Target.Name
			for k, v := range b.Annotations {
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, k, v)
			}
			if err := c.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, b.Namespace); err != nil {
				return true, nil, err
			}
			c.mu.Lock()
			c.bound = append(c.bound, b.Name)
			c.marks[b.Name] = b.Annotations[v2alpha2.BoundForAnnotation]
			c.mu.Unlock()
		}
		if !ok {
			return true, nil, fmt.Errorf("the API server hiccups")
		}
		return true, b, nil
	case a.GetVerb() == "delete":
		c.mu.Lock()
		c.writes = append(c.writes, "delete "+a.(clienttesting.DeleteAction).GetName())
		lingering := c.lingering
		c.mu.Unlock()
		if lingering {
			return true, nil, c.terminate(a.(clienttesting.DeleteAction).GetName())
		}
	}
	return false, nil, nil
}

// terminate does what an API server does with a bound pod that is deleted: it exists until its kubelet has ended it.
func (c *cluster) terminate(name string) error {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	obj, err := c.client.Tracker().Get(pods, "ml", name)
	if err != nil {
		return err
	}
	pod := obj.(*corev1.Pod).DeepCopy()
	if pod.DeletionTimestamp == nil {
		now := metav1.Now()
		pod.DeletionTimestamp = &now
	}
	return c.client.Tracker().Update(pods, pod, "ml")
}

func (c *cluster) node(w *wrappers.NodeWrapper) *cluster {
	c.t.Helper()
	if _, err := c.client.CoreV1().Nodes().Create(c.ctx, w.Obj(), metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	// Nodes and pods are delivered by separate informers.
	return c.eventually("the node seen", func() bool { return c.sched.Cache.Dump().Nodes[w.Obj().Name] != nil })
}

func (c *cluster) pod(pods ...*wrappers.PodWrapper) *cluster {
	c.t.Helper()
	for _, w := range pods {
		pod := w.Obj()
		pod.UID = "uid-" + typesUID(pod.Name)
		if _, err := c.client.CoreV1().Pods(pod.Namespace).Create(c.ctx, pod, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	return c
}

func (c *cluster) deletePod(name string) {
	if err := c.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "ml", name); err != nil {
		c.t.Error(err)
	}
}

// gang creates a PodGroup of n one-GPU pods that are all needed.
func (c *cluster) gang(name string, n int) *cluster {
	c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(int32(n)).Obj())
	return c.pod(members(name, n)...)
}

func members(gang string, n int) []*wrappers.PodWrapper {
	var out []*wrappers.PodWrapper
	for i := range n {
		out = append(out, wrappers.MakePod(fmt.Sprintf("%s-%d", gang, i), "ml").Gang(gang).GPUs(1))
	}
	return out
}

// boundOf returns the bound pods whose names begin with the prefix, sorted.
func (c *cluster) boundOf(prefix string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, n := range c.bound {
		if strings.HasPrefix(n, prefix) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// eventually waits until a condition is true.
func (c *cluster) eventually(what string, holds func() bool) *cluster {
	c.t.Helper()
	const limit = 2 * time.Minute // a scheduler without CPU time takes long: this only ends what hangs
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.t.Fatalf("not within %s: %s\nbound %v\npopped %v\nwrites %v", limit, what, c.bound, c.popped, c.writes)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return c
}

func (c *cluster) wholeOf(gang string, n int) *cluster {
	c.t.Helper()
	return c.eventually(fmt.Sprintf("%d pods of %s bound", n, gang), func() bool { return len(c.boundOf(gang+"-")) == n })
}

// refused waits until a gang has been refused.
func (c *cluster) refused(gang string) *cluster {
	c.t.Helper()
	return c.eventually(gang+" refused", func() bool {
		f, ok := c.gangs.registry.Facts(key(gang))
		return ok && f.Refused.Reason != ""
	})
}

// flakyCache fails to update the loop's snapshot on request.
type flakyCache struct {
	schedulercache.Cache
	fails atomic.Bool
}

func (c *flakyCache) UpdateSnapshot(logger klog.Logger, s *schedulercache.Snapshot) error {
	if c.fails.CompareAndSwap(true, false) {
		return errors.New("the snapshot is in a bad mood")
	}
	return c.Cache.UpdateSnapshot(logger, s)
}

// nodes returns the nodes as the next cycle sees them.
func (c *cluster) nodes() []fwk.NodeInfo {
	c.t.Helper()
	snapshot := schedulercache.NewEmptySnapshot()
	if err := c.sched.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
		c.t.Fatal(err)
	}
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		c.t.Fatal(err)
	}
	return nodes
}

// countFailures counts the cycles that fail.
func (c *cluster) countFailures() *atomic.Int32 {
	var failed atomic.Int32
	handle := c.sched.FailureHandler
	c.sched.FailureHandler = func(ctx context.Context, f framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		failed.Add(1)
		handle(ctx, f, info, status, nominating, start)
	}
	return &failed
}
