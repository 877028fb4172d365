// SPDX-License-Identifier: Apache-2.0

// Package gang decides whether a PodGroup tree has enough pods.
//
// A tree is built once from its specification and never changes. It stores no pods: callers ask the same question
// with different counts (created, planned, bound, ready), so the functions take the counts as an argument:
//
//	tree, err := gang.Build(gang.Node{MinSubGroup: ptr(3)}, groups)
//	tree.Satisfied(gang.Counts{"prefill-0": 8, "prefill-1": 8, "prefill-3": 8}) // true: 3 of 4 children
//
// A leaf needs pods (minMember); every group above it needs direct children that are satisfied themselves
// (minSubGroup, all of them by default). A PodGroup without sub-groups is a tree of one leaf: the root, named "".
//
// The package is pure: it uses the standard library only, and no clock or logger. All results are deterministic;
// groups are always visited in the order of the specification. Source: KAI Scheduler's minSubGroups proposal.
package gang
