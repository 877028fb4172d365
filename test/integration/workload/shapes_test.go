// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// shape is an inference deployment as users run them: pods and GPUs of a prefill, a decode, a frontend. Its
// PodCliqueSet has the same name.
type shape struct {
	set   string
	what  string // special features
	parts []part

	node     int                        // GPUs of a node
	replicas int                        // of the set; 0: one
	order    v1alpha1.CliqueStartupType // "": any
	pods     int                        // of one replica, as written down in the table of deployments
	minimum  int                        // of these, how many must start together
	gpus     int                        // of all replicas
	waits    map[string]string          // by clique, the names that its pods wait for in replica {i} of the set and {j} of the group
}

// part is a child of the root: a clique of its own, or a scaling group.
type part struct {
	group    string // "": the one clique is standalone
	replicas int    // of the group
	need     int    // its minAvailable; 0: unset
	most     int    // maxReplicas of its autoscaler; 0: none
	cliques  []clique
}

// clique is pods of one kind.
type clique struct {
	name       string
	pods, gpus int
	need       int // minAvailable; 0: unset, all of them
	most       int // maxReplicas of its autoscaler; 0: none
	after      []string
}

func (c clique) needs(n int) clique             { c.need = n; return c }
func (c clique) upTo(n int) clique              { c.most = n; return c }
func (c clique) startsAfter(n ...string) clique { c.after = n; return c }
func (p part) needs(n int) part                 { p.need = n; return p }
func (p part) upTo(n int) part                  { p.most = n; return p }

// pods are n pods with that many GPUs each.
func pods(name string, n, gpus int) clique { return clique{name: name, pods: n, gpus: gpus} }

// cpu is one pod without GPUs: a frontend, a router, a gateway.
func cpu(name string) clique { return pods(name, 1, 0) }

// alone are standalone cliques.
func alone(cliques ...clique) []part {
	var parts []part
	for _, c := range cliques {
		parts = append(parts, part{cliques: []clique{c}})
	}
	return parts
}

// group is n times the same cliques.
func group(name string, n int, cliques ...clique) part {
	return part{group: name, replicas: n, cliques: cliques}
}

func of(parts []part, more ...part) []part { return append(parts, more...) }

