// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/rounds"
)

// muster-controller is killed at random moments while five workloads are created, scaled out, scaled in, created again
// under the same name and deleted, all at the same time: the end state is the same as without a kill, and no index ever
// has two pods. A round is one such step of every workload, with one to three kills in it. The number of rounds is
// twice ROUNDS, or four times if ROUNDS is large: 200 in `make test-long`.
func TestKilledAtRandomInstants(t *testing.T) {
	n := 2 * rounds.Number()
	if n > 50 {
		n *= 2
	}
	w := newWorldFor(t, 4, time.Duration(n)*30*time.Second+5*time.Minute)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 3))
	began, kills := time.Now(), 0
	w.live(n, 5, random, func() {
		for range 1 + random.IntN(3) {
			<-time.After(time.Duration(random.Int64N(int64(1200 * time.Millisecond)))) // the instant of the kill
			controller.Kill()
			kills++
			w.must(cp.Restart(w.ctx, controller), "starting muster-controller")
		}
	})
	t.Logf("%d rounds with %d kills took %s, seed %d", n, kills, time.Since(began).Round(time.Second), seed)
}

// live runs workloads for a number of rounds, all at the same time and each at another step. disturb is called in every
// round during the steps.
func (w *world) live(n, workloads int, random *rand.Rand, disturb func()) {
	w.t.Helper()
	stop := w.watchCrashPods()
	defer stop()
	state := make([]step, workloads)
	for r := range n {
		var users errgroup.Group
		kept := map[string]types.UID{} // pods that no step has a reason to delete, by hostname
		for k := range workloads {
			if r < k { // they start one round after the other, so that every round contains all steps
				continue
			}
			name, now := fmt.Sprintf("crash%d", k), steps[(r-k)%len(steps)]
			state[k] = now
			if now.keeps != "" {
				for _, p := range w.pods() {
					if strings.HasPrefix(p.Spec.Hostname, name+now.keeps) {
						kept[p.Spec.Hostname] = p.UID
					}
				}
			}
			wait := time.Duration(random.Int64N(int64(800 * time.Millisecond)))
			users.Go(func() error {
				<-time.After(wait) // the instant at which this person acts
				return now.act(w, name)
			})
		}
		disturb()
		w.must(users.Wait(), fmt.Sprintf("round %d", r))

		// Counts in a status may lag by some seconds; the test checks at times whether they become correct.
		numbers := r%10 == 9 || r == n-1
		want := map[schema.GroupVersionResource][]string{}
		for k := range workloads {
			if state[k].act != nil {
				state[k].expect(want, fmt.Sprintf("crash%d", k), numbers)
			}
		}
		for _, kind := range []schema.GroupVersionResource{podsKind, podGroups, cliques, groups, sets, services, hpas} {
			w.untilPicture(r, kind, want[kind], numbers)
		}
		for _, p := range w.pods() {
			if uid, wasThere := kept[p.Spec.Hostname]; wasThere && uid != p.UID {
				w.t.Errorf("round %d: pod %s was deleted without a reason, and created again", r, p.Spec.Hostname)
			}
		}
		if w.t.Failed() {
			return
		}
	}
}

// crashed is a workload with all kinds of parts, without GPUs.
func crashed(name string) string {
	return `
metadata: {name: ` + name + `}
spec:
  replicas: 1
  template:
    cliques:
    - {name: web, spec: {replicas: 2, podSpec: {}}}
    - {name: leader, spec: {replicas: 1, podSpec: {}}}
    - {name: worker, spec: {replicas: 2, minAvailable: 1, podSpec: {}}}
    podCliqueScalingGroups:
    - {name: g, cliqueNames: [leader, worker], replicas: 2, minAvailable: 1, scaleConfig: {minReplicas: 1, maxReplicas: 3}}
`
}

// step is an action of a user on a workload, with its expected result.
type step struct {
	act func(w *world, name string) error
	// groups and web are the replicas that the scaling group and the standalone clique have in the end, by replica of
	// the set.
	groups, web []int
	// keeps is how the host names, behind the workload's name, of pods begin that outlive the step; "": of none.
	keeps string
}

