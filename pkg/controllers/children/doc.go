// SPDX-License-Identifier: Apache-2.0

// Package children reads, creates, updates and deletes the objects that a controller's object owns.
//
// A child is found by the UID of its controlling owner, through an index of the cache; its name is never parsed. Names
// are fixed in advance, so a controller whose cache is behind creates the same object again and learns that it exists.
// No expectations are kept, and there is no state that a crash could lose.
//
// An object that has a needed name is never overwritten. Create distinguishes three cases: the object has the same
// owner (the cache was behind), it is about to go (the controller waits), or it has another owner (a user has to
// decide).
package children
