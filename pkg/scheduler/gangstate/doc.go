// Package gangstate knows which gangs exist, which of their pods are where, and who may go next.
//
// It is the memory of the scheduler's gang plugins, and holds nothing that cannot be found again from pods and
// PodGroups. Informer handlers and extension points tell it what happened; it answers with Effects: pods to wake and
// PodGroups whose status is to be looked at. It has no client, no clock (now is an argument; only Arrive waits, by
// Options.Clock) and no logger, and never calls the scheduling queue: the queue calls it under the queue's own lock
// (PreEnqueue, Less), so the order of locks is queue, then Registry, and callers act on Effects only after the call
// has returned.
//
// What an event costs does not grow with the gang. What each member adds to the numbers of its gang (share) is kept; a
// member that changes adds the difference (Registry.recount), and gang.Tally says what that makes of the tree. Which gangs a
// question is about is found by indices (Registry.reindex): timers, gangs worth an attempt by rank, gangs that may be
// partial. Only Begin, Commit and Facts look at all members, once per attempt and per status.
//
// The life of a gang: its pods are held until the pods that exist can satisfy the tree; one of them is elected leader;
// the leader's cycle plans the whole tree (Begin, Commit); the planned members are handed out one after another (Next)
// and assumed; each waits at the barrier until every member of the plan has arrived (Arrive); then all are bound.
// A plan that loses a member before the barrier opens is aborted and nothing of it is bound. So is one whose sub-group or
// gang lost its last bound pod meanwhile, unless the plan makes it whole.
//
// Victims and Preempt say what pods without a gang may preempt of gangs.
package gangstate
