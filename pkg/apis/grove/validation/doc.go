// Package validation reports whether a PodCliqueSet, PodCliqueScalingGroup or
// PodClique is valid, and whether a change of one is allowed: all errors at
// once, each with the path of its field, and warnings about what is accepted
// but not acted on. It is pure: the webhooks, the controllers and the command
// line call the same functions.
//
// What an unset field means is SetDefaults' affair; the functions here apply it
// to a copy first, so that an object which got past admission is judged like
// one that did not. What a change is judged by beside the object comes in as
// OwnerContext.
//
// The CRDs state again, in CEL, what must hold without the webhook: the floors
// and what is immutable.
package validation
