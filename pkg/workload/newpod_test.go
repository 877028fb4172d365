// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/test/wrappers"
)

func TestPodsBearTheAttemptsOfTheirPodClique(t *testing.T) {
	t.Parallel()
	clique := wrappers.MakeMemberPodClique("a", 0, "g", 1, "w", "ns").
		Annotation(v1alpha1.AnnotationPodCliqueSetAttempt, "2").
		Annotation(v1alpha1.AnnotationPodCliqueScalingGroupAttempt, "5").
		Annotation(v1alpha1.AnnotationInitialReplicas, "1").Obj()
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
