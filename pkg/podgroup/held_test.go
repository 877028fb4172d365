// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/test/wrappers"
)

func TestNotesOfWaitingPods(t *testing.T) {
	t.Parallel()
	full := gang.Counts{"prefill-0": 4, "prefill-1": 4, "prefill-2": 4, "decode": 8}
	tests := map[string]struct {
		facts Facts // Group and Tree are filled in, unless lost
		lost  bool
		leaf  string
		pod   WaitingPod
		want  HeldNote
	}{
		"the PodGroup does not exist": {
			lost: true,
			want: HeldNote{Kind: "PodGroupNotFound", Head: "waits until PodGroup llm exists and can start", Text: "waits until PodGroup llm exists and can start"},
		},
		"the pod has no place in the gang": {
			pod: WaitingPod{Misplaced: `names sub-group "x", which the PodGroup does not have`},
			want: HeldNote{Kind: "SubGroupNotFound", Head: `does not count in PodGroup llm: it names sub-group "x", which the PodGroup does not have: correct label kai.scheduler/subgroup-name`,
				Text: `does not count in PodGroup llm: it names sub-group "x", which the PodGroup does not have: correct label kai.scheduler/subgroup-name`},
		},
		"pods are missing": {
			facts: Facts{Created: gang.Counts{"decode": 8}}, leaf: "decode",
			want: HeldNote{Kind: "minimum WaitingForPods", Head: "PodGroup llm: WaitingForPods"},
		},
		"pods are missing, and it is known who should create them": {
			facts: Facts{Created: gang.Counts{"decode": 8, "prefill-0": 1}, Pods: 9, Terminating: 1, Owners: []Owner{{Kind: "StatefulSet", Name: "prefill", Leaf: "prefill-0", Pods: 1, Seen: true, Wants: 4, Ordered: true}}},
			leaf:  "decode",
			want: HeldNote{Kind: "minimum WaitingForPods with advice", Head: "PodGroup llm: WaitingForPods",
				Advice: "StatefulSet prefill makes a pod only when the one before it is ready recreate it with podManagementPolicy Parallel",
				Text:   "PodGroup llm: WaitingForPods: needs 16 pods, 9 exist; StatefulSet prefill makes a pod only when the one before it is ready: recreate it with podManagementPolicy Parallel"},
		},
		"a Job lacks pods: the advice has numbers": {
			facts: Facts{Created: gang.Counts{"decode": 8, "prefill-0": 1}, Owners: []Owner{{Kind: "Job", Name: "prefill-3", Leaf: "prefill-0", Pods: 1, Seen: true, Wants: 4}}},
			leaf:  "decode",
			want: HeldNote{Kind: "minimum WaitingForPods with advice", Head: "PodGroup llm: WaitingForPods",
				Advice: "Job prefill-3 is to have # pods and has # see its events a quota or an admission webhook may refuse the others or it pauses after a failure",
				Text:   "PodGroup llm: WaitingForPods: needs 16 pods, 9 exist; Job prefill-3 is to have 4 pods and has 1: see its events, a quota or an admission webhook may refuse the others, or it pauses after a failure"},
		},
		"pods have scheduling gates": {
			facts: Facts{Created: full, Usable: gang.Counts{"decode": 8}, Gated: 12, GateNames: []string{"example.com/quota"}}, leaf: "decode",
			want: HeldNote{Kind: "minimum Gated with advice", Head: "PodGroup llm: Gated", Advice: "# pods with scheduling gates that are to be lifted example.com/quota",
				Text: "PodGroup llm: Gated: 8 of 16 needed pods can be placed; 12 pods with scheduling gates that are to be lifted: example.com/quota"},
		},
		"the gang is refused": {
			facts: Facts{Created: full, Usable: full, Refused: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "needs 16, 3 are free; more"}}, leaf: "decode",
			want: HeldNote{Kind: "minimum InsufficientGPUs", Head: "PodGroup llm: InsufficientGPUs", Text: "PodGroup llm: InsufficientGPUs: needs 16, 3 are free"},
		},
		"the gang is refused, and what it may preempt does not help": {
			facts: Facts{Created: full, Usable: full, NoHelp: "8 pods of lower priority may not be preempted",
				Refused: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "needs 16, 3 are free; pods of lower priority hold 32"}},
			leaf: "decode",
			want: HeldNote{Kind: "minimum InsufficientGPUs with advice", Head: "PodGroup llm: InsufficientGPUs",
				Advice: "preemption would not help # pods of lower priority may not be preempted",
				Text:   "PodGroup llm: InsufficientGPUs: needs 16, 3 are free; preemption would not help: 8 pods of lower priority may not be preempted"},
		},
		"a missing claim": {
			facts: Facts{Created: full, Usable: full, Refused: Refusal{Reason: v2alpha2.ReasonNoNodeMatches, Message: `persistentvolumeclaim "data" not found; more`}}, leaf: "decode",
			want: HeldNote{Kind: "minimum NoNodeMatches", Head: "PodGroup llm: NoNodeMatches", Text: `PodGroup llm: NoNodeMatches: persistentvolumeclaim "data" not found`},
		},
		"the gang waits for its turn": {
			facts: Facts{Created: full, Usable: full}, leaf: "decode",
			want: HeldNote{Kind: "minimum BehindInQueue", Head: "PodGroup llm: BehindInQueue"},
		},
		"a refill": {
			facts: Facts{Created: full, Usable: full, Bound: gang.Counts{"prefill-0": 4, "prefill-1": 4, "decode": 7}, Admitted: true,
				AdmittedGroups: sets.New("prefill", "prefill-0", "prefill-1", "decode"), Refused: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "needs 1, 0 are free; more"}},
			leaf: "decode",
			want: HeldNote{Kind: "refill InsufficientGPUs", Head: "replaces pods that PodGroup llm has lost while it runs: InsufficientGPUs",
				Text: "replaces pods that PodGroup llm has lost while it runs: InsufficientGPUs: needs 1, 0 are free"},
		},
		"a pod above the minimum of a gang that is refilled": {
			facts: Facts{Created: full, Usable: full, Bound: gang.Counts{"prefill-0": 4, "prefill-1": 4, "decode": 7}, Admitted: true,
				AdmittedGroups: sets.New("prefill", "prefill-0", "prefill-1", "decode"), Refused: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "needs 1, 0 are free; more"}},
			leaf: "prefill-2",
			want: HeldNote{Kind: "surplus", Head: "above the minimum of PodGroup llm, which runs without it; sub-group prefill-2 starts as a whole; what the minimum has lost is replaced first",
				Text: "above the minimum of PodGroup llm, which runs without it; sub-group prefill-2 starts as a whole; what the minimum has lost is replaced first"},
		},
		"a sub-group above the minimum": {
			facts: Facts{Created: full, Usable: full, Bound: gang.Counts{"prefill-0": 4, "prefill-1": 4, "decode": 8}, Admitted: true,
				AdmittedGroups: sets.New("prefill", "prefill-0", "prefill-1", "decode"), RefusedSurplus: true,
				Refused: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "decode needs 1, 0 are free; prefill/prefill-2 needs 4, 3 are free"}},
			leaf: "prefill-2",
			want: HeldNote{Kind: "surplus InsufficientGPUs", Head: "above the minimum of PodGroup llm, which runs without it; sub-group prefill-2 starts as a whole: InsufficientGPUs"},
		},
		"a sub-group above the minimum that lacks pods": {
			facts: Facts{Created: gang.Counts{"prefill-0": 4, "prefill-1": 4, "prefill-2": 1, "decode": 8}, Bound: gang.Counts{"prefill-0": 4, "prefill-1": 4, "decode": 8}, Admitted: true},
			leaf:  "prefill-2",
			want: HeldNote{Kind: "surplus WaitingForPods", Head: "above the minimum of PodGroup llm, which runs without it; sub-group prefill-2 starts as a whole: WaitingForPods",
				Text: "above the minimum of PodGroup llm, which runs without it; sub-group prefill-2 starts as a whole: WaitingForPods: it lacks 3 pods that must be created first"},
		},
		"a sub-group above the minimum that has lost a pod": {
			facts: Facts{Created: full, Bound: gang.Counts{"prefill-0": 4, "prefill-1": 4, "prefill-2": 3, "decode": 8}, Admitted: true,
				AdmittedGroups: sets.New("prefill", "prefill-0", "prefill-1", "prefill-2", "decode")},
			leaf: "prefill-2",
			want: HeldNote{Kind: "refill", Head: "replaces pods that sub-group prefill-2 of PodGroup llm has lost",
				Text: "replaces pods that sub-group prefill-2 of PodGroup llm has lost"},
		},
		"a single pod above the minimum": {
			facts: Facts{Created: gang.Counts{"prefill-0": 4, "prefill-1": 4, "decode": 9}, Bound: gang.Counts{"prefill-0": 4, "prefill-1": 4, "decode": 8}, Admitted: true,
				RefusedSurplus: true, Refused: Refusal{Reason: v2alpha2.ReasonFragmented, Message: "decode does not fit; more"}},
			leaf: "decode",
			want: HeldNote{Kind: "surplus Fragmented", Head: "above the minimum of PodGroup llm, which runs without it: Fragmented",
				Text: "above the minimum of PodGroup llm, which runs without it: Fragmented: decode does not fit"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tc.facts
			f.Namespace, f.Name = "ml", "llm"
			if !tc.lost {
				f.Group = tree().Obj()
				built, err := Tree(&f.Group.Spec)
				if err != nil {
					t.Fatal(err)
				}
				f.Tree = built
			}
			tc.pod.Pod = wrappers.MakePod("a", "ml").SubGroup(tc.leaf).Obj()
			got := NotesOf(f).NoteOf(tc.pod)
			if tc.want.Text == "" { // the rest is formatted elsewhere: it begins with the head, and has one clause
				tc.want.Text = got.Text
				if len(got.Text) <= len(got.Head)+2 || got.Text[:len(got.Head)+2] != got.Head+": " {
					t.Errorf("text %q, want one that goes on after %q", got.Text, got.Head)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("note (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMessageIsInAPodAlready(t *testing.T) {
	t.Parallel()
	const text = "PodGroup llm: WaitingForPods: needs 16 pods, 9 exist; Job a is to have 4 pods and has 1: see its events"
	for name, tc := range map[string]struct {
		note HeldNote
		want bool
	}{
		"the same":                 {HeldNote{Head: "PodGroup llm: WaitingForPods", Advice: "Job a is to have # pods and has # see its events"}, true},
		"the advice is not known":  {HeldNote{Head: "PodGroup llm: WaitingForPods"}, true},
		"another reason":           {HeldNote{Head: "PodGroup llm: Gated"}, false},
		"advice about another Job": {HeldNote{Head: "PodGroup llm: WaitingForPods", Advice: "Job b is to have # pods and has # see its events"}, false},
		"other advice about a Job": {HeldNote{Head: "PodGroup llm: WaitingForPods", Advice: "Job a is suspended resume it"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.note.IsIn(text); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAdviceNamesTheLeavesAndTheAction(t *testing.T) {
	t.Parallel()
	group := tree().Obj()
	built, err := Tree(&group.Spec)
	if err != nil {
		t.Fatal(err)
	}
	const unknown = `names sub-group "x", which the PodGroup does not have`
	pod := func(name, leaf, misplaced string) WaitingPod {
		w := wrappers.MakePod(name, "ml")
		if leaf != "" {
			w = w.SubGroup(leaf)
		}
		return WaitingPod{Pod: w.Obj(), Misplaced: misplaced}
	}
	f := Facts{Namespace: "ml", Name: "llm", Group: group, Tree: built, Waiting: []WaitingPod{
		pod("a", "x", unknown), pod("b", "decode", ""), pod("c", "", "has no label kai.scheduler/subgroup-name"), pod("d", "x", unknown),
	}}
	var got []string
	for _, lost := range FindLostPods(f) {
		got = append(got, lost.First.Name+" "+lost.Reason+": "+lost.Note)
	}
	want := []string{
		`a SubGroupNotFound: does not count in PodGroup "llm": the pod names sub-group "x", which the PodGroup does not have: correct label kai.scheduler/subgroup-name; the leaves are prefill-0, prefill-1, prefill-2, decode; 2 pods wait`,
		`c SubGroupNotFound: does not count in PodGroup "llm": the pod has no label kai.scheduler/subgroup-name: add it; the leaves are prefill-0, prefill-1, prefill-2, decode; the pod waits`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
