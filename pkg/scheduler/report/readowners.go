// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
)

// readOwner returns the owner with the data of its object.
func (m *makers) readOwner(ctx context.Context, namespace string, o podgroup.Owner, now time.Time) podgroup.Owner {
	read := m.owners.readIfDue(o.UID, o.Pods, now, func() (podgroup.Owner, bool) { return m.readOwnerObject(ctx, namespace, o) })
	read.Leaf, read.Mixed, read.Pods, read.Since, read.Failed = o.Leaf, o.Mixed, o.Pods, o.Since, o.Failed
	if read.UID == "" { // the first read failed
		return o
	}
	return read
}

// readOwnerObject reads the owner from the API server. It returns false after an error, and the owner unchanged if it
// is gone.
func (m *makers) readOwnerObject(ctx context.Context, namespace string, o podgroup.Owner) (podgroup.Owner, bool) {
	version, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil { // not possible: the API server validates it
		o.Unknown = true
		return o, true
	}
	kind := schema.GroupKind{Group: version.Group, Kind: o.Kind}
	switch kind {
	case statefulSetKind:
		var set *appsv1.StatefulSet
		if set, err = m.Client.AppsV1().StatefulSets(namespace).Get(ctx, o.Name, metav1.GetOptions{}); err == nil && set.UID == o.UID {
			o = ofStatefulSet(o, set)
		}
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}:
		var set *appsv1.ReplicaSet
		if set, err = m.Client.AppsV1().ReplicaSets(namespace).Get(ctx, o.Name, metav1.GetOptions{}); err == nil && set.UID == o.UID {
			o = controlledBy(o, set)
			o.Seen, o.Wants = true, int(ptr.Deref(set.Spec.Replicas, 1))
		}
	case jobKind:
		var job *batchv1.Job
		if job, err = m.Client.BatchV1().Jobs(namespace).Get(ctx, o.Name, metav1.GetOptions{}); err == nil && job.UID == o.UID {
			o = ownerOfJob(o, job)
		}
	default:
		o.Unknown = true
	}
	return o, err == nil || apierrors.IsNotFound(err)
}

var (
	jobKind         = schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}
	statefulSetKind = schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}
)

// ofStatefulSet returns the owner with the data of its object.
func ofStatefulSet(o podgroup.Owner, set *appsv1.StatefulSet) podgroup.Owner {
	o = controlledBy(o, set)
	o.Seen, o.Wants = true, int(ptr.Deref(set.Spec.Replicas, 1))
	o.Ordered = set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	return o
}

// ownerOfJob returns the owner with the data of its object.
func ownerOfJob(o podgroup.Owner, job *batchv1.Job) podgroup.Owner {
	o = controlledBy(o, job)
	o.Seen, o.Wants = true, int(ptr.Deref(job.Spec.Parallelism, 1))
	if job.Spec.Completions != nil {
		o.Wants = min(o.Wants, int(*job.Spec.Completions-job.Status.Succeeded))
	}
	o.Suspended, o.FailedIndexes = ptr.Deref(job.Spec.Suspend, false), ptr.Deref(job.Status.FailedIndexes, "")
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobFailed, c.Type == batchv1.JobFailureTarget: // the latter while its pods are being deleted
			o.GaveUp = cmp.Or(c.Reason, "JobFailed")
		case c.Type == batchv1.JobComplete:
			o.Complete = true
		}
	}
	return o
}

// ownerByName returns the Job or StatefulSet that should create the pods of a PodGroup without pods: a suspended Job
// has none, nor has one whose pods a quota refuses. It is the controller of the PodGroup, or has its name and a pod
// template that names the PodGroup. A controller of another kind is not read. No Kind: none was found if it is Seen,
// otherwise it is not known.
func (m *makers) ownerByName(ctx context.Context, f *podgroup.Facts, now time.Time) podgroup.Owner {
	name, kind, maker := f.Name, schema.GroupKind{}, types.UID("")
	if podgroup.IsTranslated(f.Group) {
		return podgroup.Owner{Seen: true} // any object may create its pods
	}
	if ref := metav1.GetControllerOfNoCopy(f.Group); ref != nil {
		maker, name, kind = ref.UID, ref.Name, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		if kind != jobKind && kind != statefulSetKind {
			return podgroup.Owner{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Unknown: true}
		}
	}
	return m.named.readIfDue(f.Group.UID, 0, now, func() (podgroup.Owner, bool) {
		if kind != statefulSetKind {
			job, err := m.Client.BatchV1().Jobs(f.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return podgroup.Owner{}, false
			}
			if err == nil && (job.UID == maker || namesGroup(&job.Spec.Template, f.Name)) {
				return ownerOfJob(ownerWithoutPods(jobKind, job, &job.Spec.Template), job), true
			}
		}
		if kind != jobKind {
			set, err := m.Client.AppsV1().StatefulSets(f.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return podgroup.Owner{}, false
			}
			if err == nil && (set.UID == maker || namesGroup(&set.Spec.Template, f.Name)) {
				return ofStatefulSet(ownerWithoutPods(statefulSetKind, set, &set.Spec.Template), set), true
			}
		}
		return podgroup.Owner{Seen: true}, true
	})
}

// namedInterval returns the maximum interval between two reads of what ownerByName has found: nothing shows that a
// suspended Job was deleted, or that one was created whose pods a quota refuses.
func namedInterval(o podgroup.Owner) time.Duration {
	if o.Kind == "" {
		return 3 * maxNamedInterval
	}
	return maxNamedInterval
}

func namesGroup(template *corev1.PodTemplateSpec, group string) bool {
	return template.Annotations[v2alpha2.PodGroupAnnotation] == group
}

// ownerWithoutPods returns an owner without pods.
func ownerWithoutPods(kind schema.GroupKind, object metav1.Object, template *corev1.PodTemplateSpec) podgroup.Owner {
	return podgroup.Owner{
		APIVersion: kind.Group + "/v1", Kind: kind.Kind, Name: object.GetName(), UID: object.GetUID(), Leaf: template.Labels[v2alpha2.SubGroupLabel],
	}
}

// withFailed returns the owners of failed pods that have no other pods, followed by the others, with the number of
// their failed pods.
func withFailed(live, failed []podgroup.Owner) []podgroup.Owner {
	var out []podgroup.Owner
	for _, o := range failed {
		if i := slices.IndexFunc(live, func(l podgroup.Owner) bool { return l.UID == o.UID }); i >= 0 {
			live[i].Failed = o.Failed
		} else {
			out = append(out, o)
		}
	}
	return append(out, live...)
}

// controlledBy returns the owner with the controller of its object.
func controlledBy(o podgroup.Owner, object metav1.Object) podgroup.Owner {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
		o.ControllerKind, o.ControllerName = ref.Kind, ref.Name
	}
	return o
}
