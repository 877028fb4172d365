// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/test/wrappers"
)

// queued returns a pod with the key of a queue, which has no effect.
func queued(name string) *wrappers.PodWrapper {
	return wrappers.MakePod(name, namespace).UID(name).Label("kai.scheduler/queue", "q")
}

func toldOf(about, pod string) string {
	return fmt.Sprintf("Warning IgnoredKeys %s: muster-scheduler does not obey all keys of pod %s: label kai.scheduler/queue: "+
		"Muster has no queues: limit namespaces with a ResourceQuota, or admit the workload with Kueue", about, pod)
}

func TestOwnersAreToldOfIgnoredKeysOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	set := &appsv1.ReplicaSet{ObjectMeta: owned("web-1", "rs")}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d", Controller: ptr.To(true)}}
	c.adds(set)
	c.withMakers(nil)
	k := c.reporter.ignored
	for _, w := range []*wrappers.PodWrapper{
		queued("alone"), queued("a").Controller("Job", "job", "j"), queued("b").Controller("Job", "job", "j"),
		queued("c").Controller("ReplicaSet", "web-1", "rs"), queued("d").Controller("ReplicaSet", "gone-1", "gone"),
		queued("bound").Node("n"), queued("leaving").Terminating(), wrappers.MakePod("plain", namespace).UID("plain"),
	} {
		c.reporter.AddPod(w.Obj())
	}
	k.tellPending(context.Background())
	c.reporter.AddPod(queued("e").Controller("Job", "job", "j").Obj())
	k.tellPending(context.Background())
	want := []string{toldOf("Pod/alone", "alone"), toldOf("Job/job", "a"), toldOf("Deployment/web", "c"), toldOf("ReplicaSet/gone-1", "d")}
	if diff := cmp.Diff(want, c.events.list()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A process that begins to lead tells about the pods that still wait, and not about those that the one before it told
// about.
func TestIgnoredKeysOfPodsSeenBeforeLeading(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.withMakers(nil, queued("waits"), queued("bound").Node("n"), queued("again").UID("new"))
	for _, name := range []string{"waits", "bound", "gone", "again"} {
		c.reporter.AddPod(queued(name).Obj())
	}
	c.reporter.ignored.dropSettled()
	c.reporter.ignored.tellPending(context.Background())
	if diff := cmp.Diff([]string{toldOf("Pod/waits", "waits")}, c.events.list()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	c.reporter.AddPod(queued("gone").Obj()) // not remembered
	c.reporter.ignored.tellPending(context.Background())
	if got := len(c.events.list()); got != 2 {
		t.Errorf("%d events, want 2: %q", got, c.events.list())
	}
}

func TestIgnoredKeysAreBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i := range 2 * maxPending {
		c.reporter.AddPod(queued("p" + strconv.Itoa(i)).Obj())
	}
	k := c.reporter.ignored
	if len(k.pending) != maxPending || k.remembered.Len() != maxPending {
		t.Errorf("%d pending and %d remembered, want %d", len(k.pending), k.remembered.Len(), maxPending)
	}
	for i := range maxRemembered + 1 {
		k.pending = nil
		c.reporter.AddPod(queued("q" + strconv.Itoa(i)).Obj())
	}
	if k.remembered.Len() > maxRemembered {
		t.Errorf("%d remembered, want at most %d", k.remembered.Len(), maxRemembered)
	}
}
