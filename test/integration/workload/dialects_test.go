// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// guide returns the objects of the manifest below a heading of docs/migration.md, whose pods run on the nodes of the
// test.
func guide(w *world, heading string) []*unstructured.Unstructured {
	w.t.Helper()
	text, err := os.ReadFile("../../../docs/migration.md")
	w.must(err, "reading the guide")
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	_, rest, fenced := strings.Cut(rest, "\n```yaml\n")
	manifest, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !fenced || !closed {
		w.t.Fatalf("docs/migration.md has no manifest below %q", heading)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		object := read(w, document)
		if object.GetKind() == "Job" {
			w.must(unstructured.SetNestedStringMap(object.Object, map[string]string{"world": w.namespace}, "spec", "template", "spec", "nodeSelector"), "selecting the nodes")
		}
		objects = append(objects, object)
	}
	return objects
}

// setMinMember changes spec.minMember of a PodGroup of another scheduler.
func setMinMember(w *world, group *unstructured.Unstructured, n int64) {
	w.t.Helper()
	before := group.DeepCopy()
	w.must(unstructured.SetNestedField(group.Object, n, "spec", "minMember"), "editing minMember")
	w.must(w.client.Patch(w.ctx, group, client.MergeFrom(before)), "editing minMember")
}

func (w *world) untilMinMember(group string, n int64) {
	w.t.Helper()
	w.until("PodGroup "+group+" needs the pods", podGroups, func(groups []*unstructured.Unstructured) bool {
		for _, g := range groups {
			if min, _, _ := unstructured.NestedInt64(g.Object, "spec", "minMember"); g.GetName() == group && min == n {
				return true
			}
		}
		return false
	})
}

