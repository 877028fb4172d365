// SPDX-License-Identifier: Apache-2.0

// Package desired builds the objects to write from facts and decisions about workloads: the children of a PodCliqueSet
// at every level, changes of existing children (Updated), and the status of the three workload kinds. It computes
// values only, without I/O and without a clock. pkg/podgroup builds the status of PodGroups.
package desired
