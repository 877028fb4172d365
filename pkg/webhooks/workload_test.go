// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/classes"
	"github.com/muster-project/muster/test/wrappers"
)

func ptr[T any](v T) *T { return &v }

// The objects of the tests: PodCliqueSet svc, its scaling group svc-0-g, standalone clique svc-0-solo and member
// clique svc-0-g-0-worker.
func podCliqueSet() *v1alpha1.PodCliqueSet {
	return wrappers.MakePodCliqueSet("svc", "ns").UID("svc-uid").Clique("solo", 2).Clique("worker", 2).Clique("other", 2).
		ScalingGroup("g", 0, 0, "worker").ScalingGroup("h", 0, 0, "other").Obj()
}

func trainingSet() *v1alpha1.PodCliqueSet {
	s := podCliqueSet()
	s.Spec.WorkloadType = v1alpha1.WorkloadTypeTraining
	return s
}

func scalingGroup() *v1alpha1.PodCliqueScalingGroup {
	return wrappers.MakeScalingGroup("svc", 0, "g", "ns").UID("svc-0-g-uid").Cliques("worker").Obj()
}

func podClique() *v1alpha1.PodClique {
	return wrappers.MakePodClique("svc", 0, "solo", "ns").UID("svc-0-solo-uid").Replicas(2).Obj()
}

func memberPodClique() *v1alpha1.PodClique {
	return wrappers.MakeMemberPodClique("svc", 0, "g", 0, "worker", "ns").UID("svc-0-g-0-worker-uid").Obj()
}

// otherGroup is a sibling that almost fills the tree.
func otherGroup() *v1alpha1.PodCliqueScalingGroup {
	return wrappers.MakeScalingGroup("svc", 0, "h", "ns").UID("svc-0-h-uid").Replicas(505).Cliques("other").Obj()
}

func reader(t *testing.T, failing bool, objects ...client.Object) ownerReader {
	t.Helper()
	scheme := testScheme(t)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&coordinationv1.Lease{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if failing {
				return errors.New("away")
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if failing {
				return errors.New("away")
			}
			return c.Get(ctx, key, into, opts...)
		},
	})
	return ownerReader{Reader: builder.Build()}
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, autoscalingv1.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

func rawObject(t *testing.T, o runtime.Object) runtime.RawExtension {
	t.Helper()
	content, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: content}
}

