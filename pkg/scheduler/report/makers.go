// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
)

const (
	// makersAfter is how long a gang must have lacked pods before the owners of its pods are examined: most pods are
	// created within seconds.
	makersAfter = 10 * time.Second
	// makersInterval is the minimum interval between two reads of an owner, and between two searches of the pods of a
	// namespace.
	makersInterval = time.Minute
	// maxReads is the maximum number of owners read per check of a gang or a namespace.
	maxReads = 5
	// warnAfter is how long a gang must have lacked pods before a warning is emitted.
	warnAfter = 5 * time.Minute
)

// makers determines why the pods that a gang lacks are not created. It watches nothing: pods are in the scheduler's
// cache, and an owner is read when a gang has waited for makersAfter, and then at growing intervals. If the first read
// fails, the reason is unknown.
type makers struct {
	client kubernetes.Interface
	pods   corelisters.PodLister                // nil: pods that name a PodGroup in another way are not searched
	listed func(gangstate.Key) []podgroup.Owner // Registry.Owners
	failed func(gangstate.Key) int
	clock  clock.PassiveClock

	owners reads[podgroup.Owner] // the field Seen and those below it
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
		client: o.Client, pods: o.Pods, listed: o.Registry.Owners, failed: o.Failed, clock: o.Clock,
		namespaces: map[string]namespaceRead{},
	}
}

// complete sets the Facts that the reporter provides for a gang that lacks pods. It returns the findings.
func (m *makers) complete(ctx context.Context, f *podgroup.Facts) []claim {
	reading, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	now := m.clock.Now()
	m.forget(now)
	key := gangstate.Key{Namespace: f.Namespace, Name: f.Name}
	f.Owners = m.listed(key)
	for i := range f.Owners[:min(len(f.Owners), maxReads)] {
		f.Owners[i] = m.owner(reading, f.Namespace, f.Owners[i], now)
	}
	if m.failed != nil {
		f.Failed = m.failed(key)
	}
	if f.Pods > 0 || m.pods == nil {
		return nil
	}
	found := m.claims(reading, f.Namespace, now)[f.Name]
	for _, c := range found {
		f.Unclaimed = append(f.Unclaimed, c.Unclaimed)
	}
	return found
}

// forget drops expired data of namespaces.
func (m *makers) forget(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, read := range m.namespaces {
		if now.Sub(read.at) >= makersInterval {
			delete(m.namespaces, name)
		}
	}
}

// owner returns the owner with the data of its object.
func (m *makers) owner(ctx context.Context, namespace string, o podgroup.Owner, now time.Time) podgroup.Owner {
	read := m.owners.get(o.UID, o.Pods, now, func() (podgroup.Owner, bool) { return m.read(ctx, namespace, o) })
	o.Seen, o.Unknown, o.Wants, o.Ordered, o.Suspended = read.Seen, read.Unknown, read.Wants, read.Ordered, read.Suspended
	o.ControllerKind, o.ControllerName = read.ControllerKind, read.ControllerName
	return o
}

// read reads the owner from the API server. It returns false after an error, and the owner unchanged if it is gone.
func (m *makers) read(ctx context.Context, namespace string, o podgroup.Owner) (podgroup.Owner, bool) {
	version, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil { // not possible: the API server validates it
		o.Unknown = true
		return o, true
	}
	switch (schema.GroupKind{Group: version.Group, Kind: o.Kind}) {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		var set *appsv1.StatefulSet
		if set, err = m.client.AppsV1().StatefulSets(namespace).Get(ctx, o.Name, metav1.GetOptions{}); err == nil && set.UID == o.UID {
			o = controlledBy(o, set)
			o.Seen, o.Wants = true, int(ptr.Deref(set.Spec.Replicas, 1))
			o.Ordered = set.Spec.PodManagementPolicy != "Parallel"
		}
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}:
		var set *appsv1.ReplicaSet
		if set, err = m.client.AppsV1().ReplicaSets(namespace).Get(ctx, o.Name, metav1.GetOptions{}); err == nil && set.UID == o.UID {
			o = controlledBy(o, set)
			o.Seen, o.Wants = true, int(ptr.Deref(set.Spec.Replicas, 1))
		}
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		var job *batchv1.Job
		if job, err = m.client.BatchV1().Jobs(namespace).Get(ctx, o.Name, metav1.GetOptions{}); err == nil && job.UID == o.UID {
			o = controlledBy(o, job)
			o.Seen, o.Wants = true, int(ptr.Deref(job.Spec.Parallelism, 1))
			if job.Spec.Completions != nil {
				o.Wants = min(o.Wants, int(*job.Spec.Completions-job.Status.Succeeded))
			}
			o.Suspended = ptr.Deref(job.Spec.Suspend, false)
		}
	default:
		o.Unknown = true
	}
	return o, err == nil || apierrors.IsNotFound(err)
}

// controlledBy returns the owner with the controller of its object.
func controlledBy(o podgroup.Owner, object metav1.Object) podgroup.Owner {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
		o.ControllerKind, o.ControllerName = ref.Kind, ref.Name
	}
	return o
}

// claims returns, by PodGroup, the objects that name it in another way. It visits the pods of the namespace.
func (m *makers) claims(ctx context.Context, namespace string, now time.Time) map[string][]claim {
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
	return m.jobs.get(uid, 0, now, func() (string, bool) {
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
