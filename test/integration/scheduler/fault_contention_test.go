// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/rounds"
)

// Two gangs of 60 % of the cluster each, submitted pod by pod in interleaved order, while plain pods are created and
// deleted, and waiting members are deleted and created again under the same name.
func TestTwoGangsOfSixtyPercentAmongOthers(t *testing.T) {
	c := newCluster(t, 5)
	c.start()
	const perGang = 24
	n := 2 * rounds.Number()
	o := c.observe()
	deleted, others := 0, 0
	for round := range n {
		stop := c.churn(4)
		gangs := names(fmt.Sprintf("gang-%d", round), 0, 2)
		for _, g := range gangs {
			o.expect(g, perGang)
			c.apply(c.group(g).MinMember(perGang))
		}
		random := rand.New(rand.NewPCG(uint64(round), 61))
		left := []int{perGang, perGang}
		for left[0]+left[1] > 0 {
			g := random.IntN(2)
			if left[g] == 0 {
				g = 1 - g
			}
			left[g]--
			c.create(c.pod(fmt.Sprintf("%s-%d", gangs[g], left[g]), gangs[g], 1))
			if random.IntN(8) == 0 {
				deleted += c.recreateWaiting(gangs, random)
			}
		}
		for range 8 {
			deleted += c.recreateWaiting(gangs, random)
		}
		var winner, loser string
		c.until("one of the gangs is whole", 2*time.Minute, func(pods []*corev1.Pod) bool {
			for i, g := range gangs {
				if bound(pods, g) == perGang {
					winner, loser = g, gangs[1-i]
					return true
				}
			}
			return false
		})
		others += stop()
		if held := c.boundNow(loser); held != 0 {
			t.Fatalf("round %d: %s is whole and %s holds %d pods", round, winner, loser, held)
		}
		c.deleteGang(winner)
		c.until(loser+" is whole", 2*time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, loser) == perGang })
		for _, g := range gangs {
			o.forget(g)
		}
		c.deleteGang(loser)
	}
	partials, overlaps := o.stop()
	t.Logf("%d rounds among %d plain pods, %d waiting members deleted and created anew: no deadlock; %d times a gang was seen bound in part, at the longest for %s; both in part at once: %d times",
		n, others, deleted, len(partials), ms(longest(partials)), overlaps)
	if overlaps > 0 {
		t.Errorf("two gangs that never were whole were seen bound in part at the same time %d times", overlaps)
	}
	for _, p := range partials {
		if p.ended != "whole" {
			t.Errorf("gang %s was bound in part for %s and then released", p.gang, p.duration)
		}
	}
}

// recreateWaiting deletes one waiting member of the gangs and creates it again under its name. A member that was bound
// in the meantime is not deleted. It returns the number of deleted pods.
func (c *cluster) recreateWaiting(gangs []string, random *rand.Rand) int {
	c.t.Helper()
	pods := c.pods()
	p := pods[random.IntN(len(pods))]
	group := p.Annotations[v2alpha2.PodGroupAnnotation]
	if p.Spec.NodeName != "" || (group != gangs[0] && group != gangs[1]) {
		return 0
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion}
	err := cp.Client().CoreV1().Pods(c.namespace).Delete(c.ctx, p.Name, *options)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return 0
	}
	c.must(err, "deleting a waiting member")
	c.create(c.pod(p.Name, group, 1))
	return 1
}

// churn keeps this number of plain pods of 1 or 2 GPUs in the cluster, each replaced as soon as it is bound, until the
// returned function is called, which returns their total number.
func (c *cluster) churn(n int) (stop func() int) {
	ctx, cancel := context.WithCancel(c.ctx)
	var group sync.WaitGroup
	var mu sync.Mutex
	made := 0
	client := cp.Client().CoreV1().Pods(c.namespace)
	for i := range n {
		group.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				pod := c.pod(fmt.Sprintf("plain-%d-%d", i, round), "", int64(1+(i+round)%2)).Obj()
				if _, err := client.Create(context.WithoutCancel(ctx), pod, metav1.CreateOptions{}); err != nil {
					c.t.Errorf("creating a plain pod: %v", err)
					return
				}
				mu.Lock()
				made++
				mu.Unlock()
				watching, done := context.WithTimeout(ctx, 2*time.Second) // a pod that does not fit is deleted after a while
				w, err := client.Watch(watching, metav1.ListOptions{FieldSelector: "metadata.name=" + pod.Name})
				if err == nil {
					for e := range w.ResultChan() {
						if p, ok := e.Object.(*corev1.Pod); ok && p.Spec.NodeName != "" {
							break
						}
					}
					w.Stop()
				}
				done()
				if err := client.Delete(context.WithoutCancel(ctx), pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
					c.t.Errorf("deleting a plain pod: %v", err)
					return
				}
			}
		})
	}
	return func() int {
		cancel()
		group.Wait()
		return made
	}
}
