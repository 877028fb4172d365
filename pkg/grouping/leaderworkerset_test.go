// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/membership"
)

// TestLeaderWorkerSets: LeaderWorkerSets as its documentation shows them, the PodGroups that they need, and how many
// pods, as LeaderWorkerSet labels them, find each.
func TestLeaderWorkerSets(t *testing.T) {
	t.Parallel()
	const (
		head  = "kind: LeaderWorkerSet\napiVersion: leaderworkerset.x-k8s.io/v1\nmetadata: {name: llm, namespace: ns, uid: u1}\n"
		ours  = "spec: {schedulerName: muster-scheduler, containers: [{name: c}]}"
		pods  = "{size: 4, workerTemplate: {" + ours + "}}"
		whole = "leaderworkerset-llm.0 needs 4"

		joined = "metadata: {labels: {scheduling.run.ai/gang: joined}}, "
	)
	for name, tc := range map[string]struct {
		manifest string
		groups   string // "NAME needs N" or "NAME needs K of LEAF N, ...", separated by "; "; "refused: WORDS"
		pods     string // by PodGroup and leaf, of one replica: "NAME/LEAF N"
	}{
		"one replica": {head + "spec: {leaderWorkerTemplate: " + pods + "}", whole, "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"each replica is a gang": {head + "spec: {replicas: 3, leaderWorkerTemplate: " + pods + "}",
			whole + "; leaderworkerset-llm.1 needs 4; leaderworkerset-llm.2 needs 4", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"replicas that exist during a rollout": {
			head + "spec: {replicas: 2, rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 30%}}, leaderWorkerTemplate: " + pods + "}",
			whole + "; leaderworkerset-llm.1 needs 4; leaderworkerset-llm.2 needs 4", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"scaled to zero": {
			head + "spec: {replicas: 0, rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 1}}, leaderWorkerTemplate: " + pods + "}",
			"", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"a leader alone": {head + "spec: {leaderWorkerTemplate: {workerTemplate: {" + ours + "}}}", "leaderworkerset-llm.0 needs 1", "leaderworkerset-llm.0/leader 1"},
		"the workers are created when the leader is ready": {
			head + "spec: {startupPolicy: LeaderReady, leaderWorkerTemplate: " + pods + "}",
			"leaderworkerset-llm.0 needs 1 of leader 1, workers 3", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"a leader that is ready, without workers": {
			head + "spec: {startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 1, workerTemplate: {" + ours + "}}}",
			"leaderworkerset-llm.0 needs 1", "leaderworkerset-llm.0/leader 1"},
		"a template of the leader": {
			head + "spec: {leaderWorkerTemplate: {size: 2, leaderTemplate: {spec: {schedulerName: muster-scheduler, priorityClassName: high, containers: []}}, workerTemplate: {" + ours + "}}}",
			"leaderworkerset-llm.0 needs 2 at high", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 1"},
		"fewer pods than a replica has": {
			head + "spec: {leaderWorkerTemplate: {size: 4, workerTemplate: {metadata: {labels: {scheduling.run.ai/min-member: \"3\"}}, " + ours + "}}}",
			"leaderworkerset-llm.0 needs 3", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"a minimum on the template of the leader": {
			head + "spec: {leaderWorkerTemplate: {size: 4, leaderTemplate: {metadata: {labels: {scheduling.run.ai/min-member: \"3\"}}, " + ours + "}, workerTemplate: {" + ours + "}}}",
			"leaderworkerset-llm.0 needs 3", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"two minimums": {
			head + "spec: {leaderWorkerTemplate: {size: 4, leaderTemplate: {metadata: {labels: {scheduling.run.ai/min-member: \"3\"}}, " + ours + "}, workerTemplate: " +
				"{metadata: {labels: {scheduling.run.ai/min-member: all}}, " + ours + "}}}",
			"refused: scheduling.run.ai/min-member of leaderTemplate is \"3\", and of workerTemplate \"all\"", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"opted out where no pod sees it": {
			strings.Replace(head, "uid: u1", "uid: u1, annotations: {scheduling.run.ai/gang: \"false\"}", 1) + "spec: {leaderWorkerTemplate: " + pods + "}",
			"refused: scheduling.run.ai/gang is on the LeaderWorkerSet itself", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"more replicas than a cluster has pods": {
			head + "spec: {replicas: 2147483647, leaderWorkerTemplate: " + pods + "}", "refused: 2147483647 replicas", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"a surge beyond all bounds": {
			head + "spec: {replicas: 2, rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 2147483647}}, leaderWorkerTemplate: " + pods + "}",
			"refused: 2147483649 replicas", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"negative numbers": {head + "spec: {replicas: -1, leaderWorkerTemplate: " + pods + "}", "", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"of the default scheduler": {
			head + "spec: {leaderWorkerTemplate: {size: 4, workerTemplate: {spec: {containers: []}}}}", "", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"opted out": {
			head + "spec: {leaderWorkerTemplate: {size: 4, workerTemplate: {metadata: {labels: {scheduling.run.ai/gang: \"false\"}}, " + ours + "}}}", "", ""},
		"only the leader names the scheduler": {
			head + "spec: {leaderWorkerTemplate: {size: 4, leaderTemplate: {" + ours + "}, workerTemplate: {spec: {containers: []}}}}",
			"refused: of leaderTemplate and workerTemplate, only one is", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"exclusive topology": {
			strings.Replace(head, "uid: u1", "uid: u1, annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: rack}", 1) + "spec: {leaderWorkerTemplate: " + pods + "}",
			"leaderworkerset-llm.0 needs 1 in one rack of leader 1, workers 3", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm.0/workers 3"},
		"joined": {
			head + "spec: {replicas: 2, rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 1}}, leaderWorkerTemplate: {size: 4, workerTemplate: {" + joined + ours + "}}}",
			"leaderworkerset-llm needs 2 of replica-0 all, replica-0.leader 1, replica-0.workers 3, replica-1 all, replica-1.leader 1, replica-1.workers 3, " +
				"replica-2 all, replica-2.leader 1, replica-2.workers 3", "leaderworkerset-llm/replica-0.leader 1, leaderworkerset-llm/replica-0.workers 3"},
		"joined, and the leaders are first": {
			strings.Replace(head, "uid: u1", "uid: u1, annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: rack}", 1) +
				"spec: {leaderWorkerTemplate: {size: 2, workerTemplate: {" + joined + ours + "}}}",
			"leaderworkerset-llm needs 1 of replica-0 1 of all in one rack, replica-0.leader 1, replica-0.workers 1", "leaderworkerset-llm/replica-0.leader 1, leaderworkerset-llm/replica-0.workers 1"},
		"joined, of one pod each": {
			head + "spec: {replicas: 2, leaderWorkerTemplate: {size: 1, workerTemplate: {" + joined + ours + "}}}",
			"leaderworkerset-llm needs 2 of replica-0 all, replica-0.leader 1, replica-1 all, replica-1.leader 1", "leaderworkerset-llm/replica-0.leader 1"},
		"joined, by one template": {
			head + "spec: {leaderWorkerTemplate: {size: 2, leaderTemplate: {" + ours + "}, workerTemplate: {" + joined + ours + "}}}",
			"refused: of leaderTemplate and workerTemplate, only one has scheduling.run.ai/gang", "leaderworkerset-llm.0/leader 1, leaderworkerset-llm/replica-0.workers 1"},
		"joined, too many": {
			head + "spec: {replicas: 400, leaderWorkerTemplate: {size: 2, workerTemplate: {" + joined + ours + "}}}",
			"refused: 400 replicas need more than 1024 sub-groups", "leaderworkerset-llm/replica-0.leader 1, leaderworkerset-llm/replica-0.workers 1"},
		"joined, none": {head + "spec: {replicas: 0, leaderWorkerTemplate: {size: 1, workerTemplate: {" + joined + ours + "}}}", "", "leaderworkerset-llm/replica-0.leader 1"},
		"pods that name a PodGroup": {
			head + "spec: {leaderWorkerTemplate: {size: 2, workerTemplate: {metadata: {annotations: {pod-group-name: mine}}, " + ours + "}}}", "", "mine/ 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := checkGroups(t, tc.manifest, tc.groups)
			found := map[string]int{}
			if err := unstructured.SetNestedField(object.Object, int64(1), "spec", "replicas"); err != nil {
				t.Fatal(err)
			}
			for _, pod := range madeOf(t, object) {
				if group := membership.Group(pod); group != "" {
					found[group+"/"+membership.Leaf(pod)]++
				}
			}
			var words []string
			for _, place := range slices.Sorted(maps.Keys(found)) {
				words = append(words, fmt.Sprintf("%s %d", place, found[place]))
			}
			if got := strings.Join(words, ", "); got != tc.pods {
				t.Errorf("pods %s\nwant %s", got, tc.pods)
			}
		})
	}
}
