// Package observed translates workload objects to the plain facts that pkg/lifecycle decides by: a PodCliqueSet, its
// PodCliques and scaling groups, and their pods. What the scheduler reads of PodGroups is in pkg/podgroup.
//
// No client, no clock.
package observed
