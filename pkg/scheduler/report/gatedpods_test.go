// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

// Pods that additional nodes would help are Unschedulable, to which autoscalers react; other pods wait for their
// gang. Source: docs/decisions, G13.
func TestConditionsOfGatedPods(t *testing.T) {
	t.Parallel()
	const (
		capacity   = "Unschedulable: PodGroup train: InsufficientGPUs: no"
		gang       = "WaitingForGang: PodGroup train: InsufficientGPUs: no"
		incomplete = "WaitingForGang: PodGroup train: WaitingForPods: needs 2 pods, 1 exist"
		single     = "WaitingForGang: above the minimum of PodGroup train, which runs without it: InsufficientGPUs: no"
		unit       = "above the minimum of PodGroup train, which runs without it; sub-group y starts as a whole: InsufficientGPUs: no"
		unitLacks  = "above the minimum of PodGroup train, which runs without it; sub-group z starts as a whole: WaitingForPods: it lacks 1 pod that must be created first"
	)
	refuse := func(c *cluster) { c.refuse("train", v2alpha2.ReasonInsufficientGPUs, "no") }
	tests := map[string]struct {
		group *wrappers.PodGroupWrapper
		pods  []*wrappers.PodWrapper
		do    func(c *cluster) // runs after the pods were created
		after time.Duration    // then this time passes, with a check every second
		want  map[string]string
	}{
		"no condition for an incomplete gang during the first 10 s": {
			group: podGroup("train").MinMember(2), pods: []*wrappers.PodWrapper{member("train", "a")}, after: 9 * time.Second,
		},
		"then its pods point at the PodGroup, without involving autoscalers": {
			group: podGroup("train").MinMember(2), pods: []*wrappers.PodWrapper{member("train", "a")}, after: time.Minute,
			want: map[string]string{"a": incomplete},
		},
		"a pod whose PodGroup does not exist": {
			pods: []*wrappers.PodWrapper{member("train", "a")}, after: time.Minute, want: map[string]string{"a": "WaitingForGang: waits until PodGroup train exists and can start"},
		},
		"no condition for a refused gang during the first 2 s": {
			group: podGroup("train").MinMember(1), pods: []*wrappers.PodWrapper{member("train", "a")}, do: refuse, after: time.Second,
		},
		"then its pods need capacity": {
			group: podGroup("train").MinMember(2), pods: []*wrappers.PodWrapper{member("train", "a"), member("train", "b")}, do: refuse, after: time.Minute,
			want: map[string]string{"a": capacity, "b": capacity},
		},
		"only those of the minimum": {
			group: podGroup("train").MinMember(1), pods: []*wrappers.PodWrapper{member("train", "a"), member("train", "b")}, do: refuse, after: time.Minute,
			want: map[string]string{"a": capacity, "b": gang},
		},
		"not if the PodGroup does not want it": {
			group: podGroup("train").MinMember(1).MarkUnschedulable(false), pods: []*wrappers.PodWrapper{member("train", "a")}, do: refuse, after: time.Minute,
			want: map[string]string{"a": gang},
		},
		"not for reasons other than capacity": {
			group: podGroup("train").MinMember(1), pods: []*wrappers.PodWrapper{member("train", "a")},
			do:    func(c *cluster) { c.refuse("train", v2alpha2.ReasonSchedulerError, "no") },
			after: time.Minute, want: map[string]string{"a": "WaitingForGang: PodGroup train: SchedulerError: no"},
		},
		"not for single pods above the minimum": {
			group: podGroup("train").MinMember(1), pods: []*wrappers.PodWrapper{member("train", "a").Node("n1"), member("train", "b")}, do: refuse, after: time.Minute,
			want: map[string]string{"b": single},
		},
		"but for a sub-group above the minimum that is complete": {
			group: podGroup("train").MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 1).SubGroup("z", 2),
			pods: []*wrappers.PodWrapper{
				member("train", "x0").SubGroup("x").Node("n1"), member("train", "y0").SubGroup("y"), member("train", "y1").SubGroup("y"), member("train", "z0").SubGroup("z"),
			},
			do: refuse, after: time.Minute,
			want: map[string]string{"y0": "Unschedulable: " + unit, "y1": "WaitingForGang: " + unit, "z0": "WaitingForGang: " + unitLacks},
		},
		"and for the pods that one lacks of which others are bound": {
			group: podGroup("train").MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2),
			pods:  []*wrappers.PodWrapper{member("train", "x0").SubGroup("x").Node("n1"), member("train", "y0").SubGroup("y").Node("n1"), member("train", "y1").SubGroup("y")},
			do:    refuse, after: time.Minute,
			want: map[string]string{"y1": "Unschedulable: " + unit},
		},
		"pods with scheduling gates are left to the API server": {
			group: podGroup("train").MinMember(2), pods: []*wrappers.PodWrapper{member("train", "a").SchedulingGate("kueue"), member("train", "b")}, after: time.Minute,
			want: map[string]string{"b": "WaitingForGang: PodGroup train: Gated: 1 of 2 needed pods can be placed; 1 pod with scheduling gates that are to be lifted: kueue"},
		},
		"pods of another scheduler are ignored": {
			group: podGroup("train").MinMember(2), pods: []*wrappers.PodWrapper{member("train", "a").SchedulerName("default-scheduler"), member("train", "b")}, after: time.Minute,
			want: map[string]string{"b": "WaitingForGang: PodGroup train: OtherScheduler: 1 of 2 needed pods can be placed; set schedulerName muster-scheduler in all pods of the gang: 1 pod of scheduler default-scheduler"},
		},
		"a repeated refusal counts from the first one": {
			group: podGroup("train").MinMember(1), pods: []*wrappers.PodWrapper{member("train", "a")},
			do: func(c *cluster) {
				for range 4 {
					refuse(c)
					c.mustLook("train")
					c.passes(time.Second / 2)
				}
			},
			want: map[string]string{"a": capacity},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			if tc.group != nil {
				c.group(tc.group)
			}
			for _, p := range tc.pods {
				c.pod(p)
			}
			if tc.do != nil {
				tc.do(c)
			}
			for passed := time.Duration(0); ; passed += time.Second {
				if tc.group != nil {
					c.mustLook("train")
				} else if _, err := c.look("train"); err != nil {
					t.Fatal(err)
				}
				if passed >= tc.after {
					break
				}
				c.passes(time.Second)
			}
			got := map[string]string{}
			for _, p := range tc.pods {
				pod := p.Obj()
				obj, err := c.pods.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), namespace, pod.Name)
				if err != nil {
					t.Fatal(err)
				}
				for _, cond := range obj.(*corev1.Pod).Status.Conditions {
					if cond.Type != corev1.PodScheduled || cond.Status != corev1.ConditionFalse || cond.LastTransitionTime.IsZero() {
						t.Errorf("condition %+v", cond)
					}
					got[pod.Name] = cond.Reason + ": " + cond.Message
				}
			}
			if tc.want == nil {
				tc.want = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("PodScheduled=False (-want +got):\n%s", diff)
			}
			if len(c.patches) != len(tc.want) {
				t.Errorf("%d patches, want %d: one per pod\n%q", len(c.patches), len(tc.want), c.patches)
			}
		})
	}
}