func TestWorkloadValidators(t *testing.T) {
	family := []client.Object{podCliqueSet(), scalingGroup(), podClique(), memberPodClique()}
	training := []client.Object{trainingSet(), scalingGroup(), podClique(), memberPodClique()}
	update := func(old client.Object, change func(client.Object)) [2]client.Object {
		now := old.DeepCopyObject().(client.Object)
		change(now)
		return [2]client.Object{old, now}
	}
	for name, tc := range map[string]struct {
		live    []client.Object
		failing bool
		create  client.Object
		update  [2]client.Object // old, new
		want    string           // part of the rejection; "": allowed
	}{
		"a set":                            {create: podCliqueSet()},
		"an invalid set, all errors":       {create: func() client.Object { s := podCliqueSet(); s.Name = "a.b"; s.Spec.Replicas = -1; return s }(), want: "spec.replicas"},
		"a clique without an owner":        {create: &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, want: "metadata.ownerReferences"},
		"a scaling group without an owner": {create: &v1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, want: "metadata.ownerReferences"},
		"a template, no owner is read": {failing: true, update: update(podCliqueSet(), func(o client.Object) {
			o.(*v1alpha1.PodCliqueSet).Spec.Template.Cliques[0].Spec.PodSpec.HostNetwork = true
		})},
		"a template of Training": {update: update(trainingSet(), func(o client.Object) {
			o.(*v1alpha1.PodCliqueSet).Spec.Template.Cliques[0].Spec.PodSpec.HostNetwork = true
		}), want: "immutable under either update strategy"},
		"replicas of a set, no owner is read": {failing: true, update: update(podCliqueSet(), func(o client.Object) { o.(*v1alpha1.PodCliqueSet).Spec.Replicas = 9 })},
		"a clique's replicas":                 {live: family, update: update(podClique(), func(o client.Object) { o.(*v1alpha1.PodClique).Spec.Replicas = 9 })},
		"a clique's replicas of Training":     {live: training, update: update(podClique(), func(o client.Object) { o.(*v1alpha1.PodClique).Spec.Replicas = 9 }), want: "Training"},
		"a member's replicas":                 {live: family, update: update(memberPodClique(), func(o client.Object) { o.(*v1alpha1.PodClique).Spec.Replicas = 9 }), want: "podcliquescalinggroup/svc-0-g"},
		"a member's replicas, as template":    {live: family, update: update(memberPodClique(), func(o client.Object) { o.(*v1alpha1.PodClique).Spec.Replicas = 2 })},
		"a clique's image": {live: family, update: update(podClique(), func(o client.Object) {
			o.(*v1alpha1.PodClique).Spec.PodSpec.Containers = []corev1.Container{{Name: "main", Image: "mine"}}
		}), want: "change spec.template.cliques[0].spec.podSpec of PodCliqueSet svc instead"},
		"a member's image": {live: family, update: update(memberPodClique(), func(o client.Object) {
			o.(*v1alpha1.PodClique).Spec.PodSpec.Containers = []corev1.Container{{Name: "main", Image: "mine"}}
		}), want: "change spec.template.cliques[1].spec.podSpec of PodCliqueSet svc instead"},
		"a clique's pods, as template": {live: family, update: update(podClique(), func(o client.Object) {
			o.(*v1alpha1.PodClique).Spec.PodSpec = *podCliqueSet().Spec.Template.Cliques[0].Spec.PodSpec.DeepCopy()
			v1alpha1.SetPodCliqueDefaults(o.(*v1alpha1.PodClique), "configured")
		})},
		"a clique's image, owners not known": {failing: true, update: update(podClique(), func(o client.Object) {
			o.(*v1alpha1.PodClique).Spec.PodSpec.Containers = []corev1.Container{{Name: "main", Image: "mine"}}
		}), want: "reading the owner, PodCliqueSet svc: away"},
		"a member's replicas of Training": {live: training, update: update(memberPodClique(), func(o client.Object) { o.(*v1alpha1.PodClique).Spec.Replicas = 2 }), want: "Training"},
		"a group's replicas":              {live: family, update: update(scalingGroup(), func(o client.Object) { o.(*v1alpha1.PodCliqueScalingGroup).Spec.Replicas = 9 })},
		"a group's replicas, tree full":   {live: append([]client.Object{otherGroup()}, family...), update: update(scalingGroup(), func(o client.Object) { o.(*v1alpha1.PodCliqueScalingGroup).Spec.Replicas = 9 }), want: "1,024"},
		"a group's replicas of Training":  {live: training, update: update(scalingGroup(), func(o client.Object) { o.(*v1alpha1.PodCliqueScalingGroup).Spec.Replicas = 9 }), want: "Training"},
		"a set that was replaced":         {live: []client.Object{func() client.Object { s := trainingSet(); s.UID = "another"; return s }()}, update: update(podClique(), func(o client.Object) { o.(*v1alpha1.PodClique).Spec.Replicas = 9 })},
		"owners not known":                {failing: true, update: update(podClique(), func(o client.Object) { o.(*v1alpha1.PodClique).Spec.Replicas = 9 }), want: "reading the owner, PodCliqueSet svc: away"},
		"metadata, no owner is read":      {failing: true, update: update(podClique(), func(o client.Object) { o.SetOwnerReferences(nil) })},
		"terminating, no owner is read":   {failing: true, update: update(func() client.Object { c := podClique(); c.DeletionTimestamp = ptr(metav1.Now()); return c }(), func(o client.Object) { o.(*v1alpha1.PodClique).Spec.Replicas = 9 })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owners := reader(t, tc.failing, tc.live...)
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create}}
			object := tc.create
			if object != nil {
				request.Object = rawObject(t, object)
			} else {
				object = tc.update[1]
				request.Operation = admissionv1.Update
				request.OldObject, request.Object = rawObject(t, tc.update[0]), rawObject(t, object)
			}
			var hook *admission.Webhook
			switch object.(type) {
			case *v1alpha1.PodCliqueSet:
				hook = admission.WithValidator(testScheme(t), podCliqueSetValidator{})
			case *v1alpha1.PodCliqueScalingGroup:
				hook = admission.WithValidator(testScheme(t), podCliqueScalingGroupValidator(owners))
			case *v1alpha1.PodClique:
				hook = admission.WithValidator(testScheme(t), podCliqueValidator(owners))
			}
			answer(t, hook.Handle(context.Background(), request), strings.ReplaceAll(tc.want, "1,024", "1024"))
		})
	}
}

