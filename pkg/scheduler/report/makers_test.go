// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

// withMakers replaces the reporter by one that has the pods and failures.
func (c *cluster) withMakers(failed []*corev1.Pod, pods ...*wrappers.PodWrapper) {
	c.t.Helper()
	c.reporter = New(Options{
		Registry: c.registry, PodGroups: c.groups, Client: c.pods, Recorder: c.events, Clock: c.clock,
		Busy: func() bool { return false }, Pods: podLister(c.t, pods...), Failed: func(gangs.Key) []*corev1.Pod { return failed },
		StatusInterval: 2 * time.Second, WaitingForGangAfter: 10 * time.Second, NeedsCapacityAfter: 2 * time.Second,
	})
}

func (c *cluster) adds(objects ...runtime.Object) {
	c.t.Helper()
	for _, o := range objects {
		if err := c.pods.Tracker().Add(o); err != nil {
			c.t.Fatal(err)
		}
	}
}

// lastsFor checks a gang as often as requested, or every second.
func (c *cluster) lastsFor(name string, d time.Duration) {
	c.t.Helper()
	for end := c.clock.Now().Add(d); c.clock.Now().Before(end); {
		c.mustLook(name)
		c.passes(time.Second)
	}
	c.mustLook(name)
}

func (c *cluster) summary(name string) string { return c.groups.Get(keyOf(name)).Status.Summary }

// reads returns how often owners were read.
func (c *cluster) reads() int {
	n := 0
	for _, a := range c.pods.Actions() {
		if a.GetVerb() == "get" {
			n++
		}
	}
	return n
}

// readsOf returns how often objects with the name were read.
func (c *cluster) readsOf(name string) int {
	n := 0
	for _, a := range c.pods.Actions() {
		if get, ok := a.(clienttesting.GetAction); ok && get.GetName() == name {
			n++
		}
	}
	return n
}

func owned(name, uid string) metav1.ObjectMeta {
	return wrappers.MakePod(name, namespace).UID(uid).Obj().ObjectMeta
}

// failedPod returns a pod of gang train that was evicted this number of seconds after its creation.
func failedPod(name string, second int) *wrappers.PodWrapper {
	return member("train", name).Phase(corev1.PodFailed).CreationTimestamp(start.Add(time.Duration(second) * time.Second)).
		Status(func(s *corev1.PodStatus) { s.Reason = "Evicted" })
}

// ended returns the Job with a condition.
func ended(job *batchv1.Job, condition batchv1.JobConditionType, reason string) *batchv1.Job {
	job.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, Reason: reason}}
	return job
}

// naming returns the Job with pods that name the PodGroup.
func naming(group string, job *batchv1.Job) *batchv1.Job {
	job.Spec.Template = templateNaming(group)
	return job
}

func templateNaming(group string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v2alpha2.PodGroupAnnotation: group}}}
}

// controlled returns the metadata with a controller.
func controlled(meta metav1.ObjectMeta, kind, name string) metav1.ObjectMeta {
	meta.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}}
	return meta
}

