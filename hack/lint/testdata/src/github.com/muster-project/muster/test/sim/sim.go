// Package sim is one that only tests import.
package sim

// Steps is used by the packages under test.
const Steps = 1
