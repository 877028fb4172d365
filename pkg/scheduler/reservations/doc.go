// SPDX-License-Identifier: Apache-2.0

// Package reservations records room on nodes that is reserved for the pods of an owner, until one of them is bound in
// its place or its time is over. Its owners are leaves of gangs whose pods are being replaced, and gangs that wait
// until the pods that they preempt have ended.
//
// A Reservation says how much is reserved on which node, for whom, and from whom: from pods of the same or a lower
// priority. For a leaf it is the room of one pod. For a whole gang it is that of all its pods on the node, so that a
// gang of any size has at most one on each node. Set contains the reservations; View is what they leave to others at
// one moment. Nothing here knows why room is reserved (gangs), or how much a pod uses and a node has (kubescheduler).
//
// The package is pure: the current time is an argument, and it takes no lock.
package reservations
