// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"slices"
	"testing"

	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/test/wrappers"
)

// A gang is refused by GangAdmission whichever filter was the reason, so GangAdmission must register for every event
// for which any of the filters registers.
func TestEveryEventThatWakesAPodWakesAGang(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	f := c.sched.Profiles[wrappers.SchedulerName]
	ours, theirs := map[fwk.EventResource]fwk.ActionType{}, map[fwk.EventResource]map[string]fwk.ActionType{}
	for _, pl := range f.EnqueueExtensions() {
		events, err := pl.EventsToRegister(c.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if slices.Contains([]fwk.EventResource{fwk.AssignedPod, fwk.TargetPod, fwk.UnscheduledPod}, e.Event.Resource) {
				e.Event.Resource = fwk.Pod // which gangs are registered for
			}
			if pl.Name() == Name {
				ours[e.Event.Resource] |= e.Event.ActionType
				continue
			}
			if theirs[e.Event.Resource] == nil {
				theirs[e.Event.Resource] = map[string]fwk.ActionType{}
			}
			theirs[e.Event.Resource][pl.Name()] |= e.Event.ActionType
		}
	}
	// The registry observes events of the gang's own pods itself.
	ours[fwk.Pod] |= fwk.UpdatePodToleration | fwk.UpdatePodSchedulingGatesEliminated | fwk.UpdatePodScaleUp
	const (
		ofPods = fwk.UpdatePodLabel | fwk.UpdatePodScaleDown | fwk.UpdatePodScaleUp | fwk.UpdatePodToleration | fwk.UpdatePodSchedulingGatesEliminated |
			fwk.UpdatePodGeneratedResourceClaim
		ofNodes = fwk.Update &^ ofPods
	)
	ours[fwk.Pod], ours[fwk.Node] = ours[fwk.Pod]|ofNodes, ours[fwk.Node]|ofPods
	for resource, plugins := range theirs {
		for name, actions := range plugins {
			if name == "Moody" { // registers no events, so it receives all
				continue
			}
			if missing := actions &^ ours[resource]; missing != 0 {
				t.Errorf("%s is woken by %s of %s, a gang is not", name, fwk.ClusterEvent{Resource: resource, ActionType: missing}.Label(), resource)
			}
		}
	}
	if len(theirs[fwk.Node]) < 5 {
		t.Errorf("events of %v only: are these all plugins?", theirs)
	}
}

// Pods without a gang that were refused because of reservations.
func TestWhichPodsWakeARefusedPod(t *testing.T) {
	t.Parallel()
	pod := func(name string) *wrappers.PodWrapper { return wrappers.MakePod(name, "ml").UID(name) }
	refused := pod("a").GPUs(1)
	attached := pod("a").GPUs(1).TogetherWith("zone", "app", "db")
	for name, tc := range map[string]struct {
		refused      *wrappers.PodWrapper // nil: the pod without affinity
		old, updated *wrappers.PodWrapper
		want         bool
	}{
		"a bound pod is deleted":                          {old: pod("x").Node("n0"), want: true},
		"a waiting pod is deleted":                        {old: pod("x")},
		"a pod is bound":                                  {updated: pod("x").Node("n0")},
		"a pod is bound to which it may have affinity":    {refused: attached, updated: pod("x").Node("n0"), want: true},
		"a pod is created to which it may have affinity":  {refused: attached, updated: pod("x")},
		"a bound pod changes its labels or asks for less": {old: pod("x").Node("n0"), updated: pod("x").Node("n0").Label("app", "db"), want: true},
		"a waiting pod changes its labels":                {old: pod("x"), updated: pod("x").Label("app", "db")},
		"it changes itself":                               {old: refused, updated: pod("a").GPUs(1).Label("app", "db"), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var old, updated any
			if tc.old != nil {
				old = tc.old.Obj()
			}
			if tc.updated != nil {
				updated = tc.updated.Obj()
			}
			of := refused
			if tc.refused != nil {
				of = tc.refused
			}
			got, err := (&Admission{}).afterPod(klog.Background(), of.Obj(), old, updated)
			if err != nil || (got == fwk.Queue) != tc.want {
				t.Errorf("hint %v, error %v; want that the pod is woken: %t", got, err, tc.want)
			}
		})
	}
}
