// Command performance is the benchmarks; `make bench` runs both, and docs/benchmarks.md explains the figures.
//
// "performance workload" measures the workload API: PodCliqueSets are created, scaled and deleted, with muster-controller,
// muster-scheduler, kube-controller-manager and KWOK running, beside a floor where a plain client makes the same objects.
//
// Without that word it is the drain benchmark: every pod exists before the scheduler starts, and the time from its start to
// the last binding is what counts.
//
// Three contestants run the same drain, each on a fresh control plane, all in one invocation, since times move with the
// machine and only the ratios mean something:
//
//   - muster: muster-scheduler, the pods in gangs, under the identity and the rights of its manifests
//   - stock: kube-scheduler of the same Kubernetes version, the same pods without gangs
//   - floor: no scheduler; the bindings muster made are posted by a plain client, 32 in parallel
//
// and, if asked for, stock-default: kube-scheduler with its default client limits of 50 requests per second.
//
// Nothing here fails for being slow. It fails when a scheduler ends, stops binding, or puts too much on a node.
package main
