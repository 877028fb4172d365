// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// example is a PodGroup with its expected result. Refusals are parts of the message; none means accepted.
type example struct {
	name      string
	pg        *unstructured.Unstructured
	byCRD     []string
	byWebhook []string // nil: as byCRD
	warning   string   // of the webhook, part of it
}

// documentExamples are all examples of KAI Scheduler's minSubGroups proposal.
func documentExamples(t *testing.T) []example {
	examples := []example{
		{name: "example-single-level.yaml"},
		{name: "example-two-level.yaml"},
		{name: "fragment-valid-leaves.yaml"},
		{name: "fragment-valid-mid-level.yaml"},
		{name: "fragment-invalid-both.yaml", byCRD: []string{"spec.minMember", "exclude each other"}},
		{name: "fragment-invalid-leaf-minsubgroup.yaml", byWebhook: []string{"spec.subGroups[0].minSubGroup", "minMember"}},
		{name: "fragment-invalid-exceeds.yaml", byCRD: []string{"spec.minSubGroup", "more than the number of direct children"}},
		{name: "appendix-overloaded-single-level.yaml", warning: "spec.minMember: beside subGroups this is the old form and means that all 4 direct children are required (32 pods)"},
		{name: "appendix-overloaded-two-level.yaml", byCRD: []string{"spec.subGroups", "a sub-group with children has minMember"}},
	}
	var files []string
	for i, e := range examples {
		content, err := os.ReadFile(filepath.Join("testdata", e.name))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := controlplane.ParseManifests(content)
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s: %d objects, %v", e.name, len(objects), err)
		}
		examples[i].pg = objects[0]
		files = append(files, filepath.Join("testdata", e.name))
	}
	all, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if missing := sets.New(all...).Difference(sets.New(files...)); len(missing) > 0 {
		t.Errorf("examples without a test: %v", missing.UnsortedList())
	}
	return examples
}

