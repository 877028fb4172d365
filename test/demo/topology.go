// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// The gangs of which each requires one rack.
var rings = []string{"ring-a", "ring-b", "ring-c", "ring-d", "ring-e"}

// ring is a PodGroup that requires a rack, and a Job with its pods, of 4 GPUs each.
const ring = `
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: %[1]s}
spec:
  minMember: %[2]d
  topologyConstraint: {topology: fabric, requiredTopologyLevel: topology.example.com/rack}
---
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s}
spec:
  completions: %[2]d
  parallelism: %[2]d
  completionMode: Indexed
  template:
    metadata: {annotations: {pod-group-name: %[1]s}}
    spec:
      schedulerName: muster-scheduler
      restartPolicy: Never
      containers:
      - name: worker
        image: busybox:1.37
        resources: {limits: {nvidia.com/gpu: 4}}
`

const fabric = `
apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: fabric}
spec:
  levels: [{nodeLabel: topology.example.com/block}, {nodeLabel: topology.example.com/rack}]
`

// topology returns the step in which gangs require one rack each.
func topology() []step {
	first, last := rings[:4], rings[4]
	claims := []claim{free(16), waits(last, v2alpha2.ReasonTopologyUnavailable), {"its status says how much room the racks have", func(s scene) bool {
		g := s.group(last)
		return g != nil && strings.Contains(g.Status.Summary, "no rack has room for the gang (2 pods of 4 nvidia.com/gpu): rack rack-000 has room for 1")
	}}}
	for _, name := range first {
		claims = append(claims, admitted(name, 3), inOneRack(name))
	}
	return []step{{
		title: "All others are deleted; then ring-a to ring-d of 3 pods of 4 GPUs, and ring-e of 2",
		why: "Their pods talk to each other all the time, so each gang requires one rack. The first four get a rack each. 16 GPUs are " +
			"free then, twice as many as ring-e needs, but 4 in each rack: it waits, and says so.",
		do: func(ctx context.Context, st *stage) error {
			if err := errors.Join(st.delete(ctx, slices.Concat(st.chat, st.inference, st.tuning)...), st.cp.ApplyYAML(ctx, fabric)); err != nil {
				return err
			}
			wait := []string{"wait", "--for=condition=Admitted", "--timeout=60s"}
			for _, name := range first {
				if err := st.cp.ApplyYAML(ctx, fmt.Sprintf(ring, name, 3)); err != nil {
					return err
				}
				wait = append(wait, "pg/"+name)
			}
			if _, err := st.kubectl(ctx, wait...); err != nil {
				return err
			}
			return st.cp.ApplyYAML(ctx, fmt.Sprintf(ring, last, 2))
		},
		claims: claims,
	}}
}

// inOneRack claims that all pods of a gang are in one rack, and that its status names it.
func inOneRack(name string) claim {
	return claim{name + " runs in one rack, which its status names", func(s scene) bool {
		racks := map[string]bool{}
		for _, pod := range s.pods {
			if gangOf(pod) == name && pod.Spec.NodeName != "" {
				racks[named(s.nodes, pod.Spec.NodeName).Labels[controlplane.RackLabel]] = true
			}
		}
		g := s.group(name)
		for rack := range racks {
			return len(racks) == 1 && g != nil && g.Status.Placement == "rack "+rack
		}
		return false
	}}
}
