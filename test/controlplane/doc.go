// Package controlplane runs a real Kubernetes control plane on this machine, without containers and without root: etcd,
// kube-apiserver and, when asked for, kube-controller-manager and KWOK, which plays the kubelets. Integration tests,
// `make demo` and `make cluster-up` all use it.
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{})
//	defer cp.Stop()
//	nodes, err := cp.CreateNodes(ctx, controlplane.NodeOptions{Count: 8, GPUs: 8})
//	client := cp.Client()
//
// There are two kinds of cluster. The plain one (etcd and API server, ready in about two seconds) has nodes that are API
// objects and nothing more: enough for everything that ends with a binding. With WithControllerManager and WithKwok pods
// start, become ready, end and go, Jobs make pods, owners collect their children, and nodes are watched. LoseNode,
// RestoreNode and ExitPod work in both.
//
// Authentication and RBAC are on in both. Whoever talks to the API server does so with a client certificate
// (UserConfig) or as a service account (ServiceAccountConfig), never as nobody.
//
// The binaries come from `make controlplane`, built from Go modules.
package controlplane
