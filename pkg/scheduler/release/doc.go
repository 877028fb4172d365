// SPDX-License-Identifier: Apache-2.0

// Package release releases the pods of a gang that a crash or a failed binding left partially bound, if the gang could
// not be completed within the repair time (docs/decisions, G11). The same applies to a sub-group above the minimum
// (docs/decisions, G20).
//
// Package gangs decides which pods these are (partial.go, torn.go). This package does the work that needs a client: it
// checks whether the API server answers, which is the condition for the repair time to run, deletes the pods, and emits
// events. Because of this check it also reports the end of an outage, which ends every gang's back-off.
package release
