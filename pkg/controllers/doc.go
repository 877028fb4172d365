// Package controllers runs the workload API: one controller for each kind, each in a package of its own.
//
//	PodCliqueSet           its PodGroups first, then standalone PodCliques, PodCliqueScalingGroups, Services, autoscalers
//	PodCliqueScalingGroup  the member PodCliques of its replicas, once the PodGroup lists them
//	PodClique              its pods
//
// Every pass reads, observes, decides, records and acts. What is wanted is built by pkg/desired, decided by pkg/lifecycle
// from facts of pkg/observed; here are the clients, the watches and the clock. No state is kept between passes: children
// have fixed names, so that a controller that does not see yet what it has made asks for the same object again.
package controllers
