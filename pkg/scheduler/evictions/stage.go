// SPDX-License-Identifier: Apache-2.0

package evictions

// Stage is the progress of an Eviction. The package documentation has the table of changes.
type Stage int

const (
	Decided Stage = iota
	Recorded
	Marked
	Announced
	Checked
	Deleted
	Ended
)

var stageNames = [...]string{"Decided", "Recorded", "Marked", "Announced", "Checked", "Deleted", "Ended"}

// String returns the name of the constant.
func (s Stage) String() string { return stageNames[s] }
