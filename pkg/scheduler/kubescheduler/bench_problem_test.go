package kubescheduler

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
)

func (c *cluster) problem(_ *FilterCache, gangOf leaves) (placement.Problem, []*corev1.Pod) {
	p := placement.Problem{Tree: treeOf(c.t, gangOf), Pods: map[string][]placement.Pod{}}
	var classes []*corev1.Pod
	index := map[string]int{}
	for _, l := range gangOf {
		for _, pod := range l.pods {
			key := podgroup.ClassKey(pod)
			i, ok := index[key]
			if !ok {
				i = len(classes)
				index[key] = i
				classes = append(classes, pod)
			}
			p.Pods[l.name] = append(p.Pods[l.name], placement.Pod{ID: string(pod.UID), Class: i})
		}
	}
	return p, classes
}
