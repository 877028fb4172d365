// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	grove "github.com/muster-project/muster/pkg/apis/grove/validation"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/topology"
	"github.com/muster-project/muster/pkg/workload"
)

const root = "../../manifests"

// object is one document of a file.
type object struct {
	client.Object
	file string // below manifests/
}

func (o object) String() string {
	return fmt.Sprintf("%s: %s %s", o.file, o.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(o.Object))
}

// kustomization is the part of the file that we use.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Images     []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
	Patches []struct {
		Target struct{ Kind, Name string } `json:"target"`
		Patch  string                      `json:"patch"`
	} `json:"patches"`
}

// readKustomization returns the kustomization of a directory below manifests/, "." for the base, with its resources as
// paths below manifests/. A resource that is a directory stands for the resources and images of its kustomization.
func readKustomization(t *testing.T, folder string) kustomization {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, folder, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var k kustomization
	if err := yaml.UnmarshalStrict(data, &k); err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	var files []string
	for _, resource := range k.Resources {
		file := filepath.Join(folder, resource)
		info, err := os.Stat(filepath.Join(root, file))
		if err != nil {
			t.Fatalf("listed in the kustomization of %s: %v", folder, err)
		}
		if info.IsDir() {
			part := readKustomization(t, file)
			files, k.Images = append(files, part.Resources...), append(k.Images, part.Images...)
		} else {
			files = append(files, file)
		}
	}
	k.Resources = files
	return k
}

// read decodes every document of the files strictly: an unknown or misspelled field is an error.
func read(t *testing.T, files ...string) []object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, v2alpha2.AddToScheme, topologyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []object
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
		for {
			document := make([]byte, len(data)+1)
			n, err := documents.Read(document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			obj, _, err := decoder.Decode(document[:n], nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			objects = append(objects, object{Object: obj.(client.Object), file: file})
		}
	}
	return objects
}

func readBase(t *testing.T) []object {
	t.Helper()
	return read(t, readKustomization(t, ".").Resources...)
}

func readCRDs(t *testing.T) []object {
	t.Helper()
	return read(t, readKustomization(t, "crds").Resources...)
}

func samples(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, path := range paths {
		files = append(files, filepath.Join("samples", filepath.Base(path)))
	}
	return files
}

func TestTheKustomizationsListEveryFileAndNoOther(t *testing.T) {
	t.Parallel()
	listed := slices.Concat(readKustomization(t, ".").Resources, readKustomization(t, "crds").Resources)
	var present []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && (file == "samples" || file == "components"):
			return fs.SkipDir
		case filepath.Ext(file) == ".yaml" && filepath.Base(file) != "kustomization.yaml":
			present = append(present, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed)
	slices.Sort(present)
	if diff := cmp.Diff(present, listed); diff != "" {
		t.Errorf("files (-present +listed in kustomization.yaml):\n%s", diff)
	}
}

// TestTheSchedulerCanBeInstalledAlone: its part of the base names nothing of muster-controller, and no webhook calls a
// server that is not there.
func TestTheSchedulerCanBeInstalledAlone(t *testing.T) {
	t.Parallel()
	part := readKustomization(t, "scheduler")
	deployments := 0
	for _, o := range read(t, part.Resources...) {
		switch kind := o.GetObjectKind().GroupVersionKind().Kind; kind {
		case "Deployment":
			deployments++
		case "Service", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
			t.Errorf("%s is about webhooks", o)
		}
		if strings.Contains(o.GetName(), "controller") || strings.Contains(o.GetName(), "webhook") {
			t.Errorf("%s is not the scheduler's", o)
		}
	}
	if deployments != 1 || len(part.Images) != 1 || part.Images[0].Name != "muster-scheduler" {
		t.Errorf("%d Deployments, images %v", deployments, part.Images)
	}
	for _, kind := range []string{"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Secret", "ConfigMap", "PodDisruptionBudget"} {
		if !slices.ContainsFunc(read(t, part.Resources...), func(o object) bool { return o.GetObjectKind().GroupVersionKind().Kind == kind }) {
			t.Errorf("it has no %s", kind)
		}
	}
}