// ruleExamples has a PodGroup for each rule.
func ruleExamples(t *testing.T) []example {
	podGroup := func() *wrappers.PodGroupWrapper { return wrappers.MakePodGroup("pg", "") }
	n := func(v int32) *int32 { return &v }
	parent := func(name string) *string { return &name }
	long := func(i int) string { return fmt.Sprintf("%063d", i) }

	// The largest tree there may be, the costliest for the rules: 8 levels,
	// 1,024 sub-groups, names of 63 characters, parents last.
	largest := podGroup()
	for i := range 1016 {
		largest.SubGroupOf(long(7), long(100+i), 1)
	}
	largest.SubGroupOf(long(6), long(99), 1)
	for level := 7; level >= 1; level-- {
		above := ""
		if level > 1 {
			above = long(level - 1)
		}
		largest.Inner(above, long(level), 1)
	}
	tooMany := podGroup()
	for i := range 1025 {
		tooMany.SubGroup(long(i), 1)
	}
	deep := func(levels int) *wrappers.PodGroupWrapper {
		w := podGroup()
		above := ""
		for level := 1; level < levels; level++ {
			w.Inner(above, long(level), 1)
			above = long(level)
		}
		return w.SubGroupOf(above, "bottom", 1)
	}

	var out []example
	for _, e := range []struct {
		name      string
		pg        *wrappers.PodGroupWrapper
		byCRD     []string
		byWebhook []string
		warning   string
	}{
		{name: "an empty spec", pg: podGroup()},
		{name: "minMember alone", pg: podGroup().MinMember(4)},
		{name: "neither minimum on root and inner", pg: podGroup().Inner("", "a", 0).SubGroupOf("a", "b", 1)},
		{name: "root minMember 0 beside minSubGroup", pg: podGroup().MinMember(0).MinSubGroup(1).SubGroup("a", 1)},
		{name: "parents declared after their children", pg: podGroup().SubGroupOf("a", "b", 1).Inner("", "a", 1)},
		{name: "label values as names", pg: podGroup().SubGroup("A_b.c-9", 1)},
		{name: "8 levels", pg: deep(8)},
		{name: "the largest tree", pg: largest},

		{name: "9 levels", pg: deep(9), byCRD: []string{"spec.subGroups", "more than 8 levels"}},
		{name: "1,025 sub-groups", pg: tooMany, byCRD: []string{"spec.subGroups: Too many", "1024"}},
		{name: "its own parent", pg: podGroup().Append(v2alpha2.SubGroup{Name: "a", Parent: parent("a")}), byCRD: []string{"cycle"}},
		{name: "a cycle of three beside a good leaf", pg: podGroup().SubGroup("x", 1).
			Append(v2alpha2.SubGroup{Name: "a", Parent: parent("b")}).Append(v2alpha2.SubGroup{Name: "b", Parent: parent("c")}).Append(v2alpha2.SubGroup{Name: "c", Parent: parent("a")}),
			byCRD: []string{"cycle"}},
		{name: "a missing parent", pg: podGroup().SubGroupOf("x", "a", 1), byCRD: []string{"a parent names no sub-group"}},
		{name: "an empty parent", pg: podGroup().Append(v2alpha2.SubGroup{Name: "a", Parent: parent(""), MinMember: n(1)}), byCRD: []string{"spec.subGroups[0].parent"}},
		{name: "a name twice", pg: podGroup().SubGroup("a", 1).SubGroup("a", 1), byCRD: []string{"spec.subGroups[1]", "Duplicate value"}},
		{name: "a name of 64 characters", pg: podGroup().SubGroup(long(1)+"0", 1), byCRD: []string{"spec.subGroups[0].name"}},
		{name: "a name that is no label value", pg: podGroup().SubGroup("a/b", 1), byCRD: []string{"spec.subGroups[0].name"}},
		{name: "root minMember 0", pg: podGroup().MinMember(0), byCRD: []string{"spec.minMember", "must be greater than 0"}},
		{name: "root minSubGroup 0", pg: podGroup().MinSubGroup(0).SubGroup("a", 1), byCRD: []string{"spec.minSubGroup"}},
		{name: "root minSubGroup without sub-groups", pg: podGroup().MinSubGroup(1), byCRD: []string{"spec.minSubGroup", "no entry of subGroups is one"}},
		{name: "a leaf's minMember 0", pg: podGroup().SubGroup("a", 0), byCRD: []string{"spec.subGroups[0].minMember"}},
		{name: "both minimums on a sub-group", pg: podGroup().Append(v2alpha2.SubGroup{Name: "a", MinMember: n(1), MinSubGroup: n(1)}), byCRD: []string{"spec.subGroups[0].minMember", "exclude each other"}},
		{name: "an inner minMember", pg: podGroup().SubGroup("a", 1).SubGroupOf("a", "b", 1), byCRD: []string{"use minSubGroup on it"}},
		{name: "an unknown preemptibility", pg: podGroup().Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = "sometimes" }), byCRD: []string{"spec.preemptibility"}},

		{name: "a required topology level that is no node label", pg: podGroup().Spec(func(s *v2alpha2.PodGroupSpec) {
			s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "a/b/c"}
		}), byWebhook: []string{"spec.topologyConstraint.requiredTopologyLevel", "must be the key of a node label"}},
		{name: "a leaf without minMember", pg: podGroup().Append(v2alpha2.SubGroup{Name: "a"}), byWebhook: []string{"spec.subGroups[0].minMember: Required value"}},
		{name: "inner minSubGroup above its children", pg: podGroup().Inner("", "a", 2).SubGroupOf("a", "b", 1), byWebhook: []string{"spec.subGroups[0].minSubGroup", "only 1 direct children"}},
		{name: "several errors together", pg: podGroup().Inner("", "a", 2).SubGroupOf("a", "b", 1).Append(v2alpha2.SubGroup{Name: "c"}),
			byWebhook: []string{"spec.subGroups[0].minSubGroup", "spec.subGroups[2].minMember"}},
		{name: "fields of KAI Scheduler's batch jobs", pg: podGroup().Spec(func(s *v2alpha2.PodGroupSpec) {
			s.BackoffLimit, s.Completions, s.Parallelism = ptr.To[int32](6), ptr.To[int32](8), ptr.To[int32](8)
		}), warning: "spec.parallelism: stored, but has no effect"},
		{name: "a priority class that does not exist", pg: podGroup().Priority("lost"), warning: `spec.priorityClassName: PriorityClass "lost" does not exist`},
		{name: "a priority class that exists", pg: podGroup().Priority("system-node-critical")},
		{name: "a field that is not acted on", pg: podGroup().Spec(func(s *v2alpha2.PodGroupSpec) { s.Queue = "research" }), warning: "spec.queue: stored, but has no effect"},
	} {
		content, err := controlplane.ParseManifests(yamlOf(t, e.pg.Obj()))
		if err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(content[0].Object, "status")
		out = append(out, example{name: e.name, pg: content[0], byCRD: e.byCRD, byWebhook: e.byWebhook, warning: e.warning})
	}
	return out
}

