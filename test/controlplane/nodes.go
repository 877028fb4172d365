// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/test/podlife"
	"github.com/muster-project/muster/test/wrappers"
)

// Topology labels of the nodes. The names of labels for block and rack differ between vendors; these are examples.
const (
	ZoneLabel  = corev1.LabelTopologyZone     // topology.kubernetes.io/zone
	BlockLabel = "topology.example.com/block" // racks with a common spine
	RackLabel  = "topology.example.com/rack"  // nodes with a common leaf switch

	GPUResource = wrappers.GPUResource
)

// NodeOptions describes a fleet of equal nodes. Each has 128 CPUs, 1 Ti of memory and room for 110 pods.
type NodeOptions struct {
	Count int
	// GPUs per node, as nvidia.com/gpu. 0: a node without the resource.
	GPUs int
	// NamePrefix and the node's number make its name and hostname: node-0000. Empty: "node".
	NamePrefix string
	// First is the number of the first node, which also places it in the topology.
	First int
	// NodesPerRack shapes the topology. 0: 4. A block has four racks, a zone four blocks.
	NodesPerRack int
	// Labels are added to every node.
	Labels map[string]string
	// Change edits a node before it is created. May be nil.
	Change func(*corev1.Node)
}

// CreateNodes creates the nodes and returns their names, in order, once all are ready and free of the not-ready taint.
func (cp *ControlPlane) CreateNodes(ctx context.Context, options NodeOptions) ([]string, error) {
	version, err := cp.client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its version: %w", err)
	}
	names := make([]string, options.Count)
	if err := InParallel(len(names), 16, func(i int) error {
		node, err := cp.client.CoreV1().Nodes().Create(ctx, options.node(options.First+i, version.GitVersion), metav1.CreateOptions{})
		names[i] = node.Name
		return err
	}); err != nil {
		return nil, fmt.Errorf("creating nodes: %w", err)
	}
	return names, cp.waitForNodes(ctx, names...)
}

// node returns the node with this number, including its status, as a kubelet of this version would report it.
func (o NodeOptions) node(number int, version string) *corev1.Node {
	name := fmt.Sprintf("%s-%04d", cmp.Or(o.NamePrefix, "node"), number)
	rack := number / cmp.Or(o.NodesPerRack, 4)
	w := wrappers.MakeNode(name).Capacity(corev1.ResourceEphemeralStorage, "4Ti").
		Label(corev1.LabelOSStable, "linux").Label(corev1.LabelArchStable, "amd64").Label(corev1.LabelTopologyRegion, "region-1").
		Label(ZoneLabel, fmt.Sprintf("zone-%d", rack/16)).Label(BlockLabel, fmt.Sprintf("block-%02d", rack/4)).Label(RackLabel, fmt.Sprintf("rack-%03d", rack)).
		Label(corev1.LabelInstanceTypeStable, fmt.Sprintf("gpu-%d", o.GPUs))
	if o.GPUs > 0 {
		w.GPUs(int64(o.GPUs)).Label("nvidia.com/gpu.present", "true")
	}
	node := w.Obj()
	maps.Copy(node.Labels, o.Labels)
	node.Spec.ProviderID = "simulated://" + name
	node.Status.Phase = corev1.NodeRunning
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", 128+number>>16, number>>8&0xff, number&0xff)},
		{Type: corev1.NodeHostName, Address: name},
	}
	node.Status.Conditions = []corev1.NodeCondition{readyAt(time.Now())}
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		Architecture: "amd64", OperatingSystem: "linux", OSImage: "none", KubeletVersion: version, ContainerRuntimeVersion: "none",
	}
	if o.Change != nil {
		o.Change(node)
	}
	return node
}

// readyAt returns the condition Ready that a kubelet reports at that time of its clock.
func readyAt(t time.Time) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
		LastHeartbeatTime: metav1.NewTime(t), LastTransitionTime: metav1.NewTime(t),
	}
}

// setReadyOf replaces the condition Ready of a node.
func (cp *ControlPlane) setReadyOf(ctx context.Context, node string, ready corev1.NodeCondition) error {
	return cp.ChangeNodeStatus(ctx, node, func(node *corev1.Node) {
		node.Status.Conditions = append(slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == ready.Type }), ready)
	})
}

