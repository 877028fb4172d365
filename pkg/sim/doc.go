// Package sim is a cluster for tests: an API server in memory, caches that lag, garbage collector, kubelets and gang
// admission, and the real controllers of pkg/controllers, stepped by hand with a virtual clock. Nothing runs beside a
// step, so a run is repeatable: Cluster takes its steps in a fixed order, or in one that a seed decides. What a seed does
// not decide is the order of requests that one pass of a controller makes beside each other, and so which of them the
// last before a crash are; what they did is shown ordered by name.
//
//	c := sim.New(t, sim.Options{Nodes: sim.Nodes(3, 8)})
//	c.Create(set)
//	c.Advance(time.Minute)
//	c.Timeline.Golden(t, "start")
//
// Pods fail by Kubelet.FailReadiness, Exit and Evict, nodes by LoseNode. testdata has the timelines of whole stories: read
// termination-climbs.txt for one.
//
// What is real: the reconcilers with their watch handlers, predicates, cache selectors and indexes, registered with a
// manager that runs nothing; the scheduler's registry and planner; the status of
// PodGroups (podgroup.Status). What stands in: see api.go (no validation, no defaults but those of pods that matter here,
// no admission), kubelet.go and scheduler.go. Only tests import the package.
package sim