func TestPodCliqueSetWithAPriorityClass(t *testing.T) {
	named := func(name string) *v1alpha1.PodCliqueSet {
		s := podCliqueSet()
		s.Spec.Template.PriorityClassName = name
		return s
	}
	lost := []string{`spec.template.priorityClassName: PriorityClass "lost" does not exist; until it does, the API server refuses the pods`}
	v := podCliqueSetValidator{PriorityClasses: PriorityClasses{clusterReader{}}}
	for name, tc := range map[string]struct {
		old, set *v1alpha1.PodCliqueSet
		want     []string
	}{
		"create, no class":                       {set: podCliqueSet()},
		"create, a class that exists":            {set: named("high")},
		"create, a class that does not exist":    {set: named("lost"), want: lost},
		"update to a class that does not exist":  {old: podCliqueSet(), set: named("lost"), want: lost},
		"update that leaves the class as it was": {old: named("lost"), set: named("lost")},
		"create, the class cannot be read":       {set: named("unknown")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got admission.Warnings
			var err error
			if tc.old == nil {
				got, err = v.ValidateCreate(context.Background(), tc.set)
			} else {
				got, err = v.ValidateUpdate(context.Background(), tc.old, tc.set)
			}
			got = slices.DeleteFunc(got, func(w string) bool { return !strings.Contains(w, "priorityClassName") })
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("warnings %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// TestPodCliqueSetWithATopology: a ClusterTopologyBinding that does not exist is an error of the set; one that cannot
// be read leaves the request undecided.
func TestPodCliqueSetWithATopology(t *testing.T) {
	t.Parallel()
	v := podCliqueSetValidator{PriorityClasses: PriorityClasses{clusterReader{}}}
	for name, tc := range map[string]struct {
		binding, domain string
		invalid         bool
		want            string // part of the error; "": accepted
	}{
		"a domain of the binding":     {binding: "fabric", domain: "rack"},
		"a domain that it lacks":      {binding: "fabric", domain: "row", invalid: true, want: `topologyConstraint.pack.required: Unsupported value: "row": supported values: "block", "rack"`},
		"no such binding":             {binding: "lost", domain: "rack", invalid: true, want: `topologyConstraint.topologyName: Not found: "lost": no ClusterTopologyBinding has this name`},
		"no CRD":                      {binding: "early", domain: "rack", invalid: true, want: "no ClusterTopologyBinding has this name"},
		"the API server is away":      {binding: "unknown", domain: "rack", want: "reading ClusterTopologyBinding unknown: down"},
		"the binding may not be read": {binding: "secret", domain: "rack", want: "reading ClusterTopologyBinding secret: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := podCliqueSet()
			set.Spec.Template.TopologyConstraint = &v1alpha1.TopologyConstraint{TopologyName: tc.binding, Pack: &v1alpha1.TopologyPackConstraint{Required: tc.domain}}
			switch _, err := v.ValidateCreate(t.Context(), set); {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want == "":
			case err == nil || !strings.Contains(err.Error(), tc.want) || apierrors.IsInvalid(err) != tc.invalid || apierrors.IsInternalError(err) == tc.invalid:
				t.Errorf("error %v, want %q, invalid: %t", err, tc.want, tc.invalid)
			}
		})
	}
}

// TestAStoredPodCliqueSetInTheOlderForm: packDomain is refused in a new set. A stored set with it accepts updates of
// other fields.
func TestAStoredPodCliqueSetInTheOlderForm(t *testing.T) {
	t.Parallel()
	v := podCliqueSetValidator{PriorityClasses: PriorityClasses{clusterReader{}}}
	older := func() *v1alpha1.PodCliqueSet {
		set := podCliqueSet()
		set.Spec.Template.TopologyConstraint = &v1alpha1.TopologyConstraint{TopologyName: "fabric", PackDomain: "rack"}
		return set
	}
	if _, err := v.ValidateCreate(t.Context(), older()); err == nil || !strings.Contains(err.Error(), "topologyConstraint.packDomain: Forbidden: is deprecated; use pack.required") {
		t.Errorf("a new set: %v, want that packDomain is refused", err)
	}
	scaled, moved := older(), older()
	scaled.Spec.Replicas++
	if _, err := v.ValidateUpdate(t.Context(), older(), scaled); err != nil {
		t.Errorf("an update of a stored set is refused: %v", err)
	}
	moved.Spec.Template.TopologyConstraint.PackDomain = "block"
	if _, err := v.ValidateUpdate(t.Context(), older(), moved); err == nil || !strings.Contains(err.Error(), "topologyConstraint") {
		t.Errorf("an update of the domain: %v, want that it is immutable", err)
	}
}

func TestPodCliqueSetWithASchedulerName(t *testing.T) {
	t.Parallel()
	named := func(names ...string) *v1alpha1.PodCliqueSet {
		s := podCliqueSet()
		for i, name := range names {
			s.Spec.Template.Cliques[i].Spec.PodSpec.SchedulerName = name
		}
		return s
	}
	unknown := func(name, configured string) []string {
		return []string{fmt.Sprintf("spec.template.cliques[0].spec.podSpec.schedulerName (and 2 more): %q: muster-controller was configured with %q; "+
			"the pods wait forever unless a scheduler, or a profile of muster-scheduler, of this name runs", name, configured)}
	}
	for name, tc := range map[string]struct {
		configured string
		old, set   *v1alpha1.PodCliqueSet
		want       []string
	}{
		"none":               {set: podCliqueSet()},
		"muster-scheduler":   {configured: "mine", set: named("muster-scheduler", "muster-scheduler", "muster-scheduler")},
		"kai-scheduler":      {set: named("kai-scheduler", "kai-scheduler", "kai-scheduler")},
		"the configured one": {configured: "mine", set: named("mine", "mine", "mine")},
		"a misspelled one":   {set: named("muster-schedulr", "muster-schedulr", "muster-schedulr"), want: unknown("muster-schedulr", "muster-scheduler")},
		"a second profile":   {configured: "mine", set: named("packed", "packed", "packed"), want: unknown("packed", "mine")},
		"default-scheduler": {set: named("default-scheduler", "default-scheduler", "default-scheduler"), want: []string{
			`spec.template.cliques[0].spec.podSpec.schedulerName (and 2 more): "default-scheduler": the pods are scheduled one by one, not as a gang, ` +
				`unless a profile of muster-scheduler has this name; leave it out for "muster-scheduler"`}},
		"default-scheduler, which is the configured one": {configured: "default-scheduler", set: named("default-scheduler", "default-scheduler", "default-scheduler")},
		"an update that leaves it as it was": {old: named("other", "other", "other"), set: func() *v1alpha1.PodCliqueSet {
			s := named("other", "other", "other")
			s.Spec.Replicas = 9
			return s
		}()},
		"an update that adds it":     {old: podCliqueSet(), set: named("other", "other", "other"), want: unknown("other", "muster-scheduler")},
		"several, which is rejected": {set: named("one", "two", "one")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := podCliqueSetValidator{PriorityClasses: PriorityClasses{clusterReader{}}, schedulerName: tc.configured}
			var got admission.Warnings
			if tc.old == nil {
				got, _ = v.ValidateCreate(context.Background(), tc.set)
			} else {
				got, _ = v.ValidateUpdate(context.Background(), tc.old, tc.set)
			}
			got = slices.DeleteFunc(got, func(w string) bool { return !strings.Contains(w, "schedulerName") })
			if diff := cmp.Diff(tc.want, []string(got), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodCliqueSetWithoutReplicas(t *testing.T) {
	t.Parallel()
	v := podCliqueSetValidator{PriorityClasses: PriorityClasses{clusterReader{}}}
	set := podCliqueSet()
	set.Spec.Replicas = 0
	warnings, err := v.ValidateCreate(context.Background(), set)
	if want := "spec.replicas is 0, the value if it is not set: no pods are created until it is raised"; err != nil || !slices.Contains(warnings, want) {
		t.Errorf("created with 0: %q, %v, want %q", warnings, err, want)
	}
	if warnings, err := v.ValidateUpdate(context.Background(), podCliqueSet(), set); err != nil || len(warnings) > 0 {
		t.Errorf("scaled to 0: %q, %v", warnings, err)
	}
	set.Spec.WorkloadType = v1alpha1.WorkloadTypeTraining
	if _, err := v.ValidateCreate(context.Background(), set); err == nil || !strings.Contains(err.Error(), "spec.replicas: Invalid value: 0") {
		t.Errorf("a Training workload with 0: %v", err)
	}
}

// TestARejectedRequestGetsNoWarnings: they would describe effects that it does not have.
func TestARejectedRequestGetsNoWarnings(t *testing.T) {
	t.Parallel()
	v := podCliqueSetValidator{PriorityClasses: PriorityClasses{clusterReader{}}}
	old := podCliqueSet()
	old.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
	set := old.DeepCopy()
	set.Spec.Template.Cliques[0].Spec.Replicas++
	set.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "another"
	for name, replicas := range map[string]int32{"accepted": 1, "rejected": -1} {
		set.Spec.Replicas = replicas
		warnings, err := v.ValidateUpdate(t.Context(), old, set)
		if rejected := replicas < 0; rejected != (err != nil) || rejected == (len(warnings) > 0) {
			t.Errorf("%s: warnings %q, error %v", name, warnings, err)
		}
	}
}

func answer(t *testing.T, response admission.Response, want string) {
	t.Helper()
	switch {
	case want == "" && !response.Allowed:
		t.Errorf("refused: %s", response.Result.Message)
	case want != "" && response.Allowed:
		t.Errorf("allowed, want a refusal with %q", want)
	case want != "" && !strings.Contains(response.Result.Message, want):
		t.Errorf("refusal does not say %q: %s", want, response.Result.Message)
	}
}

func TestScaleValidator(t *testing.T) {
	floor := podClique()
	floor.Spec.MinAvailable = ptr(int32(2))
	for name, tc := range map[string]struct {
		live     []client.Object
		failing  bool
		scale    func(ownerReader) func(context.Context, client.ObjectKey, int32) error
		name     string
		replicas int32
		want     string
	}{
		"a set":             {live: []client.Object{podCliqueSet()}, scale: func(k ownerReader) func(context.Context, client.ObjectKey, int32) error { return k.scalePodCliqueSet }, name: "svc", replicas: 9},
		"a set of Training": {live: []client.Object{trainingSet()}, scale: func(k ownerReader) func(context.Context, client.ObjectKey, int32) error { return k.scalePodCliqueSet }, name: "svc", replicas: 9, want: `PodCliqueSet.grove.io "svc" is invalid`},
		"a group to zero": {live: []client.Object{podCliqueSet(), scalingGroup()}, scale: func(k ownerReader) func(context.Context, client.ObjectKey, int32) error {
			return k.scalePodCliqueScalingGroup
		}, name: "svc-0-g", replicas: 0},
		"a group beyond the tree": {live: []client.Object{podCliqueSet(), scalingGroup()}, scale: func(k ownerReader) func(context.Context, client.ObjectKey, int32) error {
			return k.scalePodCliqueScalingGroup
		}, name: "svc-0-g", replicas: 600, want: "1024 at most"},
		"a clique":                 {live: []client.Object{podCliqueSet(), podClique()}, scale: func(k ownerReader) func(context.Context, client.ObjectKey, int32) error { return k.scalePodClique }, name: "svc-0-solo", replicas: 0},
		"a clique below its floor": {live: []client.Object{podCliqueSet(), floor}, scale: func(k ownerReader) func(context.Context, client.ObjectKey, int32) error { return k.scalePodClique }, name: "svc-0-solo", replicas: 1, want: "floor"},
		"a member":                 {live: []client.Object{podCliqueSet(), scalingGroup(), memberPodClique()}, scale: func(k ownerReader) func(context.Context, client.ObjectKey, int32) error { return k.scalePodClique }, name: "svc-0-g-0-worker", replicas: 4, want: "scale podcliquescalinggroup/svc-0-g instead"},
		"no object":                {scale: func(k ownerReader) func(context.Context, client.ObjectKey, int32) error { return k.scalePodClique }, name: "x", replicas: 4},
		"not known":                {failing: true, scale: func(k ownerReader) func(context.Context, client.ObjectKey, int32) error { return k.scalePodClique }, name: "x", replicas: 4, want: "reading ns/x: away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := admission.WithValidator(testScheme(t), scaleValidator{scale: tc.scale(reader(t, tc.failing, tc.live...))})
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: tc.replicas}}
			answer(t, hook.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, Namespace: "ns", Name: tc.name, Object: rawObject(t, scale), OldObject: rawObject(t, scale),
			}}), tc.want)
		})
	}
}

func TestDefaulters(t *testing.T) {
	const podSpec = `{"containers":[{"name":"main","resources":{"limits":{"cpu":"1000m"}}}]}`
	const terminating = `"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"},`
	for name, tc := range map[string]struct {
		hook   admission.Handler
		object string
		want   []string // paths of the patch, sorted
	}{
		"a set gets its defaults, and no other field is changed": {
			hook: podCliqueSetDefaulter(testScheme(t), "mine", ownerReader{}),
			object: `{"spec":{"template":{"terminationDelay":"24h","cliques":[{"name":"a","spec":{"podSpec":` + podSpec + `}}],
				"podCliqueScalingGroups":[{"name":"g","cliqueNames":["a"]}]}}}`,
			want: []string{
				"/spec/template/cliqueStartupType=CliqueStartupTypeAnyOrder",
				"/spec/template/cliques/0/spec/podSpec/restartPolicy=Always",
				"/spec/template/cliques/0/spec/podSpec/schedulerName=mine",
				"/spec/template/cliques/0/spec/podSpec/terminationGracePeriodSeconds=30",
				"/spec/template/cliques/0/spec/roleName=a",
				"/spec/template/headlessServiceConfig=map[publishNotReadyAddresses:true]",
				"/spec/template/podCliqueScalingGroups/0/replicas=1",
			},
		},
		"a clique": {
			hook:   podCliqueDefaulter(testScheme(t), "", ownerReader{}),
			object: `{"spec":{"podSpec":` + podSpec + `}}`,
			want:   []string{"/spec/podSpec/restartPolicy=Always", "/spec/podSpec/schedulerName=muster-scheduler", "/spec/podSpec/terminationGracePeriodSeconds=30"},
		},
		"a set without required fields": {
			hook:   podCliqueSetDefaulter(testScheme(t), "", ownerReader{}),
			object: `{"spec":{"template":{"cliques":[{"name":"a"},{"name":"b","spec":{"replicas":1}},{"name":"c","spec":{"podSpec":null}},null]}}}`,
			want: []string{
				"/spec/template/cliqueStartupType=CliqueStartupTypeAnyOrder",
				"/spec/template/cliques/1/spec/roleName=b",
				"/spec/template/cliques/2/spec/roleName=c",
				"/spec/template/headlessServiceConfig=map[publishNotReadyAddresses:true]",
			},
		},
		"an empty set":         {hook: podCliqueSetDefaulter(testScheme(t), "", ownerReader{}), object: `{}`},
		"an empty clique":      {hook: podCliqueDefaulter(testScheme(t), "", ownerReader{}), object: `{}`},
		"a terminating set":    {hook: podCliqueSetDefaulter(testScheme(t), "", ownerReader{}), object: `{` + terminating + `"spec":{"template":{"cliques":[]}}}`},
		"a terminating clique": {hook: podCliqueDefaulter(testScheme(t), "", ownerReader{}), object: `{` + terminating + `"spec":{"podSpec":` + podSpec + `}}`},
	} {
		t.Run(name, func(t *testing.T) {
			response := tc.hook.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Object: runtime.RawExtension{Raw: []byte(tc.object)}}})
			if !response.Allowed {
				t.Fatal(response.Result)
			}
			if (response.PatchType != nil) != (len(response.Patches) > 0) {
				t.Errorf("patch type %v for %d patches", response.PatchType, len(response.Patches))
			}
			var got []string
			for _, p := range response.Patches {
				if p.Operation != "add" {
					t.Errorf("%+v", p)
				}
				got = append(got, fmt.Sprintf("%s=%v", p.Path, p.Value))
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("patch (-want +got)\n%s", diff)
			}
		})
	}
	response := podCliqueSetDefaulter(testScheme(t), "", ownerReader{}).Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Object: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"terminationDelay":"soon"}}}`)}}})
	if answer(t, response, "invalid duration"); response.Result.Code != 400 {
		t.Errorf("code %d", response.Result.Code)
	}
}

// TestObjectsOfAnotherController: what belongs to a set that is not served is accepted as it is, however invalid,
// without a default. The same requests in a namespace that is served are rejected.
func TestObjectsOfAnotherController(t *testing.T) {
	t.Parallel()
	invalidSet := podCliqueSet()
	invalidSet.Spec.Replicas = -1
	image := func(o client.Object) client.Object {
		o.(*v1alpha1.PodClique).Spec.PodSpec.Containers = []corev1.Container{{Name: "main", Image: "mine"}}
		return o
	}
	cliques := func(o *v1alpha1.PodCliqueScalingGroup) client.Object {
		o.Spec.CliqueNames = []string{"other"}
		return o
	}
	orphan := podClique()
	orphan.OwnerReferences = nil
	scheme := testScheme(t)
	for name, tc := range map[string]struct {
		hook     func(ownerReader) admission.Handler
		old, now client.Object
		scale    int32
	}{
		"a new set": {now: invalidSet, hook: func(r ownerReader) admission.Handler {
			return admission.WithValidator(scheme, podCliqueSetValidator{owners: r})
		}},
		"a set": {old: podCliqueSet(), now: invalidSet, hook: func(r ownerReader) admission.Handler {
			return admission.WithValidator(scheme, podCliqueSetValidator{owners: r})
		}},
		"a new PodClique":    {now: orphan, hook: func(r ownerReader) admission.Handler { return admission.WithValidator(scheme, podCliqueValidator(r)) }},
		"a PodClique":        {old: podClique(), now: image(podClique()), hook: func(r ownerReader) admission.Handler { return admission.WithValidator(scheme, podCliqueValidator(r)) }},
		"a member PodClique": {old: memberPodClique(), now: image(memberPodClique()), hook: func(r ownerReader) admission.Handler { return admission.WithValidator(scheme, podCliqueValidator(r)) }},
		"a scaling group": {old: scalingGroup(), now: cliques(scalingGroup()), hook: func(r ownerReader) admission.Handler {
			return admission.WithValidator(scheme, podCliqueScalingGroupValidator(r))
		}},
		"a PodClique's scale": {now: memberPodClique(), scale: 9, hook: func(r ownerReader) admission.Handler {
			return admission.WithValidator(scheme, scaleValidator{scale: r.scalePodClique})
		}},
		"a set's scale": {now: podCliqueSet(), scale: -1, hook: func(r ownerReader) admission.Handler {
			return admission.WithValidator(scheme, scaleValidator{scale: r.scalePodCliqueSet})
		}},
		"defaults of a set":                  {now: podCliqueSet(), hook: func(r ownerReader) admission.Handler { return podCliqueSetDefaulter(scheme, "mine", r) }},
		"defaults of a PodClique of a group": {now: memberPodClique(), hook: func(r ownerReader) admission.Handler { return podCliqueDefaulter(scheme, "mine", r) }},
	} {
		for _, class := range []string{"grove", "muster"} {
			t.Run(name+" of class "+class, func(t *testing.T) {
				t.Parallel()
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{v1alpha1.ControllerClass: class}}}
				owners := reader(t, false, namespace, podCliqueSet(), scalingGroup(), podClique(), memberPodClique())
				owners.classes = classes.Reader{Options: classes.DefaultOptions(), Leases: owners.Reader, Namespaces: owners.Reader}
				request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: rawObject(t, tc.now)}}
				switch {
				case tc.scale != 0:
					scaled := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: tc.scale}}
					request.Operation, request.Namespace, request.Name = admissionv1.Update, "ns", tc.now.GetName()
					request.Object, request.OldObject = rawObject(t, scaled), rawObject(t, &autoscalingv1.Scale{})
				case tc.old != nil:
					request.Operation, request.OldObject = admissionv1.Update, rawObject(t, tc.old)
				}
				response := tc.hook(owners).Handle(context.Background(), request)
				if alone := response.Allowed && len(response.Patches) == 0; alone != (class == "grove") {
					t.Errorf("allowed %t, %d patches: %v", response.Allowed, len(response.Patches), response.Result)
				}
			})
		}
	}
}

// TestASetThatNothingServes: the user who creates it is told, as nothing else tells it.
func TestASetThatNothingServes(t *testing.T) {
	t.Parallel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "grove-system", Name: "grove-operator-leader-election"}}
	for name, tc := range map[string]struct {
		class string
		live  []client.Object
		want  string
	}{
		"misspelled":         {class: "mustre", want: `muster-controller leaves this PodCliqueSet alone: its annotation grove.io/controller-class is "mustre"`},
		"beside Grove":       {live: []client.Object{lease}, want: "muster-controller leaves this PodCliqueSet alone: it names no class, and Grove's operator has the Lease grove-system/grove-operator-leader-election"},
		"ours, beside Grove": {class: "muster", live: []client.Object{lease}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owners := reader(t, false, tc.live...)
			owners.classes = classes.Reader{Options: classes.DefaultOptions(), Leases: owners.Reader, Namespaces: owners.Reader}
			set := podCliqueSet()
			set.Annotations = map[string]string{v1alpha1.ControllerClass: tc.class}
			got, err := podCliqueSetValidator{owners: owners}.ValidateCreate(t.Context(), set)
			got = slices.DeleteFunc(got, func(w string) bool { return !strings.Contains(w, "leaves") })
			if text := strings.Join(got, "\n"); err != nil || text != tc.want {
				t.Errorf("warnings %q, %v, want %q", text, err, tc.want)
			}
		})
	}
	owners := reader(t, true)
	owners.classes = classes.Reader{Options: classes.DefaultOptions(), Leases: owners.Reader, Namespaces: owners.Reader}
	if _, err := (podCliqueSetValidator{owners: owners}).ValidateCreate(t.Context(), podCliqueSet()); !apierrors.IsInternalError(err) {
		t.Errorf("%v, want that it cannot be decided", err)
	}
}
