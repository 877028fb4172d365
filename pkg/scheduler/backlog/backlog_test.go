// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

// TestEventsAfterAFailedPlan: which events end the pause of a gang whose plan failed. No gang is refused.
func TestEventsAfterAFailedPlan(t *testing.T) {
	t.Parallel()
	own := wrappers.MakePod("own", "ml").UID("own").Gang("failed").Obj()
	assumed := wrappers.MakePod("own", "ml").UID("own").Gang("failed").Node("n").Obj()
	other := wrappers.MakePod("other", "ml").UID("other").Gang("other").Node("n").Obj()
	plain := wrappers.MakePod("plain", "ml").UID("plain").Node("n").Obj()
	released := fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}
	for name, tc := range map[string]struct {
		observe func(b *Backlog)
		want    bool
	}{
		"none":                                 {observe: func(*Backlog) {}},
		"its own pod is released":              {observe: func(b *Backlog) { b.Observe(released, assumed, nil) }},
		"a plain pod is removed":               {observe: func(b *Backlog) { b.Observe(released, plain, nil) }, want: true},
		"a pod of another gang is removed":     {observe: func(b *Backlog) { b.Observe(released, other, nil) }, want: true},
		"its own pod is released, one removed": {observe: func(b *Backlog) { b.Observe(released, assumed, nil); b.Observe(released, other, nil) }, want: true},
		"the status of a pod changes": {observe: func(b *Backlog) {
			b.Observe(fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Update}, plain, plain)
		}},
		"a pod is bound": {observe: func(b *Backlog) {
			b.Observe(fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add}, nil, plain)
		}},
		"a node is added": {observe: func(b *Backlog) {
			b.Observe(fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, nil, &corev1.Node{})
		}, want: true},
		"a claim changes": {observe: func(b *Backlog) {
			b.Observe(fwk.ClusterEvent{Resource: fwk.PersistentVolumeClaim, ActionType: fwk.Update}, nil, nil)
		}, want: true},
		"a nomination is gone": {observe: func(b *Backlog) { b.NominationGone() }, want: true},
		"a plan is in force":   {observe: func(b *Backlog) { b.RoomClaimed() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, r := testingclock.NewFakeClock(time.Unix(1_000_000, 0)), gangs.New()
			r.AddProfile(wrappers.SchedulerName)
			r.SetSynced(c.Now())
			b := New(c, nil, r)
			r.SetGroup(wrappers.MakePodGroup("failed", "ml").UID("failed").MinMember(1).Obj(), c.Now())
			r.SetPod(own, c.Now())
			b.Observe(released, plain, nil) // before the attempt
			b.Evaluate(klog.Background())
			r.RecordPopped(own.UID)
			work, why := r.BeginAttempt(own)
			if work == nil {
				t.Fatal(why)
			}
			if plan, why := r.CommitPlan(work, []placement.Placement{{Pod: work.Problem.Pods[""][0], Node: "n"}}, c.Now()); plan == nil {
				t.Fatal(why)
			}
			if err := r.AssumeMember(own.UID, "n", c.Now()); err != nil {
				t.Fatal(err)
			}
			r.ReleaseMember(own.UID, c.Now())
			tc.observe(b)
			if got := len(b.Evaluate(klog.Background()).Gangs.Activate) > 0; got != tc.want {
				t.Errorf("tried again: %t, want %t", got, tc.want)
			}
		})
	}
}
