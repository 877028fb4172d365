// SPDX-License-Identifier: Apache-2.0

// Package podgroup translates between PodGroup objects and the plain facts on which the scheduler decides, in both
// directions: a spec to its tree, a pod to its equivalence class, facts to status and events, and the result of a
// plan to the text that users read. Pure: no client, no clock.
//
// muster-scheduler uses it from its loop (Tree, ClassKey, Explain) and from its reporter (Status, Compare,
// StatusEvent).
package podgroup
