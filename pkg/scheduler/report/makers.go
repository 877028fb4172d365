// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

const (
	// makersAfter is how long a gang must have lacked pods before the owners of its pods are examined: most pods are
	// created within seconds.
	makersAfter = 10 * time.Second
	// makersInterval is the minimum interval between two reads of an owner, and between two searches of the pods of a
	// namespace.
	makersInterval = time.Minute
	// maxNamedInterval is the maximum interval between two reads of an owner without pods: no change of pods shows that
	// a suspended Job was deleted.
	maxNamedInterval = 5 * time.Minute
	// maxReads is the maximum number of owners read per check of a gang or a namespace.
	maxReads = 5
	// warnAfter is how long a gang must have lacked pods, or its plans must have failed, before a warning is emitted.
	warnAfter = 5 * time.Minute
)

// makers determines why the pods that a gang lacks are not created. It watches nothing: pods are in the scheduler's
// cache, and an owner is read when a gang has waited for makersAfter, and then at growing intervals. If the first read
// fails, the reason is unknown.
type makers struct {
	Options
	owners reads[types.UID, podgroup.Owner]  // the field Seen and those below it
	named  reads[types.UID, podgroup.Owner]  // by PodGroup: the owner that would create its pods; no Kind: none was found
	jobs   reads[types.UID, string]          // PodGroups named by Jobs of pods that are in no gang
	claims reads[string, map[string][]claim] // by namespace, then by PodGroup: what names it in a place without effect
}

// claim is a finding, and the first pod that it concerns.
type claim struct {
	podgroup.Unclaimed
	pod *corev1.Pod
}

func newMakers(o Options) *makers {
	return &makers{
		Options: o,
		named:   reads[types.UID, podgroup.Owner]{longest: namedInterval},
		claims:  reads[string, map[string][]claim]{longest: func(map[string][]claim) time.Duration { return makersInterval }},
	}
}

// completeFacts sets the Facts that the reporter provides for a gang that lacks pods. It returns the findings.
func (m *makers) completeFacts(ctx context.Context, f *podgroup.Facts) []claim {
	reading, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	now := m.Clock.Now()
	key := gangs.Key{Namespace: f.Namespace, Name: f.Name}
	f.Examined, f.Owners = true, m.Registry.Owners(key)
	f.Failed = podgroup.DescribeFailures(m.Failed(key), f.Owners)
	f.Owners = withFailed(f.Owners, f.Failed.Owners)
	for i := range f.Owners[:min(len(f.Owners), maxReads)] {
		f.Owners[i] = m.readOwner(reading, f.Namespace, f.Owners[i], now)
	}
	if f.Pods > 0 {
		return nil
	}
	if len(f.Owners) == 0 && f.Failed.Total == 0 {
		switch o := m.ownerByName(reading, f, now); {
		case o.Kind != "":
			f.Owners = append(f.Owners, o)
		case !o.Seen: // the API server did not answer: perhaps there is one
			f.Examined = false
		}
	}
	found := m.otherClaims(reading, f.Namespace, now)[f.Name]
	for _, c := range found {
		f.Unclaimed = append(f.Unclaimed, c.Unclaimed)
	}
	return found
}

// factsOfLastRun returns the facts without a run that has succeeded, if the pods of a later one have failed. Otherwise
// a failed run of a CronJob would be said to have completed. f.Group must be the latest version.
func (m *makers) factsOfLastRun(f podgroup.Facts) podgroup.Facts {
	if !f.Ended && f.Pods > 0 {
		return f
	}
	key := gangs.Key{Namespace: f.Namespace, Name: f.Name}
	failed := m.Failed(key)
	if len(failed) == 0 {
		return f
	}
	var failedLater bool
	if f.Pods == 0 {
		failedLater = podgroup.FailedSinceCompletion(failed, &f.Group.Status)
	} else {
		controllers, newest := m.Registry.SucceededControllers(key)
		failedLater = podgroup.FailedLater(failed, controllers, newest)
	}
	if failedLater {
		return podgroup.WithoutEarlierRun(f)
	}
	return f
}

// otherClaims returns, by PodGroup, the objects that name it in another way. It visits the pods of the namespace.
func (m *makers) otherClaims(ctx context.Context, namespace string, now time.Time) map[string][]claim {
	return m.claims.readIfDue(namespace, 0, now, func() (map[string][]claim, bool) {
		pods, err := m.Pods.Pods(namespace).List(labels.Everything())
		if err != nil {
			return nil, false
		}
		return findClaims(pods, func(name string, uid types.UID) string { return m.jobNames(ctx, namespace, name, uid, now) }), true
	})
}

// jobNames returns the PodGroup named by a Job's own annotation, "" if it names none.
func (m *makers) jobNames(ctx context.Context, namespace, name string, uid types.UID, now time.Time) string {
	return m.jobs.readIfDue(uid, 0, now, func() (string, bool) {
		job, err := m.Client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || job.UID != uid {
			return "", err == nil || apierrors.IsNotFound(err)
		}
		return job.Annotations[v2alpha2.PodGroupAnnotation], true
	})
}

// findClaims examines pods that are in no gang. jobNames is called for the Jobs of these pods, first by name, at most
// maxReads times.
func findClaims(pods []*corev1.Pod, jobNames func(name string, uid types.UID) string) map[string][]claim {
	type place struct{ group, kind, where string }
	places := map[place]*claim{}
	add := func(p place, name string, pod *corev1.Pod) {
		c := places[p]
		if c == nil {
			c = &claim{Unclaimed: podgroup.Unclaimed{Kind: p.kind, Where: p.where}, pod: pod}
			places[p] = c
		}
		if c.Total++; len(c.Names) < 10 {
			c.Names = append(c.Names, name)
		}
	}
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	asked := map[types.UID]bool{}
	for _, pod := range pods {
		if membership.Group(pod) != "" || pod.DeletionTimestamp != nil {
			continue
		}
		group, where := podgroup.GangNamedOtherwise(pod)
		named := group != ""
		if named {
			add(place{group, "Pod", where}, pod.Name, pod)
		}
		if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.Kind == "Job" && strings.HasPrefix(ref.APIVersion, batchv1.GroupName+"/") && !named && !asked[ref.UID] && len(asked) < maxReads {
			asked[ref.UID] = true
			if group := jobNames(ref.Name, ref.UID); group != "" {
				add(place{group, "Job", "annotation " + v2alpha2.PodGroupAnnotation}, ref.Name, pod)
			}
		}
	}
	out := map[string][]claim{}
	for p, c := range places {
		out[p.group] = append(out[p.group], *c)
	}
	for _, found := range out {
		slices.SortFunc(found, func(a, b claim) int { return strings.Compare(a.Kind+" "+a.Where, b.Kind+" "+b.Where) })
	}
	return out
}
