// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// twoRacks returns four nodes of four GPUs, the last one cordoned.
func twoRacks() scene {
	s := scene{}
	for i := range 4 {
		node := wrappers.MakeNode(fmt.Sprintf("node-%04d", i)).GPUs(4).Label(controlplane.RackLabel, fmt.Sprintf("rack-%03d", i/2))
		if i == 3 {
			node.Unschedulable()
		}
		s.nodes = append(s.nodes, node.Obj())
	}
	return s
}

// clique returns a PodClique of chat with this role.
func clique(name, template, role string, replicas int32, groupReplica string) *v1alpha1.PodClique {
	labels := map[string]string{v1alpha1.LabelPartOf: chat, v1alpha1.LabelTemplateName: template}
	if groupReplica != "" {
		labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex] = groupReplica
	}
	return &v1alpha1.PodClique{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       v1alpha1.PodCliqueSpec{RoleName: role, Replicas: replicas},
	}
}

// service returns chat with a frontend and two decode replicas, of which the first is started.
func service() scene {
	s := twoRacks()
	s.sets = []*v1alpha1.PodCliqueSet{{
		ObjectMeta: metav1.ObjectMeta{Name: chat, UID: "u"},
		Status: v1alpha1.PodCliqueSetStatus{Phase: v1alpha1.PodCliqueSetPhaseRunning, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Message: "1 of 1 replica is available"}}},
	}}
	s.scalingGroups = []*v1alpha1.PodCliqueScalingGroup{{
		ObjectMeta: metav1.ObjectMeta{Name: "chat-0-decode", Labels: map[string]string{v1alpha1.LabelPartOf: chat, v1alpha1.LabelTemplateName: "decode"}},
		Spec:       v1alpha1.PodCliqueScalingGroupSpec{Replicas: 2},
	}}
	s.cliques = []*v1alpha1.PodClique{clique("chat-0-frontend", "frontend", "web", 3, ""),
		clique("chat-0-decode-0-leader", "leader", "decode-leader", 1, "0"), clique("chat-0-decode-0-worker", "worker", "decode-worker", 2, "0"),
		clique("chat-0-decode-1-leader", "leader", "decode-leader", 1, "1"), clique("chat-0-decode-1-worker", "worker", "decode-worker", 2, "1")}
	g := wrappers.MakePodGroup(chatGang, "default").Label(v1alpha1.LabelPodCliqueSetReplicaIndex, "0").Label(v1alpha1.LabelPartOf, chat).
		SubGroup("chat-0-frontend", 1).Inner("", "chat-0-decode", 1).
		Inner("chat-0-decode", "chat-0-decode-0", 0).
		SubGroupOf("chat-0-decode-0", "chat-0-decode-0-leader", 1).SubGroupOf("chat-0-decode-0", "chat-0-decode-0-worker", 2).
		Inner("chat-0-decode", "chat-0-decode-1", 0).
		SubGroupOf("chat-0-decode-1", "chat-0-decode-1-leader", 1).SubGroupOf("chat-0-decode-1", "chat-0-decode-1-worker", 2).Obj()
	g.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.sets[0], v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindPodCliqueSet))}
	g.Status = v2alpha2.PodGroupStatus{
		Phase: v2alpha2.PodGroupAdmitted, Scheduled: "4/4",
		Summary: "more wait, InsufficientGPUs: chat-0-decode-1 needs 3 nvidia.com/gpu for 3 pods, 2 are free; 1 pod above the minimum is bound",
		SubGroups: []v2alpha2.SubGroupStatus{
			leafStatus("chat-0-frontend", 1, 3, 2, true), leafStatus("chat-0-decode", 1, 2, 1, true),
			leafStatus("chat-0-decode-0", 2, 2, 2, true), leafStatus("chat-0-decode-0-leader", 1, 1, 1, true), leafStatus("chat-0-decode-0-worker", 2, 2, 2, true),
			leafStatus("chat-0-decode-1", 2, 2, 0, false), leafStatus("chat-0-decode-1-leader", 1, 1, 0, false), leafStatus("chat-0-decode-1-worker", 2, 2, 0, false)},
	}
	s.groups = append(s.groups, g)
	s.add(chatGang, "chat-0-decode-0-leader", "node-0000", 1)
	s.add(chatGang, "chat-0-decode-0-worker", "node-0000", 2)
	s.add(chatGang, "chat-0-decode-1-leader", "", 1)
	s.add(chatGang, "chat-0-decode-1-worker", "", 2)
	for _, pod := range s.pods {
		pod.Labels[v1alpha1.LabelPartOf] = chat
	}
	return s
}

// add puts n pods of a gang on a node, "" for none.
func (s *scene) add(group, leaf, node string, n int) {
	for range n {
		name := fmt.Sprintf("%s-%s-%d", group, leaf, len(s.pods))
		s.pods = append(s.pods, wrappers.MakePod(name, "default").Gang(group).SubGroup(leaf).GPUs(1).Node(node).Obj())
	}
}

