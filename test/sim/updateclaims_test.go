// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// claims compares the counts of updated units in statuses with the pods: where a status describes the present spec and
// revision, no pod that is not being deleted has another template. A set whose update is complete has not even
// terminating pods of another template.
func claims(c *Cluster) error {
	old := map[string]string{} // a pod of an earlier template than its set's, by its PodClique, scaling group, and replica of the set
	sets := map[string]*v1alpha1.PodCliqueSet{}
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		sets[set.Name] = set
	}
	cliques, names, answers := map[types.UID]bool{}, map[string]bool{}, answering(c)
	replicas := map[string]int{} // of a PodClique: other pods are deleted, whatever template they have
	for _, q := range All[*v1alpha1.PodClique](c) {
		cliques[q.UID], names[q.Name] = q.DeletionTimestamp == nil, q.DeletionTimestamp == nil
		replicas[q.Name] = int(q.Spec.Replicas)
	}
	groups := map[string]int{} // replicas that a scaling group wants: others are deleted, whatever template they have
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		groups[g.Name] = int(g.Spec.Replicas)
	}
	ending := map[string]string{} // a pod of an earlier template that terminates, by set
	taken := map[string]bool{}    // host names of pods that are not being deleted; a pod that was lost with its node may have one of them
	for _, pod := range All[*corev1.Pod](c) {
		taken[pod.Spec.Hostname] = taken[pod.Spec.Hostname] || pod.DeletionTimestamp == nil
	}
	for _, pod := range All[*corev1.Pod](c) {
		set := sets[pod.Labels[v1alpha1.LabelPartOf]]
		if set == nil || samePod(pod, set) {
			continue
		}
		if g := pod.Labels[v1alpha1.LabelPodCliqueScalingGroup]; g != "" && workload.GroupReplicaIndex(pod) >= groups[g] {
			continue // the group is scaled in
		}
		index, _ := strconv.Atoi(pod.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex])
		if int32(index) < set.Spec.Replicas && names[pod.Labels[v1alpha1.LabelPodClique]] && (answers[pod.Spec.NodeName] || pod.Spec.NodeName == "") &&
			!(pod.DeletionTimestamp != nil && (taken[pod.Spec.Hostname] || isSurplus(pod, replicas))) {
			ending[set.Name] = pod.Name
		}
		if pod.DeletionTimestamp != nil || !cliques[owner(pod)] {
			continue
		}
		old["set/"+set.Name+"/"+pod.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex]] = pod.Name
		old["clique/"+pod.Labels[v1alpha1.LabelPodClique]] = pod.Name
		if g := pod.Labels[v1alpha1.LabelPodCliqueScalingGroup]; g != "" {
			old["group/"+g] = pod.Name
		}
	}
	complete := func(conditions []metav1.Condition, generation int64) bool {
		p := meta.FindStatusCondition(conditions, v1alpha1.ConditionProgressing)
		return p != nil && p.ObservedGeneration == generation && p.Reason == string(lifecycle.UpdateComplete)
	}
	for _, set := range sets {
		updated, replicas := int32(0), int(max(set.Spec.Replicas, 0))
		var first string
		for i := range replicas {
			if pod := old[fmt.Sprintf("set/%s/%d", set.Name, i)]; pod == "" {
				updated++
			} else {
				first = pod
			}
		}
		if s := set.Status; s.ObservedGeneration == set.Generation && s.UpdatedReplicas > updated {
			return fmt.Errorf("set %s claims %d updated replicas, and %d are: pod %s is of an earlier template", set.Name, s.UpdatedReplicas, updated, first)
		}
		if first = cmp.Or(first, ending[set.Name]); complete(set.Status.Conditions, set.Generation) && first != "" {
			return fmt.Errorf("set %s claims to be updated, and pod %s is of an earlier template", set.Name, first)
		}
	}
	follows := func(o metav1.Object, conditions []metav1.Condition, key string, revision int64, hash *string) error {
		set := sets[o.GetLabels()[v1alpha1.LabelPartOf]]
		if set == nil || set.Status.CurrentGenerationHash == nil || workload.GenerationHash(o) != *set.Status.CurrentGenerationHash ||
			set.Status.ObservedGeneration != set.Generation || revision != workload.RevisionNumber(o) || old[key] == "" || o.GetDeletionTimestamp() != nil {
			return nil
		}
		if complete(conditions, o.GetGeneration()) || hash != nil && *hash == *set.Status.CurrentGenerationHash {
			return fmt.Errorf("%s claims to be updated, and pod %s is of an earlier template", o.GetName(), old[key])
		}
		return nil
	}
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		if err := follows(g, g.Status.Conditions, "group/"+g.Name, g.Status.ObservedRevision, g.Status.CurrentPodCliqueSetGenerationHash); err != nil {
			return err
		}
	}
	for _, q := range All[*v1alpha1.PodClique](c) {
		if err := follows(q, q.Status.Conditions, "clique/"+q.Name, q.Status.ObservedRevision, q.Status.CurrentPodCliqueSetGenerationHash); err != nil {
			return err
		}
	}
	return nil
}

// samePod reports whether a pod is of the current template of its set, as the tests here change it.
func samePod(pod *corev1.Pod, set *v1alpha1.PodCliqueSet) bool {
	t := set.Spec.Template.Clique(pod.Labels[v1alpha1.LabelTemplateName])
	return t != nil && t.Spec.PodSpec.Containers[0].Image == pod.Spec.Containers[0].Image && t.Annotations["version"] == pod.Annotations["version"]
}

// sameClique is samePod for a PodClique.
func sameClique(q *v1alpha1.PodClique, set *v1alpha1.PodCliqueSet) bool {
	t := set.Spec.Template.Clique(q.Labels[v1alpha1.LabelTemplateName])
	return t != nil && t.Spec.PodSpec.Containers[0].Image == q.Spec.PodSpec.Containers[0].Image && t.Annotations["version"] == q.Annotations["version"]
}

// isSurplus reports whether the index of a pod is beyond what its PodClique wants. replicas are by name.
func isSurplus(pod *corev1.Pod, replicas map[string]int) bool {
	return naming.LabelIndex(pod.Labels, v1alpha1.LabelPodIndex) >= replicas[pod.Labels[v1alpha1.LabelPodClique]]
}
