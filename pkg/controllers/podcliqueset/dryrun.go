// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// trialTimeout is how long the answers about all pods of a revision may take. Webhooks that take longer answer nothing.
const trialTimeout = 10 * time.Second

// trial is what the API server said about pods of a revision of a set.
type trial struct {
	revision int64     // the number of the revision; 0: none was tried
	at       time.Time // when the API server was asked
	rejected string    // why it rejects pods; "": it accepts them, or does not say
	reported string    // the text of the last event about it, without digits
}

// trialPod is a pod that is created with dry-run.
type trialPod struct {
	*corev1.Pod
	clique     string        // the name of its clique in the template
	gone, also []*corev1.Pod // the pods that are deleted before it is created, and those that are created beside it
}

// tryTemplate returns why the API server rejects pods of a revision of a set with defaults, which has not been rolled
// out to any replica; "": it accepts them, or that is unknown. Of each clique of which the update replaces pods, it
// creates one pod with dry-run, so that a template that is rejected costs no pod. It asks once; as long as pods are
// rejected, again every lifecycle.RetryRejected. Under OnDelete it only reports what is rejected. Source:
// docs/decisions, U9.
func (r *Reconciler) tryTemplate(ctx context.Context, set *v1alpha1.PodCliqueSet, revision *workload.Revision, owned ownedObjects, now time.Time) (rejected string, err error) {
	onDelete := set.Spec.IsOnDelete()
	if progress := workload.SetProgress(set); set.Spec.IsTraining() || progress == nil ||
		!progress.Open() && !onDelete || owned.isReached(revision) {
		return "", nil
	}
	t := r.trials.Of(set, nil)
	if t.revision != revision.Number {
		*t = trial{revision: revision.Number}
	} else if t.rejected == "" || onDelete || now.Sub(t.at) < lifecycle.RetryRejected {
		return t.whyNotBegin(onDelete), nil
	}
	pods, err := r.trialPods(ctx, set, revision, owned)
	if err != nil {
		t.revision = 0
		return "", err
	}
	answers := make([]error, len(pods))
	trialCtx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	_ = children.ForEach(len(pods), maxCreating, func(i int) error { // each error is an answer
		answers[i] = r.client.Create(trialCtx, pods[i].DeepCopy(), client.DryRunAll)
		return nil
	})
	if err := ctx.Err(); err != nil {
		t.revision = 0
		return "", err
	}
	var refused, unknown []string
	for i, answer := range answers {
		switch text := fmt.Sprintf("clique %s: %v", pods[i].clique, answer); {
		case answer == nil || workload.FitsQuotaAfter(answer.Error(), pods[i].gone, pods[i].also):
		case children.IsRejection(answer):
			refused = append(refused, text)
		default:
			unknown = append(unknown, text)
		}
	}
	t.at, t.rejected = now, ""
	switch {
	case len(refused) > 0:
		t.rejected = "nothing is replaced: the API server rejects pods of the new template: " + strings.Join(refused, "; ")
		if onDelete {
			t.rejected = "pods that are deleted cannot be created again: the API server rejects pods of the new template: " + strings.Join(refused, "; ")
		}
		r.reportTrial(set, t, corev1.EventTypeWarning, v1alpha1.EventTemplateRejected, t.rejected)
	case len(unknown) > 0 && !onDelete:
		r.reportTrial(set, t, corev1.EventTypeNormal, v1alpha1.EventTemplateUnchecked,
			"the update begins although it is unknown whether the API server accepts pods of the new template: "+strings.Join(unknown, "; "))
	}
	return t.whyNotBegin(onDelete), nil
}

// whyNotBegin returns why the update may not begin.
func (t *trial) whyNotBegin(onDelete bool) string {
	if onDelete {
		return ""
	}
	return t.rejected
}

// reportTrial emits an event about what the API server said, unless only numbers in it have changed since the last one,
// such as the usage of a quota, or the condition Progressing of the set says the same.
func (r *Reconciler) reportTrial(set *v1alpha1.PodCliqueSet, t *trial, kind, reason, text string) {
	was := t.reported
	t.reported = children.WithoutDigits(text)
	if t.reported == was || t.reported == children.WithoutDigits(workload.UpdateState(set.Status.Conditions).Message) {
		return
	}
	r.recorder.Eventf(set, nil, kind, reason, v1alpha1.ActionUpdate, "%s", message.Truncate(text, message.MaxCondition))
}

