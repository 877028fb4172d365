// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
)

// Kind is a kind of workloads whose gangs are known.
type Kind struct {
	schema.GroupVersionKind
	// gangs returns what the gangs of a workload need, by the name of the PodGroup; none: it needs no PodGroup now.
	gangs func(object *unstructured.Unstructured) (map[string]v2alpha2.PodGroupSpec, error)
	// pods returns what the controller of a workload makes first. nil: the pods of the kind are not known.
	pods func(object *unstructured.Unstructured) (Made, error)
}

// IsNative reports whether objects of the kind are groups of Kubernetes itself, which form trees, and are read in
// whatever version is served: the kind has none.
func (k Kind) IsNative() bool { return k.Group == membership.NativeGroup }

// plan is what a controller will create for a workload.
type plan struct {
	template template
	// pods is the number of pods that exist at the same time; 0: none, now.
	pods int32
	// asksNative: a field of the workload asks for a gang of Kubernetes.
	asksNative bool
}

// template is a pod template; of a cached workload, what Strip has left of it.
type template struct {
	corev1.PodTemplateSpec `json:",inline"`
}

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job")

var kinds = []Kind{
	{jobKind, oneGang(readJob), podsOfJob},
	{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), oneGang(readReplicas), podsOfStatefulSet},
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), oneGang(readReplicas), podsOfDeployment},
	{schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}, gangsOfReplicas, podsOfReplicas},
	{schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}, gangOfJobSet, podsOfJobSet},
	{schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"}, gangOfRayCluster, podsOfRayCluster},
	{schema.FromAPIVersionAndKind(membership.Coscheduling.APIVersion, PodGroupKind), gangOfCoscheduling, nil},
	{schema.FromAPIVersionAndKind(membership.Volcano.APIVersion, PodGroupKind), gangOfVolcano, nil},
	{GroupVersionKind: schema.GroupVersionKind{Group: membership.NativeGroup, Kind: PodGroupKind}},
	{GroupVersionKind: schema.GroupVersionKind{Group: membership.NativeGroup, Kind: CompositeKind}},
}

// PodGroupKind is the kind of PodGroups, of Muster and of others.
const PodGroupKind = "PodGroup"

// Name returns what the kind is called: "Job", or "PodGroup.scheduling.x-k8s.io" for the PodGroups of another
// scheduler.
func (k Kind) Name() string {
	if k.IsNamed() {
		return k.GroupKind().String()
	}
	return k.Kind
}

// Names returns the names of all kinds.
func Names() []string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.Name())
	}
	return names
}

// Select returns the kinds of these names. The error names all that are unknown or twice there.
func Select(names []string) ([]Kind, error) {
	var selected []Kind
	var unknown []string
	for i, name := range names {
		j := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name() == name })
		if j < 0 || slices.Contains(names[:i], name) {
			unknown = append(unknown, fmt.Sprintf("%q", name))
			continue
		}
		selected = append(selected, kinds[j])
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("%s: the kinds are %s, each at most once", strings.Join(unknown, ", "), strings.Join(Names(), ", "))
	}
	return selected, nil
}

// jobSpec is what is read of the spec of a Job.
type jobSpec struct {
	Parallelism    *int32   `json:"parallelism"`
	Completions    *int32   `json:"completions"`
	CompletionMode string   `json:"completionMode"`
	Suspend        bool     `json:"suspend"`
	Scheduling     any      `json:"scheduling"` // what the Job controller writes into the PodGroup of Kubernetes that it makes
	Template       template `json:"template"`
}

// pods returns how many pods the Job controller creates: as many as may run at the same time, and no more than have to
// succeed.
func (s jobSpec) pods() int32 {
	pods := ptr.Deref(s.Parallelism, 1)
	if s.Completions != nil {
		pods = min(pods, *s.Completions)
	}
	if s.Suspend {
		pods = 0
	}
	return pods
}

func readJob(object *unstructured.Unstructured) (plan, error) {
	var job struct {
		Spec jobSpec `json:"spec"`
	}
	err := convert(object, &job)
	return plan{job.Spec.Template, job.Spec.pods(), job.Spec.Scheduling != nil}, err
}

// readReplicas reads a workload that consists of replicas of a pod.
func readReplicas(object *unstructured.Unstructured) (plan, error) {
	var set struct {
		Spec struct {
			Replicas *int32   `json:"replicas"`
			Template template `json:"template"`
		} `json:"spec"`
	}
	err := convert(object, &set)
	return plan{set.Spec.Template, ptr.Deref(set.Spec.Replicas, 1), false}, err
}

func convert(object *unstructured.Unstructured, to any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, to); err != nil {
		return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// Strip removes from a stored workload all that is not read here: most of it are the containers of its pods. It changes
// the object, and returns other objects as they are.
func Strip(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
		if u.GroupVersionKind().Group != membership.NativeGroup { // whose conditions are written
			delete(u.Object, "status")
		}
		annotations := u.GetAnnotations()
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		u.SetAnnotations(annotations)
		stripPodSpecs(u.Object)
	}
	return object, nil
}

// stripPodSpecs shortens every pod spec below the node.
func stripPodSpecs(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, isPodSpec := node["containers"]; isPodSpec {
			for key := range node {
				if key != "schedulerName" && key != "priorityClassName" && key != "schedulingGroup" {
					delete(node, key)
				}
			}
			return
		}
		for _, child := range node {
			stripPodSpecs(child)
		}
	case []any:
		for _, child := range node {
			stripPodSpecs(child)
		}
	}
}

// isOurs reports whether a scheduler of Muster may schedule the pods: whichever is not the default one.
func (t template) isOurs() bool {
	return cmp.Or(t.Spec.SchedulerName, corev1.DefaultSchedulerName) != corev1.DefaultSchedulerName
}
