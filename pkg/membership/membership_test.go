// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGang(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod                metav1.ObjectMeta
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
		"an empty name is none": {pod: metav1.ObjectMeta{Annotations: map[string]string{"pod-group-name": ""}}},
		"a label is no mark":    {pod: metav1.ObjectMeta{Labels: map[string]string{"pod-group-name": "train"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: tc.pod}
			if group, leaf, place := Group(pod), Leaf(pod), Mark(pod); group != tc.group || leaf != tc.leaf || place != tc.place {
				t.Errorf("PodGroup %q, leaf %q by %q; want %q, %q by %q", group, leaf, place, tc.group, tc.leaf, tc.place)
			}
		})
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
