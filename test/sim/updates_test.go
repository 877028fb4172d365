// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// updates returns the check of updates that runs after every step, on the present objects and on those of the step
// before:
//
//   - Per PodClique and per scaling group one ready unit at most is in flight: taken down, its replacement not ready
//     yet. In one replica of a set only, from the partition on.
//   - No ready unit goes while fewer than minAvailable are there, none of the current template, and none under
//     OnDelete. A replica of a scaling group goes only if a pod of it is of an earlier template.
//   - An update ends once, and what has ended is not open again before the template changes.
//   - What a status says to be updated is: see claims.
//
// Apart from updates, ready pods are deleted because their PodClique was scaled in, because a user deletes them
// (userDeletes), or with their PodClique.
func updates() func(*Cluster) error {
	w := &updateWatch{flying: map[flight]string{}, attempts: map[string]int32{}, ended: map[types.UID]end{}}
	return func(c *Cluster) error {
		w.read(c)
		if err := w.checkPods(); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(w.groups)) {
			if err := w.checkGroup(w.groups[name]); err != nil {
				return err
			}
		}
		if err := w.checkReplicas(); err != nil {
			return err
		}
		if err := w.checkEnds(c); err != nil {
			return err
		}
		w.remember()
		return claims(c)
	}
}

// onChange returns a check that runs after steps that changed an object or moved the clock.
func onChange(check func(*Cluster) error) func(*Cluster) error {
	version, elapsed := int64(-1), time.Duration(-1)
	return func(c *Cluster) error {
		if version == c.API.version && elapsed == c.Elapsed() {
			return nil
		}
		version, elapsed = c.API.version, c.Elapsed()
		return check(c)
	}
}

const deletedByUser = "deleted-by-user"

// userDeletes deletes a pod as a user, so that the check does not attribute the deletion to an update.
func userDeletes(c *Cluster, pod *corev1.Pod) {
	c.t.Helper()
	Edit(c, pod.DeepCopy(), func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, deletedByUser, "yes") })
	if c.options.Check != nil {
		if err := c.options.Check(c); err != nil {
			c.Fatalf("%v", err)
		}
	}
	c.Delete(pod)
}

// updateWatch is the state of the checks, of the present step and of the one before.
type updateWatch struct {
	sets    map[string]*v1alpha1.PodCliqueSet
	answers map[string]bool // nodes that exist and answer
	pods    map[types.UID]*corev1.Pod
	cliques map[string]*v1alpha1.PodClique
	groups  map[string]*v1alpha1.PodCliqueScalingGroup
	members map[string]int // available members of a replica of a scaling group, by memberKey

	before    map[types.UID]*corev1.Pod // pods of the step before
	answered  map[string]bool           // nodes that answered in the step before
	available map[string][]int          // available replicas of scaling groups in the step before
	flying    map[flight]string         // the replica of the set
	attempts  map[string]int32          // of replicas of scaling groups
	ended     map[types.UID]end         // updates that have ended, by object
}

// flight is a ready unit that was deleted: a host name of a PodClique, or a replica of a scaling group.
type flight struct{ kind, owner, unit string }

// end is the time at which an update ended, and its revision.
type end struct {
	at       metav1.Time
	revision string
}

func (w *updateWatch) read(c *Cluster) {
	w.pods, w.cliques = map[types.UID]*corev1.Pod{}, map[string]*v1alpha1.PodClique{}
	w.groups, w.members = map[string]*v1alpha1.PodCliqueScalingGroup{}, map[string]int{}
	w.sets = map[string]*v1alpha1.PodCliqueSet{}
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		w.sets[set.Name] = set
	}
	w.answers = answering(c)
	up := map[types.UID]int32{}
	for _, pod := range All[*corev1.Pod](c) {
		w.pods[pod.UID] = pod
		if isUp(pod) && w.answers[pod.Spec.NodeName] {
			up[owner(pod)]++
		}
	}
	for _, q := range All[*v1alpha1.PodClique](c) {
		w.cliques[q.Name] = q
		if g := q.Labels[v1alpha1.LabelPodCliqueScalingGroup]; g != "" && q.DeletionTimestamp == nil && up[q.UID] >= workload.Minimum(q).Enforced() {
			w.members[memberKey(g, workload.GroupReplicaIndex(q), workload.Attempt(q))]++
		}
	}
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		w.groups[g.Name] = g
	}
}

func memberKey(group string, index int, attempt lifecycle.Attempt) string {
	return fmt.Sprintf("%s/%d/%+v", group, index, attempt)
}

func isUp(pod *corev1.Pod) bool { return workload.IsReady(pod) && pod.DeletionTimestamp == nil }

func owner(o metav1.Object) types.UID {
	if ref := metav1.GetControllerOf(o); ref != nil {
		return ref.UID
	}
	return ""
}

