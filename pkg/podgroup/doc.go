// Package podgroup translates between PodGroup objects and the plain facts that the scheduler decides by, in both
// directions: a spec to its tree, a pod to its class, facts to status and events, the outcome of a plan to the words that
// users read. Pure: no client, no clock.
//
// muster-scheduler uses it from its loop (Tree, ClassKey, Explain) and from its reporter (Status, Compare, StatusEvent).
package podgroup
