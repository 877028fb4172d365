// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/test/wrappers"
)

// packing makes a profile score as the built-in one does.
func packing(cfg *config.KubeSchedulerConfiguration) {
	scores := config.PluginSet{Enabled: []config.Plugin{{Name: GPUPackingName}}, Disabled: []config.Plugin{{Name: names.NodeResourcesFit}}}
	cfg.Profiles[0].Plugins.PreScore, cfg.Profiles[0].Plugins.Score = scores, scores
}

func stockScores(*config.KubeSchedulerConfiguration) {}

// scoresOf returns the scores of the nodes for a pod.
func (c *cluster) scoresOf(pod *corev1.Pod) []fwk.NodePluginScores {
	c.t.Helper()
	state := framework.NewCycleState()
	if _, s, _ := c.f.RunPreFilterPlugins(c.ctx, state, pod); !s.IsSuccess() {
		c.t.Fatal(s)
	}
	if s := c.f.RunPreScorePlugins(c.ctx, state, pod, c.nodes); !s.IsSuccess() {
		c.t.Fatal(s)
	}
	scores, s := c.f.RunScorePlugins(c.ctx, state, pod, c.nodes)
	if !s.IsSuccess() {
		c.t.Fatal(s)
	}
	return scores
}

// scoreOf returns the score that a plugin gives to a node.
func scoreOf(t *testing.T, plugin string, node fwk.NodePluginScores) int64 {
	t.Helper()
	i := slices.IndexFunc(node.Scores, func(s fwk.PluginScore) bool { return s.Name == plugin })
	if i < 0 {
		t.Fatalf("no score of %s among %v", plugin, node.Scores)
	}
	return node.Scores[i].Score
}

func TestGPUPackingScores(t *testing.T) {
	t.Parallel()
	const mig, npu = "nvidia.com/mig-1g.10gb", "example.com/npu"
	half := func(name string) *wrappers.PodWrapper { return classPod(name).CPU("64").Memory("512Gi") } // of a node
	for name, tc := range map[string]struct {
		node *wrappers.NodeWrapper
		runs []*wrappers.PodWrapper
		pod  *wrappers.PodWrapper
		want int64
	}{
		"the first GPU of eight":                 {node: wrappers.MakeNode("n").GPUs(8), pod: classPod("p").GPUs(1), want: 12},
		"all GPUs":                               {node: wrappers.MakeNode("n").GPUs(8), pod: classPod("p").GPUs(8), want: 100},
		"what others have counts":                {node: wrappers.MakeNode("n").GPUs(8), runs: []*wrappers.PodWrapper{classPod("a").GPUs(5)}, pod: classPod("p").GPUs(1), want: 75},
		"CPU and memory do not":                  {node: wrappers.MakeNode("n").GPUs(8), runs: []*wrappers.PodWrapper{half("a")}, pod: half("p").GPUs(1), want: 12},
		"more in use than the node has":          {node: wrappers.MakeNode("n").GPUs(4), runs: []*wrappers.PodWrapper{classPod("a").GPUs(6)}, pod: classPod("p").GPUs(1), want: 100},
		"a slice of a GPU":                       {node: wrappers.MakeNode("n").Capacity(mig, "7"), pod: classPod("p").Resource(mig, resource.MustParse("1")), want: 14},
		"the mean of two kinds":                  {node: wrappers.MakeNode("n").GPUs(8).Capacity(mig, "4"), pod: classPod("p").GPUs(8).Resource(mig, resource.MustParse("1")), want: 62},
		"one of two kinds":                       {node: wrappers.MakeNode("n").GPUs(8), pod: classPod("p").GPUs(4).Resource(mig, resource.MustParse("1")), want: 50},
		"without GPUs":                           {node: wrappers.MakeNode("n").GPUs(8), pod: half("p"), want: 50},
		"without GPUs beside such with":          {node: wrappers.MakeNode("n").GPUs(8), runs: []*wrappers.PodWrapper{classPod("a").GPUs(8).CPU("64")}, pod: half("p"), want: 24},
		"another device is no GPU":               {node: wrappers.MakeNode("n").Capacity(npu, "8"), pod: half("p").Resource(npu, resource.MustParse("8")), want: 50},
		"GPUs of which the node has none":        {node: wrappers.MakeNode("n"), pod: half("p").GPUs(1), want: 50},
		"GPUs that are requested as zero":        {node: wrappers.MakeNode("n").GPUs(8), pod: half("p").GPUs(0), want: 50},
		"GPUs of an init container":              {node: wrappers.MakeNode("n").GPUs(8), pod: classPod("p").Spec(initGPUs(4)), want: 50},
		"GPUs of a node without CPU and memory":  {node: wrappers.MakeNode("n").Capacity("cpu", "0").Capacity("memory", "0").GPUs(8), pod: classPod("p").GPUs(4), want: 50},
		"a node without CPU, memory and devices": {node: wrappers.MakeNode("n").Capacity("cpu", "0").Capacity("memory", "0"), pod: classPod("p").GPUs(4), want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConfiguredCluster(t, packing, tc.node.Obj())
			for i, w := range tc.runs {
				c.bind(w.Obj(), fmt.Sprintf("runs-%d", i), "n")
			}
			if got := scoreOf(t, GPUPackingName, c.scoresOf(tc.pod.Obj())[0]); got != tc.want {
				t.Errorf("score %d, want %d", got, tc.want)
			}
			// A profile that enables it at score alone.
			plugin, err := NewGPUPacking(c.ctx, nil, c.f)
			if err != nil {
				t.Fatal(err)
			}
			if got, s := plugin.(fwk.ScorePlugin).Score(c.ctx, framework.NewCycleState(), tc.pod.Obj(), c.nodes[0]); !s.IsSuccess() || got != tc.want {
				t.Errorf("without PreScore: score %d, %v, want %d", got, s, tc.want)
			}
		})
	}
}

