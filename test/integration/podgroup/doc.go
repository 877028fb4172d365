// SPDX-License-Identifier: Apache-2.0

// Package podgroup tests the responses of a real API server to PodGroups: with the CRD's own rules alone, and with the
// webhook of a muster-controller that runs under the identity and the rights of manifests/controller.
//
// testdata has the examples of KAI Scheduler's minSubGroups proposal: the two
// PodGroups and the two of the appendix as they are, the validation fragments completed with apiVersion,
// kind, name and real children.
package podgroup
