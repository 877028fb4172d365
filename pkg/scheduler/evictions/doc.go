// SPDX-License-Identifier: Apache-2.0

// Package evictions describes how pods end so that a gang, or a pod without one, can start (docs/decisions, G23, G24):
// from the decision to the end of the last victim. Package evict sends the requests.
//
// Before the Stage Checked nothing has ended, and an eviction that is not needed any more, or not possible, ends
// without a trace. From Checked on all victims are deleted, whatever happens, because part of a gang is of no use to
// its owner. The changes that exist (a test compares them with those of the simulations):
//
//	Decided   -> Recorded, Ended
//	Recorded  -> Marked, Checked, Ended
//	Marked    -> Announced, Ended
//	Announced -> Checked, Ended
//	Checked   -> Deleted
//	Deleted   -> Ended
//
// A pod without a gang has no status of a gang to record in: its evictions begin with Recorded, and Checked follows.
// Those of an earlier process go on with Checked.
package evictions
