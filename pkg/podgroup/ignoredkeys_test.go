// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestIgnoredKeys(t *testing.T) {
	t.Parallel()
	const podGroup = "without annotation pod-group-name each pod starts alone: write a PodGroup, and name it by this annotation"
	type keys = map[string]string
	for name, tc := range map[string]struct {
		labels, annotations keys
		owner               metav1.OwnerReference
		want                string
	}{
		"none":            {},
		"ours":            {labels: keys{"kai.scheduler/subgroup-name": "w"}, annotations: keys{"pod-group-name": "g"}},
		"keys of users":   {labels: keys{"app": "x", "group": "g", "example.com/pod-group-name": "g"}, annotations: keys{"pod-name": "p", "podname": "p"}},
		"of Coscheduling": {labels: keys{"scheduling.x-k8s.io/pod-group": "g"}},
		"of Coscheduling before it had PodGroups":   {labels: keys{"pod-group.scheduling.sigs.k8s.io": "g"}, want: "label pod-group.scheduling.sigs.k8s.io: " + podGroup},
		"of Volcano, two, in a gang":                {annotations: keys{"scheduling.k8s.io/group-name": "g", "scheduling.volcano.sh/group-name": "g"}, want: ""},
		"of Volcano, in a gang":                     {annotations: keys{"pod-group-name": "g", "scheduling.k8s.io/group-name": "g"}},
		"of Kueue":                                  {labels: keys{"kueue.x-k8s.io/pod-group-name": "g"}, want: "label kueue.x-k8s.io/pod-group-name: Kueue admits the pods together, but " + podGroup},
		"of Kueue, in a gang":                       {labels: keys{"kueue.x-k8s.io/pod-group-name": "g"}, annotations: keys{"pod-group-name": "g"}},
		"a share of a GPU":                          {annotations: keys{"pod-group-name": "g", "gpu-fraction": "0.5"}, want: "annotation gpu-fraction: it would get none, and waits: request whole GPUs, or a resource that the device plugin offers for shares"},
		"a share, as a label":                       {labels: keys{"gpu-fraction": "0.5"}},
		"a queue":                                   {labels: keys{"kai.scheduler/queue": "q"}, annotations: keys{"pod-group-name": "g"}, want: "label kai.scheduler/queue: Muster has no queues: limit namespaces with a ResourceQuota, or admit the workload with Kueue"},
		"topology":                                  {annotations: keys{"kai.scheduler/topology-required-placement": "rack"}, want: "annotation kai.scheduler/topology-required-placement: the pods are placed without it: write it on the JobSet, LeaderWorkerSet or RayCluster itself, set topologyConstraint of the PodGroup, or use required pod affinity with the topology key"},
		"topology, of a Job whose PodGroup is made": {labels: keys{"kai.scheduler/preemptibility": "preemptible"}, annotations: keys{"scheduling.run.ai/min-member": "all", "kai.scheduler/topology-required-placement": "rack"}},
		"JobSet, no gang":                           {annotations: keys{"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}},
		"JobSet":                                    {annotations: keys{"pod-group-name": "g", "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}, want: "annotation alpha.jobset.sigs.k8s.io/exclusive-topology: workers are made only when their leader is bound, and a gang starts only when all its pods exist: remove it, and use required pod affinity with the topology key"},
		"JobSet with node selector":                 {annotations: keys{"pod-group-name": "g", "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack", "alpha.jobset.sigs.k8s.io/node-selector": "true"}},
		"LWS":                                       {annotations: keys{"pod-group-name": "g", "leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}, want: "annotation leaderworkerset.sigs.k8s.io/exclusive-topology: workers are made only when their leader is bound, and a gang starts only when all its pods exist: remove it, and use required pod affinity with the topology key"},
		"a label instead":                           {labels: keys{"pod-group-name": "g"}, want: "label pod-group-name: a label names no PodGroup: make it an annotation"},
		"an annotation instead":                     {annotations: keys{"pod-group-name": "g", "kai.scheduler/subgroup-name": "w"}, want: "annotation kai.scheduler/subgroup-name: an annotation names no sub-group: make it a label"},
		"misspelled": {
			labels:      keys{"podGroup": "g"},
			annotations: keys{"pod-groupname": "g", "pod_group_name": "g", "pod-group-nam": "g", "pod-gruop-name": "two edits"},
			want:        "annotation pod-group-nam, annotation pod-groupname, annotation pod_group_name, label podGroup: the annotation that names a PodGroup is pod-group-name",
		},
		"the mark of Coscheduling as an annotation":     {annotations: keys{"scheduling.x-k8s.io/pod-group": "g"}, want: "annotation scheduling.x-k8s.io/pod-group: as an annotation it has no effect: make it a label"},
		"the mark of Coscheduling, misspelled":          {labels: keys{"scheduling.x-k8s.io/podgroup": "g"}, want: "label scheduling.x-k8s.io/podgroup: did you mean label scheduling.x-k8s.io/pod-group?"},
		"the mark of Coscheduling, by another API":      {labels: keys{"scheduling.k8s.io/pod-group": "g"}},
		"the mark of Volcano as a label":                {labels: keys{"scheduling.k8s.io/group-name": "g"}, want: "label scheduling.k8s.io/group-name: as a label it has no effect: make it an annotation"},
		"the mark of Volcano, misspelled":               {annotations: keys{"scheduling.volcano.sh/group-nam": "g"}, want: "annotation scheduling.volcano.sh/group-n…: did you mean annotation scheduling.volcano.sh/group-name?"},
		"KAI's minimum as a label":                      {labels: keys{"kai.scheduler/batch-min-member": "4"}, want: "label kai.scheduler/batch-min-member: as a label it has no effect: make it an annotation"},
		"a minimum, misspelled":                         {annotations: keys{"scheduling.run.ai/min-members": "4"}, want: "annotation scheduling.run.ai/min-members: did you mean annotation scheduling.run.ai/min-member?"},
		"a minimum, in upper case":                      {labels: keys{"scheduling.run.ai/Min-Member": "4"}, want: "label scheduling.run.ai/Min-Member: did you mean annotation scheduling.run.ai/min-member?"},
		"opted out":                                     {labels: keys{"scheduling.run.ai/gang": "false", "scheduling.x-k8s.io/pod-group": "g"}},
		"misspelled, in a gang":                         {labels: keys{"scheduling.run.ai/min-members": "4"}, annotations: keys{"pod-group-name": "g"}},
		"a kind that nobody groups":                     {owner: metav1.OwnerReference{APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob"}, want: "owner PyTorchJob: " + podGroup},
		"a kind that nobody groups, opted out":          {labels: keys{"scheduling.run.ai/gang": "false"}, owner: metav1.OwnerReference{APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob"}},
		"a kind that nobody groups, in a gang of users": {annotations: keys{"pod-group-name": "g"}, owner: metav1.OwnerReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job"}},
		"a Job": {owner: metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job"}},
		"a kind that is off": {labels: keys{"jobset.sigs.k8s.io/jobset-name": "j", "jobset.sigs.k8s.io/jobset-uid": "u"}, annotations: keys{"scheduling.run.ai/gang": "without --workload-gangs"},
			want: "label jobset.sigs.k8s.io/jobset-uid: each pod starts alone, because muster-scheduler runs without --workload-gangs: set it where muster-controller runs, " +
				`or label the pod template scheduling.run.ai/gang: "false" to say that this is meant`},
		"several": {
			labels: keys{"kai.scheduler/queue": "q"}, annotations: keys{"gpu-memory": "4096", "pod.group.name": "g"},
			want: "annotation gpu-memory: it would get none, and waits: request whole GPUs, or a resource that the device plugin offers for shares; " +
				"annotation pod.group.name: the annotation that names a PodGroup is pod-group-name; " +
				"label kai.scheduler/queue: Muster has no queues: limit namespaces with a ResourceQuota, or admit the workload with Kueue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}}
			if tc.owner.Kind != "" {
				tc.owner.Controller = ptr.To(true)
				pod.OwnerReferences = []metav1.OwnerReference{tc.owner}
			}
			if got := IgnoredKeys(pod); got != tc.want {
				t.Errorf("IgnoredKeys() = %q,\nwant %q", got, tc.want)
			}
		})
	}
}

// TestGuideListsIgnoredKeys compares the tables of docs/workloads.md with otherKeys.
func TestGuideListsIgnoredKeys(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/workloads.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range otherKeys {
		kind, key, _ := strings.Cut(k.keyPlace(), " ")
		if row := kind + " `" + key + "`"; !strings.Contains(string(guide), row) {
			t.Errorf("docs/workloads.md does not contain %q", row)
		}
	}
}
