package desired

import (
	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/observed"
)

// followsTemplate reports whether a PodClique makes the pods that the template of the set, defaults filled in, wants at
// present. One whose template is gone follows it.
func followsTemplate(set *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) bool {
	t := set.Spec.Template.Clique(c.Labels[v1alpha1.LabelTemplateName])
	if t == nil {
		return true
	}
	want := podClique(set, t, nil, templateScale(t.Spec.Replicas), c)
	want.Labels = t.Labels
	return sameTemplate(want, c)
}

// WithoutOutdated lets no pod of a PodClique count as updated that does not follow the template of the set yet: its own counts
// are of the template that it has. replicas are changed. live are the PodCliques by name.
func WithoutOutdated(set *v1alpha1.PodCliqueSet, replicas []lifecycle.SetReplica, live map[string]*v1alpha1.PodClique) {
	outdated := map[string]bool{} // scaling groups
	for _, c := range live {
		group := c.Labels[v1alpha1.LabelPodCliqueScalingGroup]
		if group != "" && !outdated[group] && !followsTemplate(set, c) {
			outdated[group] = true
		}
	}
	for i := range replicas {
		for k := range replicas[i].Cliques {
			if f := &replicas[i].Cliques[k]; live[f.Name] != nil && !followsTemplate(set, live[f.Name]) {
				f.Updated = 0
			}
		}
		for k := range replicas[i].Groups {
			if f := &replicas[i].Groups[k]; outdated[f.Name] {
				f.UpdatedReplicas = 0
			}
		}
	}
}

// WithoutOutdatedMembers is WithoutOutdated for the replicas of a scaling group of the set.
func WithoutOutdatedMembers(set *v1alpha1.PodCliqueSet, replicas []lifecycle.GroupReplica, live []*v1alpha1.PodClique) {
	outdated := map[string]bool{}
	for _, c := range live {
		outdated[c.Name] = observed.GroupReplicaIndex(c) >= 0 && !followsTemplate(set, c)
	}
	for i := range replicas {
		for k := range replicas[i].Members {
			if f := &replicas[i].Members[k]; outdated[f.Name] {
				f.Updated = 0
			}
		}
	}
}
