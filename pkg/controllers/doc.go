// SPDX-License-Identifier: Apache-2.0

// Package controllers contains the controllers of the workload API, each in a package of its own.
//
//	PodCliqueSet           its PodGroups first, then standalone PodCliques, PodCliqueScalingGroups, Services, autoscalers
//	PodCliqueScalingGroup  the member PodCliques of its replicas, once the PodGroup lists them
//	PodClique              its pods
//
// Every pass reads, observes, decides, records and acts. pkg/observed reads the facts, pkg/lifecycle makes the
// decisions, and pkg/desired builds the objects; the controllers have the clients, the watches and the clock. No state
// is kept between passes: children have fixed names, so that a controller that does not observe an object it has
// created requests the same object again.
package controllers