// Deleting a CRD deletes every object of it and every pod of a PodCliqueSet: the objects that are deleted to remove the
// programs must not include a CRD.
func TestTheCRDsAreApartFromTheRest(t *testing.T) {
	t.Parallel()
	const definition = "CustomResourceDefinition"
	for _, o := range readBase(t) {
		if o.GetObjectKind().GroupVersionKind().Kind == definition {
			t.Errorf("%s is deleted with the programs", o)
		}
	}
	for _, o := range readCRDs(t) {
		if o.GetObjectKind().GroupVersionKind().Kind != definition {
			t.Errorf("%s is among the CRDs", o)
		}
	}
}

// An object that is listed twice, or that lacks its namespace, would be applied in the wrong place or not at all.
func TestEveryObjectIsThereOnceAndKnowsItsNamespace(t *testing.T) {
	t.Parallel()
	clusterScoped := []string{"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
	seen := map[string]string{}
	for _, o := range slices.Concat(readBase(t), readCRDs(t)) {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		if scoped := slices.Contains(clusterScoped, kind); scoped == (o.GetNamespace() != "") {
			t.Errorf("%s: cluster-scoped: %t, but its namespace is %q", o, scoped, o.GetNamespace())
		}
		key := kind + " " + client.ObjectKeyFromObject(o.Object).String()
		if first := seen[key]; first != "" {
			t.Errorf("%s is in %s and in %s", key, first, o.file)
		}
		seen[key] = o.file
	}
}

func TestTheShippedProfileIsTheBuiltInOne(t *testing.T) {
	t.Parallel()
	builtIn, err := profile.DefaultFile()
	if err != nil {
		t.Fatal(err)
	}
	shipped := find[*corev1.ConfigMap](t, "muster-scheduler-config").Data
	if diff := cmp.Diff(map[string]string{"config.yaml": string(builtIn)}, shipped); diff != "" {
		t.Errorf("ConfigMap (-built in +shipped):\n%s", diff)
	}

	pod := find[*appsv1.Deployment](t, "muster-scheduler").Spec.Template.Spec
	mount := pod.Containers[0].VolumeMounts[0]
	if arg := "--config=" + mount.MountPath + "/config.yaml"; !slices.Contains(pod.Containers[0].Args, arg) {
		t.Errorf("the scheduler's arguments are %q, without %q", pod.Containers[0].Args, arg)
	}
	if from := pod.Volumes[0].ConfigMap; pod.Volumes[0].Name != mount.Name || from == nil || from.Name != "muster-scheduler-config" {
		t.Errorf("the mounted volume is %+v", pod.Volumes[0])
	}

	// The Role allows the lock that the profile names.
	cfg, err := profile.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range readBase(t) {
		role, ok := o.Object.(*rbacv1.Role)
		if !ok || role.Name != "muster-scheduler" {
			continue
		}
		if role.Namespace != cfg.LeaderElection.ResourceNamespace {
			t.Errorf("%s is not in the namespace of the lock, %s", o, cfg.LeaderElection.ResourceNamespace)
		}
		if !slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Equal(rule.ResourceNames, []string{cfg.LeaderElection.ResourceName})
		}) {
			t.Errorf("%s does not name the lock %s", o, cfg.LeaderElection.ResourceName)
		}
	}
}

// find returns the one object of a type and name in the base.
func find[T client.Object](t *testing.T, name string) T {
	t.Helper()
	for _, o := range readBase(t) {
		if obj, ok := o.Object.(T); ok && o.GetName() == name {
			return obj
		}
	}
	var none T
	t.Fatalf("no %T %s", none, name)
	return none
}

