// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"strings"
	"testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
)

// TestMakers has one case per sentence about the owners that should create the pods that a gang of 8 lacks.
func TestMakers(t *testing.T) {
	t.Parallel()
	job := Owner{Kind: "Job", Name: "train", UID: "1", Pods: 4, Seen: true, Wants: 4}
	for name, tc := range map[string]struct {
		facts Facts
		want  string
	}{
		"no facts": {want: ""},
		"a StatefulSet that waits for each pod": {
			facts: Facts{Owners: []Owner{{Kind: "StatefulSet", Name: "web", Pods: 1, Seen: true, Wants: 8, Ordered: true}}},
			want:  "StatefulSet web makes a pod only when the one before it is ready: recreate it with podManagementPolicy Parallel",
		},
		"a Job that runs fewer": {
			facts: Facts{Owners: []Owner{job}},
			want:  "Job train has the 4 pods it is to have: set its parallelism (and completions, if it is lower) to 8, or lower the minimum",
		},
		"a ReplicaSet that has fewer": {
			facts: Facts{Owners: []Owner{{Kind: "ReplicaSet", Name: "web-7d9", Pods: 4, Seen: true, Wants: 4}}},
			want:  "ReplicaSet web-7d9 has the 4 pods it is to have: set its replicas to 8, or lower the minimum",
		},
		"a ReplicaSet of a Deployment that has fewer": {
			facts: Facts{Owners: []Owner{{Kind: "ReplicaSet", Name: "web-7d9", Pods: 4, Seen: true, Wants: 4, ControllerKind: "Deployment", ControllerName: "web"}}},
			want:  "ReplicaSet web-7d9 has the 4 pods it is to have: set replicas of Deployment web to 8, or lower the minimum",
		},
		"an owner that could not create all of its pods": {
			facts: Facts{Owners: []Owner{{Kind: "Job", Name: "train", Pods: 4, Seen: true, Wants: 8}}},
			want:  "Job train is to have 8 pods and has 4: see its events, a quota or an admission webhook may refuse the others, or it pauses after a failure",
		},
		"a Job that is suspended": {
			facts: Facts{Owners: []Owner{{Kind: "Job", Name: "train", Pods: 4, Seen: true, Wants: 8, Suspended: true}}},
			want:  "Job train is suspended: resume it",
		},
		"an owner of a kind that is not known": {
			facts: Facts{Owners: []Owner{{Kind: "PodClique", Name: "chat-0-decode", Pods: 4, Unknown: true}}},
			want:  "PodClique chat-0-decode makes its pods: see its events",
		},
		"an owner that was not read yet": {facts: Facts{Owners: []Owner{{Kind: "Job", Name: "train", Pods: 4}}}, want: ""},
		"two owners of one leaf, each with all of its pods": {
			facts: Facts{Owners: []Owner{job, {Kind: "Job", Name: "more", UID: "2", Pods: 2, Seen: true, Wants: 2}}}, want: ""},
		"a Job that has failed": {
			facts: Facts{Owners: []Owner{{Kind: "Job", Name: "train", Seen: true, Wants: 8, GaveUp: "BackoffLimitExceeded", Suspended: true}}},
			want:  "Job train has failed: BackoffLimitExceeded; delete it and create it again",
		},
		"a Job of a JobSet that has failed": {
			facts: Facts{Owners: []Owner{{Kind: "Job", Name: "train-0", Seen: true, Wants: 8, GaveUp: "DeadlineExceeded", ControllerKind: "JobSet", ControllerName: "train"}}},
			want:  "Job train-0 of JobSet train has failed: DeadlineExceeded; see JobSet train",
		},
		"a Job that is complete": {
			facts: Facts{Owners: []Owner{{Kind: "Job", Name: "train", Seen: true, Complete: true}}},
			want:  "Job train is complete and makes no more pods: delete it and create it again",
		},
		"a Job that does not try an index again": {
			facts: Facts{Owners: []Owner{{Kind: "Job", Name: "train", Seen: true, Pods: 3, Wants: 4, Failed: 1, FailedIndexes: "2"}}},
			want:  "Job train does not replace the failed pods of index 2: delete it and create it again",
		},
		"a Job of a JobSet that is suspended": {
			facts: Facts{Owners: []Owner{{Kind: "Job", Name: "train-0", Seen: true, Suspended: true, ControllerKind: "JobSet", ControllerName: "train"}}},
			want:  "Job train-0 of JobSet train is suspended: resume it there",
		},
		"a pod that failed": {
			facts: Facts{Failed: FailedPods{Total: 2, First: "train-a", Why: "container worker exited with code 1"}},
			want:  "pod train-a failed: container worker exited with code 1",
		},
		"a pod that nothing replaces": {
			facts: Facts{Failed: FailedPods{Total: 1, First: "train-a", Bare: true}},
			want:  "pod train-a failed, and no controller replaces it",
		},
		"an owner and pods that failed": {
			facts: Facts{Owners: []Owner{{Kind: "Job", Name: "train", Pods: 4, Seen: true, Wants: 8, Suspended: true}}, Failed: FailedPods{Total: 1, First: "train-a", Why: "Evicted"}},
			want:  "Job train is suspended: resume it; pod train-a failed: Evicted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.facts.Group, tc.facts.Created = flat().Obj(), gang.Counts{"": 4}
			var err error
			if tc.facts.Tree, err = Tree(&tc.facts.Group.Spec); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(describeOwners(tc.facts), "; "); got != tc.want {
				t.Errorf("makers:\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestUnclaimed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		found []Unclaimed
		want  string
	}{
		"a pod with a label": {[]Unclaimed{{Kind: "Pod", Names: []string{"a"}, Total: 1, Where: "label pod-group-name"}},
			"pod a names it by label pod-group-name: make it annotation pod-group-name"},
		"pods with the label of another product": {[]Unclaimed{{Kind: "Pod", Names: []string{"a", "b", "c"}, Total: 3, Where: "label scheduling.x-k8s.io/pod-group"}},
			"3 pods (a, b, …) name it by label scheduling.x-k8s.io/pod-group: make it annotation pod-group-name"},
		"a Job": {[]Unclaimed{{Kind: "Job", Names: []string{"train"}, Total: 1, Where: "annotation pod-group-name"}},
			"Job train names it by annotation pod-group-name of its own: recreate it with that in spec.template.metadata.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := describeUnclaimed(tc.found); got != tc.want {
				t.Errorf("unclaimed:\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestSummaryKeepsTheAdvice: a summary contains the advice for names of any length.
func TestSummaryKeepsTheAdvice(t *testing.T) {
	t.Parallel()
	long := func(prefix string) string { return prefix + strings.Repeat("x", 63-len(prefix)) }
	pods := []string{long("a-"), long("b-"), long("c-")}
	exist := gang.Counts{"leader": 1, "workers": 4}
	for name, tc := range map[string]struct {
		facts  Facts
		advice string
	}{
		"an unknown sub-group": {
			facts: Facts{MisplacedTotal: 5, Misplaced: []Misplaced{
				{Why: `carries sub-group "` + long("w-") + `", which the PodGroup does not have`, Pods: pods, Total: 3}, {Why: "has no label " + v2alpha2.SubGroupLabel, Pods: pods, Total: 2}}},
			advice: ": correct label kai.scheduler/subgroup-name",
		},
		"no label": {
			facts:  Facts{MisplacedTotal: 5, Misplaced: []Misplaced{{Why: "has no label " + v2alpha2.SubGroupLabel, Pods: pods, Total: 5}}},
			advice: "; the leaves are leader, workers",
		},
		"an ordered StatefulSet": {
			facts:  Facts{Pods: 1, Created: gang.Counts{"leader": 1}, Owners: []Owner{{Kind: "StatefulSet", Name: long("set-"), Leaf: "workers", Seen: true, Wants: 4, Ordered: true}}},
			advice: "recreate it with podManagementPolicy Parallel",
		},
		"a Job that lacks pods": {
			facts:  Facts{Pods: 1, Created: gang.Counts{"leader": 1}, Owners: []Owner{{Kind: "Job", Name: long("job-"), Leaf: "workers", Seen: true, Wants: 4}}},
			advice: "see its events",
		},
		"pods that name it by another key": {
			facts:  Facts{Unclaimed: []Unclaimed{{Kind: "Pod", Names: pods, Total: 3, Where: "label pod-group.scheduling.sigs.k8s.io"}}},
			advice: "make it annotation pod-group-name",
		},
		"another scheduler": {
			facts:  Facts{Created: exist, Foreign: 5, ForeignNames: []string{long("their-")}, OurNames: []string{long("our-")}},
			advice: "in all pods of the gang",
		},
		"scheduling gates": {
			facts:  Facts{Created: exist, Gated: 5, GateNames: []string{long("example.com/")}},
			advice: "that are to be lifted: " + long("example.com/"),
		},
		"a priority class that does not exist": {
			facts:  Facts{Created: exist, Gated: 5, GateNames: []string{long("example.com/")}, NoSuchClass: long("class-")},
			advice: "create it, or name another",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tc.facts
			f.Group = pair().Obj()
			var err error
			if f.Tree, err = Tree(&f.Group.Spec); err != nil {
				t.Fatal(err)
			}
			got := Status(f, now)
			if !strings.Contains(got.Summary, tc.advice) {
				t.Errorf("the summary does not say %q: %s", tc.advice, got.Summary)
			}
		})
	}
}
