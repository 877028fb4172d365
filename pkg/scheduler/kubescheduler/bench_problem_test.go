package kubescheduler

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
)

func (c *cluster) problem(cache *FilterCache, gangOf leaves) (placement.Problem, Classes) {
	p := placement.Problem{Tree: treeOf(c.t, gangOf), Pods: map[string][]placement.Pod{}}
	var pods []*corev1.Pod
	var base []int
	bases := map[string]int{}
	for _, l := range gangOf {
		for _, pod := range l.pods {
			key := c.keys[pod]
			if key == "" { // the registry keeps it with the pod
				key = podgroup.ClassKey(pod)
				c.keys[pod] = key
			}
			if _, known := bases[key]; !known {
				bases[key] = len(bases)
			}
			pods, base = append(pods, pod), append(base, bases[key])
		}
	}
	classes := cache.Classify(c.f, c.nodes, pods, base)
	n := 0
	for _, l := range gangOf {
		for _, pod := range l.pods {
			p.Pods[l.name] = append(p.Pods[l.name], placement.Pod{ID: string(pod.UID), Class: classes.Of[n]})
			n++
		}
	}
	return p, classes
}