// TestEveryObjectOfTheCRDsSaysWhatIsInIt: the API server prunes all fields of an object whose schema has no properties,
// as it does with metadata inside a spec unless controller-gen is configured otherwise.
func TestEveryObjectOfTheCRDsSaysWhatIsInIt(t *testing.T) {
	t.Parallel()
	var look func(path string, schema apiextensionsv1.JSONSchemaProps)
	var file string
	look = func(path string, schema apiextensionsv1.JSONSchemaProps) {
		open := schema.AdditionalProperties != nil || schema.XPreserveUnknownFields != nil || schema.XEmbeddedResource
		if schema.Type == "object" && len(schema.Properties) == 0 && !open && path != ".metadata" {
			t.Errorf("%s: %s has no properties", file, path)
		}
		for name, property := range schema.Properties {
			look(path+"."+name, property)
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			look(path+"[]", *schema.Items.Schema)
		}
		if a := schema.AdditionalProperties; a != nil && a.Schema != nil {
			look(path+"{}", *a.Schema)
		}
	}
	found := 0
	for _, o := range readCRDs(t) {
		crd := o.Object.(*apiextensionsv1.CustomResourceDefinition)
		found++
		for _, version := range crd.Spec.Versions {
			file = o.file
			look("", *version.Schema.OpenAPIV3Schema)
		}
	}
	if found != 6 {
		t.Errorf("%d CRDs", found)
	}
}

func TestRightsAreTheLeast(t *testing.T) {
	t.Parallel()
	for _, o := range readBase(t) {
		switch role := o.Object.(type) {
		case *rbacv1.ClusterRole:
			if role.AggregationRule != nil {
				t.Errorf("%s collects rules that are not in it", o)
			}
			checkRules(t, o, role.Rules, true)
		case *rbacv1.Role:
			checkRules(t, o, role.Rules, false)
		}
	}
}

// startOrderRule is the one exception: muster-controller creates a Role and a RoleBinding for each PodCliqueSet with a
// start order, with which the pods of that set read the PodCliques that they wait for. Without it, that right would
// have to be granted to all accounts of all namespaces. It can grant only rights that it has: it may neither bind nor
// escalate, nor delete a Role.
var startOrderRule = rbacv1.PolicyRule{
	APIGroups: []string{"rbac.authorization.k8s.io"},
	Resources: []string{"roles", "rolebindings"},
	Verbs:     []string{"get", "list", "watch", "create", "update"},
}

func checkRules(t *testing.T, o object, rules []rbacv1.PolicyRule, everywhere bool) {
	t.Helper()
	// Verbs that grant rights, and resources whose reading or creation grants rights.
	forbiddenVerbs := []string{"escalate", "bind", "impersonate", "approve", "sign"}
	forbiddenResources := []string{"pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "serviceaccounts/token",
		"nodes/proxy", "roles", "rolebindings", "clusterroles", "clusterrolebindings"}
	for i, rule := range rules {
		if o.GetName() == "muster-controller" && everywhere && cmp.Equal(rule, startOrderRule) {
			continue
		}
		for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs, rule.ResourceNames) {
			if strings.Contains(word, "*") {
				t.Errorf("%s: rules[%d] has the wildcard %q", o, i, word)
			}
		}
		for _, verb := range rule.Verbs {
			if slices.Contains(forbiddenVerbs, verb) {
				t.Errorf("%s: rules[%d] has the verb %s", o, i, verb)
			}
		}
		for _, resource := range rule.Resources {
			if slices.Contains(forbiddenResources, resource) {
				t.Errorf("%s: rules[%d] is about %s", o, i, resource)
			}
			readsOne := len(rule.ResourceNames) == 1 && slices.Equal(rule.Verbs, []string{"get", "list", "watch"})
			if everywhere && (resource == "secrets" || resource == "leases" && !readsOne) {
				t.Errorf("%s: rules[%d] is about %s in all namespaces", o, i, resource)
			}
		}
		if slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0 && !slices.Equal(rule.Verbs, []string{"create"}) {
			t.Errorf("%s: rules[%d] is about all secrets of the namespace", o, i)
		}
	}
}

