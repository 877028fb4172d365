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

// runRefused fills a cluster and times the refusal of gangs that cannot fit, o.probes of them one after the other: from
// the creation of the last pod until its PodGroup has the reason, and until a first pod is marked as unschedulable.
func runRefused(ctx context.Context, r run) (out outcome, err error) {
	cl, seen, stop, err := prepared(ctx, r, &out, func(cl *cluster) error { return cl.fill(ctx) })
	defer stop()
	if err != nil {
		return out, err
	}
	var answers, refusals latencies
	for i := range r.o.probes {
		g := gang{name: fmt.Sprintf("refused-%03d", i), pods: r.o.podsPerGang, gpus: int64(r.o.gpus)}
		if err := cl.createGangs(ctx, g); err != nil {
			return out, err
		}
		began := time.Now()
		if cl.c.api == musterGangs {
			took, err := cl.untilRefused(ctx, g, began)
			if err != nil {
				return out, cl.withLog(err)
			}
			answers.add(began, began.Add(took), true)
		}
		err := seen.until(ctx, 0, r.o.patience, cl.failed, func() bool {
			for _, name := range g.podNames() {
				if at := seen.pods[name].refused; !at.IsZero() {
					if at.Before(began) { // while the last pod was created
						at = began
					}
					refusals.add(began, at, true)
					return true
				}
			}
			return false
		})
		if err != nil {
			return out, cl.withLog(err)
		}
		if err := cl.deleteGangs(ctx, g); err != nil {
			return out, err
		}
		if err := pause(ctx, 10*probeGap); err != nil {
			return out, err
		}
	}
	if len(answers.seconds) > 0 {
		out.add(refusalMedian, answers.ms(0.5))
		out.add(refusal99, answers.ms(0.99))
	}
	out.add(podRefused50, refusals.ms(0.5))
	out.add(podRefused99, refusals.ms(0.99))
	return out, addUsage(cl, &out)
}

// untilRefused waits for the final condition of the PodGroup: the reason why its gang is not admitted.
func (cl *cluster) untilRefused(ctx context.Context, g gang, began time.Time) (time.Duration, error) {
	limited, cancel := context.WithTimeoutCause(ctx, cl.o.patience, unfinished{fmt.Errorf("no refusal of %s after %s", g.name, cl.o.patience)})
	defer cancel()
	err := controlplane.Until(limited, cl.dynamic.Resource(podGroups).Namespace(namespace), metav1.ListOptions{FieldSelector: "metadata.name=" + g.name},
		func(found []*unstructured.Unstructured) bool { return len(found) == 1 && final(found[0]) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return 0, context.Cause(limited)
	}
	return time.Since(began), err
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
		case v2alpha2.ReasonTooLarge, v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonInsufficientResources, v2alpha2.ReasonFragmented, v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonNodesUnavailable:
			return true
		}
	}
	return false
}
