// SPDX-License-Identifier: Apache-2.0

// Package preemption decides which running pods end so that a gang of higher priority can start: the cheapest set of
// victims with which a plan for the whole minimum of the gang exists, or none.
//
// The input is the Problem of the gang (package placement), the workloads of lower priority that run, and a World that
// can remove their pods from the nodes. The output is a Decision: the victims and the plan, or the fact that ending all
// of them would not help.
//
// # What may be a victim
//
// A victim is a unit of what its owner loses (units.go): a pod without a gang, a single pod above minMember, a whole
// sub-group above minSubGroup, or the whole gang. After a Decision every gang has either none of its pods, or its
// minimum; and every sub-group that had its minimum has it still, or has no pod.
//
// # Which victims
//
// Cost compares two sets of victims. The search (search.go) frees a set that is sufficient, plans, takes back all units on
// whose nodes the plan puts nothing, and then others while a plan exists, the most valuable first. It does so from several
// starting sets, keeps the cheapest result, and then exchanges single units for cheaper ones. Each result is minimal: with any
// one of its units put back, the planner finds no plan.
//
// For gangs of equal pods the planner is exact, so a Decision exists whenever one does. Whether it is the cheapest is a
// heuristic; tests compare it with an exhaustive search on thousands of small instances.
//
// The package is pure: it uses no clock, logger or Kubernetes client, and the same facts lead to the same Decision.
// Source: docs/decisions, G21 and G22; KAI Scheduler's minSubGroups proposal, "Non-preemptible pods calculation".
package preemption