func TestBindingsBindOurRolesToOurAccounts(t *testing.T) {
	t.Parallel()
	known := map[string]bool{ // "kind namespace/name"
		"Role kube-system/extension-apiserver-authentication-reader": true, // part of every cluster: reads one ConfigMap
	}
	base := readBase(t)
	for _, o := range base {
		known[o.GetObjectKind().GroupVersionKind().Kind+" "+client.ObjectKeyFromObject(o.Object).String()] = true
	}
	for _, o := range base {
		var ref rbacv1.RoleRef
		var subjects []rbacv1.Subject
		switch binding := o.Object.(type) {
		case *rbacv1.RoleBinding:
			ref, subjects = binding.RoleRef, binding.Subjects
		case *rbacv1.ClusterRoleBinding:
			ref, subjects = binding.RoleRef, binding.Subjects
		default:
			continue
		}
		namespace := o.GetNamespace()
		if ref.Kind == "ClusterRole" {
			namespace = ""
		}
		if role := ref.Kind + " " + namespace + "/" + ref.Name; !known[role] {
			t.Errorf("%s: the role is not ours: %s", o, role)
		}
		for _, s := range subjects {
			if account := s.Kind + " " + s.Namespace + "/" + s.Name; !known[account] || s.Kind != "ServiceAccount" {
				t.Errorf("%s: the subject is not ours: %s", o, account)
			}
		}
	}
}

func TestProgramsRunWithoutPrivileges(t *testing.T) {
	t.Parallel()
	base := readBase(t)
	images := map[string]bool{}
	for _, image := range readKustomization(t, ".").Images {
		images[image.Name] = true
	}
	for _, o := range base {
		deployment, ok := o.Object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		pod := deployment.Spec.Template.Spec
		if !slices.ContainsFunc(base, func(account object) bool {
			_, ok := account.Object.(*corev1.ServiceAccount)
			return ok && account.GetName() == pod.ServiceAccountName && account.GetNamespace() == o.GetNamespace()
		}) {
			t.Errorf("%s runs as %q, which does not exist", o, pod.ServiceAccountName)
		}
		if pod.HostNetwork || pod.HostPID || pod.HostIPC {
			t.Errorf("%s shares something with its host", o)
		}
		type promises struct {
			NonRoot, Seccomp, ReadOnlyRoot, NoEscalation, NoCapabilities, Requests, Liveness, Readiness, Image bool
		}
		for _, c := range pod.Containers {
			got := promises{
				NonRoot:        pod.SecurityContext != nil && value(pod.SecurityContext.RunAsNonRoot),
				Seccomp:        pod.SecurityContext != nil && pod.SecurityContext.SeccompProfile != nil && pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
				ReadOnlyRoot:   c.SecurityContext != nil && value(c.SecurityContext.ReadOnlyRootFilesystem),
				NoEscalation:   c.SecurityContext != nil && c.SecurityContext.AllowPrivilegeEscalation != nil && !*c.SecurityContext.AllowPrivilegeEscalation,
				NoCapabilities: c.SecurityContext != nil && c.SecurityContext.Capabilities != nil && slices.Equal(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}),
				Requests:       !c.Resources.Requests.Cpu().IsZero() && !c.Resources.Requests.Memory().IsZero(),
				Liveness:       c.LivenessProbe != nil,
				Readiness:      c.ReadinessProbe != nil,
				Image:          images[c.Image],
			}
			want := promises{true, true, true, true, true, true, true, true, true}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, container %s (-want +got):\n%s", o, c.Name, diff)
			}
		}
	}
}

// TestTheWebhookIsServed follows the API server's call: from the webhook to the Service, to the pods, to the port.
func TestTheWebhookIsServed(t *testing.T) {
	t.Parallel()
	service := find[*corev1.Service](t, "muster-webhooks")
	called := map[string]admissionregistrationv1.WebhookClientConfig{}
	for _, webhook := range find[*admissionregistrationv1.ValidatingWebhookConfiguration](t, "muster-webhooks").Webhooks {
		called["validating "+webhook.Name] = webhook.ClientConfig
	}
	for _, webhook := range find[*admissionregistrationv1.MutatingWebhookConfiguration](t, "muster-webhooks").Webhooks {
		called["mutating "+webhook.Name] = webhook.ClientConfig
	}
	if len(called) == 0 {
		t.Error("no webhook is called")
	}
	for name, config := range called {
		if to := config.Service; to == nil || to.Name != service.Name || to.Namespace != service.Namespace {
			t.Errorf("%s webhook calls %+v", name, to)
		}
	}
	deployment := find[*appsv1.Deployment](t, "muster-controller")
	if deployment.Namespace != service.Namespace ||
		!labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(deployment.Spec.Template.Labels)) {
		t.Errorf("Service %s does not select the pods of %s", service.Name, deployment.Name)
	}
	target := service.Spec.Ports[0].TargetPort.StrVal
	if !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == target }) {
		t.Errorf("the pods of %s have no port %q", deployment.Name, target)
	}
}

