// SPDX-License-Identifier: Apache-2.0

// Package evict ends the victims of a preemption that was decided and recorded (docs/decisions, G24).
//
// The caller first marks all victims and then deletes them. A mark is the condition DisruptionTarget of the stock
// scheduler, and its message ends with the plan that the pod is a victim of. A process that continues after a crash can
// thus tell which pods its predecessor had marked. If a mark cannot be written, nothing may be deleted: the marks of a
// plan that is given up have no effect, and kube-controller-manager sets a mark to False if its pod is not deleted within
// two minutes.
//
// All requests hold for the UID of a victim, so that another pod with the name of one is not touched.
package evict