// TestPodGroups runs in this order: first the CRD alone, then with the webhook.
func TestPodGroups(t *testing.T) {
	examples := append(documentExamples(t), ruleExamples(t)...)

	t.Run("CRD alone", func(t *testing.T) {
		for _, e := range examples {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				u := newUser(t)
				check(t, u.create(t, e.pg), e.byCRD)
				if got := u.warnings.Take(); got != "" {
					t.Errorf("warnings %q", got)
				}
				stored := &v2alpha2.PodGroup{}
				if err := u.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: e.pg.GetName()}, stored); err != nil {
					if len(e.byCRD) == 0 {
						t.Error(err)
					}
					return
				}
				// The scheduler must refuse an invalid PodGroup that the API server has accepted.
				if _, err := podgroup.Tree(&stored.Spec); (err != nil) != (len(e.byWebhook) > 0) {
					t.Errorf("accepted, and the scheduler says: %v", err)
				}
			})
		}
	})
	t.Run("whatever the CRD refuses, validation refuses", func(t *testing.T) {
		for _, e := range examples {
			pg := typed(t, e.pg)
			if errs, _ := validation.ValidatePodGroup(pg); (len(errs) > 0) != (len(e.byCRD)+len(e.byWebhook) > 0) {
				t.Errorf("%s: CRD %v, webhook %v, validation %v", e.name, e.byCRD, e.byWebhook, errs)
			}
		}
	})

	invalid := newUser(t) // an object from before the webhook
	if err := invalid.Create(t.Context(), wrappers.MakePodGroup("old", invalid.namespace).Append(v2alpha2.SubGroup{Name: "a"}).Obj()); err != nil {
		t.Fatal(err)
	}

	controller := startController(t, "muster-controller")
	waitForWebhook(t, invalid, true)

	t.Run("with the webhook", func(t *testing.T) {
		for _, e := range examples {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				u := newUser(t)
				want := e.byWebhook
				if want == nil {
					want = e.byCRD
				}
				check(t, u.create(t, e.pg), want)
				if got := u.warnings.Take(); e.warning == "" && got != "" || !strings.Contains(got, e.warning) {
					t.Errorf("warnings %q, want %q", got, e.warning)
				}
			})
		}
	})
	t.Run("updates with the webhook", func(t *testing.T) { testUpdates(t) })
	t.Run("an invalid object from before the webhook", func(t *testing.T) { testOldObject(t, invalid) })
	t.Run("the certificate is made anew when its secret is gone", func(t *testing.T) { testLostSecret(t) })
	t.Run("no webhook, and it comes back", func(t *testing.T) {
		u := newUser(t)
		controller.Kill()
		waitForWebhook(t, u, false) // failurePolicy Ignore
		check(t, u.Create(t.Context(), wrappers.MakePodGroup("pg", u.namespace).MinSubGroup(1).Obj()), []string{"spec.minSubGroup"})
		if err := cluster.Restart(t.Context(), controller); err != nil {
			t.Fatal(err)
		}
		waitForWebhook(t, u, true)
	})
	t.Run("a second replica takes over the lead", func(t *testing.T) { testFailover(t, controller) })
}

// testUpdates: nothing is immutable, and the result must be valid.
func testUpdates(t *testing.T) {
	u := newUser(t)
	ctx := t.Context()
	pg := wrappers.MakePodGroup("pg", u.namespace).MinSubGroup(2).SubGroup("a", 1).SubGroup("b", 1).Obj()
	if err := u.Create(ctx, pg); err != nil {
		t.Fatal(err)
	}
	update := func(edit func(*v2alpha2.PodGroup)) error {
		changed := pg.DeepCopy()
		edit(changed)
		err := u.Update(ctx, changed)
		if err == nil {
			pg = changed
		}
		return err
	}
	check(t, update(func(pg *v2alpha2.PodGroup) { *pg.Spec.MinSubGroup = 3 }), []string{"spec.minSubGroup"})
	check(t, update(func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups[1].MinMember = nil }), []string{"spec.subGroups[1].minMember"})
	check(t, update(func(pg *v2alpha2.PodGroup) { *pg.Spec.SubGroups[0].MinMember = 7 }), nil)
	three := int32(3)
	check(t, update(func(pg *v2alpha2.PodGroup) { pg.Spec = v2alpha2.PodGroupSpec{MinMember: &three} }), nil)
	if got := u.warnings.Take(); got != "" {
		t.Errorf("warnings %q", got)
	}
}

