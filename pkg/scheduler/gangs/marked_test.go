// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/test/wrappers"
)

// TestMarkedPodsWaitForTheirPodGroup: pods that are a gang by their owner are held from the first moment, although no PodGroup
// exists, and start when it does.
func TestMarkedPodsWaitForTheirPodGroup(t *testing.T) {
	s := begin(t)
	var pods []*wrappers.PodWrapper
	for _, name := range []string{"a", "b"} {
		pods = append(pods, wrappers.MakePod(name, testNamespace).UID(name).Controller("Job", "train", "1").Label(v2alpha2.MinMemberKey, "all").GPUs(1))
	}
	if ok, why := s.r.MayEnterQueue(pods[0].Obj()); ok || why == "" {
		t.Errorf("a pod that was not observed yet may enter the queue: %q", why)
	}
	s.pods(pods...)
	for _, p := range pods {
		if ok, _ := s.r.MayEnterQueue(p.Obj()); ok {
			t.Error("a pod without its PodGroup may enter the queue")
		}
	}
	s.group(wrappers.MakePodGroup(membership.Group(pods[0].Obj()), testNamespace).UID("group").Generation(1).MinMember(2))
	if ok, why := s.r.MayEnterQueue(pods[0].Obj()); !ok {
		t.Errorf("the leader is kept from the queue: %s", why)
	}
	if ok, _ := s.r.MayEnterQueue(pods[1].Obj()); ok {
		t.Error("a pod that is not the leader may enter the queue")
	}
}
