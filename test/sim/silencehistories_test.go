// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// TestSilentHistories: nodes of a random service fall silent, alone, half of a zone or most of them, flap, and are
// registered again; the scheduler stands still, or answers for some gangs only; meanwhile pods are deleted and become
// unready, the controllers and the scheduler restart, and caches are held back. Nothing ends because of what is not
// known, nothing that is known is left, and when all faults have ended the service is available.
func TestSilentHistories(t *testing.T) {
	for _, seed := range seeds(10) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			f := newSilenceFuzz(t, seed)
			for range 4 + f.random.Intn(8) {
				f.act()
				if f.random.Intn(3) == 0 {
					disturb(f.Cluster, f.random)
				}
				f.wait(90)
			}
			f.recover()
		})
	}
}

// silenceFuzz is a service to which random things happen.
type silenceFuzz struct {
	*Cluster
	random *rand.Rand
	lost   []string      // nodes
	sick   []*corev1.Pod // whose readiness probes fail
	pods   int
}

func newSilenceFuzz(t *testing.T, seed int64) *silenceFuzz {
	f := &silenceFuzz{random: rand.New(rand.NewSource(seed))}
	set := watched(f.seconds(1, 60), f.seconds(0, 60))
	set.Spec.Replicas = 1 + f.random.Int31n(2)
	f.pods = 8 * int(set.Spec.Replicas)
	if f.random.Intn(4) > 0 {
		set.Spec.Template.UnreachableGrace = &metav1.Duration{Duration: f.seconds(0, 90)}
	}
	nodes := Nodes(20, 2)
	for i, node := range nodes {
		node.Labels = map[string]string{corev1.LabelTopologyZone: []string{"east", "west"}[i%2]}
	}
	f.Cluster = New(t, Options{Nodes: nodes, Seed: seed, Interleaved: seed%2 == 1,
		Check: onChange(both(both(invariants(), overdue()), both(terminations(), nothingEndsUnknown())))})
	f.Kubelet.Linger, f.Kubelet.LingerUpTo = f.seconds(0, 10), f.seconds(0, 30)
	f.Create(set)
	f.Advance(time.Minute)
	wantAvailable(f.Cluster, f.pods)
	return f
}

// seconds returns a random time of whole seconds.
func (f *silenceFuzz) seconds(from, to int) time.Duration {
	return time.Duration(from+f.random.Intn(to-from+1)) * time.Second
}

// wait lets random steps and up to that many seconds pass.
func (f *silenceFuzz) wait(seconds int) {
	for range f.random.Intn(40) {
		f.Step()
	}
	f.Advance(f.seconds(0, seconds) + time.Duration(f.random.Intn(1000))*time.Millisecond)
}

// act performs one random action.
func (f *silenceFuzz) act() {
	pods := slices.DeleteFunc(All[*corev1.Pod](f.Cluster), func(p *corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || slices.Contains(f.lost, p.Spec.NodeName)
	})
	if len(pods) == 0 || len(f.lost) > 12 {
		f.restore(len(f.lost))
		return
	}
	pod := pods[f.random.Intn(len(pods))]
	switch f.random.Intn(12) {
	case 0, 1:
		f.lose(pod.Spec.NodeName)
	case 2:
		f.restore(1)
	case 3:
		f.Timeline.Say("most nodes do not answer")
		f.loseSome(4, 3, "")
	case 4:
		f.Timeline.Say("half of a zone does not answer")
		f.loseSome(2, 1, []string{"east", "west"}[f.random.Intn(2)])
	case 5:
		f.Timeline.Say("node %s flaps", pod.Spec.NodeName)
		for range 1 + f.random.Intn(6) {
			must(f.t, f.Kubelet.LoseNode(pod.Spec.NodeName))
			f.wait(30)
			must(f.t, f.Kubelet.RestoreNode(pod.Spec.NodeName))
			f.Advance(30 * time.Second)
		}
	case 6:
		f.Timeline.Say("Node %s is deleted, and registered again", pod.Spec.NodeName)
		must(f.t, f.Kubelet.DeleteNode(pod.Spec.NodeName))
		f.wait(20)
		must(f.t, f.Kubelet.RestoreNode(pod.Spec.NodeName))
	case 7:
		f.StopScheduler()
		f.wait(30)
		f.removePod(pod)
		f.wait(300)
		f.ContinueScheduler()
	case 8:
		gang := pod.Annotations[v2alpha2.PodGroupAnnotation]
		f.Timeline.Say("muster-scheduler does nothing for gang %s", gang)
		f.scheduler.deaf = gang
		f.wait(30)
		f.removePod(pod)
		f.wait(300)
		f.scheduler.deaf = ""
	case 9:
		f.removePod(pod)
	default:
		f.Timeline.Say("pod %s is not ready", pod.Name)
		must(f.t, f.Kubelet.FailReadiness(pod))
		f.sick = append(f.sick, pod)
		f.wait(60)
		if f.random.Intn(2) == 0 {
			f.heal()
		}
	}
}

// removePod deletes a pod, as a user, if it is still there.
func (f *silenceFuzz) removePod(pod *corev1.Pod) {
	f.Timeline.Say("a user deletes pod %s", pod.Name)
	must(f.t, tolerant(f.API.Delete(f.t.Context(), pod.DeepCopy())))
}

func (f *silenceFuzz) lose(node string) {
	f.Timeline.Say("node %s does not answer", node)
	must(f.t, f.Kubelet.LoseNode(node))
	f.lost = append(f.lost, node)
}

// loseSome loses likely of so many nodes of a zone, "" for all, some together and some within seconds, and restores
// most of them later, one after the other.
func (f *silenceFuzz) loseSome(of, likely int, zone string) {
	for _, node := range All[*corev1.Node](f.Cluster) {
		if (zone == "" || node.Labels[corev1.LabelTopologyZone] == zone) && !slices.Contains(f.lost, node.Name) && f.random.Intn(of) < likely {
			f.lose(node.Name)
			if f.random.Intn(4) == 0 {
				f.wait(5)
			}
		}
	}
	f.wait(240)
	for len(f.lost) > 0 && f.random.Intn(20) > 0 {
		f.restore(1)
		if f.random.Intn(2) == 0 {
			f.wait(5)
		}
	}
}

// restore makes so many nodes answer again.
func (f *silenceFuzz) restore(n int) {
	for ; n > 0 && len(f.lost) > 0; n-- {
		f.Timeline.Say("node %s answers again", f.lost[0])
		must(f.t, f.Kubelet.RestoreNode(f.lost[0]))
		f.lost = f.lost[1:]
	}
}

// heal makes the readiness probes of all pods pass.
func (f *silenceFuzz) heal() {
	for _, pod := range f.sick {
		f.Kubelet.PassReadiness(pod)
	}
	f.sick = nil
}

// recover ends all faults, and waits until the service is available.
func (f *silenceFuzz) recover() {
	f.Timeline.Say("all is well from now on")
	f.restore(len(f.lost))
	f.heal()
	f.Advance(10 * time.Minute)
	wantAvailable(f.Cluster, f.pods)
}
