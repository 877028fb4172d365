package desired

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

func TestPodsBearTheAttemptsOfTheirPodClique(t *testing.T) {
	t.Parallel()
	clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "a-0-g-1-w",
		Labels: map[string]string{v1alpha1.LabelPartOf: "a", v1alpha1.LabelPodCliqueSetReplicaIndex: "0"},
		Annotations: map[string]string{
			v1alpha1.AnnotationPodCliqueSetAttempt:          "2",
			v1alpha1.AnnotationPodCliqueScalingGroupAttempt: "5",
			v1alpha1.AnnotationInitialReplicas:              "1",
		}}}
	pod, err := Pod(clique, lifecycle.NewPod{}, PodOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if set, group := pod.Annotations[v1alpha1.AnnotationPodCliqueSetAttempt], pod.Annotations[v1alpha1.AnnotationPodCliqueScalingGroupAttempt]; set != "2" || group != "5" {
		t.Errorf("attempts %q and %q, want 2 and 5", set, group)
	}
	if n, has := pod.Annotations[v1alpha1.AnnotationInitialReplicas]; has {
		t.Errorf("annotation %s=%s, which is the controller's own", v1alpha1.AnnotationInitialReplicas, n)
	}
}