// isReached reports whether the update to the revision has begun to replace pods: the turn of a PodClique or scaling
// group has come.
func (o ownedObjects) isReached(revision *workload.Revision) bool {
	isTurn := func(child metav1.Object) bool {
		return workload.RevisionNumber(child) == revision.Number && workload.HasTurn(child)
	}
	for _, c := range o.cliques {
		if isTurn(c) {
			return true
		}
	}
	for _, g := range o.groups {
		if isTurn(g) {
			return true
		}
	}
	return false
}

// trialPods returns a pod of the revision for each clique of which a pod of an earlier template exists, and for the
// other cliques of its scaling group, whose replicas are replaced whole.
func (r *Reconciler) trialPods(ctx context.Context, set *v1alpha1.PodCliqueSet, revision *workload.Revision, owned ownedObjects) ([]trialPod, error) {
	all := owned.children().Cliques
	var trials []trialPod
	tried := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		if tried[c.Labels[v1alpha1.LabelTemplateName]] || c.DeletionTimestamp != nil {
			continue
		}
		pods, err := r.countedPods(ctx, c)
		if err != nil {
			return nil, err
		}
		if outdated := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return revision.Created(pod) }); len(outdated) == 0 {
			continue
		} else if c.Labels[v1alpha1.LabelPodCliqueScalingGroup] == "" {
			pods = outdated[:1] // pods are replaced one at a time
		}
		unit, err := r.trialUnit(ctx, set, revision, c, pods, owned)
		if err != nil {
			return nil, err
		}
		for _, trial := range unit {
			if !tried[trial.clique] {
				tried[trial.clique], trials = true, append(trials, trial)
			}
		}
	}
	slices.SortFunc(trials, func(a, b trialPod) int { return cmp.Compare(a.clique, b.clique) })
	return trials, nil
}

// trialUnit returns a pod of the revision for a standalone PodClique, in place of pods; or for each PodClique of the
// scaling-group replica that it belongs to, in place of all pods of the replica.
func (r *Reconciler) trialUnit(ctx context.Context, set *v1alpha1.PodCliqueSet, revision *workload.Revision, c *v1alpha1.PodClique, pods []*corev1.Pod, owned ownedObjects) ([]trialPod, error) {
	i := naming.LabelIndex(c.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
	wanted, live := workload.PodCliques(set, revision, i, nil, nil), owned.cliques
	group := owned.groups[c.Labels[v1alpha1.LabelPodCliqueScalingGroup]]
	if group != nil {
		wanted, live = workload.MemberPodCliques(set, revision, group, workload.GroupReplicaIndex(c), nil, nil, false), owned.members
		pods = nil
	}
	var trials []trialPod
	var created []*corev1.Pod // all pods of the unit, beside those that are tried
	for _, want := range wanted {
		existing := live[want.Name]
		if existing == nil || group == nil && existing != c {
			continue
		}
		want.Spec.Replicas = existing.Spec.Replicas
		described, _ := workload.Updated(existing, want)
		// The suffix of the name is not that of any pod: pods replace pods with a UID, or none.
		pod, err := workload.Pod(described, lifecycle.NewPod{Replaces: "dry-run"}, r.options.OfPods())
		if err != nil {
			continue // the PodClique's controller reports it
		}
		trials = append(trials, trialPod{Pod: pod, clique: existing.Labels[v1alpha1.LabelTemplateName]})
		if group == nil {
			continue
		}
		for range described.Spec.Replicas - 1 {
			created = append(created, pod)
		}
		gone, err := r.countedPods(ctx, existing)
		if err != nil {
			return nil, err
		}
		pods = append(pods, gone...)
	}
	for k := range trials {
		trials[k].gone, trials[k].also = pods, slices.Clone(created)
		for j := range trials {
			if j != k {
				trials[k].also = append(trials[k].also, trials[j].Pod)
			}
		}
	}
	return trials, nil
}

// countedPods returns the pods of a PodClique that count in ResourceQuotas and are not being deleted, in the order of
// their names. Read-only.
func (r *Reconciler) countedPods(ctx context.Context, c *v1alpha1.PodClique) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := r.children.ListOwned(ctx, c, list); err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil && !workload.HasEnded(p) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nil
}