// testOldObject: an object that the webhook would reject can be labelled, corrected, and deleted with a finalizer; its
// spec cannot be made worse.
func testOldObject(t *testing.T, u *user) {
	ctx := t.Context()
	pg := &v2alpha2.PodGroup{}
	if err := u.Get(ctx, client.ObjectKey{Namespace: u.namespace, Name: "old"}, pg); err != nil {
		t.Fatal(err)
	}
	pg.Labels = map[string]string{"k": "v"}
	pg.Finalizers = []string{"example.com/hold"}
	check(t, u.Update(ctx, pg), nil)
	worse := pg.DeepCopy()
	worse.Spec.SubGroups = append(worse.Spec.SubGroups, v2alpha2.SubGroup{Name: "b"})
	check(t, u.Update(ctx, worse), []string{"spec.subGroups[1].minMember"})
	check(t, u.Delete(ctx, pg), nil)
	if err := u.Get(ctx, client.ObjectKeyFromObject(pg), pg); err != nil {
		t.Fatal(err)
	}
	pg.Finalizers = nil
	check(t, u.Update(ctx, pg), nil)
}

func testLostSecret(t *testing.T) {
	u := newUser(t)
	secrets := cluster.Client().CoreV1().Secrets("muster-system")
	lost, err := secrets.Get(t.Context(), "muster-webhooks-tls", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := secrets.Delete(t.Context(), lost.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err = controlplane.Until(t.Context(), secrets, metav1.ListOptions{FieldSelector: "metadata.name=" + lost.Name},
		func(found []*corev1.Secret) bool { return len(found) == 1 && found[0].UID != lost.UID })
	if err != nil {
		t.Fatal(err)
	}
	waitForWebhook(t, u, true)
}

// startController starts a muster-controller that the webhooks call from then on.
func startController(t *testing.T, name string) *controlplane.Process {
	t.Helper()
	p, err := cluster.StartMusterController(t.Context(), controlplane.ControllerOptions{Name: name,
		Args: []string{"--leader-elect", "--leader-elect-lease-duration=2s"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// testFailover: two replicas, one of which leads; on SIGTERM it exits with status 0 and releases its lease immediately.
func testFailover(t *testing.T, first *controlplane.Process) {
	holder := func(leases []*coordinationv1.Lease) string {
		if len(leases) != 1 || leases[0].Spec.HolderIdentity == nil {
			return ""
		}
		return *leases[0].Spec.HolderIdentity
	}
	leases := cluster.Client().CoordinationV1().Leases("muster-system")
	selector := metav1.ListOptions{FieldSelector: "metadata.name=muster-controller"}
	var before string
	if err := controlplane.Until(t.Context(), leases, selector, func(found []*coordinationv1.Lease) bool {
		before = holder(found)
		return before != ""
	}); err != nil {
		t.Fatal(err)
	}

	second := startController(t, "muster-controller-2")
	first.Terminate(20 * time.Second)
	if err := first.Err(); err != nil {
		t.Errorf("told to end, it ends with %v:\n%s", err, first.LogTail(15))
	}
	if err := controlplane.Until(t.Context(), leases, selector, func(found []*coordinationv1.Lease) bool {
		now := holder(found)
		return now != "" && now != before
	}); err != nil {
		t.Fatal(err)
	}
	for _, replica := range []*controlplane.Process{first, second} {
		if log := replica.LogTail(1000); strings.Contains(log, "forbidden") {
			t.Errorf("a right is missing:\n%s", log)
		}
	}
}

// TestServerSideApply: the examples can be applied, again and again, and two
// owners of one list each have their own sub-groups.
func TestServerSideApply(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	ctx := t.Context()
	for _, e := range documentExamples(t) {
		for range 2 {
			if err := u.apply(t, e.pg, "user"); (err != nil) != (len(e.byCRD) > 0) {
				t.Errorf("%s: %v", e.name, err)
			}
		}
	}
	apply := func(owner string, subGroups ...any) {
		t.Helper()
		pg := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"subGroups": subGroups}}}
		pg.SetGroupVersionKind(v2alpha2.SchemeGroupVersion.WithKind("PodGroup"))
		pg.SetName("pg")
		if err := u.apply(t, pg, owner); err != nil {
			t.Fatal(err)
		}
	}
	leaf := func(name string, min int64) any { return map[string]any{"name": name, "minMember": min} }
	apply("one", leaf("a", 1), leaf("b", 2))
	apply("two", leaf("c", 3))
	apply("one", leaf("b", 5))

	pg := &v2alpha2.PodGroup{}
	if err := u.Get(ctx, client.ObjectKey{Namespace: u.namespace, Name: "pg"}, pg); err != nil {
		t.Fatal(err)
	}
	want := wrappers.MakePodGroup("pg", u.namespace).SubGroup("b", 5).SubGroup("c", 3).Obj()
	if diff := cmp.Diff(want.Spec, pg.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// TestStatusAndColumns: status is written separately from spec, and `kubectl get pg` shows the most important fields.
func TestStatusAndColumns(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	ctx := t.Context()
	pg := wrappers.MakePodGroup("pg", u.namespace).MinSubGroup(1).SubGroup("a", 16).Priority("high").Obj()
	if err := u.Create(ctx, pg); err != nil {
		t.Fatal(err)
	}
	pg.Spec.MinSubGroup = nil // must not arrive
	pg.Status = v2alpha2.PodGroupStatus{
		ObservedGeneration: 1, Phase: v2alpha2.PodGroupWaiting, Scheduled: "14/16",
		Needs: "1 of 2", GPUs: "112/128", Priority: new(int32(1000)), Reason: v2alpha2.ReasonFragmented, Placement: "2 racks (r1, r2)", Summary: "2 more nodes are needed", Brief: "2 more nodes",
		Conditions: []metav1.Condition{
			{Type: v2alpha2.ConditionAdmitted, Status: metav1.ConditionFalse, Reason: string(v2alpha2.ReasonFragmented), LastTransitionTime: metav1.Now()},
			{Type: v2alpha2.ConditionSatisfied, Status: metav1.ConditionFalse, Reason: string(v2alpha2.ReasonFragmented),
				LastTransitionTime: metav1.NewTime(time.Now().Add(-3*time.Hour - time.Minute))},
		},
		SubGroups: []v2alpha2.SubGroupStatus{{Name: "a", Required: 16, Created: 16, Bound: 14}},
	}
	if err := u.Status().Update(ctx, pg); err != nil {
		t.Fatal(err)
	}
	if pg.Spec.MinSubGroup == nil || pg.Status.Scheduled != "14/16" || pg.Generation != 1 {
		t.Errorf("after a status update: %+v", pg)
	}

	content, err := cluster.Client().Discovery().RESTClient().Get().
		AbsPath("/apis", v2alpha2.GroupName, "v2alpha2", "namespaces", u.namespace, "podgroups").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	decode(t, content, table)
	got := map[string]any{}
	var order []string
	for i, column := range table.ColumnDefinitions {
		name := column.Name
		if column.Priority > 0 {
			name += " (wide)"
		}
		order = append(order, name)
		got[name] = table.Rows[0].Cells[i]
	}
	delete(got, "Age")
	if diff := cmp.Diff([]string{"Name", "Phase", "Reason", "Bound", "GPUs", "Since", "Age", "Needs (wide)", "Priority (wide)", "Summary (wide)"}, order); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"Name": "pg", "Phase": "Waiting", "Needs (wide)": "1 of 2", "Bound": "14/16", "GPUs": "112/128",
		"Reason": "Fragmented", "Since": "3h1m", "Priority (wide)": float64(1000), "Summary (wide)": "2 more nodes"}, got); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}

	resources, err := cluster.Client().Discovery().ServerResourcesForGroupVersion(v2alpha2.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range resources.APIResources {
		if resource.Name == "podgroups" && !cmp.Equal(resource.ShortNames, []string{"pg"}) {
			t.Errorf("short names %v", resource.ShortNames)
		}
	}
}
