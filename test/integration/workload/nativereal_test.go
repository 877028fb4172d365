//go:build workloads

// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// TestRealNative: PodGroups and CompositePodGroups through the API server and the controllers of Kubernetes itself: the
// published cases in each version that it serves, Jobs whose PodGroups the Job controller makes, and a version that is
// dropped while watched.
func TestRealNative(t *testing.T) {
	ctx := context.Background()
	nativePlane(t, ctx)
	if err := startMuster(cp, ctx); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]int32{"high": 1000, "higher": 2000, "never": 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if name == "never" {
			class.PreemptionPolicy = ptr.To(corev1.PreemptNever)
		}
		if _, err := cp.Client().SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("v1beta1", func(t *testing.T) { runNativeCases(t, "v1beta1") })
	t.Run("jobs", testNativeJobs)

	s := &nativeStory{w: newWorld(t, 0), version: "v1beta1"}
	s.run(`
		nodes 1 1 1
		group a gang=2
		pods a 2
		bound a=2`)
	before := s.made("kubernetes-a")
	cp.APIServer.Args = append(cp.APIServer.Args, "--runtime-config=scheduling.k8s.io/v1beta1=false")
	s.w.must(cp.Restart(ctx, cp.APIServer), "restarting the API server without v1beta1")
	s.version = "v1alpha3"
	s.run(`
		pods a 1
		bound a=3
		group b gang=1
		pods b 1
		needs kubernetes-b 1`)
	s.w.until("the PodGroup has the owner that is served", podGroups, func(groups []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(groups, func(g *unstructured.Unstructured) bool {
			return g.GetUID() == before.GetUID() && g.GetOwnerReferences()[0].APIVersion == "scheduling.k8s.io/v1alpha3"
		})
	})
	t.Run("v1alpha3", func(t *testing.T) { runNativeCases(t, "v1alpha3") })
	s.end()
}

func runNativeCases(t *testing.T, version string) {
	for _, name := range slices.Sorted(maps.Keys(nativeCases)) {
		source, _, _ := strings.Cut(name, ":")
		t.Run(strings.NewReplacer(",", "", " ", "-").Replace(source), func(t *testing.T) {
			t.Parallel()
			s := &nativeStory{w: newWorld(t, 0), version: version}
			defer s.end()
			t.Log(name, "-", nativeCases[name].differs)
			s.run(nativeCases[name].story)
		})
	}
}

