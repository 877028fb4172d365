// Package gangadmission is the two scheduler plugins that admit gangs whole or not at all.
//
// GangGate holds the pods of a gang before the scheduling queue (PreEnqueue, no registered events). GangAdmission does
// the rest: its PreFilter plans the whole tree when the gang's leader is scheduled, hands each member its one node, and
// its Bind is the barrier at which members wait for each other. Two names, because in a scheduler without Attach every
// cluster event would walk all held pods if the plugin that holds them had registered for events. Both share one core,
// Gangs, one per process.
//
// Attach adds what needs the scheduler itself: a queue that keeps gated pods out of the stock queue, a loop that takes the
// members of a plan back to back, and wake-ups by what a refused gang lacks (wakeups.go, waitlist.go) instead of queueing
// hints (hints.go).
//
// Each extension point has a file. What they decide with is in gangstate (who may go), placement (where) and kubescheduler
// (what the stock filters say); what users see is worded by podgroup and written by report.
package gangadmission
