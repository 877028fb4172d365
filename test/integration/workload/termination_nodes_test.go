// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// untilReplacedElsewhere waits until pods whose host names have the prefix run on other nodes, all ready, while the
// previous ones are terminating on a lost node. It returns the UIDs of the pods that are not terminating, by host name.
func (w *world) untilReplacedElsewhere(before map[string]types.UID, lost, prefix string) map[string]types.UID {
	w.t.Helper()
	var after map[string]types.UID
	var stuck []string
	ctx, cancel := w.patient()
	defer cancel()
	w.must(controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		after, stuck = map[string]types.UID{}, nil
		for _, p := range pods {
			if p.Spec.NodeName == lost && p.DeletionTimestamp != nil {
				stuck = append(stuck, p.Spec.Hostname)
			} else if controlplane.PodReady(p) {
				after[p.Spec.Hostname] = p.UID
			}
		}
		return len(after) == len(before)
	}), "waiting until the pods run elsewhere")
	for host, uid := range before {
		if replaced := after[host] != uid; replaced != strings.HasPrefix(host, prefix) || replaced != slices.Contains(stuck, host) {
			w.t.Errorf("pod %s: replaced %v, stuck %v", host, replaced, stuck)
		}
	}
	return after
}

// untilHosts waits until exactly these pods are left, and all are ready.
func (w *world) untilHosts(want map[string]types.UID) {
	w.t.Helper()
	ctx, cancel := w.patient()
	defer cancel()
	w.must(controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		got := map[string]types.UID{}
		for _, p := range pods {
			if controlplane.PodReady(p) && p.DeletionTimestamp == nil {
				got[p.Spec.Hostname] = p.UID
			}
		}
		return len(pods) == len(want) && maps.Equal(got, want)
	}), "waiting until the pods that were stuck are gone")
}

// impatient makes the pods of chat count as missing as soon as their node does not answer.
func (w *world) impatient() {
	w.t.Helper()
	w.edit("chat", func(set *v1alpha1.PodCliqueSet) { set.Spec.Template.UnreachableGrace = &metav1.Duration{} })
}

// TestTerminationOnALostNode: the node of all pods becomes unreachable. The set replica is terminated after the delay;
// its pods remain terminating, and are replaced on other nodes when their grace period is over. When the node is
// reachable again they are gone, and no other pods.
func TestTerminationOnALostNode(t *testing.T) {
	w := newWorld(t, 1)
	before := w.watched("2s")
	w.impatient()
	lost := w.nodes[0]
	w.addNodes(1)
	w.must(cp.LoseNode(w.ctx, lost), "losing the node")
	_, deadline := w.untilBreached("chat-0-router")
	after := w.untilReplacedElsewhere(before, lost, "chat-0-")
	w.untilAvailable("chat")
	w.notEarly(w.setAttempt(), deadline)
	if message := w.setAttempt().Message; !strings.HasSuffix(message, "; node "+lost+" does not answer") {
		t.Errorf("terminated because: %q", message)
	}
	w.must(cp.RestoreNode(w.ctx, lost), "restoring the node")
	w.untilHosts(after)
	w.untilAvailable("chat")
	if set, group := w.setAttempt(), w.groupAttempt(); set.Attempt != 1 || group.Attempt != 0 {
		t.Errorf("attempts %+v of the set, %+v of the group", set, group)
	}
}

// cordon makes a node unschedulable, or schedulable again.
func (w *world) cordon(node string, unschedulable bool) {
	w.t.Helper()
	_, err := cp.Client().CoreV1().Nodes().Patch(w.ctx, node, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, unschedulable), metav1.PatchOptions{})
	w.must(err, "cordoning "+node)
}

// TestNodeBackInTime: a node that is reachable again before the grace is over ends nothing, although the delay is over.
func TestNodeBackInTime(t *testing.T) {
	w := newWorld(t, 1)
	before := w.watched("1s")
	w.must(cp.LoseNode(w.ctx, w.nodes[0]), "losing the node")
	for _, clique := range []string{"chat-0-router", "chat-0-model-0-worker", "chat-0-model-1-leader"} {
		w.untilCondition(cliques, clique, v1alpha1.ConditionMinAvailableBreached, "Unknown")
	}
	w.untilCondition(groups, "chat-0-model", v1alpha1.ConditionMinAvailableBreached, "Unknown")
	const silent = "1 of 1 nodes do not answer; waiting"
	w.until("the set says that nodes are silent", sets, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && strings.Contains(conditionOf(objects[0], v1alpha1.ConditionAvailable, "message"), silent)
	})
	w.answers("what happened to my pods", "describe pcs chat", silent)
	w.must(cp.RestoreNode(w.ctx, w.nodes[0]), "restoring the node")
	w.untilReplaced(before, "")
	w.untilCondition(cliques, "chat-0-router", v1alpha1.ConditionMinAvailableBreached, "False")
	w.untilCondition(groups, "chat-0-model", v1alpha1.ConditionMinAvailableBreached, "False")
	if set, group := w.setAttempt(), w.groupAttempt(); set.Attempt != 0 || group.Attempt != 0 {
		t.Errorf("attempts %+v of the set, %+v of the group", set, group)
	}
}
