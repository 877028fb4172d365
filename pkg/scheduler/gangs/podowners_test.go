// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

func TestOwners(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	key := Key{Namespace: "ml", Name: "g"}
	pod := func(uid string) *wrappers.PodWrapper { return wrappers.MakePod(uid, "ml").UID(uid).Gang("g") }
	r := New()
	if got := r.Owners(key); got != nil {
		t.Errorf("owners of an unknown gang: %v", got)
	}
	r.SetGroup(wrappers.MakePodGroup("g", "ml").UID("group").SubGroup("x", 3).SubGroup("y", 1).Obj(), now)
	for _, p := range []*wrappers.PodWrapper{
		pod("a").SubGroup("x").Controller("StatefulSet", "web", "1").CreationTimestamp(now),
		pod("b").SubGroup("x").Controller("StatefulSet", "web", "1").CreationTimestamp(now.Add(-time.Minute)).Node("n1"),
		pod("c").SubGroup("y").Controller("Job", "both", "2"), pod("d").SubGroup("x").Controller("Job", "both", "2").Terminating(),
		pod("e").SubGroup("z").Controller("Job", "stray", "3"), pod("f").SubGroup("y"),
	} {
		r.SetPod(p.Obj(), now)
	}
	want := []podgroup.Owner{
		{APIVersion: "batch/v1", Kind: "Job", Name: "both", UID: "2", Leaf: "y", Pods: 1},
		{APIVersion: "batch/v1", Kind: "Job", Name: "stray", UID: "3", Mixed: true, Pods: 1},
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "1", Leaf: "x", Pods: 2, Since: now.Add(-time.Minute)},
	}
	if diff := cmp.Diff(want, r.Owners(key)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	for i := range 2 * maxOwners {
		uid := types.UID(fmt.Sprintf("many-%02d", i))
		r.SetPod(pod(fmt.Sprintf("p%02d", i)).SubGroup("x").Controller("ReplicaSet", string(uid), string(uid)).Obj(), now)
	}
	if got := len(r.Owners(key)); got != maxOwners {
		t.Errorf("%d owners, want at most %d", got, maxOwners)
	}
}
