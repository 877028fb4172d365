// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

// judgedNode is a node as a judge sees it who knows only the definitions of docs/events.md.
type judgedNode struct {
	gpus, cpus         int // in all
	usedGPUs, usedCPUs int
	matches, closed    bool
}

// judgedGang is a gang of like pods.
type judgedGang struct {
	pods, gpus, cpus int
	apart            bool // one pod per node
}

// couldHold tries all ways to put the pods of the gang on the nodes: as they are or empty, without or with the closed ones.
func couldHold(nodes []judgedNode, g judgedGang, empty, open bool) bool {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		if empty {
			nodes[i].usedGPUs, nodes[i].usedCPUs = 0, 0
		}
	}
	var put func(pod, from int) bool
	put = func(pod, from int) bool {
		if pod == g.pods {
			return true
		}
		for i := from; i < len(nodes); i++ {
			n := &nodes[i]
			gpus, cpus := n.gpus-n.usedGPUs, n.cpus-n.usedCPUs
			if !n.matches || n.closed && !open || gpus < g.gpus || cpus < g.cpus {
				continue
			}
			n.usedGPUs, n.usedCPUs = n.usedGPUs+g.gpus, n.usedCPUs+g.cpus
			next := i
			if g.apart {
				next++
			}
			fits := put(pod+1, next)
			n.usedGPUs, n.usedCPUs = n.usedGPUs-g.gpus, n.usedCPUs-g.cpus
			if fits {
				return true
			}
		}
		return false
	}
	return put(0, 0)
}

// judge returns the reason by the definitions and their order, and what is free on the open nodes that match.
func judge(nodes []judgedNode, g judgedGang) (reason v2alpha2.Reason, freeGPUs, freeCPUs, largest int) {
	offered := false
	for _, n := range nodes {
		offered = offered || n.matches && n.gpus > 0
		if n.matches && !n.closed {
			freeGPUs, freeCPUs, largest = freeGPUs+n.gpus-n.usedGPUs, freeCPUs+n.cpus-n.usedCPUs, max(largest, n.gpus-n.usedGPUs)
		}
	}
	switch {
	case !offered:
		reason = v2alpha2.ReasonNoNodeMatches
	case !couldHold(nodes, g, true, true):
		reason = v2alpha2.ReasonTooLarge
	case !couldHold(nodes, g, true, false), couldHold(nodes, g, false, true):
		reason = v2alpha2.ReasonNodesUnavailable
	case g.pods*g.gpus > freeGPUs:
		reason = v2alpha2.ReasonInsufficientGPUs
	case g.pods*g.cpus > freeCPUs:
		reason = v2alpha2.ReasonInsufficientResources
	default:
		reason = v2alpha2.ReasonFragmented
	}
	return reason, freeGPUs, freeCPUs, largest
}

