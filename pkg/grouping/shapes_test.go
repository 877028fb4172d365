// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	rules "github.com/muster-project/muster/pkg/apis/scheduling/validation"
	"github.com/muster-project/muster/pkg/membership"
)

// TestShapes: workloads as their documentation shows them, the PodGroup that each needs, and where its pods look for
// one.
func TestShapes(t *testing.T) {
	t.Parallel()
	const (
		job        = "kind: Job\napiVersion: batch/v1\nmetadata: {name: pi, namespace: ns, uid: u1}\n"
		set        = "kind: StatefulSet\napiVersion: apps/v1\nmetadata: {name: db, namespace: ns, uid: u1}\n"
		deployment = "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web, namespace: ns, uid: u1}\n"
		ours       = "spec: {schedulerName: muster-scheduler, containers: [{name: c}]}"
		allPods    = "template: {metadata: {annotations: {scheduling.run.ai/min-member: all}}, " + ours + "}"
	)
	for name, tc := range map[string]struct {
		manifest string
		group    string // "NAME needs N": the PodGroup; ""; "refused: WORDS"
		pods     string // the PodGroup that the pods look for, "-": they start alone
	}{
		"a Job without a mark": {
			job + "spec: {parallelism: 8, completions: 8, template: {" + ours + "}}", "", "-"},
		"a Job of 8 pods": {
			job + "spec: {parallelism: 8, completions: 8, " + allPods + "}", "job-pi-0442a7f3 needs 8", "job-pi-0442a7f3"},
		"a Job that needs 4 of 8 pods, by a label": {
			job + "spec: {parallelism: 8, template: {metadata: {labels: {scheduling.run.ai/min-member: \"4\"}}, " + ours + "}}",
			"job-pi-0442a7f3 needs 4", "job-pi-0442a7f3"},
		"a Job without numbers has one pod": {
			job + "spec: {" + allPods + "}", "job-pi-0442a7f3 needs 1", "job-pi-0442a7f3"},
		"a Job that is to succeed fewer times than may run": {
			job + "spec: {parallelism: 8, completions: 3, " + allPods + "}", "job-pi-0442a7f3 needs 3", "job-pi-0442a7f3"},
		"a Job that takes work from a queue": {
			job + "spec: {parallelism: 3, " + allPods + "}", "job-pi-0442a7f3 needs 3", "job-pi-0442a7f3"},
		"an Indexed Job of more indexes than run at a time": {
			job + "spec: {parallelism: 3, completions: 12, completionMode: Indexed, " + allPods + "}", "job-pi-0442a7f3 needs 3", "job-pi-0442a7f3"},
		"a Job that asks for more pods than it has waits, and its PodGroup says why": {
			job + "spec: {parallelism: 8, template: {metadata: {labels: {scheduling.run.ai/min-member: \"12\"}}, " + ours + "}}",
			"job-pi-0442a7f3 needs 12", "job-pi-0442a7f3"},
		"a Job that asks Kubernetes for a gang, too": {
			job + "spec: {parallelism: 8, scheduling: {schedulingPolicy: {gang: {minCount: 4}}}, " + allPods + "}",
			"refused: spec.scheduling and annotation scheduling.run.ai/min-member of the pod template both say which pods start together", "job-pi-0442a7f3"},
		"a Job that asks Kubernetes for a gang": {
			job + "spec: {parallelism: 8, scheduling: {schedulingPolicy: {gang: {minCount: 4}}}, template: {" + ours + "}}", "", "-"},
		"a suspended Job": {
			job + "spec: {suspend: true, parallelism: 8, " + allPods + "}", "", "job-pi-0442a7f3"},
		"a Job of no pods": {
			job + "spec: {parallelism: 0, " + allPods + "}", "", "job-pi-0442a7f3"},
		"a Job with a class": {
			job + "spec: {parallelism: 2, template: {metadata: {labels: {scheduling.run.ai/min-member: all}}, " +
				"spec: {schedulerName: muster-scheduler, priorityClassName: high, containers: []}}}",
			"job-pi-0442a7f3 needs 2 at high", "job-pi-0442a7f3"},
		"a Job whose pods name a PodGroup": {
			job + "spec: {parallelism: 8, template: {metadata: {annotations: {scheduling.run.ai/min-member: all, pod-group-name: mine}}, " + ours + "}}",
			"", "mine"},
		"a Job whose pods name a PodGroup of Coscheduling": {
			job + "spec: {parallelism: 8, template: {metadata: {labels: {scheduling.run.ai/min-member: all, scheduling.x-k8s.io/pod-group: a}}, " + ours + "}}",
			"", "coscheduling-a"},
		"a Job that opts out, of what a policy has set": {
			job + "spec: {parallelism: 8, template: {metadata: {labels: {scheduling.run.ai/min-member: all, scheduling.run.ai/gang: \"false\"}}, " + ours + "}}",
			"", "-"},
		"a Job that opts out by an annotation": {
			job + "spec: {parallelism: 8, template: {metadata: {labels: {scheduling.run.ai/min-member: all}, annotations: {scheduling.run.ai/gang: \"false\"}}, " + ours + "}}",
			"", "-"},
		"a Job of the default scheduler": {
			job + "spec: {parallelism: 8, template: {metadata: {labels: {scheduling.run.ai/min-member: all}}, spec: {containers: []}}}", "", "job-pi-0442a7f3"},
		"a mark on the Job alone does not reach its pods": {
			"kind: Job\napiVersion: batch/v1\nmetadata: {name: pi, namespace: ns, uid: u1, labels: {scheduling.run.ai/min-member: all}}\n" +
				"spec: {parallelism: 8, template: {" + ours + "}}",
			"refused: label scheduling.run.ai/min-member is on the Job itself", "-"},
		"an opt-out on the Job alone does not reach its pods": {
			"kind: Job\napiVersion: batch/v1\nmetadata: {name: pi, namespace: ns, uid: u1, annotations: {scheduling.run.ai/gang: \"false\"}}\n" +
				"spec: {parallelism: 8, " + allPods + "}",
			"refused: scheduling.run.ai/gang is on the Job itself", "job-pi-0442a7f3"},
		"two minimums, on the Job and its template": {
			"kind: Job\napiVersion: batch/v1\nmetadata: {name: pi, namespace: ns, uid: u1, labels: {scheduling.run.ai/min-member: \"4\"}}\n" +
				"spec: {parallelism: 8, " + allPods + "}",
			"refused: label scheduling.run.ai/min-member is on the Job itself", "job-pi-0442a7f3"},
		"one minimum, on the Job and its template": {
			"kind: Job\napiVersion: batch/v1\nmetadata: {name: pi, namespace: ns, uid: u1, labels: {scheduling.run.ai/min-member: all}}\n" +
				"spec: {parallelism: 8, " + allPods + "}",
			"job-pi-0442a7f3 needs 8", "job-pi-0442a7f3"},
		"a value that is no number": {
			job + "spec: {parallelism: 8, template: {metadata: {labels: {scheduling.run.ai/min-member: most}}, " + ours + "}}",
			`refused: label scheduling.run.ai/min-member of the pod template is "most": its pods wait; write "all" or a number from 1`, "job-pi-0442a7f3"},
		"zero is no minimum": {
			job + "spec: {parallelism: 8, template: {metadata: {annotations: {scheduling.run.ai/min-member: \"0\"}}, " + ours + "}}",
			`refused: annotation scheduling.run.ai/min-member of the pod template is "0"`, "job-pi-0442a7f3"},
		"a label and an annotation that contradict each other": {
			job + "spec: {parallelism: 8, template: {metadata: {labels: {scheduling.run.ai/min-member: \"4\"}, annotations: {scheduling.run.ai/min-member: all}}, " + ours + "}}",
			`refused: label scheduling.run.ai/min-member of the pod template is "4", and annotation scheduling.run.ai/min-member "all"`, "job-pi-0442a7f3"},
		"KAI's mark on the template": {
			job + "spec: {parallelism: 8, template: {metadata: {annotations: {kai.scheduler/batch-min-member: \"4\"}}, " + ours + "}}",
			"job-pi-0442a7f3 needs 4", "job-pi-0442a7f3"},
		"KAI's mark on the Job itself, where KAI reads it": {
			"kind: Job\napiVersion: batch/v1\nmetadata: {name: pi, namespace: ns, uid: u1, annotations: {kai.scheduler/batch-min-member: \"4\"}}\n" +
				"spec: {parallelism: 8, template: {" + ours + "}}",
			"refused: annotation kai.scheduler/batch-min-member is on the Job itself, and its pods have the marks of their template: write it there", "-"},
		"KAI's mark and ours, which differ": {
			job + "spec: {parallelism: 8, template: {metadata: {annotations: {kai.scheduler/batch-min-member: \"4\", scheduling.run.ai/min-member: all}}, " + ours + "}}",
			`refused: annotation scheduling.run.ai/min-member of the pod template is "all", and annotation kai.scheduler/batch-min-member "4"`, "job-pi-0442a7f3"},
		"KAI's keys for fields of the PodGroup, on the Job": {
			"kind: Job\napiVersion: batch/v1\nmetadata: {name: pi, namespace: ns, uid: u1, labels: {kai.scheduler/preemptibility: semi-preemptible, kai.scheduler/queue: q}, " +
				"annotations: {kai.scheduler/topology: gpus, kai.scheduler/topology-required-placement: zone, kai.scheduler/topology-preferred-placement: rack}}\n" +
				"spec: {parallelism: 8, " + allPods + "}",
			"job-pi-0442a7f3 needs 8 in one zone near in one rack of gpus semi-preemptible", "job-pi-0442a7f3"},
		"KAI's keys for fields of the PodGroup, on the template": {
			job + "spec: {parallelism: 8, template: {metadata: {labels: {kai.scheduler/preemptibility: non-preemptible}, " +
				"annotations: {kai.scheduler/batch-min-member: \"8\", kai.scheduler/topology-required-placement: zone}}, " + ours + "}}",
			"job-pi-0442a7f3 needs 8 in one zone non-preemptible", "job-pi-0442a7f3"},
		"KAI's keys on both, which differ": {
			"kind: Job\napiVersion: batch/v1\nmetadata: {name: pi, namespace: ns, uid: u1, annotations: {kai.scheduler/topology-required-placement: zone}}\n" +
				"spec: {template: {metadata: {annotations: {kai.scheduler/batch-min-member: \"1\", kai.scheduler/topology-required-placement: rack}}, " + ours + "}}",
			`refused: annotation kai.scheduler/topology-required-placement is "zone", and another annotation of the workload or of its pod template asks for "rack"`, "job-pi-0442a7f3"},
		"a value that KAI does not know": {
			job + "spec: {template: {metadata: {labels: {kai.scheduler/preemptibility: never, scheduling.run.ai/min-member: all}}, " + ours + "}}",
			`refused: label kai.scheduler/preemptibility is "never": its pods wait; write one of ["preemptible" "non-preemptible" "semi-preemptible"]`, "job-pi-0442a7f3"},
		"a label and an annotation that agree": {
			job + "spec: {parallelism: 8, template: {metadata: {labels: {scheduling.run.ai/min-member: \"4\"}, annotations: {scheduling.run.ai/min-member: \"4\"}}, " + ours + "}}",
			"job-pi-0442a7f3 needs 4", "job-pi-0442a7f3"},
		"owners that own each other": {
			"kind: Job\napiVersion: batch/v1\nmetadata: {name: pi, namespace: ns, uid: u1, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: pi, uid: u1, controller: true}]}\n" +
				"spec: {parallelism: 8, " + allPods + "}",
			"job-pi-0442a7f3 needs 8", "job-pi-0442a7f3"},
		"a StatefulSet": {
			set + "spec: {replicas: 4, podManagementPolicy: Parallel, " + allPods + "}", "statefulset-db-0442a7f3 needs 4", "statefulset-db-0442a7f3"},
		"a StatefulSet that makes one pod after the other waits, and its PodGroup says why": {
			set + "spec: {replicas: 4, " + allPods + "}", "statefulset-db-0442a7f3 needs 4", "statefulset-db-0442a7f3"},
		"a StatefulSet without replicas has one": {
			set + "spec: {" + allPods + "}", "statefulset-db-0442a7f3 needs 1", "statefulset-db-0442a7f3"},
		"a StatefulSet that is scaled to zero": {
			set + "spec: {replicas: 0, " + allPods + "}", "", "statefulset-db-0442a7f3"},
		"a Deployment, whose pods know its name only": {
			deployment + "spec: {replicas: 6, " + allPods + "}", "deployment-web needs 6", "deployment-web"},
		"a Deployment of which 3 of 6 must start together": {
			deployment + "spec: {replicas: 6, template: {metadata: {labels: {scheduling.run.ai/min-member: \"3\"}}, " + ours + "}}",
			"deployment-web needs 3", "deployment-web"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := checkGroups(t, tc.manifest, tc.group)
			pod := onePod(t, object)
			if got := membership.Group(pod); got != strings.Trim(tc.pods, "-") {
				t.Errorf("the pods look for %q, want %q", got, tc.pods)
			}
		})
	}
}