func TestThePatchTouchesOneConditionOfOneVersion(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(2))
	c.pod(member("train", "a"))
	c.passes(10 * time.Second)

	// The pod changed without the cache's knowledge, for example it was bound: the patch must not succeed.
	obj := c.seen("a").DeepCopy()
	obj.ResourceVersion = "7"
	obj.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	if err := c.pods.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), obj, namespace); err != nil {
		t.Fatal(err)
	}
	if _, err := c.look("train"); !apierrors.IsConflict(err) {
		t.Fatalf("look = %v, want a conflict", err)
	}
	c.seen("a")
	c.mustLook("train")
	var patch map[string]any
	if err := json.Unmarshal([]byte(c.patches[1][len("a "):]), &patch); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"uid": "a", "resourceVersion": "7"},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "PodScheduled", "status": "False", "reason": "WaitingForGang",
			"message":       "PodGroup train: WaitingForPods: needs 2 pods, 1 exist",
			"lastProbeTime": nil, "lastTransitionTime": "2026-03-01T12:00:10Z",
		}}},
	}
	if diff := cmp.Diff(want, patch); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	if got := c.seen("a").Status.Conditions; len(got) != 2 {
		t.Errorf("conditions %+v, want the other one kept", got)
	}
}

func TestTheReasonOfAPodMayChange(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(2))
	c.pod(member("train", "a"))
	c.pod(member("train", "b"))
	reason := func() string {
		for _, cond := range c.seen("a").Status.Conditions {
			return cond.Reason
		}
		return ""
	}
	until := func(want string, atMost time.Duration) {
		t.Helper()
		for passed := time.Duration(0); reason() != want; passed += time.Second {
			if passed > atMost {
				t.Fatalf("reason %q after %s, want %q", reason(), passed, want)
			}
			c.passes(time.Second)
			c.mustLook("train")
		}
	}
	c.refuse("train", v2alpha2.ReasonFragmented, "no")
	c.mustLook("train")
	until("Unschedulable", 2*time.Second)
	// Its sibling is deleted: a node would not help now.
	c.registry.RemovePod("b", c.clock.Now())
	c.mustLook("train")
	if got := reason(); got != "Unschedulable" {
		t.Errorf("reason %q immediately, want it to be delayed", got)
	}
	until("WaitingForGang", 10*time.Second)
	c.pod(member("train", "c"))
	c.refuse("train", v2alpha2.ReasonFragmented, "no")
	c.mustLook("train")
	until("Unschedulable", 2*time.Second)

	// The scheduler's own message on a leader is kept.
	n := len(c.patches)
	pod := c.seen("a").DeepCopy()
	pod.ResourceVersion = "99"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulerError", LastTransitionTime: metav1.NewTime(start)}}
	c.registry.SetPod(pod, c.clock.Now())
	for range 60 {
		c.passes(time.Second)
		c.mustLook("train")
	}
	for _, p := range c.patches[n:] {
		if p[0] == 'a' {
			t.Errorf("patch of the leader: %s", p)
		}
	}
}

