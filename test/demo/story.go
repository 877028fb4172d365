// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/controlplane"
)

// The gangs of the story. The first two are the examples of KAI Scheduler's minSubGroups proposal, as manifests/samples
// has them. fine-tuning is the sample job.yaml; its name there, training, is too similar to training-job.
const (
	training  = "training-job"
	inference = "inference-service"
	tuning    = "fine-tuning"
)

// The PodCliqueSets of the story, a service and a training job. Each replica is a gang.
const (
	chat          = "chat"
	pretrain      = "pretrain"
	chatGang      = "chat-0"
	chatGang1     = "chat-1"
	chatDecode    = "chat-0-decode"
	chatPrefill   = "chat-0-prefill"
	prefillWorker = "chat-0-prefill-1-pworker"
	pretrainGang  = "pretrain-0"
)

// gangs are the gangs in order of appearance; letters from A on mark their GPUs.
var gangs = []string{training, inference, tuning, chatGang, chatGang1, pretrainGang, "ring-a", "ring-b", "ring-c", "ring-d", "ring-e"}

const (
	gpusPerNode  = 8
	nodesAtFirst = 5
	newImage     = "busybox:1.38" // of the rollouts; the sample has another one
)

// step is one scene of the story: an action with its explanation, and the claims that have to hold after it.
type step struct {
	title, why string
	do         string  // a script; see stage.do
	throughout []claim // have to hold from before do until all claims hold; about pods only, whose events arrive in one order
	first      []claim // have to hold at one moment before claims do; nil: none
	claims     []claim
}

// shell has the functions of the scripts.
const shell = `
samples=manifests/samples
apply() { kubectl apply --server-side -f "$@"; }
remove() { kubectl delete --wait=false "$@"; }

# drain NODE...: drains them together; kubectl alone would drain one after the other, and look at each once a second
drain() {
	pids=
	for node; do kubectl drain "$node" & pids="$pids $!"; done
	for pid in $pids; do wait "$pid"; done
}

# kubelet SELECTOR KEY=VALUE: what the containers of these pods do
kubelet() { kubectl annotate pods --overwrite -l "$1" "fake-kubelet.muster.test/$2"; }

# tune PODS MINIMUM GPUS [FIELD]: job.yaml as fine-tuning, with another size, and a field more of its pods
tune() {
	sed "s/: training/: fine-tuning/; s/minMember: 8/minMember: $2/; s/completions: 8/completions: $1/; s/parallelism: 8/parallelism: $1/
		s/gpu: 1/gpu: $3/" $samples/job.yaml | awk -v field="${4-}" '/schedulerName:/ { print "      " field } 1' | apply -
}

# ending PODS: returns when so many running pods of fine-tuning are deleted
ending() {
	until kubectl get pods -l job-name=fine-tuning --field-selector status.phase=Running \
		-o jsonpath='{.items[?(@.metadata.deletionTimestamp)].metadata.name}' | wc -w | grep -qw "$1"; do :; done
}

# chat REPLICAS [IMAGE]: podcliqueset.yaml with another number of replicas, and another image for frontend and prefill
chat() {
	sed "s/^  replicas: 1/  replicas: $1/" $samples/podcliqueset.yaml |
		awk -v image="${2-}" 'image && /image:/ && ++n <= 3 { sub("busybox:.*", image) } 1' | apply -
}

# ring NAME PODS: topology-job.yaml with another name and size
ring() { sed "s/one-rack/$1/; s/: 4\$/: $2/; s/gpu: 8/gpu: 4/" $samples/topology-job.yaml | apply -; }
`