// shapes are typical deployments: first those that were found in the field, then variations of what they have in
// common: two roles and a frontend without GPUs, 1 to 6 replicas a role, 1 to 8 pods a replica, 1, 2, 4 or 8 GPUs a
// pod, one wide decode or a few narrow ones, several narrow prefills. The numbers at the end of each are written by
// hand, to check the generator.
var shapes = []shape{
	{set: "deepseek-r1-trtllm-wide-ep", what: "DeepSeek-R1, TRT-LLM, wide expert parallelism over 8 trays", node: 4,
		parts: of(alone(cpu("frontend"), pods("prefill", 1, 4)), group("decode", 1, pods("dworker", 8, 4))), pods: 10, minimum: 10, gpus: 36},
	{set: "kimi-k25-wide-ep", what: "Kimi-K2.5, two prefills beside one wide decode", node: 4,
		parts: of(alone(cpu("frontend"), pods("prefill", 2, 4)), group("decode", 1, pods("dworker", 8, 4))), pods: 11, minimum: 11, gpus: 40},
	{set: "kimi-k3-vllm", what: "Kimi-K3, vLLM, a domain per role", node: 4,
		parts: of(alone(cpu("frontend")), group("prefill", 1, pods("pworker", 4, 4)), group("decode", 1, pods("dworker", 4, 4))), pods: 9, minimum: 9, gpus: 32},
	{set: "kimi-k25-kv-router", what: "Kimi-K2.5 behind a router, single trays", node: 4,
		parts: alone(cpu("frontend"), pods("prefill", 3, 4), pods("decode", 3, 4)), pods: 7, minimum: 7, gpus: 24},
	{set: "glm-5-sglang", what: "GLM-5, SGLang, one tray for prefill, four for decode", node: 4,
		parts: of(alone(cpu("frontend"), pods("prefill", 1, 4)), group("decode", 1, pods("dworker", 4, 4))), pods: 6, minimum: 6, gpus: 20},
	{set: "deepseek-r1-vllm-dep16", what: "DeepSeek-R1, vLLM, 16 ways over two nodes a role", node: 8,
		parts: of(alone(cpu("frontend")), group("prefill", 1, pods("pworker", 2, 8)), group("decode", 1, pods("dworker", 2, 8))), pods: 5, minimum: 5, gpus: 32},
	{set: "deepseek-v4-pro-1p3d", what: "DeepSeek-V4-Pro, one prefill, three decodes, whole nodes", node: 8,
		parts: alone(cpu("frontend"), pods("prefill", 1, 8), pods("decode", 3, 8)), pods: 5, minimum: 5, gpus: 32},
	{set: "deepseek-v4-flash-4p3d", what: "DeepSeek-V4-Flash, seven halves of a node", node: 8,
		parts: alone(cpu("frontend"), pods("prefill", 4, 4), pods("decode", 3, 4)), pods: 8, minimum: 8, gpus: 28},
	{set: "qwen3-235b-6p1d", what: "Qwen3-235B, pods of two sizes", node: 8,
		parts: alone(cpu("frontend"), pods("prefill", 6, 2), pods("decode", 1, 4)), pods: 8, minimum: 8, gpus: 16},
	{set: "qwen3-32b-6p2d", what: "Qwen3-32B, small pods", node: 8,
		parts: alone(cpu("frontend"), pods("prefill", 6, 2), pods("decode", 2, 2)), pods: 9, minimum: 9, gpus: 16},
	{set: "llm-d-wide-ep", what: "llm-d, DeepSeek-R1: a LeaderWorkerSet of two nodes a role, behind a gateway", node: 8,
		parts: of(alone(cpu("gateway")), group("prefill", 1, pods("pleader", 1, 8), pods("pworker", 1, 8)),
			group("decode", 1, pods("dleader", 1, 8), pods("dworker", 1, 8))), pods: 5, minimum: 5, gpus: 32},
	{set: "kserve-dp32", what: "KServe LLMInferenceService, data parallelism 32 with 8 local, no split", node: 8,
		parts: []part{group("decode", 1, pods("worker", 4, 8))}, pods: 4, minimum: 4, gpus: 32},
	{set: "lws-vllm", what: "vLLM in a LeaderWorkerSet, two replicas of which one serves", node: 8,
		parts: []part{group("vllm", 2, pods("leader", 1, 8), pods("worker", 1, 8))}, pods: 4, minimum: 2, gpus: 32},
	{set: "grove-multi-node", what: "Grove's user guide, two scaling groups of leader and workers", node: 8,
		parts: []part{group("prefill", 2, pods("pleader", 1, 8), pods("pworker", 4, 8)),
			group("decode", 1, pods("dleader", 1, 8), pods("dworker", 2, 8))}, pods: 13, minimum: 8, gpus: 104},
	{set: "grove-full", what: "the same with two frontends and an encoder", node: 8,
		parts: of(alone(pods("frontend", 2, 0), cpu("encoder")), group("prefill", 2, pods("pleader", 1, 8), pods("pworker", 4, 8)),
			group("decode", 1, pods("dleader", 1, 8), pods("dworker", 2, 8))), pods: 16, minimum: 11, gpus: 104},
	{set: "rbg-leader-worker", what: "RoleBasedGroup, started in order: prefill, decode, router", node: 8, order: v1alpha1.CliqueStartupTypeExplicit,
		parts: of(alone(cpu("router").startsAfter("dleader")), group("prefill", 2, pods("pleader", 1, 1), pods("pworker", 3, 1)),
			group("decode", 4, pods("dleader", 1, 1).startsAfter("pleader"), pods("dworker", 1, 1))),
		waits: map[string]string{
			"router":  `[{"group":"rbg-leader-worker-{i}-decode","clique":"dleader","need":1}]`,
			"dleader": `[{"group":"rbg-leader-worker-{i}-prefill","clique":"pleader","need":1}]`,
		}, pods: 17, minimum: 7, gpus: 16},
	{set: "aibrix-role-sets", what: "AIBrix, three sets that each fill a host", node: 8, replicas: 3,
		parts: []part{group("prefill", 2, pods("pworker", 2, 1)).needs(2), alone(pods("decode", 4, 1))[0]}, pods: 8, minimum: 8, gpus: 24},
	{set: "prefill-three-of-four", what: "four prefills of eight pods of which any three are enough", node: 8,
		parts: []part{group("prefill", 4, pods("pworker", 8, 1)).needs(3)}, pods: 32, minimum: 24, gpus: 32},

	{set: "smallest", what: "a GPU a role", node: 8,
		parts: alone(cpu("frontend"), pods("prefill", 1, 1), pods("decode", 1, 1)), pods: 3, minimum: 3, gpus: 2},
	{set: "spare-frontends", what: "three frontends of which one is enough", node: 8,
		parts: of(alone(pods("frontend", 3, 0).needs(1), pods("prefill", 2, 2)), group("decode", 1, pods("dworker", 1, 4))), pods: 6, minimum: 4, gpus: 8},
	{set: "aggregated", what: "no split: four nodes of which one serves", node: 8,
		parts: alone(cpu("frontend"), pods("worker", 4, 8).needs(1)), pods: 5, minimum: 2, gpus: 32},
	{set: "two-of-three-prefills", what: "a group's minimum between one and all", node: 8,
		parts: of(alone(cpu("frontend")), group("prefill", 3, pods("pworker", 2, 2)).needs(2), group("decode", 1, pods("dworker", 4, 2))),
		pods:  11, minimum: 9, gpus: 20},
	{set: "spare-decode-worker", what: "seven workers of a decode of which six are enough", node: 8,
		parts: of(alone(cpu("frontend"), pods("prefill", 2, 2)), group("decode", 1, pods("dleader", 1, 1), pods("dworker", 7, 1).needs(6))),
		pods:  11, minimum: 10, gpus: 12},
	{set: "autoscaled-groups", what: "an autoscaler a group", node: 8,
		parts: of(alone(cpu("frontend")), group("prefill", 2, pods("pworker", 1, 4)).upTo(6), group("decode", 1, pods("dworker", 2, 4)).needs(1).upTo(2)),
		pods:  5, minimum: 4, gpus: 16},
	{set: "autoscaled-cliques", what: "an autoscaler a clique", node: 8,
		parts: alone(pods("frontend", 2, 0).needs(1).upTo(10), pods("prefill", 2, 2).needs(1).upTo(6), pods("decode", 2, 4).needs(1).upTo(4)),
		pods:  6, minimum: 3, gpus: 12},
	{set: "two-replicas", what: "two replicas of the smallest split", node: 8, replicas: 2,
		parts: alone(cpu("frontend"), pods("prefill", 1, 4), pods("decode", 1, 4)), pods: 3, minimum: 3, gpus: 16},
	{set: "two-replicas-of-groups", what: "two replicas with surplus in each", node: 8, replicas: 2,
		parts: of(alone(cpu("frontend")), group("prefill", 2, pods("pworker", 2, 2)), group("decode", 1, pods("dworker", 4, 2))), pods: 9, minimum: 7, gpus: 32},
	{set: "encoder-prefill-decode", what: "three roles with GPUs of three sizes", node: 8,
		parts: alone(pods("frontend", 2, 0), pods("encoder", 2, 1), pods("prefill", 2, 2), pods("decode", 1, 4)), pods: 7, minimum: 7, gpus: 10},
	{set: "six-narrow-prefills", what: "six prefills of one pod of which two are enough", node: 8,
		parts: of(alone(cpu("frontend")), group("prefill", 6, pods("pworker", 1, 2)).needs(2), alone(pods("decode", 1, 4))[0]), pods: 8, minimum: 4, gpus: 16},
	{set: "pod-per-gpu", what: "a pod for every GPU of a node", node: 8,
		parts: of(alone(cpu("frontend")), group("decode", 2, pods("dworker", 8, 1)), group("prefill", 2, pods("pworker", 4, 1))), pods: 25, minimum: 13, gpus: 24},
	{set: "widest", what: "four prefills of two trays beside a decode of eight", node: 4,
		parts: of(alone(cpu("frontend")), group("prefill", 4, pods("pworker", 2, 4)), group("decode", 1, pods("dworker", 8, 4))), pods: 17, minimum: 11, gpus: 64},
	{set: "leader-without-gpu", what: "leaders that only coordinate", node: 8,
		parts: of(alone(cpu("frontend"), pods("prefill", 2, 2)), group("decode", 2, pods("dleader", 1, 0), pods("dworker", 4, 2))), pods: 13, minimum: 8, gpus: 20},
	{set: "replicated-units", what: "prefill and decode in one group, replicated together", node: 8,
		parts: of(alone(cpu("frontend")), group("unit", 3, pods("prefill", 2, 1), pods("decode", 1, 2))), pods: 10, minimum: 4, gpus: 12},
	{set: "two-prefill-pools", what: "short prompts here, long ones there", node: 8,
		parts: of(alone(cpu("frontend")), group("prefill-short", 3, pods("short", 1, 2)), group("prefill-long", 1, pods("long", 4, 2)),
			group("decode", 2, pods("dworker", 2, 2))), pods: 12, minimum: 8, gpus: 22},
	{set: "several-fronts", what: "gateway, router and frontend", node: 8,
		parts: alone(pods("gateway", 2, 0).needs(1), cpu("router"), pods("frontend", 2, 0).needs(1), pods("decode", 4, 4).needs(2)), pods: 9, minimum: 5, gpus: 16},
	{set: "in-order", what: "each clique after the one before it", node: 4, order: v1alpha1.CliqueStartupTypeInOrder,
		parts: of(alone(cpu("frontend")), group("prefill", 2, pods("pleader", 1, 4), pods("pworker", 1, 4)), group("decode", 1, pods("dleader", 1, 4), pods("dworker", 1, 4))),
		waits: map[string]string{
			"pleader": `[{"podClique":"in-order-{i}-frontend"}]`,
			"pworker": `[{"podClique":"in-order-{i}-prefill-{j}-pleader"}]`,
			"dleader": `[{"group":"in-order-{i}-prefill","clique":"pworker","need":1}]`,
			"dworker": `[{"podClique":"in-order-{i}-decode-{j}-dleader"}]`,
		}, pods: 7, minimum: 5, gpus: 24},
	{set: "confusable-roles", what: "names that end like others", node: 8,
		parts: of(alone(pods("worker", 2, 2), pods("prefill-worker", 2, 2)), group("prefill", 2, pods("x-worker", 1, 2))), pods: 6, minimum: 5, gpus: 12},
	{set: "all-or-nothing", what: "a group that needs all its replicas", node: 8,
		parts: of(alone(cpu("frontend"), pods("prefill", 2, 4)), group("decode", 3, pods("dworker", 2, 4)).needs(3)), pods: 9, minimum: 9, gpus: 32},
	{set: "three-single-pods", what: "three replicas of one pod, a node each", node: 8, replicas: 3,
		parts: alone(pods("worker", 1, 8)), pods: 1, minimum: 1, gpus: 24},
	{set: "draft-and-verify", what: "speculative decoding: small drafts, one large model, an embedder", node: 8,
		parts: alone(cpu("frontend"), pods("draft", 2, 1), pods("verify", 1, 8), pods("embed", 1, 2)), pods: 5, minimum: 5, gpus: 12},
}

