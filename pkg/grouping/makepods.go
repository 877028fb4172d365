// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/membership"
)

// Made are the pods that the controller of a workload makes.
type Made struct {
	// First are those that it makes without waiting for any of them: with the names, labels, annotations and owners
	// that it gives them, and what it adds to their specs, as far as their gangs and their places depend on it.
	First []*corev1.Pod
	// Later are those that it makes when others are bound, are ready or have succeeded.
	Later []*corev1.Pod
}

// maxPods is the maximum number of pods that Pods returns.
const maxPods = 150_000

// add adds n times as many pods as of returns for an index.
func (m *Made) add(later bool, n int32, of func(i int) *corev1.Pod) error {
	to := &m.First
	if later {
		to = &m.Later
	}
	for i := range int(n) {
		if len(m.First)+len(m.Later) == maxPods {
			return refuse("it makes more than %d pods", maxPods)
		}
		*to = append(*to, of(i))
	}
	return nil
}

// Pods returns the pods that the controller of a workload makes. A suspended workload has none. known is false for
// kinds whose pods are not known: the groups of other schedulers, and kinds of rules.
func (k Kind) Pods(object *unstructured.Unstructured) (made Made, known bool, err error) {
	if k.pods == nil {
		return Made{}, false, nil
	}
	made, err = k.pods(object)
	return made, true, err
}

// podOf returns a pod of a template that the owner controls.
func podOf(t template, namespace, name string, owner metav1.OwnerReference) *corev1.Pod {
	owner.Controller = ptr.To(true)
	pod := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.UID = namespace, name, types.UID(fmt.Sprintf("%s/%s", owner.UID, name))
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	pod.Labels, pod.Annotations = merged(pod.Labels, nil), merged(pod.Annotations, nil)
	return pod
}

// merged returns both maps in one that is not nil; the values of the second one count.
func merged(a, b map[string]string) map[string]string {
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

func ownerOf(object *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID()}
}

// madeOwner is an object between a workload and its pods.
func madeOwner(apiVersion, kind, name string, of types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(fmt.Sprintf("%s/%s", of, name))}
}

// pod returns the pod of an index of a Job.
func (s *jobSpec) pod(namespace string, job metav1.OwnerReference, i int) *corev1.Pod {
	pod := podOf(s.Template, namespace, fmt.Sprintf("%s-%d", job.Name, i), job)
	pod.Labels[batchv1.JobNameLabel], pod.Labels[batchv1.ControllerUidLabel] = job.Name, string(job.UID)
	if s.CompletionMode == string(batchv1.IndexedCompletion) {
		pod.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i)
		pod.Annotations[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i)
	}
	return pod
}

func podsOfJob(object *unstructured.Unstructured) (made Made, err error) {
	var job struct {
		Spec jobSpec `json:"spec"`
	}
	if err := convert(object, &job); err != nil {
		return Made{}, err
	}
	err = made.add(false, job.Spec.pods(), func(i int) *corev1.Pod { return job.Spec.pod(object.GetNamespace(), ownerOf(object), i) })
	return made, err
}

// podsOfStatefulSet: unless they are made in parallel, each pod is made when those before it are ready.
func podsOfStatefulSet(object *unstructured.Unstructured) (made Made, err error) {
	p, err := readReplicas(object)
	if err != nil {
		return Made{}, err
	}
	of := func(i int) *corev1.Pod {
		pod := podOf(p.template, object.GetNamespace(), fmt.Sprintf("%s-%d", object.GetName(), i), ownerOf(object))
		pod.Labels[appsv1.StatefulSetPodNameLabel], pod.Labels[appsv1.PodIndexLabel] = pod.Name, strconv.Itoa(i)
		return pod
	}
	policy, _, _ := unstructured.NestedString(object.Object, "spec", "podManagementPolicy")
	if policy == string(appsv1.ParallelPodManagement) || p.pods <= 1 {
		err = made.add(false, p.pods, of)
		return made, err
	}
	made.First = append(made.First, of(0))
	err = made.add(true, p.pods-1, func(i int) *corev1.Pod { return of(i + 1) })
	return made, err
}

// podsOfDeployment: they are those of its ReplicaSet.
func podsOfDeployment(object *unstructured.Unstructured) (made Made, err error) {
	p, err := readReplicas(object)
	if err != nil {
		return Made{}, err
	}
	const hash = "0" // of the template
	set := madeOwner(object.GetAPIVersion(), "ReplicaSet", object.GetName()+"-"+hash, object.GetUID())
	err = made.add(false, p.pods, func(i int) *corev1.Pod {
		pod := podOf(p.template, object.GetNamespace(), fmt.Sprintf("%s-%d", set.Name, i), set)
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		return pod
	})
	return made, err
}

