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
		field               bool
		want                string
	}{
		"none":            {},
		"ours":            {labels: keys{"kai.scheduler/subgroup-name": "w"}, annotations: keys{"pod-group-name": "g"}},
		"keys of users":   {labels: keys{"app": "x", "group": "g", "example.com/pod-group-name": "g"}, annotations: keys{"pod-name": "p", "podname": "p"}},
		"of Coscheduling": {labels: keys{"scheduling.x-k8s.io/pod-group": "g"}},
		"of Coscheduling before it had PodGroups": {labels: keys{"pod-group.scheduling.sigs.k8s.io": "g"}, want: "label pod-group.scheduling.sigs.k8s.io: " + podGroup},
		"of Volcano, two, in a gang":              {annotations: keys{"scheduling.k8s.io/group-name": "g", "scheduling.volcano.sh/group-name": "g"}, want: ""},
		"of Volcano, in a gang":                   {annotations: keys{"pod-group-name": "g", "scheduling.k8s.io/group-name": "g"}},
		"of Kueue":                                {labels: keys{"kueue.x-k8s.io/pod-group-name": "g"}, want: "label kueue.x-k8s.io/pod-group-name: Kueue admits the pods together, but " + podGroup},
		"of Kueue, in a gang":                     {labels: keys{"kueue.x-k8s.io/pod-group-name": "g"}, annotations: keys{"pod-group-name": "g"}},
		"of Kubernetes":                           {field: true, want: "spec.schedulingGroup.podGroupName: " + podGroup},
		"of Kubernetes, in a gang":                {field: true, annotations: keys{"pod-group-name": "g"}},
		"a share of a GPU":                        {annotations: keys{"pod-group-name": "g", "gpu-fraction": "0.5"}, want: "annotation gpu-fraction: the pod gets no GPU by it: request whole GPUs, or a resource that the device plugin offers for shares"},
		"a share, as a label":                     {labels: keys{"gpu-fraction": "0.5"}},
		"a queue":                                 {labels: keys{"kai.scheduler/queue": "q"}, annotations: keys{"pod-group-name": "g"}, want: "label kai.scheduler/queue: Muster has no queues: limit namespaces with a ResourceQuota, or admit the workload with Kueue"},
		"topology":                                {annotations: keys{"kai.scheduler/topology-required-placement": "rack"}, want: "annotation kai.scheduler/topology-required-placement: the pods are placed without it: use required pod affinity with the topology key"},
		"JobSet, no gang":                         {annotations: keys{"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}},
		"JobSet":                                  {annotations: keys{"pod-group-name": "g", "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}, want: "annotation alpha.jobset.sigs.k8s.io/exclusive-topology: workers are made only when their leader is bound, and a gang starts only when all its pods exist: remove it, and use required pod affinity with the topology key"},
		"JobSet with node selector":               {annotations: keys{"pod-group-name": "g", "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack", "alpha.jobset.sigs.k8s.io/node-selector": "true"}},
		"LWS":                                     {annotations: keys{"pod-group-name": "g", "leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}, want: "annotation leaderworkerset.sigs.k8s.io/exclusive-topology: workers are made only when their leader is bound, and a gang starts only when all its pods exist: remove it, and use required pod affinity with the topology key"},
		"a label instead":                         {labels: keys{"pod-group-name": "g"}, want: "label pod-group-name: a label names no PodGroup: make it an annotation"},
		"an annotation instead":                   {annotations: keys{"pod-group-name": "g", "kai.scheduler/subgroup-name": "w"}, want: "annotation kai.scheduler/subgroup-name: an annotation names no sub-group: make it a label"},
		"misspelled": {
			labels:      keys{"podGroup": "g"},
			annotations: keys{"pod-groupname": "g", "pod_group_name": "g", "pod-group-nam": "g", "pod-gruop-name": "two edits"},
			want:        "annotation pod-group-nam, annotation pod-groupname, annotation pod_group_name, label podGroup: the annotation that names a PodGroup is pod-group-name",
		},
		"several": {
			labels: keys{"kai.scheduler/queue": "q"}, annotations: keys{"gpu-memory": "4096", "pod.group.name": "g"},
			want: "annotation gpu-memory: the pod gets no GPU by it: request whole GPUs, or a resource that the device plugin offers for shares; " +
				"annotation pod.group.name: the annotation that names a PodGroup is pod-group-name; " +
				"label kai.scheduler/queue: Muster has no queues: limit namespaces with a ResourceQuota, or admit the workload with Kueue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}}
			if tc.field {
				pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("g")}
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
	if !strings.Contains(string(guide), "`"+schedulingGroup+"`") {
		t.Errorf("docs/workloads.md does not contain %s", schedulingGroup)
	}
}
