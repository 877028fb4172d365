package desired

import (
	"cmp"
	"slices"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/observed"
)

// maxRecorded is the most entries that status.recordedReplicas of a set may have.
const maxRecorded = 1024

// scale is what a child is made with: its replicas, and what its template gave it when it was made for the first time.
type scale struct{ replicas, initial int32 }

func templateScale(replicas int32) scale { return scale{replicas, replicas} }

// recordedScale returns the scale with which the child of that template name in replica i of a set is made: the one it had
// before it was deleted, if the set's status records it, else that of the template. Source: docs/decisions, W1, W2.
func recordedScale(set *v1alpha1.PodCliqueSet, i int, name string, template int32) scale {
	for _, r := range set.Status.RecordedReplicas {
		if r.Name == name && lifecycle.ContainsIndex(r.Indices, i) {
			s := scale{r.Replicas, template}
			if r.InitialReplicas != nil {
				s.initial = *r.InitialReplicas
			}
			return s
		}
	}
	return templateScale(template)
}

// RecordedReplicas returns what the status of a set is to record: the scale of every standalone PodClique and scaling group
// that was scaled away from its template. One that does not exist keeps what it had, as long as the set wants it: it is
// made with that. nil as long as nothing has been scaled. At most maxRecorded different scales are kept, those of the lowest
// replicas of the set. Source: docs/decisions, W2.
func RecordedReplicas(set *v1alpha1.PodCliqueSet, live Children) []v1alpha1.RecordedReplicas {
	type key struct {
		name string
		scale
		group bool
	}
	indices := map[key][]int{}
	var keys []key // in the order in which they are seen
	record := func(k key, i int) {
		if indices[k] == nil {
			if len(keys) == maxRecorded {
				return
			}
			keys = append(keys, k)
		}
		indices[k] = append(indices[k], i)
	}
	template := &set.Spec.Template
	for i := range int(max(set.Spec.Replicas, 0)) {
		for _, t := range template.CliquesInOrder() {
			if template.ScalingGroupOf(t.Name) != nil {
				continue
			}
			if c := live.Cliques[naming.PodClique(set.Name, i, t.Name)]; c == nil {
				if s := recordedScale(set, i, t.Name, t.Spec.Replicas); s.replicas != t.Spec.Replicas {
					record(key{name: t.Name, scale: s}, i)
				}
			} else if observed.TemplateReplicas(c) != c.Spec.Replicas {
				record(key{name: t.Name, scale: scale{c.Spec.Replicas, observed.Minimum(c).AtCreation}}, i)
			}
		}
		for k := range template.PodCliqueScalingGroupConfigs {
			config := &template.PodCliqueScalingGroupConfigs[k]
			if g := live.Groups[naming.ScalingGroup(set.Name, i, config.Name)]; g == nil {
				if s := recordedScale(set, i, config.Name, groupReplicas(config)); s.replicas != groupReplicas(config) {
					record(key{name: config.Name, scale: scale{replicas: s.replicas}, group: true}, i)
				}
			} else if observed.TemplateReplicas(g) != g.Spec.Replicas {
				record(key{name: config.Name, scale: scale{replicas: g.Spec.Replicas}, group: true}, i)
			}
		}
	}
	var recorded []v1alpha1.RecordedReplicas
	for _, k := range keys {
		r := v1alpha1.RecordedReplicas{Name: k.name, Indices: lifecycle.FormatIndices(indices[k]), Replicas: k.replicas}
		if !k.group {
			r.InitialReplicas = &k.initial
		}
		recorded = append(recorded, r)
	}
	slices.SortStableFunc(recorded, func(a, b v1alpha1.RecordedReplicas) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Replicas, b.Replicas))
	})
	return recorded
}