// TestRequestsAreSigned: pods whose requests differ have other signatures, also in a profile without
// NodeResourcesFit; the stock scheduler gives pods of one signature the same nodes.
func TestRequestsAreSigned(t *testing.T) {
	t.Parallel()
	c := newConfiguredCluster(t, packing, wrappers.MakeNode("n").GPUs(8).Obj())
	plugin, err := NewGPUPacking(c.ctx, nil, c.f)
	if err != nil {
		t.Fatal(err)
	}
	signature := func(pod *corev1.Pod) string {
		fragments, s := plugin.(fwk.SignPlugin).SignPod(c.ctx, pod)
		if !s.IsSuccess() {
			t.Fatal(s)
		}
		text, err := json.Marshal(fragments)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	one, same, other := signature(classPod("one").GPUs(1).Obj()), signature(classPod("same").GPUs(1).Obj()), signature(classPod("other").GPUs(2).Obj())
	if one != same || one == other {
		t.Errorf("signatures %s, %s, and with another request %s", one, same, other)
	}
}

func initGPUs(n int64) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		requests := corev1.ResourceList{wrappers.GPUResource: *resource.NewQuantity(n, resource.DecimalSI)}
		s.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}}
	}
}

// TestPodsWithoutGPUsGoWhereTheyWent: the scores of random pods without GPUs on random nodes are those of the stock
// scheduler, whatever arguments NodeResourcesFit has, which no longer scores.
func TestPodsWithoutGPUsGoWhereTheyWent(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 5))
	random := func(w *wrappers.PodWrapper) *wrappers.PodWrapper {
		if r.IntN(4) > 0 {
			w.CPU(fmt.Sprintf("%dm", r.IntN(40_000)))
		}
		if r.IntN(4) > 0 {
			w.Memory(fmt.Sprintf("%dMi", r.IntN(300_000)))
		}
		return w
	}
	var nodes []runtime.Object
	for i := range 40 {
		n := wrappers.MakeNode(fmt.Sprintf("n%d", i)).Capacity("cpu", fmt.Sprint(1+r.IntN(128))).Capacity("memory", fmt.Sprintf("%dMi", 1+r.IntN(500_000)))
		if r.IntN(2) == 0 {
			n.GPUs(8)
		}
		nodes = append(nodes, n.Obj())
	}
	stock, packed := newCluster(t, nodes...), newConfiguredCluster(t, func(cfg *config.KubeSchedulerConfiguration) {
		packing(cfg)
		for _, c := range cfg.Profiles[0].PluginConfig {
			if args, ok := c.Args.(*config.NodeResourcesFitArgs); ok {
				args.ScoringStrategy = &config.ScoringStrategy{Type: config.MostAllocated, Resources: []config.ResourceSpec{{Name: string(wrappers.GPUResource), Weight: 1}}}
			}
		}
	}, nodes...)
	for i := range 60 {
		w := random(classPod("runs"))
		if r.IntN(2) == 0 {
			w.GPUs(int64(1 + r.IntN(4)))
		}
		for _, c := range []*cluster{stock, packed} {
			c.bind(w.Obj(), fmt.Sprintf("runs-%d", i), fmt.Sprintf("n%d", i%40))
		}
	}
	for i := range 400 {
		pod := random(classPod(fmt.Sprintf("p%d", i))).Spec(func(s *corev1.PodSpec) {
			some := func() corev1.ResourceRequirements {
				return random(classPod("other")).Obj().Spec.Containers[0].Resources
			}
			if r.IntN(2) == 0 {
				s.Containers = append(s.Containers, corev1.Container{Name: "beside", Resources: some()})
			}
			if r.IntN(3) == 0 {
				s.InitContainers = append(s.InitContainers, corev1.Container{Name: "init", Resources: some()})
			}
			if r.IntN(3) == 0 {
				s.InitContainers = append(s.InitContainers, corev1.Container{Name: "sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: some()})
			}
			if r.IntN(4) == 0 {
				s.Overhead = some().Requests
			}
			if r.IntN(3) == 0 {
				s.Resources = ptr.To(some())
			}
		}).Obj()
		a, b := map[string]int64{}, map[string]int64{}
		for _, n := range stock.scoresOf(pod) {
			a[n.Name] = n.TotalScore
		}
		for _, n := range packed.scoresOf(pod) {
			b[n.Name] = n.TotalScore
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("scores of %+v (-stock +packed):\n%s", pod.Spec, diff)
		}
	}
}

// TestWherePodsWithGPUsGo lets real cycles place pods one after another on 16 nodes of 8 GPUs.
func TestWherePodsWithGPUsGo(t *testing.T) {
	t.Parallel()
	replica := func() *wrappers.PodWrapper { return classPod("web").GPUs(1).CPU("8").Memory("64Gi") }
	spreads := func(when corev1.UnsatisfiableConstraintAction) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: when,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			}}
		}
	}
	apart := func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
		}}}}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ml"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}}
	one := slices.Repeat([]int{1}, 8)
	all := func(pods int) []int { return slices.Repeat([]int{pods}, 16) }
	half := slices.Concat(slices.Repeat([]int{2}, 8), one)
	for name, tc := range map[string]struct {
		objects []runtime.Object
		used    []int // GPUs that others have, by node
		cpu     []int // CPUs that pods without GPUs have, likewise
		pod     *wrappers.PodWrapper
		pods    int
		// Pods by node, most first.
		stock, packed []int
	}{
		"single GPUs":                                 {pod: replica(), pods: 8, stock: one, packed: []int{8}},
		"two nodes' worth":                            {pod: replica(), pods: 16, stock: all(1), packed: []int{8, 8}},
		"whole nodes":                                 {pod: classPod("web").GPUs(8), pods: 4, stock: one[:4], packed: one[:4]},
		"to the fullest nodes":                        {used: []int{2, 4, 6, 7}, pod: replica(), pods: 5, stock: one[:5], packed: []int{2, 2, 1}},
		"CPU in use does not divert them":             {cpu: []int{0, 64, 64}, used: []int{0, 2, 4}, pod: replica(), pods: 6, stock: one[:6], packed: []int{4, 2}},
		"replicas of a service":                       {objects: []runtime.Object{service}, pod: replica(), pods: 8, stock: one, packed: one},
		"replicas that prefer to be apart":            {pod: replica().Spec(apart), pods: 8, stock: one, packed: one},
		"replicas that should spread":                 {pod: replica().Spec(spreads(corev1.ScheduleAnyway)), pods: 8, stock: one, packed: one},
		"replicas that have to spread":                {pod: replica().Spec(spreads(corev1.DoNotSchedule)), pods: 8, stock: one, packed: one},
		"a service beside nodes that are nearly full": {objects: []runtime.Object{service}, used: []int{7, 6, 6, 5}, pod: replica(), pods: 8, stock: one, packed: one},
		"should spread, nodes nearly full":            {used: []int{4, 4, 4, 4}, pod: replica().Spec(spreads(corev1.ScheduleAnyway)), pods: 8, stock: one, packed: one},
		"more of a service than nodes":                {objects: []runtime.Object{service}, used: []int{4, 4, 4, 4}, pod: replica(), pods: 24, stock: half, packed: half},
		"more than nodes, should be apart":            {used: []int{4, 4, 4, 4}, pod: replica().Spec(apart), pods: 24, stock: half, packed: half},
		"more than nodes, should spread":              {used: []int{4, 4, 4, 4}, pod: replica().Spec(spreads(corev1.ScheduleAnyway)), pods: 24, stock: half, packed: half},
		"as many of a service as nodes":               {objects: []runtime.Object{service}, used: []int{7, 6, 7, 6, 7, 6}, pod: replica(), pods: 16, stock: all(1), packed: all(1)},
		"twice as many of a service":                  {objects: []runtime.Object{service}, used: []int{4, 4, 4, 4}, pod: replica(), pods: 32, stock: all(2), packed: all(2)},
		"twice as many should spread":                 {pod: replica().Spec(spreads(corev1.ScheduleAnyway)), pods: 32, stock: all(2), packed: all(2)},
		"twice as many have to spread":                {pod: replica().Spec(spreads(corev1.DoNotSchedule)), pods: 32, stock: all(2), packed: all(2)},
	} {
		for scores, configure := range map[string]func(*config.KubeSchedulerConfiguration){"stock": stockScores, "packed": packing} {
			t.Run(name+"/"+scores, func(t *testing.T) {
				t.Parallel()
				want := map[string][]int{"stock": tc.stock, "packed": tc.packed}[scores]
				objects := slices.Clone(tc.objects)
				for i := range 16 {
					objects = append(objects, wrappers.MakeNode(fmt.Sprintf("n%02d", i)).GPUs(8).Obj())
				}
				c := newConfiguredCluster(t, configure, objects...)
				for i, gpus := range tc.used {
					share := int64(gpus)
					c.bind(classPod("other").GPUs(share).CPU(fmt.Sprint(8*share)).Memory(fmt.Sprintf("%dGi", 64*share)).Obj(), fmt.Sprintf("used-%d", i), fmt.Sprintf("n%02d", i))
				}
				for i, cpus := range tc.cpu {
					c.bind(classPod("cpu").CPU(fmt.Sprint(cpus)).Obj(), fmt.Sprintf("cpu-%d", i), fmt.Sprintf("n%02d", i))
				}
				at := map[string]int{}
				for i := range tc.pods {
					node := c.cycle(tc.pod.Obj())
					c.bind(tc.pod.Obj(), fmt.Sprintf("p-%d", i), node)
					at[node]++
				}
				var got []int
				for _, n := range at {
					got = append(got, n)
				}
				slices.Sort(got)
				slices.Reverse(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("pods by node %v (-want +got):\n%s", at, diff)
				}
			})
		}
	}
}