func (s shape) setReplicas() int { return max(s.replicas, 1) }

// needed returns how many pods of the clique, and how many replicas of the group, must start together.
func (c clique) needed() int {
	if c.need == 0 {
		return c.pods
	}
	return c.need
}

func (p part) needed() int { return max(p.need, 1) }

// eachClique calls do for every PodClique of replica i of the set; j is -1 for a standalone clique.
func (s shape) eachClique(i int, do func(name string, p part, j int, c clique)) {
	for _, p := range s.parts {
		if p.group == "" {
			do(fmt.Sprintf("%s-%d-%s", s.set, i, p.cliques[0].name), p, -1, p.cliques[0])
			continue
		}
		for j := range p.replicas {
			for _, c := range p.cliques {
				do(fmt.Sprintf("%s-%d-%s-%d-%s", s.set, i, p.group, j, c.name), p, j, c)
			}
		}
	}
}

// manifest returns the PodCliqueSet as a user would write it, without optional fields.
func (s shape) manifest(namespace string) *v1alpha1.PodCliqueSet {
	set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.set}}
	set.Spec.Replicas = int32(s.setReplicas())
	template := &set.Spec.Template
	if s.order != "" {
		template.StartupType = &s.order
	}
	for _, p := range s.parts {
		config := v1alpha1.PodCliqueScalingGroupConfig{Name: p.group, Replicas: optional(p.replicas), MinAvailable: optional(p.need), ScaleConfig: autoscaler(p.most)}
		for _, c := range p.cliques {
			config.CliqueNames = append(config.CliqueNames, c.name)
			main := corev1.Container{Name: "main", Image: "registry.example/serve:1"}
			if c.gpus == 0 {
				main.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			} else {
				main.Resources.Limits = corev1.ResourceList{controlplane.GPUResource: resource.MustParse(strconv.Itoa(c.gpus))}
			}
			template.Cliques = append(template.Cliques, &v1alpha1.PodCliqueTemplateSpec{Name: c.name, Spec: v1alpha1.PodCliqueSpec{
				Replicas: int32(c.pods), MinAvailable: optional(c.need), StartsAfter: c.after, ScaleConfig: autoscaler(c.most),
				PodSpec: corev1.PodSpec{NodeSelector: map[string]string{"shape": s.set}, Containers: []corev1.Container{main}},
			}})
		}
		if p.group != "" {
			template.PodCliqueScalingGroupConfigs = append(template.PodCliqueScalingGroupConfigs, config)
		}
	}
	return set
}

