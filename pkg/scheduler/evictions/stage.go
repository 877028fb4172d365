// SPDX-License-Identifier: Apache-2.0

package evictions

// Stage is where an Eviction stands. The package documentation has the table of changes.
type Stage int

const (
	// Decided: an attempt found victims; this is being recorded in the status of the preemptor's PodGroup.
	Decided Stage = iota
	// Recorded: the record was observed; the victims are being marked.
	Recorded
	// Marked: all of them are; this is being recorded.
	Marked
	// Announced: the record was observed; the next attempt checks on a new snapshot which victims are needed still.
	Announced
	// Checked: these are being deleted, the others are spared.
	Checked
	// Deleted: all deletions were requested; the preemptor waits until the pods have ended.
	Deleted
	// Ended: the eviction is over, and nothing of it is left.
	Ended
)

var stageNames = [...]string{"Decided", "Recorded", "Marked", "Announced", "Checked", "Deleted", "Ended"}

// String returns the name of the constant.
func (s Stage) String() string { return stageNames[s] }