func TestOwnersOfMissingPods(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		group   *wrappers.PodGroupWrapper // nil: train, which needs 4 pods
		objects []runtime.Object
		pods    []*wrappers.PodWrapper
		failed  []*corev1.Pod
		want    string
	}{
		"a StatefulSet of the usual policy": {
			objects: []runtime.Object{&appsv1.StatefulSet{ObjectMeta: owned("web", "1"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](4)}}},
			pods:    []*wrappers.PodWrapper{member("train", "web-0").Controller("StatefulSet", "web", "1")},
			want:    "needs 4 pods, 1 exist; StatefulSet web makes a pod only when the one before it is ready: recreate it with podManagementPolicy Parallel",
		},
		"a StatefulSet of fewer replicas": {
			objects: []runtime.Object{&appsv1.StatefulSet{ObjectMeta: owned("web", "1"),
				Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1), PodManagementPolicy: appsv1.ParallelPodManagement}}},
			pods: []*wrappers.PodWrapper{member("train", "web-0").Controller("StatefulSet", "web", "1")},
			want: "needs 4 pods, 1 exist; StatefulSet web has the 1 pod it is to have: set its replicas to 4, or lower the minimum",
		},
		"a Job that runs fewer at a time": {
			objects: []runtime.Object{&batchv1.Job{ObjectMeta: owned("job", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](2), Completions: ptr.To[int32](4)}}},
			pods:    []*wrappers.PodWrapper{member("train", "a").Controller("Job", "job", "1"), member("train", "b").Controller("Job", "job", "1")},
			want:    "needs 4 pods, 2 exist; Job job has the 2 pods it is to have: set its parallelism (and completions, if it is lower) to 4, or lower the minimum",
		},
		"a Job that lacks pods because of a quota": {
			objects: []runtime.Object{&batchv1.Job{ObjectMeta: owned("job", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4)}}},
			pods:    []*wrappers.PodWrapper{member("train", "a").Controller("Job", "job", "1")},
			want:    "needs 4 pods, 1 exist; Job job is to have 4 pods and has 1: see its events, a quota or an admission webhook may refuse the others, or it pauses after a failure",
		},
		"a ReplicaSet that lacks pods because of a quota, and pods that failed": {
			objects: []runtime.Object{&appsv1.ReplicaSet{ObjectMeta: owned("rs", "1"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](4)}}},
			pods:    []*wrappers.PodWrapper{member("train", "a").Controller("ReplicaSet", "rs", "1")}, failed: []*corev1.Pod{failedPod("b", 60).Obj(), failedPod("c", 61).Obj()},
			want: "needs 4 pods, 1 exist; ReplicaSet rs is to have 4 pods and has 1: see its events, a quota or an admission webhook may refuse the others; pod b failed: Evicted, and no controller replaces it; 1 more failed pod",
		},
		"a Job that replaces its failed pods": {
			objects: []runtime.Object{&batchv1.Job{ObjectMeta: owned("job", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4)}}},
			pods:    []*wrappers.PodWrapper{member("train", "a").Controller("Job", "job", "1")}, failed: []*corev1.Pod{failedPod("b", 60).Controller("Job", "job", "1").Obj()},
			want: "needs 4 pods, 1 exist; Job job replaces its failed pods after a pause, which grows with each failure; pod b failed: Evicted",
		},
		"a Job that has failed, and has no pod left but the failed ones": {
			objects: []runtime.Object{ended(&batchv1.Job{ObjectMeta: owned("job", "1")}, batchv1.JobFailed, "BackoffLimitExceeded")},
			failed:  []*corev1.Pod{failedPod("b", 60).Controller("Job", "job", "1").Obj(), failedPod("c", 59).Controller("Job", "job", "1").Obj()},
			want:    "needs 4 pods, 0 exist; Job job has failed: BackoffLimitExceeded; delete it and create it again; pod c failed: Evicted; 1 more failed pod",
		},
		"a Job of a CronJob that has failed": {
			objects: []runtime.Object{ended(&batchv1.Job{ObjectMeta: controlled(owned("job-1", "1"), "CronJob", "job")}, batchv1.JobFailed, "BackoffLimitExceeded")},
			failed:  []*corev1.Pod{failedPod("b", 60).Controller("Job", "job-1", "1").Obj()},
			want:    "needs 4 pods, 0 exist; Job job-1 of CronJob job has failed: BackoffLimitExceeded; its next run makes new pods; pod b failed: Evicted",
		},
		"a Job that has failed, while those beside it run": {
			objects: []runtime.Object{
				ended(&batchv1.Job{ObjectMeta: controlled(owned("job-1", "1"), "JobSet", "job")}, batchv1.JobFailureTarget, "BackoffLimitExceeded"),
				&batchv1.Job{ObjectMeta: controlled(owned("job-0", "0"), "JobSet", "job")},
			},
			pods:   []*wrappers.PodWrapper{member("train", "a").Controller("Job", "job-0", "0")},
			failed: []*corev1.Pod{failedPod("b", 60).Controller("Job", "job-1", "1").Obj()},
			want:   "needs 4 pods, 1 exist; Job job-1 of JobSet job has failed: BackoffLimitExceeded; see JobSet job; pod b failed: Evicted",
		},
		"a Job without pods has the name of the PodGroup: it is suspended": {
			objects: []runtime.Object{naming("train", &batchv1.Job{ObjectMeta: owned("train", "1"), Spec: batchv1.JobSpec{Suspend: ptr.To(true)}})},
			want:    "needs 4 pods, 0 exist; Job train is suspended: resume it",
		},
		"a Job without pods has the name of the PodGroup: a quota refuses all of them": {
			objects: []runtime.Object{naming("train", &batchv1.Job{ObjectMeta: owned("train", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4)}})},
			want:    "needs 4 pods, 0 exist; Job train is to have 4 pods and has 0: see its events, a quota or an admission webhook may refuse the others, or it pauses after a failure",
		},
		"a Job without pods has the name of the PodGroup: it is complete": {
			objects: []runtime.Object{naming("train", ended(&batchv1.Job{ObjectMeta: owned("train", "1")}, batchv1.JobComplete, "CompletionsReached"))},
			want:    "needs 4 pods, 0 exist; Job train is complete and makes no more pods: delete it and create it again",
		},
		"a Job without pods controls the PodGroup": {
			group:   podGroup("train").MinMember(4).Controller("Job", "other", "1").ControllerVersion("batch/v1"),
			objects: []runtime.Object{naming("train", &batchv1.Job{ObjectMeta: owned("other", "1"), Spec: batchv1.JobSpec{Suspend: ptr.To(true)}})},
			want:    "needs 4 pods, 0 exist; Job other is suspended: resume it",
		},
		"a Job with the name of the PodGroup, whose pods do not name it": {
			objects: []runtime.Object{&batchv1.Job{ObjectMeta: owned("train", "1"), Spec: batchv1.JobSpec{Suspend: ptr.To(true)}}},
			want:    "needs 4 pods, 0 exist; it is idle until pods name it by annotation pod-group-name",
		},
		"the suspended Job for which the PodGroup was made": {
			group:   podGroup("train").MinMember(4).Controller("Job", "bert", "1").ControllerVersion("batch/v1"),
			objects: []runtime.Object{&batchv1.Job{ObjectMeta: owned("bert", "1"), Spec: batchv1.JobSpec{Suspend: ptr.To(true)}}},
			want:    "needs 4 pods, 0 exist; Job bert is suspended: resume it",
		},
		"another object controls the PodGroup": {
			group: podGroup("train").MinMember(4).Controller("PodCliqueSet", "chat", "1"),
			want:  "needs 4 pods, 0 exist; PodCliqueSet chat makes its pods: see its events",
		},
		"a StatefulSet without pods": {
			objects: []runtime.Object{&appsv1.StatefulSet{ObjectMeta: owned("train", "1"), Spec: appsv1.StatefulSetSpec{
				Replicas: ptr.To[int32](0), PodManagementPolicy: appsv1.ParallelPodManagement, Template: templateNaming("train")}}},
			want: "needs 4 pods, 0 exist; StatefulSet train has the 0 pods it is to have: set its replicas to 4, or lower the minimum",
		},
		"an owner that was recreated with the same name": {
			objects: []runtime.Object{&batchv1.Job{ObjectMeta: owned("job", "2"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4)}}},
			pods:    []*wrappers.PodWrapper{member("train", "a").Controller("Job", "job", "1")},
			want:    "needs 4 pods, 1 exist",
		},
		"an owner that is gone": {
			pods: []*wrappers.PodWrapper{member("train", "a").Controller("Job", "job", "1")},
			want: "needs 4 pods, 1 exist",
		},
		"a ReplicaSet of a Deployment": {
			objects: []runtime.Object{&appsv1.ReplicaSet{ObjectMeta: controlled(owned("web-7d9", "1"), "Deployment", "web"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1)}}},
			pods:    []*wrappers.PodWrapper{member("train", "a").Controller("ReplicaSet", "web-7d9", "1")},
			want:    "needs 4 pods, 1 exist; ReplicaSet web-7d9 has the 1 pod it is to have: set replicas of Deployment web to 4, or lower the minimum",
		},
		"a Job of a JobSet": {
			objects: []runtime.Object{&batchv1.Job{ObjectMeta: controlled(owned("job-0", "1"), "JobSet", "job"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](1)}}},
			pods:    []*wrappers.PodWrapper{member("train", "a").Controller("Job", "job-0", "1")},
			want:    "needs 4 pods, 1 exist; Job job-0 has the 1 pod it is to have: change this in JobSet job, or lower the minimum",
		},
		"an ordered StatefulSet of a LeaderWorkerSet": {
			objects: []runtime.Object{&appsv1.StatefulSet{ObjectMeta: controlled(owned("lws-0", "1"), "LeaderWorkerSet", "lws"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](4)}}},
			pods:    []*wrappers.PodWrapper{member("train", "a").Controller("StatefulSet", "lws-0", "1")},
			want:    "needs 4 pods, 1 exist; StatefulSet lws-0 of LeaderWorkerSet lws makes a pod only when the one before it is ready: it needs podManagementPolicy Parallel",
		},
		"an owner of a known kind of another API group": {
			objects: []runtime.Object{&batchv1.Job{ObjectMeta: owned("job", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](1)}}},
			pods:    []*wrappers.PodWrapper{member("train", "a").Controller("Job", "job", "1").ControllerVersion("batch.volcano.sh/v1alpha1")},
			want:    "needs 4 pods, 1 exist; Job job makes its pods: see its events",
		},
		"an owner of another kind": {
			pods: []*wrappers.PodWrapper{member("train", "a").Controller("LeaderWorkerSet", "lws", "1")},
			want: "needs 4 pods, 1 exist; LeaderWorkerSet lws makes its pods: see its events",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.withMakers(tc.failed)
			c.adds(tc.objects...)
			if tc.group == nil {
				tc.group = podGroup("train").MinMember(4)
			}
			c.group(tc.group)
			for _, w := range tc.pods {
				c.pod(w)
			}
			c.lastsFor("train", makersAfter-time.Second)
			if s := c.summary("train"); strings.Contains(s, "exist; ") && !strings.HasSuffix(s, "exist; pods name it by annotation pod-group-name") || c.reads() > 0 {
				t.Errorf("before pods have been missing for %s: %q, %d reads", makersAfter, s, c.reads())
			}
			c.lastsFor("train", 5*time.Second)
			if diff := cmp.Diff(tc.want, c.summary("train")); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			before := c.reads()
			c.lastsFor("train", 30*time.Second)
			if n := c.reads(); n > before || n > 2 {
				t.Errorf("%d reads within a minute, %d of them repeated", n, n-before)
			}
		})
	}
}

