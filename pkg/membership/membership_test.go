// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owned returns the metadata with a controller.
func owned(kind, name string, meta metav1.ObjectMeta) metav1.ObjectMeta {
	yes := true
	meta.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: "uid", Controller: &yes}}
	return meta
}

func TestGang(t *testing.T) {
	t.Parallel()
	const madeForTrain = "train-86554f454f-train-pgt-0-566d789d6d" // as the Job controller of 1.37.2 writes it for a Job "train"
	for name, tc := range map[string]struct {
		pod                metav1.ObjectMeta
		field              string // spec.schedulingGroup.podGroupName
		group, leaf, place string
	}{
		"no mark": {pod: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}},
		"a PodGroup": {
			pod:   metav1.ObjectMeta{Annotations: map[string]string{"pod-group-name": "train"}},
			group: "train", place: "annotation pod-group-name",
		},
		"a PodGroup and a leaf of it": {
			pod: metav1.ObjectMeta{
				Annotations: map[string]string{"pod-group-name": "train"}, Labels: map[string]string{"kai.scheduler/subgroup-name": "workers"}},
			group: "train", leaf: "workers", place: "annotation pod-group-name",
		},
		"a PodGroup of another namespace: none of the pod's can have the name, so that it waits": {
			pod:   metav1.ObjectMeta{Namespace: "ml", Annotations: map[string]string{"pod-group-name": "other/train"}},
			group: "other/train", place: "annotation pod-group-name",
		},
		"a pod that controls itself": {
			pod:   owned("Pod", "a", metav1.ObjectMeta{Name: "a", UID: "uid", Labels: map[string]string{"scheduling.run.ai/min-member": "2"}}),
			group: "pod-a-5cc7e6cd", place: "label scheduling.run.ai/min-member",
		},
		"a JobSet of another API group has other labels, and its Jobs are Jobs": {
			pod:   owned("Job", "train-0", metav1.ObjectMeta{Labels: map[string]string{"jobset.example.com/jobset-uid": "uid", "scheduling.run.ai/min-member": "2"}}),
			group: "job-train-0-5cc7e6cd", place: "label scheduling.run.ai/min-member",
		},
		"an empty name is none": {pod: metav1.ObjectMeta{Annotations: map[string]string{"pod-group-name": ""}}},
		"a Job's pod with a minimum": {
			pod:   owned("Job", "train", metav1.ObjectMeta{Labels: map[string]string{"scheduling.run.ai/min-member": "all"}}),
			group: "job-train-5cc7e6cd", place: "label scheduling.run.ai/min-member",
		},
		"by an annotation": {
			pod:   owned("Job", "train", metav1.ObjectMeta{Annotations: map[string]string{"scheduling.run.ai/min-member": "all"}}),
			group: "job-train-5cc7e6cd", place: "annotation scheduling.run.ai/min-member",
		},
		"by KAI's annotation": {
			pod:   owned("Job", "train", metav1.ObjectMeta{Annotations: map[string]string{"kai.scheduler/batch-min-member": "4"}}),
			group: "job-train-5cc7e6cd", place: "annotation kai.scheduler/batch-min-member",
		},
		"by KAI's annotation, opted out": {
			pod: owned("Job", "train", metav1.ObjectMeta{Annotations: map[string]string{"kai.scheduler/batch-min-member": "4", "scheduling.run.ai/gang": "false"}}),
		},
		"the PodGroup that it names precedes that of its owner": {
			pod: owned("Job", "train", metav1.ObjectMeta{
				Annotations: map[string]string{"pod-group-name": "mine"}, Labels: map[string]string{"scheduling.run.ai/min-member": "all"}}),
			group: "mine", place: "annotation pod-group-name",
		},
		"opted out": {
			pod: owned("Job", "train", metav1.ObjectMeta{
				Labels: map[string]string{"scheduling.run.ai/min-member": "all"}, Annotations: map[string]string{"scheduling.run.ai/gang": "false"}}),
		},
		"another word opts out of nothing": {
			pod:   owned("Job", "train", metav1.ObjectMeta{Labels: map[string]string{"scheduling.run.ai/min-member": "all", "scheduling.run.ai/gang": "no"}}),
			group: "job-train-5cc7e6cd", place: "label scheduling.run.ai/min-member",
		},
		"a Deployment's pod": {
			pod: owned("ReplicaSet", "web-5d9c", metav1.ObjectMeta{
				Labels: map[string]string{"scheduling.run.ai/min-member": "2", "pod-template-hash": "5d9c"}}),
			group: "deployment-web", place: "label scheduling.run.ai/min-member",
		},
		"a pod of a ReplicaSet of nobody": {
			pod:   owned("ReplicaSet", "web-5d9c", metav1.ObjectMeta{Labels: map[string]string{"scheduling.run.ai/min-member": "2"}}),
			group: "replicaset-web-5d9c-5cc7e6cd", place: "label scheduling.run.ai/min-member",
		},
		"a kind that nobody groups: the pod waits": {
			pod:   owned("PyTorchJob", "bert", metav1.ObjectMeta{Labels: map[string]string{"scheduling.run.ai/min-member": "2"}}),
			group: "pytorchjob-bert-5cc7e6cd", place: "label scheduling.run.ai/min-member",
		},
		"a pod without an owner is its own": {
			pod:   metav1.ObjectMeta{Name: "alone", UID: "uid", Labels: map[string]string{"scheduling.run.ai/min-member": "2"}},
			group: "pod-alone-5cc7e6cd", place: "label scheduling.run.ai/min-member",
		},
		"a leader of a LeaderWorkerSet": {
			pod: owned("StatefulSet", "llm", metav1.ObjectMeta{Labels: map[string]string{
				"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "1", "leaderworkerset.sigs.k8s.io/worker-index": "0"}}),
			group: "leaderworkerset-llm.1", leaf: "leader", place: "label leaderworkerset.sigs.k8s.io/group-index",
		},
		"a worker, whose minimum is that of its replica": {
			pod: owned("StatefulSet", "llm-1", metav1.ObjectMeta{Labels: map[string]string{
				"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "1", "leaderworkerset.sigs.k8s.io/worker-index": "3",
				"scheduling.run.ai/min-member": "2"}}),
			group: "leaderworkerset-llm.1", leaf: "workers", place: "label leaderworkerset.sigs.k8s.io/group-index",
		},
		"a worker with a leaf of its own": {
			pod: metav1.ObjectMeta{Labels: map[string]string{
				"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "1", "leaderworkerset.sigs.k8s.io/worker-index": "3",
				"kai.scheduler/subgroup-name": "gpu"}},
			group: "leaderworkerset-llm.1", leaf: "gpu", place: "label leaderworkerset.sigs.k8s.io/group-index",
		},
		"a worker in a PodGroup of a user": {
			pod: metav1.ObjectMeta{Annotations: map[string]string{"pod-group-name": "mine"}, Labels: map[string]string{
				"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "1", "leaderworkerset.sigs.k8s.io/worker-index": "3"}},
			group: "mine", place: "annotation pod-group-name",
		},
		"an index that is none": {
			pod: metav1.ObjectMeta{Labels: map[string]string{
				"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "x"}},
		},
		"a pod of a JobSet": {
			pod: owned("Job", "train-workers-1", metav1.ObjectMeta{Labels: map[string]string{
				"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/jobset-uid": "uid", "jobset.sigs.k8s.io/replicatedjob-name": "workers",
				"jobset.sigs.k8s.io/job-index": "1", "scheduling.run.ai/min-member": "all"}}),
			group: "jobset-train-5cc7e6cd", leaf: "workers-1", place: "label jobset.sigs.k8s.io/jobset-uid",
		},
		"a pod of a JobSet in a PodGroup of a user": {
			pod: metav1.ObjectMeta{Annotations: map[string]string{"pod-group-name": "mine"}, Labels: map[string]string{
				"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/jobset-uid": "uid"}},
			group: "mine", place: "annotation pod-group-name",
		},
		"of Coscheduling": {
			pod:   owned("Job", "train", metav1.ObjectMeta{Labels: map[string]string{"scheduling.x-k8s.io/pod-group": "a", "scheduling.run.ai/min-member": "all"}}),
			group: "coscheduling-a", place: "label scheduling.x-k8s.io/pod-group",
		},
		"of Coscheduling, as an annotation": {pod: metav1.ObjectMeta{Annotations: map[string]string{"scheduling.x-k8s.io/pod-group": "a"}}},
		"of Coscheduling, opted out": {
			pod: metav1.ObjectMeta{Labels: map[string]string{"scheduling.x-k8s.io/pod-group": "a", "scheduling.run.ai/gang": "false"}},
		},
		"of Coscheduling and ours, of the same name": {
			pod:   metav1.ObjectMeta{Labels: map[string]string{"scheduling.x-k8s.io/pod-group": "a"}, Annotations: map[string]string{"pod-group-name": "a"}},
			group: "a", place: "annotation pod-group-name",
		},
		"of Volcano, and its task": {
			pod: owned("Job", "tf", metav1.ObjectMeta{Annotations: map[string]string{
				"scheduling.k8s.io/group-name": "tf-uid", "volcano.sh/task-spec": "worker"}}),
			group: "volcano-tf-uid", leaf: "worker", place: "annotation scheduling.k8s.io/group-name",
		},
		"of Volcano, by its newer key": {
			pod:   metav1.ObjectMeta{Annotations: map[string]string{"scheduling.volcano.sh/group-name": "a", "volcano.sh/task-spec": "ps"}},
			group: "volcano-a", leaf: "ps", place: "annotation scheduling.volcano.sh/group-name",
		},
		"of Volcano, by both": {
			pod:   metav1.ObjectMeta{Annotations: map[string]string{"scheduling.volcano.sh/group-name": "a", "scheduling.k8s.io/group-name": "a"}},
			group: "volcano-a", place: "annotation scheduling.k8s.io/group-name",
		},
		"a task in a PodGroup of ours is no leaf": {
			pod:   metav1.ObjectMeta{Annotations: map[string]string{"pod-group-name": "a", "volcano.sh/task-spec": "ps"}},
			group: "a", place: "annotation pod-group-name",
		},
		"of Coscheduling and a JobSet": {
			pod: metav1.ObjectMeta{Labels: map[string]string{
				"scheduling.x-k8s.io/pod-group": "a", "jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/jobset-uid": "uid"}},
			group: "coscheduling-a", place: "label scheduling.x-k8s.io/pod-group",
		},
		"of Kubernetes": {
			pod:   owned("Job", "train", metav1.ObjectMeta{Labels: map[string]string{"scheduling.run.ai/min-member": "all"}}),
			field: "a", group: "kubernetes-a", place: "field spec.schedulingGroup.podGroupName",
		},
		"of Kubernetes, in a tree whose root is known": {
			pod:   metav1.ObjectMeta{Annotations: map[string]string{"scheduling.run.ai/composite-pod-group": "root"}},
			field: "a", group: "composite-root", leaf: "a", place: "field spec.schedulingGroup.podGroupName",
		},
		"of Kubernetes, in a tree, of a long name": {
			pod:   metav1.ObjectMeta{Annotations: map[string]string{"scheduling.run.ai/composite-pod-group": "root"}},
			field: strings.Repeat("a.", 40) + "b", group: "composite-root", leaf: strings.Repeat("a.", 22) + "a-db4af43bc83e8195", place: "field spec.schedulingGroup.podGroupName",
		},
		"a root without the field is no mark": {pod: metav1.ObjectMeta{Annotations: map[string]string{"scheduling.run.ai/composite-pod-group": "root"}}},
		"of Kubernetes, opted out": {
			pod:   metav1.ObjectMeta{Annotations: map[string]string{"scheduling.run.ai/gang": "false"}},
			field: "a",
		},
		"of Kubernetes and ours, of the same name": {
			pod:   metav1.ObjectMeta{Annotations: map[string]string{"pod-group-name": "a"}},
			field: "a", group: "a", place: "annotation pod-group-name",
		},
		"of Kubernetes, made by the Job controller": {
			pod:   owned("Job", "train", metav1.ObjectMeta{}),
			field: madeForTrain, group: "kubernetes-" + madeForTrain, place: "field spec.schedulingGroup.podGroupName",
		},
		"of Kubernetes, made by the Job controller for a Job with a minimum": {
			pod:   owned("Job", "train", metav1.ObjectMeta{Labels: map[string]string{"scheduling.run.ai/min-member": "all"}}),
			field: madeForTrain, group: "job-train-5cc7e6cd", place: "label scheduling.run.ai/min-member",
		},
		"of Kubernetes, made by the Job controller for another Job": {
			pod:   owned("Job", "train-2", metav1.ObjectMeta{Labels: map[string]string{"scheduling.run.ai/min-member": "all"}}),
			field: madeForTrain, group: "kubernetes-" + madeForTrain, place: "field spec.schedulingGroup.podGroupName",
		},
		"a label is no mark": {pod: metav1.ObjectMeta{Labels: map[string]string{"pod-group-name": "train"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: tc.pod}
			if tc.field != "" {
				pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &tc.field}
			}
			if group, leaf, place := Group(pod), Leaf(pod), Mark(pod); group != tc.group || leaf != tc.leaf || place != tc.place {
				t.Errorf("PodGroup %q, leaf %q by %q; want %q, %q by %q", group, leaf, place, tc.group, tc.leaf, tc.place)
			}
		})
	}
}

// TestContradiction: which pods name two PodGroups.
func TestContradiction(t *testing.T) {
	t.Parallel()
	type keys = map[string]string
	for name, tc := range map[string]struct {
		labels, annotations keys
		want                string
		field               string
	}{
		"none":                        {labels: keys{"app": "web"}},
		"one":                         {labels: keys{"scheduling.x-k8s.io/pod-group": "a"}},
		"two of one name":             {labels: keys{"scheduling.x-k8s.io/pod-group": "a"}, annotations: keys{"pod-group-name": "a"}, want: ""},
		"both of Volcano, alike":      {annotations: keys{"scheduling.k8s.io/group-name": "a", "scheduling.volcano.sh/group-name": "a"}},
		"both of Volcano":             {annotations: keys{"scheduling.k8s.io/group-name": "a", "scheduling.volcano.sh/group-name": "b"}, want: "a b"},
		"ours and Coscheduling":       {labels: keys{"scheduling.x-k8s.io/pod-group": "b"}, annotations: keys{"pod-group-name": "a"}, want: "a b"},
		"Coscheduling and Volcano":    {labels: keys{"scheduling.x-k8s.io/pod-group": "a"}, annotations: keys{"scheduling.k8s.io/group-name": "b"}, want: "a b"},
		"three":                       {labels: keys{"scheduling.x-k8s.io/pod-group": "a"}, annotations: keys{"pod-group-name": "a", "scheduling.k8s.io/group-name": "b"}, want: "a b"},
		"opted out of the others":     {labels: keys{"scheduling.x-k8s.io/pod-group": "b", "scheduling.run.ai/gang": "false"}, annotations: keys{"pod-group-name": "a"}, want: ""},
		"a workload is no name":       {labels: keys{"scheduling.x-k8s.io/pod-group": "a", "scheduling.run.ai/min-member": "all", "jobset.sigs.k8s.io/jobset-uid": "u", "jobset.sigs.k8s.io/jobset-name": "j"}, annotations: nil, want: ""},
		"of Kueue: no mark of a gang": {labels: keys{"kueue.x-k8s.io/pod-group-name": "b"}, annotations: keys{"pod-group-name": "a"}},
		"ours and Kubernetes":         {annotations: keys{"pod-group-name": "a"}, field: "b", want: "a b"},
		"Kubernetes and Coscheduling": {labels: keys{"scheduling.x-k8s.io/pod-group": "b"}, field: "a", want: "a b"},
	} {
		got := ""
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}}
		if tc.field != "" {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &tc.field}
		}
		if names := Contradiction(pod); names != nil {
			got = names[0].Name + " " + names[1].Name
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestLeaveWorkload: which pods leave the gang of their workload, and by which mark they were in it.
func TestLeaveWorkload(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels map[string]string
		left   string
	}{
		"a JobSet":           {map[string]string{"jobset.sigs.k8s.io/jobset-name": "j", "jobset.sigs.k8s.io/jobset-uid": "u"}, "label jobset.sigs.k8s.io/jobset-uid"},
		"asks for a gang":    {map[string]string{"scheduling.run.ai/min-member": "2"}, ""},
		"opted out":          {map[string]string{"jobset.sigs.k8s.io/jobset-name": "j", "jobset.sigs.k8s.io/jobset-uid": "u", "scheduling.run.ai/gang": "false"}, ""},
		"a pod without mark": {},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
		before := Group(pod)
		LeaveWorkload(pod)
		if Left(pod) != tc.left || (Group(pod) == "") != (before == "" || tc.left != "") {
			t.Errorf("%s: in %q, left by %q", name, Group(pod), Left(pod))
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	jobSet := func(restarts string, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations, Labels: map[string]string{
			"jobset.sigs.k8s.io/jobset-name": "j", "jobset.sigs.k8s.io/jobset-uid": "u", "jobset.sigs.k8s.io/restart-attempt": restarts}}}
	}
	const created = 1_700_000_000
	replica := func(worker string, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Unix(created, 0), Annotations: annotations, Labels: map[string]string{
			"leaderworkerset.sigs.k8s.io/name": "l", "leaderworkerset.sigs.k8s.io/group-index": "0", "leaderworkerset.sigs.k8s.io/worker-index": worker}}}
	}
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		want   int
		begins bool
	}{
		"first":                         {jobSet("0", nil), 1, true},
		"restarted":                     {jobSet("12", nil), 13, true},
		"no number":                     {jobSet("x", nil), 0, false},
		"negative":                      {jobSet("-1", nil), 0, false},
		"too large":                     {jobSet("99999999999999999999", nil), 0, false},
		"of an older JobSet":            {jobSet("", nil), 0, false},
		"several JobSets may be a gang": {jobSet("3", map[string]string{"pod-group-name": "all"}), 0, false},
		"no JobSet":                     {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"jobset.sigs.k8s.io/restart-attempt": "3"}}}, 0, false},
		"a leader, before whose workers the clock may be one minute behind": {replica("0", nil), created - 60, true},
		"a worker":                        {replica("3", nil), created, false},
		"several replicas are a gang":     {replica("0", map[string]string{"scheduling.run.ai/gang": "joined"}), 0, false},
		"several sets may be a gang":      {replica("0", map[string]string{"pod-group-name": "all"}), 0, false},
		"a replica that is no gang":       {replica("0", map[string]string{"scheduling.run.ai/gang": "false"}), 0, false},
		"a leader that is not stored yet": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: replica("0", nil).Labels}}, 0, false},
	} {
		if got, begins := Run(tc.pod); got != tc.want || begins != tc.begins {
			t.Errorf("%s: %d, %t; want %d, %t", name, got, begins, tc.want, tc.begins)
		}
	}
}

// TestAnnotations: the list of annotations that are kept of pods contains every one that is a mark.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	for _, m := range marks {
		if key, is := strings.CutPrefix(m.place, "annotation "); is && !slices.Contains(Annotations, key) {
			t.Errorf("Annotations lacks %s", key)
		}
	}
}

// TestGuideListsMarks compares the table of docs/workloads.md with marks, in their order.
func TestGuideListsMarks(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/workloads.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "## Which gang a pod belongs to")
	for _, m := range marks {
		kind, key, _ := strings.Cut(m.place, " ")
		row := kind + " `" + key + "`"
		_, after, found := strings.Cut(rest, row)
		if !found {
			t.Fatalf("docs/workloads.md does not list %q, or not in its place", row)
		}
		rest = after
	}
}
