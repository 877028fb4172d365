// SPDX-License-Identifier: Apache-2.0

// Command packing measures how well gangs are packed into the racks and blocks of uneven fabrics. Streams of jobs of real
// clusters are played in virtual time by several contestants:
//
//   - muster: each job is a gang that prefers a rack, on nodes ordered by the default profile's scores (LeastAllocated)
//   - muster-required: the same, but gangs that fit in an empty rack require one
//   - muster-most-allocated, muster-required-most-allocated: the same two with this scoring strategy in the profile
//   - least-allocated, most-allocated: the stock scheduler's cycle with this strategy for each pod
//
// What differs is only where pods are placed. All contestants place all pods of a job or none, jobs that wait are tried in the
// order in which they came whenever one comes or ends, and those that do not fit let later ones pass. The planner, the filters,
// the scores and the cycle of a pod are the real ones, on the scheduler's own cache; there is no API server and no loop.
//
// Who is right about free GPUs is a judge (occupancy) that sees only the placements. A run fails if a node gets too much, if
// a required gang is split, and if a contestant refuses a job for which there is room: for equal pods the numbers decide.
//
//	go run ./test/packing -settings gangs -contestants muster,most-allocated -seeds 5
package main
