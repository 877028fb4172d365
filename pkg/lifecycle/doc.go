// SPDX-License-Identifier: Apache-2.0

// Package lifecycle makes the decisions of the workload controllers: how many pods a clique must keep, which objects
// count as available, which pods and replicas to create and to delete, and which cliques wait for which others at the
// start.
//
// It takes facts and returns decisions. It uses no client, no clock (the time is an argument) and no API objects:
// pkg/workload reads the facts from objects, and builds the objects to write. Lists in decisions are
// sorted, so that equal facts give equal decisions.
package lifecycle
