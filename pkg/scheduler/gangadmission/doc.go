// Package gangadmission is the two scheduler plugins that admit gangs whole or not at all.
//
// GangGate holds the pods of a gang before the scheduling queue (PreEnqueue, no registered events). GangAdmission does
// the rest: its PreFilter plans the whole tree when the gang's leader is scheduled, hands each member its one node, and
// its Bind is the barrier at which members wait for each other. Two names, because every cluster event would walk all
// held pods if the plugin that holds them had registered for events. Both share one core, Gangs, one per process.
//
// Each extension point has a file. What they decide with is in gangstate (who may go), placement (where) and kube (what
// the stock filters say); what people see is written by report.
package gangadmission
