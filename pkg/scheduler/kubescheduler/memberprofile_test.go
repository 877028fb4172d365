// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/test/wrappers"
)

// preparing is a profile whose plugins at PreBind do what a test says.
type preparing struct {
	framework.Framework
	prepare func(ctx context.Context) error
}

func (p preparing) RunPreBindPlugins(ctx context.Context, _ fwk.CycleState, _ *corev1.Pod, _ string) *fwk.Status {
	return fwk.AsStatus(p.prepare(ctx))
}

// A member whose node is not nominated can be cancelled while it is prepared, as one that the binding cycle has
// registered before, and not afterwards. The preparation of another pod is left to the binding cycle.
func TestUnnominatedMembersCanBeCancelled(t *testing.T) {
	t.Parallel()
	failed, aborted := errors.New("failed"), "the plan was aborted"
	member, plain := wrappers.MakePod("a", "ml").UID("a").Gang("g").Obj(), wrappers.MakePod("plain", "ml").UID("plain").Obj()
	for name, tc := range map[string]struct {
		pod             *corev1.Pod
		registered      bool // by the binding cycle
		cancel, heeded  bool // heeded: the plugins return the reason of the cancellation
		fails           bool
		wantCancellable bool
		want            string // "": success
	}{
		"a member is prepared":                {pod: member, wantCancellable: true},
		"a member cannot be prepared":         {pod: member, wantCancellable: true, fails: true, want: "failed"},
		"a member is cancelled":               {pod: member, wantCancellable: true, cancel: true, heeded: true, want: aborted},
		"a member is cancelled at the end":    {pod: member, wantCancellable: true, cancel: true, want: aborted},
		"a member that is nominated":          {pod: member, registered: true, wantCancellable: true},
		"a pod without a gang":                {pod: plain},
		"a pod without a gang, but nominated": {pod: plain, registered: true, wantCancellable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			f := memberFramework{MemberHooks: MemberHooks{Member: func(pod *corev1.Pod) bool { return pod == member }}}
			f.Framework = preparing{c.f, func(ctx context.Context) error {
				pod := f.GetPodInPreBind(tc.pod.UID)
				if (pod != nil) != tc.wantCancellable {
					t.Errorf("can be cancelled: %t, want %t", pod != nil, tc.wantCancellable)
				}
				switch {
				case tc.fails:
					return failed
				case tc.cancel && pod != nil && !pod.CancelPod(aborted):
					t.Error("the preparation was not cancelled")
				case tc.heeded:
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return nil
			}}
			if tc.registered {
				f.AddPodInPreBind(tc.pod.UID, func(error) {})
			}
			got := ""
			if status := f.RunPreBindPlugins(c.ctx, framework.NewCycleState(), tc.pod, "n0"); !status.IsSuccess() {
				got = status.AsError().Error()
			}
			if got != tc.want {
				t.Errorf("failed with %q, want %q", got, tc.want)
			}
			if left := f.GetPodInPreBind(tc.pod.UID) != nil; left != tc.registered {
				t.Errorf("can be cancelled afterwards: %t, want %t", left, tc.registered)
			}
		})
	}
}
