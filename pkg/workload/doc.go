// SPDX-License-Identifier: Apache-2.0

// Package workload translates between the objects of a workload and the facts and decisions of pkg/lifecycle. From a
// PodCliqueSet, its PodCliques and scaling groups, and their pods it reads the facts; functions that do so are named
// ...Facts or for the value. From facts and decisions it builds the children of a PodCliqueSet at every level, changes
// of existing children (Updated), and the status of the three workload kinds. pkg/podgroup does the same for PodGroups.
//
// It decides nothing but which conditions and events tell of what is decided, and uses no client and no clock.
package workload