// steps are the steps of a workload; the first follows the last.
var steps = []step{
	{act: (*world).crashCreate, groups: []int{2}, web: []int{2}},
	{act: func(w *world, name string) error {
		return w.crashScale(name, 2, 3, 4)
	}, groups: []int{3, 2}, web: []int{4, 2}, keeps: "-0-"},
	{act: func(w *world, name string) error {
		return w.crashScale(name, 1, 1, 1)
	}, groups: []int{1}, web: []int{1}, keeps: "-0-g-0-"},
	{act: func(w *world, name string) error { // the scale is deleted together with the object
		if err := w.crashDelete(name); err != nil {
			return err
		}
		return w.crashCreate(name)
	}, groups: []int{2}, web: []int{2}},
	{act: (*world).crashDelete},
}

func (w *world) crashCreate(name string) error {
	return w.persist(func() error { return w.client.Create(w.ctx, w.parse(crashed(name))) })
}

func (w *world) crashScale(name string, replicas, group, web int) error {
	for _, s := range []struct {
		kind     schema.GroupVersionResource
		name     string
		replicas int
	}{{groups, name + "-0-g", group}, {cliques, name + "-0-web", web}, {sets, name, replicas}} {
		if err := w.persist(func() error { return w.tryScale(s.kind, s.name, s.replicas) }); err != nil {
			return fmt.Errorf("scaling %s: %w", s.name, err)
		}
	}
	return nil
}

func (w *world) crashDelete(name string) error {
	return w.dynamic.Resource(sets).Namespace(w.namespace).Delete(w.ctx, name, metav1.DeleteOptions{})
}

// persist retries a request that is rejected because muster-controller, which serves the webhooks, is not running, like
// a user.
func (w *world) persist(request func() error) error {
	for {
		err := request()
		if !apierrors.IsInternalError(err) {
			return err
		}
		select {
		case <-w.ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond): // there is no event when webhooks answer again
		}
	}
}

// expect adds the objects that a workload is to consist of, as pictureOf draws them. numbers: with those of their
// status.
func (s step) expect(want map[schema.GroupVersionResource][]string, name string, numbers bool) {
	add := func(kind schema.GroupVersionResource, format string, args ...any) {
		want[kind] = append(want[kind], fmt.Sprintf(format, args...))
	}
	clique := func(name string, replicas, minimum int) {
		counts := ""
		if numbers {
			counts = fmt.Sprintf(" has %d, %d scheduled, %d ready, %d updated", replicas, replicas, replicas, replicas)
		}
		add(cliques, "%s wants %d needs %d available%s", name, replicas, minimum, counts)
		for i := range replicas {
			add(podsKind, "%s-%d ready", name, i)
		}
	}
	for i := range s.groups {
		replica := fmt.Sprintf("%s-%d", name, i)
		web := min(2, s.web[i]) // unset: the initial replicas, or less
		leaves := fmt.Sprintf(" %s-web:%d %s-g:1", replica, web, replica)
		clique(replica+"-web", s.web[i], web)
		for j := range s.groups[i] {
			group := fmt.Sprintf("%s-g-%d", replica, j)
			leaves += fmt.Sprintf(" %s:0 %s-leader:1 %s-worker:1", group, group, group)
			clique(group+"-leader", 1, 1)
			clique(group+"-worker", 2, 1)
		}
		sorted := strings.Fields(leaves)
		slices.Sort(sorted)
		add(podGroups, "%s %s", replica, strings.Join(sorted, " "))
		add(services, "%s", replica)
		add(hpas, "%s-g", replica)
		add(groups, "%s-g wants %d available", replica, s.groups[i])
	}
	if len(s.groups) > 0 {
		add(sets, "%s wants %d available", name, len(s.groups))
	}
}

