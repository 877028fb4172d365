// Package observed translates API objects to the plain facts that the pure
// packages decide by: a PodGroup's spec to its tree, a pod to its gang, its leaf
// and the class of pods that the scheduler treats alike; a PodCliqueSet, its
// PodCliques and scaling groups and their pods to what pkg/lifecycle decides by.
//
// No client, no clock; an object that makes no sense is answered with an error
// for people.
package observed
