// SPDX-License-Identifier: Apache-2.0

// Command performance is the benchmarks; docs/performance.md explains the shapes and the figures.
//
// The shape "workload" measures the workload API: PodCliqueSets are created, scaled and deleted, with muster-controller,
// muster-scheduler, kube-controller-manager and KWOK running, beside a floor where a plain client makes the same objects.
//
// The other shapes measure schedulers: each shape of work is done by every contestant in turn, each time on a fresh
// control plane, all in one invocation, since times move with the machine and only the ratios mean something:
//
//   - muster: muster-scheduler, the pods in gangs, under the identity and the rights of its manifests
//   - muster-before: another build of it
//   - coscheduling: kube-scheduler with the Coscheduling plugin, the pods in its PodGroups
//   - stock: kube-scheduler of the same Kubernetes version, the same pods without gangs
//   - floor: no scheduler; the bindings muster made are posted by a plain client, 32 in parallel
//   - stock-default: kube-scheduler with its default client limits of 50 requests per second
//
// Nothing here fails for being slow. It fails when a scheduler ends or puts too much on a node, or when muster-scheduler
// stops binding; another contestant that does so has not finished, and the report says it.
package main