// cycle returns the node that a real cycle of the pod chooses.
func (c *cluster) cycle(pod *corev1.Pod) string {
	c.t.Helper()
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		c.t.Fatal(err)
	}
	result, err := c.sched.SchedulePod(c.ctx, c.f, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
	if err != nil {
		c.t.Fatal(err)
	}
	return result.SuggestedHost
}

// TestGangsArePackedAsSinglePodsAre: the members of a gang without levels go where pods of their kind go one by one.
func TestGangsArePackedAsSinglePodsAre(t *testing.T) {
	t.Parallel()
	var nodes []runtime.Object
	used := []int64{0, 6, 3, 0, 7, 0, 5}
	for i := range used {
		nodes = append(nodes, wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8).Obj())
	}
	member := func(i int) *wrappers.PodWrapper { return worker(i).CPU("8").Memory("64Gi") }
	single, ganged := map[string]int{}, map[string]int{}
	for _, gang := range []bool{false, true} {
		c := newConfiguredCluster(t, packing, nodes...)
		for i, gpus := range used {
			c.bind(classPod("used").GPUs(gpus).Obj(), fmt.Sprintf("used-%d", i), fmt.Sprintf("n%d", i))
		}
		pods := members(10, member)
		if gang {
			plan, short := c.plan(NewFilterCache(), flat(pods))
			if short != nil {
				t.Fatalf("%+v", short)
			}
			for _, p := range plan {
				ganged[p.Node]++
			}
			continue
		}
		for _, pod := range pods {
			node := c.cycle(pod)
			c.bind(pod, pod.Name, node)
			single[node]++
		}
	}
	if diff := cmp.Diff(single, ganged); diff != "" {
		t.Errorf("pods by node (-single +gang):\n%s", diff)
	}
	if want := map[string]int{"n4": 1, "n1": 2, "n6": 3, "n2": 4}; !cmp.Equal(want, single) {
		t.Errorf("single pods by node %v, want %v", single, want)
	}
}
