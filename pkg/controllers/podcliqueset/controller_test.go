// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/test/wrappers"
)

// fakeQueue records the sets that are enqueued.
type fakeQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	sets   []string
	delays []time.Duration
}

func (q *fakeQueue) AddAfter(r reconcile.Request, delay time.Duration) {
	q.sets, q.delays = append(q.sets, r.String()), append(q.delays, delay)
}

func TestEnqueueForRunningPod(t *testing.T) {
	pod := func(phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{v1alpha1.LabelPartOf: "a"}}, Status: corev1.PodStatus{Phase: phase}}
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		before, after corev1.PodPhase
		phase         v1alpha1.PodCliqueSetPhase
		want          []time.Duration
	}{
		"begins to run":                          {corev1.PodPending, corev1.PodRunning, v1alpha1.PodCliqueSetPhasePending, []time.Duration{children.PromptBatchPeriod}},
		"begins to run while another is running": {corev1.PodPending, corev1.PodRunning, v1alpha1.PodCliqueSetPhaseRunning, []time.Duration{children.SyncBatchPeriod}},
		"runs already":                           {corev1.PodRunning, corev1.PodRunning, v1alpha1.PodCliqueSetPhasePending, nil},
		"ends":                                   {corev1.PodRunning, corev1.PodFailed, v1alpha1.PodCliqueSetPhaseRunning, nil},
		"waits":                                  {corev1.PodPending, corev1.PodPending, v1alpha1.PodCliqueSetPhasePending, nil},
	} {
		set := wrappers.MakePodCliqueSet("a", "ns").Status(func(s *v1alpha1.PodCliqueSetStatus) { s.Phase = tc.phase }).Obj()
		r := &Reconciler{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(set).Build()}
		q := &fakeQueue{}
		r.enqueueForPodPhase(t.Context(), event.UpdateEvent{ObjectOld: pod(tc.before), ObjectNew: pod(tc.after)}, q)
		if diff := cmp.Diff(tc.want, q.delays); diff != "" {
			t.Errorf("%s: enqueued after (-want +got):\n%s", name, diff)
		}
		for _, name := range q.sets {
			if name != "ns/a" {
				t.Errorf("%s is enqueued", name)
			}
		}
	}
}
