// Package gang answers "are there enough pods?" for a PodGroup tree.
//
// A tree is built once from its specification and never changes. It stores no pods: the same question is asked with
// different counts (created, planned, bound, ready), so counts are an argument everywhere:
//
//	tree, err := gang.Build(gang.Node{MinSubGroup: ptr(3)}, groups)
//	tree.Satisfied(gang.Counts{"prefill-0": 8, "prefill-1": 8, "prefill-3": 8}) // true: 3 of 4 children
//
// A leaf needs pods (minMember); every group above it needs direct children that are satisfied themselves
// (minSubGroup, all of them by default). A PodGroup without sub-groups is a tree of one leaf: the root, named "".
//
// The package is pure: standard library only, no clock, no logger. Everything is deterministic; groups are always
// visited in the order of the specification. Source: KAI Scheduler's minSubGroups proposal.
package gang
