// SPDX-License-Identifier: Apache-2.0

package message

import "regexp"

// preemptorPattern is how muster-scheduler names a gang that preempts, with its priority and in a PodGroup's condition
// also with that of the victim: namespace and name of a PodGroup, and numbers.
const preemptorPattern = `\b[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])? \(priority -?[0-9]{1,10}( over -?[0-9]{1,10})?\)`

var (
	preemptor = regexp.MustCompile(preemptorPattern)
	// preemption is the first clause of a PodGroup's condition Preempted: a time, the preemptor, and what was lost.
	preemption = regexp.MustCompile(`\bpreempted at [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} UTC by ` + preemptorPattern + `: [ -:<-~]{1,100}`)
)

// Preemptor returns the first gang in the message of a condition that is named as the preemptor: "ml/urgent (priority
// 1000)", or "ml/urgent (priority 1000 over 100)". "" if there is none. Whoever wrote the message, the result has at
// most 400 characters, all of them printable.
func Preemptor(text string) string { return preemptor.FindString(text) }

// Preemption returns the first preemption in the message of a PodGroup's condition, with its time, its preemptor and
// what was lost: "preempted at 2026-03-01 10:31:35 UTC by ml/urgent (priority 1000 over 100): 4 pods above its
// minimum". "" if there is none. Whoever wrote the message, the result has at most 600 characters, all of them
// printable, and no semicolon.
func Preemption(text string) string { return preemption.FindString(text) }
