// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
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

// RefuseGates returns an error that names the feature gates that are on and bring a second gang logic, or bound pods,
// into the queue. Source: docs/decisions, G28.
func RefuseGates(enabled func(featuregate.Feature) bool) error {
	var on, off []string
	for _, gate := range gangGates {
		if enabled(gate) {
			on, off = append(on, string(gate)), append(off, string(gate)+"=false")
		}
	}
	var refused []error
	if len(on) > 0 {
		refused = append(refused, fmt.Errorf("feature gates %s bring kube-scheduler's own gangs into the queue of muster-scheduler, where two "+
			"schedulers would bind the pods of one gang: start it with --feature-gates=%s; it reads the PodGroups of scheduling.k8s.io without them",
			strings.Join(on, ", "), strings.Join(off, ",")))
	}
	if gate := features.InPlacePodVerticalScalingSchedulerPreemption; enabled(gate) {
		refused = append(refused, fmt.Errorf("feature gate %s brings bound pods into the queue of muster-scheduler, which would keep those of gangs as "+
			"pods that wait: start it with --feature-gates=%s=false; the kubelet resizes pods without it as soon as their node has room", gate, gate))
	}
	return errors.Join(refused...)
}

// RefuseGateFlags is RefuseGates for the values of --feature-gates of another process, in their order. Gates that
// this version of Kubernetes does not have are ignored. An error also says that the gates are not valid together.
func RefuseGateFlags(values []string) error {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
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

// UnservedGate returns the feature gate that is on and lets the scheduler watch what the API server does not serve, so
// that its informers would never be in sync; "" if there is none. API servers before 1.37 do not serve DeviceTaintRules
// in the version that it watches. Returns an error if the API server does not answer.
func UnservedGate(enabled func(featuregate.Feature) bool, server discovery.ServerResourcesInterface) (featuregate.Feature, error) {
	if !enabled(features.DRADeviceTaintRules) {
		return "", nil
	}
	list, err := server.ServerResourcesForGroupVersion(resourcev1.SchemeGroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading which resources the API server serves: %w", err)
	}
	if err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "devicetaintrules" }) {
		return "", nil
	}
	return features.DRADeviceTaintRules, nil
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
