// SPDX-License-Identifier: Apache-2.0

// Package observed reads the facts that pkg/lifecycle decides on from workload objects: a PodCliqueSet, its PodCliques
// and scaling groups, and their pods. pkg/podgroup reads the facts about PodGroups for the scheduler.
//
// It uses no client and no clock.
package observed
