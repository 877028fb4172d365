// SPDX-License-Identifier: Apache-2.0

// Package scheduler tests muster-scheduler as it is deployed: its binary, under its service account and its rules,
// against a real API server. Nodes are only objects; the tests end when pods are bound.
package scheduler

import (
	"os"
	"testing"

	"github.com/muster-project/muster/test/controlplane"
)

// cp is the control plane that the tests of this package share. Every test has a namespace and nodes of its own.
var cp *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{
		WithControllerManager: true, ControllerManagerArgs: []string{withoutPodGC}, AuditPolicy: auditPolicy,
	}, &cp, (*controlplane.ControlPlane).InstallMuster))
}

// withoutPodGC ends kube-controller-manager's garbage collection of pods. Every 20 seconds it deletes waiting pods that
// have a deletionTimestamp, by name and without their UID. The API server writes that timestamp a moment before it
// deletes such a pod, and tests create another pod with the same name right afterwards, which would then be deleted
// instead.
const withoutPodGC = "--controllers=-pod-garbage-collector-controller"

// auditPolicy logs the writes of the schedulers.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["system:serviceaccount:muster-system:muster-scheduler"]
  verbs: [create, update, patch, delete]
- level: None
`