func value(b *bool) bool { return b != nil && *b }

// The samples whose PodGroups muster-controller creates.
const (
	namespaceSample    = "samples/gang-namespace.yaml"
	podCliqueSetSample = "samples/podcliqueset.yaml"
	trainingSample     = "samples/podcliqueset-training.yaml"
	topologySample     = "samples/topology.yaml"
)

// podCliqueSet returns the PodCliqueSet of a sample, its last object, with defaults, and fails the test if it is not
// valid.
func podCliqueSet(t *testing.T, sample string) *v1alpha1.PodCliqueSet {
	t.Helper()
	objects := read(t, sample)
	set := objects[len(objects)-1].Object.(*v1alpha1.PodCliqueSet)
	v1alpha1.SetDefaults(set, profile.SchedulerName)
	if errs, warnings := grove.ValidatePodCliqueSet(set); len(errs) > 0 || len(warnings) > 0 {
		t.Errorf("errors %v, warnings %v", errs, warnings)
	}
	return set
}

// The demo restarts it once, and all of its pods are its minimum.
func TestTheTrainingSampleIsWhatItSays(t *testing.T) {
	t.Parallel()
	set := podCliqueSet(t, trainingSample)
	tree, errs := validation.BuildTree(&workload.PodGroup(set, 0, workload.Children{}).Spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if restarts := *set.Spec.TrainingSpec.MaxRestarts; tree.MinPods() != 3 || restarts != 1 {
		t.Errorf("%d pods are the minimum and %d restarts are allowed, want 3 and 1", tree.MinPods(), restarts)
	}
}

// The sample agrees with its comments, the tutorial and the demo.
func TestThePodCliqueSetSampleIsWhatItSays(t *testing.T) {
	t.Parallel()
	set := podCliqueSet(t, podCliqueSetSample)
	group := workload.PodGroup(set, 0, workload.Children{})
	tree, errs := validation.BuildTree(&group.Spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	gpus := func(clique string) int {
		for _, c := range set.Spec.Template.Cliques {
			if c.Name == clique {
				limit := c.Spec.PodSpec.Containers[0].Resources.Limits["nvidia.com/gpu"]
				return int(limit.Value())
			}
		}
		t.Fatalf("there is no clique %q", clique)
		return 0
	}
	minimum := gpus("frontend") + gpus("pleader") + gpus("pworker") + gpus("dleader") + 3*gpus("dworker")
	if got, want := fmt.Sprintf("%s: %d pods, %d GPUs", group.Name, tree.MinPods(), minimum), "chat-0: 7 pods, 24 GPUs"; got != want {
		t.Errorf("the minimum is %s, want %s", got, want)
	}
}

// The set refers to the binding, and its PodGroup to the Topology of the same name, whose rack each replica requires.
func TestTheTopologySampleIsWhatItSays(t *testing.T) {
	t.Parallel()
	objects := read(t, topologySample)
	levels, binding := objects[0].Object.(*topologyv1alpha1.Topology), objects[1].Object.(*v1alpha1.ClusterTopologyBinding)
	set := podCliqueSet(t, topologySample)
	errs, warnings, err := grove.ValidateNewTopology(set, func(name string) (*v1alpha1.ClusterTopologyBinding, error) {
		return map[string]*v1alpha1.ClusterTopologyBinding{binding.Name: binding}[name], nil
	})
	if len(errs) > 0 || len(warnings) > 0 || err != nil {
		t.Errorf("errors %v, warnings %v, %v", errs, warnings, err)
	}
	group := workload.PodGroup(set, 0, workload.Children{Topology: workload.NewTopology(binding, levels.Name, levels.Spec.NodeLabels())})
	got := map[string]v2alpha2.TopologyConstraint{"": *group.Spec.TopologyConstraint}
	for _, g := range group.Spec.SubGroups {
		if g.TopologyConstraint != nil {
			got[g.Name] = *g.TopologyConstraint
		}
	}
	replica := v2alpha2.TopologyConstraint{Topology: "example-fabric", RequiredTopologyLevel: "topology.example.com/rack"}
	want := map[string]v2alpha2.TopologyConstraint{
		"":                  {Topology: "example-fabric", PreferredTopologyLevel: "topology.example.com/block"},
		"packed-0-decode-0": replica, "packed-0-decode-1": replica,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
}

// TestSamplesAreWholeGangs checks that the objects of a sample satisfy its PodGroup: the names match, and every leaf
// gets the pods that it needs.
func TestSamplesAreWholeGangs(t *testing.T) {
	t.Parallel()
	files := samples(t)
	want := []string{"samples/cronjob.yaml", namespaceSample, "samples/inference-service.yaml", "samples/job.yaml", trainingSample, podCliqueSetSample, "samples/topology-job.yaml", topologySample, "samples/training-job.yaml"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	for _, file := range files {
		if file == podCliqueSetSample || file == trainingSample || file == namespaceSample || file == topologySample {
			continue // muster-controller creates its PodGroup
		}
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			groups, topologies := map[string]*v2alpha2.PodGroup{}, map[string]topology.Levels{}
			pods := map[string]map[string]int{} // PodGroup -> leaf -> pods
			count := func(template corev1.PodTemplateSpec, n *int32) {
				if template.Spec.SchedulerName != profile.SchedulerName {
					t.Errorf("schedulerName %q", template.Spec.SchedulerName)
				}
				group := template.Annotations[v2alpha2.PodGroupAnnotation]
				if pods[group] == nil {
					pods[group] = map[string]int{}
				}
				pods[group][template.Labels[v2alpha2.SubGroupLabel]] += int(*n)
			}
			for _, o := range read(t, file) {
				switch obj := o.Object.(type) {
				case *v2alpha2.PodGroup:
					errs, warnings := validation.ValidatePodGroup(obj)
					if len(errs) > 0 || len(warnings) > 0 {
						t.Errorf("%s: errors %v, warnings %v", o, errs, warnings)
					}
					groups[obj.Name] = obj
				case *topologyv1alpha1.Topology:
					topologies[obj.Name] = obj.Spec.NodeLabels()
				case *batchv1.Job:
					count(obj.Spec.Template, obj.Spec.Parallelism)
				case *batchv1.CronJob:
					count(obj.Spec.JobTemplate.Spec.Template, obj.Spec.JobTemplate.Spec.Parallelism)
				case *appsv1.StatefulSet:
					if obj.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
						t.Errorf("%s creates its pods one after another", o)
					}
					count(obj.Spec.Template, obj.Spec.Replicas)
				case *corev1.Service:
				default:
					t.Errorf("%s is not expected in a sample", o)
				}
			}
			for name, counts := range pods {
				group := groups[name]
				if group == nil {
					t.Errorf("pods name the PodGroup %q, which is not in the file", name)
					continue
				}
				tree, errs := validation.BuildTree(&group.Spec)
				if len(errs) > 0 {
					t.Fatal(errs)
				}
				if _, _, why := podgroup.Levels(tree, &group.Spec, func(name string) topology.Levels { return topologies[name] }, ""); why != nil {
					t.Errorf("PodGroup %s: %s", name, why.Message)
				}
				if !tree.Satisfied(counts) {
					t.Errorf("the pods %v do not satisfy PodGroup %s", counts, name)
				}
				for leaf := range counts {
					if g := tree.Group(leaf); leaf != "" && (g == nil || !g.IsLeaf()) {
						t.Errorf("pods name the leaf %q, which PodGroup %s does not have", leaf, name)
					}
				}
			}
			if len(groups) == 0 || len(pods) != len(groups) {
				t.Errorf("%d PodGroups, pods for %d", len(groups), len(pods))
			}
		})
	}
}
