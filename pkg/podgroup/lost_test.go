// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/test/wrappers"
)

// TestLostPodsOfAWorkload: pods whose PodGroup is to be made for their workload are told who makes it.
func TestLostPodsOfAWorkload(t *testing.T) {
	t.Parallel()
	pod := wrappers.MakePod("train-0", "ml").Controller("Job", "train", "1").Label(v2alpha2.MinMemberKey, "all").Obj()
	f := Facts{Namespace: "ml", Name: membership.Group(pod), Waiting: []WaitingPod{{Pod: pod}, {Pod: pod}}}
	const want = `PodGroup "job-train-340ca71c" does not exist: muster-controller makes it for the kinds of its --grouped-kinds, ` +
		`and Job train may be suspended, or have an event that says why not; with label scheduling.run.ai/gang: "false" on its pod template each pod starts alone; 2 pods wait`
	if lost := FindLostPods(f); len(lost) != 1 || lost[0].Note != want {
		t.Errorf("%+v\nwant %s", lost, want)
	}
}
