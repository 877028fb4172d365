// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// v2Status shortens test conditions.
type v2Status = v2alpha2.PodGroupStatus

var podGroups = v2alpha2.SchemeGroupVersion.WithResource("podgroups")

// cluster is the environment of one test: a namespace, nodes that only its pods select, and optionally a scheduler.
// Tests of this package run one after another: there is one muster-scheduler at a time, as in a real cluster.
type cluster struct {
	t         *testing.T
	ctx       context.Context
	namespace string
	nodes     []string
	scheduler *controlplane.Process
	dynamic   dynamic.Interface
	audited   int64 // length of the audit log when the test began
	began     time.Time
	patience  time.Duration // of untilStatus
}

// newCluster creates a namespace and nodes with 8 GPUs each, which are deleted at the end of the test.
func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", "#", "-", "Test", "").Replace(t.Name()))
	if len(name) > 40 {
		name = name[:40]
	}
	began := time.Now()
	c := &cluster{t: t, ctx: ctx, began: began, patience: 30 * time.Second, namespace: fmt.Sprintf("%s-%d", strings.Trim(name, "-"), began.UnixNano()%1_000_000)}
	var err error
	c.dynamic, err = dynamic.NewForConfig(cp.Admin())
	c.must(err, "making a dynamic client")
	log, err := os.Stat(cp.AuditLog())
	c.must(err, "looking at the audit log")
	c.audited = log.Size()
	c.must(cp.CreateNamespace(ctx, c.namespace), "creating the namespace")
	c.addNodes(nodes)
	t.Cleanup(c.close)
	return c
}

// must ends the test on an error.
func (c *cluster) must(err error, what string) {
	c.t.Helper()
	if err != nil {
		if c.scheduler != nil {
			c.t.Logf("muster-scheduler's last lines:\n%s", c.scheduler.LogTail(60))
		}
		c.t.Fatalf("%s: %v", what, err)
	}
}

// close deletes everything. It does not wait for pods of nodes without a kubelet: they are deleted immediately.
func (c *cluster) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if c.t.Failed() && c.scheduler != nil {
		c.t.Logf("muster-scheduler's last lines:\n%s", c.scheduler.LogTail(80))
	}
	if c.scheduler != nil {
		c.scheduler.Kill()
	}
	now := int64(0)
	_ = cp.Client().CoreV1().Pods(c.namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	_ = c.dynamic.Resource(podGroups).Namespace(c.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	for _, n := range c.nodes {
		if err := cp.Client().CoreV1().Nodes().Delete(ctx, n, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			c.t.Errorf("deleting node %s: %v", n, err)
		}
	}
	// The scheduler of the next test may read from the API server's cache, which lags on a busy machine.
	err := controlplane.Until(ctx, cp.Client().CoreV1().Nodes(), metav1.ListOptions{ResourceVersion: "0"}, func(nodes []*corev1.Node) bool {
		return !slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return slices.Contains(c.nodes, n.Name) })
	})
	if err != nil {
		c.t.Errorf("waiting until the nodes are gone: %v", err)
	}
	_ = cp.Client().CoreV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{})
}

// addNodes adds nodes with 8 GPUs.
func (c *cluster) addNodes(n int) []string {
	c.t.Helper()
	names, err := cp.CreateNodes(c.ctx, controlplane.NodeOptions{Count: n, GPUs: 8, First: len(c.nodes), NamePrefix: c.namespace})
	c.must(err, "creating nodes")
	c.nodes = append(c.nodes, names...)
	return names
}

// start runs muster-scheduler until the test is over.
func (c *cluster) start(args ...string) {
	c.t.Helper()
	var err error
	c.scheduler, err = cp.StartMusterScheduler(c.ctx, controlplane.SchedulerOptions{Args: args})
	c.must(err, "starting muster-scheduler")
}

// apply creates or changes a PodGroup.
func (c *cluster) apply(w *wrappers.PodGroupWrapper) {
	c.t.Helper()
	c.must(applyGroup(c.ctx, w.Obj()), "applying the PodGroup")
}

func applyGroup(ctx context.Context, pg *v2alpha2.PodGroup) error {
	pg.SetGroupVersionKind(v2alpha2.SchemeGroupVersion.WithKind("PodGroup"))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pg)
	if err != nil {
		return err
	}
	delete(content, "status")
	return cp.Apply(ctx, &unstructured.Unstructured{Object: content})
}

// group starts a PodGroup of this namespace.
func (c *cluster) group(name string) *wrappers.PodGroupWrapper {
	return wrappers.MakePodGroup(name, c.namespace)
}

