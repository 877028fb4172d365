// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

type gatesOn map[featuregate.Feature]bool

// TestGatesOfOtherGangs: the error names every gate that is on, and what to start with.
func TestGatesOfOtherGangs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		on   gatesOn
		want []string
	}{
		"none":      {},
		"others":    {on: gatesOn{features.DynamicResourceAllocation: true}},
		"the first": {gatesOn{features.GenericWorkload: true}, []string{"feature gates GenericWorkload bring", "--feature-gates=GenericWorkload=false;"}},
		"resizes of bound pods": {gatesOn{features.InPlacePodVerticalScalingSchedulerPreemption: true}, []string{
			"feature gate InPlacePodVerticalScalingSchedulerPreemption brings bound pods",
			"--feature-gates=InPlacePodVerticalScalingSchedulerPreemption=false;",
		}},
		"several": {gatesOn{features.GenericWorkload: true, features.CompositePodGroup: true, features.TopologyAwareWorkloadScheduling: true},
			[]string{"feature gates GenericWorkload, TopologyAwareWorkloadScheduling, CompositePodGroup bring",
				"--feature-gates=GenericWorkload=false,TopologyAwareWorkloadScheduling=false,CompositePodGroup=false;"}},
		"of both kinds": {gatesOn{features.GenericWorkload: true, features.InPlacePodVerticalScalingSchedulerPreemption: true},
			[]string{"feature gates GenericWorkload bring", "feature gate InPlacePodVerticalScalingSchedulerPreemption brings"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := RefuseGates(func(f featuregate.Feature) bool { return tc.on[f] })
			if (err == nil) != (tc.want == nil) {
				t.Fatal(err)
			}
			for _, words := range tc.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%v\nlacks %s", err, words)
				}
			}
		})
	}
}

// TestGatesThatNeedGenericWorkload: another version of Kubernetes may have more of them.
func TestGatesThatNeedGenericWorkload(t *testing.T) {
	t.Parallel()
	needed := utilfeature.DefaultFeatureGate.Dependencies()
	var needs func(featuregate.Feature) bool
	needs = func(gate featuregate.Feature) bool {
		return gate == features.GenericWorkload || slices.ContainsFunc(needed[gate], needs)
	}
	for gate := range needed {
		if needs(gate) != slices.Contains(gangGates, gate) {
			t.Errorf("gate %s needs GenericWorkload: %t; refused: %t", gate, needs(gate), slices.Contains(gangGates, gate))
		}
	}
}

func TestGateFlags(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                                      "",
		"AllBeta=false":                         "",
		"GenericWorkload=false":                 "",
		"InterPodAffinityHostnameFastPath=true": "",
		"GangScheduling=true":                   "", // until 1.36
		"AllBeta=true":                          "feature gates GenericWorkload, DRAWorkloadResourceClaims bring",
		"AllAlpha=true":                         "TopologyAwareWorkloadScheduling is enabled, but depends on",
		"InPlacePodVerticalScalingSchedulerPreemption=true": "brings bound pods",
	} {
		err := RefuseGateFlags([]string{value})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("--feature-gates=%s: %v; want %q", value, err, want)
		}
	}
}

// served are the resources of resource.k8s.io/v1 that an API server serves.
type served struct {
	discovery.ServerResourcesInterface
	names []string
	err   error
}

func (s served) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{GroupVersion: version}
	for _, name := range s.names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, s.err
}

func TestGateOfWhatIsNotServed(t *testing.T) {
	t.Parallel()
	const rules = features.DRADeviceTaintRules
	for name, tc := range map[string]struct {
		on     gatesOn
		server served
		want   featuregate.Feature
		fails  bool
	}{
		"of 1.37":              {on: gatesOn{rules: true}, server: served{names: []string{"resourceclaims", "devicetaintrules"}}},
		"of 1.36":              {on: gatesOn{rules: true}, server: served{names: []string{"resourceclaims"}}, want: rules},
		"without the group":    {on: gatesOn{rules: true}, server: served{err: apierrors.NewNotFound(schema.GroupResource{}, "")}, want: rules},
		"that does not answer": {on: gatesOn{rules: true}, server: served{err: errors.New("no route to host")}, fails: true},
		"turned off":           {server: served{err: errors.New("not to be asked")}},
	} {
		got, err := UnservedGate(func(f featuregate.Feature) bool { return tc.on[f] }, tc.server)
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("an API server %s: gate %q, %v; want %q", name, got, err, tc.want)
		}
	}
}

func TestPluginsOfOtherGangs(t *testing.T) {
	t.Parallel()
	enabled := func(name string) []schedconfig.KubeSchedulerProfile {
		return []schedconfig.KubeSchedulerProfile{{SchedulerName: "none"}, {SchedulerName: "s", Plugins: &schedconfig.Plugins{
			MultiPoint: schedconfig.PluginSet{Enabled: []schedconfig.Plugin{{Name: name}}}}}}
	}
	if err := RefuseGangPlugins(enabled("GangAdmission")); err != nil {
		t.Error(err)
	}
	placement := []schedconfig.KubeSchedulerProfile{{SchedulerName: "s", Plugins: &schedconfig.Plugins{
		PlacementGenerate: schedconfig.PluginSet{Enabled: []schedconfig.Plugin{{Name: "TopologyPlacementGenerator"}}}}}}
	if err := RefuseGangPlugins(placement); err == nil || !strings.Contains(err.Error(), "profile s enables plugin TopologyPlacementGenerator") {
		t.Error(err)
	}
	if err := RefuseGangPlugins(enabled("GangScheduling")); err == nil || !strings.Contains(err.Error(), "profile s enables plugin GangScheduling") {
		t.Error(err)
	}
}
