// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/test/wrappers"
)

// clusterReader has the PriorityClass high, and the Topology and the ClusterTopologyBinding fabric, returns an error
// for what is called unknown, forbids what is called secret, and has no CRD for what is called early.
type clusterReader struct{ client.Reader }

func (clusterReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch key.Name {
	case "high":
		return nil
	case "fabric":
		switch into := into.(type) {
		case *topologyv1alpha1.Topology:
			into.Spec.Levels = []topologyv1alpha1.TopologyLevel{{NodeLabel: "block"}, {NodeLabel: "rack"}}
		case *v1alpha1.ClusterTopologyBinding:
			into.Spec.Levels = []v1alpha1.ClusterTopologyLevel{{Domain: "block", Key: "l/block"}, {Domain: "rack", Key: "l/rack"}}
		}
		return nil
	case "secret":
		return apierrors.NewForbidden(schema.GroupResource{}, key.Name, errors.New("no right"))
	case "early":
		return &meta.NoKindMatchError{}
	case "unknown":
		return apierrors.NewServiceUnavailable("down")
	}
	return apierrors.NewNotFound(schedulingv1.Resource("priorityclasses"), key.Name)
}

func TestPodGroupValidator(t *testing.T) {
	valid := wrappers.MakePodGroup("pg", "ns").MinSubGroup(1).SubGroup("a", 1).Obj()
	oldForm := wrappers.MakePodGroup("pg", "ns").MinMember(1).SubGroup("a", 1).Obj()
	invalid := wrappers.MakePodGroup("pg", "ns").MinSubGroup(5).SubGroup("a", 0).Obj()
	levels := func(topology, root, below string) *v2alpha2.PodGroup {
		pg := wrappers.MakePodGroup("pg", "ns").SubGroup("a", 1).Obj()
		pg.Spec.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: topology, RequiredTopologyLevel: root}
		if below != "" {
			pg.Spec.SubGroups[0].TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: topology, RequiredTopologyLevel: below}
		}
		return pg
	}
	withPriority := func(pg *v2alpha2.PodGroup, class string) *v2alpha2.PodGroup {
		pg.Spec.PriorityClassName = class
		return pg
	}
	nameless := invalid.DeepCopy()
	nameless.Name, nameless.GenerateName = "", "pg-"

	for name, tc := range map[string]struct {
		operation   admissionv1.Operation
		old, pg     *v2alpha2.PodGroup
		wantMessage []string // parts of the rejection; none: allowed
		wantWarning string
	}{
		"create, valid":                   {operation: admissionv1.Create, pg: valid},
		"create, accepted with a warning": {operation: admissionv1.Create, pg: oldForm, wantWarning: "old form"},
		"create, a priority class that does not exist": {operation: admissionv1.Create, pg: wrappers.MakePodGroup("pg", "ns").Priority("lost").Obj(),
			wantWarning: `spec.priorityClassName: PriorityClass "lost" does not exist; until it does, the gang has the priority of its pods`},
		"create, a priority class that exists":         {operation: admissionv1.Create, pg: wrappers.MakePodGroup("pg", "ns").Priority("high").Obj()},
		"create, a priority class that cannot be read": {operation: admissionv1.Create, pg: wrappers.MakePodGroup("pg", "ns").Priority("unknown").Obj()},
		"update, another priority class": {operation: admissionv1.Update, old: valid, pg: wrappers.MakePodGroup("pg", "ns").Priority("lost").Obj(),
			wantWarning: `PriorityClass "lost" does not exist`},
		"update, the priority class stays": {operation: admissionv1.Update,
			old: wrappers.MakePodGroup("pg", "ns").Priority("lost").Obj(), pg: wrappers.MakePodGroup("pg", "ns").Priority("lost").MinMember(2).Obj()},
		"create, required levels in the order of the Topology": {operation: admissionv1.Create, pg: levels("fabric", "block", "rack")},
		"create, a required level wider than the one above":    {operation: admissionv1.Create, pg: levels("fabric", "rack", "block"), wantMessage: []string{"spec.subGroups[0].topologyConstraint.requiredTopologyLevel", `is wider than "rack", which the PodGroup requires`}},
		"create, a level that the Topology does not have":      {operation: admissionv1.Create, pg: levels("fabric", "zone", ""), wantMessage: []string{`is not a level of Topology "fabric": block, rack`}},
		"create, a Topology that does not exist":               {operation: admissionv1.Create, pg: levels("lost", "rack", "block"), wantWarning: `topologyConstraint.topology: Topology "lost" does not exist; until it does, pods with a required level of it wait`},
		"create, no CRD of Topologies":                         {operation: admissionv1.Create, pg: levels("early", "rack", "block"), wantWarning: `Topology "early" does not exist`},
		"create, a Topology that cannot be read":               {operation: admissionv1.Create, pg: levels("unknown", "rack", "block")},
		"create, a Topology that must not be read":             {operation: admissionv1.Create, pg: levels("secret", "rack", "block")},
		"update to a required level wider than the one above":  {operation: admissionv1.Update, old: levels("fabric", "rack", "rack"), pg: levels("fabric", "rack", "block"), wantMessage: []string{"is wider than"}},
		"update of a PodGroup whose level the Topology does not have any more": {operation: admissionv1.Update, old: levels("fabric", "zone", ""), pg: withPriority(levels("fabric", "zone", ""), "high"),
			wantWarning: `is not a level of Topology "fabric": block, rack`},
		"update that leaves the spec alone, with levels that contradict": {operation: admissionv1.Update, old: levels("fabric", "rack", "block"), pg: levels("fabric", "rack", "block")},
		"create, refused with every error":                               {operation: admissionv1.Create, pg: invalid, wantMessage: []string{`PodGroup.scheduling.run.ai "pg" is invalid`, "spec.minSubGroup", "spec.subGroups[0].minMember"}},
		"create, refused, name not generated yet":                        {operation: admissionv1.Create, pg: nameless, wantMessage: []string{`PodGroup.scheduling.run.ai "pg-" is invalid`}},
		"update, refused":                                    {operation: admissionv1.Update, old: valid, pg: invalid, wantMessage: []string{"spec.minSubGroup"}},
		"update, accepted with a warning":                    {operation: admissionv1.Update, old: valid, pg: oldForm, wantWarning: "old form"},
		"update of an invalid object that leaves spec alone": {operation: admissionv1.Update, old: invalid, pg: invalid},
		"delete of an invalid object":                        {operation: admissionv1.Delete, old: invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			if err := v2alpha2.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			hook := admission.WithValidator(scheme, PodGroupValidator{PriorityClasses: PriorityClasses{clusterReader{}}})
			response := hook.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: tc.operation,
				Kind:      metav1.GroupVersionKind{Group: v2alpha2.GroupName, Version: "v2alpha2", Kind: "PodGroup"},
				Object:    raw(t, tc.pg), OldObject: raw(t, tc.old),
			}})
			if response.Allowed != (len(tc.wantMessage) == 0) {
				t.Fatalf("allowed = %t: %+v", response.Allowed, response.Result)
			}
			for _, part := range tc.wantMessage {
				if !strings.Contains(response.Result.Message, part) {
					t.Errorf("message %q does not say %q", response.Result.Message, part)
				}
			}
			if got := strings.Join(response.Warnings, "\n"); tc.wantWarning == "" && got != "" || !strings.Contains(got, tc.wantWarning) {
				t.Errorf("warnings %q, want %q", got, tc.wantWarning)
			}
		})
	}
}

func raw(t *testing.T, pg *v2alpha2.PodGroup) runtime.RawExtension {
	t.Helper()
	if pg == nil {
		return runtime.RawExtension{}
	}
	content, err := json.Marshal(pg)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: content}
}