// pictureOf returns the relevant fields of an object as a line.
func pictureOf(o *unstructured.Unstructured, numbers bool) string {
	if o.GetDeletionTimestamp() != nil {
		return o.GetName() + " is being deleted"
	}
	line := o.GetName()
	switch o.GetKind() {
	case "Pod":
		line, _, _ = unstructured.NestedString(o.Object, "spec", "hostname")
		if conditionOf(o, "Ready", "status") == "True" {
			line += " ready"
		}
	case "PodGroup":
		nodes, _, _ := unstructured.NestedSlice(o.Object, "spec", "subGroups")
		var tree []string
		for _, n := range nodes {
			m := n.(map[string]any)
			minimum := max(intOf(m["minMember"]), intOf(m["minSubGroup"]))
			tree = append(tree, fmt.Sprintf("%s:%d", m["name"], minimum))
		}
		slices.Sort(tree)
		line += " " + strings.Join(tree, " ")
	case v1alpha1.KindPodClique, v1alpha1.KindPodCliqueScalingGroup, v1alpha1.KindPodCliqueSet:
		wants, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		line += fmt.Sprintf(" wants %d", wants)
		if o.GetKind() == v1alpha1.KindPodClique {
			line += fmt.Sprintf(" needs %d", number(o, "minAvailable"))
		}
		if conditionOf(o, v1alpha1.ConditionAvailable, "status") == "True" {
			line += " available"
		}
		if numbers && o.GetKind() == v1alpha1.KindPodClique {
			line += fmt.Sprintf(" has %d, %d scheduled, %d ready, %d updated", number(o, "replicas"),
				number(o, "scheduledReplicas"), number(o, "readyReplicas"), number(o, "updatedReplicas"))
		}
		for _, trouble := range []string{v1alpha1.ConditionReplicaFailure, v1alpha1.ConditionForeignObject} {
			if conditionOf(o, trouble, "status") != "" {
				line += " " + trouble
			}
		}
	}
	return line
}

func intOf(v any) int64 {
	n, _ := v.(int64)
	return n
}

// untilPicture waits until the objects of a kind are exactly these.
func (w *world) untilPicture(round int, kind schema.GroupVersionResource, want []string, numbers bool) {
	w.t.Helper()
	slices.Sort(want)
	var got []string
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := controlplane.Until(ctx, w.dynamic.Resource(kind).Namespace(w.namespace), metav1.ListOptions{},
		func(objects []*unstructured.Unstructured) bool {
			got = got[:0]
			for _, o := range objects {
				got = append(got, pictureOf(o, numbers))
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		}); err != nil {
		missing := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return slices.Contains(got, line) })
		surplus := slices.DeleteFunc(slices.Clone(got), func(line string) bool { return slices.Contains(want, line) })
		w.t.Fatalf("round %d: %v; of %d %s\nmissing: %s\ntoo many: %s", round, err, len(got), kind.Resource,
			strings.Join(missing, "\n         "), strings.Join(surplus, "\n          "))
	}
}

// watchCrashPods fails the test if two pods of one PodClique ever have the same index, terminating ones included (all
// nodes are reachable here, so an index is free only when its pod is gone), or if a pod has an index that no step
// wants. The returned function ends the watch.
func (w *world) watchCrashPods() (stop func()) {
	most := map[string]string{"web": "0123", "leader": "0", "worker": "01"} // indices, by clique
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		reported := map[string]bool{}
		report := func(format string, args ...any) {
			if text := fmt.Sprintf(format, args...); !reported[text] {
				reported[text] = true
				w.t.Error(text)
			}
		}
		_ = controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			seen := map[string]string{}
			for _, p := range pods {
				index := p.Labels[v1alpha1.LabelPodIndex]
				if indices := most[p.Labels[v1alpha1.LabelTemplateName]]; index == "" || !strings.Contains(indices, index) {
					report("pod %s has index %q, asked for were %s", p.Name, index, indices)
				}
				if len(p.OwnerReferences) == 0 {
					report("pod %s has no owner", p.Name)
					continue
				}
				key := string(p.OwnerReferences[0].UID) + "/" + index
				if other := seen[key]; other != "" {
					report("pods %s and %s have index %s of the same PodClique", min(other, p.Name), max(other, p.Name), index)
				}
				seen[key] = p.Name
			}
			return false
		})
	}()
	return func() { cancel(); <-done }
}
