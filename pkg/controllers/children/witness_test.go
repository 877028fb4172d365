// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/test/wrappers"
)

// witnessed returns a Witness of an API server with the objects, and that.
func witnessed(t *testing.T, get func(client.ObjectKey) error, objects ...client.Object) (*Client, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if err := get(key); err != nil {
				return err
			}
			return c.Get(ctx, key, into, options...)
		}}).Build()
	lease := types.NamespacedName{Namespace: "muster-system", Name: "muster-scheduler"}
	c := NewClient(api, api)
	c.witness = NewWitness(api, api, Options{SchedulerName: "muster-scheduler", SchedulerLease: lease})
	return c, api
}

func noError(client.ObjectKey) error { return nil }

// TestMissingNodeCountsFromWhenItWasMissed: a Node that is registered again and deleted once more begins anew, and
// nodes that hold pods count in the zone of their pods.
func TestMissingNodeCountsFromWhenItWasMissed(t *testing.T) {
	t.Parallel()
	now, grace := time.Unix(1000, 0), 10*time.Second
	var objects []client.Object
	for _, name := range []string{"a", "b", "c"} {
		pod := wrappers.MakePod("pod-"+name, "ns").Node("gone-" + name).Obj()
		pod.Labels = map[string]string{corev1.LabelTopologyZone: "east"}
		objects = append(objects, pod)
	}
	for _, name := range []string{"d", "e", "f", "g"} {
		objects = append(objects, wrappers.MakeNode("node-"+name).Obj(), wrappers.MakePod("pod-"+name, "ns").Node("node-"+name).Obj())
	}
	c, api := witnessed(t, noError, objects...)
	silence := func(at time.Duration) lifecycle.Silence {
		pods, _ := c.MarkSilent(t.Context(), &grace, []lifecycle.Pod{{LostNode: "gone-a"}}, now.Add(at))
		return pods[0].Silence
	}
	if got := silence(time.Hour).Text; got != "3 of 3 nodes of zone east do not answer" {
		t.Errorf("all nodes of a zone: %q", got)
	}
	if err := api.Delete(t.Context(), objects[1]); err != nil {
		t.Fatal(err)
	}
	if got := silence(time.Hour + 9*time.Second); got.Text != "node gone-a does not answer" || !got.Until.Equal(now.Add(time.Hour+10*time.Second)) {
		t.Errorf("after 9 s: %+v", got)
	}
	if got := silence(time.Hour + 12*time.Second); got.IsSilent() {
		t.Errorf("after 12 s: %+v", got)
	}
	c.witness.forgetNode("gone-a")
	if got := silence(time.Hour + 20*time.Second); !got.Until.Equal(now.Add(time.Hour + 30*time.Second)) {
		t.Errorf("once more: %+v", got)
	}
}

// TestTheFleetIsJudgedAgainBeforeSomethingEnds: nodes that became silent a moment after the latest judgement count.
func TestTheFleetIsJudgedAgainBeforeSomethingEnds(t *testing.T) {
	t.Parallel()
	now, grace := time.Unix(1000, 0), time.Second
	var objects []client.Object
	for _, name := range []string{"a", "b", "c", "d"} {
		objects = append(objects, wrappers.MakeNode(name).Obj(), wrappers.MakePod("pod-"+name, "ns").Node(name).Obj())
	}
	c, api := witnessed(t, noError, objects...)
	loses := func(node client.Object) {
		t.Helper()
		if err := api.Delete(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	pods := []lifecycle.Pod{{LostNode: "a"}}
	loses(objects[0])
	c.MarkSilent(t.Context(), &grace, pods, now)
	loses(objects[2])
	loses(objects[4])
	set := &v1alpha1.PodCliqueSet{}
	set.Spec.Template.UnreachableGrace = &metav1.Duration{Duration: grace}
	c.StillUnreachable(t.Context())
	marked := c.SilentMarker(t.Context(), set, now.Add(grace))(pods)
	if got := marked[0].Silence.Text; got != "3 of 4 nodes do not answer" {
		t.Errorf("%q", got)
	}
}

// TestLease: a Lease is valid for as long as it says, and another process needs to acquire it, from when a renewal was
// seen, whatever the clock of its holder, and one that cannot be read becomes invalid.
func TestLease(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-system", Name: "muster-scheduler"},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-time.Hour)}, LeaseDurationSeconds: ptr.To(int32(15))}}
	var err error
	c, api := witnessed(t, func(client.ObjectKey) error { return err }, lease)
	isSilent := func(at time.Duration) bool {
		pods, _ := c.MarkSilent(t.Context(), nil, []lifecycle.Pod{{Scheduler: "muster-scheduler", Answered: true}}, now.Add(at))
		return pods[0].Silence.IsSilent()
	}
	renew := func(at time.Duration) {
		t.Helper()
		lease.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(at)}
		if err := api.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
	if !isSilent(0) {
		t.Error("a Lease of an hour ago is valid")
	}
	renew(-time.Hour + 2*time.Second) // by a clock that is an hour behind
	if isSilent(5 * time.Second) {
		t.Error("it was renewed, and is not valid")
	}
	err = errors.New("the API server does not answer")
	if isSilent(39*time.Second) || !isSilent(40*time.Second) {
		t.Error("another process has 20 s after the 15 s for which it was valid when it was seen")
	}
	err = nil
	if err := api.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if isSilent(45 * time.Second) {
		t.Error("there is no Lease, and the pod has its answer")
	}
}

// TestNodeThatAnswersBeforeTheCacheShowsIt: what the control plane wrote about the pods of a node that was silent is
// not believed as soon as the node answers, nor for long if the clock of its kubelet is far ahead.
func TestNodeThatAnswersBeforeTheCacheShowsIt(t *testing.T) {
	t.Parallel()
	now := time.Unix(100000, 0)
	for name, tc := range map[string]struct {
		status corev1.ConditionStatus
		since  time.Time
		want   bool
	}{
		"the cache shows a silent node": {corev1.ConditionUnknown, now.Add(-time.Hour), true},
		"it answers":                    {corev1.ConditionTrue, now.Add(-time.Second), true},
		"by a clock two seconds ahead":  {corev1.ConditionTrue, now.Add(2 * time.Second), true},
		"by a clock an hour ahead":      {corev1.ConditionTrue, now.Add(time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := wrappers.MakeNode("n").Obj()
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: tc.status, LastTransitionTime: metav1.Time{Time: tc.since}}}
			c, _ := witnessed(t, noError, node)
			pods, _ := c.MarkSilent(t.Context(), nil, []lifecycle.Pod{{Node: "n", Scheduled: true, Running: true}}, now)
			if got := pods[0].Silence; got.IsSilent() != tc.want {
				t.Errorf("%+v, want silence: %t", got, tc.want)
			}
		})
	}
}

// TestReleasedLease: a scheduler that shuts down releases its Lease, and the next one has the time to acquire it.
func TestReleasedLease(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-system", Name: "muster-scheduler"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(""), RenewTime: &metav1.MicroTime{Time: now}, LeaseDurationSeconds: ptr.To(int32(1))}}
	c, _ := witnessed(t, noError, lease)
	for at, want := range map[time.Duration]bool{20 * time.Second: false, 21 * time.Second: true} {
		pods, _ := c.MarkSilent(t.Context(), nil, []lifecycle.Pod{{Scheduler: "muster-scheduler", Answered: true}}, now.Add(at))
		if got := pods[0].Silence; got.IsSilent() != want {
			t.Errorf("after %s: %+v, want silence: %t", at, got, want)
		}
	}
}
