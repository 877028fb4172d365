// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/snapshot"
	"github.com/muster-project/muster/test/wrappers"
)

var update = flag.Bool("update", false, "write the golden files")

// taken is when the clusters of the tests were read.
var taken = time.Date(2026, 11, 29, 7, 0, 0, 0, time.UTC)

// a scene is a cluster of a test.
type scene struct{ objects []runtime.Object }

func (s *scene) nodes(n int, edit func(i int, w *wrappers.NodeWrapper)) *scene {
	for i := range n {
		name := fmt.Sprintf("node-%04d", i)
		w := wrappers.MakeNode(name).GPUs(8).Label(corev1.LabelHostname, name)
		if edit != nil {
			edit(i, w)
		}
		s.objects = append(s.objects, w.Obj())
	}
	return s
}

func (s *scene) class(name string, value int32) *scene {
	s.objects = append(s.objects, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
	return s
}

// gang adds a PodGroup and its pods; those with a node run.
func (s *scene) gang(group *wrappers.PodGroupWrapper, pods ...*wrappers.PodWrapper) *scene {
	g := group.Generation(1).CreationTimestamp(taken.Add(-time.Hour)).Obj()
	g.UID = "uid-" + g.UID
	s.objects = append(s.objects, g)
	return s.pods(pods...)
}

func (s *scene) pods(pods ...*wrappers.PodWrapper) *scene {
	for _, w := range pods {
		pod := w.CreationTimestamp(taken.Add(-time.Hour)).Obj()
		pod.UID = "uid-" + pod.UID
		if pod.Spec.NodeName != "" {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		s.objects = append(s.objects, pod)
	}
	return s
}

// members returns n pods of a gang; node names the nodes of the first of them.
func members(gang string, n int, gpus int64, node ...string) []*wrappers.PodWrapper {
	var pods []*wrappers.PodWrapper
	for i := range n {
		name := fmt.Sprintf("%s-%d", gang, i)
		w := wrappers.MakePod(name, "ml").UID(name).Gang(gang).GPUs(gpus).Controller("Job", gang, "job-"+gang)
		if i < len(node) {
			w.Node(node[i])
		}
		pods = append(pods, w)
	}
	return pods
}

func (s *scene) snapshot() *snapshot.Snapshot {
	return &snapshot.Snapshot{Taken: taken, Server: "v1.36.3", By: "test", Objects: s.objects}
}

// file writes the scene as a snapshot, and returns its name.
func (s *scene) file(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "cluster.json.gz")
	if err := writeFile(name, s.snapshot().Write); err != nil {
		t.Fatal(err)
	}
	return name
}

// run runs the command on a snapshot, and returns its exit code and output.
func run(t testing.TB, width int, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(context.Background(), append([]string{"kubectl-muster"}, args...), Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Width: width})
	return code, stdout.String(), stderr.String()
}

