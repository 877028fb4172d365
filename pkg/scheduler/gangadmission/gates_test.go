// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/test/wrappers"
)

// tickless is a clock whose tickers never tick.
type tickless struct{ clock.RealClock }

func (tickless) NewTicker(time.Duration) clock.Ticker { return tickless{} }
func (tickless) C() <-chan time.Time                  { return nil }
func (tickless) Stop()                                {}

// withoutTicks is the option of a cluster in which nothing happens without an event of the test.
func withoutTicks(c *cluster, _ *bool, args *config.GangAdmissionArgs) {
	c.clock, args.WaitingForGangAfter.Duration = tickless{}, time.Hour // no condition of a pod is written meanwhile
}

// A gang whose claims are made from templates starts when they exist, and does not wait until its pods are checked
// again: whether the scheduler learns first of the claims, or of the pods whose status names them.
func TestAGangStartsWhenItsClaimsAreMade(t *testing.T) {
	t.Parallel()
	for name, claimsFirst := range map[string]bool{"the claims are seen first": true, "the pods are seen first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, withoutTicks)
			c.withDevices().gangWithClaimTemplates().run()
			c.eventually("a pod is gated", c.gated)
			for i, claim := range claimNames {
				pod := fmt.Sprint("a-", i)
				if claimsFirst {
					c.makeClaim(claim, pod)
					c.nameClaim(claim, pod)
				} else {
					c.nameClaim(claim, pod)
					c.makeClaim(claim, pod)
				}
			}
			c.wholeOf("a", len(claimNames))
			if c.gated() {
				t.Error("pods are gated that are bound")
			}
		})
	}
}

// What gated a pod is over when this is recorded, and its event came before: the gang does not wait until its pods are
// checked again.
func TestAGateThatEndsBeforeItIsRecorded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, withoutTicks).pod(members("a", 1)...)
	var pod *corev1.Pod
	c.eventually("the pod is known", func() bool {
		pod, _ = c.gangs.podLister.Pods("ml").Get("a-0")
		return pod != nil
	})
	c.gangs.recordGates(klog.Background(), map[*corev1.Pod]string{pod: "is gated by plugin Moody: it was in a bad mood"})
	if c.gated() {
		t.Error("the pod is gated")
	}
}

// gated reports whether another plugin gates a pod, as far as was recorded.
func (c *cluster) gated() bool {
	c.gangs.othersGates.mu.Lock()
	defer c.gangs.othersGates.mu.Unlock()
	return len(c.gangs.othersGates.pods) > 0
}

// makeClaim makes a claim for a pod, and returns when the scheduler knows it.
func (c *cluster) makeClaim(claim, pod string) {
	c.t.Helper()
	isController := true
	c.addClaim(claim, claim, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod, UID: "uid-" + typesUID(pod), Controller: &isController})
	c.eventually("the claim is known", func() bool {
		_, err := c.sched.Profiles[wrappers.SchedulerName].SharedDRAManager().ResourceClaims().Get("ml", claim)
		return err == nil
	})
}

// nameClaim names the claim in the status of its pod, and returns when the scheduler knows it.
func (c *cluster) nameClaim(claim, pod string) {
	c.t.Helper()
	p, err := c.client.CoreV1().Pods("ml").Get(c.ctx, pod, metav1.GetOptions{})
	if err == nil {
		p.ResourceVersion = "2" // as an API server does: the scheduler ignores the update otherwise
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim}}
		_, err = c.client.CoreV1().Pods("ml").UpdateStatus(c.ctx, p, metav1.UpdateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the pod is known to have its claim", func() bool {
		known, err := c.gangs.podLister.Pods("ml").Get(pod)
		return err == nil && len(known.Status.ResourceClaimStatuses) > 0
	})
}

// gangWithClaimTemplates creates the gang a, whose claims do not exist yet.
func (c *cluster) gangWithClaimTemplates() *cluster {
	c.t.Helper()
	for _, claim := range claimNames {
		if err := c.client.ResourceV1().ResourceClaims("ml").Delete(c.ctx, claim, metav1.DeleteOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(int32(len(claimNames))).Obj())
	template := "gpus"
	for i := range claimNames {
		c.pod(wrappers.MakePod(fmt.Sprint("a-", i), "ml").Gang("a").Spec(func(s *corev1.PodSpec) {
			s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
		}))
	}
	return c
}
