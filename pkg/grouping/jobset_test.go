// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/membership"
)

// TestJobSets: JobSets as its documentation shows them, the PodGroup that each needs, and how many pods, as JobSet
// labels them, find each leaf.
func TestJobSets(t *testing.T) {
	t.Parallel()
	const (
		head  = "kind: JobSet\napiVersion: jobset.x-k8s.io/v1alpha2\nmetadata: {name: train, namespace: ns, uid: u1}\n"
		ours  = "template: {spec: {schedulerName: muster-scheduler, containers: [{name: c}]}}"
		group = "jobset-train-0442a7f3"
	)
	job := func(pods int) string {
		return fmt.Sprintf("template: {spec: {parallelism: %d, completions: %d, %s}}", pods, pods, ours)
	}
	exclusive := func(pods int) string {
		return strings.Replace(job(pods), "template: {", "template: {metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}, ", 1)
	}
	many := func(n int) string {
		var jobs []string
		for i := range n {
			jobs = append(jobs, fmt.Sprintf("{name: w%d, %s}", i, job(1)))
		}
		return "[" + strings.Join(jobs, ", ") + "]"
	}
	for name, tc := range map[string]struct {
		manifest string
		group    string // "NAME needs K of [in PARENT] NAME N, ..."; "refused: WORDS"
		pods     string // by leaf: "LEAF N"; "alone N": in no gang
	}{
		"workers": {head + "spec: {replicatedJobs: [{name: workers, replicas: 2, " + job(4) + "}]}",
			group + " needs 1 of workers all, workers-0 4, workers-1 4", "workers-0 4, workers-1 4"},
		"a driver and workers": {head + "spec: {replicatedJobs: [{name: driver, " + job(1) + "}, {name: workers, " + job(4) + "}]}",
			group + " needs 2 of driver all, driver-0 1, workers all, workers-0 4", "driver-0 1, workers-0 4"},
		"the workers depend on the driver, which starts alone": {
			head + "spec: {replicatedJobs: [{name: driver, " + job(1) + "}, {name: workers, dependsOn: [{name: driver, status: Ready}], " + job(4) + "}]}",
			group + " needs 1 of driver all, driver-0 1, workers all, workers-0 4", "driver-0 1, workers-0 4"},
		"two depend on two": {
			head + "spec: {replicatedJobs: [{name: a, " + job(1) + "}, {name: b, " + job(1) + "}, {name: c, dependsOn: [{name: a, status: Complete}], " + job(2) + "}]}",
			group + " needs 1 of first.jobs all, a all, a-0 1, b all, b-0 1, c all, c-0 2", "a-0 1, b-0 1, c-0 2"},
		"a stage without pods of ours is none": {
			head + "spec: {startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: a, replicas: 0, " + job(1) + "}, {name: b, " + job(1) + "}, {name: c, " + job(2) + "}]}",
			group + " needs 1 of b all, b-0 1, c all, c-0 2", "b-0 1, c-0 2"},
		"a TrainJob of Kubeflow Trainer: initializers, then nodes": {
			head + "spec: {replicatedJobs: [{name: dataset-initializer, " + job(1) + "}, {name: model-initializer, " + job(1) + "}, {name: node, " +
				"dependsOn: [{name: dataset-initializer, status: Complete}, {name: model-initializer, status: Complete}], " + job(4) + "}]}",
			group + " needs 1 of first.jobs all, dataset-initializer all, dataset-initializer-0 1, model-initializer all, model-initializer-0 1, node all, node-0 4",
			"dataset-initializer-0 1, model-initializer-0 1, node-0 4"},
		"a negative number of pods is none": {head + "spec: {replicatedJobs: [{name: workers, " + job(-1) + "}]}", "", ""},
		"opted out where no pod sees it": {
			strings.Replace(head, "uid: u1", "uid: u1, labels: {scheduling.run.ai/gang: \"false\"}", 1) + "spec: {replicatedJobs: [{name: workers, " + job(2) + "}]}",
			"refused: scheduling.run.ai/gang is on the JobSet itself", "workers-0 2"},
		"a minimum where no pod sees it": {
			strings.Replace(head, "uid: u1", "uid: u1, annotations: {scheduling.run.ai/min-member: \"1\"}", 1) + "spec: {replicatedJobs: [{name: workers, " + job(2) + "}]}",
			"refused: annotation scheduling.run.ai/min-member is on the JobSet itself", "workers-0 2"},
		"in order": {
			head + "spec: {startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: driver, " + job(1) + "}, {name: workers, " + job(4) + "}]}",
			group + " needs 1 of driver all, driver-0 1, workers all, workers-0 4", "driver-0 1, workers-0 4"},
		"in any order": {
			head + "spec: {startupPolicy: {startupPolicyOrder: AnyOrder}, replicatedJobs: [{name: driver, " + job(1) + "}, {name: workers, " + job(4) + "}]}",
			group + " needs 2 of driver all, driver-0 1, workers all, workers-0 4", "driver-0 1, workers-0 4"},
		"suspended": {head + "spec: {suspend: true, replicatedJobs: [{name: workers, " + job(4) + "}]}", "", "workers-0 4"},
		"a driver of the default scheduler is in no gang": {
			head + "spec: {replicatedJobs: [{name: driver, template: {spec: {template: {spec: {containers: []}}}}}, {name: workers, " + job(4) + "}]}",
			group + " needs 1 of workers all, workers-0 4", "driver-0 1, workers-0 4"},
		"a replicated job without Jobs": {
			head + "spec: {replicatedJobs: [{name: spare, replicas: 0, " + job(4) + "}, {name: workers, " + job(4) + "}]}",
			group + " needs 1 of workers all, workers-0 4", "workers-0 4"},
		"fewer pods than a Job has": {
			head + "spec: {replicatedJobs: [{name: workers, template: {spec: {parallelism: 4, template: {metadata: {labels: {scheduling.run.ai/min-member: \"3\"}}, " +
				"spec: {schedulerName: muster-scheduler, priorityClassName: high, containers: []}}}}}]}",
			group + " needs 1 of workers all, workers-0 3 at high", "workers-0 4"},
		"opted out": {
			head + "spec: {replicatedJobs: [{name: workers, template: {spec: {parallelism: 2, template: {metadata: {labels: {scheduling.run.ai/gang: \"false\"}}, " +
				"spec: {schedulerName: muster-scheduler, containers: []}}}}}]}", "", "alone 2"},
		"names that are those of Jobs": {
			head + "spec: {replicatedJobs: [{name: w, " + job(1) + "}, {name: w-0, " + job(1) + "}]}",
			`refused: its replicated jobs and their Jobs need sub-groups of different names, and two are "w-0"`, "w-0 1, w-0-0 1"},
		"exclusive topology": {
			strings.Replace(head, "uid: u1", "uid: u1, annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}", 1) + "spec: {replicatedJobs: [{name: workers, " + job(2) + "}]}",
			group + " needs 1 of workers all, workers-0 1 of all in one rack, workers-0.leader 1, workers-0.workers 1", "workers-0.leader 1, workers-0.workers 1"},
		"exclusive topology of a replicated job, of one pod and of three": {
			head + "spec: {replicatedJobs: [{name: driver, " + exclusive(1) + "}, {name: workers, replicas: 2, " + exclusive(3) + "}, {name: free, " + job(1) + "}]}",
			group + " needs 3 of driver all, driver-0 1 of all in one rack, driver-0.leader 1, workers all, workers-0 1 of all in one rack, workers-0.leader 1, workers-0.workers 2, " +
				"workers-1 1 of all in one rack, workers-1.leader 1, workers-1.workers 2, free all, free-0 1",
			"driver-0.leader 1, free-0 1, workers-0.leader 1, workers-0.workers 2, workers-1.leader 1, workers-1.workers 2"},
		"exclusive topology by node selectors": {
			strings.Replace(head, "uid: u1", "uid: u1, annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack, alpha.jobset.sigs.k8s.io/node-selector: \"true\"}", 1) +
				"spec: {replicatedJobs: [{name: workers, " + job(2) + "}]}",
			group + " needs 1 of workers all, workers-0 2", "workers-0 2"},
		"2,000 replicated jobs": {
			head + "spec: {replicatedJobs: " + many(2000) + "}", "refused: its replicated jobs and their Jobs need more than 1024 sub-groups", "2000 leaves"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := checkGroups(t, tc.manifest, tc.group)
			found := map[string]int{}
			if err := unstructured.SetNestedField(object.Object, false, "spec", "suspend"); err != nil {
				t.Fatal(err)
			}
			for _, pod := range madeOf(t, object) {
				switch membership.Group(pod) {
				case group:
					found[membership.Leaf(pod)]++
				case "":
					found["alone"]++
				default:
					t.Errorf("pod %s is in %s", pod.Name, membership.Group(pod))
				}
			}
			var words []string
			for _, leaf := range slices.Sorted(maps.Keys(found)) {
				words = append(words, fmt.Sprintf("%s %d", leaf, found[leaf]))
			}
			got := strings.Join(words, ", ")
			if len(words) > 10 {
				got = fmt.Sprintf("%d leaves", len(words))
			}
			if got != tc.pods {
				t.Errorf("pods %s\nwant %s", got, tc.pods)
			}
		})
	}
}

// TestJobsOfAJobSetHaveNoPodGroupOfTheirOwn: what the JobSet puts on its Jobs says that they are part of its gang.
func TestJobsOfAJobSetHaveNoPodGroupOfTheirOwn(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
kind: Job
apiVersion: batch/v1
metadata: {name: train-workers-0, namespace: ns, uid: u2}
spec:
  parallelism: 4
  template:
    metadata: {labels: {jobset.sigs.k8s.io/jobset-name: train, jobset.sigs.k8s.io/jobset-uid: u1, scheduling.run.ai/min-member: all}}
    spec: {schedulerName: muster-scheduler, containers: []}
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	if got := describe(t, object); got != "" {
		t.Error(got)
	}
}
