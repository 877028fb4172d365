// Package children finds, makes and removes the objects that a controller's object owns.
//
// A child is found by the UID of its controlling owner, through an index of the cache; its name is never taken apart.
// Names are fixed in advance, so a controller whose cache is a step behind asks for the same object again and is told
// that it exists: nothing has to be expected, and nothing is remembered that a crash could lose.
//
// An object that is in the way of a needed name is never overwritten. Create tells the three cases apart: ours (the cache
// was behind), one that is about to go (wait), and one that somebody else has (a person has to choose).
package children
