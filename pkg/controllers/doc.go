// SPDX-License-Identifier: Apache-2.0

// Package controllers contains the controllers of the workload API, each in a package of its own.
//
//	PodCliqueSet           its PodGroups first, then standalone PodCliques, PodCliqueScalingGroups, Services, autoscalers
//	PodCliqueScalingGroup  the member PodCliques of its replicas, once the PodGroup lists them
//	PodClique              its pods
//	grouper                PodGroups of workloads of other controllers, one controller for each kind
//
// Every pass takes the same steps: it reads the objects, observes the facts in them, decides, creates and updates
// objects, records the result in the status, and only then deletes. What is deleted is thus recorded before, so that a
// pass that ends in between is continued by the next one. pkg/workload reads the facts and builds the objects, and
// pkg/lifecycle makes the decisions; the controllers have the clients, the watches and the clock.
//
// What is decided is in the API objects: children have fixed names, so that a controller that does not observe an
// object it has created requests the same object again. Between two passes a process keeps only what it can do
// without, and begins anew when it is restarted (children.PassMemory, children.FactTimes): when it first saw a state,
// an error or an unwritten status, which events it has emitted, from which template it created pods last, and what
// the API server answered about a new template.
package controllers