func optional(n int) *int32 {
	if n == 0 {
		return nil
	}
	v := int32(n)
	return &v
}

func autoscaler(most int) *v1alpha1.AutoScalingConfig {
	if most == 0 {
		return nil
	}
	return &v1alpha1.AutoScalingConfig{MaxReplicas: int32(most)}
}

// inventory returns the objects of the shape when all of it runs. Names, labels and environment are written out here as
// in Grove (docs/decisions, W6), independent of the code under test.
func (s shape) inventory(namespace string) inventory {
	all := inventory{}
	setOwner := "PodCliqueSet " + s.set
	available := func(reason string) string { return "Available=True " + reason }
	notBreached := func(reason string) string { return "MinAvailableBreached=False " + reason }
	all[setOwner] = thing{Says: []string{
		fmt.Sprintf("replicas %d", s.setReplicas()),
		fmt.Sprintf("status: replicas %[1]d, scheduled %[1]d, available %[1]d, updated %[1]d, Running", s.setReplicas()),
		available("AllReplicasAvailable"),
		"Progressing=False UpdateComplete",
	}}
	if s.waits != nil {
		for kind, component := range map[string]string{"Role": "pod-role", "RoleBinding": "pod-role-binding"} {
			all[kind+" grove.io:pcs:"+s.set] = thing{Owner: setOwner, Labels: s.labels(s.set, component)}
		}
	}
	for i := range s.setReplicas() {
		replica := fmt.Sprintf("%s-%d", s.set, i)
		index := map[string]string{"grove.io/podcliqueset-replica-index": strconv.Itoa(i)}
		tree := []string{"root: needs all"}
		all["Service "+replica] = thing{Owner: setOwner, Labels: s.labels(replica, "pcs-headless-service", index), Says: []string{
			"address None", fmt.Sprintf("selects app.kubernetes.io/part-of=%s,grove.io/podcliqueset-replica-index=%d", s.set, i), "publishes not ready: true",
		}}
		scaled := func(kind, name string, from, to int) {
			if to > 0 {
				all["HorizontalPodAutoscaler "+name] = thing{Owner: setOwner, Labels: s.labels(name, "pcs-hpa", index), Says: []string{
					fmt.Sprintf("scales %s %s", kind, name), fmt.Sprintf("from %d to %d", from, to),
					"by cpu at 80%", // the API server's default
				}}
			}
		}
		for _, p := range s.parts {
			if p.group == "" {
				continue
			}
			name := replica + "-" + p.group
			scaled("PodCliqueScalingGroup", name, p.replicas, p.most)
			var names []string
			for _, c := range p.cliques {
				names = append(names, c.name)
			}
			all["PodCliqueScalingGroup "+name] = thing{Owner: setOwner,
				Labels: s.labels(name, "pcs-podcliquescalinggroup", index, map[string]string{"grove.io/template-name": p.group}),
				Says: []string{
					fmt.Sprintf("replicas %d, minAvailable %s, cliques %s", p.replicas, orUnset(optional(p.need)), strings.Join(names, " ")),
					fmt.Sprintf("status: replicas %[1]d, scheduled %[1]d, available %[1]d, updated %[1]d", p.replicas),
					available("SufficientAvailablePodCliqueScalingGroupReplicas"), notBreached("SufficientAvailablePodCliqueScalingGroupReplicas"),
				}}
		}
		// Standalone cliques come first in the tree, then the groups.
		s.eachClique(i, func(name string, _ part, j int, c clique) {
			if j < 0 {
				tree = append(tree, fmt.Sprintf("%s below root: needs %d pods", name, c.needed()))
			}
		})
		at := ""
		s.eachClique(i, func(name string, p part, j int, c clique) {
			owner, labels, cliqueLabels := setOwner, map[string]string{"grove.io/podgang": replica}, "pcs-podclique"
			if j >= 0 {
				group := replica + "-" + p.group
				owner, cliqueLabels = "PodCliqueScalingGroup "+group, "pcsg-podclique"
				labels["grove.io/podcliquescalinggroup"], labels["grove.io/podcliquescalinggroup-replica-index"] = group, strconv.Itoa(j)
				if j >= p.needed() {
					labels["grove.io/podgang"], labels["grove.io/base-podgang"] = fmt.Sprintf("%s-%d", group, j-p.needed()), replica
				}
				if at != group {
					tree = append(tree, fmt.Sprintf("%s below root: needs %d children", group, p.needed()))
				}
				unit := fmt.Sprintf("%s-%d", group, j)
				if c.name == p.cliques[0].name {
					tree = append(tree, fmt.Sprintf("%s below %s: needs all", unit, group))
				}
				tree = append(tree, fmt.Sprintf("%s below %s: needs %d pods", name, unit, c.needed()))
				at = group
			} else {
				scaled("PodClique", name, c.pods, c.most)
			}
			labels = s.labels(name, cliqueLabels, index, labels, map[string]string{"grove.io/template-name": c.name, "grove.io/pod-template-hash": present})
			all["PodClique "+name] = thing{Owner: owner, Labels: labels, Says: []string{
				fmt.Sprintf("role %s, replicas %d, minAvailable %s", c.name, c.pods, orUnset(optional(c.need))),
				fmt.Sprintf("status: replicas %[1]d, ready %[1]d, scheduled %[1]d, gated 0, updated %[1]d, minAvailable %[2]d", c.pods, c.needed()),
				available("SufficientReadyPods"), notBreached("SufficientReadyPods"), "PodCliqueScheduled=True SufficientScheduledPods",
			}}
			for k := range c.pods {
				hostname := fmt.Sprintf("%s-%d", name, k)
				all["Pod "+hostname] = s.pod(namespace, name, i, p, j, c, k, labels)
			}
		})
		all["PodGroup "+replica] = thing{Owner: setOwner, Labels: s.labels(replica, "podgang", index),
			Says: append(tree, fmt.Sprintf("bound %[1]d/%[1]d", s.minimum), "Admitted=True Admitted", "Satisfied=True Satisfied")}
	}
	return all
}

