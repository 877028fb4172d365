package gangstate

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/mark"
)

// counts are the answers to "how many pods has each leaf", by predicate.
type counts struct {
	created gang.Counts // pods that exist and have not failed, succeeded ones included
	usable  gang.Counts // created, less those that a plan cannot use: gated, terminating, of another scheduler
	bound   gang.Counts // bound or counted as succeeded (G9, G11)
}

// profile returns the schedulerName that the gang's waiting pods are planned with: that of its first waiting pod that
// names a profile of ours, of those that a plan could use if there are any. "" if none does.
func (r *Registry) profile(g *gangState) string {
	var first *member
	for _, m := range g.members {
		if m.state != pending || m.pod.DeletionTimestamp != nil || !r.profiles.Has(m.pod.Spec.SchedulerName) {
			continue
		}
		if first == nil || m.held() != first.held() && first.held() || m.held() == first.held() && earlier(m, first) < 0 {
			first = m
		}
	}
	if first == nil {
		return ""
	}
	return first.pod.Spec.SchedulerName
}

// held reports whether something of the pod's own keeps it from every plan.
func (m *member) held() bool { return m.misplaced != "" || len(m.pod.Spec.SchedulingGates) > 0 }

// usable reports whether a plan may place the member now.
func (m *member) usable(profile string) bool {
	return m.state == pending && m.misplaced == "" && m.pod.DeletionTimestamp == nil &&
		len(m.pod.Spec.SchedulingGates) == 0 && profile != "" && m.pod.Spec.SchedulerName == profile
}

// isBound is G11's "bound": nodeName set (or the binding accepted), not terminating (nor about to be), not Failed.
func (m *member) isBound() bool {
	return (m.state == bound || m.state == posted) && m.pod.DeletionTimestamp == nil && !m.leaving && m.pod.Status.Phase != corev1.PodFailed
}

// count asks every member once.
func (r *Registry) count(g *gangState, profile string) counts {
	c := counts{created: gang.Counts{}, usable: gang.Counts{}, bound: gang.Counts{}}
	present := g.presentRun()
	for _, m := range g.members {
		if m.misplaced != "" {
			continue
		}
		switch {
		case m.state == succeeded:
			if m.hasCompleted(present) {
				c.created[m.leaf]++
				c.usable[m.leaf]++
				c.bound[m.leaf]++
			}
		case m.pod.DeletionTimestamp != nil || m.leaving || m.pod.Status.Phase == corev1.PodFailed:
		case m.isBound():
			c.created[m.leaf]++
			c.usable[m.leaf]++
			c.bound[m.leaf]++
		case m.state == assumed:
			c.created[m.leaf]++
			c.usable[m.leaf]++
		default:
			c.created[m.leaf]++
			if m.usable(profile) {
				c.usable[m.leaf]++
			}
		}
	}
	return c
}

// run tells the pods of the present run from those of earlier ones (G9).
type run struct {
	controllers sets.Set[types.UID] // of the pods that have not ended
	plans       sets.Set[mark.Plan] // of the bound ones: what was bound together with them is of their run
}

// hasCompleted reports whether the member succeeded in the present run: an earlier run of a CronJob, or an earlier
// attempt, never counts for a later one. Of a gang of several Jobs one may be over while the others go on.
func (m *member) hasCompleted(present run) bool {
	return m.state == succeeded && (len(present.controllers) == 0 || present.controllers.Has(controller(m.pod)) ||
		present.plans.Has(m.mark.Plan()))
}

// presentRun returns what the pods that have not ended are known by.
func (g *gangState) presentRun() run {
	present := run{controllers: g.liveControllers(), plans: sets.New[mark.Plan]()}
	for _, m := range g.members {
		if !m.mark.IsZero() && m.isBound() {
			present.plans.Insert(m.mark.Plan())
		}
	}
	return present
}

// liveControllers returns the owners of the pods that have not ended.
func (g *gangState) liveControllers() sets.Set[types.UID] {
	owners := sets.New[types.UID]()
	for _, m := range g.members {
		if m.state != succeeded && m.pod.DeletionTimestamp == nil {
			owners.Insert(controller(m.pod))
		}
	}
	return owners
}

// controller returns the UID of a pod's controlling owner, "" for a bare pod.
func controller(pod *corev1.Pod) types.UID {
	for _, o := range pod.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			return o.UID
		}
	}
	return ""
}

// waiting returns the usable members in the order in which they are preferred inside a leaf: priority, pod index,
// creation, name (G5).
func (g *gangState) waiting(profile string) []*member {
	var out []*member
	for _, m := range g.members {
		if m.usable(profile) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, preferred)
	return out
}

func preferred(a, b *member) int {
	if c := cmp.Compare(podPriority(b.pod), podPriority(a.pod)); c != 0 {
		return c
	}
	if c := cmp.Compare(podIndex(a.pod), podIndex(b.pod)); c != 0 {
		return c
	}
	return earlier(a, b)
}

// earlier orders by creation, then name.
func earlier(a, b *member) int {
	if c := a.pod.CreationTimestamp.Time.Compare(b.pod.CreationTimestamp.Time); c != 0 {
		return c
	}
	return cmp.Compare(a.pod.Name, b.pod.Name)
}

func podPriority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// indexLabels are where workload controllers put a pod's index.
var indexLabels = []string{"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index", "grove.io/podclique-pod-index"}

// podIndex returns a pod's index, or a number above all indices if it has none.
func podIndex(pod *corev1.Pod) int {
	for _, l := range indexLabels {
		if v, ok := pod.Labels[l]; ok {
			if i, err := strconv.Atoi(v); err == nil {
				return i
			}
		}
	}
	return 1 << 30
}