// cliqueOf returns the PodClique that owns a pod and is not being deleted, nil if there is none.
func (w *updateWatch) cliqueOf(pod *corev1.Pod) *v1alpha1.PodClique {
	if q := w.cliques[pod.Labels[v1alpha1.LabelPodClique]]; q != nil && q.DeletionTimestamp == nil && q.UID == owner(pod) {
		return q
	}
	return nil
}

// isOutdated reports whether a pod has another template than its PodClique, or than its set, whose template PodCliques
// get when the update reaches them.
func (w *updateWatch) isOutdated(pod *corev1.Pod, q *v1alpha1.PodClique) bool {
	set := w.sets[pod.Labels[v1alpha1.LabelPartOf]]
	return pod.Labels[v1alpha1.LabelPodTemplateHash] != q.Labels[v1alpha1.LabelPodTemplateHash] || set != nil && !samePod(pod, set)
}

// remember stores the objects with which the next step is compared.
func (w *updateWatch) remember() {
	w.before, w.answered, w.available = w.pods, w.answers, map[string][]int{}
	for name, g := range w.groups {
		for j := range int(g.Spec.Replicas) {
			if w.isAvailable(g, j) {
				w.available[name] = append(w.available[name], j)
			}
		}
	}
}

// isAvailable reports whether replica j of a group is available in its present attempt.
func (w *updateWatch) isAvailable(g *v1alpha1.PodCliqueScalingGroup, j int) bool {
	return w.members[memberKey(g.Name, j, workload.GroupAttempt(g, j))] == len(g.Spec.CliqueNames)
}

// launch records that a ready unit was deleted. It is an error if another unit of its owner is in flight.
func (w *updateWatch) launch(kind string, o metav1.Object, unit string) error {
	f := flight{kind, o.GetName(), unit}
	for other := range w.flying {
		if other.kind == kind && other.owner == f.owner && other.unit != unit {
			return fmt.Errorf("%s %s: %s is taken down while %s is in flight", kind, f.owner, unit, other.unit)
		}
	}
	w.flying[f] = o.GetLabels()[v1alpha1.LabelPartOf] + "/" + o.GetLabels()[v1alpha1.LabelPodCliqueSetReplicaIndex]
	return nil
}

// land removes units in flight whose replacement is ready, or whose update has ended because the strategy is OnDelete
// now.
func (w *updateWatch) land() {
	maps.DeleteFunc(w.flying, func(f flight, _ string) bool {
		if f.kind == "PodCliqueScalingGroup" {
			g, j := w.groups[f.owner], 0
			j, _ = strconv.Atoi(f.unit)
			return g == nil || workload.FollowsOnDelete(g) || j >= int(g.Spec.Replicas) || w.isAvailable(g, j)
		}
		q := w.cliques[f.owner]
		if q == nil || workload.FollowsOnDelete(q) {
			return true
		}
		others := int32(0)
		for _, pod := range w.pods {
			if w.cliqueOf(pod) != q || pod.DeletionTimestamp != nil {
				continue
			}
			if pod.Spec.Hostname == f.unit && workload.IsReady(pod) {
				return true
			}
			if pod.Spec.Hostname != f.unit {
				others++
			}
		}
		return others >= q.Spec.Replicas // its index is no longer wanted
	})
}

// checkPods checks the pods that were ready in the step before and are gone or being deleted now.
func (w *updateWatch) checkPods() error {
	w.land()
	up, excess := map[types.UID]int32{}, map[types.UID]int32{} // in the step before
	var gone []*corev1.Pod
	for uid, pod := range w.before {
		q := w.cliqueOf(pod)
		if q == nil || pod.DeletionTimestamp != nil {
			continue
		}
		excess[q.UID]++
		if !workload.IsReady(pod) || !w.answered[pod.Spec.NodeName] {
			continue
		}
		up[q.UID]++
		if is := w.pods[uid]; (is == nil || is.DeletionTimestamp != nil) && pod.Annotations[deletedByUser] == "" {
			gone = append(gone, pod)
		}
	}
	for _, q := range w.cliques {
		excess[q.UID] -= q.Spec.Replicas
	}
	slices.SortFunc(gone, func(a, b *corev1.Pod) int { // the first ones may have been scaled in
		rank := func(p *corev1.Pod) int {
			if w.isOutdated(p, w.cliqueOf(p)) {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Name, b.Name))
	})
	for _, pod := range gone {
		q := w.cliqueOf(pod)
		if excess[q.UID] > 0 {
			excess[q.UID]--
			continue
		}
		switch needed := workload.Minimum(q).Enforced(); {
		case q.Labels[v1alpha1.LabelPodCliqueScalingGroup] != "":
			return fmt.Errorf("ready pod %s of a scaling group was deleted alone", pod.Name)
		case !w.isOutdated(pod, q):
			return fmt.Errorf("ready pod %s, which has the current template, was deleted", pod.Name)
		case workload.FollowsOnDelete(q):
			return fmt.Errorf("ready pod %s was deleted under OnDelete", pod.Name)
		case !workload.HasTurn(q):
			return fmt.Errorf("ready pod %s was deleted when it was not the turn of its PodClique", pod.Name)
		case up[q.UID] < needed:
			return fmt.Errorf("ready pod %s was deleted while %d of %d needed pods were ready", pod.Name, up[q.UID], needed)
		}
		if err := w.launch(v1alpha1.KindPodClique, q, pod.Spec.Hostname); err != nil {
			return err
		}
	}
	return nil
}

