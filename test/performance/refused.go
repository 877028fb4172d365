// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// measureRefusals times the refusal of gangs that cannot fit, o.probes of them one after the other: from the creation of
// the last pod until its PodGroup has the reason, and until a first pod is marked as unschedulable.
func measureRefusals(ctx context.Context, cl *cluster, out *outcome) error {
	var answers, refusals latencies
	for i := range cl.o.probes {
		g := gang{name: fmt.Sprintf("refused-%03d", i), pods: cl.o.podsPerGang, gpus: int64(cl.o.gpus)}
		if err := cl.createGangs(ctx, g); err != nil {
			return err
		}
		began := time.Now()
		if cl.c.api == musterGangs {
			if err := cl.untilRefused(ctx, g); err != nil {
				return err
			}
			answers.add(began, time.Now())
		}
		err := cl.pods.until(ctx, 0, cl.o.patience, cl.failed, func() bool {
			for _, name := range g.podNames() {
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
		if err != nil {
			return err
		}
		if err := cl.deleteGangs(ctx, g); err != nil {
			return err
		}
		if err := pause(ctx, 10*probeGap); err != nil {
			return err
		}
	}
	answers.report(out, refusalMedian, refusal99)
	refusals.report(out, podRefused50, podRefused99)
	return cl.addUsage(out, usage{})
}

// untilRefused waits for the final condition of the PodGroup: the reason why its gang is not admitted.
func (cl *cluster) untilRefused(ctx context.Context, g gang) error {
	limited, cancel := context.WithTimeoutCause(ctx, cl.o.patience, unfinished{fmt.Errorf("no refusal of %s after %s", g.name, cl.o.patience)})
	defer cancel()
	err := controlplane.Until(limited, cl.dynamic.Resource(podGroups).Namespace(namespace), metav1.ListOptions{FieldSelector: "metadata.name=" + g.name},
		func(found []*unstructured.Unstructured) bool { return len(found) == 1 && final(found[0]) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return context.Cause(limited)
	}
	return err
}

// final reports whether a PodGroup has the reason why it cannot be admitted, rather than that another gang goes first.
func final(podGroup *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(podGroup.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] != v2alpha2.ConditionSatisfied || condition["status"] != string(metav1.ConditionFalse) || condition["message"] == "" {
			continue
		}
		reason, _ := condition["reason"].(string)
		switch v2alpha2.Reason(reason) {
		case v2alpha2.ReasonTooLarge, v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonInsufficientResources, v2alpha2.ReasonTopologyUnavailable, v2alpha2.ReasonFragmented, v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonNodesUnavailable:
			return true
		}
	}
	return false
}
