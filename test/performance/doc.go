// SPDX-License-Identifier: Apache-2.0

// Command performance is the benchmarks; docs/performance.md explains the shapes, the contestants and the figures.
//
// Each shape of work is done by every contestant in turn, each time on a fresh control plane, all in one invocation, since times move
// with the machine and only the ratios mean something. The shape "workload" measures the workload API, the others schedulers.
//
// Nothing here fails for being slow. It fails when a scheduler ends or puts too much on a node, or when muster-scheduler
// stops binding; another contestant that does so has not finished, and the report says it.
package main
