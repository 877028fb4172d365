// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"strings"
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

// TestLostPodsOfCoscheduling: pods that name a PodGroup of another scheduler are told which one is missing.
func TestLostPodsOfCoscheduling(t *testing.T) {
	t.Parallel()
	pod := wrappers.MakePod("train-0", "ml").Label("scheduling.x-k8s.io/pod-group", "a").Obj()
	f := Facts{Namespace: "ml", Name: membership.Group(pod), Waiting: []WaitingPod{{Pod: pod}}}
	const want = `label scheduling.x-k8s.io/pod-group names PodGroup "a", and namespace ml has none of that name: create it (apiVersion scheduling.x-k8s.io/v1alpha1), ` +
		`or correct the label; if it is there, it has an event that says why it makes no gang, or --grouped-kinds of muster-controller lacks its kind; the pod waits`
	if lost := FindLostPods(f); len(lost) != 1 || lost[0].Note != want {
		t.Errorf("%+v\nwant %s", lost, want)
	}
}

// TestContradictionIsToldFirst: a pod that names two PodGroups is told so, whether or not the first one exists.
func TestContradictionIsToldFirst(t *testing.T) {
	t.Parallel()
	pod := wrappers.MakePod("train-0", "ml").Gang("mine").Label("scheduling.x-k8s.io/pod-group", "theirs").Obj()
	why := DescribeRefusal(pod)
	for _, group := range []*v2alpha2.PodGroup{nil, wrappers.MakePodGroup("mine", "ml").MinMember(1).Obj()} {
		f := Facts{Namespace: "ml", Name: "mine", Group: group, Waiting: []WaitingPod{{Pod: pod, Misplaced: why}}}
		const want = `does not count in PodGroup "mine": the pod names PodGroup "mine" by annotation pod-group-name and "theirs" by label scheduling.x-k8s.io/pod-group: ` +
			`remove all but one; the pod waits`
		if lost := FindLostPods(f); len(lost) != 1 || lost[0].Note != want || lost[0].Reason != v2alpha2.EventMarksContradict {
			t.Errorf("%+v\nwant %s", lost, want)
		}
		if note := NotesOf(f).NoteOf(f.Waiting[0]); note.Kind != v2alpha2.EventMarksContradict || !strings.Contains(note.Text, why) {
			t.Errorf("%+v", note)
		}
	}
}

// TestPlaceOfName: where pods name a PodGroup depends on what it was made from.
func TestPlaceOfName(t *testing.T) {
	t.Parallel()
	for apiVersion, want := range map[string]string{
		"scheduling.x-k8s.io/v1alpha1": "label scheduling.x-k8s.io/pod-group", "example.com/v1": "annotation pod-group-name",
	} {
		group := wrappers.MakePodGroup("coscheduling-a", "ml").Controller("PodGroup", "a", "1").Obj()
		group.OwnerReferences[0].APIVersion = apiVersion
		if got := placeOfName(group); got != want {
			t.Errorf("%s: %s, want %s", apiVersion, got, want)
		}
	}
	if got := placeOfName(wrappers.MakePodGroup("a", "ml").Controller("Job", "a", "1").Obj()); got != "annotation pod-group-name" {
		t.Errorf("of a Job: %s", got)
	}
}
