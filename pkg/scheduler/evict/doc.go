// SPDX-License-Identifier: Apache-2.0

// Package evict ends the victims of a preemption that was decided and recorded (docs/decisions, G24).
//
// The caller first marks all victims and then deletes them. A mark is the condition DisruptionTarget of the stock
// scheduler, and its message ends with the plan that the pod is a victim of. A process that continues after a crash can
// thus tell which pods its predecessor had marked. If a mark cannot be written, nothing may be deleted: the marks of a
// plan that is given up have no effect, and are set to False; kube-controller-manager does so if a pod is not deleted
// within two minutes.
//
// Before the first deletion one victim of each gang becomes its witness: its mark says that the evictions have begun,
// and it is deleted last. A later process deletes the marked pods of a gang only if there is its witness. Without one,
// none of them was deleted by the plan, whatever the gang has lost, or all of them were.
//
// All requests hold for the UID of a victim, so that another pod with the name of one is not touched.
package evict