// testNativeJobs: the Job controller makes a PodGroup for each Job. Of those whose pods belong to it one of Muster's is
// made.
func testNativeJobs(t *testing.T) {
	w := newWorld(t, 0)
	s := &nativeStory{w: w, version: "v1beta1"}
	create := func(name, scheduling, metadata, scheduler string) {
		job := read(w, fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  parallelism: 3
  completions: 3
  scheduling: %s
  template:
    metadata: %s
    spec:
      schedulerName: %s
      nodeSelector: {world: %s}
      restartPolicy: Never
      containers: [{name: main, image: registry.example/main:1, resources: {limits: {nvidia.com/gpu: 1}}}]`, name, scheduling, metadata, scheduler, w.namespace))
		w.must(w.client.Create(w.ctx, job), "creating Job "+name)
	}
	untilMade := func(want ...string) {
		t.Helper()
		w.until(fmt.Sprint("the PodGroups are ", want), podGroups, func(groups []*unstructured.Unstructured) bool {
			got := make([]string, 0, len(groups))
			for _, g := range groups {
				n, _, _ := unstructured.NestedInt64(g.Object, "spec", "minMember")
				cut := min(len(g.GetName()), strings.Index(g.GetName(), "-")+6) // the rest is made of hashes
				got = append(got, fmt.Sprintf("%s needs %d", g.GetName()[:cut], n))
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		})
	}
	untilNative := func(n int) {
		t.Helper()
		w.until(fmt.Sprintf("there are %d PodGroups of Kubernetes", n), s.kind("podgroups"), func(groups []*unstructured.Unstructured) bool { return len(groups) == n })
	}
	const ours = "muster-scheduler"
	s.run("nodes 1 1")
	create("whole", "{schedulingPolicy: {gang: {minCount: 3}}}", "{}", ours)
	untilMade("kubernetes-whole needs 3")
	w.until("the gang lacks room", s.kind("podgroups"), func(groups []*unstructured.Unstructured) bool {
		return conditionOf(groups[0], "PodGroupInitiallyScheduled", "reason") == "Unschedulable"
	})
	w.untilBoundPods(0)
	s.run("nodes 1")
	w.untilBoundPods(3)

	create("plain", "null", "{}", ours)
	untilMade("kubernetes-plain needs 1", "kubernetes-whole needs 3")
	create("marks", "null", "{labels: {scheduling.run.ai/min-member: all}}", ours)
	create("other", "null", "{}", "default-scheduler")
	untilNative(4)
	untilMade("job-marks needs 3", "kubernetes-plain needs 1", "kubernetes-whole needs 3")
	w.untilBoundPods(3)
	s.run("nodes 1 1 1 1 1 1")
	w.untilBoundPods(9)
	untilMade("job-marks needs 3", "kubernetes-plain needs 1", "kubernetes-whole needs 3")

	create("both", "{schedulingPolicy: {gang: {minCount: 2}}}", "{labels: {scheduling.run.ai/min-member: all}}", ours)
	if note := w.untilEvent("both", v2alpha2.EventGangNotMade); !strings.HasPrefix(note, "spec.scheduling and label scheduling.run.ai/min-member of the pod template both say") {
		t.Error(note)
	}
	untilNative(5)
	untilMade("job-marks needs 3", "kubernetes-plain needs 1", "kubernetes-whole needs 3")
	for _, name := range []string{"whole", "plain", "marks", "other", "both"} {
		w.must(w.dynamic.Resource(jobs).Namespace(w.namespace).Delete(w.ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}), "deleting a Job")
	}
	untilNative(0)
	w.untilGone()
}

// nativeStory runs the steps of a case in a namespace of its own, on nodes of its own. Each node has some GPUs, and
// each pod needs one.
type nativeStory struct {
	w          *world
	version    string            // of PodGroups
	priorities map[string]string // the PriorityClass of a group, "" for none
	pods       int
}

func (s *nativeStory) run(story string) {
	s.w.t.Helper()
	for line := range strings.Lines(story) {
		if line = strings.TrimSpace(line); line != "" {
			s.w.t.Log(line)
			s.step(strings.Fields(line))
		}
	}
}

// end deletes all that the story has made. Without v1beta1 the controller of Kubernetes that takes the finalizers of
// PodGroups rests.
func (s *nativeStory) end() {
	s.w.must(s.w.client.DeleteAllOf(s.w.ctx, &corev1.Pod{}, client.InNamespace(s.w.namespace)), "deleting the pods")
	for _, resource := range []string{"compositepodgroups", "podgroups"} {
		s.w.must(s.w.dynamic.Resource(s.kind(resource)).Namespace(s.w.namespace).DeleteCollection(s.w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "deleting the groups")
	}
	if s.version == "v1beta1" || s.w.t.Failed() {
		return
	}
	list, err := s.w.dynamic.Resource(s.kind("podgroups")).Namespace(s.w.namespace).List(s.w.ctx, metav1.ListOptions{})
	s.w.must(err, "listing the groups")
	for i := range list.Items {
		s.w.must(client.IgnoreNotFound(s.w.client.Patch(s.w.ctx, &list.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))), "removing a finalizer")
	}
	s.w.until("what was made of the groups is collected", podGroups, func(groups []*unstructured.Unstructured) bool { return len(groups) == 0 })
}

// step runs one step.
//
//	nodes [LABEL=VALUE...] GPUS...          creates nodes
//	group NAME OPTIONS, composite ...       creates one: nativeStory.object
//	pods GROUP N [gpus=N] [priority=CLASS] [gated] [apart]   creates pods; group "alone": of no group, as with option alone
//	on LABEL=VALUE GROUP                    creates a pod that runs on a node with the label
//	bound GROUP=N...                        waits until so many pods of each group are bound
//	either GROUP=N,GROUP=N...               waits until one of these holds
//	pending GROUP N                         waits until so many pods wait, and the scheduler has said so
//	waits OURS REASON, needs OURS N         waits until Muster's PodGroup says so
//	says GROUP STATUS REASON, target GROUP  waits until the condition of the group of Kubernetes says so
//	event NAME REASON WORDS                 waits for an event with these words
//	together LABEL GROUP...                 all pods of the groups are on nodes with one value of the label
//	mincount GROUP N, delete GROUP, open GROUP (removes the gates of its pods)
//	refused group NAME OPTIONS, forbidden GROUP PATCH   the API server refuses it
func (s *nativeStory) step(words []string) {
	w := s.w
	w.t.Helper()
	verb, args := words[0], words[1:]
	switch verb {
	case "nodes":
		labels := map[string]string{"world": w.namespace}
		for _, arg := range args {
			if key, value, is := strings.Cut(arg, "="); is {
				labels[key] = w.namespace + "-" + value
				continue
			}
			names, err := cp.CreateNodes(w.ctx, controlplane.NodeOptions{Count: 1, GPUs: count(w, arg), First: len(w.nodes), NamePrefix: w.namespace, Labels: labels})
			w.must(err, "creating a node")
			w.nodes = append(w.nodes, names...)
		}
	case "group", "composite":
		w.must(w.client.Create(w.ctx, s.object(verb, args[0], args[1:])), "creating "+args[0])
	case "refused":
		if err := w.client.Create(w.ctx, s.object(args[0], args[1], args[2:])); err == nil {
			w.t.Errorf("%v is not refused", args)
		}
	case "forbidden":
		if err := w.client.Patch(w.ctx, s.named(args[0]), client.RawPatch(types.MergePatchType, []byte(strings.Join(args[1:], " ")))); err == nil {
			w.t.Errorf("%v is not refused", args)
		}
	case "mincount":
		patch := fmt.Sprintf(`{"spec":{"schedulingPolicy":{"gang":{"minCount":%s}}}}`, args[1])
		w.must(w.client.Patch(w.ctx, s.named(args[0]), client.RawPatch(types.MergePatchType, []byte(patch))), "editing minCount")
	case "delete":
		w.must(w.client.Delete(w.ctx, s.named(args[0])), "deleting a group")
	case "pods":
		for range count(w, args[1]) {
			w.must(w.client.Create(w.ctx, s.pod(args[0], args[2:]).Obj()), "creating a pod")
		}
	case "on":
		key, value, _ := strings.Cut(args[0], "=")
		nodes, err := cp.Client().CoreV1().Nodes().List(w.ctx, metav1.ListOptions{LabelSelector: key + "=" + w.namespace + "-" + value})
		w.must(err, "listing nodes")
		w.must(w.client.Create(w.ctx, s.pod(args[1], nil).Node(nodes.Items[0].Name).Obj()), "creating a pod that runs")
	case "open":
		for _, p := range w.pods() {
			if p.Labels["group"] == args[0] && len(p.Spec.SchedulingGates) > 0 {
				w.must(w.client.Patch(w.ctx, &p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`))), "removing a gate")
			}
		}
	case "bound":
		s.untilBound(strings.Join(args, ","))
	case "either":
		s.untilBound(args...)
	case "pending":
		s.untilPods(strings.Join(words, " "), func(pods []*corev1.Pod) bool {
			n := 0
			for _, p := range pods {
				if p.Labels["group"] == args[0] && p.Spec.NodeName == "" && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
					return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
				}) {
					n++
				}
			}
			return n == count(w, args[1])
		})
	case "waits":
		w.untilReason(args[0], args[1])
	case "needs":
		w.untilMinMember(args[0], int64(count(w, args[1])))
	case "says":
		s.untilCondition(args[0], "PodGroupInitiallyScheduled", args[1], args[2])
	case "target":
		s.untilCondition(args[0], "DisruptionTarget", "True", "PreemptionByScheduler")
	case "event":
		words := strings.Join(args[2:], " ")
		w.until(fmt.Sprintf("event %s about %s says %q", args[1], args[0], words), eventsKind, func(events []*unstructured.Unstructured) bool {
			return slices.ContainsFunc(events, func(e *unstructured.Unstructured) bool {
				of, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
				return of == args[0] && e.Object["reason"] == args[1] && strings.Contains(fmt.Sprint(e.Object["note"]), words)
			})
		})
	case "together":
		values := map[string]bool{}
		for _, p := range w.pods() {
			if slices.Contains(args[1:], p.Labels["group"]) && p.Spec.NodeName != "" {
				node, err := cp.Client().CoreV1().Nodes().Get(w.ctx, p.Spec.NodeName, metav1.GetOptions{})
				w.must(err, "reading a node")
				values[node.Labels[args[0]]] = true
			}
		}
		if len(values) != 1 {
			w.t.Errorf("%v are in %v", args[1:], slices.Sorted(maps.Keys(values)))
		}
	default:
		w.t.Fatalf("unknown step %v", words)
	}
}

