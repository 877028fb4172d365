// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// unboundVolume and deviceClaim are what the user is told about a claim that ties pods to one node.
const (
	unboundVolume = "unbound PersistentVolumeClaim "
	deviceClaim   = "ResourceClaim "
)

// claims are the claims of volumes and devices used by the pods planned so far, as far as these affect each other.
type claims struct {
	exclusive map[string]int    // ReadWriteOncePod: number of planned pods
	unbound   map[string]onNode // see class.unbound: the node of their planned pods
}

type onNode struct{ node, pods int }

// VolumeClaim returns a claim as the plan sees it, nil if it does not exist.
func (w *Snapshot) VolumeClaim(namespace, name string) *corev1.PersistentVolumeClaim {
	claim, err := w.volumes.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return nil
	}
	return claim
}

func (cl *claims) countPlanned(c *class, i, delta int) {
	for _, claim := range c.exclusive {
		cl.exclusive[claim] += delta
	}
	for _, claim := range c.unbound {
		cl.unbound[claim] = onNode{i, cl.unbound[claim].pods + delta}
	}
}

// claimConflict returns the reason why claims exclude the class from the node, "" if they do not.
func (cl *claims) claimConflict(c *class, i int) string {
	for _, claim := range c.exclusive {
		if cl.exclusive[claim] > 0 {
			return "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
		}
	}
	for _, claim := range c.unbound {
		if on := cl.unbound[claim]; on.pods > 0 && on.node != i {
			if strings.HasPrefix(claim, unboundVolume) {
				return fmt.Sprintf("pods of the gang share the %s and do not fit on one node: bind it first", claim)
			}
			return fmt.Sprintf("pods of the gang share the %s, whose devices belong to one node, and do not fit there", claim)
		}
	}
	return ""
}

// relateClaims links the classes that share an unbound claim. A claim used by a single pod creates no link.
func (w *Snapshot) relateClaims(c *class) {
	if len(c.unbound) == 0 || c.refuse != nil {
		return
	}
	shared := c.pods > 1
	for _, o := range w.classes {
		if o != c && o.refuse == nil && slices.ContainsFunc(c.unbound, func(claim string) bool { return slices.Contains(o.unbound, claim) }) {
			shared = true
			c.links = append(c.links, o)
		}
	}
	if shared {
		c.kind, c.domainKey = sharesDomain, unionOfKeys(c.domainKey, corev1.LabelHostname)
	}
}

// sharesClaim reports whether two different classes share an unbound claim, or the pods of one class do.
func sharesClaim(a, b *class) bool {
	if a == b && a.pods <= 1 {
		return false
	}
	return slices.ContainsFunc(a.unbound, func(claim string) bool { return slices.Contains(b.unbound, claim) })
}
