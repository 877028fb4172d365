// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
)

func TestValidateNewTopology(t *testing.T) {
	t.Parallel()
	fabric := &v1alpha1.ClusterTopologyBinding{ObjectMeta: metav1.ObjectMeta{Name: "fabric"}}
	for _, domain := range []string{"zone", "block", "rack", "host"} {
		fabric.Spec.Levels = append(fabric.Spec.Levels, v1alpha1.ClusterTopologyLevel{Domain: domain, Key: "example.com/" + domain})
	}
	pack := func(topology, required, preferred string) *v1alpha1.TopologyConstraint {
		return &v1alpha1.TopologyConstraint{TopologyName: topology, Pack: &v1alpha1.TopologyPackConstraint{Required: required, Preferred: preferred}}
	}
	older := &v1alpha1.TopologyConstraint{TopologyName: "fabric", PackDomain: "rack"}
	for name, tc := range map[string]struct {
		set, group, frontend, worker *v1alpha1.TopologyConstraint
		want                         []string // field: detail
		wantWarnings                 []string
	}{
		"no constraints": {},
		"the parts inherit the name": {
			set: pack("fabric", "block", "rack"), group: pack("", "rack", ""), worker: pack("", "host", ""), frontend: pack("", "block", "host")},
		"a clique inherits the name of its group": {group: pack("fabric", "rack", ""), worker: pack("", "rack", "")},
		"every part has the name":                 {set: pack("fabric", "rack", ""), group: pack("fabric", "", "host"), frontend: pack("fabric", "host", "")},
		"no name above": {
			group: pack("fabric", "rack", ""), frontend: pack("", "rack", ""),
			want: []string{"spec.template.cliques[0].topologyConstraint.topologyName: the name of the ClusterTopologyBinding whose levels the domains are"},
		},
		"two names": {
			set: pack("fabric", "rack", ""), frontend: pack("other", "rack", ""),
			want: []string{`spec.template.cliques[0].topologyConstraint.topologyName: must be "fabric", as in spec.template.topologyConstraint.topologyName: a PodCliqueSet refers to one ClusterTopologyBinding`},
		},
		"the older form": {
			set: older, want: []string{"spec.template.topologyConstraint.packDomain: is deprecated; use pack.required"}},
		"neither required nor preferred": {
			set: pack("fabric", "", ""), worker: &v1alpha1.TopologyConstraint{},
			want: []string{
				"spec.template.topologyConstraint.pack: a required or a preferred domain is needed",
				"spec.template.cliques[2].topologyConstraint.pack: a required or a preferred domain is needed",
			},
		},
		"no such binding": {
			group: pack("missing", "rack", ""),
			want:  []string{"spec.template.podCliqueScalingGroups[0].topologyConstraint.topologyName: no ClusterTopologyBinding has this name"},
		},
		"domains that the binding does not have": {
			set: pack("fabric", "row", ""), worker: pack("", "", "aisle"),
			want: []string{
				`spec.template.topologyConstraint.pack.required: supported values: "zone", "block", "rack", "host"`,
				`spec.template.cliques[2].topologyConstraint.pack.preferred: supported values: "zone", "block", "rack", "host"`,
			},
		},
		"wider than the set": {
			set: pack("fabric", "rack", ""), group: pack("", "block", ""),
			want: []string{`spec.template.podCliqueScalingGroups[0].topologyConstraint.pack.required: is wider than "rack", which the PodCliqueSet requires: use the same domain or a narrower one`},
		},
		"wider than the set, through the group": {
			set: pack("fabric", "rack", ""), worker: pack("", "zone", ""),
			want: []string{`spec.template.cliques[2].topologyConstraint.pack.required: is wider than "rack", which the PodCliqueSet requires: use the same domain or a narrower one`},
		},
		"wider than the group": {
			set: pack("fabric", "zone", ""), group: pack("", "host", ""), worker: pack("", "rack", ""),
			want: []string{`spec.template.cliques[2].topologyConstraint.pack.required: is wider than "host", which scaling group "decode" requires: use the same domain or a narrower one`},
		},
		"prefers wider than the group requires": {
			set: pack("fabric", "zone", ""), group: pack("", "host", ""), worker: pack("", "", "rack"),
			wantWarnings: []string{`spec.template.cliques[2].topologyConstraint.pack.preferred: has no effect: "rack" is wider than "host", which scaling group "decode" requires`},
		},
		"prefers wider than it requires": {
			set:          pack("fabric", "rack", "zone"),
			wantWarnings: []string{`spec.template.topologyConstraint.pack.preferred: has no effect: "zone" is wider than the required domain "rack"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := podCliqueSet()
			template := &set.Spec.Template
			template.TopologyConstraint, template.PodCliqueScalingGroupConfigs[0].TopologyConstraint = tc.set, tc.group
			template.Cliques[0].TopologyConstraint, template.Cliques[2].TopologyConstraint = tc.frontend, tc.worker
			errs, warnings, err := validation.ValidateNewTopology(set, func(name string) (*v1alpha1.ClusterTopologyBinding, error) {
				if name == fabric.Name {
					return fabric, nil
				}
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, err := range errs {
				got = append(got, fmt.Sprintf("%s: %s", err.Field, err.Detail))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
	set := podCliqueSet()
	set.Spec.Template.TopologyConstraint = pack("fabric", "rack", "")
	away := errors.New("away")
	if _, _, err := validation.ValidateNewTopology(set, func(string) (*v1alpha1.ClusterTopologyBinding, error) { return nil, away }); !errors.Is(err, away) {
		t.Errorf("error %v, want that of the read", err)
	}
}