// TestReasonsAreThoseOfTheirDefinition: on random small clusters the reason of a gang of like pods that does not fit is the
// one that docs/events.md defines, and the numbers of the message are those of the nodes. ROUNDS multiplies the number of
// clusters; run with -v for the table.
func TestReasonsAreThoseOfTheirDefinition(t *testing.T) {
	t.Parallel()
	rounds := 3000
	if n, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil && n > 0 {
		rounds *= n
	}
	c := newCluster(t)
	logger := klog.Background()
	numbers := map[v2alpha2.Reason]*regexp.Regexp{
		v2alpha2.ReasonInsufficientGPUs:      regexp.MustCompile(`^the gang needs (\d+) nvidia.com/gpu for (\d+) pods?, (\d+) are free`),
		v2alpha2.ReasonInsufficientResources: regexp.MustCompile(`^the gang needs (\d+) cpu for (\d+) pods?, (\d+) are free`),
		v2alpha2.ReasonFragmented:            regexp.MustCompile(`^the gang needs (\d+) nvidia.com/gpu on one node for each of (\d+) pods?; (\d+) are free, (?:at most (\d+) on one node|which is room for (\d+) pod)`),
	}
	seen := map[v2alpha2.Reason]int{}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 21))
		nodes := make([]judgedNode, 1+r.IntN(5))
		var objects []*corev1.Node
		var running []*corev1.Pod
		for i := range nodes {
			n := &nodes[i]
			n.gpus, n.cpus, n.matches = r.IntN(3)*4, 8+r.IntN(3)*8, true
			name := fmt.Sprintf("n%d", i)
			w := wrappers.MakeNode(name).GPUs(int64(n.gpus)).Capacity(corev1.ResourceCPU, strconv.Itoa(n.cpus)).Label("pool", []string{"a", "b"}[i%2])
			switch r.IntN(8) {
			case 0:
				w.Unschedulable()
				n.closed = true
			case 1:
				w.Taint("team", "x")
				n.closed = true
			}
			if full := r.IntN(3); full > 0 { // two of three are used, one of them entirely
				n.usedGPUs, n.usedCPUs = n.gpus, r.IntN(n.cpus+1)
				if full == 1 {
					n.usedGPUs = r.IntN(n.gpus + 1)
				}
				running = append(running, classPod("run-"+name).GPUs(int64(n.usedGPUs)).CPU(strconv.Itoa(n.usedCPUs)).Node(name).Obj())
			}
			objects = append(objects, w.Obj())
		}
		g := judgedGang{pods: 1 + r.IntN(4), gpus: 1 + r.IntN(5), cpus: 1 + r.IntN(8), apart: r.IntN(4) == 0}
		pod := classPod("a").GPUs(int64(g.gpus)).CPU(strconv.Itoa(g.cpus))
		if g.apart {
			pod.Label("app", "a").ApartFrom(corev1.LabelHostname, "app", "a")
		}
		if r.IntN(3) == 0 {
			pod.NodeSelector("pool", "a")
			for i := range nodes {
				nodes[i].matches = i%2 == 0
			}
		}

		for _, o := range objects {
			c.sched.Cache.AddNode(logger, o)
		}
		for _, p := range running {
			if err := c.sched.Cache.AddPod(logger, p); err != nil {
				t.Fatal(err)
			}
		}
		c.refresh()
		tree, err := gang.Build(gang.Node{MinMember: ptr.To(int32(g.pods))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		problem := placement.Problem{Tree: tree, Pods: map[string][]placement.Pod{"": make([]placement.Pod, g.pods)}}
		w := c.world(pod.Obj())
		plan, short := placement.Minimum(problem, w, placement.Budget{})
		if fits := couldHold(nodes, g, false, false); fits != (short == nil) {
			t.Fatalf("seed %d: a plan of %d pods, want one: %t", seed, len(plan), fits)
		}
		if short != nil {
			got := podgroup.Explain(problem, w, short)
			want, gpus, cpus, largest := judge(nodes, g)
			seen[want]++
			if got.Reason != want {
				t.Errorf("seed %d: %s, want %s: %s\n%+v\n%+v", seed, got.Reason, want, got.Message, g, nodes)
			}
			if form := numbers[want]; form != nil && got.Reason == want {
				free, asked := gpus, g.pods*g.gpus
				switch want {
				case v2alpha2.ReasonInsufficientResources:
					free, asked = cpus, g.pods*g.cpus
				case v2alpha2.ReasonFragmented:
					asked = g.gpus
				}
				m := form.FindStringSubmatch(got.Message)
				if m == nil || m[1] != strconv.Itoa(asked) || m[2] != strconv.Itoa(g.pods) || m[3] != strconv.Itoa(free) ||
					len(m) > 4 && m[4] != "" && m[4] != strconv.Itoa(largest) {
					t.Errorf("seed %d: %q, want %d asked by %d pods, %d free, %d on one node", seed, got.Message, asked, g.pods, free, largest)
				}
			}
		}
		for _, p := range running {
			if err := c.sched.Cache.RemovePod(logger, p); err != nil {
				t.Fatal(err)
			}
		}
		for _, o := range objects {
			if err := c.sched.Cache.RemoveNode(logger, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Log(seen)
	if len(seen) < 6 {
		t.Errorf("only these reasons occurred: %v", seen)
	}
}
