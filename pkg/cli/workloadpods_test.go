// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/test/wrappers"
)

// Of every kind for which muster-controller makes PodGroups, the gangs are planned, with the pods that its controller
// makes first.
func TestWhatIfOfWorkloads(t *testing.T) {
	t.Parallel()
	const (
		spec    = "spec: {schedulerName: muster-scheduler, containers: [{name: node, image: c, resources: {limits: {nvidia.com/gpu: 4}}}]}"
		marked  = "metadata: {annotations: {scheduling.run.ai/min-member: all}}, " + spec
		jobSet  = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: train}\n"
		lws     = "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: llm}\n"
		ray     = "{headGroupSpec: {template: {" + spec + "}}, workerGroupSpecs: [{groupName: gpu, replicas: 2, template: {" + spec + "}}]}"
		runtime = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {` + spec + `}}}}]}}
`
		trainJob = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: ddp}\nspec: {runtimeRef: {name: torch}, trainer: {numNodes: 3, resourcesPerNode: {limits: {nvidia.com/gpu: 2}}}}\n"
	)
	job := func(pods string) string {
		return "template: {spec: {parallelism: " + pods + ", completions: " + pods + ", template: {" + spec + "}}}"
	}
	for name, tc := range map[string]struct {
		manifest string
		code     int
		has      []string
		hasNot   []string
	}{
		"a Job with a minimum": {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: pi}\nspec: {parallelism: 3, completions: 3, template: {" + marked + "}}", 0,
			[]string{"ml/job-pi-", "STARTS", "node-0000: pi-0, pi-1", "node-0001: pi-2"}, []string{"note"}},
		"the next Job of a CronJob": {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: pi}\nspec: {schedule: '0 * * * *', jobTemplate: {spec: {parallelism: 3, completions: 3, template: {" + marked + "}}}}", 0,
			[]string{"ml/job-pi-next-", "STARTS", "node-0000: pi-next-0, pi-next-1", "node-0001: pi-next-2"}, []string{"note"}},
		"a Job without one is no gang": {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: pi}\nspec: {parallelism: 3, template: {" + spec + "}}", 1,
			[]string{"the files have no gang to plan: 3 pods are scheduled alone"}, nil},
		"a Job that is too large": {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: pi}\nspec: {parallelism: 5, completions: 5, template: {" + marked + "}}", 2,
			[]string{"WAITS", "needs 20 nvidia.com/gpu for 5 pods, the nodes that they may use have 16 in all"}, nil},
		"a mark that cannot be obeyed": {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: pi}\nspec: {template: {metadata: {annotations: {scheduling.run.ai/min-member: most}}, " + spec + "}}", 1,
			[]string{`Job ml/pi is not valid: annotation scheduling.run.ai/min-member of the pod template is "most"`}, nil},
		"a StatefulSet in parallel": {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {replicas: 2, podManagementPolicy: Parallel, serviceName: db, selector: {}, template: {" + marked + "}}", 0,
			[]string{"STARTS", "db-0, db-1"}, nil},
		"a StatefulSet that makes one pod after the other waits for ever": {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {replicas: 2, serviceName: db, selector: {}, template: {" + marked + "}}", 2,
			[]string{"WAITS", "1 pod of StatefulSet db is created after others are bound"}, nil},
		"a Deployment": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2, selector: {}, template: {" + marked + "}}", 0,
			[]string{"ml/deployment-web  STARTS", "web-0-0, web-0-1"}, nil},
		"a JobSet": {jobSet + "spec: {replicatedJobs: [{name: driver, " + job("1") + "}, {name: workers, replicas: 2, " + job("1") + "}]}", 0,
			[]string{"ml/jobset-train-", "STARTS", "train-driver-0-0", "train-workers-1-0"}, []string{"note"}},
		"a JobSet that is too large": {jobSet + "spec: {replicatedJobs: [{name: workers, replicas: 5, " + job("1") + "}]}", 2, []string{"WAITS", "have 16 in all"}, nil},
		"a JobSet in order": {jobSet + "spec: {startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: driver, " + job("1") + "}, {name: workers, " + job("9") + "}]}", 0,
			[]string{"STARTS", "train-driver-0-0", "9 pods of JobSet train are created after others are bound"}, []string{"train-workers"}},
		"a suspended JobSet": {jobSet + "spec: {suspend: true, replicatedJobs: [{name: workers, " + job("1") + "}]}", 1, []string{"the files have no gang to plan: JobSet train has no pods now"}, nil},
		"a LeaderWorkerSet": {lws + "spec: {replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: {" + spec + "}}}", 0,
			[]string{"ml/leaderworkerset-llm.0  STARTS", "ml/leaderworkerset-llm.1  STARTS", "llm-0, llm-0-1"}, []string{"note"}},
		"a LeaderWorkerSet of which one replica fits": {lws + "spec: {replicas: 2, leaderWorkerTemplate: {size: 3, workerTemplate: {" + spec + "}}}", 2,
			[]string{"ml/leaderworkerset-llm.0  STARTS", "ml/leaderworkerset-llm.1  WAITS"}, nil},
		"exclusive replicas whose leaders come first": {
			"apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: llm, annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: kubernetes.io/hostname}}\n" +
				"spec: {replicas: 3, leaderWorkerTemplate: {size: 2, workerTemplate: {" + spec + "}}}", 2,
			[]string{"ml/leaderworkerset-llm.1  STARTS", "ml/leaderworkerset-llm.2  WAITS", "3 pods of LeaderWorkerSet llm are created after others"}, nil},
		"a RayCluster": {"apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: ray}\nspec: " + ray, 0,
			[]string{"ml/raycluster-ray-", "STARTS", "ray-head-0", "ray-gpu-worker-1"}, []string{"note"}},
		"a RayJob": {"apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: ray}\nspec: {rayClusterSpec: " + ray + "}", 0,
			[]string{"ml/raycluster-ray-", "STARTS", "the submitter of RayJob ray is created when its cluster is ready"}, nil},
		"a TrainJob with its runtime": {trainJob + "---\n" + runtime, 0, []string{"ml/jobset-ddp-", "STARTS", "ddp-node-0-0, ddp-node-0-1, ddp-node-0-2"}, nil},
		"a TrainJob without it":       {trainJob, 1, []string{"the runtime of TrainJob ddp (give it too: kubectl get clustertrainingruntime torch -o yaml)"}, nil},
		"a PodGroup of one's own under the name that is looked for": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 9, selector: {}, template: {" + marked + "}}\n---\n" +
				"apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: deployment-web}\nspec: {minMember: 1}\n", 0, []string{"ml/deployment-web  STARTS"}, nil},
		"pods of another scheduler": {jobSet + "spec: {replicatedJobs: [{name: w, template: {spec: {template: {spec: {containers: [{name: c}]}}}}}]}", 1,
			[]string{"the files have no gang to plan: 1 pod is scheduled alone, or by another scheduler than muster-scheduler"}, nil},
		"more pods than a cluster has": {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: pi}\nspec: {parallelism: 2000000000, template: {" + marked + "}}", 1, []string{"it makes more than 150000 pods"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "workload.yaml")
			if err := os.WriteFile(file, []byte(tc.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			expect(t, (&scene{}).nodes(2, nil), tc.code, tc.has, tc.hasNot, "what-if", "-f", file)
		})
	}
}

// Copies of a workload are gangs of their own, with the same leaves.
func TestCopiesOfWorkloads(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "workload.yaml")
	const template = "template: {spec: {schedulerName: muster-scheduler, containers: [{name: c, image: c, resources: {limits: {nvidia.com/gpu: 2}}}]}}"
	manifest := "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: train}\nspec: {replicatedJobs: [{name: a, template: {spec: {" + template + "}}}, {name: b, template: {spec: {" + template + "}}}]}"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, (&scene{}).nodes(2, func(i int, w *wrappers.NodeWrapper) { w.Label(corev1.LabelTopologyZone, "z") }), 0, []string{"4 copies would start beside each other"}, nil, "what-if", "-f", file, "--count", "9")
}
