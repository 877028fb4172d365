// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	grovev1alpha1 "github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	grovevalidation "github.com/muster-project/muster/pkg/apis/grove/validation"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/snapshot"
	"github.com/muster-project/muster/pkg/workload"
)

// manifest is what the objects of files become: PodGroups, and pods that wait.
type manifest struct {
	groups   []*v2alpha2.PodGroup
	pods     []*corev1.Pod
	problems []Problem // that validation has found
	// unplanned is what would have to be known to plan the gangs, and is not: "the pods of JobSet x".
	unplanned []string
	// ignored are objects of kinds that make no pods, "ConfigMap x".
	ignored []string
	// generated is the number of objects whose names were generated.
	generated int
	// made are the PodGroups that muster-controller makes of workloads. Those of groups with their names count instead.
	made []*v2alpha2.PodGroup
	// templates are those of ResourceClaims, by namespace and name, and claims are ResourceClaims.
	templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
	claims    []*resourcev1.ResourceClaim
	// notes are sentences about what is not planned.
	notes []string
	// runtimes are those of TrainJobs, by kind and name; trainJobs are added when all files have been read.
	runtimes  map[string]*unstructured.Unstructured
	trainJobs []*unstructured.Unstructured
	// sets are PodCliqueSets with topology constraints, which addSets adds; bindings are what these refer to.
	sets     []*grovev1alpha1.PodCliqueSet
	bindings []*grovev1alpha1.ClusterTopologyBinding
}

// uidOf returns the UID of an object of a manifest.
func uidOf(kind, namespace, name string) types.UID {
	return types.UID(fmt.Sprintf("manifest/%s/%s/%s", strings.ToLower(kind), namespace, name))
}

// readManifest reads files, - being the standard input, and all YAML and JSON files of folders.
func (o *options) readManifest(names []string, namespace string) (*manifest, error) {
	m := &manifest{}
	for _, name := range names {
		files := []string{name}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			files = nil
			for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
				found, _ := filepath.Glob(filepath.Join(name, pattern))
				files = append(files, found...)
			}
			slices.Sort(files)
		}
		for _, file := range files {
			if err := o.readFile(m, file, namespace); err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
		}
	}
	for _, job := range m.trainJobs {
		if err := m.addTrainJob(job); err != nil {
			return nil, err
		}
	}
	m.addMade()
	if len(m.groups)+len(m.pods)+len(m.problems)+len(m.unplanned)+len(m.notes)+len(m.sets) == 0 {
		return nil, errors.New("the files have no objects that make pods")
	}
	return m, nil
}

func (o *options) readFile(m *manifest, name, namespace string) error {
	in := o.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	documents := kubeyaml.NewYAMLReader(bufio.NewReader(in))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		if err := m.add(document, namespace); err != nil {
			return err
		}
	}
}

// add adds the object of a document, or those of a list.
func (m *manifest) add(document []byte, namespace string) error {
	var object struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Items             []runtime.RawExtension `json:"items"`
	}
	if err := yaml.Unmarshal(document, &object); err != nil {
		return fmt.Errorf("it is no Kubernetes object: %w", err)
	}
	if strings.HasSuffix(object.Kind, "List") {
		for _, item := range object.Items {
			if err := m.add(item.Raw, namespace); err != nil {
				return err
			}
		}
		return nil
	}
	group, _, _ := strings.Cut(object.APIVersion, "/")
	decode := func(into metav1.Object) error {
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			return fmt.Errorf("%s %s: %w", object.Kind, object.Name, err)
		}
		if into.GetNamespace() == "" {
			into.SetNamespace(namespace)
		}
		if into.GetName() == "" {
			m.generated++
			into.SetName(fmt.Sprintf("%sx%d", into.GetGenerateName(), m.generated))
		}
		into.SetUID(uidOf(object.Kind, into.GetNamespace(), into.GetName()))
		return nil
	}
	switch {
	case group == v2alpha2.GroupName && object.Kind == "PodGroup":
		g := &v2alpha2.PodGroup{}
		if err := decode(g); err != nil {
			return err
		}
		g.Generation = 1
		errs, warnings := validation.ValidatePodGroup(g)
		m.validated(object.Kind, g.Namespace, g.Name, errs, warnings)
		m.groups = append(m.groups, g)
		return nil
	case group == grovev1alpha1.GroupName && object.Kind == "PodCliqueSet":
		set := &grovev1alpha1.PodCliqueSet{}
		if err := decode(set); err != nil {
			return err
		}
		if err := setDefaultReplicas(document, set); err != nil {
			return err
		}
		return m.addSet(set)
	case group == grovev1alpha1.GroupName && object.Kind == "ClusterTopologyBinding":
		binding := &grovev1alpha1.ClusterTopologyBinding{}
		if err := decode(binding); err != nil {
			return err
		}
		m.bindings = append(m.bindings, binding)
		return nil
	}
	switch object.Kind {
	case "Pod":
		pod := &corev1.Pod{}
		if err := decode(pod); err != nil {
			return err
		}
		m.pods = append(m.pods, pod)
	case "ResourceClaim":
		claim := &resourcev1.ResourceClaim{}
		if err := decode(claim); err != nil {
			return err
		}
		m.claims = append(m.claims, claim)
	case "ResourceClaimTemplate":
		template := &resourcev1.ResourceClaimTemplate{}
		if err := decode(template); err != nil {
			return err
		}
		if m.templates == nil {
			m.templates = map[types.NamespacedName]*resourcev1.ResourceClaimTemplate{}
		}
		m.templates[types.NamespacedName{Namespace: template.Namespace, Name: template.Name}] = template
	case "ReplicaSet":
		set := &appsv1.ReplicaSet{}
		if err := decode(set); err != nil {
			return err
		}
		return m.addReplicaSet(set)
	case "Job", "CronJob", "StatefulSet", "Deployment", "JobSet", "LeaderWorkerSet", "RayCluster", "RayJob", "RayService", "TrainJob", "TrainingRuntime", "ClusterTrainingRuntime":
		if typed := typedWorkload(object.Kind); typed != nil { // an unknown field is an error
			if err := decode(typed); err != nil {
				return err
			}
		}
		u := &unstructured.Unstructured{}
		if err := decode(u); err != nil {
			return err
		}
		return m.addObject(u)
	case "PyTorchJob", "MPIJob", "DaemonSet", "PodClique":
		m.unplanned = append(m.unplanned, fmt.Sprintf("the pods of %s %s", object.Kind, object.Name))
	default:
		m.ignored = append(m.ignored, object.Kind+" "+object.Name)
	}
	return nil
}

