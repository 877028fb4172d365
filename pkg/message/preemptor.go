// SPDX-License-Identifier: Apache-2.0

package message

import "regexp"

// preemptor is how muster-scheduler names a gang that preempts, with its priority and in a PodGroup's condition also with that of the
// victim: namespace and name of a PodGroup, and numbers.
var preemptor = regexp.MustCompile(`\b[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])? \(priority -?[0-9]{1,10}( over -?[0-9]{1,10})?\)`)

// Preemptor returns the first gang in the message of a condition that is named as the preemptor: "ml/urgent (priority 1000)", or
// "ml/urgent (priority 1000 over 100)". "" if there is none. Whoever wrote the message, the result has at most 400 characters, all
// of them printable.
func Preemptor(text string) string { return preemptor.FindString(text) }
