// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/snapshot"
	"github.com/muster-project/muster/test/wrappers"
)

// expect runs a command in the namespace ml of a scene.
func expect(t *testing.T, s *scene, code int, has, hasNot []string, args ...string) {
	t.Helper()
	got, out, errs := run(t, 120, append([]string{"-n", "ml", "--snapshot", s.file(t)}, args...)...)
	out += errs
	if got != code {
		t.Errorf("%v: exit code %d, want %d:\n%s", args, got, code, out)
	}
	for _, text := range has {
		if !strings.Contains(out, text) {
			t.Errorf("%v: no %q in\n%s", args, text, out)
		}
	}
	for _, text := range hasNot {
		if strings.Contains(out, text) {
			t.Errorf("%v: %q in\n%s", args, text, out)
		}
	}
}

// A class with preemptionPolicy Never helps no gang, and one without it helps those whose present class has it.
func TestClassesThatNeverPreempt(t *testing.T) {
	t.Parallel()
	never := corev1.PreemptNever
	of := func(classes func(*scene), policy *corev1.PreemptionPolicy) *scene {
		s := (&scene{}).nodes(2, nil)
		classes(s)
		s.gang(wrappers.MakePodGroup("a", "ml").UID("a").MinMember(1), members("a", 1, 8, "node-0000")[0].Priority(100))
		s.gang(wrappers.MakePodGroup("c", "ml").UID("c").MinMember(1), members("c", 1, 8, "node-0001")[0].Priority(100))
		b := members("b", 1, 8)[0].Priority(100)
		b.Obj()
		s.gang(wrappers.MakePodGroup("b", "ml").UID("b").MinMember(1), b)
		s.objects[len(s.objects)-1].(*corev1.Pod).Spec.PreemptionPolicy = policy
		return s
	}
	patient := func(s *scene) {
		s.class("patient", 5000)
		s.objects[len(s.objects)-1].(*schedulingv1.PriorityClass).PreemptionPolicy = &never
	}
	expect(t, of(patient, nil), 2, nil, []string{"patient"}, "why", "b")
	both := func(s *scene) { patient(s); s.class("high", 1000) }
	expect(t, of(both, &never), 2, []string{"PriorityClass high (1000)"}, []string{"patient"}, "why", "b")
}

// Of the gangs of an object one that waits is explained, even after one that would start.
func TestWhyOfSeveralGangs(t *testing.T) {
	t.Parallel()
	s := (&scene{}).nodes(1, nil)
	for name, gpus := range map[string]int64{"train-0": 8, "train-1": 9} {
		pod := members(name, 1, gpus)[0].Controller("Job", "train", "job-train")
		s.gang(wrappers.MakePodGroup(name, "ml").UID(name).MinMember(1), pod)
	}
	expect(t, s, 2, []string{"ml/train-1  WAITS"}, nil, "why", "job/train")
}

// An owner whose pods have no gang is not said to be unknown.
func TestOwnerWithoutAGang(t *testing.T) {
	t.Parallel()
	s := (&scene{}).nodes(1, nil).pods(wrappers.MakePod("plain-0", "ml").UID("plain-0").Controller("Job", "plain", "job-plain"))
	expect(t, s, 1, []string{"job plain has no gang: its pods name no PodGroup"}, nil, "why", "plain")
}

// A PodCliqueSet without a PodGroup says why it has none.
func TestSetWithoutAGang(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*v1alpha1.PodCliqueSet){
		"it has no status; muster-controller does not run, or leaves it to another controller": func(set *v1alpha1.PodCliqueSet) { set.Status = v1alpha1.PodCliqueSetStatus{} },
		"its spec.replicas is 0": func(set *v1alpha1.PodCliqueSet) { set.Spec.Replicas = 0 },
		"no level is known":      func(*v1alpha1.PodCliqueSet) {},
		"it has failed: MaxRestartsExceeded: 3 restarts": func(set *v1alpha1.PodCliqueSet) {
			set.Status.Conditions = append(set.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMaxRestartsExceeded, Message: "3 restarts"})
		},
	} {
		set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "ml"}, Spec: v1alpha1.PodCliqueSetSpec{Replicas: 1}}
		set.Status = v1alpha1.PodCliqueSetStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Message: "no level is known"}}}
		edit(set)
		s := &scene{objects: []runtime.Object{set}}
		expect(t, s, 1, []string{"podcliqueset chat has no gang: " + want}, nil, "why", "pcs/chat")
		expect(t, s, 1, []string{"did you mean podcliqueset/chat?"}, nil, "tree", "chats")
	}
}

