// Package markkeys reads the keys that the marks of bound pods are signed with (package mark) from a Secret in the
// scheduler's namespace, follows their rotation, and makes the first one.
//
// The Secret has an entry per key, by the key's id, and the entry "current" with the id of the one to sign with. It is read
// by name every 30 seconds, and soon after a mark was seen whose key is not known; it is not watched, so that the right to
// get this one Secret is enough.
//
// Without a key the scheduler goes on: gangs are admitted as ever, bindings carry no mark, and gangs that are bound in part
// are completed but never released.
package markkeys
