// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/test/wrappers"
)

// topologyReader returns the given errors, and for nil a ClusterTopologyBinding or Topology with one level.
type topologyReader struct {
	client.Reader
	binding, topology error
}

func (r topologyReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *v1alpha1.ClusterTopologyBinding:
		into.Name = key.Name
		into.Spec.Levels = []v1alpha1.ClusterTopologyLevel{{Domain: "rack", Key: "l/rack"}}
		return r.binding
	case *topologyv1alpha1.Topology:
		into.Spec.Levels = []topologyv1alpha1.TopologyLevel{{NodeLabel: "l/rack"}}
		if r.topology != nil {
			into.Spec.Levels = nil
		}
		return r.topology
	}
	return errors.New("another kind")
}

func TestReadTopology(t *testing.T) {
	t.Parallel()
	notFound, noCRD, away := apierrors.NewNotFound(schema.GroupResource{}, "x"), &meta.NoKindMatchError{}, errors.New("away")
	for name, tc := range map[string]struct {
		reader      topologyReader
		without     bool // the set has no constraint
		wantBinding bool
		wantName    string
		wantError   error
	}{
		"both exist":                  {wantBinding: true, wantName: "fabric"},
		"no Topology":                 {reader: topologyReader{topology: notFound}, wantBinding: true},
		"no CRD of Topologies":        {reader: topologyReader{topology: noCRD}, wantBinding: true},
		"no binding":                  {reader: topologyReader{binding: notFound}},
		"no CRD of bindings":          {reader: topologyReader{binding: noCRD}},
		"a binding cannot be read":    {reader: topologyReader{binding: away}, wantError: away},
		"a Topology cannot be read":   {reader: topologyReader{topology: away}, wantError: away},
		"nothing is read without one": {reader: topologyReader{binding: away}, without: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := wrappers.MakePodCliqueSet("svc", "ns").Clique("a", 1).Obj()
			if !tc.without {
				set.Spec.Template.TopologyConstraint = &v1alpha1.TopologyConstraint{TopologyName: "fabric", Pack: &v1alpha1.TopologyPackConstraint{Required: "rack"}}
			}
			got, err := (&Reconciler{live: tc.reader}).readTopology(t.Context(), set)
			if !errors.Is(err, tc.wantError) {
				t.Fatalf("error %v, want %v", err, tc.wantError)
			}
			if (got.Binding != nil) != tc.wantBinding || got.Name != tc.wantName {
				t.Errorf("binding %v, Topology %q", got.Binding, got.Name)
			}
		})
	}
}