// scenes are the clusters of the golden files.
var scenes = map[string]func() *scene{
	// The first screen that on-call engineers asked for.
	"cordoned": func() *scene {
		s := (&scene{}).nodes(8, func(i int, w *wrappers.NodeWrapper) {
			if i == 6 {
				w.Unschedulable()
			}
		}).class("low", 100).class("high", 1000)
		for i := range 6 {
			name := fmt.Sprintf("nb-%d", i)
			s.pods(wrappers.MakePod(name, "nb").UID(name).GPUs(5).Node(fmt.Sprintf("node-%04d", i)).Priority(100).SchedulerName(wrappers.SchedulerName))
		}
		s.gang(wrappers.MakePodGroup("full", "ml").UID("full").MinMember(1), members("full", 1, 8, "node-0007")[0].Priority(100))
		mid := members("mid", 2, 4)
		for _, p := range mid {
			p.Priority(100)
		}
		return s.gang(wrappers.MakePodGroup("mid", "ml").UID("mid").MinMember(2), mid...)
	},
	// A tree of which one part is placed in one rack, and another does not fit in one.
	"topology": func() *scene {
		s := (&scene{}).nodes(6, func(i int, w *wrappers.NodeWrapper) { w.Label("example.com/rack", fmt.Sprintf("r%d", i/2)) })
		s.gang(wrappers.MakePodGroup("other", "ml").UID("other").MinMember(3), members("other", 3, 8, "node-0000", "node-0002", "node-0004")...)
		group := wrappers.MakePodGroup("chat", "ml").UID("chat").Inner("", "decode", 2).SubGroupOf("decode", "decode-0", 1).SubGroupOf("decode", "decode-1", 1).
			SubGroup("prefill", 2).Spec(func(spec *v2alpha2.PodGroupSpec) {
			spec.SubGroups[3].TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "example.com/rack"}
		})
		var pods []*wrappers.PodWrapper
		for _, p := range []struct {
			name, leaf string
			gpus       int64
		}{{"d0", "decode-0", 1}, {"d1", "decode-1", 1}, {"p0", "prefill", 6}, {"p1", "prefill", 6}} {
			pods = append(pods, wrappers.MakePod("chat-"+p.name, "ml").UID(p.name).Gang("chat").SubGroup(p.leaf).GPUs(p.gpus))
		}
		return s.gang(group, pods...)
	},
	"runs": func() *scene {
		return (&scene{}).nodes(2, nil).gang(wrappers.MakePodGroup("train", "ml").UID("train").MinMember(2), members("train", 3, 4, "node-0000", "node-0000", "node-0001")...)
	},
	// A JobSet of 300 Jobs, of which some are alike.
	"wide": func() *scene {
		s := (&scene{}).nodes(2, nil)
		group := wrappers.MakePodGroup("wide", "ml").UID("wide").Inner("", "workers", 300)
		var pods []*wrappers.PodWrapper
		for i := range 300 {
			leaf := fmt.Sprintf("workers-%d", i)
			group.SubGroupOf("workers", leaf, 4)
			for k := range 4 {
				name := fmt.Sprintf("wide-%s-%d", leaf, k)
				w := wrappers.MakePod(name, "ml").UID(name).Gang("wide").SubGroup(leaf).GPUs(1).Label("jobset.sigs.k8s.io/jobset-name", "wide")
				if i == 7 && k < 2 {
					w.Node("node-0001")
				}
				pods = append(pods, w)
			}
		}
		return s.gang(group, pods...)
	},
	// A service of which a worker has not been ready for three minutes, while an update replaces another part.
	"service": func() *scene {
		s := (&scene{}).nodes(3, nil)
		at := func(minutes int) *metav1.Time {
			return &metav1.Time{Time: taken.Add(time.Duration(minutes) * time.Minute)}
		}
		set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "ml", UID: "uid-set", Generation: 2}, Spec: v1alpha1.PodCliqueSetSpec{Replicas: 1}}
		set.Status = v1alpha1.PodCliqueSetStatus{
			ObservedGeneration: 2, Phase: v1alpha1.PodCliqueSetPhaseRunning,
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonReplicasUnavailable, Message: "0 of 1 replica is available; replica 0: chat-0-router has 1 of 2 ready pods"},
				{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWaitingForReadiness, Message: "replica 0: replica 1 of chat-0-model is not ready"},
			},
			ReplicaAttempts: []v1alpha1.ReplicaAttempt{{Index: 0, Attempt: 1, Reason: v1alpha1.ReasonTermination, Message: "PodClique chat-0-router had 0 of 2 ready pods", StartedAt: *at(-50), AvailableAt: at(-49)}},
		}
		breach := []metav1.Condition{{Type: v1alpha1.ConditionMinAvailableBreached, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInsufficientReadyPods,
			Message: "1 of 2 ready pods; chat-0-router-1 is not ready, since 2026-11-29T06:57:00Z; termination is due at 2026-11-29T07:07:00Z"}}
		labels := map[string]string{v1alpha1.LabelPartOf: "chat"}
		model := &v1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: "chat-0-model", Namespace: "ml", Labels: labels}}
		model.Status.UpdatedReplicas = 1
		model.Status.ReplicaAttempts = []v1alpha1.ReplicaAttempt{{Index: 1, Attempt: 3, Reason: v1alpha1.ReasonUpdate, Message: "the template has changed", StartedAt: *at(-2)}}
		s.objects = append(s.objects, set, model)
		group := wrappers.MakePodGroup("chat-0", "ml").UID("chat-0").Controller(v1alpha1.KindPodCliqueSet, set.Name, string(set.UID)).SubGroup("chat-0-router", 2).Inner("", "chat-0-model", 1).
			Inner("chat-0-model", "chat-0-model-0", 1).SubGroupOf("chat-0-model-0", "chat-0-model-0-leader", 1).
			Inner("chat-0-model", "chat-0-model-1", 1).SubGroupOf("chat-0-model-1", "chat-0-model-1-leader", 1)
		var pods []*wrappers.PodWrapper
		for i, leaf := range []string{"chat-0-router", "chat-0-router", "chat-0-model-0-leader", "chat-0-model-1-leader"} {
			name := fmt.Sprintf("%s-%d", leaf, i)
			pods = append(pods, wrappers.MakePod(name, "ml").UID(name).Gang("chat-0").SubGroup(leaf).GPUs(1).Node("node-0000"))
		}
		s.gang(group, pods...)
		for _, o := range s.objects[len(s.objects)-3:] { // the last router, and the model that is updated
			if pod := o.(*corev1.Pod); pod.Name != "chat-0-model-0-leader-2" {
				pod.Status.Conditions[0].Status = corev1.ConditionFalse
			}
		}
		for _, leaf := range []string{"chat-0-router", "chat-0-model-0-leader", "chat-0-model-1-leader"} {
			clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: leaf, Namespace: "ml", Labels: labels}}
			switch leaf {
			case "chat-0-router":
				clique.Status.Conditions, clique.Status.MinAvailableBreachedSince, clique.Status.TerminationDeadline = breach, at(-3), at(7)
			case "chat-0-model-1-leader":
				clique.Status.UpdatedReplicas = 1
			}
			s.objects = append(s.objects, clique)
		}
		return s
	},
	"fabric": func() *scene {
		s := (&scene{}).nodes(5, func(i int, w *wrappers.NodeWrapper) {
			w.Label("topology.example.com/block", "b0").Label("topology.example.com/rack", fmt.Sprintf("r%d", i/2))
		})
		return s.gang(wrappers.MakePodGroup("a", "ml").UID("a").MinMember(1), members("a", 1, 8, "node-0000")...)
	},
	"incomplete": func() *scene {
		return (&scene{}).nodes(2, nil).gang(wrappers.MakePodGroup("train", "ml").UID("train").MinMember(4), members("train", 3, 4)...)
	},
	"priority": func() *scene {
		s := (&scene{}).nodes(2, nil).class("low", 100).class("high", 1000).class("urgent", 2000)
		a := members("a", 2, 8, "node-0000", "node-0001")
		for _, p := range a {
			p.Priority(100)
		}
		s.gang(wrappers.MakePodGroup("a", "ml").UID("a").MinMember(2), a...)
		b := members("b", 1, 8)
		b[0].Priority(100)
		s.gang(wrappers.MakePodGroup("b", "ml").UID("b").MinMember(1), b...)
		c := members("c", 1, 8)
		c[0].Priority(1000)
		return s.gang(wrappers.MakePodGroup("c", "ml").UID("c").MinMember(1), c...)
	},
}

