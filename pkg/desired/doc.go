// Package desired turns facts and decisions about workloads into what is to be written: the children of a PodCliqueSet at
// every level, what becomes of those that exist (Updated), and the status of its three kinds. Values only, no I/O, no
// clock. The status of PodGroups is made by pkg/podgroup.
package desired