// TestFromCoscheduling: a Job and a PodGroup of Coscheduling, whose kind is installed while everything runs. The pods
// come first, and wait. A PodGroup of Muster of the same name is another gang. The minimum follows each edit; what is
// deleted ends no pod.
func TestFromCoscheduling(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	objects := guide(w, "From Coscheduling")
	group, job := objects[0], objects[1]
	w.must(w.client.Create(w.ctx, job), "creating the Job")
	ours := wrappers.MakePodGroup("nginx", w.namespace).MinMember(1).Obj()
	w.must(w.client.Create(w.ctx, ours), "creating a PodGroup of the same name")
	single := wrappers.MakePod("single", w.namespace).NodeSelector("world", w.namespace).Gang("nginx").Obj()
	w.must(w.client.Create(w.ctx, single), "creating its pod")
	w.untilBoundPods(1)
	w.until("the pods say what they wait for", podsKind, func(pods []*unstructured.Unstructured) bool {
		waiting := 0
		for _, p := range pods {
			if strings.Contains(conditionOf(p, "PodScheduled", "message"), "coscheduling-nginx") {
				waiting++
			}
		}
		return waiting == 4
	})
	crd := install(w, "scheduling.x-k8s.io", "v1alpha1", "PodGroup")
	w.must(unstructured.SetNestedField(group.Object, int64(5), "spec", "minMember"), "asking for more than there is")
	createWhenServed(w, group)
	w.untilReason("coscheduling-nginx", string(v2alpha2.ReasonWaitingForPods))
	w.untilBoundPods(1)
	setMinMember(w, group, 3)
	w.untilReadyPods(5)
	setMinMember(w, group, 8)
	w.untilMinMember("coscheduling-nginx", 8)
	w.untilReadyPods(5)

	both := wrappers.MakePod("both", w.namespace).NodeSelector("world", w.namespace).Gang("nginx").Label("scheduling.x-k8s.io/pod-group", "other").Obj()
	w.must(w.client.Create(w.ctx, both), "creating a pod that names two PodGroups")
	const two = `names PodGroup "nginx" by annotation pod-group-name and "other" by label scheduling.x-k8s.io/pod-group: remove all but one`
	if note := w.untilEvent("both", v2alpha2.EventMarksContradict); !strings.Contains(note, two) {
		t.Errorf("%s\nwant %s", note, two)
	}
	w.untilBoundPods(5)
	named := both.DeepCopy()
	delete(both.Labels, "scheduling.x-k8s.io/pod-group")
	w.must(w.client.Patch(w.ctx, both, client.MergeFrom(named)), "removing one of the names")
	w.untilReadyPods(6)
	w.must(w.client.Delete(w.ctx, both), "deleting the pod")
	w.untilReadyPods(5)

	// In the foreground, which shows that the garbage collector knows the kind by now: it deletes what the objects of a
	// kind owned that goes before it looked at it only when the kind is back.
	w.must(w.client.Delete(w.ctx, group, client.PropagationPolicy(metav1.DeletePropagationForeground)), "deleting the PodGroup of Coscheduling")
	w.untilNames(podGroups, "nginx")
	w.untilNames(group.GroupVersionKind().GroupVersion().WithResource("podgroups"))
	w.untilReadyPods(5)
	again := guide(w, "From Coscheduling")[0]
	w.must(w.client.Create(w.ctx, again), "creating it again")
	w.until("the gang that runs is taken for what it is", podGroups, func(groups []*unstructured.Unstructured) bool {
		for _, g := range groups {
			if g.GetName() == "coscheduling-nginx" && conditionOf(g, v2alpha2.ConditionSatisfied, "status") == "True" {
				return true
			}
		}
		return false
	})
	w.must(w.client.Delete(w.ctx, crd), "removing Coscheduling")
	w.untilReadyPods(5)
	w.untilNames(podGroups, "nginx")
	w.must(w.client.Create(w.ctx, wrappers.MakePod("late", w.namespace).NodeSelector("world", w.namespace).
		Label("scheduling.x-k8s.io/pod-group", "gone").Obj()), "creating a pod whose kind is gone")
	const names = `label scheduling.x-k8s.io/pod-group names PodGroup "gone"`
	if note := w.untilEvent("late", v2alpha2.EventPodGroupNotFound); !strings.HasPrefix(note, names) {
		t.Errorf("%s\nwant %s", note, names)
	}
	w.must(w.client.DeleteAllOf(w.ctx, &corev1.Pod{}, client.InNamespace(w.namespace)), "deleting the pods")
	w.must(w.dynamic.Resource(jobs).Namespace(w.namespace).Delete(w.ctx, "nginx", metav1.DeleteOptions{PropagationPolicy: &background}), "deleting the Job")
	w.must(w.client.Delete(w.ctx, ours), "deleting the PodGroup of Muster")
	w.untilGone()

	crd = install(w, "scheduling.x-k8s.io", "v1alpha1", "PodGroup")
	last := guide(w, "From Coscheduling")[0]
	createWhenServed(w, last)
	ofOthers := last.DeepCopy()
	ofOthers.SetName("others")
	ofOthers.SetResourceVersion("")
	w.must(w.client.Create(w.ctx, ofOthers), "creating a PodGroup that another scheduler runs")
	for scheduler, group := range map[string]string{"default-scheduler": "others", wrappers.SchedulerName: "nginx"} {
		w.must(w.client.Create(w.ctx, wrappers.MakePod("of-"+group, w.namespace).SchedulerName(scheduler).NodeSelector("world", w.namespace).
			Label("scheduling.x-k8s.io/pod-group", group).Obj()), "creating a pod")
	}
	w.untilReason("coscheduling-nginx", string(v2alpha2.ReasonWaitingForPods))
	w.untilNames(podGroups, "coscheduling-nginx")
	w.must(w.client.DeleteAllOf(w.ctx, &corev1.Pod{}, client.InNamespace(w.namespace)), "deleting the pods")
	w.must(w.client.Delete(w.ctx, ofOthers), "deleting the PodGroup of another scheduler")
	w.must(w.client.Delete(w.ctx, last), "deleting the PodGroup of Coscheduling that is back")
	w.untilGone()
	w.must(w.client.Delete(w.ctx, crd), "removing Coscheduling again")
}

