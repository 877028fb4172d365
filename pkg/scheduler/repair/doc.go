// Package repair gives back what a crash or a failed binding left of a gang that was never whole, once it could not be
// completed in the repair time (decision G11).
//
// Which pods those are is decided by gangstate, from the objects alone (see its fragment.go). This package adds what
// needs a client: it finds out whether the API server answers, which is what lets the clock run, deletes the pods, and
// tells people. As it is the one that asks, it also says when an outage is over, which ends every gang's back-off.
package repair
