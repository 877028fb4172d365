// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/test/wrappers"
)

// holdersOf returns the holders of pods, the number of pods of each, and by pod the index of its holder.
func holdersOf(pods []*corev1.Pod) (holders []podgroup.Holder, numbers, of []int) {
	for _, pod := range pods {
		h := podgroup.HolderOf(pod)
		i := slices.Index(holders, h)
		if i < 0 {
			i = len(holders)
			holders, numbers = append(holders, h), append(numbers, 0)
		}
		numbers[i]++
		of = append(of, i)
	}
	return holders, numbers, of
}

// checkScreening: every candidate, and every pod that is ending, is among the pods that may end. Pods of lower priority
// are either counted there or as protected.
func checkScreening(t testing.TB, r *Registry, w *Work, pods []*corev1.Pod, c *Candidates, now time.Time) {
	t.Helper()
	holders, numbers, of := holdersOf(pods)
	s := r.ScreenHolders(w, holders, numbers, now)
	check := func(id int) {
		if !s.MayEnd[of[id]] {
			t.Fatalf("%s, a candidate of %s or a pod that is ending, may not end: %+v", pods[id].Name, w.Gang.Name, holders[of[id]])
		}
	}
	for _, id := range c.Ending {
		check(id)
	}
	candidates := 0
	for i := range c.Workloads {
		candidates += len(c.Workloads[i].Pods)
		for _, p := range c.Workloads[i].Pods {
			check(p.ID)
			if lowest := s.Priorities[of[p.ID]]; c.Workloads[i].Priority < lowest {
				t.Fatalf("%s, a candidate of priority %d, has at least %d", pods[p.ID].Name, c.Workloads[i].Priority, lowest)
			}
		}
	}
	if candidates > s.Pods {
		t.Fatalf("%d pods of lower priority may end, and %d are candidates", s.Pods, candidates)
	}
	lowest := int32(0)
	for i, pod := range pods {
		if p := count.PodPriority(pod); i == 0 || p < lowest {
			lowest = p
		}
	}
	if len(pods) > 0 && r.lowest > lowest {
		t.Fatalf("it is recorded that no pod has a priority below %d, and one has %d", r.lowest, lowest)
	}
}

