// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/test/controlplane"
)

// A gang waits for a node, which becomes available in several ways.
func TestNodeReturns(t *testing.T) {
	c := newCluster(t, 2)
	c.start()
	name := c.nodes[1]
	var removed *corev1.Node
	tests := []struct {
		what     string
		go_      func() error
		comeBack func() error
	}{
		{"uncordoned", func() error { c.cordon(true, name); return nil }, func() error { c.cordon(false, name); return nil }},
		{"found again", func() error { return cp.LoseNode(c.ctx, name) }, func() error { return cp.RestoreNode(c.ctx, name) }},
		{"created anew", func() (err error) { removed, err = cp.RemoveNode(c.ctx, name); return err }, func() error { return cp.ReturnNode(c.ctx, removed) }},
		{"has its GPUs again", func() error { return c.setGPUs(name, 0) }, func() error { return c.setGPUs(name, 8) }},
		{"free of a taint", func() error { return c.taint(name, true) }, func() error { return c.taint(name, false) }},
	}
	for i, tc := range tests {
		c.must(tc.go_(), "taking the node away")
		gang := fmt.Sprintf("gang-%d", i)
		c.createGang(gang, 2, 8)
		c.untilStatus(gang, "has been refused", func(s v2Status) bool {
			return s.Reason != "" && s.Reason != "WaitingForPods" && s.Reason != "BehindInQueue"
		})
		if n := c.boundNow(gang); n != 0 {
			t.Fatalf("%s: %d pods are bound without the node", tc.what, n)
		}
		c.must(tc.comeBack(), "bringing the node back")
		back := time.Now()
		c.untilBound(gang, 2)
		took := time.Since(back)
		t.Logf("node %s: gang whole after %s", tc.what, ms(took))
		if took > 10*time.Second {
			t.Errorf("node %s: gang whole only after %s", tc.what, took)
		}
		c.deleteGang(gang)
	}
}

// setGPUs changes how many GPUs a node has, as a device plugin does.
func (c *cluster) setGPUs(name string, gpus int) error {
	quantity := *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	return cp.ChangeNodeStatus(c.ctx, name, func(n *corev1.Node) {
		n.Status.Allocatable[controlplane.GPUResource], n.Status.Capacity[controlplane.GPUResource] = quantity, quantity
	})
}

// taint sets the only taint of a node, or removes it.
func (c *cluster) taint(name string, tainted bool) error {
	taints := "null"
	if tainted {
		taints = `[{"key":"test/full","effect":"NoSchedule"}]`
	}
	_, err := cp.Client().CoreV1().Nodes().Patch(c.ctx, name, types.MergePatchType, []byte(`{"spec":{"taints":`+taints+`}}`), metav1.PatchOptions{})
	return err
}

// room is the test's model of one node.
type room struct {
	name                        string
	removed                     *corev1.Node // nil: it is there
	cordoned, tainted, labelled bool
	gpus                        int
	used                        map[string]int // GPUs by pod placed by hand
}

// fits returns how many pods of so many GPUs the node has room for.
func (r *room) fits(gpus int) int {
	if r.removed != nil || r.cordoned || r.tainted || !r.labelled {
		return 0
	}
	free := r.gpus
	for _, n := range r.used {
		free -= n
	}
	return max(0, free/gpus)
}

// pool adds a node to the pool of the test, or removes it.
func (c *cluster) pool(name string, in bool) error {
	value := "null"
	if in {
		value = `"gangs"`
	}
	_, err := cp.Client().CoreV1().Nodes().Patch(c.ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"test/pool":`+value+`}}}`), metav1.PatchOptions{})
	return err
}
