// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"strings"
	"testing"

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
			"feature gate InPlacePodVerticalScalingSchedulerPreemption brings pods that are bound",
			"--feature-gates=InPlacePodVerticalScalingSchedulerPreemption=false;",
		}},
		"several": {gatesOn{features.GenericWorkload: true, features.CompositePodGroup: true, features.TopologyAwareWorkloadScheduling: true},
			[]string{"feature gates GenericWorkload, TopologyAwareWorkloadScheduling, CompositePodGroup bring",
				"--feature-gates=GenericWorkload=false,TopologyAwareWorkloadScheduling=false,CompositePodGroup=false;"}},
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
