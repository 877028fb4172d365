// Package podcliqueset is the controller of PodCliqueSets: for each replica it keeps a PodGroup, the standalone PodCliques
// and the PodCliqueScalingGroups, a headless Service, and autoscalers where they are asked for.
//
// The PodGroup comes first: what it lists may be made, and what it does not list any more may be removed. So pods never
// wait for a tree that does not know them, and a gang is never taken below a minimum that still holds.
package podcliqueset
