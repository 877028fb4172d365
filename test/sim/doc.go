// SPDX-License-Identifier: Apache-2.0

// Package sim is a simulated cluster for tests: an API server in memory, caches that lag, garbage collector, kubelets,
// gang admission, and the real controllers of pkg/controllers, stepped by hand with a virtual clock. All work is done
// in steps, so a run is repeatable: Cluster takes its steps in a fixed order, or in an order that a seed determines.
// The seed does not determine the order of requests that one pass of a controller sends in parallel, and therefore not
// which of them are the last before a crash; their effects are shown ordered by name. Nothing else happens during a
// pass, unless Options.Interleaved lets the other controllers take steps before each of its writes.
//
//	c := sim.New(t, sim.Options{Nodes: sim.Nodes(3, 8)})
//	c.Create(set)
//	c.Advance(time.Minute)
//	c.Timeline.Golden(t, "start")
//
// Pods fail by Kubelet.FailReadiness, Exit and Evict, nodes by LoseNode and DeleteNode. testdata has the timelines of
// whole scenarios; termination-climbs.txt is a good example.
//
// Real parts: the reconcilers with their watch handlers, predicates, cache selectors and indexes, registered with a
// manager that runs nothing; the scheduler's registry and planner; the status of PodGroups (podgroup.Status). Simulated
// parts: api.go (no validation, no defaults except those of pods that matter here, no admission), kubelet.go and
// scheduler.go. Only tests import the package.
package sim
