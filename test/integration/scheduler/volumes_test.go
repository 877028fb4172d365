// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/rounds"
)

// A gang whose pods have a volume each starts by one plan, as plain pods with the same spec start (docs/decisions,
// G18). The controllers of the control plane make the claims of ephemeral volumes, and bind volumes to claims.
func TestGangsWithVolumesBesidePlainPods(t *testing.T) {
	t.Run("24 ephemeral", func(t *testing.T) { besidePlainPods{nodes: 4, pods: 24}.run(t, rounds.Number()) })
	t.Run("64 local", func(t *testing.T) { besidePlainPods{nodes: 16, onNode: 4, pods: 64}.run(t, rounds.Number()) })
}

// besidePlainPods are pods with a volume each, once as a gang and once as plain pods.
type besidePlainPods struct {
	nodes, pods int
	onNode      int // local volumes that each node has; 0: the volumes are ephemeral, and made when the pod has a node
}

// run starts so many pairs, and prints how long each took from the first pod that is created to the last that is bound.
func (b besidePlainPods) run(t *testing.T, pairs int) {
	c := newCluster(t, b.nodes)
	c.start()
	provisioner := "kubernetes.io/no-provisioner"
	if b.onNode == 0 {
		provisioner = "provisioner.example.com/quick"
		c.provisionAll()
	}
	var ratios []float64
	for pair := range pairs {
		took := map[string]time.Duration{}
		kinds := []string{"plain", "gang"}
		if pair%2 == 1 {
			slices.Reverse(kinds)
		}
		for _, kind := range kinds {
			name := fmt.Sprintf("%s-%d", kind, pair)
			took[kind] = b.start(c, name, kind == "gang", c.storageClassOf(c.namespace+"-"+name, provisioner))
		}
		ratios = append(ratios, took["gang"].Seconds()/took["plain"].Seconds())
		t.Logf("plain pods %s, gang %s", ms(took["plain"]), ms(took["gang"]))
	}
	slices.Sort(ratios)
	t.Logf("gang / plain pods: %.2f (%.2f to %.2f)", ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
	committed := fmt.Sprintf(`muster_plans_total{result="committed",task="minimum"} %d`, pairs)
	if metrics := c.ask("/metrics"); !strings.Contains(metrics, committed) || strings.Contains(metrics, "muster_plans_aborted_total{") {
		t.Errorf("not one plan for each gang, which is carried out: the metrics lack %s, or count an aborted plan", committed)
	}
	events, err := cp.Client().EventsV1().Events(c.namespace).List(c.ctx, metav1.ListOptions{})
	c.must(err, "listing events")
	for _, e := range events.Items { // an attempt may precede the claims, or be too short on a busy machine
		if e.Reason == "GangBlocked" && !strings.HasPrefix(e.Note, "ClaimsNotReady") && !strings.Contains(e.Note, "the search was cut short") {
			t.Errorf("%s %s is told: %s", e.Regarding.Kind, e.Regarding.Name, e.Note)
		}
	}
}

// start creates the pods with volumes of the class, and returns how long it takes until all are bound. Then it deletes
// them.
func (b besidePlainPods) start(c *cluster, name string, isGang bool, class string) time.Duration {
	c.t.Helper()
	spec, gang, pods := claimSpec(class, corev1.ReadWriteOnce), "", numbered(name, b.pods)
	if isGang {
		gang = name
		c.apply(c.group(name).MinMember(int32(b.pods)))
	}
	if b.onNode > 0 {
		for i := range b.nodes * b.onNode {
			v := c.volume(fmt.Sprintf("%s-%d", class, i), spec, c.nodes[i%b.nodes])
			v.Spec.Local = &corev1.LocalVolumeSource{Path: "/disk"}
			_, err := cp.Client().CoreV1().PersistentVolumes().Create(c.ctx, v, metav1.CreateOptions{})
			c.must(err, "creating a volume")
		}
		c.must(controlplane.Until(c.ctx, cp.Client().CoreV1().PersistentVolumes(), metav1.ListOptions{}, func(all []*corev1.PersistentVolume) bool {
			return !slices.ContainsFunc(all, func(v *corev1.PersistentVolume) bool {
				return v.Spec.StorageClassName == class && v.Status.Phase != corev1.VolumeAvailable
			})
		}), "waiting until the volumes are available")
		for _, pod := range pods {
			c.claim(pod+"-disk", class, corev1.ReadWriteOnce)
		}
	}
	began := time.Now()
	for _, pod := range pods {
		w := c.pod(pod, gang, 1)
		if b.onNode > 0 {
			w.Claim(pod + "-disk")
		} else {
			w.Spec(func(s *corev1.PodSpec) {
				s.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
					VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec}}}}}
			})
		}
		c.create(w)
	}
	c.until("all pods of "+name+" are bound", 5*time.Minute, func(all []*corev1.Pod) bool {
		return !slices.ContainsFunc(all, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" })
	})
	took := time.Since(began)
	c.delete(pods...)
	c.until("the pods are gone", time.Minute, func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	claims := cp.Client().CoreV1().PersistentVolumeClaims(c.namespace)
	c.must(claims.DeleteCollection(c.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "deleting the claims")
	return took
}

// provisionAll makes a volume for each claim for which a node is chosen, until the test is over.
func (c *cluster) provisionAll() {
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		made := map[string]bool{}
		_ = controlplane.Until(ctx, cp.Client().CoreV1().PersistentVolumeClaims(c.namespace), metav1.ListOptions{},
			func(claims []*corev1.PersistentVolumeClaim) bool {
				for _, claim := range claims {
					if claim.Annotations[nodeOfClaim] == "" || made[claim.Name] {
						continue
					}
					made[claim.Name] = true
					if _, err := cp.Client().CoreV1().PersistentVolumes().Create(ctx, c.volumeFor(claim), metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
						c.t.Errorf("creating a volume for claim %s: %v", claim.Name, err)
					}
				}
				return false
			})
	}()
	c.t.Cleanup(func() { cancel(); <-done })
}