// LoseNode makes the node look as if its kubelet had stopped reporting: Ready is Unknown, the node has the unreachable
// taints, its pods are not ready, and their deletion is not completed. It does immediately what the node lifecycle
// controller would do when the lease has expired, so that tests need not wait for it.
func (cp *ControlPlane) LoseNode(ctx context.Context, name string) error {
	// 1. The fake kubelet stops managing the node.
	if cp.kubelets != nil {
		cp.kubelets.Kill(name)
	}
	now := metav1.Now()
	if err := cp.taintNode(ctx, name, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now},
		corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &now}); err != nil {
		return err
	}
	// 2. The node is unknown, and its pods are not ready.
	unknown := readyAt(time.Now())
	unknown.Status, unknown.Reason, unknown.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
	if err := errors.Join(cp.setReadyOf(ctx, name, unknown), cp.setPodsReady(ctx, name, false)); err != nil {
		return err
	}
	return untilNamed(ctx, cp.client.CoreV1().Nodes(), name, func(node *corev1.Node) bool { return slices.ContainsFunc(node.Spec.Taints, isLifecycleTaint) })
}

// RestoreNode reverts LoseNode, and returns when the node is ready and free of taints. Its pods become ready again soon
// after.
func (cp *ControlPlane) RestoreNode(ctx context.Context, name string) error {
	if cp.kubelets == nil {
		if err := errors.Join(cp.setReadyOf(ctx, name, readyAt(time.Now())), cp.setPodsReady(ctx, name, true)); err != nil {
			return err
		}
	}
	if err := cp.taintNode(ctx, name); err != nil {
		return err
	}
	if cp.kubelets != nil {
		cp.kubelets.Revive(name)
	}
	return cp.waitForNodes(ctx, name)
}

// taintNode replaces the taints that the node lifecycle controller writes, unless that runs.
func (cp *ControlPlane) taintNode(ctx context.Context, name string, taints ...corev1.Taint) error {
	if cp.watchesNodes() {
		return nil
	}
	return cp.ChangeNode(ctx, name, func(node *corev1.Node) {
		node.Spec.Taints = append(slices.DeleteFunc(node.Spec.Taints, isLifecycleTaint), taints...)
	})
}

// RemoveNode deletes the node and returns it as it was, for ReturnNode. Its pods are not deleted with it.
func (cp *ControlPlane) RemoveNode(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := cp.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return node, cp.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
}

// ReturnNode creates a removed node again, and returns when it is ready.
func (cp *ControlPlane) ReturnNode(ctx context.Context, removed *corev1.Node) error {
	node := removed.DeepCopy()
	node.ObjectMeta = metav1.ObjectMeta{Name: removed.Name, Labels: removed.Labels, Annotations: removed.Annotations}
	if _, err := cp.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	return cp.waitForNodes(ctx, removed.Name)
}

func (cp *ControlPlane) waitForNodes(ctx context.Context, names ...string) error {
	waiting := sets.New(names...)
	return Until(ctx, cp.client.CoreV1().Nodes(), metav1.ListOptions{}, func(nodes []*corev1.Node) bool {
		ready := sets.New[string]()
		for _, node := range nodes {
			if nodeReady(node) {
				ready.Insert(node.Name)
			}
		}
		return ready.IsSuperset(waiting)
	})
}

// nodeReady reports whether pods can be scheduled to the node, as far as its kubelet is concerned.
func nodeReady(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, isLifecycleTaint) && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func isLifecycleTaint(taint corev1.Taint) bool {
	return taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable
}

// ChangeNode edits a node.
func (cp *ControlPlane) ChangeNode(ctx context.Context, name string, edit func(*corev1.Node)) error {
	nodes := cp.client.CoreV1().Nodes()
	return rewrite(ctx, name, nodes.Get, edit, nodes.Update)
}

// ChangeNodeStatus edits the status of a node.
func (cp *ControlPlane) ChangeNodeStatus(ctx context.Context, name string, edit func(*corev1.Node)) error {
	nodes := cp.client.CoreV1().Nodes()
	return rewrite(ctx, name, nodes.Get, edit, nodes.UpdateStatus)
}

// rewrite gets an object, edits it and writes it. It repeats that on conflict, because controllers write objects too.
func rewrite[T any](
	ctx context.Context, name string, get func(context.Context, string, metav1.GetOptions) (*T, error), edit func(*T),
	write func(context.Context, *T, metav1.UpdateOptions) (*T, error),
) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		edit(object)
		_, err = write(ctx, object, metav1.UpdateOptions{})
		return err
	})
}

// setPodsReady sets the Ready condition of all running pods of the node.
func (cp *ControlPlane) setPodsReady(ctx context.Context, node string, ready bool) error {
	pods, err := cp.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running,spec.nodeName=" + node})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		err := cp.changePodStatus(ctx, pod.Namespace, pod.Name, func(pod *corev1.Pod) { podlife.SetReady(pod, ready, metav1.Now()) })
		if client.IgnoreNotFound(err) != nil { // it may be deleted at any time
			return err
		}
	}
	return nil
}

// InParallel calls do for 0 to n-1, atATime of them at a time, beginning in order, and returns the first error.
func InParallel(n, atATime int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(atATime)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}
