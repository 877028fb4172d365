// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestNamedBy: which group of which kind a pod names, also when it is stripped.
func TestNamedBy(t *testing.T) {
	t.Parallel()
	type keys = map[string]string
	const made = "j-86554f454f-j-pgt-0-566d789d6d" // as the Job controller names it for Job j
	for what, tc := range map[string]struct {
		labels, annotations keys
		field, job          string // the PodGroup of Kubernetes that the pod names, and the Job that controls it
		want                keys   // by kind
	}{
		"none":                      {labels: keys{"app": "web"}, annotations: keys{"pod-group-name": "ours"}},
		"of Coscheduling":           {labels: keys{"scheduling.x-k8s.io/pod-group": "a"}, want: keys{"PodGroup.scheduling.x-k8s.io": "a"}},
		"of Volcano":                {annotations: keys{"scheduling.k8s.io/group-name": "a"}, want: keys{"PodGroup.scheduling.volcano.sh": "a"}},
		"of Volcano, the other key": {annotations: keys{"scheduling.volcano.sh/group-name": "a"}, want: keys{"PodGroup.scheduling.volcano.sh": "a"}},
		"of Kubernetes":             {field: "a", want: keys{"PodGroup.scheduling.k8s.io": "a", "CompositePodGroup.scheduling.k8s.io": "a"}},
		"of Kubernetes, in a tree": {field: "a", annotations: keys{"scheduling.run.ai/composite-pod-group": "root"},
			want: keys{"PodGroup.scheduling.k8s.io": "a", "CompositePodGroup.scheduling.k8s.io": "a"}},
		"of Kubernetes, made by the Job controller": {field: made, job: "j", want: keys{"PodGroup.scheduling.k8s.io": made, "CompositePodGroup.scheduling.k8s.io": made}},
		"the same, with a minimum of its own":       {field: made, job: "j", labels: keys{"scheduling.run.ai/min-member": "all"}},
		"opted out":                                 {labels: keys{"scheduling.x-k8s.io/pod-group": "a"}, annotations: keys{"scheduling.run.ai/gang": "false"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: tc.labels, Annotations: tc.annotations},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
			if tc.field != "" {
				pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &tc.field}
			}
			if tc.job != "" {
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: tc.job, Controller: ptr.To(true)}}
			}
			stripped, err := StripPod(pod)
			if err != nil {
				t.Fatal(err)
			}
			again, err := StripPod(stripped)
			if err != nil || len(again.(*corev1.Pod).Spec.Containers) > 0 {
				t.Error(again, err)
			}
			for _, name := range Names() {
				kinds, err := Select([]string{name})
				if err != nil {
					t.Fatal(err)
				}
				if !kinds[0].IsNamed() {
					continue
				}
				for _, pod := range []*corev1.Pod{pod, stripped.(*corev1.Pod), again.(*corev1.Pod)} {
					if got := kinds[0].NamedBy(pod); got != tc.want[name] {
						t.Errorf("%s: %q, want %q", name, got, tc.want[name])
					}
				}
			}
		})
	}
}

// TestJoinTree: which pods get the annotation.
func TestJoinTree(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1", Annotations: map[string]string{"scheduling.run.ai/composite-pod-group": "old", "other": "x"}},
		Spec: corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To("a")}}}
	stripped, err := StripPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	pod = stripped.(*corev1.Pod)
	const want = `{"metadata":{"uid":"u1","annotations":{"scheduling.run.ai/composite-pod-group":"root"}}}`
	if got := string(JoinTree(pod, "root")); got != want {
		t.Error(got)
	}
	if got := JoinTree(pod, "old"); got != nil {
		t.Errorf("%s", got)
	}
	pod.DeletionTimestamp = &metav1.Time{}
	if got := JoinTree(pod, "root"); got != nil {
		t.Errorf("a pod that is being deleted: %s", got)
	}
}
