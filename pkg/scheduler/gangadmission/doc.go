// SPDX-License-Identifier: Apache-2.0

// Package gangadmission implements the two scheduler plugins that admit gangs all or nothing.
//
// GangGate keeps the pods of a gang out of the scheduling queue (PreEnqueue, no registered events). GangAdmission does
// the rest: its PreFilter plans the whole tree when the gang's leader is scheduled and returns the one planned node of
// each member, and its Bind is the barrier at which members wait for each other. Both share one core, Gangs, one per
// process.
//
// Attach adds the parts that need access to the scheduler itself: a queue that keeps gated pods out of the stock
// queue, a loop that schedules the members of a plan consecutively, and the backlog of refused gangs and pods (package
// backlog). It is required.
//
// The extension points are methods of Gate (preenqueue.go) and Admission (admission.go lists them; filter.go,
// postfilter.go, reserve.go, bind.go). The decisions are made in gangs (which gang is next), placement (which nodes),
// kubescheduler (the results of the stock filters) and backlog (what wakes a refused gang). podgroup formats the
// messages that users see, and report writes them.
package gangadmission
