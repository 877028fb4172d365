// Package desired turns facts and decisions into what is to be written: values only, no I/O, no clock.
//
// For the scheduler the status of PodGroups. For the workload API the children of a PodCliqueSet at every level, what
// becomes of those that exist (Updated), and the status of its three kinds.
package desired
