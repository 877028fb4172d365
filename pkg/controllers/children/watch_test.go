package children

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// heard is a queue that writes down what it is told.
type heard struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	now, soon []string
}

func (h *heard) Add(r reconcile.Request)                       { h.now = append(h.now, r.Name) }
func (h *heard) AddAfter(r reconcile.Request, _ time.Duration) { h.soon = append(h.soon, r.Name) }

func TestWhoIsToldOfAChange(t *testing.T) {
	pod := func(owner, version string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", ResourceVersion: version}}
		if owner != "" {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindPodClique, Name: owner, UID: types.UID(owner), Controller: &yes}}
		}
		return p
	}
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		now, soon     []string
	}{
		"its owner of a change":           {pod("a", "1"), pod("a", "2"), nil, []string{"a"}},
		"nobody of a resync":              {pod("a", "1"), pod("a", "1"), nil, nil},
		"who has lost it, at once":        {pod("a", "1"), pod("", "2"), []string{"a"}, nil},
		"who has lost it, and who has it": {pod("a", "1"), pod("b", "2"), []string{"b", "a"}, nil},
		"who has it now":                  {pod("", "1"), pod("b", "2"), []string{"b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &heard{}
			News{Concerns: Owner(v1alpha1.KindPodClique), Of: WantedOrCounts}.Handler().Update(t.Context(),
				event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, queue)
			if diff := cmp.Diff([][]string{tc.now, tc.soon}, [][]string{queue.now, queue.soon}); diff != "" {
				t.Errorf("told now and soon (-want +got):\n%s", diff)
			}
		})
	}
}