// TestFromVolcano: a PodGroup of Volcano with tasks, and Jobs of which each makes the pods of a task. What of the
// PodGroup has no effect, or is refused, is told, and ends nothing.
func TestFromVolcano(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	crd := install(w, "scheduling.volcano.sh", "v1beta1", "PodGroup")
	objects := guide(w, "From Volcano")
	group, ps, worker := objects[0], objects[1], objects[2]
	w.must(unstructured.SetNestedField(group.Object, "research", "spec", "queue"), "setting the queue")
	createWhenServed(w, group)
	w.must(w.client.Create(w.ctx, ps), "creating the Job of a task")
	if note := w.untilEvent("tf", v2alpha2.EventIgnoredKeys); !strings.HasPrefix(note, `spec.queue "research" has no effect`) {
		t.Error(note)
	}
	w.untilReason("volcano-tf", string(v2alpha2.ReasonWaitingForPods))
	w.untilBoundPods(0)
	w.must(w.client.Create(w.ctx, worker), "creating the other Job")
	w.untilReadyPods(4)

	other := wrappers.MakePod("other", w.namespace).NodeSelector("world", w.namespace).Obj()
	other.Annotations = map[string]string{"scheduling.volcano.sh/group-name": "tf", "volcano.sh/task-spec": "chief"}
	w.must(w.client.Create(w.ctx, other), "creating a pod of another task")
	const lost = `carries task "chief", which the PodGroup does not have: correct annotation volcano.sh/task-spec, or add it to minTaskMember; the leaves are ps, worker`
	if note := w.untilEvent("other", v2alpha2.EventSubGroupNotFound); !strings.Contains(note, lost) {
		t.Errorf("%s\nwant %s", note, lost)
	}
	before := group.DeepCopy()
	w.must(unstructured.SetNestedField(group.Object, int64(1), "spec", "minTaskMember", "chief"), "adding the task")
	w.must(unstructured.SetNestedField(group.Object, int64(4), "spec", "minMember"), "adding the task")
	w.must(w.client.Patch(w.ctx, group, client.MergeFrom(before)), "adding the task")
	w.untilReadyPods(5)
	setMinMember(w, group, 9)
	if note := w.untilEvent("tf", v2alpha2.EventGangNotMade); !strings.HasPrefix(note, "spec.minMember is 9, and spec.minTaskMember needs 4 pods in all") {
		t.Error(note)
	}
	w.untilReadyPods(5)

	w.must(w.client.Delete(w.ctx, group), "deleting the PodGroup of Volcano")
	w.untilNames(podGroups)
	w.untilReadyPods(5)
	w.must(w.client.Delete(w.ctx, other), "deleting the pod")
	for _, job := range []string{"tf-ps", "tf-worker"} {
		w.must(w.dynamic.Resource(jobs).Namespace(w.namespace).Delete(w.ctx, job, metav1.DeleteOptions{PropagationPolicy: &background}), "deleting a Job")
	}
	w.untilGone()
	w.must(w.client.Delete(w.ctx, crd), "removing Volcano")
}

// TestFromKAI: a Job with KAI's marks is a gang, and its PodGroup as they say. What cannot be obeyed is told.
func TestFromKAI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	job := guide(w, "From KAI")[0]
	w.must(w.client.Create(w.ctx, job), "creating the Job")
	w.untilReadyPods(4)
	w.until("the PodGroup is as the marks say", podGroups, func(groups []*unstructured.Unstructured) bool {
		minimum, _, _ := unstructured.NestedInt64(groups[0].Object, "spec", "minMember")
		preemptibility, _, _ := unstructured.NestedString(groups[0].Object, "spec", "preemptibility")
		return minimum == 2 && preemptibility == string(v2alpha2.SemiPreemptible)
	})
	share := wrappers.MakePod("share", w.namespace).NodeSelector("world", w.namespace).Annotation("gpu-fraction", "0.5").Obj()
	w.must(w.client.Create(w.ctx, share), "creating a pod with a share of a GPU")
	if note := w.untilEvent("share", v2alpha2.EventIgnoredKeys); !strings.Contains(note, "annotation gpu-fraction: it would get none, and waits") {
		t.Error(note)
	}
	onJob := guide(w, "From KAI")[0]
	onJob.SetName("alone")
	onJob.SetAnnotations(map[string]string{"kai.scheduler/batch-min-member": "4"})
	unstructured.RemoveNestedField(onJob.Object, "spec", "template", "metadata")
	w.must(w.client.Create(w.ctx, onJob), "creating a Job with the mark where KAI reads it")
	if note := w.untilEvent("alone", v2alpha2.EventGangNotMade); !strings.HasPrefix(note, "annotation kai.scheduler/batch-min-member is on the Job itself") {
		t.Error(note)
	}
	w.untilBoundPods(8)
	w.must(w.client.Delete(w.ctx, share), "deleting the pod")
	for _, name := range []string{"bert", "alone"} {
		w.must(w.dynamic.Resource(jobs).Namespace(w.namespace).Delete(w.ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}), "deleting a Job")
	}
	w.untilGone()
}

// untilBoundPods waits until so many pods are bound.
func (w *world) untilBoundPods(n int) {
	w.t.Helper()
	w.until("pods are bound", podsKind, func(pods []*unstructured.Unstructured) bool {
		bound := 0
		for _, p := range pods {
			if node, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName"); node != "" {
				bound++
			}
		}
		return bound == n
	})
}
