// Package lifecycle decides what a workload's controllers do next: how many pods a clique must keep, what counts as
// available, which pods and replicas to make and to remove, and who waits for whom at the start.
//
// Facts in, decision out. No client, no clock (time is an argument), no API objects: pkg/observed makes the facts,
// pkg/desired makes the objects that are to be written. Whatever is returned in a list is sorted, so that equal facts
// give equal decisions.
package lifecycle