// podsOfReplicas: the leader of each replica of a LeaderWorkerSet is a pod of a StatefulSet of the name of the set, and
// the workers are of one of the name of the leader.
func podsOfReplicas(object *unstructured.Unstructured) (made Made, err error) {
	var set leaderWorkerSet
	if err := convert(object, &set); err != nil {
		return Made{}, err
	}
	of := set.Spec.LeaderWorkerTemplate
	leader, level := *cmp.Or(of.LeaderTemplate, &of.WorkerTemplate), object.GetAnnotations()[lwsExclusiveTopology]
	for i := range int(ptr.Deref(set.Spec.Replicas, 1)) {
		name := fmt.Sprintf("%s-%d", object.GetName(), i)
		pod := func(worker int, t template, name, owner string) *corev1.Pod {
			pod := podOf(t, object.GetNamespace(), name, madeOwner(appsv1.SchemeGroupVersion.String(), "StatefulSet", owner, object.GetUID()))
			maps.Copy(pod.Labels, membership.ReplicaLabels(object.GetName(), i, worker))
			return pod
		}
		err := made.add(false, 1, func(int) *corev1.Pod {
			pod := pod(0, leader, name, object.GetName())
			if level != "" {
				confine(pod, membership.ReplicaKey, name, level)
			}
			return pod
		})
		if err == nil {
			err = made.add(set.Spec.StartupPolicy == leaderReady || level != "", ptr.Deref(of.Size, 1)-1, func(k int) *corev1.Pod {
				return pod(k+1, of.WorkerTemplate, fmt.Sprintf("%s-%d", name, k+1), name)
			})
		}
		if err != nil {
			return Made{}, err
		}
	}
	return made, nil
}

// podsOfJobSet: first come those of the Jobs that depend on no other one, and of an exclusive Job its first pod.
func podsOfJobSet(object *unstructured.Unstructured) (made Made, err error) {
	var set jobSet
	if err := convert(object, &set); err != nil || set.Spec.Suspend {
		return Made{}, err
	}
	begun := false
	for _, r := range set.Spec.ReplicatedJobs {
		annotations := merged(set.Metadata.Annotations, r.Template.Metadata.Annotations)
		replicas, job := int(ptr.Deref(r.Replicas, 1)), r.Template.Spec
		job.CompletionMode = cmp.Or(job.CompletionMode, string(batchv1.IndexedCompletion)) // JobSet's default
		level := membership.ExclusiveLevel(merged(annotations, job.Template.Annotations))
		later := len(r.DependsOn) > 0 || begun && set.Spec.StartupPolicy.Order == inOrder
		begun = begun || replicas > 0 && job.pods() > 0
		for j := range replicas {
			owner := madeOwner(batchv1.SchemeGroupVersion.String(), "Job", fmt.Sprintf("%s-%s-%d", object.GetName(), r.Name, j), object.GetUID())
			of := func(i int) *corev1.Pod {
				pod := job.pod(object.GetNamespace(), owner, i)
				maps.Copy(pod.Labels, membership.JobSetLabels(object.GetName(), object.GetUID(), r.Name, j))
				pod.Annotations = merged(annotations, pod.Annotations)
				if level != "" && i == 0 {
					confine(pod, membership.JobKey, owner.Name, level)
				}
				return pod
			}
			first := job.pods()
			if level != "" {
				first = min(first, 1)
			}
			err := made.add(later, first, of)
			if err == nil {
				err = made.add(true, job.pods()-first, func(i int) *corev1.Pod { return of(i + int(first)) })
			}
			if err != nil {
				return Made{}, err
			}
		}
	}
	return made, nil
}

// podsOfRayCluster: the head and the workers, those of a group that is autoscaled as many as it begins with.
func podsOfRayCluster(object *unstructured.Unstructured) (made Made, err error) {
	var cluster rayCluster
	if err := convert(object, &cluster); err != nil || cluster.Spec.Suspend {
		return Made{}, err
	}
	add := func(t template, group, name string, n int32) error {
		return made.add(false, n, func(i int) *corev1.Pod {
			pod := podOf(t, object.GetNamespace(), fmt.Sprintf("%s-%s-%d", object.GetName(), name, i), ownerOf(object))
			maps.Copy(pod.Labels, membership.RayLabels(object.GetName(), group))
			return pod
		})
	}
	err = add(cluster.Spec.HeadGroupSpec.Template, membership.RayHead, "head", 1)
	for i := range cluster.Spec.WorkerGroups {
		if g := &cluster.Spec.WorkerGroups[i]; err == nil && !g.Suspend {
			err = add(g.Template, g.GroupName, g.GroupName+"-worker", g.begins()*g.hosts())
		}
	}
	return made, err
}

// confine gives a pod the terms by which JobSet and LeaderWorkerSet give a domain of the level to pods of one value of
// the label alone.
func confine(pod *corev1.Pod, label, value, level string) {
	pod.Labels[label] = value
	term := func(and ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: level, NamespaceSelector: &metav1.LabelSelector{}, LabelSelector: &metav1.LabelSelector{MatchExpressions: and}}
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	a := pod.Spec.Affinity
	if a.PodAffinity == nil {
		a.PodAffinity = &corev1.PodAffinity{}
	}
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	with := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*with = append(*with, term(metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}))
	without := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*without = append(*without, term(metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpExists},
		metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}))
}
