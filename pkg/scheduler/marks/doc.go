// SPDX-License-Identifier: Apache-2.0

// Package marks creates and verifies the annotation that muster-scheduler writes to every gang member it binds. It
// records which plan bound the pod, for which PodGroup, and the facts needed to prove after a crash that the gang
// never had its minimum. The proof itself is here too (ProvesPartial).
//
// Users with permission to patch pods can write any annotation. A mark is therefore signed with a key that only this
// installation of the scheduler has, and the signature covers the UID of the pod: a mark that was copied to another
// pod is not verified successfully.
//
// The package is pure. Package secret reads the keys.
package marks