// pod starts a pod of a gang that muster-scheduler schedules.
func (c *cluster) pod(name, group string, gpus int64) *wrappers.PodWrapper {
	w := wrappers.MakePod(name, c.namespace).SchedulerName("muster-scheduler").UID("")
	if group != "" {
		w.Gang(group)
	}
	if gpus > 0 {
		w.GPUs(gpus)
	}
	return w
}

// create creates a pod and returns it as the API server has it.
func (c *cluster) create(w *wrappers.PodWrapper) *corev1.Pod {
	c.t.Helper()
	pod := w.Obj()
	pod.ResourceVersion, pod.CreationTimestamp = "", metav1.Time{}
	created, err := cp.Client().CoreV1().Pods(c.namespace).Create(c.ctx, pod, metav1.CreateOptions{})
	c.must(err, "creating pod "+pod.Name)
	return created
}

// createGang creates a PodGroup that needs n pods, and n pods of so many GPUs.
func (c *cluster) createGang(name string, n int, gpus int64) {
	c.t.Helper()
	c.apply(c.group(name).MinMember(int32(n)))
	for i := range n {
		c.create(c.pod(fmt.Sprintf("%s-%d", name, i), name, gpus))
	}
}

// delete deletes pods by name, with a grace period of 0, because no kubelet would end them.
func (c *cluster) delete(names ...string) {
	c.t.Helper()
	now := int64(0)
	for _, n := range names {
		c.must(cp.Client().CoreV1().Pods(c.namespace).Delete(c.ctx, n, metav1.DeleteOptions{GracePeriodSeconds: &now}), "deleting pod "+n)
	}
}

// deleteGang deletes a gang's pods and its PodGroup.
func (c *cluster) deleteGang(name string) {
	c.t.Helper()
	for _, p := range c.pods() {
		if p.Annotations[v2alpha2.PodGroupAnnotation] == name {
			c.delete(p.Name)
		}
	}
	c.must(c.dynamic.Resource(podGroups).Namespace(c.namespace).Delete(c.ctx, name, metav1.DeleteOptions{}), "deleting PodGroup "+name)
}

func (c *cluster) pods() []corev1.Pod {
	c.t.Helper()
	list, err := cp.Client().CoreV1().Pods(c.namespace).List(c.ctx, metav1.ListOptions{})
	c.must(err, "listing pods")
	return list.Items
}

// until waits, by a watch, for the namespace's pods to be as wanted.
func (c *cluster) until(what string, within time.Duration, done func([]*corev1.Pod) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, within)
	defer cancel()
	var last []*corev1.Pod
	err := controlplane.Until(ctx, cp.Client().CoreV1().Pods(c.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		last = pods
		return done(pods)
	})
	if err != nil {
		for _, p := range last {
			c.t.Logf("pod %s on %q, phase %s, %v", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.Conditions)
		}
		c.logGroups()
	}
	c.must(err, "waiting until "+what)
}

// untilBound waits until so many pods of the gang are bound.
func (c *cluster) untilBound(group string, n int) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d pods of %s are bound", n, group), time.Minute, func(pods []*corev1.Pod) bool {
		return bound(pods, group) == n
	})
}