// A gang that has ended does not run, and one that would start does not wait for a reason.
func TestGangsThatDoNotWait(t *testing.T) {
	t.Parallel()
	s := (&scene{}).nodes(1, nil).gang(wrappers.MakePodGroup("done", "ml").UID("done").MinMember(1), members("done", 1, 1, "node-0000")...)
	s.objects[len(s.objects)-1].(*corev1.Pod).Status.Phase = corev1.PodSucceeded
	s.gang(wrappers.MakePodGroup("next", "ml").UID("next").MinMember(1), members("next", 1, 1)...)
	expect(t, s, 0, []string{"ml/done  COMPLETED"}, []string{"RUNS"}, "why", "done")
	expect(t, s, 0, []string{"why     it can be planned now"}, []string{"BehindInQueue"}, "tree", "next")
}

// A controller would take back a change of its PodGroup.
func TestNoCommandForPodGroupsOfControllers(t *testing.T) {
	t.Parallel()
	for _, controlled := range []bool{false, true} {
		s := (&scene{}).nodes(1, nil).gang(wrappers.MakePodGroup("b", "ml").UID("b").MinMember(2), members("b", 2, 8)...)
		not := []string(nil)
		if controlled {
			pod := s.objects[2].(*corev1.Pod)
			s.objects[1].(*v2alpha2.PodGroup).OwnerReferences = pod.OwnerReferences
			not = []string{"kubectl patch"}
		}
		expect(t, s, 2, []string{"minMember of the gang is 1 instead of 2"}, not, "why", "b")
	}
}

// Without the right to list PriorityClasses it is not known which exist.
func TestUnreadPriorityClasses(t *testing.T) {
	t.Parallel()
	group := wrappers.MakePodGroup("b", "ml").UID("b").MinMember(1).Spec(func(spec *v2alpha2.PodGroupSpec) { spec.PriorityClassName = "high" })
	s := (&scene{}).nodes(1, nil).gang(group, members("b", 1, 1, "node-0000")...)
	expect(t, s, 0, []string{"PriorityClass high does not exist"}, nil, "why", "b")
	name := filepath.Join(t.TempDir(), "cluster.json.gz")
	x := s.snapshot()
	x.Unread = []snapshot.Unread{{Resource: "priorityclasses.scheduling.k8s.io", Why: snapshot.WhyForbidden, Without: "priorities"}}
	if err := writeFile(name, x.Write); err != nil {
		t.Fatal(err)
	}
	if _, out, errs := run(t, 120, "why", "b", "-n", "ml", "--snapshot", name); strings.Contains(out, "does not exist") || !strings.Contains(errs, "priorityclasses") {
		t.Errorf("%s%s", out, errs)
	}
}

// What a file or a cluster calls things does not rule the terminal.
func TestTextsDoNotRuleTheTerminal(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2J\a\r\u202e\u009b7m\n"
	s := (&scene{}).nodes(3, func(i int, w *wrappers.NodeWrapper) {
		w.Label(corev1.LabelTopologyZone, "z"+evil)
		switch i {
		case 0:
			w.Taint("t"+evil, "v"+evil)
		case 1:
			w.Unschedulable()
		}
	})
	for _, o := range s.objects {
		o.(*corev1.Node).Name += evil
	}
	s.class("low"+evil, 100).class("high"+evil, 1000)
	s.gang(wrappers.MakePodGroup("full"+evil, "ml").UID("full").MinMember(1), members("full"+evil, 1, 8, "node-0002"+evil)...)
	group := wrappers.MakePodGroup("b", "ml").UID("b").MinMember(2).Condition(v2alpha2.ConditionSatisfied, metav1.ConditionFalse, v2alpha2.ReasonInsufficientGPUs, evil)
	s.gang(group, members("b", 2, 4)...)
	written := s.objects[len(s.objects)-3].(*v2alpha2.PodGroup)
	written.Status.Reason, written.Status.ObservedGeneration, written.Status.Placement = v2alpha2.Reason(evil), 1, evil
	x := s.snapshot()
	x.Unread = []snapshot.Unread{{Resource: "services" + evil, Why: "error" + evil, Without: "spread" + evil}}
	name := filepath.Join(t.TempDir(), "cluster.json.gz")
	if err := writeFile(name, x.Write); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"why", "b"}, {"why", "full" + evil}, {"why", "b" + evil}, {"why", "--all"}, {"tree", "b"}, {"tree", "full" + evil}, {"top"}, {"doctor"},
		{"what-if", "--drain", "node-0002" + evil}, {"what-if", "--drain", "node" + evil}, {"what-if", "-f", "testdata/two-jobs.yaml"},
		{"lint", "-f", evil}, {"top", "-o", evil},
	} {
		for _, width := range []int{40, 120} {
			_, out, errs := run(t, width, append([]string{"-n", "ml", "--snapshot", name}, args...)...)
			if at := strings.IndexFunc(out+errs, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); at >= 0 || out+errs == "" {
				t.Errorf("%q: a character at %d of %q", args, at, out+errs)
			}
		}
	}
}