func count(w *world, text string) int {
	w.t.Helper()
	n, err := strconv.Atoi(text)
	w.must(err, "reading a number")
	return n
}

// kind returns a resource of Kubernetes in the version of the story; CompositePodGroups have one version.
func (s *nativeStory) kind(resource string) schema.GroupVersionResource {
	version := s.version
	if resource == "compositepodgroups" {
		version = "v1alpha3"
	}
	return schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: version, Resource: resource}
}

// named returns a PodGroup of this name, for a request.
func (s *nativeStory) named(name string) *unstructured.Unstructured {
	return read(s.w, fmt.Sprintf("{apiVersion: scheduling.k8s.io/%s, kind: PodGroup, metadata: {name: %q}}", s.version, name))
}

// object returns a group.
//
//	gang=N, basic     what must start together
//	in=COMPOSITE      its parent; with orphan, without a Workload
//	by=LABEL          required topology
//	all               disruptionMode
//	priority=CLASS    also of its pods
//	claims            it has a resource claim
func (s *nativeStory) object(kind, name string, options []string) *unstructured.Unstructured {
	object, minimum := s.named(name), "minCount"
	spec := map[string]any{}
	if kind == "composite" {
		object, minimum = read(s.w, fmt.Sprintf("{apiVersion: scheduling.k8s.io/v1alpha3, kind: CompositePodGroup, metadata: {name: %q}}", name)), "minGroupCount"
	}
	if kind == "composite" || slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "in=") }) && !slices.Contains(options, "orphan") {
		spec["workloadRef"] = map[string]any{"workloadName": "w", "templateName": name}
	}
	for _, option := range options {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "gang":
			spec["schedulingPolicy"] = map[string]any{"gang": map[string]any{minimum: int64(count(s.w, value))}}
		case "basic":
			spec["schedulingPolicy"] = map[string]any{"basic": map[string]any{}}
		case "in":
			spec["parentCompositePodGroupName"] = value
		case "by":
			spec["schedulingConstraints"] = map[string]any{"topology": []any{map[string]any{"key": value}}}
		case "all":
			spec["disruptionMode"] = map[string]any{"all": map[string]any{}}
		case "priority":
			if spec["priorityClassName"] = value; value == "never" {
				spec["preemptionPolicy"] = "Never" // the same as of the class, or the API server refuses it
			}
			if s.priorities == nil {
				s.priorities = map[string]string{}
			}
			s.priorities[name] = value
		case "claims":
			spec["resourceClaims"] = []any{map[string]any{"name": "gpu", "resourceClaimName": "gpu"}}
		case "orphan":
		default:
			s.w.t.Fatalf("unknown option %s", option)
		}
	}
	object.Object["spec"] = spec
	return object
}

