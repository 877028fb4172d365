// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/topology"
)

// orderByRank exchanges the pods of a plan so that pods with neighbouring indexes are in the same topology domains
// (docs/decisions, G26). It changes nothing in gangs without a topology level. levelsOf is that of podgroup.Levels;
// labelsOf the labels of a node with the keys, as Snapshot.LabelsOf does.
func (pl *Admission) orderByRank(work *gangs.Work, levelsOf func(name string) topology.Levels,
	labelsOf func(node string, keys sets.Set[string]) map[string]string, plan []placement.Placement) {
	if !pl.args.RankOrder {
		return
	}
	labelsByLeaf := podgroup.LevelLabels(work.Tree, &work.Group.Spec, levelsOf)
	if labelsByLeaf == nil {
		return
	}
	ranks := make(map[string]rank, len(plan))
	for i := range plan {
		ranks[plan[i].Pod.ID] = rankOf(work.Pods[plan[i].Pod.Index])
	}
	type place struct{ leaf, node string }
	domains, labels := map[place][]string{}, map[string]map[string]string{}
	keys := sets.New(labelsByLeaf[work.Tree.Leaves()[0].Name()]...) // those of all leaves differ in their order only
	placement.OrderByRank(plan,
		func(a, b placement.Pod) int { return ranks[a.ID].compare(ranks[b.ID]) },
		func(leaf, node string) []string {
			at := place{leaf, node}
			if labels[node] == nil {
				labels[node] = labelsOf(node, keys)
			}
			if domains[at] == nil {
				for _, key := range labelsByLeaf[leaf] {
					domains[at] = append(domains[at], labels[node][key])
				}
			}
			return domains[at]
		})
}

// rank is the position of a pod among those of its leaf: pods of one controller, for example a Job of a JobSet, are
// neighbours, then the index decides.
type rank struct {
	controller string // its name without the number at its end
	number     int    // that number; -1: none
	index      int    // from the label, else the number at the end of the pod's name; -1: neither
}

func rankOf(pod *corev1.Pod) rank {
	r := rank{number: -1}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		r.controller, r.number = splitNumber(owner.Name)
	}
	index, ok := count.PodIndex(pod)
	if !ok {
		_, index = splitNumber(pod.Name)
	}
	r.index = index
	return r
}

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.controller, other.controller), cmp.Compare(r.number, other.number), cmp.Compare(r.index, other.index))
}

// splitNumber separates the number after the last hyphen from a name; -1: there is none.
func splitNumber(name string) (string, int) {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		if n, err := strconv.ParseUint(name[i+1:], 10, 31); err == nil {
			return name[:i], int(n)
		}
	}
	return name, -1
}
