// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// gangGates bring kube-scheduler's own gangs into its loop. Each of the others needs the first one.
var gangGates = []featuregate.Feature{
	features.GenericWorkload, features.TopologyAwareWorkloadScheduling, features.CompositePodGroup, features.PodGroupPreemptionPolicy,
	features.DRAWorkloadResourceClaims, features.WorkloadWithJob,
}

// gangPlugins do the same, when a profile enables them.
var gangPlugins = []string{names.GangScheduling, names.TopologyPlacementGenerator, names.PodGroupPodsCount}

// RefuseGates returns an error if a feature gate is on that brings a second gang logic, or bound pods into the queue.
// Source: docs/decisions, G28.
func RefuseGates(enabled func(featuregate.Feature) bool) error {
	if gate := features.InPlacePodVerticalScalingSchedulerPreemption; enabled(gate) {
		return fmt.Errorf("feature gate %s brings pods that are bound into the queue of muster-scheduler, which would keep those of gangs for pods that "+
			"wait: start it with --feature-gates=%s=false; the kubelet resizes pods without it as soon as there is room", gate, gate)
	}
	var on, off []string
	for _, gate := range gangGates {
		if enabled(gate) {
			on, off = append(on, string(gate)), append(off, string(gate)+"=false")
		}
	}
	if len(on) == 0 {
		return nil
	}
	return fmt.Errorf("feature gates %s bring kube-scheduler's own gangs into the queue of muster-scheduler, where two schedulers would bind the pods of one gang: "+
		"start it with --feature-gates=%s; it reads the PodGroups of scheduling.k8s.io without them", strings.Join(on, ", "), strings.Join(off, ","))
}

// RefuseGangFlags is RefuseGates for the values of --feature-gates of another process, in their order. Gates that
// this version of Kubernetes does not have are ignored. An error also says that the gates are not valid together.
func RefuseGangFlags(values []string) error {
	gates := feature.DefaultMutableFeatureGate.DeepCopy()
	known, settings := gates.GetAll(), map[string]bool{}
	for _, setting := range strings.Split(strings.Join(values, ","), ",") {
		gate, is, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(setting), basecompatibility.DefaultKubeComponent+":"), "=")
		if _, has := known[featuregate.Feature(gate)]; has {
			on, err := strconv.ParseBool(is)
			if err != nil {
				return fmt.Errorf("feature gate %s: %w", gate, err)
			}
			settings[gate] = on
		}
	}
	if err := gates.SetFromMap(settings); err != nil {
		return err
	}
	return RefuseGates(gates.Enabled)
}

// RefuseGangPlugins returns an error if a profile enables a plugin of kube-scheduler's own gangs.
func RefuseGangPlugins(profiles []schedconfig.KubeSchedulerProfile) error {
	for _, p := range profiles {
		if p.Plugins == nil {
			continue
		}
		for _, set := range []schedconfig.PluginSet{p.Plugins.MultiPoint, p.Plugins.PreEnqueue, p.Plugins.Reserve, p.Plugins.Permit,
			p.Plugins.PlacementGenerate, p.Plugins.PlacementScore} {
			for _, plugin := range set.Enabled {
				if slices.Contains(gangPlugins, plugin.Name) {
					return fmt.Errorf("profile %s enables plugin %s, which is of kube-scheduler's own gangs: remove it; "+
						"two schedulers would bind the pods of one gang", p.SchedulerName, plugin.Name)
				}
			}
		}
	}
	return nil
}