// addReplicaSet adds the pods of a ReplicaSet.
func (m *manifest) addReplicaSet(set *appsv1.ReplicaSet) error {
	for i := range ptr.Deref(set.Spec.Replicas, 1) {
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name = set.Namespace, fmt.Sprintf("%s-%d", set.Name, i)
		pod.UID = types.UID(fmt.Sprintf("%s-%d", set.UID, i))
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true)}}
		m.pods = append(m.pods, pod)
	}
	return nil
}

// setDefaultReplicas sets the replicas of the cliques of which the document gives none, as the API server does.
func setDefaultReplicas(document []byte, set *grovev1alpha1.PodCliqueSet) error {
	var given struct {
		Spec struct {
			Template struct {
				Cliques []struct {
					Spec struct {
						Replicas *int32 `json:"replicas"`
					} `json:"spec"`
				} `json:"cliques"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(document, &given); err != nil {
		return err
	}
	for i, clique := range given.Spec.Template.Cliques {
		set.Spec.Template.Cliques[i].Spec.Replicas = ptr.Deref(clique.Spec.Replicas, 1)
	}
	return nil
}

// addSet adds the PodGroups and pods that muster-controller makes of a PodCliqueSet.
func (m *manifest) addSet(set *grovev1alpha1.PodCliqueSet) error {
	grovev1alpha1.SetDefaults(set, grovev1alpha1.DefaultSchedulerName)
	errs, warnings := grovevalidation.ValidateNewPodCliqueSet(set)
	if !m.validated(grovev1alpha1.KindPodCliqueSet, set.Namespace, set.Name, errs, warnings) {
		return nil
	}
	if len(set.Spec.Template.TopologyConstraints()) > 0 {
		m.sets = append(m.sets, set)
		return nil
	}
	return m.makeSet(set, workload.Topology{})
}

// addSets adds the PodGroups and pods of PodCliqueSets with topology constraints, which are validated now. What they
// refer to is in the files or in the snapshot.
func (m *manifest) addSets(s *snapshot.Snapshot) error {
	bindings := append(slices.Clone(m.bindings), snapshot.All[*grovev1alpha1.ClusterTopologyBinding](s)...)
	for _, set := range m.sets {
		var binding *grovev1alpha1.ClusterTopologyBinding
		if at := slices.IndexFunc(bindings, func(b *grovev1alpha1.ClusterTopologyBinding) bool { return b.Name == set.Spec.Template.TopologyName() }); at >= 0 {
			binding = bindings[at]
		}
		errs, warnings, err := grovevalidation.ValidateNewTopology(set, func(string) (*grovev1alpha1.ClusterTopologyBinding, error) { return binding, nil })
		if err != nil {
			return err
		}
		if !m.validated(grovev1alpha1.KindPodCliqueSet, set.Namespace, set.Name, errs, warnings) {
			continue
		}
		reference := workload.TopologyReference(binding, grovev1alpha1.DefaultSchedulerName)
		var labels []string
		for _, t := range snapshot.All[*topologyv1alpha1.Topology](s) {
			if t.Name == reference {
				labels = t.Spec.NodeLabels()
			}
		}
		if err := m.makeSet(set, workload.NewTopology(binding, reference, labels)); err != nil {
			return err
		}
	}
	return nil
}

// makeSet adds the PodGroups and pods of a valid PodCliqueSet.
func (m *manifest) makeSet(set *grovev1alpha1.PodCliqueSet, topology workload.Topology) error {
	revision := workload.NewRevision(set, grovev1alpha1.DefaultSchedulerName, nil, nil)
	for i := range int(set.Spec.Replicas) {
		group := workload.PodGroup(set, i, workload.Children{Topology: topology})
		if group == nil {
			continue
		}
		group.Generation, group.UID = 1, uidOf("podgroup", group.Namespace, group.Name)
		m.groups = append(m.groups, group)
		cliques := workload.PodCliques(set, revision, i, nil, nil)
		for _, g := range workload.ScalingGroups(set, revision, i, nil, nil) {
			for j := range int(g.Spec.Replicas) {
				cliques = append(cliques, workload.MemberPodCliques(set, revision, g, j, nil, nil, false)...)
			}
		}
		for _, clique := range cliques {
			for k := range int(clique.Spec.Replicas) {
				pod, err := workload.Pod(clique, lifecycle.NewPod{Index: k}, workload.PodOptions{})
				if err != nil {
					return err
				}
				pod.Name = naming.PodHostname(clique.Name, k)
				pod.UID = uidOf("pod", pod.Namespace, pod.Name)
				m.pods = append(m.pods, pod)
			}
		}
	}
	return nil
}

// isPlannable returns an error if the gangs cannot be planned.
func (m *manifest) isPlannable() error {
	for _, p := range m.problems {
		if p.Severity == severityError {
			return fmt.Errorf("%s is not valid: %s", p.Object, p.Message)
		}
	}
	if len(m.unplanned) > 0 {
		return fmt.Errorf("what-if does not know %s: give the PodGroups and the pods instead", strings.Join(m.unplanned, ", "))
	}
	return nil
}

// complete gives the pods what an API server would: requests, a priority, and a phase.
func (m *manifest) complete(s *snapshot.Snapshot) error {
	classes := map[string]*schedulingv1.PriorityClass{}
	def := &schedulingv1.PriorityClass{}
	for _, class := range snapshot.All[*schedulingv1.PriorityClass](s) {
		if classes[class.Name] = class; class.GlobalDefault {
			def = class
		}
	}
	for _, pod := range m.pods {
		class := def
		if name := pod.Spec.PriorityClassName; name != "" {
			if class = classes[name]; class == nil {
				return fmt.Errorf("pod %s: there is no PriorityClass %s", pod.Name, name)
			}
		}
		if pod.Spec.Priority == nil {
			value := class.Value
			pod.Spec.Priority, pod.Spec.PriorityClassName = &value, class.Name
		}
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = class.PreemptionPolicy
		}
		if pod.Spec.SchedulerName == "" {
			pod.Spec.SchedulerName = corev1.DefaultSchedulerName
		}
		if pod.CreationTimestamp.IsZero() {
			pod.CreationTimestamp = metav1.NewTime(s.Taken)
		}
		pod.Status.Phase, pod.Spec.NodeName = corev1.PodPending, ""
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range containers {
				r := &containers[i].Resources
				for name, amount := range r.Limits {
					if _, ok := r.Requests[name]; !ok {
						if r.Requests == nil {
							r.Requests = corev1.ResourceList{}
						}
						r.Requests[name] = amount
					}
				}
			}
		}
	}
	return nil
}

// copyOf returns the manifest with other names, so that it can be there beside the original.
func (m *manifest) copyOf(n int) *manifest {
	suffix := fmt.Sprintf("-copy-%d", n)
	c := &manifest{templates: m.templates}
	for _, g := range m.groups {
		g = g.DeepCopy()
		g.Name, g.UID = g.Name+suffix, g.UID+types.UID(suffix)
		c.groups = append(c.groups, g)
	}
	for _, pod := range m.pods {
		p := pod.DeepCopy()
		p.Name, p.UID, p.Status.ResourceClaimStatuses = p.Name+suffix, p.UID+types.UID(suffix), nil
		if name := membership.Group(pod); name != "" {
			metav1.SetMetaDataLabel(&p.ObjectMeta, v2alpha2.SubGroupLabel, membership.Leaf(pod)) // other marks say it no longer
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, v2alpha2.PodGroupAnnotation, name+suffix)
		}
		c.pods = append(c.pods, p)
	}
	return c
}
