// SPDX-License-Identifier: Apache-2.0

package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/naming"
)

// ScalingGroups returns the PodCliqueScalingGroups of replica i of a set, in the order of the template; see PodCliques.
func ScalingGroups(set *v1alpha1.PodCliqueSet, r *Revision, i int, live map[string]*v1alpha1.PodCliqueScalingGroup, hold *Hold) []*v1alpha1.PodCliqueScalingGroup {
	var groups []*v1alpha1.PodCliqueScalingGroup
	for k := range set.Spec.Template.PodCliqueScalingGroupConfigs {
		config := &set.Spec.Template.PodCliqueScalingGroupConfigs[k]
		name := naming.ScalingGroup(set.Name, i, config.Name)
		ours := map[string]string{}
		replicas := recordedScale(set, i, config.Name, groupReplicas(config), live[name] != nil).replicas
		if g := live[name]; g != nil {
			replicas = g.Spec.Replicas
			replicas = followTemplate(ours, replicas, TemplateReplicas(g), groupReplicas(config))
		} else {
			ours[v1alpha1.AnnotationTemplateReplicas] = text(groupReplicas(config))
		}
		withAttempt(ours, v1alpha1.AnnotationPodCliqueSetAttempt, ReplicaAttempt(set.Status.ReplicaAttempts, i))
		switch g := live[name]; {
		case g != nil && hold.keeps(g) && hold.Groups[name]:
			keepKeys(ours, g.Annotations, v1alpha1.AnnotationGenerationHash, v1alpha1.AnnotationRevision, v1alpha1.AnnotationUpdateTurn)
			if IsGroupUpdating(g) {
				ours[v1alpha1.AnnotationUpdatePaused] = "true"
			}
		case hold != nil && g == nil && hold.Revision != nil:
			hold.Revision.annotate(set, ours, false)
		default:
			r.annotate(set, ours, r.hasTurn(set, i, g))
		}
		storeTemplateKeys(ours, nil, config.Annotations)
		groups = append(groups, &v1alpha1.PodCliqueScalingGroup{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodCliqueScalingGroup},
			ObjectMeta: objectMeta(set, v1alpha1.KindPodCliqueSet, name,
				naming.ScalingGroupLabels(set.Name, i, config.Name), withTemplate(config.Annotations, ours)),
			Spec: v1alpha1.PodCliqueScalingGroupSpec{
				Replicas:        replicas,
				MinAvailable:    config.DeepCopy().MinAvailable,
				MinReadySeconds: config.MinReadySeconds,
				CliqueNames:     append([]string(nil), config.CliqueNames...),
			},
		})
	}
	return groups
}
