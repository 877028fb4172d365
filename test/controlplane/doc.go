// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real Kubernetes control plane on this machine, without containers and without root: etcd,
// kube-apiserver and, if requested, kube-controller-manager and Kubelets, which simulate those of all nodes.
// Integration tests, `make demo` and `make cluster-up` use it.
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{})
//	defer cp.Stop()
//	nodes, err := cp.CreateNodes(ctx, controlplane.NodeOptions{Count: 8, GPUs: 8})
//	client := cp.Client()
//
// There are two kinds of cluster. The plain one (etcd and API server, ready in about two seconds) has nodes that are
// only API objects, which is enough for tests that end with a binding. With WithControllerManager and WithKubelets,
// pods start, become ready, finish and are removed, Jobs create pods, owners are collected with their dependents, and
// nodes are watched. LoseNode, RestoreNode and ExitPod always work.
//
// Authentication and RBAC are always on. Clients of the API server use a client certificate (UserConfig) or a service
// account (ServiceAccountConfig); none is anonymous.
//
// The binaries come from `make controlplane`, built from Go modules.
package controlplane
