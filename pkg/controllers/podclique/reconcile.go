package podclique

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/observed"
)

// atOnce is how many requests for one clique are under way at a time.
const atOnce = 32

// Reconcile makes and deletes pods of one PodClique and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// 1. Read.
	if err := r.CollectAfter(ctx, &v1alpha1.PodClique{}, v1alpha1.KindPodClique, request.NamespacedName, atOnce, &corev1.PodList{}); err != nil {
		return children.Outcome(0, err)
	}
	clique := &v1alpha1.PodClique{}
	if err := r.Client.Get(ctx, request.NamespacedName, clique); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if clique.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // the garbage collector has it, and its pods
	}
	pods, err := r.podsOf(ctx, clique)
	if err != nil {
		return ctrl.Result{}, err
	}
	group, err := r.PodGroup(ctx, clique)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 2. Observe.
	now := time.Now()
	facts := observed.CliquePods(clique, pods, func(node string) bool { return r.unreachable(ctx, node) })
	leaf, listed := observed.Leaf(group, clique.Name)
	ends := observed.Ends(clique)

	// 3. Decide.
	d := lifecycle.DecidePods(lifecycle.CliquePods{
		Replicas: clique.Spec.Replicas, GroupMinimum: leaf, Pods: facts, Ends: ends}, now)
	d.Delete = append(d.Delete, outdated(facts, d.Delete)...)
	waiting := !listed && len(d.Create) > 0 // the PodGroup comes first
	if waiting {
		d.Create, d.Lost = nil, nil
	}

	// 4. Make what is missing. The rest waits for no one of these: indices are disjoint.
	mendErr := r.mend(ctx, clique, pods, facts)
	create, orphanErr := r.besideOrphans(ctx, clique, d.Create)
	done, createErr := children.InBatches(len(create), atOnce, func(i int) error {
		if err := r.Unchanged(ctx, clique); err != nil {
			return err
		}
		return r.createPod(ctx, clique, create[i])
	})
	createErr = errors.Join(orphanErr, createErr)

	// 5. Record, before anything is deleted.
	recorded := clique.DeepCopy()
	recorded.Status = desired.PodCliqueStatus(clique, desired.CliqueFacts{
		Pods: facts, Admitted: observed.Admitted(group, clique.Name), Problems: children.Problems(createErr)}, metav1.NewTime(now))
	after := d.RequeueAfter
	if wait := hold(clique, recorded, facts, done > 0 || waiting, r.rush.until(), now); wait > 0 && len(d.Delete) == 0 {
		if after == 0 || wait < after {
			after = wait
		}
	} else {
		if err := r.WriteStatus(ctx, clique, recorded); err != nil {
			return children.Outcome(0, err)
		}
		for _, c := range children.Troubles(clique.Status.Conditions, recorded.Status.Conditions) {
			r.recorder.Eventf(clique, nil, corev1.EventTypeWarning, c.Reason, "CreatePod", "%s", c.Message)
		}
		clique = recorded
	}
	if !maps.Equal(ends, d.Ends) && len(d.Delete) > 0 {
		if clique, err = r.recordEnds(ctx, clique, d.Ends); err != nil {
			return children.Outcome(0, err)
		}
	}

	// 6. Delete.
	deleteErr := r.upToDate(ctx, clique, pods, leaf, d.Delete)
	if deleteErr == nil {
		deleteErr = r.deletePods(ctx, clique, pods, d.Delete)
	}
	if len(d.Lost) > 0 && createErr == nil {
		r.recorder.Eventf(clique, nil, corev1.EventTypeWarning, "PodLost", "ReplacePod",
			"%s on nodes that do not answer replaced after the grace period", describe(d.Lost))
	}
	klog.FromContext(ctx).V(4).Info("Looked at the PodClique", "pods", len(pods), "made", done, "deleted", len(d.Delete), "held", d.Held)
	return children.Outcome(after, mendErr, createErr, deleteErr)
}

