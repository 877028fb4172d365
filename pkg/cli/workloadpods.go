// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/grouping"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// typedWorkload returns an object of a kind of Kubernetes itself, nil for other kinds.
func typedWorkload(kind string) metav1.Object {
	switch kind {
	case "Job":
		return &batchv1.Job{}
	case "StatefulSet":
		return &appsv1.StatefulSet{}
	case "Deployment":
		return &appsv1.Deployment{}
	case "CronJob":
		return &batchv1.CronJob{}
	}
	return nil
}

// addObject adds what becomes of a workload, or of an object that stands between a user and workloads.
func (m *manifest) addObject(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "CronJob":
		return m.addCronJob(object)
	case "RayJob":
		return m.addRayJob(object)
	case "RayService":
		return m.addRayCluster(object, "rayClusterConfig")
	case "TrainJob":
		m.trainJobs = append(m.trainJobs, object)
		return nil
	case "TrainingRuntime", "ClusterTrainingRuntime":
		if m.runtimes == nil {
			m.runtimes = map[string]*unstructured.Unstructured{}
		}
		m.runtimes[object.GetKind()+" "+object.GetName()] = object
		return nil
	}
	return m.addWorkload(object)
}

// addCronJob adds the next Job of a CronJob.
func (m *manifest) addCronJob(object *unstructured.Unstructured) error {
	template, _, err := unstructured.NestedMap(object.Object, "spec", "jobTemplate")
	if err != nil {
		return err
	}
	job := &unstructured.Unstructured{Object: template}
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	job.SetNamespace(object.GetNamespace())
	job.SetName(object.GetName() + "-next")
	job.SetUID(uidOf("job", job.GetNamespace(), job.GetName()))
	return m.addWorkload(job)
}

