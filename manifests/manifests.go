// SPDX-License-Identifier: Apache-2.0

// Package manifests carries those files of this folder into Go which a program needs as well as a cluster, so that
// there is one source for both.
package manifests

import _ "embed"

// SchedulerConfigMap is the ConfigMap (YAML) with the configuration of muster-scheduler under the key "config.yaml".
//
//go:embed scheduler/configmap.yaml
var SchedulerConfigMap []byte

// SchedulerRBAC are the roles of muster-scheduler with their bindings (YAML).
//
//go:embed scheduler/rbac.yaml
var SchedulerRBAC []byte

// ControllerRBAC are the roles of muster-controller with their bindings (YAML).
//
//go:embed controller/rbac.yaml
var ControllerRBAC []byte
