// Package validation says whether a PodGroup is valid, all errors at once, each
// with the path of its field. It is pure: the webhook, the scheduler and the
// command line call the same functions.
//
// The rules about the tree are those of package gang, whose problems are mapped
// to field paths here; this package adds what is no matter of the tree. Source:
// KAI Scheduler's minSubGroups proposal, "Validation Rules".
package validation
