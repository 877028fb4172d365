// Package podcliquescalinggroup is the controller of PodCliqueScalingGroups: it keeps the PodCliques of their replicas.
//
// Which PodCliques a replica has stands in the template of the PodCliqueSet, which owns the group. A replica is made when
// the PodGroup lists it, and removed when the PodGroup does not list it any more; the PodCliqueSet's controller sees to
// both.
package podcliquescalinggroup
