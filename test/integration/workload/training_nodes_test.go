// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// nodeJob runs the job on one node, from which its pods are evicted when it was lost for a second.
func (w *world) nodeJob(restarts int) {
	w.t.Helper()
	set := w.parse(fmt.Sprintf(trainingJob, fmt.Sprintf("  trainingSpec: {maxRestarts: %d}", restarts)))
	soon := int64(1)
	for _, c := range set.Spec.Template.Cliques {
		c.Spec.PodSpec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &soon}}
	}
	w.must(w.client.Create(w.ctx, set), "creating the job")
	w.untilJob("runs", "Running", 0)
}

// A worker is killed (137), then the node is lost with all pods: each restarts all pods, and only the former uses a
// restart. The job completes on other nodes, and is not affected when the node is reachable again.
func TestTrainingLosesANode(t *testing.T) {
	w := newWorld(t, 1)
	w.nodeJob(2)
	first := w.untilRunning(nil)
	w.exit(137, "job-0-ring-0-worker-1")
	w.untilJob("the first restart is counted", "Running", 1)
	second := w.untilRunning(first)
	if message := w.attemptOf("job").Message; !strings.Contains(message, "container main exited with code 137") {
		t.Errorf("restarted because: %q", message)
	}

	lost := w.nodes[0]
	w.addNodes(1)
	w.must(cp.LoseNode(w.ctx, lost), "losing the node")
	third := w.untilReplacedElsewhere(second, lost, "job-0-")
	w.untilJob("the second restart is not counted", "Running", 1)
	if a := w.attemptOf("job"); a.Attempt != 2 || a.Reason != v1alpha1.ReasonNodesLost {
		t.Errorf("attempt %+v", a)
	}
	if message := w.attemptOf("job").Message; !strings.Contains(message, lost) {
		t.Errorf("restarted because: %q", message)
	}
	w.must(cp.RestoreNode(w.ctx, lost), "restoring the node")
	w.untilHosts(third)
	if hosts := slices.Sorted(maps.Keys(third)); !slices.Equal(hosts, slices.Sorted(maps.Keys(first))) {
		t.Errorf("host names %v", hosts)
	}
	w.finish()
	w.untilJob("it has succeeded", "Succeeded", 1)
}

// attemptOf returns the newest attempt of a set.
func (w *world) attemptOf(name string) v1alpha1.ReplicaAttempt {
	set := &v1alpha1.PodCliqueSet{}
	return w.attempt(set, func() []v1alpha1.ReplicaAttempt { return set.Status.ReplicaAttempts }, name)
}
