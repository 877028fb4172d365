// SPDX-License-Identifier: Apache-2.0

// Package report informs users about their gangs: it writes the status of PodGroups, events, and the condition
// PodScheduled of gated pods.
//
// It makes no scheduling decisions. Code that changes a gang marks it (Mark, cheap). Workers outside of the
// scheduling loop then read the facts from the registry, let package podgroup compute the status, and write it if it
// differs from the status in the API server. Only this package writes to PodGroups (docs/decisions, G14).
//
// The package also has the clients of custom resources that the scheduler reads: PodGroups and Topologies.
//
// Writes compete with bindings for the API server, so their number is limited:
//
//   - Marks are collected for 25 ms. A status is written immediately only if a change occurred for which clients may
//     wait (the status of a condition, or a reason that lasts). Reasons that pass by themselves (Binding,
//     BehindInQueue, WaitingForPods) and counts wait for StatusInterval, a PodGroup's first status of that kind for 0.2
//     s, and the numbers of a refusal, which change with every attempt, for 30 s.
//   - There is one event per gang and change of reason, two seconds after the change, so that a sequence of changes
//     causes one event. It is emitted only after its status has been written.
//   - There is one patch per pod and reason, and one event for the pods of a leaf.
package report