// addWorkload adds the PodGroups that muster-controller makes of a workload, and the pods that its controller makes.
func (m *manifest) addWorkload(object *unstructured.Unstructured) error {
	name := object.GetKind() + " " + object.GetName()
	kinds, err := grouping.Select([]string{object.GetKind()})
	if err != nil {
		return err
	}
	kind := kinds[0]
	if kind.Group != object.GroupVersionKind().Group {
		return fmt.Errorf("%s: its apiVersion is %s, want one of %s", name, object.GetAPIVersion(), kind.Group)
	}
	groups, err := kind.PodGroups(object)
	if refused := (*grouping.RefusedError)(nil); errors.As(err, &refused) {
		m.problem(object.GetKind(), object.GetNamespace(), object.GetName(), severityError, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	made, _, err := kind.Pods(object)
	if err != nil {
		return err
	}
	m.pods, m.made = append(m.pods, made.First...), append(m.made, groups...)
	switch {
	case len(made.Later) > 0:
		m.notes = append(m.notes, fmt.Sprintf("%s of %s %s after others are bound, are ready or have succeeded: not planned",
			message.Count(len(made.Later), "pod"), name, message.Plural(len(made.Later), "is created", "are created")))
	case len(made.First) == 0:
		m.notes = append(m.notes, name+" has no pods now")
	}
	return nil
}

// addMade adds the PodGroups that are made of workloads and have pods. One of the files under the name that the pods
// look for counts instead.
func (m *manifest) addMade() {
	has := func(g *v2alpha2.PodGroup) func(*v2alpha2.PodGroup) bool {
		return func(other *v2alpha2.PodGroup) bool {
			return client.ObjectKeyFromObject(g) == client.ObjectKeyFromObject(other)
		}
	}
	used := map[client.ObjectKey]bool{}
	for _, pod := range m.pods {
		used[client.ObjectKey{Namespace: pod.Namespace, Name: membership.Group(pod)}] = true
	}
	for _, g := range m.made {
		if used[client.ObjectKeyFromObject(g)] && !slices.ContainsFunc(m.groups, has(g)) {
			g.Generation, g.UID = 1, uidOf("podgroup", g.Namespace, g.Name)
			m.groups = append(m.groups, g)
		}
	}
}

// child returns an object that the controller of another one makes, with its name.
func child(of *unstructured.Unstructured, gvk schema.GroupVersionKind, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(gvk)
	object.SetNamespace(of.GetNamespace())
	object.SetName(of.GetName())
	object.SetUID(uidOf(gvk.Kind, of.GetNamespace(), of.GetName()))
	return object
}

// addRayCluster adds the RayCluster that KubeRay makes of the field of an object.
func (m *manifest) addRayCluster(object *unstructured.Unstructured, field string) error {
	name := object.GetKind() + " " + object.GetName()
	spec, has, err := unstructured.NestedMap(object.Object, "spec", field)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !has {
		m.notes = append(m.notes, fmt.Sprintf("%s has no spec.%s: no RayCluster is made for it", name, field))
		return nil
	}
	if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended {
		m.notes = append(m.notes, name+" has no pods now")
		return nil
	}
	return m.addWorkload(child(object, object.GroupVersionKind().GroupVersion().WithKind("RayCluster"), spec))
}

func (m *manifest) addRayJob(object *unstructured.Unstructured) error {
	if mode, _, _ := unstructured.NestedString(object.Object, "spec", "submissionMode"); mode == "" || mode == "K8sJobMode" {
		m.notes = append(m.notes, fmt.Sprintf("the submitter of RayJob %s is created when its cluster is ready: not planned", object.GetName()))
	}
	return m.addRayCluster(object, "rayClusterSpec")
}

// trainerStep is the label of replicated jobs of a runtime that says what they are for.
const trainerStep, trainerNode = "trainer.kubeflow.org/trainjob-ancestor-step", "trainer"

// addTrainJob adds the JobSet that Kubeflow Trainer makes of a TrainJob and its runtime, which has to be in the files.
func (m *manifest) addTrainJob(object *unstructured.Unstructured) error {
	var job struct {
		Spec struct {
			RuntimeRef struct {
				Name string `json:"name"`
				Kind string `json:"kind"`
			} `json:"runtimeRef"`
			Trainer struct {
				NumNodes         *int64                       `json:"numNodes"`
				ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode"`
			} `json:"trainer"`
			RuntimePatches []any `json:"runtimePatches"`
			Suspend        bool  `json:"suspend"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job); err != nil {
		return fmt.Errorf("TrainJob %s: %w", object.GetName(), err)
	}
	kind := job.Spec.RuntimeRef.Kind
	if kind == "" {
		kind = "ClusterTrainingRuntime"
	}
	of := m.runtimes[kind+" "+job.Spec.RuntimeRef.Name]
	if of == nil {
		m.unplanned = append(m.unplanned, fmt.Sprintf("the runtime of TrainJob %s (give it too: kubectl get %s %s -o yaml)",
			object.GetName(), strings.ToLower(kind), job.Spec.RuntimeRef.Name))
		return nil
	}
	template, _, _ := unstructured.NestedMap(of.Object, "spec", "template")
	policy, hasPolicy, _ := unstructured.NestedMap(of.Object, "spec", "mlPolicy")
	_, hasGroups, _ := unstructured.NestedMap(of.Object, "spec", "podGroupPolicy")
	_, hasMPI := policy["mpi"]
	_, hasFlux := policy["flux"]
	spec, ok := template["spec"].(map[string]any)
	if !ok || len(job.Spec.RuntimePatches) > 0 || hasGroups || hasMPI || hasFlux {
		m.unplanned = append(m.unplanned, fmt.Sprintf("TrainJob %s, because of runtimePatches, podGroupPolicy, or the policy of %s %s", object.GetName(), kind, of.GetName()))
		return nil
	}
	set := child(object, schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}, spec)
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(template, "metadata", "annotations")
	set.SetLabels(labels)
	set.SetAnnotations(annotations)
	if job.Spec.Suspend {
		spec["suspend"] = true
	}
	jobs, _ := spec["replicatedJobs"].([]any)
	for i := range jobs {
		replicated, ok := jobs[i].(map[string]any)
		if !ok {
			continue
		}
		step, _, _ := unstructured.NestedString(replicated, "template", "metadata", "labels", trainerStep)
		if step == "" {
			continue
		}
		replicated["replicas"] = int64(1)
		if step == trainerNode {
			nodes := job.Spec.Trainer.NumNodes
			if n, ok := policy["numNodes"].(int64); nodes == nil && hasPolicy {
				nodes = ptr.To(n)
				if !ok {
					nodes = ptr.To[int64](1)
				}
			}
			if err := setTrainer(replicated, nodes, job.Spec.Trainer.ResourcesPerNode); err != nil {
				return fmt.Errorf("TrainJob %s: %w", object.GetName(), err)
			}
		}
	}
	return m.addWorkload(set)
}

// setTrainer gives the replicated job of the nodes of a TrainJob their number, nil for that of the runtime, and the
// resources of each, nil for those of the runtime.
func setTrainer(replicated map[string]any, nodes *int64, resources *corev1.ResourceRequirements) error {
	for _, field := range []string{"parallelism", "completions"} {
		if nodes == nil {
			break
		}
		if err := unstructured.SetNestedField(replicated, *nodes, "template", "spec", field); err != nil {
			return err
		}
	}
	if resources == nil {
		return nil
	}
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(resources)
	if err != nil {
		return err
	}
	path := []string{"template", "spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(replicated, path...)
	if err != nil {
		return err
	}
	for i := range containers {
		if c, ok := containers[i].(map[string]any); ok && c["name"] == "node" {
			c["resources"] = value
		}
	}
	return unstructured.SetNestedSlice(replicated, containers, path...)
}