// checkGroups compares the PodGroups of a workload, as it is stored and as it is cached, with what describe is to say;
// of a refusal want is the beginning. It returns the workload.
func checkGroups(t *testing.T, manifest, want string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	for _, stripped := range []bool{false, true} {
		if stripped {
			if _, err := Strip(object); err != nil {
				t.Fatal(err)
			}
		}
		if got := describe(t, object); got != want && !(strings.HasPrefix(want, "refused") && strings.HasPrefix(got, want)) {
			t.Errorf("stripped %t: %s\nwant: %s", stripped, got, want)
		}
	}
	return object
}

// describe returns the PodGroups of a workload in words.
func describe(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	groups, err := kindOf(t, object).PodGroups(object)
	refused := (*RefusedError)(nil)
	switch {
	case errors.As(err, &refused):
		return "refused: " + err.Error()
	case err != nil:
		t.Fatal(err)
	}
	var out []string
	for _, group := range groups {
		if owner := metav1.GetControllerOf(group); owner == nil || owner.UID != object.GetUID() || owner.Kind != object.GetKind() || group.Namespace != object.GetNamespace() {
			t.Errorf("PodGroup %s/%s of owner %v", group.Namespace, group.Name, owner)
		}
		if errs, _ := rules.ValidatePodGroup(group); len(errs) > 0 {
			t.Errorf("PodGroup %s: %v", group.Name, errs)
		}
		text := fmt.Sprintf("%s needs %d", group.Name, ptr.Deref(group.Spec.MinMember, ptr.Deref(group.Spec.MinSubGroup, -1)))
		text += inWordsOf(group.Spec.TopologyConstraint)
		for i, sub := range group.Spec.SubGroups {
			text += []string{" of ", ", "}[min(i, 1)] + sub.Name + " "
			if sub.MinSubGroup != nil {
				text += fmt.Sprintf("%d of ", *sub.MinSubGroup)
			}
			text += inWords(sub.MinMember) + inWordsOf(sub.TopologyConstraint)
		}
		if group.Spec.PriorityClassName != "" {
			text += " at " + group.Spec.PriorityClassName
		}
		if group.Spec.Preemptibility != "" {
			text += " " + string(group.Spec.Preemptibility)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// inWords returns the minimum of a sub-group: all of its own, if it has none.
func inWords(minMember *int32) string {
	if minMember == nil {
		return "all"
	}
	return fmt.Sprint(*minMember)
}

func inWordsOf(constraint *v2alpha2.TopologyConstraint) string {
	if constraint == nil {
		return ""
	}
	text := ""
	if constraint.RequiredTopologyLevel != "" {
		text += " in one " + constraint.RequiredTopologyLevel
	}
	if constraint.PreferredTopologyLevel != "" {
		text += " near in one " + constraint.PreferredTopologyLevel
	}
	if constraint.Topology != "" {
		text += " of " + constraint.Topology
	}
	return text
}

func kindOf(t *testing.T, object *unstructured.Unstructured) Kind {
	t.Helper()
	name := object.GetKind()
	if name == PodGroupKind || name == CompositeKind {
		name = object.GroupVersionKind().GroupKind().String()
	}
	kinds, err := Select([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

// madeOf returns all pods of a workload.
func madeOf(t *testing.T, object *unstructured.Unstructured) []*corev1.Pod {
	t.Helper()
	made, known, err := kindOf(t, object).Pods(object)
	if err != nil || !known {
		t.Fatal(known, err)
	}
	return append(made.First, made.Later...)
}

// onePod returns a pod of a workload, also of one that has none now.
func onePod(t *testing.T, object *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	object = object.DeepCopy()
	for field, value := range map[string]any{"replicas": int64(1), "parallelism": int64(1), "suspend": false} {
		if err := unstructured.SetNestedField(object.Object, value, "spec", field); err != nil {
			t.Fatal(err)
		}
	}
	return madeOf(t, object)[0]
}

// TestNamesAgree: the name of a PodGroup is valid whatever that of the workload is, it is the one that the pods look
// for, and differs for workloads of other names, kinds and UIDs.
func TestNamesAgree(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, kind := range []string{"Job", "StatefulSet", "Deployment"} {
		for _, name := range []string{"a", "a-b", "a.b", "set-a", strings.Repeat("a", 63), strings.Repeat("b", 253), strings.Repeat("b", 252) + "c",
			strings.Repeat("c.", 126) + "c", strings.Repeat("c-", 126) + "c"} {
			for _, uid := range []types.UID{"0b4c8b4e-2f0e-4c3f-9d52-1b7f4a2c9c11", "0b4c8b4e-2f0e-4c3f-9d52-1b7f4a2c9c12"} {
				object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"scheduling.run.ai/min-member": "all"}},
					"spec":     map[string]any{"schedulerName": "muster-scheduler"}}}}}
				object.SetKind(kind)
				object.SetName(name)
				object.SetUID(uid)
				groups, err := kindOf(t, object).PodGroups(object)
				if err != nil || len(groups) != 1 {
					t.Fatal(groups, err)
				}
				group := groups[0]
				if found := membership.Group(onePod(t, object)); found != group.Name {
					t.Errorf("%s %s: PodGroup %s, its pods look for %s", kind, name, group.Name, found)
				}
				if errs := validation.IsDNS1123Subdomain(group.Name); len(errs) > 0 {
					t.Errorf("%s %s: %s: %v", kind, name, group.Name, errs)
				}
				which := kind + " " + name
				if kind != "Deployment" {
					which += string(uid)
				}
				if other, taken := seen[group.Name]; taken && other != which {
					t.Errorf("%s and %s have the same PodGroup %s", which, other, group.Name)
				}
				seen[group.Name] = which
			}
		}
	}
}