// labels are those of every object, and more.
func (s shape) labels(name, component string, more ...map[string]string) map[string]string {
	labels := map[string]string{
		"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": s.set,
		"app.kubernetes.io/name": name, "app.kubernetes.io/component": component,
	}
	for _, m := range more {
		maps.Copy(labels, m)
	}
	return labels
}

func (s shape) pod(namespace, name string, i int, p part, j int, c clique, k int, cliqueLabels map[string]string) thing {
	replica := fmt.Sprintf("%s-%d", s.set, i)
	labels := maps.Clone(cliqueLabels)
	labels["grove.io/podclique"], labels["grove.io/podclique-pod-index"], labels["kai.scheduler/subgroup-name"] = name, strconv.Itoa(k), name
	says := []string{"subdomain " + replica, "scheduler muster-scheduler", "of PodGroup " + replica, "bound true, ready true"}
	if waits := s.waits[c.name]; waits != "" && (j < p.needed() || strings.Contains(waits, "{j}")) { // surplus waits for its own replica only
		says = append(says, "container grove-initc", "waits for "+strings.NewReplacer("{i}", strconv.Itoa(i), "{j}", strconv.Itoa(j)).Replace(waits))
	}
	says = append(says, "container main",
		"main: GROVE_PCS_NAME="+s.set, fmt.Sprintf("main: GROVE_PCS_INDEX=%d", i), "main: GROVE_PCLQ_NAME="+name,
		fmt.Sprintf("main: GROVE_HEADLESS_SERVICE=%s.%s.svc.cluster.local", replica, namespace),
		"main: GROVE_PCLQ_POD_INDEX from metadata.labels['grove.io/podclique-pod-index']")
	if j >= 0 {
		n := 0
		for _, c := range p.cliques {
			n += c.pods
		}
		says = append(says, fmt.Sprintf("main: GROVE_PCSG_NAME=%s-%s", replica, p.group), fmt.Sprintf("main: GROVE_PCSG_INDEX=%d", j),
			fmt.Sprintf("main: GROVE_PCSG_TEMPLATE_NUM_PODS=%d", n))
	}
	return thing{Owner: "PodClique " + name, Labels: labels, Says: says}
}

