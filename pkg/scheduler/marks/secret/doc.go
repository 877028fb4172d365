// SPDX-License-Identifier: Apache-2.0

// Package secret reads the keys with which the marks of bound pods are signed (package marks) from a Secret in the
// scheduler's namespace, follows their rotation, and creates the first key.
//
// The Secret has an entry per key, named by the key's id, and the entry "current" with the id of the signing key. It
// is read by name every 30 seconds, and shortly after a mark with an unknown key was found. It is not watched, so
// that permission to get this one Secret is sufficient.
//
// Without a key the scheduler continues: gangs are admitted as usual, bindings carry no mark, and partially bound
// gangs are completed but never released.
package secret
