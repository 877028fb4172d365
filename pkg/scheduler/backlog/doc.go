// SPDX-License-Identifier: Apache-2.0

// Package backlog knows why refused gangs and pods without a gang wait, and what wakes them.
//
// A refused Attempt says what its gang lacks: room for pods of some shapes (kubescheduler.Shapes counts how many fit),
// or an event of another kind (causes), or of certain objects (topics): pods with labels or host ports, volumes,
// claims. Refuse hands this to gangs.Registry, where the gang waits. Events of the scheduler's cache are recorded in
// constant time (Observe) and evaluated together (Evaluate): the Registry then returns the gangs that they may help.
// Pods without a gang for which no node has room wait here, and are woken in as many as fit.
//
// Room that is reserved from a gang or pod does not count for it.
//
// The lock of a Backlog (mu) is acquired before that of the Registry. Observe, which runs for each event, takes
// neither: the pods of events have a lock of their own (podMu).
package backlog