// Pods that are missing for minutes cause one warning, and another one if they existed in the meantime.
func TestMissingPodsBecomeAWarning(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.withMakers(nil)
	c.group(podGroup("train").MinMember(2))
	c.pod(member("train", "a"))
	warnings := func() (out []string) {
		for _, e := range c.events.list() {
			if strings.HasPrefix(e, "Warning ") {
				out = append(out, e)
			}
		}
		return out
	}
	c.lastsFor("train", warnAfter-time.Second)
	if got := warnings(); len(got) > 0 {
		t.Errorf("too early: %v", got)
	}
	c.lastsFor("train", 2*warnAfter)
	want := []string{"Warning GangIncomplete PodGroup/train: WaitingForPods for more than 5 minutes: needs 2 pods, 1 exist"}
	if diff := cmp.Diff(want, warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	c.pod(member("train", "b"))
	c.lastsFor("train", 5*time.Second)
	c.registry.RemovePod("b", c.clock.Now())
	c.lastsFor("train", warnAfter+time.Second)
	if diff := cmp.Diff(append(want, want...), warnings()); diff != "" {
		t.Errorf("warnings after the pod came and went (-want +got):\n%s", diff)
	}
}

// A PodGroup without pods, which pods of its namespace name in a place without effect.
func TestPodsThatNameThePodGroupOtherwise(t *testing.T) {
	t.Parallel()
	plain := func(name string) *wrappers.PodWrapper { return wrappers.MakePod(name, namespace).UID(name) }
	job := &batchv1.Job{ObjectMeta: owned("job", "1")}
	job.Annotations = map[string]string{v2alpha2.PodGroupAnnotation: "train"}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		pods    []*wrappers.PodWrapper
		want    string
		event   string
	}{
		"by a label": {
			pods:  []*wrappers.PodWrapper{plain("b").Label(v2alpha2.PodGroupAnnotation, "train"), plain("a").Label(v2alpha2.PodGroupAnnotation, "train"), plain("c").Label(v2alpha2.PodGroupAnnotation, "other")},
			want:  "needs 2 pods, 0 exist; 2 pods (a, b) name it by label pod-group-name: make it annotation pod-group-name",
			event: "Warning PodGroupNotNamed Pod/a: the pod is in no gang, and PodGroup train has no pods: 2 pods (a, b) name it by label pod-group-name: make it annotation pod-group-name",
		},
		"by the key of another product": {
			pods:  []*wrappers.PodWrapper{plain("a").Annotation("gang.scheduling.koordinator.sh/name", "train")},
			want:  "needs 2 pods, 0 exist; pod a names it by annotation gang.scheduling.koordinator.sh/name: make it annotation pod-group-name",
			event: "Warning PodGroupNotNamed Pod/a: the pod is in no gang, and PodGroup train has no pods: pod a names it by annotation gang.scheduling.koordinator.sh/name: make it annotation pod-group-name",
		},
		"by their Job's own annotation": {
			objects: []runtime.Object{job},
			pods:    []*wrappers.PodWrapper{plain("a").Controller("Job", "job", "1"), plain("b").Controller("Job", "job", "1")},
			want:    "needs 2 pods, 0 exist; Job job names it by annotation pod-group-name of its own: recreate it with that in spec.template.metadata.annotations",
			event:   "Warning PodGroupNotNamed Pod/a: the pod is in no gang, and PodGroup train has no pods: Job job names it by annotation pod-group-name of its own: recreate it with that in spec.template.metadata.annotations",
		},
		"not: a member of another gang, and one that is being deleted": {
			pods: []*wrappers.PodWrapper{
				member("other", "a").Label(v2alpha2.PodGroupAnnotation, "train"), plain("b").Label(v2alpha2.PodGroupAnnotation, "train").Terminating()},
			want: "needs 2 pods, 0 exist; it is idle until pods name it by annotation pod-group-name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.withMakers(nil, tc.pods...)
			c.adds(tc.objects...)
			c.group(podGroup("train").MinMember(2))
			c.lastsFor("train", 2*makersInterval)
			if diff := cmp.Diff(tc.want, c.summary("train")); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			var got []string
			for _, e := range c.events.list() {
				if strings.Contains(e, v2alpha2.EventPodGroupNotNamed) {
					got = append(got, e)
				}
			}
			var want []string
			if tc.event != "" {
				want = []string{tc.event}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// While nothing changes, the intervals between reads of an owner and of the Jobs of a namespace grow, whether the reads
// succeed or fail. After a change of the owner's pods it is read within a minute.
func TestOwnersAreReadLessOften(t *testing.T) {
	t.Parallel()
	job := &batchv1.Job{ObjectMeta: owned("job", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4)}}
	for name, tc := range map[string]struct {
		member    bool
		forbidden bool
	}{
		"an owner":                     {member: true},
		"an owner that cannot be read": {member: true, forbidden: true},
		"a Job of other pods":          {},
		"a Job that cannot be read":    {forbidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.withMakers(nil, wrappers.MakePod("other", namespace).UID("other").Controller("Job", "job", "1"))
			c.adds(job.DeepCopy())
			if tc.forbidden {
				c.pods.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(batchv1.Resource("jobs"), "job", errors.New("no right"))
				})
			}
			c.group(podGroup("train").MinMember(4))
			if tc.member {
				c.pod(member("train", "a").Controller("Job", "job", "1"))
			}
			for range 300 {
				c.mustLook("train")
				c.passes(lookInterval)
			}
			if n := c.readsOf("job"); n < 2 || n > 12 {
				t.Errorf("%d reads in five hours", n)
			}
			if n := c.readsOf("train"); n > 50 { // a Job and a StatefulSet with the name of the PodGroup, every quarter of an hour
				t.Errorf("%d reads by name in five hours", n)
			}
			if !tc.member {
				return
			}
			before := c.reads()
			c.pod(member("train", "b").Controller("Job", "job", "1"))
			c.mustLook("train")
			if n := c.reads(); n != before+1 {
				t.Errorf("%d reads after the owner has created a pod, want one", n-before)
			}
		})
	}
}

