// Package repair releases what a crash or a failed binding left of a gang that was never whole, once it could not be
// completed in the repair time (docs/decisions, G11).
//
// Which pods those are is decided by gangstate, from the objects alone (see its partial.go). This package adds what
// needs a client: it finds out whether the API server answers, which is what lets the clock run, deletes the pods, and
// emits events. As it is the one that asks, it also reports when an outage is over, which ends every gang's back-off.
package repair
