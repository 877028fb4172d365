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
// Cost compares two sets of victims. A decision is found in these steps, for units of the lowest priority first, and
// then also of the next ones until victims are found (choosevictims.go):
//
//  1. The numbers are compared as if all of them had ended. Often that is the end: no plan.
//  2. An offer is what has to end for one more pod on a node. The cheapest on each node are listed (offers.go).
//  3. If all pods have to be in one domain of a level, it is chosen: that in which the room for them costs the least.
//  4. Offers are taken, the cheapest for each pod that is gained first, until the numbers allow a plan. What the plan
//     lacks nevertheless is looked for next: pods of a class anywhere, or a domain for a group in the one around.
//  5. If that leads nowhere, all units are selected, and those left out that may not end together.
//  6. Units are taken back while a plan exists, the most valuable first; of others only parts end, if that suffices.
//  7. One or two units are exchanged for others while that is cheaper.
//
// So nobody ends of whom no room is needed, also where ending more pods helps less: required affinity, spread. A unit
// that may not end beside the selected ones counts as the smallest one around it that may (searchstate.go).
//
// # What is exact, and what is a heuristic
//
// Exact: after a Decision each gang has either its minimum or no pod. The result is minimal, unless the time or the
// number of plans was spent: with less of any workload the planner finds no plan. For gangs of equal pods, whose
// planning is exact, a Decision exists whenever one of at most 256 units of surplus does. Hopeless is a proof by
// numbers.
//
// A heuristic: whether a Decision is the cheapest; and whether one is found for pods that are not alike, or depend on
// domains of others. Tests compare both with an exhaustive search on thousands of small instances.
//
// # What it costs
//
// Each loop looks at the clock (Budget.Plan.Expired), or is over in a few steps for each pod and node. A search that
// is late returns the victims that it has, if they suffice. Otherwise the next one begins anew, since what was known
// may not hold any more.
//
// The package is pure: it uses no clock, logger or Kubernetes client, and the same facts lead to the same Decision.
// Source: docs/decisions, G21 and G22; KAI Scheduler's minSubGroups proposal, "Non-preemptible pods calculation".
package preemption