func leafStatus(name string, required, created, bound int32, admitted bool) v2alpha2.SubGroupStatus {
	return v2alpha2.SubGroupStatus{
		Name: name, Required: required, Created: created, Bound: bound, Satisfied: bound >= required, Admitted: admitted}
}

func TestPicture(t *testing.T) {
	for name, tc := range map[string]struct {
		scene func() scene
		want  string
	}{
		"three of four groups run and the fourth waits": {
			scene: func() scene {
				s := twoRacks()
				g := wrappers.MakePodGroup(inference, "default").MinSubGroup(3).
					SubGroup("prefill-0", 3).SubGroup("prefill-1", 3).SubGroup("prefill-2", 3).SubGroup("prefill-3", 3).Obj()
				g.Status = v2alpha2.PodGroupStatus{
					Phase: v2alpha2.PodGroupAdmitted, Scheduled: "9/9",
					Summary: "more wait, InsufficientGPUs: prefill-2 needs 3 nvidia.com/gpu for 3 pods, 2 are free",
					SubGroups: []v2alpha2.SubGroupStatus{
						leafStatus("prefill-0", 3, 3, 3, true), leafStatus("prefill-1", 3, 3, 3, true),
						leafStatus("prefill-2", 3, 3, 0, false), leafStatus("prefill-3", 3, 3, 3, true)},
				}
				s.groups = append(s.groups, g)
				s.add(inference, "prefill-0", "node-0000", 3)
				s.add(inference, "prefill-1", "node-0001", 3)
				s.add(inference, "prefill-3", "node-0002", 3)
				s.add(inference, "prefill-2", "", 3)
				return s
			},
			want: `
    B inference-service  Admitted  9/9 pods of the minimum
      more wait, InsufficientGPUs: prefill-2 needs 3 nvidia.com/gpu for 3 pods, 2 are free
    rack-000   node-0000 BBB.   node-0001 BBB.
    rack-001   node-0002 BBB.   node-0003 xxxx
    GPUs: B inference-service 9, . free 3, x takes no pods
`},
		"two levels, with pods missing": {
			scene: func() scene {
				s := twoRacks()
				g := wrappers.MakePodGroup(training, "default").
					Inner("", "decode", 2).SubGroupOf("decode", "leaders", 1).SubGroupOf("decode", "workers", 4).
					Inner("", "prefill", 0).SubGroupOf("prefill", "prefill-workers", 4).Obj()
				g.Status = v2alpha2.PodGroupStatus{
					Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/9", Reason: v2alpha2.ReasonWaitingForPods,
					Summary: "needs 9 pods, 6 exist",
					SubGroups: []v2alpha2.SubGroupStatus{
						leafStatus("decode", 2, 2, 0, false), leafStatus("leaders", 1, 1, 0, false), leafStatus("workers", 4, 4, 0, false),
						leafStatus("prefill", 1, 0, 0, false), leafStatus("prefill-workers", 4, 1, 0, false)},
				}
				s.groups = append(s.groups, g)
				s.add(training, "workers", "", 4)
				return s
			},
			want: `
    A training-job  Waiting  0/9 pods of the minimum
      WaitingForPods: needs 9 pods, 6 exist
    rack-000   node-0000 ....   node-0001 ....
    rack-001   node-0002 ....   node-0003 xxxx
    GPUs: . free 12, x takes no pods
`},
		"a replica of a PodCliqueSet": {
			scene: service,
			want: `
    D chat-0  Admitted  4/4 pods of the minimum
      more wait, InsufficientGPUs: chat-0-decode-1 needs 3 nvidia.com/gpu for 3 pods, 2 are
        free; 1 pod above the minimum is bound
    PodCliqueSet chat: Running, Available=True: 1 of 1 replica is available
    rack-000   node-0000 DDD.   node-0001 ....
    rack-001   node-0002 ....   node-0003 xxxx
    GPUs: D chat-0 3, . free 9, x takes no pods
`},
		"a PodGroup that is there before the PodCliques": {
			scene: func() scene {
				s := service()
				s.cliques, s.pods = nil, nil
				s.sets[0].Status = v1alpha1.PodCliqueSetStatus{}
				g := s.groups[0]
				g.Spec.SubGroups = g.Spec.SubGroups[:1]
				g.Status = v2alpha2.PodGroupStatus{Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/1", Reason: v2alpha2.ReasonWaitingForPods,
					Summary: "needs 1 pod, 0 exist", SubGroups: []v2alpha2.SubGroupStatus{leafStatus("chat-0-frontend", 1, 0, 0, false)}}
				return s
			},
			want: `
    D chat-0  Waiting  0/1 pods of the minimum
      WaitingForPods: needs 1 pod, 0 exist
    rack-000   node-0000 ....   node-0001 ....
    rack-001   node-0002 ....   node-0003 xxxx
    GPUs: . free 12, x takes no pods
`},
		"a gang without sub-groups, and a stranger": {
			scene: func() scene {
				s := twoRacks()
				g := wrappers.MakePodGroup(tuning, "default").MinMember(2).Obj()
				g.Status = v2alpha2.PodGroupStatus{Phase: v2alpha2.PodGroupAdmitted, Scheduled: "2/2", Summary: "the minimum is bound"}
				s.groups = append(s.groups, g)
				s.add(tuning, "", "node-0001", 2)
				s.pods = append(s.pods, wrappers.MakePod("stranger", "default").GPUs(1).Node("node-0001").Obj())
				return s
			},
			want: `
    C fine-tuning  Admitted  2/2 pods of the minimum
    rack-000   node-0000 ....   node-0001 ?CC.
    rack-001   node-0002 ....   node-0003 xxxx
    GPUs: C fine-tuning 2, . free 9, x takes no pods
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tc.scene()
			got := picture(s, painter{})
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), got); diff != "" {
				t.Errorf("picture (-want +got):\n%s", diff)
			}
			for line := range strings.Lines(got) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("a line of %d characters: %s", n, line)
				}
			}
			coloured := picture(s, painter{colour: true})
			if plain := withoutColour(coloured); plain != got {
				t.Errorf("colour changes more than colour (-plain +coloured):\n%s", cmp.Diff(got, plain))
			}
			if coloured == got {
				t.Error("no colour where it was asked for")
			}
		})
	}
}

func withoutColour(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(after, "m")
	}
}

func TestMade(t *testing.T) {
	t.Parallel()
	s := service()
	if !made("1 PodGroup, 1 PodCliqueScalingGroup, 5 PodCliques and 6 pods").holds(s) || made("1 PodGroup, 1 PodCliqueScalingGroup and 5 PodCliques").holds(s) {
		t.Error("objects are not counted")
	}
	if !made("nothing").holds(scene{pods: []*corev1.Pod{{}}}) || made("nothing").holds(scene{groups: s.groups}) {
		t.Error("nothing is not nothing")
	}
}

func TestPartialGangs(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	withPods := func(counts map[string]int) scene {
		s := scene{groups: []*v2alpha2.PodGroup{wrappers.MakePodGroup(tuning, "default").MinMember(2).Obj()}}
		for node, n := range counts {
			s.add(tuning, "", node, n)
		}
		return s
	}
	twoGroups := func(nodes map[string]int) scene {
		s := scene{groups: []*v2alpha2.PodGroup{wrappers.MakePodGroup(inference, "default").MinSubGroup(1).SubGroup("one", 2).SubGroup("two", 2).Obj()}}
		for leaf, n := range nodes {
			s.add(inference, leaf, "node", n)
		}
		return s
	}
	for name, tc := range map[string]struct {
		scenes []scene // one a second
		want   time.Duration
		early  string
	}{
		"surplus after the minimum": {
			scenes: []scene{twoGroups(map[string]int{"two": 2}), twoGroups(map[string]int{"two": 3, "one": 1})},
		},
		"surplus before the minimum": {
			scenes: []scene{twoGroups(map[string]int{"two": 1, "one": 1}), twoGroups(map[string]int{"two": 2, "one": 1})},
			want:   time.Second,
			early:  inference,
		},
		"a gang that is bound in one scene was never partial": {
			scenes: []scene{withPods(nil), withPods(map[string]int{"node": 2})},
		},
		"bound one by one": {
			scenes: []scene{withPods(map[string]int{"node": 1}), withPods(map[string]int{"node": 1}), withPods(map[string]int{"node": 2})},
			want:   2 * time.Second,
		},
		"a partial gang that is never completed counts": {
			scenes: []scene{withPods(map[string]int{"node": 1}), withPods(map[string]int{"node": 1})},
			want:   time.Second,
		},
		"a partial gang counts until its pods are released": {
			scenes: []scene{withPods(map[string]int{"node": 1}), withPods(nil), withPods(nil)},
			want:   time.Second,
		},
		"a gang that was whole may lose pods": {
			scenes: []scene{withPods(map[string]int{"node": 2}), withPods(map[string]int{"node": 1}), withPods(map[string]int{"node": 1})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := partialGangs{since: map[string]time.Time{}, whole: map[string]bool{}}
			for i, s := range tc.scenes {
				p.look(s, at(i))
			}
			if p.longest != tc.want {
				t.Errorf("longest %s, want %s", p.longest, tc.want)
			}
			if p.early != tc.early {
				t.Errorf("early surplus of %q, want %q", p.early, tc.early)
			}
		})
	}
}
