// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/classes"
	"github.com/muster-project/muster/pkg/controllers"
	"github.com/muster-project/muster/pkg/controllers/children"
)

// errCrashed is the error of every request of a process that has crashed.
var errCrashed = errors.New("the process has crashed")

// process is one process of muster-controller, from its start to a crash: its controllers, their cache and queues. It
// implements the manager with which the controllers are registered.
type process struct {
	manager.Manager // nil: methods that are not implemented panic

	api         *API
	cache       *viewCache
	recorder    events.EventRecorder
	controllers []*controllerQueue
	cancel      context.CancelFunc
	pulse       *children.Pulse
	lease       func() *coordinationv1.Lease // of the scheduler

	writesLeft  atomic.Int64 // until the crash; negative: none is planned
	acceptsLeft atomic.Int64 // until the write that is refused; negative: none is
	crashed     atomic.Bool
	before      func() // called before every write; nil: nothing is
}

// controllerQueue is a controller with its queue.
type controllerQueue struct {
	reconcile.Reconciler
	name  string
	queue *queue
}

// start starts a process: it registers the controllers, whose caches have all objects, and sends them the initial
// events.
func start(api *API, recorder events.EventRecorder, lease func() *coordinationv1.Lease) (*process, error) {
	ctx, cancel := context.WithCancel(context.Background())
	options := cache.Options{}
	settings := controllers.Options{
		SchedulerName: v1alpha1.DefaultSchedulerName, SchedulerLease: schedulerLease, WaitImage: "registry.example/muster-wait:sim", Clock: api.clock,
		StalledUpdateAfter: 10 * time.Minute, Classes: classes.DefaultOptions()}
	controllers.AddCacheOptions(&options, settings)
	p := &process{api: api, cache: newViewCache(api, options), recorder: recorder, cancel: cancel, lease: lease}
	p.pulse = children.NewPulse(10*time.Second, api.clock)
	settings.Pulse = p.pulse
	p.writesLeft.Store(-1)
	p.acceptsLeft.Store(-1)
	if err := controllers.Setup(ctx, p, settings); err != nil {
		return nil, fmt.Errorf("setting up the controllers: %w", err)
	}
	for _, c := range p.controllers {
		// The sources are started without workers.
		if err := c.Reconciler.(interface{ Warmup(context.Context) error }).Warmup(ctx); err != nil {
			return nil, fmt.Errorf("starting the watches: %w", err)
		}
	}
	return p, nil
}

// end ends the process and its watches.
func (p *process) end() {
	p.crashed.Store(true)
	p.cache.stop()
	p.cancel()
}

// run makes one pass for a request, as a worker of the controller does, and returns its error.
func (c *controllerQueue) run(ctx context.Context, r reconcile.Request) error {
	c.queue.take(r)
	result, err := c.Reconcile(ctx, r)
	switch {
	case err != nil:
		c.queue.AddRateLimited(r)
	case result.RequeueAfter > 0:
		c.queue.Forget(r)
		c.queue.AddAfter(r, result.RequeueAfter)
	default:
		c.queue.Forget(r)
	}
	return err
}

// Add implements manager.Manager. Controllers get the simulated queue in place of their own; other runnables are not
// started.
func (p *process) Add(r manager.Runnable) error {
	controller, ok := r.(reconcile.Reconciler)
	if !ok {
		return nil // a cache of optional kinds, such as Roles and Topologies, whose changes the controllers do not receive here
	}
	c := &controllerQueue{Reconciler: controller}
	newQueue := func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		c.name, c.queue = name, newQueue(p.api.clock, limiter)
		return c.queue
	}
	field := reflect.ValueOf(r).Elem().FieldByName("NewQueue") // of controller-runtime's internal Controller
	if !field.IsValid() {
		return fmt.Errorf("%T has no field NewQueue", r)
	}
	field.Set(reflect.ValueOf(newQueue))
	p.controllers = append(p.controllers, c)
	return nil
}

// GetControllerOptions implements manager.Manager. Warm-up starts the watches of a controller without its workers.
func (p *process) GetControllerOptions() config.Controller {
	yes, no := true, false
	return config.Controller{SkipNameValidation: &yes, EnableWarmup: &yes, RecoverPanic: &no, Logger: logr.Discard()}
}

// GetCache implements manager.Manager.
func (p *process) GetCache() cache.Cache { return p.cache }

// GetFieldIndexer implements manager.Manager.
func (p *process) GetFieldIndexer() client.FieldIndexer { return p.cache }

// GetClient implements manager.Manager. The client reads from the cache, and writes to the API server until the process
// crashes.
func (p *process) GetClient() client.Client {
	return apiClient{api: p.api, reader: p.cache, before: p.write}
}

// GetAPIReader implements manager.Manager.
func (p *process) GetAPIReader() client.Reader { return liveReader{p} }

// GetScheme implements manager.Manager.
func (p *process) GetScheme() *runtime.Scheme { return p.api.scheme }

// GetRESTMapper implements manager.Manager.
func (p *process) GetRESTMapper() meta.RESTMapper { return p.api.mapper }

// GetConfig implements manager.Manager. No request is sent to that host.
func (p *process) GetConfig() *rest.Config { return &rest.Config{Host: "http://sim.invalid"} }

// GetHTTPClient implements manager.Manager.
func (p *process) GetHTTPClient() *http.Client { return &http.Client{} }

// GetLogger implements manager.Manager.
func (p *process) GetLogger() logr.Logger { return logr.Discard() }

// GetEventRecorder implements manager.Manager.
func (p *process) GetEventRecorder(string) recorder.EventRecorder {
	return eventRecorder{EventRecorder: p.recorder}
}

// eventRecorder records events without annotations; a controller that wants some panics.
type eventRecorder struct {
	events.EventRecorder
	events.AnnotatedEventRecorder // nil
}

// write is called before every write of the process, of the object o. It returns an error if the process has crashed,
// and a conflict for the write that is refused. With dry-run nothing is written.
func (p *process) write(o client.Object, dryRun bool) error {
	if p.before != nil && !dryRun {
		p.before()
	}
	if p.crashed.Load() {
		return errCrashed
	}
	if dryRun {
		return nil
	}
	if p.writesLeft.Load() >= 0 && p.writesLeft.Add(-1) < 0 {
		p.crashed.Store(true)
		return errCrashed
	}
	if p.acceptsLeft.Load() >= 0 && p.acceptsLeft.Add(-1) == -1 { // only one of parallel writes
		t, err := p.api.tableOf(o)
		if err != nil {
			return err
		}
		return conflict(t, o.GetName(), "refused")
	}
	return nil
}

// liveReader reads from the API server while the process runs.
type liveReader struct{ p *process }

// Get implements client.Reader.
func (l liveReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if l.p.crashed.Load() {
		return errCrashed
	}
	if lease, ok := into.(*coordinationv1.Lease); ok && key == schedulerLease {
		l.p.lease().DeepCopyInto(lease)
		return nil
	}
	return l.p.api.Get(ctx, key, into, options...)
}

// List implements client.Reader.
func (l liveReader) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if l.p.crashed.Load() {
		return errCrashed
	}
	return l.p.api.List(ctx, into, options...)
}
