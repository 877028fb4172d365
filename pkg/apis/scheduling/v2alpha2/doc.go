// Package v2alpha2 holds the PodGroup of scheduling.run.ai/v2alpha2: a gang of
// pods, optionally a tree of sub-groups, that is scheduled whole or not at all.
//
// A pod belongs to the PodGroup of its namespace that its annotation
// pod-group-name names, and to the leaf of the tree that its label
// kai.scheduler/subgroup-name names.
//
// Users write spec, muster-scheduler alone writes status. What a valid spec is
// stands in package validation; what it means stands in package gang.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.run.ai
package v2alpha2
