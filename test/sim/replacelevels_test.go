// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// shape is a set of one replica with 4 pods. cliques are of the form "<clique>:<pods>", and groups of the form
// "<group>:<replicas>:<clique>,<clique>"; one replica of a group is needed.
type shape struct {
	cliques []string
	groups  []string
}

var shapes = map[string]shape{
	"one group of one replica":       {[]string{"leader:1", "worker:3"}, []string{"model:1:leader,worker"}},
	"one group of two replicas":      {[]string{"leader:1", "worker:1"}, []string{"model:2:leader,worker"}},
	"a group of one clique":          {[]string{"worker:4"}, []string{"model:1:worker"}},
	"two groups of one replica":      {[]string{"leader:1", "worker:1", "cache:2"}, []string{"model:1:leader,worker", "store:1:cache"}},
	"a clique":                       {[]string{"web:4"}, nil},
	"two cliques, one with one pod":  {[]string{"router:1", "web:3"}, nil},
	"a clique beside a group":        {[]string{"router:2", "leader:1", "worker:1"}, []string{"model:1:leader,worker"}},
	"a clique beside a larger group": {[]string{"router:2", "worker:1"}, []string{"model:2:worker"}},
}

// named returns a set of the shape. Its termination delay is a minute.
func (s shape) named(name string) *v1alpha1.PodCliqueSet {
	w := wrappers.MakePodCliqueSet(name, "ns").TerminationDelay(time.Minute)
	for _, text := range s.cliques {
		clique, pods, _ := strings.Cut(text, ":")
		n := int32(pods[0] - '0')
		w = w.Clique(clique, n, wrappers.MinAvailable(n), wrappers.GPUs(1))
	}
	for _, text := range s.groups {
		parts := strings.Split(text, ":")
		w = w.ScalingGroup(parts[0], int32(parts[1][0]-'0'), 1, strings.Split(parts[2], ",")...)
	}
	return w.Obj()
}

// members returns the prefixes of the names of the PodCliques of its group replicas, and the number of the others.
func (s shape) members() (replicas []string, standalone int) {
	standalone = len(s.cliques)
	for _, text := range s.groups {
		parts := strings.Split(text, ":")
		standalone -= len(strings.Split(parts[2], ","))
		for j := range int(parts[1][0] - '0') {
			replicas = append(replicas, fmt.Sprintf("chat-0-%s-%d-", parts[0], j))
		}
	}
	return replicas, standalone
}

// replacing is a reason to replace a unit.
type replacing struct {
	training, rival bool // it is a Training workload; an older gang of the same size waits
	// of returns the units that have to be replaced: the set replica, or group replicas by the prefix of their
	// PodCliques. ok: the reason exists for the shape.
	of func(s shape) (set bool, groups []string, ok bool)
	do func(c *Cluster, s shape)
}

func wholeSet(shape) (bool, []string, bool) { return true, nil, true }

var replacements = map[string]replacing{
	"an update": {
		rival: true,
		of: func(s shape) (bool, []string, bool) {
			groups, _ := s.members()
			return false, groups, true
		},
		do: func(c *Cluster, s shape) {
			var cliques []string
			for _, text := range s.cliques {
				name, _, _ := strings.Cut(text, ":")
				cliques = append(cliques, name)
			}
			image(c, theSet(c, "chat"), "registry.example/main:2", cliques...)
		},
	},
	"a termination by the group": {
		of: func(s shape) (bool, []string, bool) {
			groups, _ := s.members()
			if len(s.groups) != 1 || len(groups) != 2 {
				return false, nil, false
			}
			return false, groups[1:], true
		},
		do: func(c *Cluster, s shape) { failFirst(c, "chat-0-model-1-") },
	},
	"a termination by the set": {
		of: func(s shape) (bool, []string, bool) {
			groups, standalone := s.members()
			return true, nil, standalone > 0 || len(groups) == len(s.groups)
		},
		do: func(c *Cluster, s shape) {
			if _, standalone := s.members(); standalone > 0 {
				name, _, _ := strings.Cut(s.cliques[0], ":")
				failFirst(c, "chat-0-"+name+"-")
				return
			}
			failFirst(c, "chat-0-model-0-")
		},
	},
	"a user deletes a group replica": {
		of: func(s shape) (bool, []string, bool) {
			groups, standalone := s.members()
			if len(groups) == 1 && standalone == 0 { // this is all there is
				return true, nil, true
			}
			return false, groups[:min(1, len(groups))], len(groups) > 0
		},
		do: func(c *Cluster, s shape) {
			groups, _ := s.members()
			deleteCliques(c, groups[0])
		},
	},
	"a user deletes all": {of: wholeSet, do: func(c *Cluster, s shape) { deleteCliques(c, "chat-") }},
	"a restart": {
		training: true, of: wholeSet,
		do: func(c *Cluster, s shape) {
			for _, pod := range All[*corev1.Pod](c)[:1] {
				must(c.t, c.Kubelet.Exit(pod, 1))
			}
		},
	},
}