// TestTheDeadlineOfAJobIsTold: its PodGroup says how long its pods run at most.
func TestTheDeadlineOfAJobIsTold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind string
		set  bool
		want string
	}{
		"of a Job":                      {"Job", true, "3600s"},
		"a Job without one":             {"Job", false, ""},
		"a field of its name elsewhere": {"StatefulSet", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := map[string]any{"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"scheduling.run.ai/min-member": "all"}},
				"spec":     map[string]any{"schedulerName": "muster-scheduler"}}}
			if tc.set {
				spec["activeDeadlineSeconds"] = int64(3600)
			}
			object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			object.SetKind(tc.kind)
			object.SetName("a")
			groups, err := kindOf(t, object).PodGroups(object)
			if err != nil || len(groups) != 1 {
				t.Fatal(groups, err)
			}
			if got := groups[0].Annotations[v2alpha2.MaxRuntimeAnnotation]; got != tc.want {
				t.Errorf("its pods run for %q at most, want %q", got, tc.want)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	if kinds, err := Select(nil); err != nil || len(kinds) != 0 {
		t.Error(kinds, err)
	}
	if kinds, err := Select([]string{"Deployment", "Job"}); err != nil || len(kinds) != 2 || kinds[1].Group != "batch" {
		t.Error(kinds, err)
	}
	const want = `"Pod", "Job": the kinds are Job, StatefulSet, Deployment, LeaderWorkerSet, JobSet, RayCluster, PodGroup.scheduling.x-k8s.io, PodGroup.scheduling.volcano.sh, PodGroup.scheduling.k8s.io, CompositePodGroup.scheduling.k8s.io, each at most once`
	if _, err := Select([]string{"Pod", "Job", "Job"}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