// An error of the API server does not remove the advice that an earlier read allows.
func TestAdviceOutlastsAFailedRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.withMakers(nil)
	c.adds(&batchv1.Job{ObjectMeta: owned("job", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4)}})
	c.group(podGroup("train").MinMember(4))
	c.pod(member("train", "a").Controller("Job", "job", "1"))
	c.lastsFor("train", makersAfter+5*time.Second)
	want := c.summary("train")
	if !strings.Contains(want, "Job job is to have 4 pods") {
		t.Fatalf("summary %q", want)
	}
	c.pods.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("etcd is slow"))
	})
	before := c.reads()
	c.lastsFor("train", makersInterval+5*time.Second)
	if c.reads() == before {
		t.Error("the owner was not read again")
	}
	if diff := cmp.Diff(want, c.summary("train")); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

// A gang that has completed does not lack the pods that have been cleaned up.
func TestCompletedGangLacksNoPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.withMakers(nil, wrappers.MakePod("other", namespace).UID("other").Label(v2alpha2.PodGroupAnnotation, "train"),
		wrappers.MakePod("more", namespace).UID("more").Controller("Job", "job", "1"))
	c.group(podGroup("train").MinMember(1))
	c.pod(member("train", "a").Node("n").Phase(corev1.PodSucceeded))
	c.lastsFor("train", 5*time.Second)
	if phase := c.groups.Get(keyOf("train")).Status.Phase; phase != v2alpha2.PodGroupCompleted {
		t.Fatalf("phase %s", phase)
	}
	c.registry.RemoveSucceededPod("a", c.clock.Now())
	before := len(c.events.list())
	c.lastsFor("train", 2*makersAfter)
	if n := c.reads(); n > 0 {
		t.Errorf("%d reads", n)
	}
	if more := c.events.list()[before:]; len(more) > 0 {
		t.Errorf("events: %v", more)
	}
}

