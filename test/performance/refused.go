// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// measureRefusals times the refusal of gangs that cannot fit, o.probes of them one after the other: from the creation of
// the last pod until its PodGroup has the reason, and until a first pod is marked as unschedulable.
func measureRefusals(ctx context.Context, cl *cluster, out *outcome) {
	var answers, refusals latencies
	for i := range cl.o.probes {
		g := gang{name: fmt.Sprintf("refused-%03d", i), pods: cl.o.podsPerGang, gpus: int64(cl.o.gpus)}
		cl.createGangs(ctx, g)
		began := time.Now()
		if cl.c.api == musterGangs {
			cl.untilRefused(ctx, g)
			answers.add(began, time.Now())
		}
		cl.until(ctx, 0, cl.o.patience, func() bool {
			for _, name := range podNames(g) {
				if at := cl.pods.pods[name].refused; !at.IsZero() {
					if at.Before(began) { // while the last pod was created
						at = began
					}
					refusals.add(began, at)
					return true
				}
			}
			return false
		})
		cl.deleteGangs(ctx, g)
		must(pause(ctx, 10*probeGap))
	}
	out.addQuantiles(refusal, answers.seconds, 0.5, 0.99)
	out.addQuantiles(kind{"pod_refused_%s_ms", "first pod told unschedulable, %s, ms", "%.0f"}, refusals.seconds, 0.5, 0.99)
	cl.usage().add(out, usage{})
}

// untilRefused waits for the final condition of the PodGroup: the reason why its gang is not admitted.
func (cl *cluster) untilRefused(ctx context.Context, g gang) {
	limited, cancel := context.WithTimeoutCause(ctx, cl.o.patience, unfinished{fmt.Errorf("no refusal of %s after %s", g.name, cl.o.patience)})
	defer cancel()
	err := controlplane.Until(limited, cl.dynamic.Resource(podGroups).Namespace(namespace), metav1.ListOptions{FieldSelector: "metadata.name=" + g.name},
		func(found []*unstructured.Unstructured) bool { return len(found) == 1 && final(found[0]) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = context.Cause(limited)
	}
	must(err)
}

// final reports whether a PodGroup has the reason why it cannot be admitted, rather than that another gang goes first.
func final(object *unstructured.Unstructured) bool {
	var podGroup v2alpha2.PodGroup
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &podGroup) != nil {
		return false
	}
	c := meta.FindStatusCondition(podGroup.Status.Conditions, v2alpha2.ConditionSatisfied)
	if c == nil || c.Status != metav1.ConditionFalse || c.Message == "" {
		return false
	}
	switch v2alpha2.Reason(c.Reason) {
	case v2alpha2.ReasonTooLarge, v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonInsufficientResources, v2alpha2.ReasonTopologyUnavailable, v2alpha2.ReasonFragmented, v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonNodesUnavailable:
		return true
	}
	return false
}
