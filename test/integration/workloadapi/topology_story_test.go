// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// topologyCRDs are the files of the optional CRDs.
var topologyCRDs = []string{"../../../manifests/crds/grove.io_clustertopologybindings.yaml", "../../../manifests/crds/kai.scheduler_topologies.yaml"}

// topologyStory is an installation whose muster-controller is not restarted.
type topologyStory struct {
	installation
	dynamic dynamic.Interface
}

// untilServed waits until the API server serves the optional kinds, or no longer does. It sends no event about that, so
// this polls.
func (s *topologyStory) untilServed(ctx context.Context, want bool) {
	s.t.Helper()
	serves := func(gv schema.GroupVersion, resource string) bool {
		list, err := s.cp.Client().Discovery().ServerResourcesForGroupVersion(gv.String())
		return err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource })
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return serves(v1alpha1.SchemeGroupVersion, "clustertopologybindings") == want &&
			serves(topologyv1alpha1.SchemeGroupVersion, "topologies") == want, nil
	})
	if err != nil {
		s.t.Fatalf("waiting for kinds that are served: %t: %v", want, err)
	}
}

// until waits until done returns true for the text of an object, which is "none" while the object does not exist.
func (s *topologyStory) until(ctx context.Context, kind schema.GroupVersionResource, name string, text func(*unstructured.Unstructured) string, done func(string) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	last := "none"
	err := controlplane.Until(ctx, s.dynamic.Resource(kind).Namespace(s.namespace), metav1.ListOptions{FieldSelector: "metadata.name=" + name},
		func(found []*unstructured.Unstructured) bool {
			last = "none"
			if len(found) > 0 {
				last = text(found[0])
			}
			return done(last)
		})
	if err != nil {
		s.t.Fatalf("%s %s: %v; last:\n%s", kind.Resource, name, err, last)
	}
}

// untilConstraints waits until a PodGroup has these constraints; see constraints.
func (s *topologyStory) untilConstraints(ctx context.Context, name, want string) {
	s.t.Helper()
	s.until(ctx, v2alpha2.SchemeGroupVersion.WithResource("podgroups"), name, func(o *unstructured.Unstructured) string { return constraints(s.t, o) },
		func(got string) bool { return got == want })
}

// untilCondition waits until a condition of the set svc contains a text of the form "status reason: message".
func (s *topologyStory) untilCondition(ctx context.Context, conditionType, want string) {
	s.t.Helper()
	s.until(ctx, v1alpha1.SchemeGroupVersion.WithResource("podcliquesets"), "svc", func(o *unstructured.Unstructured) string {
		set := &v1alpha1.PodCliqueSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, set); err != nil {
			s.t.Fatal(err)
		}
		for _, c := range set.Status.Conditions {
			if c.Type == conditionType {
				return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			}
		}
		return "no condition"
	}, func(got string) bool { return strings.Contains(got, want) })
}

// run waits for n pods, binds and starts those that are not bound, and returns the UIDs of all by name.
func (s *topologyStory) run(ctx context.Context, node string, n int) map[string]types.UID {
	s.t.Helper()
	waiting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var pods []*corev1.Pod
	err := controlplane.Until(waiting, s.cp.Client().CoreV1().Pods(s.namespace), metav1.ListOptions{LabelSelector: v1alpha1.LabelPartOf + "=svc"},
		func(found []*corev1.Pod) bool { pods = found; return len(pods) == n })
	if err != nil {
		s.t.Fatalf("waiting for %d pods: %v; there are %d", n, err, len(pods))
	}
	uids := map[string]types.UID{}
	for _, pod := range pods {
		if uids[pod.Name] = pod.UID; pod.Spec.NodeName != "" {
			continue
		}
		check(s.t, s.cp.Client().CoreV1().Pods(s.namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{}))
		check(s.t, s.cp.StartPod(ctx, s.namespace, pod.Name))
	}
	return uids
}