// A controller may create pods that name a PodGroup by a label without end; the events about them end.
func TestEventsAboutPodsThatNameThePodGroupOtherwiseEnd(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.withMakers(nil)
	c.group(podGroup("train").MinMember(1))
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	c.reporter.statuses.makers.Pods = corelisters.NewPodLister(indexer)
	for i := range 60 {
		name := "cron-" + strconv.Itoa(i)
		if err := indexer.Replace([]any{wrappers.MakePod(name, namespace).UID(name).Label(v2alpha2.PodGroupAnnotation, "train").Obj()}, ""); err != nil {
			t.Fatal(err)
		}
		c.mustLook("train")
		c.passes(lookInterval)
	}
	n := 0
	for _, e := range c.events.list() {
		if strings.Contains(e, v2alpha2.EventPodGroupNotNamed) {
			n++
		}
	}
	if n == 0 || n > maxAnnounced {
		t.Errorf("%d events in an hour, want at most %d", n, maxAnnounced)
	}
}

// A restarted scheduler writes nothing for a gang that still lacks the same pods.
func TestRestartKeepsTheAdviceAboutMissingPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.withMakers(nil)
	c.adds(&batchv1.Job{ObjectMeta: owned("job", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4)}})
	c.group(podGroup("train").MinMember(4))
	c.pod(member("train", "a").Controller("Job", "job", "1"))
	c.lastsFor("train", makersAfter+5*time.Second)
	before := c.groups.Get(keyOf("train"))
	if !strings.Contains(before.Status.Summary, "Job job is to have 4 pods") {
		t.Fatalf("summary %q", before.Status.Summary)
	}
	c.withMakers(nil)
	c.lastsFor("train", makersAfter+5*time.Second)
	if after := c.groups.Get(keyOf("train")); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the status was written: %q", after.Status.Summary)
	}
}
