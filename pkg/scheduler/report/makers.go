// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
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
	// maxNamedInterval is the maximum interval between two reads of an owner without pods: no change of pods shows that a
	// suspended Job was deleted.
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
	client kubernetes.Interface
	pods   corelisters.PodLister            // nil: pods that name a PodGroup in another way are not searched
	listed func(gangs.Key) []podgroup.Owner // Registry.Owners
	failed func(gangs.Key) []*corev1.Pod    // nil: failed pods are not known
	// succeeded is Registry.SucceededControllers.
	succeeded func(gangs.Key) (sets.Set[types.UID], time.Time)
	clock     clock.PassiveClock

	owners reads[podgroup.Owner] // the field Seen and those below it
	named  reads[podgroup.Owner] // by PodGroup: the owner that would create its pods; no Kind: none was found
	jobs   reads[string]         // PodGroups named by Jobs of pods that are in no gang

	mu         sync.Mutex
	namespaces map[string]namespaceRead // guarded by mu; entries older than makersInterval are dropped
}

// namespaceRead caches the objects of a namespace that name PodGroups in a place without effect, by PodGroup.
type namespaceRead struct {
	at    time.Time
	found map[string][]claim
}

// claim is a finding, and the first pod that it concerns.
type claim struct {
	podgroup.Unclaimed
	pod *corev1.Pod
}

func newMakers(o Options) *makers {
	return &makers{
		client: o.Client, pods: o.Pods, listed: o.Registry.Owners, failed: o.Failed, succeeded: o.Registry.SucceededControllers, clock: o.Clock,
		named: reads[podgroup.Owner]{longest: namedInterval}, namespaces: map[string]namespaceRead{},
	}
}

// completeFacts sets the Facts that the reporter provides for a gang that lacks pods. It returns the findings.
func (m *makers) completeFacts(ctx context.Context, f *podgroup.Facts) []claim {
	reading, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	now := m.clock.Now()
	m.forgetExpired(now)
	key := gangs.Key{Namespace: f.Namespace, Name: f.Name}
	f.Examined, f.Owners = true, m.listed(key)
	if m.failed != nil {
		f.Failed = podgroup.DescribeFailures(m.failed(key), f.Owners)
		f.Owners = withFailed(f.Owners, f.Failed.Owners)
	}
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
	if m.pods == nil {
		return nil
	}
	found := m.otherClaims(reading, f.Namespace, now)[f.Name]
	for _, c := range found {
		f.Unclaimed = append(f.Unclaimed, c.Unclaimed)
	}
	return found
}

// factsOfLastRun returns the facts without a run that has succeeded, if the pods of a later one have failed. Otherwise a failed run
// of a CronJob would be said to have completed. f.Group must be the latest version.
func (m *makers) factsOfLastRun(f podgroup.Facts) podgroup.Facts {
	if !f.Ended && f.Pods > 0 || m.failed == nil {
		return f
	}
	key := gangs.Key{Namespace: f.Namespace, Name: f.Name}
	failed := m.failed(key)
	if len(failed) == 0 {
		return f
	}
	var failedLater bool
	if f.Pods == 0 {
		failedLater = podgroup.FailedSinceCompletion(failed, &f.Group.Status)
	} else {
		controllers, newest := m.succeeded(key)
		failedLater = podgroup.FailedLater(failed, controllers, newest)
	}
	if failedLater {
		return podgroup.WithoutEarlierRun(f)
	}
	return f
}

// forgetExpired drops expired data of namespaces.
func (m *makers) forgetExpired(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, read := range m.namespaces {
		if now.Sub(read.at) >= makersInterval {
			delete(m.namespaces, name)
		}
	}
}

// otherClaims returns, by PodGroup, the objects that name it in another way. It visits the pods of the namespace.
func (m *makers) otherClaims(ctx context.Context, namespace string, now time.Time) map[string][]claim {
	m.mu.Lock()
	read, known := m.namespaces[namespace]
	m.mu.Unlock()
	if known {
		return read.found
	}
	pods, err := m.pods.Pods(namespace).List(labels.Everything())
	if err != nil {
		return nil
	}
	found := findClaims(pods, func(name string, uid types.UID) string { return m.jobNames(ctx, namespace, name, uid, now) })
	m.mu.Lock()
	m.namespaces[namespace] = namespaceRead{at: now, found: found}
	m.mu.Unlock()
	return found
}

// jobNames returns the PodGroup named by a Job's own annotation, "" if it names none.
func (m *makers) jobNames(ctx context.Context, namespace, name string, uid types.UID, now time.Time) string {
	return m.jobs.readIfDue(uid, 0, now, func() (string, bool) {
		job, err := m.client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
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
		if pod.Annotations[v2alpha2.PodGroupAnnotation] != "" || pod.DeletionTimestamp != nil {
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