// wantLeftAlone fails the test unless all pods of before exist, are not terminating and are not others of the same
// name.
func (s *topologyStory) wantLeftAlone(ctx context.Context, before map[string]types.UID) {
	s.t.Helper()
	for name, uid := range before {
		pod, err := s.cp.Client().CoreV1().Pods(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || pod.UID != uid || pod.DeletionTimestamp != nil {
			s.t.Errorf("running pod %s was not left alone: %v", name, err)
		}
	}
}

// constraints returns the constraints of a PodGroup as text: per node its name, Topology, required and preferred level.
func constraints(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	pg := &v2alpha2.PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pg); err != nil {
		t.Fatal(err)
	}
	var lines []string
	add := func(name string, tc *v2alpha2.TopologyConstraint) {
		line := name
		if tc != nil {
			line = fmt.Sprintf("%s: %q %q %q", name, tc.Topology, tc.RequiredTopologyLevel, tc.PreferredTopologyLevel)
		}
		lines = append(lines, line)
	}
	add("root", pg.Spec.TopologyConstraint)
	for _, sg := range pg.Spec.SubGroups {
		add(sg.Name, sg.TopologyConstraint)
	}
	return strings.Join(lines, "\n")
}

// bindingOf is a ClusterTopologyBinding with these levels.
func bindingOf(domains ...string) string {
	var levels []string
	for _, domain := range domains {
		levels = append(levels, fmt.Sprintf("{domain: %[1]s, key: example.com/%[1]s}", domain))
	}
	return "apiVersion: grove.io/v1alpha1\nkind: ClusterTopologyBinding\nmetadata: {name: fabric}\nspec: {levels: [" + strings.Join(levels, ", ") + "]}"
}

