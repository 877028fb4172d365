// SPDX-License-Identifier: Apache-2.0

// Package validation validates PodGroups. It returns all errors together, each with the path of its field. The package
// is pure: the webhook and the scheduler call the same functions.
//
// The rules about the tree are those of package gang, whose problems this package maps to field paths; this package
// adds the rules that do not concern the tree. Source: KAI Scheduler's minSubGroups proposal, "Validation Rules".
package validation
