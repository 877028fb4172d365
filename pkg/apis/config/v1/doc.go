// SPDX-License-Identifier: Apache-2.0

// Package v1 contains the arguments of Muster's scheduler plugins as users write them, in the pluginConfig of a
// KubeSchedulerConfiguration (apiVersion kubescheduler.config.k8s.io/v1). Every field is optional;
// docs/configuration.md describes them for operators.
//
// +kubebuilder:object:generate=true
// +groupName=kubescheduler.config.k8s.io
package v1