// mend gives pods the labels back that say whose they are. Somebody who takes them away hides the pod from its Service, and
// from whoever asks whether a clique has bound pods.
func (r *Reconciler) mend(ctx context.Context, clique *v1alpha1.PodClique, pods []*corev1.Pod, facts []lifecycle.Pod) error {
	indices := make(map[string]int, len(facts))
	for _, f := range facts {
		indices[f.UID] = f.Index
	}
	want := naming.Identity(naming.PodLabels(clique.Labels, clique.Name, 0))
	var errs []error
	for _, pod := range pods {
		index := indices[string(pod.UID)]
		if index < 0 || pod.DeletionTimestamp != nil {
			continue
		}
		want[v1alpha1.LabelPodIndex] = strconv.Itoa(index)
		for k, v := range want {
			if pod.Labels[k] != v {
				errs = append(errs, r.Relabel(ctx, pod, want))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// calm is how long after the birth of its youngest pod a clique's status may lag behind in numbers alone: pods that are
// made together are told of together.
const calm = 2 * time.Second

// While pods are made or start by the dozen, of any clique, such a status makes way: to the API server it is as much work
// as a pod, and whoever reads it waits for pods above all. It does so until makeWay after the rush, no longer than
// patience; pods that start without trouble are ready by then, and cost one write instead of four. The first status after a
// change of the spec does not: whoever made it waits for the generation to be observed, as kubectl wait does.
const (
	makeWay  = 5 * time.Second
	patience = time.Minute
)

// rush notes when pods were made, and started.
type rush struct {
	mu   sync.Mutex
	seen [16]time.Time // guarded by mu; the last ones
	next int           // guarded by mu; the oldest of them
}

func (r *rush) note(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[r.next] = now
	r.next = (r.next + 1) % len(r.seen)
}

// until returns when what was noted so far is no rush any more: makeWay after the sixteenth last.
func (r *rush) until() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[r.next].Add(makeWay)
}

// hold returns how long to wait before the status is written, 0 for not at all. What somebody acts on is never held: an
// availability or a minimum that changed, a failure that came or went. busy: this pass has made pods, or is about to.
// rush is when pods of whatever clique are, or were, no longer made or started by the dozen.
func hold(before, after *v1alpha1.PodClique, pods []lifecycle.Pod, busy bool, rush, now time.Time) time.Duration {
	youngest := before.CreationTimestamp.Time
	for _, p := range pods {
		if p.Created.After(youngest) {
			youngest = p.Created
		}
	}
	if busy {
		youngest = now
	}
	was, is := &before.Status, &after.Status
	if meta.IsStatusConditionTrue(was.Conditions, v1alpha1.ConditionAvailable) != meta.IsStatusConditionTrue(is.Conditions, v1alpha1.ConditionAvailable) ||
		(was.MinAvailable != nil && *was.MinAvailable != *is.MinAvailable) ||
		len(was.LastErrors) != 0 || len(is.LastErrors) != 0 {
		return 0
	}
	due := youngest.Add(calm)
	changed := was.ObservedGeneration != 0 && was.ObservedGeneration != is.ObservedGeneration
	if rush.After(due) && !changed {
		due = rush
		if latest := youngest.Add(patience); latest.Before(due) {
			due = latest
		}
	}
	return max(0, due.Sub(now))
}

// podsOf returns the pods that the clique owns.
func (r *Reconciler) podsOf(ctx context.Context, clique *v1alpha1.PodClique) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := children.Of(ctx, r.Client, clique, list); err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

// unreachable tells whether a node does not answer.
func (r *Reconciler) unreachable(ctx context.Context, name string) bool {
	node := &corev1.Node{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return observed.UnreachableNode(nil)
	}
	return err == nil && observed.UnreachableNode(node)
}

// besideOrphans returns the pods to make whose index no pod has that belongs to nobody, and an error that names those pods.
// Such pods are left behind by a PodClique of that name that was deleted with --cascade=orphan: they have the host names
// that ours would have.
func (r *Reconciler) besideOrphans(ctx context.Context, clique *v1alpha1.PodClique, wanted []lifecycle.NewPod) ([]lifecycle.NewPod, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.InNamespace(clique.Namespace), client.MatchingFields{orphans: clique.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pods that belong to nobody: %w", err)
	}
	taken := map[int]*corev1.Pod{}
	for i := range list.Items {
		if pod := &list.Items[i]; metav1.GetControllerOfNoCopy(pod) == nil && !ended(pod) {
			taken[observed.PodIndex(clique.Name, pod)] = pod
		}
	}
	var create []lifecycle.NewPod
	var errs []error
	for _, n := range wanted {
		pod := taken[n.Index]
		if pod == nil {
			create = append(create, n)
			continue
		}
		errs = append(errs, fmt.Errorf("creating pod %d: %w", n.Index,
			&children.InTheWay{Kind: "Pod", Name: pod.Name, Going: pod.DeletionTimestamp != nil}))
	}
	return create, errors.Join(errs...)
}

func (r *Reconciler) createPod(ctx context.Context, clique *v1alpha1.PodClique, n lifecycle.NewPod) error {
	pod, err := desired.Pod(clique, n, desired.PodOptions{SchedulerName: r.SchedulerName, WaitImage: r.WaitImage})
	if err != nil {
		return &children.Invalid{Err: err}
	}
	if err := r.Create(ctx, pod); err != nil {
		return fmt.Errorf("creating pod %d: %w", n.Index, err)
	}
	r.rush.note(time.Now())
	return nil
}

// templateChanged: the pod was made from an earlier template and no node has it: nothing is lost by making it anew.
const templateChanged lifecycle.DeletionReason = "TemplateChanged"

// outdated returns the pods that were never scheduled and have an old template, but those that are deleted anyway: a
// template that could not run may be repaired. Pods with a node stay what they are.
func outdated(pods []lifecycle.Pod, deleted []lifecycle.Deletion) []lifecycle.Deletion {
	gone := map[string]bool{}
	for _, d := range deleted {
		gone[d.Pod.UID] = true
	}
	var out []lifecycle.Deletion
	for _, p := range pods {
		if p.Outdated && !p.Scheduled && !p.Terminating && !p.Ended && !gone[p.UID] {
			out = append(out, lifecycle.Deletion{Pod: p, Reason: templateChanged})
		}
	}
	return out
}

// recordEnds writes the history of pods that ended to the PodClique, and returns it as it is then.
func (r *Reconciler) recordEnds(ctx context.Context, clique *v1alpha1.PodClique, ends map[int]lifecycle.Ends) (*v1alpha1.PodClique, error) {
	recorded := clique.DeepCopy()
	if text := observed.FormatEnds(ends); text != "" {
		metav1.SetMetaDataAnnotation(&recorded.ObjectMeta, naming.AnnotationEndedPods, text)
	} else {
		delete(recorded.Annotations, naming.AnnotationEndedPods)
	}
	if err := r.Client.Update(ctx, recorded); err != nil {
		return nil, fmt.Errorf("recording which pods ended: %w", err)
	}
	return recorded, nil
}

// upToDate returns nil if what the deletions were decided by is what the API server has: the clique, its minimum in the
// PodGroup, and that the pods which were counted are there still. A cache that is behind would have more deleted than there
// are too many. Pods that ended go whatever there is.
func (r *Reconciler) upToDate(ctx context.Context, clique *v1alpha1.PodClique, pods []*corev1.Pod, leaf int32, deletions []lifecycle.Deletion) error {
	if !slices.ContainsFunc(deletions, func(d lifecycle.Deletion) bool { return d.Reason != lifecycle.DeletedEnded }) {
		return nil
	}
	if err := r.Newest(ctx, clique); err != nil {
		return err
	}
	if slices.ContainsFunc(deletions, func(d lifecycle.Deletion) bool { return d.Reason == lifecycle.DeletedScaleIn }) {
		group, err := r.NewestPodGroup(ctx, clique)
		if err != nil {
			return err
		}
		if needed, _ := observed.Leaf(group, clique.Name); needed > leaf {
			return apierrors.NewConflict(v2alpha2.Resource("podgroups"), group.Name, errors.New("needs more pods than it did when it was read"))
		}
	}
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := r.Live.List(ctx, live, client.InNamespace(clique.Namespace), client.MatchingLabels(naming.OfPodClique(clique.Name))); err != nil {
		return fmt.Errorf("counting the pods before some are deleted: %w", err)
	}
	selector := labels.SelectorFromSet(naming.OfPodClique(clique.Name))
	there := make(map[types.UID]bool, len(live.Items))
	for i := range live.Items {
		there[live.Items[i].UID] = live.Items[i].DeletionTimestamp == nil
	}
	for _, p := range pods {
		if p.DeletionTimestamp == nil && selector.Matches(labels.Set(p.Labels)) && !there[p.UID] {
			return apierrors.NewConflict(corev1.Resource("pods"), p.Name, errors.New("is gone or about to, and was counted"))
		}
	}
	return nil
}

// deletePods deletes pods and tells why.
func (r *Reconciler) deletePods(ctx context.Context, clique *v1alpha1.PodClique, pods []*corev1.Pod, deletions []lifecycle.Deletion) error {
	if len(deletions) == 0 {
		return nil
	}
	byUID := make(map[string]*corev1.Pod, len(pods))
	for _, p := range pods {
		byUID[string(p.UID)] = p
	}
	err := children.All(len(deletions), atOnce, func(i int) error {
		pod := byUID[deletions[i].Pod.UID]
		if deletions[i].Reason == templateChanged {
			return r.DeleteVersion(ctx, pod) // it may have been given a node
		}
		return r.Delete(ctx, pod)
	})
	if err != nil {
		return fmt.Errorf("deleting pods: %w", err)
	}
	why := map[lifecycle.DeletionReason][]lifecycle.Pod{}
	for _, d := range deletions {
		why[d.Reason] = append(why[d.Reason], d.Pod)
	}
	for _, reason := range []struct {
		reason     lifecycle.DeletionReason
		kind, name string
		text       string
	}{
		{lifecycle.DeletedScaleIn, corev1.EventTypeNormal, "ScaledIn", "%s removed: there are more pods than replicas"},
		{lifecycle.DeletedEnded, corev1.EventTypeNormal, "PodEnded", "%s ended and will be replaced"},
		{lifecycle.DeletedDuplicate, corev1.EventTypeWarning, "DuplicateIndex", "%s removed: an older pod has the same index"},
		{templateChanged, corev1.EventTypeNormal, "TemplateChanged", "%s removed: not scheduled yet, and made from an earlier template"},
	} {
		if gone := why[reason.reason]; len(gone) > 0 {
			r.recorder.Eventf(clique, nil, reason.kind, reason.name, "DeletePod", reason.text, describe(gone))
		}
	}
	return nil
}

// describe names a few pods.
func describe(pods []lifecycle.Pod) string {
	const few = 5
	var names []string
	for _, p := range pods[:min(len(pods), few)] {
		names = append(names, p.Name)
	}
	text := "pod " + strings.Join(names, ", ")
	if more := len(pods) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