func TestFailedPatchesAreRepeated(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(3))
	c.pod(member("train", "a"))
	c.pod(member("train", "b"))
	c.passes(time.Minute)
	down := true
	c.pods.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if down {
			return true, nil, fmt.Errorf("connection refused")
		}
		return false, nil, nil
	})
	if _, err := c.look("train"); err == nil {
		t.Fatal("no error")
	}
	down = false
	c.mustLook("train")
	c.mustLook("train")
	if len(c.patches) != 2 {
		t.Errorf("patches %q, want one per pod", c.patches)
	}
}

func TestGangHasOneEventAboutPodsWithoutAPlace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.pod(member("late", "early"))
	c.pod(member("lost", "a"))
	c.pod(member("lost", "b"))
	c.group(podGroup("tree").SubGroup("decode", 1))
	c.pod(member("tree", "x").SubGroup("prefill"))
	c.pod(member("tree", "y"))
	c.group(podGroup("shrinks").SubGroup("one", 1).SubGroup("two", 1))
	c.pod(member("shrinks", "one").SubGroup("one"))
	c.pod(member("shrinks", "two").SubGroup("two"))
	looks := func() {
		for _, name := range []string{"late", "lost", "tree", "shrinks"} {
			if _, err := c.look(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	looks()
	c.passes(time.Second)
	c.group(podGroup("late").MinMember(1)) // created by the same command
	for second := range 60 {
		switch second {
		case 30: // scaled in: the PodGroup first, then the pods
			c.group(podGroup("shrinks").Generation(2).SubGroup("one", 1))
		case 31:
			two := c.seen("two")
			two.DeletionTimestamp = ptr.To(metav1.NewTime(c.clock.Now()))
			c.registry.SetPod(two, c.clock.Now())
		}
		looks()
		c.passes(time.Second)
	}
	var got []string
	for _, e := range c.events.list() {
		if e[:len("Warning")] == "Warning" {
			got = append(got, e)
		}
	}
	want := []string{
		`Warning PodGroupNotFound Pod/a: annotation pod-group-name names PodGroup "lost", and namespace ml has none of that name: create it (apiVersion scheduling.run.ai/v2alpha2), or correct the annotation; 2 pods wait`,
		`Warning SubGroupNotFound Pod/x: does not count in PodGroup "tree": the pod carries sub-group "prefill", which the PodGroup does not have: correct label kai.scheduler/subgroup-name; the leaves are decode; the pod waits`,
		`Warning SubGroupNotFound Pod/y: does not count in PodGroup "tree": the pod has no label kai.scheduler/subgroup-name: add it; the leaves are decode; the pod waits`,
		`Warning GangInvalid PodGroup/tree: pod x carries sub-group "prefill", which the PodGroup does not have: correct label kai.scheduler/subgroup-name; pod y has no label kai.scheduler/subgroup-name: add it; the leaves are decode; needs 1 pod, 0 exist; decode lacks 1 of 1; complete: 0 of 1 sub-groups of the gang`,
	}
	sortStrings := func(s []string) map[string]int {
		out := map[string]int{}
		for _, x := range s {
			out[x]++
		}
		return out
	}
	if diff := cmp.Diff(sortStrings(want), sortStrings(got)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// The annotation with a PodGroup's name may have any length.
func TestALongNameIsNotCopied(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", 200<<10)
	c := newCluster(t)
	c.pod(member(name, "a"))
	for range 60 {
		c.mustLook(name)
		c.passes(time.Second)
	}
	for _, condition := range c.seen("a").Status.Conditions {
		if len(condition.Message) > 1000 {
			t.Errorf("a message of %d bytes", len(condition.Message))
		}
	}
	events := c.events.list()
	if len(events) == 0 {
		t.Error("there is no event about the PodGroup that does not exist")
	}
	for _, event := range events {
		if len(event) > 1200 || !strings.HasSuffix(event, "; the pod waits") {
			t.Errorf("an event of %d bytes ends with %q", len(event), event[len(event)-20:])
		}
	}
}

// The first waiting pod of a leaf gets an event, at most 8 per gang and reason. Source: docs/decisions, G13.
func TestFirstWaitingPodOfEachLeafGetsAnEvent(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	tree := podGroup("tree").MinSubGroup(10)
	for i := range 10 {
		tree = tree.SubGroup(fmt.Sprintf("leaf-%d", i), 2)
	}
	c.group(tree)
	for i := range 10 {
		for _, pod := range []string{"a", "b"} {
			c.pod(member("tree", fmt.Sprintf("%s-%d", pod, i)).SubGroup(fmt.Sprintf("leaf-%d", i)))
		}
	}
	look := func(seconds int) {
		for range seconds {
			c.mustLook("tree")
			c.passes(time.Second)
		}
	}
	c.registry.RecordGangRefused(keyOf("tree"), podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "the gang needs 20 nvidia.com/gpu for 20 pods, 3 are free; more detail"}, gangs.Wait{}, c.clock.Now())
	look(60)
	want := []string{}
	for i := range maxAnnounced {
		want = append(want, fmt.Sprintf("Warning FailedScheduling Pod/a-%d: PodGroup tree: InsufficientGPUs: the gang needs 20 nvidia.com/gpu for 20 pods, 3 are free", i))
	}
	got := []string{}
	for _, e := range c.events.list() {
		if strings.Contains(e, " Pod/") {
			got = append(got, e)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events about pods (-want +got):\n%s", diff)
	}
}

// Of 200 pods that name a PodGroup that does not exist, one gets the event.
func TestManyPodsWithoutAPodGroupMakeOneEvent(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i := range 200 {
		c.pod(member("lost", fmt.Sprintf("worker-%03d", i)))
	}
	for range 30 {
		if _, err := c.look("lost"); err != nil {
			t.Fatal(err)
		}
		c.passes(time.Second)
	}
	want := []string{`Warning PodGroupNotFound Pod/worker-000: annotation pod-group-name names PodGroup "lost", and namespace ml has none of that name: create it (apiVersion scheduling.run.ai/v2alpha2), or correct the annotation; 200 pods wait`}
	if diff := cmp.Diff(want, c.events.list()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// messageAfter returns the message of the first condition of a pod after so many seconds, "" if it has none.
func (c *cluster) messageAfter(group, pod string, seconds int) string {
	c.t.Helper()
	for range seconds {
		c.mustLook(group)
		c.passes(time.Second)
	}
	c.mustLook(group)
	for _, condition := range c.seen(pod).Status.Conditions {
		return condition.Message
	}
	return ""
}

// The message of a pod follows the reason of its PodGroup after that has lasted.
func TestTheMessageOfAPodFollowsTheReasonOfItsPodGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(1))
	c.pod(member("train", "a"))
	passes := func(seconds int) string { return c.messageAfter("train", "a", seconds) }
	steps := []struct {
		name    string
		do      func()
		seconds int
		want    string
	}{
		{"refused", func() { c.refuse("train", v2alpha2.ReasonInsufficientGPUs, "needs 8, 4 are free; more") }, 3, "PodGroup train: InsufficientGPUs: needs 8, 4 are free"},
		{"other numbers", func() { c.refuse("train", v2alpha2.ReasonInsufficientGPUs, "needs 8, 3 are free; more") }, 60, "PodGroup train: InsufficientGPUs: needs 8, 4 are free"},
		{"another reason, for a moment", func() { c.refuse("train", v2alpha2.ReasonFragmented, "in pieces") }, 5, "PodGroup train: InsufficientGPUs: needs 8, 4 are free"},
		{"it goes", func() { c.refuse("train", v2alpha2.ReasonInsufficientGPUs, "needs 8, 2 are free") }, 60, "PodGroup train: InsufficientGPUs: needs 8, 4 are free"},
		{"another reason that lasts", func() { c.refuse("train", v2alpha2.ReasonFragmented, "in pieces; more") }, 11, "PodGroup train: Fragmented: in pieces"},
	}
	for _, step := range steps {
		step.do()
		if got := passes(step.seconds); got != step.want {
			t.Errorf("%s: message %q, want %q", step.name, got, step.want)
		}
	}
	n := len(c.patches)
	c.restart()
	passes(60)
	if len(c.patches) != n {
		t.Errorf("patches after a restart: %q", c.patches[n:])
	}
}

// A reason that gangs pass through may last, for example behind others in the queue: then it replaces one that is not
// true any more.
func TestPodsDoNotKeepAReasonThatIsOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(2))
	c.pod(member("train", "a"))
	passes := func(seconds int) string { return c.messageAfter("train", "a", seconds) }
	const lacks = "PodGroup train: WaitingForPods: needs 2 pods, 1 exist"
	if got := passes(20); got != lacks {
		t.Errorf("message %q, want %q", got, lacks)
	}
	c.pod(member("train", "b"))
	if got := passes(9); got != lacks {
		t.Errorf("message %q after 9 s, want the change to last first", got)
	}
	n := len(c.patches)
	if got := passes(60); !strings.HasPrefix(got, "PodGroup train: BehindInQueue") {
		t.Errorf("message %q after a minute, want what the pod waits for now", got)
	}
	if written := c.patches[n:]; len(written) != 2 {
		t.Errorf("patches %q, want one per pod", written)
	}
}

// While the API server refuses the conditions, or the pods have changed since they were read, a large gang causes few
// requests and a short error.
func TestFewRequestsWhileConditionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"the server fails": apierrors.NewInternalError(errors.New("etcd is slow")),
		"conflicts":        apierrors.NewConflict(corev1.Resource("pods"), "pod", errors.New("the object has been modified")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			refused := 0
			c.pods.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				refused++
				return true, nil, err
			})
			c.group(podGroup("train").MinMember(200))
			for i := range 100 {
				c.pod(member("train", fmt.Sprintf("pod-%03d", i)))
			}
			c.passes(11 * time.Second)
			if _, err := c.reporter.pods.syncGang(context.Background(), keyOf("train")); err == nil {
				t.Error("no error")
			}
			if refused == 0 || refused > maxRefused {
				t.Errorf("%d requests in one check, want at most %d", refused, maxRefused)
			}
		})
	}
}

// The conditions of a large gang take long to write, so that it may have moved on before the last one.
func TestFactsAreReadAgainWhileConditionsAreWritten(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const pods = 30
	c.pods.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		c.passes(writingLimit / 10)
		return false, nil, nil
	})
	c.group(podGroup("train").MinMember(pods + 1))
	for i := range pods {
		c.pod(member("train", fmt.Sprintf("pod-%03d", i)))
	}
	c.passes(11 * time.Second)
	for _, want := range []int{10, 20} {
		again, err := c.reporter.pods.syncGang(context.Background(), keyOf("train"))
		if err != nil || again != gather || len(c.patches) != want {
			t.Errorf("%d patches, again after %s, %v; want %d, after %s", len(c.patches), again, err, want, gather)
		}
	}
	for i := range pods {
		c.registry.SetPod(member("train", fmt.Sprintf("pod-%03d", i)).Node("n").Obj(), c.clock.Now())
	}
	if again, err := c.reporter.pods.syncGang(context.Background(), keyOf("train")); err != nil || again != 0 || len(c.patches) != 20 {
		t.Errorf("%d patches, again after %s, %v; want none of pods that are bound", len(c.patches), again, err)
	}
}
