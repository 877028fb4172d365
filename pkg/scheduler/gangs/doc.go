// SPDX-License-Identifier: Apache-2.0

// Package gangs records which gangs exist, the state and node of each of their pods, and which gang is tried
// next.
//
// It is the in-memory state of the scheduler's gang plugins; all of it can be rebuilt from pods and PodGroups. Informer
// handlers and extension points report changes to the Registry, which returns Effects: pods to activate and PodGroups
// whose status must be checked. The package has no client, no clock (now is an argument; only WaitAtBarrier waits, by
// Options.Clock) and no logger. It never calls the scheduling queue, because the queue calls it while holding the
// queue's own lock (PreEnqueue, Less). The lock order is therefore queue, then Registry, and callers apply Effects only
// after the call has returned.
//
// The cost of an event does not grow with the size of the gang: a changed member adds the difference to the numbers of
// its gang (Registry.recount, package count), and gang.Tally evaluates the tree. Indices (Registry.reindex) find the
// gangs that a question concerns: timers, gangs worth an attempt by rank, gangs that may be partial. Only BeginAttempt,
// CommitPlan and Facts visit all members, once per attempt and per status.
//
// The life cycle of a gang: its pods are gated until the existing pods can satisfy the tree. One of them is then
// elected leader. The leader's cycle plans the whole tree (BeginAttempt, CommitPlan). The planned members are handed
// out one after another (NextMember) and assumed; a gang of a higher priority may pass meanwhile (pass.go). Each of
// them waits at the barrier until every member of the plan has arrived (WaitAtBarrier); then all are bound. A plan that
// loses a member before the barrier opens is aborted, and none of its members is bound. The same applies to a plan
// whose sub-group or gang lost its last bound pod in the meantime, unless the plan itself satisfies that group.
//
// The Phase of a gang is where it stands on this way. A gang without trouble passes Idle, Complete, Elected, Queued,
// Popped, Planning and Committed, and surplus begins again with Complete. A refused one waits (waiting.go): Lacking
// room, or Parked until an event may help and its turn has come. The changes that exist (a test compares them with
// those of the simulation):
//
//	Idle      -> Complete, Gated, Committed
//	Complete  -> Idle, Gated, Elected
//	Gated     -> Idle, Complete, Committed
//	Elected   -> Queued, Popped, Committed
//	Queued    -> Elected, Popped, Committed
//	Popped    -> Elected, Yielding, Planning
//	Yielding  -> Elected
//	Planning  -> Elected, Lacking, Parked, Committed
//	Lacking   -> Elected
//	Parked    -> Elected
//	Committed -> Complete
//
// Idle, Complete and Gated follow from any phase with a leader too: when the pods of the gang change, the leader or the
// task may be another one. Committed follows from Idle, Gated, Elected and Queued if the gang changes while its attempt
// is running, in a way that the plan allows.
//
// A gang that was refused may decide that pods of lower priority end (maypreempt.go). It stays in the phases of refused
// gangs meanwhile, and is retried when the decision is recorded, and when room becomes free.
//
// Victims and Preempt determine which units of gangs may be preempted by pods without a gang, and Candidates which by
// gangs. Both compute the units by package preemption.
package gangs