// story is the demo.
func story() []step {
	started := false
	return []step{{
		title: "training-job: the PodGroup and three of its four Jobs are created",
		why: "The gang has two groups, decode and prefill, each with a leader and 4 workers, and needs all 10 pods. Only 6 exist. " +
			"40 GPUs are free, but Muster binds no pod of a gang before all the pods that it needs exist.",
		do:     `awk '/^---/ { n++ } n < 4' $samples/training-job.yaml | apply -`,
		claims: []claim{waits(training, v2alpha2.ReasonWaitingForPods), exist(training, 6)},
	}, {
		title:  "training-job: the fourth Job is created",
		why:    "All 10 pods exist now. They fit, and are bound together.",
		do:     `apply $samples/training-job.yaml`,
		claims: []claim{admitted(training, 10), free(30)},
	}, {
		title: "inference-service: 4 groups of 8 pods, any 3 of them are the minimum",
		why: "30 GPUs are free. Three groups fit and are admitted. The fourth group is above the minimum. It too starts as a whole " +
			"or not at all, so none of its pods takes one of the remaining 6 GPUs.",
		do: `apply $samples/inference-service.yaml`,
		claims: []claim{
			admitted(inference, 24), free(6),
			{"three groups have 8 pods bound each, the fourth has none", func(s scene) bool {
				var sizes []int
				for _, sub := range s.group(inference).Status.SubGroups {
					sizes = append(sizes, int(sub.Bound))
				}
				slices.Sort(sizes)
				return slices.Equal(sizes, []int{0, 8, 8, 8})
			}},
			{"the status says that the fourth lacks GPUs", func(s scene) bool {
				status := s.group(inference).Status
				return status.Scheduled == "24/24" && strings.Contains(status.Summary, string(v2alpha2.ReasonInsufficientGPUs))
			}},
		},
	}, {
		title: "fine-tuning: a plain Job of 8 pods that needs all of them; then a node joins",
		why: "6 GPUs are free. Starting 6 of the 8 pods would only keep these GPUs from other gangs: the gang waits, and none of its pods " +
			"is bound. With the node 14 GPUs are free. Two candidates need 8 each: fine-tuning, for its minimum, and the fourth group of " +
			"inference-service, which is above a minimum. Minimums go first: fine-tuning starts.",
		do: `tune 8 8 1
			kubectl wait pg/fine-tuning --for=jsonpath={.status.reason}=InsufficientGPUs
			join 5`,
		first:  []claim{waits(tuning, v2alpha2.ReasonInsufficientGPUs), exist(tuning, 8), free(6)},
		claims: []claim{admitted(tuning, 8), admitted(inference, 24), free(6)},
	}, {
		title: "training-job is deleted, and the 8 pods of fine-tuning exit with 0",
		why: "Now the fourth group of inference-service starts, as a whole. fine-tuning is Completed and its GPUs are free again. " +
			"(The next step begins by deleting its Job and PodGroup.)",
		do: `remove -f $samples/training-job.yaml
			kubelet job-name=fine-tuning exit-code=0`,
		claims: []claim{
			gone(training), admitted(inference, 32),
			{"fine-tuning is Completed", func(s scene) bool { return s.group(tuning).Status.Phase == v2alpha2.PodGroupCompleted }},
			free(16),
		},
	}, {
		title: "Four of six nodes are drained for repair",
		why: "Their pods are evicted, and the StatefulSets create new ones. 16 GPUs are left for a gang that needs 24. Muster does not " +
			"stop a gang that was admitted once: the other pods keep running, and the condition Admitted stays True. The new pods " +
			"wait for free GPUs, ahead of other gangs.",
		do: `remove pg/fine-tuning job/fine-tuning
			drain node-0002 node-0003 node-0004 node-0005`,
		claims: []claim{
			{"inference-service is Degraded: below its minimum, and still Admitted", func(s scene) bool {
				status := s.group(inference).Status
				return status.Phase == v2alpha2.PodGroupDegraded && meta.IsStatusConditionTrue(status.Conditions, v2alpha2.ConditionAdmitted) &&
					meta.IsStatusConditionFalse(status.Conditions, v2alpha2.ConditionSatisfied)
			}},
			{"all 32 pods exist again, at most 16 have a GPU", func(s scene) bool {
				return len(s.ofGang(inference)) == 32 && s.held(inference) <= 16
			}},
			{"the status states the reason", func(s scene) bool {
				return !slices.Contains([]v2alpha2.Reason{"", v2alpha2.ReasonWaitingForPods, v2alpha2.ReasonBinding}, s.group(inference).Status.Reason)
			}},
		},
	}, {
		title: "The four nodes are back in service, one rack after the other",
		why: "The first rack has the 16 GPUs that the gang lacks: it gets its minimum again, and then its fourth group. The second rack " +
			"stays free.",
		// If all nodes came back together, the pods could be spread over them, and the 16 GPUs that are free afterwards
		// would be in parts that are of no use to the pods of chat.
		do: `kubectl uncordon node-0002 node-0003
			kubectl wait pg/inference-service --for=jsonpath={.status.gpus}=32/32
			kubectl uncordon node-0004 node-0005`,
		claims: []claim{admitted(inference, 32), free(16)},
	}, {
		title: "chat: a PodCliqueSet, a complete service in one object",
		why: "It has three roles: frontend, 2 pods without GPUs, 1 of them needed; prefill, 2 replicas of 8 GPUs, 1 of them needed; " +
			"decode, 1 replica of 16 GPUs. A replica is a leader with its workers. muster-controller creates the pods; " +
			"muster-scheduler starts the minimum of all roles together or not at all. The minimum needs 24 GPUs; 16 are free.",
		do: `chat 1`,
		claims: []claim{
			made("1 PodGroup, 2 PodCliqueScalingGroups, 7 PodCliques, 10 pods and 1 Service"), waits(chatGang, v2alpha2.ReasonInsufficientGPUs),
			{"chat is not Available, and its condition names the PodGroup to look at", func(s scene) bool {
				return meta.IsStatusConditionFalse(s.set(chat).Status.Conditions, v1alpha1.ConditionAvailable) &&
					strings.Contains(availability(s.set(chat)), "PodGroup "+chatGang)
			}},
			free(16),
		},
	}, {
		title: "inference-service is deleted",
		why: "48 GPUs are free. The whole service starts together: frontend, prefill and decode, leaders and workers. The pods above the " +
			"minimum follow: the second frontend, and the second prefill replica, its leader and worker together.",
		do:     `remove -f $samples/inference-service.yaml`,
		claims: []claim{gone(inference), admitted(chatGang, 10), available(), groupHas(chatPrefill, 2), groupHas(chatDecode, 1), free(16)},
	}, {
		title: "kubectl scale podcliquescalinggroup " + chatDecode + " --replicas=3",
		why: "Two more replicas, each with a leader, 3 workers and 16 GPUs. Each of them starts as a whole or not at all. 16 GPUs are " +
			"free: one replica starts with all of its 4 pods, the other waits.",
		do: `kubectl scale podcliquescalinggroup chat-0-decode --replicas=3`,
		claims: []claim{
			admitted(chatGang, 14), available(), groupHas(chatDecode, 2), free(0),
			// The two are created at the same time, and the first whose pods are complete starts.
			{"of the second and the third decode replica one holds GPUs with its 4 pods, the other exists and holds none", func(s scene) bool {
				second, third := s.below(chatDecode, 1), s.below(chatDecode, 2)
				waits := func(pod *corev1.Pod) bool { return !holdsGPUs(pod) }
				return len(s.ofGang(chatGang)) == 18 && (each(second, 4, holdsGPUs) && each(third, 4, waits) || each(second, 4, waits) && each(third, 4, holdsGPUs))
			}},
			summarized(chatGang, string(v2alpha2.ReasonInsufficientGPUs), "the status says that it lacks GPUs"),
		},
	}, {
		title: "decode is scaled back to 1, two nodes join, and podcliqueset.yaml is applied with replicas: 2",
		why: "The decode replicas with the highest indices are deleted; the remaining one keeps running. A second complete service starts " +
			"beside the first: chat-1, a gang of its own, on the 32 free GPUs.",
		do: `kubectl scale podcliquescalinggroup chat-0-decode --replicas=1
			join 6
			join 7
			chat 2`,
		throughout: []claim{{"the 4 pods of the first decode replica run", func(s scene) bool {
			return each(s.below(chatDecode, 0), 4, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && holdsGPUs(pod) })
		}}},
		claims: bothServe(groupHas(chatDecode, 1), made("2 PodGroups, 4 PodCliqueScalingGroups, 14 PodCliques, 20 pods and 2 Services")),
	}, {
		title: "chat gets a terminationDelay of 4 s, and a prefill worker fails its readiness probe", // enough to see the breach on a slow machine
		why: "The PodClique of the worker is below its minAvailable: a breach. Its status has the deadline, in 4 seconds. Until then no " +
			"pod is deleted. The worker does not recover: the whole prefill replica is deleted, including its healthy leader, and created " +
			"again. All other pods keep running, and chat stays Available with the other prefill replica.",
		do: `kubectl patch podcliqueset chat --type=merge --patch='{"spec":{"template":{"terminationDelay":"4s"}}}'
			kubelet grove.io/podclique=chat-0-prefill-1-pworker ready=false`,
		first: []claim{{"PodClique " + prefillWorker + " is in breach, with a deadline, and no pod is deleted", func(s scene) bool {
			status := named(s.cliques, prefillWorker).Status
			return status.TerminationDeadline != nil && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionMinAvailableBreached) &&
				admitted(chatGang, servicePods).holds(s) && available().holds(s)
		}}},
		claims: bothServe(
			claim{"the second prefill replica was replaced, reason Termination", func(s scene) bool {
				attempts := named(s.scalingGroups, chatPrefill).Status.ReplicaAttempts
				return len(attempts) == 1 && attempts[0].Index == 1 && attempts[0].Reason == v1alpha1.ReasonTermination
			}},
			claim{"its 2 pods are new, and no other is", func(s scene) bool {
				isNew := func(pod *corev1.Pod) bool { return workload.Attempt(pod).Group == 1 }
				return len(s.pods) == 2*servicePods && each(s.below(chatPrefill, 1), 2, isNew) && len(where(s.pods, isNew)) == 2
			}},
			groupHas(chatPrefill, 2)),
	}, {
		title: "podcliqueset.yaml is applied with a new image for frontend and prefill",
		why: "The update replaces one unit at a time. It begins with the replica of the highest index, chat-1: its frontends one after " +
			"the other, and its prefill replicas, each as a whole. chat-0 follows. No GPU is free, so each new pod uses the GPUs of the " +
			"pod that it replaces. kubectl wait --for=condition=Progressing=False returns when the update is complete.",
		do: `chat 2 ` + newImage + `
			kubectl wait podcliqueset/chat --for=condition=Progressing=False --timeout=40s
			$ kubectl get podcliqueset chat`,
		throughout: []claim{
			{"at least 17 of the 20 pods are ready: all but a frontend and a prefill replica", atLeast(17)},
			{"chat-0 is ready and unchanged until chat-1 is done", highestFirst(newImage)},
			{"a prefill leader has the same image as its worker", wholeReplicas},
			{"decode, whose template has not changed, has all 8 pods ready", decodeServes},
		},
		claims: bothServe(rolledOut()),
	}, {
		title: "An image that does not exist is applied; then the previous template again",
		why: "The update replaces the first frontend and the first prefill replica. The new pods cannot start, and the update stops: " +
			"it deletes no other pod before these are ready. The status and kubectl get show what it waits for. Applying the previous " +
			"template undoes the update: the 3 broken pods are replaced; all others already have this template.",
		do: `chat 2 ` + controlplane.BrokenImage + `
			kubectl wait podcliqueset/chat --for=jsonpath='{.status.conditions[?(@.type=="Progressing")].reason}'=WaitingForReadiness
			$ kubectl get podcliqueset chat
			chat 2 ` + newImage + `
			kubectl wait podcliqueset/chat --for=condition=Progressing=False --timeout=40s
			$ kubectl get podcliqueset chat`,
		throughout: []claim{
			{"the other 17 pods are ready", atLeast(17)},
			{"chat-0 is ready and unchanged", unchanged(controlplane.BrokenImage)},
		},
		first:  []claim{updateStops(), serving(17), available()},
		claims: bothServe(rolledOut()),
	}, {
		title: "chat is deleted, and pretrain applied: a training job of a launcher and 2 workers of 8 GPUs each",
		why: "All objects that muster-controller created for chat are deleted too. A PodCliqueSet with workloadType Training runs until " +
			"its pods have succeeded. This one allows one restart.",
		do: `remove podcliqueset chat
			apply $samples/podcliqueset-training.yaml`,
		claims: []claim{
			{"the PodCliqueSet chat is gone", func(s scene) bool { return s.set(chat).Name == "" }},
			made("nothing"),
			{"no other pod and no other PodGroup is left", func(s scene) bool { return len(s.pods) == 3 && len(s.groups) == 1 }},
			admitted(pretrainGang, 3), jobIs(v1alpha1.PodCliqueSetPhaseRunning, 0), free(48),
		},
	}, {
		title: "A worker exits with 137",
		why:   "The other pods cannot continue without it. The whole gang is deleted and started again. That uses the one restart.",
		do: `worker=$(kubectl get pods -l grove.io/podclique=pretrain-0-worker -o jsonpath='{.items[0].metadata.name}'); ` +
			`kubectl annotate pod $worker fake-kubelet.muster.test/exit-code=137`,
		claims: []claim{
			jobIs(v1alpha1.PodCliqueSetPhaseRunning, 1), admitted(pretrainGang, 3),
			{"all 3 pods are new, and run", func(s scene) bool {
				return each(s.pods, 3, func(pod *corev1.Pod) bool {
					return workload.Attempt(pod).Set == 1 && pod.Status.Phase == corev1.PodRunning
				})
			}},
		},
	}, {
		title: "The launcher and the workers exit with 0",
		why:   "The job has succeeded. Its pods are kept for their logs, and hold no GPUs.",
		do:    `kubelet app.kubernetes.io/part-of=pretrain exit-code=0`,
		claims: []claim{
			jobIs(v1alpha1.PodCliqueSetPhaseSucceeded, 1), free(64),
			{"its 3 pods exist, in phase Succeeded", func(s scene) bool {
				return each(s.pods, 3, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
			}},
		},
	}, {
		title: "fine-tuning with 16 pods of 4 GPUs, 10 of them its minimum; then inference-service, of higher priority",
		why: "fine-tuning takes all 64 GPUs. inference-service needs 24: the 6 pods above the minimum of fine-tuning end, and no other " +
			"pod. The fourth group of inference-service is above a minimum, so no pod ends for it.",
		// Pods without a class have a high priority. The pods of chat need 4 GPUs each: if these had fewer, which of
		// them end would decide whether chat fits afterwards. Their containers end when what is shown has been seen.
		do: `kubectl create priorityclass training --value=100
			kubectl create priorityclass services --value=1000 --global-default
			tune 16 10 4 'priorityClassName: training'
			kubectl wait pg/fine-tuning --for=jsonpath={.status.gpus}=64/64
			kubelet job-name=fine-tuning stuck=true
			apply $samples/inference-service.yaml
			ending 6
			$ kubectl wait pg/inference-service --for=jsonpath={.status.reason}=Preempting
			$ kubectl wait pg/fine-tuning --for=condition=Preempted
			$ kubectl get pg inference-service fine-tuning
			$ kubectl describe pg inference-service | grep -m 1 "makes room"
			$ kubectl describe pg fine-tuning | grep -m 1 "preempted at"
			kubelet job-name=fine-tuning stuck=false`,
		throughout: []claim{{"since fine-tuning started, at least the 10 pods of its minimum run", func(s scene) bool {
			started = started || total(s.bound(tuning)) >= 10
			return !started || total(s.bound(tuning)) >= 10
		}}},
		first:  []claim{ending(6)},
		claims: []claim{admitted(inference, 24), admitted(tuning, 10), free(0), preempted("inference-service (priority 1000 over 100): 6 pods above its minimum")},
	}, {
		title: "chat, of the same high priority",
		why: "It needs 24 GPUs. Of lower priority there is only the minimum of fine-tuning. A part of it is worth nothing without the rest, so all " +
			"10 pods end. chat does not need 16 of the GPUs: the fourth group of inference-service, which has waited, takes 8 of them.",
		do: `kubelet job-name=fine-tuning stuck=true
			chat 1
			ending 10
			$ kubectl wait pg/chat-0 --for=jsonpath={.status.reason}=Preempting
			$ kubectl wait pg/fine-tuning --for=jsonpath={.status.scheduled}=0/10
			$ kubectl get pg chat-0 fine-tuning
			$ kubectl describe pg chat-0 | grep -m 1 "makes room"
			$ kubectl describe pg fine-tuning | grep -m 1 "preempted at"
			kubelet job-name=fine-tuning stuck=false`,
		first: []claim{ending(10)},
		claims: []claim{admitted(inference, 32), preempted("chat-0 (priority 1000 over 100): all 10 pods"), {"chat-0 is Admitted; fine-tuning waits, and holds no GPU", func(s scene) bool {
			return s.group(chatGang).Status.Phase == v2alpha2.PodGroupAdmitted && s.group(tuning).Status.Phase == v2alpha2.PodGroupWaiting && s.held(tuning) == 0
		}}},
	}, {
		title: "All others are deleted; then ring-a to ring-d of 3 pods of 4 GPUs, and ring-e of 2",
		why: "Their pods talk to each other all the time, so each gang requires one rack. The first four get a rack each. 16 GPUs are " +
			"free then, twice as many as ring-e needs, but 4 in each rack: it waits, and says so.",
		do: `remove -f $samples/podcliqueset.yaml -f $samples/inference-service.yaml
			remove pg/fine-tuning job/fine-tuning
			for name in a b c d; do ring ring-$name 3; done
			kubectl wait pg/ring-a pg/ring-b pg/ring-c pg/ring-d --for=condition=Admitted --timeout=60s
			ring ring-e 2`,
		claims: []claim{
			free(16), waits("ring-e", v2alpha2.ReasonTopologyUnavailable),
			summarized("ring-e", "no rack has room for the gang (2 pods of 4 nvidia.com/gpu): rack rack-000 has room for 1",
				"its status says how much room the racks have"),
			admitted("ring-a", 3), inOneRack("ring-a"), admitted("ring-b", 3), inOneRack("ring-b"),
			admitted("ring-c", 3), inOneRack("ring-c"), admitted("ring-d", 3), inOneRack("ring-d"),
		},
	}}
}