// A gang of priority 5 is planned. Which pods may end for it is known without looking at each.
func TestScreenHolders(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	classes := map[string]int32{"low": 1, "high": 9}
	running := func(name, group string, priority int32) *corev1.Pod {
		p := wrappers.MakePod(name, "ns").UID(name).Priority(priority).Node("n0")
		if group != "" {
			p.Gang(group)
		}
		return p.Obj()
	}
	terminating := func(pod *corev1.Pod) *corev1.Pod {
		pod.DeletionTimestamp = &metav1.Time{Time: now}
		return pod
	}
	for name, tc := range map[string]struct {
		group  *v2alpha2.PodGroup // nil: there is none
		pods   []*corev1.Pod
		change func(r *Registry) // of other objects
		want   Screening         // of the holder of the last pod
	}{
		"a plain pod of a lower priority":                   {pods: []*corev1.Pod{running("a", "", 4)}, want: Screening{MayEnd: []bool{true}, Pods: 1, Priorities: []int32{4}}},
		"a plain pod of the same priority":                  {pods: []*corev1.Pod{running("a", "", 5)}, want: Screening{MayEnd: []bool{false}}},
		"a plain pod of a higher priority that terminates":  {pods: []*corev1.Pod{terminating(running("a", "", 9))}, want: Screening{MayEnd: []bool{true}, Priorities: []int32{math.MinInt32}}},
		"a pod whose PodGroup does not exist":               {pods: []*corev1.Pod{running("a", "g", 4)}, want: Screening{MayEnd: []bool{true}, Pods: 1, Priorities: []int32{4}}},
		"a gang of the same priority":                       {group: wrappers.MakePodGroup("g", "ns").MinMember(1).Obj(), pods: []*corev1.Pod{running("a", "g", 5)}, want: Screening{MayEnd: []bool{false}}},
		"a gang whose class is lower than its pods":         {group: wrappers.MakePodGroup("g", "ns").MinMember(1).Priority("low").Obj(), pods: []*corev1.Pod{running("a", "g", 5)}, want: Screening{MayEnd: []bool{true}, Pods: 1, Priorities: []int32{1}}},
		"a gang whose class is higher than its pods":        {group: wrappers.MakePodGroup("g", "ns").MinMember(1).Priority("high").Obj(), pods: []*corev1.Pod{running("a", "g", 4)}, want: Screening{MayEnd: []bool{true}, Pods: 1, Priorities: []int32{4}}},
		"a protected gang":                                  {group: protectedGroup(), pods: []*corev1.Pod{running("a", "g", 4)}, want: Screening{MayEnd: []bool{false}, Protected: 1}},
		"a protected gang of the same priority":             {group: protectedGroup(), pods: []*corev1.Pod{running("a", "g", 5)}, want: Screening{MayEnd: []bool{false}}},
		"a protected gang with a pod that terminates":       {group: protectedGroup(), pods: []*corev1.Pod{terminating(running("a", "g", 9))}, want: Screening{MayEnd: []bool{true}, Priorities: []int32{math.MinInt32}}},
		"a protected gang with a pod that counts nowhere":   {group: protectedTree(), pods: []*corev1.Pod{running("a", "g", 4)}, want: Screening{MayEnd: []bool{true}, Pods: 1, Priorities: []int32{4}}},
		"a pod whose annotation was removed while it ran":   {group: wrappers.MakePodGroup("g", "ns").MinMember(1).Priority("low").Obj(), pods: []*corev1.Pod{running("a", "g", 9), running("a", "", 9)}, want: Screening{MayEnd: []bool{true}, Pods: 1, Priorities: []int32{1}}},
		"a pod that names another, protected gang by now":   {group: protectedGroup(), pods: []*corev1.Pod{running("a", "other", 4), running("a", "g", 4)}, want: Screening{MayEnd: []bool{true}, Pods: 1, Priorities: []int32{4}}},
		"a pod of another gang names a third one by now":    {group: protectedGroup(), pods: []*corev1.Pod{running("b", "other", 4), running("b", "third", 4), running("a", "g", 4)}, want: Screening{MayEnd: []bool{false}, Protected: 1}},
		"a pod of another gang names no gang any more":      {group: protectedGroup(), pods: []*corev1.Pod{running("b", "other", 4), running("b", "", 4), running("a", "g", 5)}, want: Screening{MayEnd: []bool{false}}},
		"a pod that names its gang again":                   {group: protectedGroup(), pods: []*corev1.Pod{running("a", "g", 4), running("a", "other", 4), running("a", "g", 4)}, want: Screening{MayEnd: []bool{false}, Protected: 1}},
		"a pod of another gang that named a third one ends": {group: protectedGroup(), pods: []*corev1.Pod{running("b", "other", 4), running("b", "third", 4), running("a", "g", 4)}, change: func(r *Registry) { r.RemoveFailedPod("b", now) }, want: Screening{MayEnd: []bool{false}, Protected: 1}},
		"a victim of another gang that names this protected one by now": {group: protectedGroup(), pods: []*corev1.Pod{running("a", "other", 9), running("a", "g", 9)},
			change: func(r *Registry) { r.recordDeparting(r.members["a"], nil) }, want: Screening{MayEnd: []bool{true}}},
		"a pod without a gang was deleted for a gang of a higher priority": {pods: []*corev1.Pod{running("a", "", 9)},
			change: func(r *Registry) { awaitUntil(r, "a", now) }, want: Screening{MayEnd: []bool{true}}},
		"the deletion of a pod without a gang had no effect": {pods: []*corev1.Pod{running("a", "", 9)},
			change: func(r *Registry) { awaitUntil(r, "a", now.Add(-time.Hour)) }, want: Screening{MayEnd: []bool{false}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New()
			r.Configure(Options{PreemptionTimeout: 30 * time.Second, Priority: func(name string) (int32, bool) { p, ok := classes[name]; return p, ok }})
			r.AddProfile(wrappers.SchedulerName)
			r.SetGroup(wrappers.MakePodGroup("own", "ns").UID("own").MinMember(1).Obj(), now)
			if tc.group != nil {
				tc.group.UID = types.UID(tc.group.Name)
				r.SetGroup(tc.group, now)
			}
			for _, pod := range tc.pods {
				r.SetPod(pod, now)
			}
			r.SetSynced(now)
			if tc.change != nil {
				tc.change(r)
			}
			pods := tc.pods[len(tc.pods)-1:]
			holders, numbers, _ := holdersOf(pods)
			w := &Work{Gang: keyNamed("own"), EvictionPriority: 5}
			if tc.want.Priorities == nil {
				tc.want.Priorities = []int32{math.MaxInt32}
			}
			if diff := cmp.Diff(tc.want, r.ScreenHolders(w, holders, numbers, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			c := r.Candidates(w, RunningPods{Pods: pods, Amount: func(int) int64 { return 1 }}, false, now)
			checkScreening(t, r, w, pods, &c, now)
		})
	}
}

// A victim without a gang that needs long to end is awaited, whoever searches for victims meanwhile. It is forgotten if
// it was given up.
func TestNoSearchForgetsAVictim(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1))
	plain := wrappers.MakePod("plain", testNamespace).UID("plain").Node("n").Obj()
	awaitUntil(s.r, "plain", s.now)
	s.after(time.Minute)
	holders, numbers, _ := holdersOf([]*corev1.Pod{plain})
	s.r.ScreenHolders(&Work{Gang: gangG, EvictionPriority: 5}, holders, numbers, s.now)
	if !s.r.isEnding("plain") {
		t.Error("the victim is forgotten")
	}
	s.r.RecordEvicted(&evictions.Eviction{}, []types.UID{"plain"}, s.now)
	if s.r.isEnding("plain") {
		t.Error("the victim is awaited, which was given up")
	}
}

func protectedGroup() *v2alpha2.PodGroup {
	return wrappers.MakePodGroup("g", "ns").MinMember(1).Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.NonPreemptible }).Obj()
}

// protectedTree has a sub-group that no pod names.
func protectedTree() *v2alpha2.PodGroup {
	return wrappers.MakePodGroup("g", "ns").SubGroup("leaf", 1).Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.NonPreemptible }).Obj()
}

// awaitUntil records that a pod without a gang should have ended at a time.
func awaitUntil(r *Registry, uid types.UID, due time.Time) {
	r.plainVictims.Await(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, DeletionTimestamp: &metav1.Time{Time: due}}}, due)
}