// checkGroup checks the replicas of a scaling group whose attempts were raised for an update.
func (w *updateWatch) checkGroup(g *v1alpha1.PodCliqueScalingGroup) error {
	for _, entry := range g.Status.ReplicaAttempts {
		key, j := fmt.Sprintf("%s/%d/%d", g.UID, g.Status.PodCliqueSetAttempt, entry.Index), int(entry.Index)
		was := w.attempts[key]
		if w.attempts[key] = entry.Attempt; entry.Attempt <= was || entry.Reason != v1alpha1.ReasonUpdate {
			continue
		}
		set := w.sets[g.Labels[v1alpha1.LabelPartOf]]
		outdated := set != nil && set.Status.ObservedGeneration != set.Generation // edited a moment ago: the controllers go by the former template
		for _, pod := range w.pods {
			q := w.cliqueOf(pod)
			outdated = outdated || q != nil && owner(q) == g.UID && workload.GroupReplicaIndex(q) == j && w.isOutdated(pod, q)
		}
		for _, q := range w.cliques { // one that has no pods yet
			outdated = outdated || set != nil && owner(q) == g.UID && workload.GroupReplicaIndex(q) == j && !sameClique(q, set)
		}
		switch available, needed := w.available[g.Name], lifecycle.GroupMinimum(g.Spec.MinAvailable, g.Spec.Replicas); {
		case !outdated:
			return fmt.Errorf("replica %d of %s, all of which has the current template, is replaced", j, g.Name)
		case workload.FollowsOnDelete(g):
			return fmt.Errorf("replica %d of %s is replaced under OnDelete", j, g.Name)
		case !workload.HasTurn(g):
			return fmt.Errorf("replica %d of %s is replaced when it is not the group's turn", j, g.Name)
		case !slices.Contains(available, j):
			continue
		case len(available) < int(needed):
			return fmt.Errorf("available replica %d of %s is replaced while %d of %d needed are available", j, g.Name, len(available), needed)
		}
		if err := w.launch(v1alpha1.KindPodCliqueScalingGroup, g, strconv.Itoa(j)); err != nil {
			return err
		}
	}
	return nil
}

// checkReplicas checks that only units of one replica of each set are in flight, apart from replicas below the
// partition, where a unit may be left that an earlier update has taken down.
func (w *updateWatch) checkReplicas() error {
	replicas := map[string]string{}
	for _, replica := range w.flying {
		set, index, _ := strings.Cut(replica, "/")
		if i, err := strconv.Atoi(index); w.sets[set] != nil && err == nil && int32(i) < w.sets[set].Spec.Partition() {
			continue
		}
		if other, ok := replicas[set]; ok && other != index {
			return fmt.Errorf("replicas %s and %s of set %s are updated at the same time: %v", other, index, set, w.flying)
		}
		replicas[set] = index
	}
	return nil
}

// checkEnds checks that updateEndedAt is set once per update.
func (w *updateWatch) checkEnds(c *Cluster) error {
	check := func(o metav1.Object, kind, revision string, open bool, endedAt *metav1.Time) error {
		was, ok := w.ended[o.GetUID()]
		switch {
		case ok && was.revision == revision && open:
			return fmt.Errorf("the update of %s %s to %s ended at %s, and is open again", kind, o.GetName(), revision, was.at)
		case ok && was.revision == revision && endedAt != nil && !endedAt.Equal(&was.at):
			return fmt.Errorf("the update of %s %s to %s ended at %s, and at %s again", kind, o.GetName(), revision, was.at, endedAt)
		case endedAt != nil:
			w.ended[o.GetUID()] = end{*endedAt, revision}
		}
		return nil
	}
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		if p := set.Status.UpdateProgress; p != nil {
			if err := check(set, "set", fmt.Sprint(*set.Status.CurrentGenerationHash, p.UpdateStartedAt), p.UpdateEndedAt == nil, p.UpdateEndedAt); err != nil {
				return err
			}
		}
	}
	for _, g := range w.groups {
		if p := g.Status.UpdateProgress; p != nil {
			if err := check(g, "group", fmt.Sprint(p.PodCliqueSetGenerationHash, workload.RevisionNumber(g)), p.UpdateEndedAt == nil, p.UpdateEndedAt); err != nil {
				return err
			}
		}
	}
	for _, q := range w.cliques {
		if p := q.Status.UpdateProgress; p != nil {
			if err := check(q, "PodClique", fmt.Sprint(p.PodCliqueSetGenerationHash, workload.RevisionNumber(q)), p.UpdateEndedAt == nil, p.UpdateEndedAt); err != nil {
				return err
			}
		}
	}
	return nil
}
