// SPDX-License-Identifier: Apache-2.0

// Package placement decides on which nodes the pods of a gang are placed: either all pods that the tree's minimum
// needs, or none.
//
// The input is a Problem (the tree, the pods that count already, the waiting pods) and a World (a cluster on which
// one more pod can be placed, and placements can be undone). The output is a list of placements, or a Shortfall that
// records which groups and leaves lacked what.
//
//	plan, short := placement.Minimum(problem, world, placement.Budget{Expired: deadline})
//
// # How a plan is found
//
// The steps below run in order of increasing cost. Each one is taken only if the previous one failed.
//
//  1. Numbers (demand.go). If there are too few pods, or more are needed than there is capacity for, no pod is placed.
//     MayFit answers the same question outside of a plan.
//  2. A walk over the tree in order of preference that places pods on the way (fill.go). If all pods fit, it calls
//     World.Place exactly once per pod.
//  3. The preferred and the cheapest choice of children (choice.go), with the pods that are hardest to place first
//     (pack.go). Pods that depend on the topology domains of others start with this step, because the best domain
//     depends on all pods that must be placed in it. If the pods after it cannot be placed, the next domain is tried; a
//     pod that must follow others waits for the first of these.
//  4. Other choices of children, each with fewer children of some kind than a choice that failed (search.go).
//  5. The first choices again, with their pods in other orders.
//  6. The first choices with pods that depend on others, if they and the cluster are small: all nodes for each of their
//     pods (exact.go).
//
// # Topology levels
//
// A group may require that all pods below it are in one domain of a topology level (Problem.Required). If pods of the
// group run, their domain is the only one (groupdomain.go); a group whose pods run in several, or in none, gets no
// further pod. Pods on nodes that do not exist are ignored; if there are no others, the group waits until they are
// deleted. A group that is planned itself tries its domains one after another: the tightest that has room for all its
// waiting pods, then those with the most room; of equal ones those in the wider domain with the least room. The levels
// below it are part of each choice (units.go): domains are assigned to them by numbers, all levels at once
// (assigndomains.go), and the pods are placed in them by steps 2 to 6 (arrange.go). A domain that refuses what the
// numbers allow changes the numbers, and the assignment is made again. If pods of several classes cannot be placed,
// domains are assigned by what is left for the others: heavier pods take the room of lighter ones on the same nodes.
// Then each single pod is assigned a domain of the narrowest level, too, or the nodes outside of all. A level is wider
// than another if its domains enclose those of the other.
//
// A group may also prefer a level (Problem.Preferred). Minimum first tries to place all such groups in one domain each,
// as if the level were required. If that fails, or pods have to follow others that run, a walk lets each group take
// what it can get (prefer.go): one domain of its level, else one of a wider level, else several; of several domains
// those in which pods of the group run come first, then as few as possible. Of a group that needs only some of its
// children, those that have a domain come first. If the walk fails, or Budget.PreferencesExpired ends it, the
// preferences are ignored: a plan is found whenever one is found without them. Units of surplus, and single pods, are
// planned by the walk in the same way.
//
// Surplus is planned one unit at a time (Unit), then one pod at a time (Singles).
//
// # What is exact, and what is a heuristic
//
// The planning of equal pods is exact: if all waiting pods that the minimum, or a unit of surplus, can use are of one
// Independent class, a plan is found whenever one exists. This holds for any Budget.Attempts and Budget.Placements,
// provided that the time does not run out. For such pods only the number matters, because the World accepts the same
// number of them in any order, and the choice of children with the fewest pods is always tried.
//
// This includes required levels, at most one on each path or several of which each domain is inside one of every wider
// level, except that all choices and assignments are tried then, however many there are, until the time is over.
//
// Three more properties are exact. A plan never contradicts the answers of the World. A Shortfall that is Exhausted is
// final if it has no Attempts, or if each choice has pods that depend on others: it is then not Exhausted unless step
// 6, or the domains, have excluded every choice, or the numbers every assignment of domains. MayFit never returns false
// if a plan exists, and for pods of one class it returns true only if the numbers allow a plan.
//
// Everything else is a heuristic, because the World selects the nodes and only some orders and choices are tried:
// independent pods of several classes, and pods that depend on others and are too many for step 6. Tests compare the
// planner with an exhaustive search on thousands of small instances, and require that it finds 99.5 % of the plans that
// exist and never claims that there is none. For plans hidden in larger instances that leave no room to spare they
// require 98 %. Both are measured on a simple World here, and for required pod affinity on the stock filters of
// kube-scheduler in pkg/scheduler/kubescheduler. docs/testing.md has the results.
//
// # What it costs
//
// The planner calls Budget.Expired before every call of World.Place, and in the loops between these calls. After
// Budget.Expired has returned true, World.Place is not called again. A search that was cut short is continued with
// Budget.Skip; this works because the order of the choices depends on the facts alone. The planner itself needs a
// fraction of a microsecond per pod (bench_test.go). It calls World.Kind and World.Capacity once per class, and
// World.Explain for a few refusals per Shortfall.
//
// Preferred levels cost no more than Budget.PreferencesExpired allows, and nothing if there are none.
//
// The package is pure: it uses no clock, logger or Kubernetes client, and the same facts lead to the same plan.
// Sources: KAI Scheduler's minSubGroups proposal; docs/decisions, G5.
package placement
