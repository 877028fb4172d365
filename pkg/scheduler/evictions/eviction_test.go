// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var start = time.Unix(1_000_000, 0)

// victim returns a victim with a grace period in seconds.
func victim(name string, grace int64) Victim {
	return Victim{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", UID: types.UID(name)},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace}}}
}

func eviction(victims ...Victim) *Eviction {
	return &Eviction{ID: "plan", Gang: types.NamespacedName{Namespace: "ml", Name: "high"}, Victims: victims, Timeout: 30 * time.Second}
}

// Until when each stage may last, what people are told, and what the next time is for.
func TestTimesOfStages(t *testing.T) {
	t.Parallel()
	const forTwo = 2 * perVictim
	for name, tc := range map[string]struct {
		grace               int64
		stage               Stage
		until, told, next   time.Duration
		evicting, isLending bool
	}{
		"decided":                  {60, Decided, preparationLimit + forTwo, 90*time.Second + forTwo, preparationLimit + forTwo, false, false},
		"being marked for a pod":   {60, Recorded, preparationLimit + forTwo, 0, preparationLimit + forTwo, false, false},
		"marked":                   {60, Marked, preparationLimit + forTwo, 90*time.Second + forTwo, preparationLimit + forTwo, true, false},
		"checked":                  {60, Checked, 90*time.Second + forTwo, 90*time.Second + forTwo, 90*time.Second + forTwo, true, false},
		"deleted":                  {60, Deleted, preparationLimit + forTwo, 0, preparationLimit + forTwo, false, false},
		"deleted, and it is quick": {5, Deleted, preparationLimit + forTwo, 0, 10 * time.Second, false, false},
		"deleted, and it is slow":  {301, Deleted, preparationLimit + forTwo, 0, time.Second, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := eviction(victim("a", 0), victim("b", tc.grace))
			e.Begin(tc.stage, start)
			if e.Stage() != tc.stage || e.Until().Sub(start) != tc.until || e.NextTime().Sub(start) != tc.next || e.IsLending() != tc.isLending {
				t.Errorf("%s until %s, next %s, lending %t", e.Stage(), e.Until().Sub(start), e.NextTime().Sub(start), e.IsLending())
			}
			if told := e.About.Until; told.IsZero() != (tc.told == 0) || tc.told > 0 && told.Sub(start) != tc.told || e.About.Evicting != tc.evicting {
				t.Errorf("told are %+v", e.About)
			}
		})
	}
}

// What is lent is kept again once, and who is late is named once.
func TestTimesAreReachedOnce(t *testing.T) {
	t.Parallel()
	e := eviction(victim("a", 0), victim("b", 600))
	e.Awaited = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "other", UID: "c"}}}
	e.Begin(Deleted, start)
	ends := func(only types.UID) func(types.UID) bool {
		return func(uid types.UID) bool { return uid == only }
	}
	if e.EndsLending(start.Add(299*time.Second)) || !e.EndsLending(start.Add(300*time.Second)) || e.EndsLending(start.Add(301*time.Second)) {
		t.Error("the room is not kept again at the time, once")
	}
	if e.NameStuck(start.Add(604*time.Second), ends("c")) || !e.NameStuck(start.Add(605*time.Second), ends("c")) || e.NameStuck(start.Add(606*time.Second), ends("b")) {
		t.Error("the pod is not named at the time, once")
	}
	if e.About.Stuck != "other/c" {
		t.Errorf("%q is named", e.About.Stuck)
	}
	if !e.IsAwaiting(ends("b")) || !e.IsAwaiting(ends("c")) || e.IsAwaiting(ends("d")) {
		t.Error("not exactly the victims, and the pods that are awaited, are waited for")
	}
}

// The check spares those that are not among its victims, and keeps the identity.
func TestSucceed(t *testing.T) {
	t.Parallel()
	old := eviction(victim("a", 0), victim("b", 0), victim("c", 0))
	old.Decided = start
	old.Begin(Announced, start)
	e := eviction(victim("b", 0))
	e.ID = "another"
	if e.Succeed(old); e.ID != "plan" || !e.Until().Equal(old.Until()) || e.Stage() != Announced || !e.Decided.Equal(start) || len(e.Spared) != 2 || e.Spared[0].Pod.Name != "a" || e.Spared[1].Pod.Name != "c" {
		t.Errorf("%+v", e)
	}
	if !old.HasVictims(e.Victims) || e.HasVictims(old.Victims) {
		t.Error("the victims are compared wrongly")
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	plain, other, first := victim("plain", 0), victim("x", 0), victim("y", 0)
	other.Gang, first.Gang = types.NamespacedName{Namespace: "other", Name: "g"}, types.NamespacedName{Namespace: "ml", Name: "low"}
	e := eviction(plain, other, first, first)
	e.Describe("nvidia.com/gpu", 8)
	if a := e.About; a.Plan != "plan" || a.Pods != 4 || a.PlainPods != 1 || a.Gangs != 2 || a.First != "low" || a.Resource != "nvidia.com/gpu" || a.Amount != 8 {
		t.Errorf("%+v", a)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		stage            Stage
		taken            bool
		success, failure Outcome
	}{
		{Decided, false, Spared, Cancelled}, {Announced, true, Spared, Cancelled},
		{Checked, false, Placed, Wasted}, {Deleted, false, Placed, Wasted}, {Deleted, true, Placed, Overtaken},
	} {
		e := eviction(victim("a", 0))
		e.Taken = tc.taken
		if e.Begin(tc.stage, start); e.Success() != tc.success || e.Failure() != tc.failure {
			t.Errorf("%s, taken %t: %s or %s", tc.stage, tc.taken, e.Success(), e.Failure())
		}
	}
}

// A pod without a gang that is to end departs when the deletions begin, and is expected when its own was accepted.
func TestPods(t *testing.T) {
	t.Parallel()
	const timeout = 30 * time.Second
	e, other, pods := eviction(victim("a", 60)), eviction(), Pods{}
	if x := pods["a"]; x.By() != nil || x.IsDeparting() || x.IsExpected(start, timeout) {
		t.Error("a pod is known that is no victim")
	}
	e.Begin(Announced, start)
	pods.Choose("a", e)
	pods.Release("a", other)
	pods.Accepted("a", other, start)
	if x := pods["a"]; x.By() != e || x.IsDeparting() || x.IsExpected(start, timeout) {
		t.Errorf("chosen: %+v", x)
	}
	e.Enter(Checked, start)
	if x := pods["a"]; !x.IsDeparting() || x.IsExpected(start, timeout) {
		t.Errorf("the deletion begins: %+v", x)
	}
	pods.Accepted("a", e, start)
	pods.Release("a", e)
	if x := pods["a"]; x.By() != nil || !x.IsDeparting() || !x.IsExpected(start.Add(89*time.Second), timeout) || x.IsExpected(start.Add(90*time.Second), timeout) {
		t.Errorf("accepted: %+v", x)
	}
	pods.Forget(start.Add(60*time.Second + kept))
	if len(pods) != 1 {
		t.Error("it is forgotten too early")
	}
	if pods.Forget(start.Add(61*time.Second + kept)); len(pods) > 0 {
		t.Error("it is not forgotten")
	}
	pods.Choose("b", e)
	if pods.Release("b", e); len(pods) > 0 {
		t.Error("it is not released")
	}
}
