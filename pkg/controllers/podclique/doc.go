// Package podclique is the controller of PodCliques: it keeps their pods.
//
// Which pods to make and to delete is decided by lifecycle.DecidePods; what a pod looks like is built by desired.Pod. The
// name of a pod is fixed by its PodClique and its index, so that two pods for one index cannot come to be, however old
// the cache is. Pods are made once the PodGroup lists the clique, and deleted by scaling in once it has been lowered.
package podclique
