// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// TestReleasedAfterACrash starts with the pods that a crash left of a gang of four, of which three were bound.
func TestReleasedAfterACrash(t *testing.T) {
	plan := planFor("group", "a", "b", "c", "d")
	bound := func(name string) *corev1.Pod {
		return memberPod(name).Controller("Job", "job", "job").Node("n").BoundFor(plan.mark(name)).Obj()
	}
	onRecord := func(name string) *corev1.Pod {
		pod := bound(name)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: v2alpha2.PodReasonPartialGangReleased}}
		return pod
	}
	preempted := func(name string) *corev1.Pod {
		pod := onRecord(name)
		pod.Status.Conditions[0].Reason = corev1.PodReasonPreemptionByScheduler
		return pod
	}
	terminating := func(name string, grace int64) *corev1.Pod {
		pod := onRecord(name)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(1_000_000, 0)}, &grace
		return pod
	}
	held := terminating("c", 0)
	held.Finalizers = []string{"test/hold"}
	waiting := func(name string) *corev1.Pod { return memberPod(name).Controller("Job", "job", "job").Obj() }

	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		want []string // to be released by the first call
	}{
		"no release is recorded: the repair time begins":                             {[]*corev1.Pod{bound("a"), bound("b"), bound("c"), waiting("d")}, nil},
		"one release is recorded and no pod is gone: all are released":               {[]*corev1.Pod{onRecord("a"), bound("b"), bound("c"), waiting("d")}, []string{"a", "b", "c"}},
		"all releases are recorded":                                                  {[]*corev1.Pod{onRecord("a"), onRecord("b"), onRecord("c"), waiting("d")}, []string{"a", "b", "c"}},
		"one is gone already: the others with a record are released":                 {[]*corev1.Pod{onRecord("b"), onRecord("c"), waiting("d")}, []string{"b", "c"}},
		"one has its grace period, and another one waits for its finalizer":          {[]*corev1.Pod{terminating("b", 30), held, waiting("d")}, nil},
		"the deletion of one was cut off":                                            {[]*corev1.Pod{terminating("b", 0), onRecord("c"), waiting("d")}, []string{"b", "c"}},
		"a pod without a record stays if the objects prove nothing":                  {[]*corev1.Pod{onRecord("b"), bound("c"), waiting("e")}, []string{"b"}},
		"a user copied a mark to a pod that has the condition: it stays":             {[]*corev1.Pod{copied(onRecord("a"), plan.mark("b"))}, nil},
		"a user wrote a mark to a pod that has the condition: it stays":              {[]*corev1.Pod{copied(onRecord("a"), "group/4/0123456789abcdef")}, nil},
		"a victim of preemption is not affected":                                     {[]*corev1.Pod{preempted("a"), bound("b"), bound("c"), waiting("d")}, nil},
		"a pod of another scheduler with the condition was not bound here: it stays": {[]*corev1.Pod{unmarked(onRecord("a"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := New()
			now := time.Unix(1_000_000, 0)
			r.Configure(Options{RepairTimeout: 30 * time.Second})
			r.AddProfile(wrappers.SchedulerName)
			r.SetKeys(testKeys, now)
			r.SetGroup(podGroup().MinMember(4).Obj(), now)
			for _, p := range tc.pods {
				r.SetPod(p, now)
			}
			r.SetSynced(now)
			var got []string
			for _, p := range r.PodsToRelease(time.Second, true) {
				got = append(got, p.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("released (-want +got):\n%s", diff)
			}
		})
	}
}

func unmarked(pod *corev1.Pod) *corev1.Pod {
	pod.Annotations = map[string]string{"pod-group-name": "g"}
	return pod
}

func copied(pod *corev1.Pod, mark string) *corev1.Pod {
	pod.Annotations[v2alpha2.BoundForAnnotation] = mark
	return pod
}