// failFirst makes the readiness probe of the first pod fail whose name begins with a prefix.
func failFirst(c *Cluster, prefix string) {
	c.t.Helper()
	for _, pod := range All[*corev1.Pod](c) {
		if strings.HasPrefix(pod.Name, prefix) {
			must(c.t, c.Kubelet.FailReadiness(pod))
			return
		}
	}
	c.Fatalf("there is no pod %s", prefix)
}

// raises counts the attempts that were recorded, "set", or by the prefix of the PodCliques of group replicas.
type raises map[string]int

func countRaises(c *Cluster) raises {
	count := raises{}
	c.API.watch(func(change Change) {
		if change.Old == nil || change.New == nil {
			return
		}
		for _, a := range attemptsOf(change.New) {
			if a.Attempt == workload.ReplicaAttempt(attemptsOf(change.Old), int(a.Index)) {
				continue
			}
			if change.GVK.Kind == v1alpha1.KindPodCliqueSet {
				count["set"]++
			} else {
				count[fmt.Sprintf("%s-%d-", change.Key.Name, a.Index)]++
			}
		}
	})
	return count
}

// TestReplacementsOfEveryShape: a unit that is replaced raises one attempt, at its own level; its pods are created once
// more and no others are; the PodGroup is created anew with its set replica only; and a set that is updated keeps its
// place on a full cluster. This holds in any order of the steps, with a conflict on any write, and if the controllers
// crash after any write. Source: docs/decisions, W10, T7.
func TestReplacementsOfEveryShape(t *testing.T) {
	every := 23 // every nth write is refused, or a crash, unless ROUNDS are many
	if rounds.Exhaustive() {
		every = 1
	}
	for reason, r := range replacements {
		for name, s := range shapes {
			set, groups, ok := r.of(s)
			if !ok {
				continue
			}
			t.Run(reason+"/"+name, func(t *testing.T) {
				want := raises{}
				if set {
					want["set"]++
				}
				for _, g := range groups {
					want[g]++
				}
				for seed := range int64(2) {
					replaceOne(t, Options{Seed: seed, Interleaved: seed%2 == 1}, r, s, want, func(*Cluster) {})
				}
				for n := 0; ; n += every {
					c := replaceOne(t, Options{Interleaved: n%2 == 1}, r, s, want, func(c *Cluster) { c.CrashAfterWrites(n) })
					if c.Crashes == 0 {
						break
					}
				}
				for n := 0; ; n += every {
					c := replaceOne(t, Options{Interleaved: n%2 == 0}, r, s, want, func(c *Cluster) { c.RefuseWrite(n) })
					if c.RefusesWrite() {
						break
					}
				}
			})
		}
	}
}

// replaceOne replaces units of a set of the shape on a cluster that it fills, and compares the attempts with those that
// are wanted. trouble is called before.
func replaceOne(t *testing.T, options Options, r replacing, s shape, want raises, trouble func(*Cluster)) *Cluster {
	t.Helper()
	options.Nodes, options.Check = Nodes(1, 4), both(invariants(), terminations())
	c := New(t, options)
	c.Kubelet.Linger, c.Kubelet.LingerUpTo = 3*time.Second, 8*time.Second
	chat := s.named("chat")
	if r.training {
		chat.Spec.WorkloadType = v1alpha1.WorkloadTypeTraining
		chat.Spec.TrainingSpec = &v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(5))}
		chat.Spec.Template.TerminationDelay = &metav1.Duration{}
		for _, clique := range chat.Spec.Template.Cliques {
			clique.Spec.PodSpec.RestartPolicy = corev1.RestartPolicyNever
		}
	}
	c.Create(chat)
	c.Advance(time.Minute)
	wantAvailable(c, 4)
	podGroups := func() map[types.UID]bool {
		uids := map[types.UID]bool{}
		for _, g := range All[*v2alpha2.PodGroup](c) {
			if g.Name == "chat-0" {
				uids[g.UID] = true
			}
		}
		return uids
	}
	podGroup := podGroups()
	if r.rival {
		c.Create(s.named("rival"))
		c.Advance(10 * time.Second)
	}
	count, made := countRaises(c), countGenerations(c)
	before := uids(c)
	c.Timeline.Say("the units are replaced")
	trouble(c)
	r.do(c, s)
	c.Advance(4 * time.Minute)

	if fmt.Sprint(count) != fmt.Sprint(want) {
		c.Fatalf("attempts raised: %v, want %v", count, want)
	}
	kept := false
	for uid := range podGroups() {
		kept = podGroup[uid]
	}
	if kept != (want["set"] == 0) {
		c.Fatalf("the PodGroup is the same as before: %t", kept)
	}
	if status := theSet(c, "chat").Status; status.AvailableReplicas != 1 {
		c.Fatalf("the set is not available: %+v", status.Conditions)
	}
	for host, uid := range before {
		if !strings.HasPrefix(host, "chat-") {
			continue
		}
		replaced := r.rival || want["set"] > 0 // an update replaces the pods of standalone PodCliques, too
		for unit := range want {
			replaced = replaced || strings.HasPrefix(host, unit)
		}
		delete(made[host], uid)
		if n := len(made[host]); replaced != (n == 1) || !replaced && n > 0 {
			c.Fatalf("pod %s was created %d times more; its unit is replaced: %t", host, n, replaced)
		}
	}
	return c
}
