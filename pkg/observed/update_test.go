package observed_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/observed"
)

// What the pods show replaces what the status says, also of whether all follow: a pod that ended is not one of an earlier template.
func TestWithCounts(t *testing.T) {
	t.Parallel()
	pod := func(template string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelPodTemplateHash: template},
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID("a"), Controller: ptr.To(true)}}}, Status: corev1.PodStatus{Phase: phase}}
	}
	for name, tc := range map[string]struct {
		pods          []*corev1.Pod
		count, update int32
		followed      string
	}{
		"all follow":                 {[]*corev1.Pod{pod("b", corev1.PodRunning), pod("b", corev1.PodRunning)}, 2, 2, "gen-b"},
		"all follow, one has ended":  {[]*corev1.Pod{pod("b", corev1.PodRunning), pod("b", corev1.PodFailed)}, 2, 1, "gen-b"},
		"one does not":               {[]*corev1.Pod{pod("b", corev1.PodRunning), pod("a", corev1.PodRunning)}, 2, 1, ""},
		"one does not and has ended": {[]*corev1.Pod{pod("b", corev1.PodRunning), pod("a", corev1.PodFailed)}, 2, 1, ""},
	} {
		clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{UID: "a", Generation: 3,
			Labels: map[string]string{v1alpha1.LabelPodTemplateHash: "b"}, Annotations: map[string]string{v1alpha1.AnnotationGenerationHash: "gen-b", v1alpha1.AnnotationRevision: "2"}},
			Status: v1alpha1.PodCliqueStatus{CurrentPodCliqueSetGenerationHash: ptr.To("gen-b"), Replicas: 7}}
		got := observed.Clique(observed.WithCounts([]*v1alpha1.PodClique{clique}, tc.pods)[0])
		if got.Pods != tc.count || got.Updated != tc.update || got.Followed != tc.followed || !got.Observed || got.Revision != 2 {
			t.Errorf("%s: %+v", name, got)
		}
		if clique.Status.Replicas != 7 || ptr.Deref(clique.Status.CurrentPodCliqueSetGenerationHash, "") != "gen-b" {
			t.Errorf("%s: the PodClique that was given was changed: %+v", name, clique.Status)
		}
	}
}
