// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// TestTerminationBesideARival: a replica is terminated on a full node, its pods terminate slowly, and another gang waits
// for the room. In the end the set is available or has no pod bound.
func TestTerminationBesideARival(t *testing.T) {
	for name, tc := range map[string]struct {
		clique, prefix string // the PodClique in breach, and the replica that is terminated
		rival          int32  // its priority above the set's
	}{
		"set replica beside one of equal priority":    {"chat-0-router", "chat-0-", 0},
		"set replica beside one of higher priority":   {"chat-0-router", "chat-0-", 1000},
		"group replica beside one of higher priority": {"chat-0-model-1-worker", "chat-0-model-1-", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			before := w.watched("1s")
			w.rival(tc.rival)
			ending := w.hold("chat-0")
			w.ready(tc.clique, false)
			w.untilPodsAre("the replica ends", func(pods []*corev1.Pod) bool {
				return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
					return strings.HasPrefix(p.Spec.Hostname, tc.prefix) && p.DeletionTimestamp == nil
				})
			})
			w.release(ending)
			whole, rival := map[string]int{"chat-0": 8}, map[string]int{"rival-0": 8}
			w.untilPodsAre("one of the two is whole, and the other holds nothing", func(pods []*corev1.Pod) bool {
				bound := boundPods(pods)
				return maps.Equal(bound, whole) || tc.prefix == "chat-0-" && maps.Equal(bound, rival)
			})
			for host, uid := range w.hosts() {
				if of, was := before[host]; was && (of == uid) == strings.HasPrefix(host, tc.prefix) {
					t.Errorf("pod %s: replaced %v", host, of != uid)
				}
			}
			if set, group := w.setAttempt(), w.groupAttempt(); set.Attempt+group.Attempt != 1 {
				t.Errorf("attempts %+v of the set, %+v of the group", set, group)
			}
		})
	}
}

// A waiting gang of the same priority gets none of the room that an update frees for its own pods: neither while they
// are being replaced nor afterwards.
func TestRolloutBesideARival(t *testing.T) {
	stories := map[string]func(*world){}
	for name, edited := range map[string][]string{
		"standalone pods":            {"router"},
		"replicas of scaling groups": {"worker"},
		"everything":                 {"router", "leader", "worker"},
	} {
		stories[name] = func(w *world) {
			r := w.started(fmt.Sprintf(eightGPUs, "s", ""))
			w.rival(0)
			w.image(2, edited...)
			w.untilUpdated()
			want := map[string]string{}
			if slices.Contains(edited, "router") {
				want["s-0-router"] = "-0 +0 -1 +1"
			}
			if slices.Contains(edited, "worker") {
				want["s-0-model"] = "-0 +0 -1 +1"
			}
			r.was(want)
			for _, p := range w.pods() {
				if p.Annotations[v2alpha2.PodGroupAnnotation] == "rival-0" && (p.Spec.NodeName != "" || controlplane.PodReady(&p)) {
					w.t.Errorf("pod %s of the rival runs", p.Name)
				}
			}
			w.until("the PodGroup is not marked any more", podGroups, func(objects []*unstructured.Unstructured) bool {
				return !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
					_, marked := o.GetAnnotations()[v2alpha2.ReplacingAnnotation]
					return marked
				})
			})
		}
	}
	tellStories(t, stories)
}
