package podcliqueset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// told is a queue that counts.
type told struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	sets []string
}

func (q *told) AddAfter(r reconcile.Request, _ time.Duration) { q.sets = append(q.sets, r.String()) }

func TestTheSetIsToldWhenAPodRuns(t *testing.T) {
	pod := func(phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{v1alpha1.LabelPartOf: "a"}}, Status: corev1.PodStatus{Phase: phase}}
	}
	for name, tc := range map[string]struct {
		before, after corev1.PodPhase
		want          bool
	}{
		"begins to run": {corev1.PodPending, corev1.PodRunning, true},
		"runs already":  {corev1.PodRunning, corev1.PodRunning, false},
		"ends":          {corev1.PodRunning, corev1.PodFailed, false},
		"waits":         {corev1.PodPending, corev1.PodPending, false},
	} {
		q := &told{}
		podRuns(t.Context(), event.UpdateEvent{ObjectOld: pod(tc.before), ObjectNew: pod(tc.after)}, q)
		if got := len(q.sets) == 1 && q.sets[0] == "ns/a"; got != tc.want {
			t.Errorf("%s: told %v, want %t", name, q.sets, tc.want)
		}
	}
}