// Objects of the same name in two namespaces are two, and so are two with the same generateName; those of a higher
// priority go first.
func TestManifestsWithSimilarNames(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, namespace := range []string{"a", "b"} {
		class := map[string]string{"a": "low", "b": "high"}[namespace]
		text.WriteString("---\napiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: train, namespace: " + namespace + "}\nspec: {minMember: 2}\n")
		for range 2 {
			text.WriteString("---\napiVersion: v1\nkind: Pod\nmetadata: {generateName: train-, namespace: " + namespace + ", annotations: {pod-group-name: train}}\n" +
				"spec: {schedulerName: muster-scheduler, priorityClassName: " + class + ", containers: [{name: c, image: c, resources: {limits: {nvidia.com/gpu: 4}}}]}\n")
		}
	}
	file := filepath.Join(t.TempDir(), "pods.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s := func(nodes int) *scene { return (&scene{}).nodes(nodes, nil).class("low", 100).class("high", 1000) }
	expect(t, s(2), 0, []string{"a/train  STARTS", "b/train  STARTS"}, []string{"WAITS"}, "what-if", "-f", file)
	expect(t, s(1), 2, []string{"a/train  WAITS", "b/train  STARTS"}, nil, "what-if", "-f", file)
}

// Pods that nobody controls do not come back after a drain.
func TestDrainOfPodsWithoutAController(t *testing.T) {
	t.Parallel()
	s := (&scene{}).nodes(2, nil)
	s.gang(wrappers.MakePodGroup("bare", "ml").UID("bare").MinMember(1), wrappers.MakePod("bare-0", "ml").UID("bare-0").Gang("bare").GPUs(1).Node("node-0000"))
	s.gang(wrappers.MakePodGroup("train", "ml").UID("train").MinMember(1), members("train", 1, 1, "node-0000")...)
	expect(t, s, 2, []string{"ml/bare  WAITS", "ml/train  STARTS"}, nil, "what-if", "--drain", "node-0000")
}

// The workers of a LeaderWorkerSet go with their leader: LeaderWorkerSet creates all of them again.
func TestDrainOfALeader(t *testing.T) {
	t.Parallel()
	s := (&scene{}).nodes(3, nil)
	var pods []*wrappers.PodWrapper
	for worker, node := range []string{"node-0000", "node-0001"} {
		name := fmt.Sprintf("llm-0-%d", worker)
		pod := wrappers.MakePod(name, "ml").UID(name).GPUs(8).Node(node).Controller("StatefulSet", "llm", "sts")
		for key, value := range membership.ReplicaLabels("llm", 0, worker) {
			pod.Label(key, value)
		}
		pods = append(pods, pod)
	}
	group := membership.ReplicaGroupName("llm", 0)
	s.gang(wrappers.MakePodGroup(group, "ml").UID("llm").MinMember(2), pods...)
	expect(t, s, 0, []string{"ml/leaderworkerset-llm.0  STARTS", "llm-0-0-again", "llm-0-1-again"}, nil, "what-if", "--drain", "node-0000")
	expect(t, s, 0, []string{"ml/leaderworkerset-llm.0  STARTS", "llm-0-1-again"}, []string{"llm-0-0-again"}, "what-if", "--drain", "node-0001")
}