// clockTime is a time that depends on how long a command takes.
var clockTime = regexp.MustCompile(`\d\d:\d\d:\d\d UTC`)

// TestScreens compares what the commands print with golden files, in 80 and 120 columns.
func TestScreens(t *testing.T) {
	t.Parallel()
	tests := []struct {
		scene string
		args  []string
		code  int
	}{
		{"cordoned", []string{"why", "mid"}, 2},
		{"cordoned", []string{"why", "--all"}, 2},
		{"cordoned", []string{"top"}, 0},
		{"topology", []string{"why", "chat"}, 2},
		{"topology", []string{"tree", "chat"}, 0},
		{"topology", []string{"top"}, 0},
		{"runs", []string{"why", "job/train"}, 0},
		{"runs", []string{"tree", "train"}, 0},
		{"wide", []string{"tree", "jobset/wide"}, 0},
		{"cordoned", []string{"what-if", "-f", "testdata/jobset.yaml"}, 2},
		{"incomplete", []string{"why", "train"}, 2},
		{"fabric", []string{"what-if", "-f", "../../manifests/samples/topology.yaml"}, 0},
		{"fabric", []string{"lint", "-f", "../../manifests/samples/topology.yaml"}, 0},
		{"service", []string{"why", "pcs/chat"}, 0},
		{"service", []string{"tree", "pcs/chat"}, 0},
		{"priority", []string{"why", "b"}, 2},
		{"priority", []string{"why", "pod/c-0"}, 0},
		{"priority", []string{"what-if", "--drain", "node-0001"}, 2},
		{"cordoned", []string{"what-if", "-f", "testdata/two-jobs.yaml"}, 0},
		{"cordoned", []string{"what-if", "-f", "testdata/two-jobs.yaml", "--count", "9"}, 0},
		{"runs", []string{"what-if", "-f", "testdata/two-jobs.yaml"}, 1}, // it has no PriorityClass high
		{"runs", []string{"lint", "-f", "testdata/faulty.yaml"}, 2},
		{"runs", []string{"lint", "-f", "testdata/two-jobs.yaml"}, 0},
		{"runs", []string{"what-if", "-f", "testdata/faulty.yaml"}, 1},
		{"cordoned", []string{"doctor"}, 2},
		{"runs", []string{"what-if", "-f", "../../manifests/samples/podcliqueset.yaml"}, 2},
	}
	for _, tc := range tests {
		for _, width := range []int{40, 80, 120} {
			name := fmt.Sprintf("%s-%s-%d", tc.scene, strings.NewReplacer(" ", "-", "../", "", "/", "-", "--", "").Replace(strings.Join(tc.args, " ")), width)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				args := append([]string{"-n", "ml", "--snapshot", scenes[tc.scene]().file(t)}, tc.args...)
				if tc.args[0] == "why" {
					args = append(args, "--limit", "1m")
				}
				code, out, errs := run(t, width, args...)
				out = clockTime.ReplaceAllString(out, "HH:MM:SS UTC")
				if code != tc.code {
					t.Errorf("exit code %d, want %d", code, tc.code)
				}
				out += errs
				for i, line := range strings.Split(out, "\n") {
					if n := len([]rune(line)); n > width && !strings.Contains(line, "kubectl ") && !strings.HasPrefix(line, "error: ") && !strings.HasPrefix(line, "warning: ") {
						t.Errorf("line %d has %d characters: %s", i+1, n, line)
					}
				}
				if width == 40 { // nothing but the width is looked at
					return
				}
				golden := filepath.Join("testdata", name+".golden")
				if *update {
					if err := os.WriteFile(golden, []byte(out), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), out); diff != "" {
					t.Errorf("the screen (-want +got); -update writes it:\n%s", diff)
				}
			})
		}
	}
}
