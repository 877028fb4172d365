// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/topology"
	"github.com/muster-project/muster/test/fakeapi"
	"github.com/muster-project/muster/test/wrappers"
)

// cluster is a reporter with a registry and an API server of PodGroups and pods, and a clock that only the test
// advances.
type cluster struct {
	t        *testing.T
	clock    *testclock.FakeClock
	registry *gangs.Registry
	groups   *fakeapi.PodGroups
	pods     *fake.Clientset
	nodes    cache.Indexer
	events   *eventLog
	reporter *Reporter
	patches  []string // "<pod> <patch>"
	busy     bool     // bindings are being posted
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		t: t, clock: testclock.NewFakeClock(start), registry: gangs.New(), pods: fake.NewClientset(),
		groups: fakeapi.NewPodGroups(), nodes: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), events: &eventLog{},
	}
	c.registry.Configure(gangs.Options{RepairTimeout: 30 * time.Second})
	c.registry.AddProfile(wrappers.SchedulerName)
	c.registry.SetSynced(start)
	c.pods.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.PatchAction)
		c.patches = append(c.patches, p.GetName()+" "+string(p.GetPatch()))
		if p.GetSubresource() != "status" {
			return true, nil, fmt.Errorf("patch of %q, want of the status", p.GetSubresource())
		}
		if have, err := c.pods.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), p.GetNamespace(), p.GetName()); err == nil &&
			!strings.Contains(string(p.GetPatch()), fmt.Sprintf(`"resourceVersion":%q`, have.(*corev1.Pod).ResourceVersion)) {
			return true, nil, apierrors.NewConflict(corev1.Resource("pods"), p.GetName(), fmt.Errorf("the object has been modified"))
		}
		return false, nil, nil
	})
	c.restart()
	return c
}

// restart replaces the reporter by a new one without state.
func (c *cluster) restart() {
	c.reporter = New(Options{
		Registry: c.registry, PodGroups: c.groups, Client: c.pods, Recorder: c.events, Clock: c.clock,
		Busy: func() bool { return c.busy }, Nodes: corelisters.NewNodeLister(c.nodes),
		Pods: podLister(c.t), Failed: func(gangs.Key) []*corev1.Pod { return nil },
		LevelsOf: func(name string) topology.Levels {
			return map[string]topology.Levels{"fabric": {"block", "rack"}}[name]
		},
		StatusInterval: 2 * time.Second, WaitingForGangAfter: 10 * time.Second, NeedsCapacityAfter: 2 * time.Second,
	})
}

// podLister returns a lister of the pods.
func podLister(t *testing.T, pods ...*wrappers.PodWrapper) corelisters.PodLister {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, w := range pods {
		if err := indexer.Add(w.Obj()); err != nil {
			t.Fatal(err)
		}
	}
	return corelisters.NewPodLister(indexer)
}

// group creates or edits a PodGroup, and updates the cache.
func (c *cluster) group(w *wrappers.PodGroupWrapper) {
	c.groups.Put(w.Obj())
	c.caughtUp(w.Obj().Name)
}

// caughtUp updates a PodGroup in the cache from the API server.
func (c *cluster) caughtUp(name string) {
	if g := c.groups.Get(keyOf(name)); g != nil {
		c.registry.SetGroup(g, c.clock.Now())
	}
}

// pod creates or changes a pod, in the API server and in the cache.
func (c *cluster) pod(w *wrappers.PodWrapper) {
	c.t.Helper()
	pod := w.Obj()
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	pod.ResourceVersion = "1"
	if old, err := c.pods.Tracker().Get(pods, pod.Namespace, pod.Name); err == nil {
		n, _ := strconv.Atoi(old.(*corev1.Pod).ResourceVersion)
		pod.ResourceVersion = strconv.Itoa(n + 1)
		if err := c.pods.Tracker().Update(pods, pod, pod.Namespace); err != nil {
			c.t.Fatal(err)
		}
	} else if err := c.pods.Tracker().Add(pod); err != nil {
		c.t.Fatal(err)
	}
	c.registry.SetPod(pod, c.clock.Now())
}

// seen updates a pod in the cache from the API server.
func (c *cluster) seen(name string) *corev1.Pod {
	c.t.Helper()
	obj, err := c.pods.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), namespace, name)
	if err != nil {
		c.t.Fatal(err)
	}
	c.registry.SetPod(obj.(*corev1.Pod).DeepCopy(), c.clock.Now())
	return obj.(*corev1.Pod)
}

func (c *cluster) refuse(name string, reason v2alpha2.Reason, message string) {
	c.registry.RecordGangRefused(keyOf(name), podgroup.Refusal{Reason: reason, Message: message}, gangs.Wait{}, c.clock.Now())
}

// planFails has a plan of the gang of a leader aborted.
func (c *cluster) planFails(leader, why string) {
	c.t.Helper()
	now := c.clock.Now()
	c.registry.Tick(now)
	work, not := c.registry.BeginAttempt(c.seen(leader))
	if work == nil {
		c.t.Fatalf("%s has nothing to plan: %s", leader, not)
	}
	var placements []placement.Placement
	for leaf, pods := range work.Problem.Pods {
		for _, pod := range pods {
			placements = append(placements, placement.Placement{Pod: pod, Leaf: leaf, Node: "n"})
		}
	}
	if plan, stale := c.registry.CommitPlan(work, placements, now); plan == nil {
		c.t.Fatal(stale)
	}
	c.registry.AbortPlanOf(types.UID(leader), gangs.AbortLate, why, now)
}

// look runs one check of a gang, and returns the time until the next one.
func (c *cluster) look(name string) (again time.Duration, err error) {
	again, err = c.reporter.statuses.syncStatus(context.Background(), keyOf(name))
	if err != nil {
		return again, err
	}
	pods, err := c.reporter.pods.syncGang(context.Background(), keyOf(name))
	return shorterWait(again, pods), err
}

// mustLook is look without an error; after it the caches are up to date.
func (c *cluster) mustLook(name string) time.Duration {
	c.t.Helper()
	again, err := c.look(name)
	if err != nil {
		c.t.Fatal(err)
	}
	c.caughtUp(name)
	return again
}

// passes advances the clock.
func (c *cluster) passes(d time.Duration) { c.clock.Step(d) }

const namespace = "ml"

func keyOf(name string) gangs.Key { return gangs.Key{Namespace: namespace, Name: name} }

func member(gang, name string) *wrappers.PodWrapper {
	return wrappers.MakePod(name, namespace).UID(name).Gang(gang).GPUs(1)
}

func podGroup(name string) *wrappers.PodGroupWrapper {
	return wrappers.MakePodGroup(name, namespace).UID("uid-" + name).Generation(1)
}

// eventLog stores events as "Warning GangBlocked PodGroup/train: note".
type eventLog struct {
	mu  sync.Mutex
	all []string
}

var _ events.EventRecorder = &eventLog{}

func (l *eventLog) Eventf(about, _ runtime.Object, kind, reason, _, note string, args ...any) {
	name := ""
	switch o := about.(type) {
	case *corev1.ObjectReference:
		name = o.Kind + "/" + o.Name
	case *corev1.Pod:
		name = "Pod/" + o.Name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf("%s %s %s: %s", kind, reason, name, fmt.Sprintf(note, args...)))
}

func (l *eventLog) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.all...)
}