// bound counts the pods of a gang that have a node.
func bound(pods []*corev1.Pod, group string) int {
	n := 0
	for _, p := range pods {
		if p.Annotations[v2alpha2.PodGroupAnnotation] == group && p.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// boundNow counts the pods of a gang that have a node at this moment.
func (c *cluster) boundNow(group string) int {
	c.t.Helper()
	n := 0
	for _, p := range c.pods() {
		if p.Annotations[v2alpha2.PodGroupAnnotation] == group && p.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// untilStatus waits until a PodGroup's status is as wanted, and returns it.
func (c *cluster) untilStatus(group, what string, done func(v2alpha2.PodGroupStatus) bool) v2alpha2.PodGroupStatus {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, c.patience)
	defer cancel()
	var last v2alpha2.PodGroupStatus
	err := controlplane.Until(ctx, c.dynamic.Resource(podGroups).Namespace(c.namespace), metav1.ListOptions{},
		func(groups []*unstructured.Unstructured) bool {
			for _, u := range groups {
				if u.GetName() != group {
					continue
				}
				var pg v2alpha2.PodGroup
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &pg); err != nil {
					c.t.Errorf("reading PodGroup %s: %v", group, err)
				}
				last = pg.Status
			}
			return done(last)
		})
	if err != nil {
		status, _ := json.MarshalIndent(last, "", "  ")
		c.t.Logf("last status of %s: %s", group, status)
	}
	c.must(err, fmt.Sprintf("waiting until PodGroup %s %s", group, what))
	return last
}

// untilReason waits until a PodGroup is not satisfied for this reason, and returns the message.
func (c *cluster) untilReason(group string, reason v2alpha2.Reason) v2alpha2.PodGroupStatus {
	c.t.Helper()
	return c.untilStatus(group, "says "+string(reason), func(s v2alpha2.PodGroupStatus) bool { return s.Reason == reason })
}

// untilAdmitted waits until the status of a PodGroup is Admitted.
func (c *cluster) untilAdmitted(group string) v2alpha2.PodGroupStatus {
	c.t.Helper()
	return c.untilStatus(group, "is admitted", func(s v2alpha2.PodGroupStatus) bool {
		for _, cond := range s.Conditions {
			if cond.Type == v2alpha2.ConditionAdmitted {
				return cond.Status == metav1.ConditionTrue
			}
		}
		return false
	})
}

func (c *cluster) logGroups() {
	list, err := c.dynamic.Resource(podGroups).Namespace(c.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, u := range list.Items {
		status, _ := json.Marshal(u.Object["status"])
		c.t.Logf("PodGroup %s: %s", u.GetName(), status)
	}
}

// observer watches the pods of a namespace and records every period in which a gang is partly bound before its minimum
// was bound.
type observer struct {
	mu       sync.Mutex
	minimum  map[string]int       // pods of the minimum
	since    map[string]time.Time // partial gangs now
	whole    map[string]bool
	partials []partial
	overlaps int // observations of one partly bound gang while another gang that has never been admitted has bound pods too
	cancel   context.CancelFunc
	done     chan struct{}
}

// partial is one time during which a gang was bound in part.
type partial struct {
	gang     string
	duration time.Duration
	ended    string // "whole" or "released"
}

// observe starts an observer. expect registers gangs with it, before their pods are created.
func (c *cluster) observe() *observer {
	ctx, cancel := context.WithCancel(c.ctx)
	o := &observer{minimum: map[string]int{}, since: map[string]time.Time{}, whole: map[string]bool{}, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		_ = controlplane.Until(ctx, cp.Client().CoreV1().Pods(c.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			o.look(pods, time.Now())
			return false
		})
	}()
	return o
}

func (o *observer) expect(gang string, minimum int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.minimum[gang] = minimum
}

// forget removes the state of a gang.
func (o *observer) forget(gang string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.minimum, gang)
	delete(o.since, gang)
	delete(o.whole, gang)
}

func (o *observer) look(pods []*corev1.Pod, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := map[string]int{}
	for _, p := range pods {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			counts[p.Annotations[v2alpha2.PodGroupAnnotation]]++
		}
	}
	started := 0
	for gang, minimum := range o.minimum {
		n := counts[gang]
		since, isPartial := o.since[gang]
		switch {
		case n >= minimum:
			if isPartial {
				o.partials = append(o.partials, partial{gang, now.Sub(since), "whole"})
				delete(o.since, gang)
			}
			o.whole[gang] = true
		case n == 0:
			if isPartial {
				o.partials = append(o.partials, partial{gang, now.Sub(since), "released"})
				delete(o.since, gang)
			}
		case !o.whole[gang]:
			started++
			if !isPartial {
				o.since[gang] = now
			}
		}
	}
	if started > 1 {
		o.overlaps++
	}
}

// stop ends the observer and returns its observations.
func (o *observer) stop() ([]partial, int) {
	o.cancel()
	<-o.done
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.partials, o.overlaps
}

// longest returns the longest of the times, 0 for none.
func longest(partials []partial) time.Duration {
	var d time.Duration
	for _, p := range partials {
		d = max(d, p.duration)
	}
	return d
}

// ask returns the response of the scheduler's own server.
func (c *cluster) ask(path string) string {
	c.t.Helper()
	config := cp.Admin()
	config.CAData, config.Insecure = nil, true // its certificate is self-signed
	client, err := rest.HTTPClientFor(config)
	c.must(err, "making a client for muster-scheduler")
	defer client.CloseIdleConnections()
	response, err := client.Get(strings.TrimSuffix(c.scheduler.ReadyURL, "/readyz") + path)
	c.must(err, "asking muster-scheduler for "+path)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	c.must(err, "reading "+path)
	if response.StatusCode != http.StatusOK {
		c.must(fmt.Errorf("%s: %s", response.Status, body), "asking muster-scheduler for "+path)
	}
	return string(body)
}
