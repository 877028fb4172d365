// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/test/wrappers"
)

// aboutPods returns the events about pods.
func (c *cluster) aboutPods() []string {
	out := []string{}
	for _, e := range c.events.list() {
		if strings.Contains(e, " Pod/") {
			out = append(out, e)
		}
	}
	return out
}

// said returns the message of the condition of a pod.
func (c *cluster) said(pod string) string {
	for _, condition := range c.seen(pod).Status.Conditions {
		return condition.Message
	}
	return ""
}

// The waiting pods of a gang that lacks pods say what the PodGroup says: who should create the others, and what would
// help. The condition of a pod is written once, and the first pod has one event.
func TestWaitingPodsSayWhoShouldCreateTheOthers(t *testing.T) {
	t.Parallel()
	const alone = "PodGroup train: WaitingForPods: needs 4 pods, 1 exist"
	for name, tc := range map[string]struct {
		object runtime.Object
		pod    *wrappers.PodWrapper
		want   string
	}{
		"a StatefulSet of the usual policy": {
			object: &appsv1.StatefulSet{ObjectMeta: owned("web", "1"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](4)}},
			pod:    member("train", "a").Controller("StatefulSet", "web", "1"),
			want:   alone + "; StatefulSet web makes a pod only when the one before it is ready: recreate it with podManagementPolicy Parallel",
		},
		"a Job that lacks pods because of a quota": {
			object: &batchv1.Job{ObjectMeta: owned("job", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4)}},
			pod:    member("train", "a").Controller("Job", "job", "1"),
			want:   alone + "; Job job is to have 4 pods and has 1: see its events, a quota or an admission webhook may refuse the others, or it pauses after a failure",
		},
		"a Job that is suspended": {
			object: &batchv1.Job{ObjectMeta: owned("job", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4), Suspend: ptr.To(true)}},
			pod:    member("train", "a").Controller("Job", "job", "1"),
			want:   alone + "; Job job is suspended: resume it",
		},
		"a pod without a controller": {
			object: &batchv1.Job{ObjectMeta: owned("job", "1")},
			pod:    member("train", "a"),
			want:   alone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.withMakers(nil)
			c.adds(tc.object)
			c.group(podGroup("train").MinMember(4))
			c.pod(tc.pod)
			c.lastsFor("train", time.Minute)
			if diff := cmp.Diff(tc.want, c.said("a")); diff != "" {
				t.Errorf("message of the pod (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"Normal WaitingForGang Pod/a: " + tc.want}, c.aboutPods()); diff != "" {
				t.Errorf("events about the pod (-want +got):\n%s", diff)
			}
			if len(c.patches) != 1 {
				t.Errorf("%d patches, want one: %q", len(c.patches), c.patches)
			}
			c.withMakers(nil)
			c.lastsFor("train", time.Minute)
			if len(c.patches) != 1 {
				t.Errorf("patches after a restart: %q", c.patches[1:])
			}
		})
	}
}

// Advice that is known only later replaces the message once. Its numbers do not, and other advice does.
func TestLaterAdviceReplacesTheMessageOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.withMakers(nil)
	job := &batchv1.Job{ObjectMeta: owned("job", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](8), Suspend: ptr.To(true)}}
	c.adds(job)
	unreadable := true
	c.pods.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return unreadable, nil, apierrors.NewInternalError(errors.New("etcd is slow"))
	})
	c.group(podGroup("train").MinMember(8))
	c.pod(member("train", "a").Controller("Job", "job", "1"))
	const alone, quota = "PodGroup train: WaitingForPods: needs 8 pods, ", "see its events, a quota or an admission webhook may refuse the others, or it pauses after a failure"
	for _, step := range []struct {
		name    string
		do      func()
		lasts   time.Duration
		want    string
		patches int // of pod a, by now
	}{
		{"the Job cannot be read", func() {}, 30 * time.Second, alone + "1 exist", 1},
		{"it can be read", func() { unreadable = false }, 3 * time.Minute, alone + "1 exist; Job job is suspended: resume it", 2},
		{"it is resumed, and a quota refuses most pods", func() {
			resumed := job.DeepCopy()
			resumed.Spec.Suspend = ptr.To(false)
			if err := c.pods.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), resumed, namespace); err != nil {
				t.Fatal(err)
			}
			c.pod(member("train", "b").Controller("Job", "job", "1"))
		}, 3 * time.Minute, alone + "2 exist; Job job is to have 8 pods and has 2: " + quota, 3},
		{"another pod is created", func() { c.pod(member("train", "c").Controller("Job", "job", "1")) }, 3 * time.Minute,
			alone + "2 exist; Job job is to have 8 pods and has 2: " + quota, 3},
	} {
		step.do()
		c.lastsFor("train", step.lasts)
		if diff := cmp.Diff(step.want, c.said("a")); diff != "" {
			t.Errorf("%s: message (-want +got):\n%s", step.name, diff)
		}
		n := 0
		for _, p := range c.patches {
			if strings.HasPrefix(p, "a ") {
				n++
			}
		}
		if n != step.patches {
			t.Errorf("%s: %d patches, want %d: %q", step.name, n, step.patches, c.patches)
		}
	}
	want := []string{
		"Normal WaitingForGang Pod/a: " + alone + "1 exist",
		"Normal WaitingForGang Pod/a: " + alone + "1 exist; Job job is suspended: resume it",
	}
	if diff := cmp.Diff(want, c.aboutPods()); diff != "" {
		t.Errorf("events about pods (-want +got):\n%s", diff)
	}
}
