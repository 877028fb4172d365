// SPDX-License-Identifier: Apache-2.0

// Package gangstate records which gangs exist, the state and node of each of their pods, and which gang is tried
// next.
//
// It is the in-memory state of the scheduler's gang plugins; all of it can be rebuilt from pods and PodGroups.
// Informer handlers and extension points report changes to the Registry, which returns Effects: pods to activate and
// PodGroups whose status must be checked. The package has no client, no clock (now is an argument; only Arrive waits,
// by Options.Clock) and no logger. It never calls the scheduling queue, because the queue calls it while holding the
// queue's own lock (PreEnqueue, Less). The lock order is therefore queue, then Registry, and callers apply Effects
// only after the call has returned.
//
// The cost of an event does not grow with the size of the gang. The contribution of each member to the numbers of its
// gang (share) is stored; a changed member adds the difference (Registry.recount), and gang.Tally evaluates the tree.
// Indices (Registry.reindex) find the gangs that a question concerns: timers, gangs worth an attempt by rank, gangs
// that may be partial. Only Begin, Commit and Facts visit all members, once per attempt and per status.
//
// The life cycle of a gang: its pods are gated until the existing pods can satisfy the tree. One of them is then
// elected leader. The leader's cycle plans the whole tree (Begin, Commit). The planned members are handed out one
// after another (Next) and assumed. Each of them waits at the barrier until every member of the plan has arrived
// (Arrive); then all are bound. A plan that loses a member before the barrier opens is aborted, and none of its
// members is bound. The same applies to a plan whose sub-group or gang lost its last bound pod in the meantime,
// unless the plan itself satisfies that group.
//
// Victims and Preempt determine which pods of gangs may be preempted by pods without a gang.
package gangstate