func (s *nativeStory) pod(group string, options []string) *wrappers.PodWrapper {
	name := fmt.Sprintf("%s-%d", group, s.pods)
	s.pods++
	pod := wrappers.MakePod(name, s.w.namespace).NodeSelector("world", s.w.namespace).Label("group", group).GPUs(1)
	alone := group == "alone" || slices.Contains(options, "alone")
	if !alone {
		pod.NativeGroup(group)
	}
	priority := s.priorities[group]
	for _, option := range options {
		switch key, value, _ := strings.Cut(option, "="); key {
		case "gpus":
			pod.GPUs(int64(count(s.w, value)))
		case "priority":
			priority = value
		case "gated":
			pod.SchedulingGate("example.com/gate")
		case "apart":
			pod.ApartFrom(corev1.LabelHostname, "group", group)
		case "alone":
		default:
			s.w.t.Fatalf("unknown option %s", option)
		}
	}
	if priority != "" {
		pod.PriorityClass(priority)
	}
	return pod
}

// made returns Muster's PodGroup of this name.
func (s *nativeStory) made(name string) *unstructured.Unstructured {
	s.w.t.Helper()
	group, err := s.w.dynamic.Resource(podGroups).Namespace(s.w.namespace).Get(s.w.ctx, name, metav1.GetOptions{})
	s.w.must(err, "reading PodGroup "+name)
	return group
}

func (s *nativeStory) untilCondition(name, kind, status, reason string) {
	s.w.t.Helper()
	s.w.until(fmt.Sprintf("PodGroup %s has %s %s, %s", name, kind, status, reason), s.kind("podgroups"), func(groups []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(groups, func(g *unstructured.Unstructured) bool {
			return g.GetName() == name && conditionOf(g, kind, "status") == status && conditionOf(g, kind, "reason") == reason
		})
	})
}

func (s *nativeStory) untilPods(what string, done func([]*corev1.Pod) bool) {
	s.w.t.Helper()
	ctx, cancel := s.w.patient()
	defer cancel()
	var last []string
	if err := controlplane.Until(ctx, cp.Client().CoreV1().Pods(s.w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		last = last[:0]
		for _, p := range pods {
			last = append(last, p.Name+" on "+p.Spec.NodeName)
		}
		return done(pods)
	}); err != nil {
		s.w.t.Fatalf("waiting until %s: %v; %v", what, err, last)
	}
}

// untilBound waits until one of the sets of counts, GROUP=N,..., holds for what is bound and does not end.
func (s *nativeStory) untilBound(any ...string) {
	s.w.t.Helper()
	s.untilPods(strings.Join(any, " or ")+" are bound", func(pods []*corev1.Pod) bool {
		bound := map[string]int{}
		for _, p := range pods {
			if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
				bound[p.Labels["group"]]++
			}
		}
		return slices.ContainsFunc(any, func(counts string) bool {
			for pair := range strings.SplitSeq(counts, ",") {
				group, n, _ := strings.Cut(pair, "=")
				if bound[group] != count(s.w, n) {
					return false
				}
			}
			return true
		})
	})
}