// TestTopologyOfAWorkload begins in a cluster without the optional CRDs. They are installed while muster-controller
// runs. Then a PodCliqueSet with constraints at the set, at a scaling group and at cliques lives through the creation
// of a Topology, and the deletion, recreation and edits of its ClusterTopologyBinding. Its pods are bound by the test.
func TestTopologyOfAWorkload(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cp := separate(t)
	s := &topologyStory{installation: installation{user: newUser(t, cp), cp: cp}}
	var err error
	s.dynamic, err = dynamic.NewForConfig(cp.Admin())
	check(t, err)
	s.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}) // kube-controller-manager does not run
	nodes, err := cp.CreateNodes(ctx, controlplane.NodeOptions{Count: 1})
	check(t, err)
	for _, file := range topologyCRDs {
		s.kubectl("delete -f " + file)
	}
	s.untilServed(ctx, false)
	if _, err := cp.StartMusterController(ctx, controlplane.ControllerOptions{}); err != nil {
		t.Fatal(err)
	}

	// Without the CRDs a set without constraints is as it was, and a constraint refers to nothing.
	check(t, s.Create(ctx, s.read(service("name: svc", "name: plain"))))
	s.untilConstraints(ctx, "plain-0", "root\nplain-0-frontend\nplain-0-decode\nplain-0-decode-0\nplain-0-decode-0-leader\nplain-0-decode-0-worker\n"+
		"plain-0-decode-1\nplain-0-decode-1-leader\nplain-0-decode-1-worker")
	packed := service("    cliques:\n", "    topologyConstraint: {topologyName: fabric, pack: {required: block, preferred: rack}}\n    cliques:\n",
		"name: frontend\n", "name: frontend\n      topologyConstraint: {pack: {preferred: host}}\n",
		"name: worker\n", "name: worker\n      topologyConstraint: {pack: {required: host}}\n",
		"cliqueNames: [leader, worker]\n", "cliqueNames: [leader, worker]\n      topologyConstraint: {pack: {required: rack}}\n")
	check(t, s.Create(ctx, s.read(packed)), "spec.template.topologyConstraint.topologyName", `Not found: "fabric": no ClusterTopologyBinding has this name`)
	s.warnings.Take()
	check(t, s.Create(ctx, s.read("apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: early}\n"+
		"spec: {minMember: 2, topologyConstraint: {topology: fabric, requiredTopologyLevel: example.com/rack}}")))
	if got, want := s.warnings.Take(), `Topology "fabric" does not exist; until it does, pods with a required level of it wait`; !strings.Contains(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}

	for _, file := range topologyCRDs {
		s.kubectl("apply --server-side -f " + file)
	}
	s.untilServed(ctx, true)
	check(t, s.Create(ctx, s.read(packed)), "no ClusterTopologyBinding has this name")
	_, err = s.apply(s.read(bindingOf("block", "rack", "host")))
	check(t, err)
	check(t, s.Create(ctx, s.read(packed)))
	const levelsUnavailable, allAvailable = v1alpha1.ConditionTopologyLevelsUnavailable, "False AllClusterTopologyLevelsAvailable: ClusterTopologyBinding fabric has all levels"
	s.untilCondition(ctx, levelsUnavailable, allAvailable)
	// tree returns the constraints of a replica of the set with so many replicas of the scaling group.
	tree := func(topology string, replica, groupReplicas int) string {
		text := "root: TOPOLOGY \"example.com/block\" \"example.com/rack\"\nsvc-N-frontend: TOPOLOGY \"\" \"example.com/host\"\nsvc-N-decode"
		for j := range groupReplicas {
			text += fmt.Sprintf("\nsvc-N-decode-%[1]d: TOPOLOGY \"example.com/rack\" \"\"\nsvc-N-decode-%[1]d-leader\nsvc-N-decode-%[1]d-worker: TOPOLOGY \"example.com/host\" \"\"", j)
		}
		return strings.NewReplacer("TOPOLOGY", fmt.Sprintf("%q", topology), "svc-N", fmt.Sprintf("svc-%d", replica)).Replace(text)
	}
	s.untilConstraints(ctx, "svc-0", tree("", 0, 2))

	// A Topology with the levels of the binding is named by the PodGroup as soon as it exists.
	check(t, s.Create(ctx, s.read("apiVersion: kai.scheduler/v1alpha1\nkind: Topology\nmetadata: {name: fabric}\n"+
		"spec: {levels: [{nodeLabel: example.com/block}, {nodeLabel: example.com/rack}, {nodeLabel: example.com/host}]}")))
	s.untilConstraints(ctx, "svc-0", tree("fabric", 0, 2))
	running := s.run(ctx, nodes[0], 13)
	s.untilCondition(ctx, v1alpha1.ConditionAvailable, "True ")

	// Without the binding nothing that exists changes, and what is new waits.
	binding := s.read(bindingOf("block"))
	check(t, s.Delete(ctx, binding.DeepCopy()))
	s.untilCondition(ctx, levelsUnavailable, "Unknown ClusterTopologyNotFound: ClusterTopologyBinding fabric does not exist")
	check(t, s.scale(&v1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: "svc-0-decode", Namespace: s.namespace}}, 3))
	set := &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "svc", Namespace: s.namespace}}
	check(t, s.scale(set, 2))
	s.untilCondition(ctx, v1alpha1.ConditionAvailable, "waits for its required topology: ClusterTopologyBinding fabric does not exist")
	s.untilConstraints(ctx, "svc-0", tree("fabric", 0, 2))
	s.untilConstraints(ctx, "svc-1", "none")
	s.wantLeftAlone(ctx, running)

	// Nor with one that lacks a level that a clique requires.
	_, err = s.apply(s.read(bindingOf("block", "rack")))
	check(t, err)
	s.untilCondition(ctx, levelsUnavailable, "True ClusterTopologyLevelsUnavailable: ClusterTopologyBinding fabric has no level host, only block, rack")
	s.untilConstraints(ctx, "svc-1", "none")
	s.wantLeftAlone(ctx, running)

	_, err = s.apply(s.read(bindingOf("block", "rack", "host")))
	check(t, err)
	s.untilCondition(ctx, levelsUnavailable, allAvailable)
	s.untilConstraints(ctx, "svc-0", tree("fabric", 0, 3))
	s.untilConstraints(ctx, "svc-1", tree("fabric", 1, 2))
	s.wantLeftAlone(ctx, running)
	all := s.run(ctx, nodes[0], 13+5+13)
	s.untilCondition(ctx, v1alpha1.ConditionAvailable, "True ")

	// The CRDs go, with their objects, and the workload stays.
	for _, file := range topologyCRDs {
		s.kubectl("delete -f " + file)
	}
	s.untilCondition(ctx, levelsUnavailable, "Unknown ClusterTopologyNotFound")
	s.untilConstraints(ctx, "svc-0", tree("fabric", 0, 3))
	if diff := cmp.Diff(all, s.run(ctx, nodes[0], len(all))); diff != "" {
		t.Errorf("pods after the CRDs were deleted (-before +after):\n%s", diff)
	}
}