// room returns the GPUs of the nodes with which exactly one pod of the minimum of the shape's first replica does not
// fit, the room for that pod, and the nodes that the rest then needs.
func (s shape) room() (short []int, missing int, rest []int) {
	var minimum, surplus []int
	for i := range s.setReplicas() {
		s.eachClique(i, func(_ string, p part, j int, c clique) {
			for k := range c.pods {
				switch {
				case c.gpus == 0:
				case i == 0 && j < p.needed() && k < c.needed():
					minimum = append(minimum, c.gpus)
				default:
					surplus = append(surplus, c.gpus)
				}
			}
		})
	}
	slices.Sort(minimum)
	short = fill(minimum[1:], s.node) // not a GPU to spare
	if len(short) == 0 {
		short = []int{0}
	}
	for range fill(surplus, s.node) {
		rest = append(rest, s.node)
	}
	return short, minimum[0], rest
}

// fill packs pods onto nodes of that size, the largest first, and returns the used GPUs of each node.
func fill(sizes []int, node int) []int {
	sizes = slices.Clone(sizes)
	slices.Sort(sizes)
	slices.Reverse(sizes)
	var used []int
	for _, size := range sizes {
		at := slices.IndexFunc(used, func(u int) bool { return u+size <= node })
		if at < 0 {
			used, at = append(used, 0), len(used)
		}
		used[at] += size
	}
	return used
}
