// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"slices"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Framework returns the framework behind the handle that a plugin factory receives. Its plugins are complete only
// after all factories have run.
func Framework(handle fwk.Handle) (framework.Framework, error) {
	f, ok := handle.(framework.Framework)
	if !ok {
		return nil, fmt.Errorf("the plugin handle (%T) is not the framework of kube-scheduler: planning needs its RunPreFilterPlugins; was the scheduler built from another Kubernetes minor?", handle)
	}
	return f, nil
}

// CheckOrder returns an error that lists the misplaced plugins of every profile with the admission plugin. The
// admission plugin must be first at every extension point, in particular before the default binder at Bind, and must
// not be enabled without the gate. The queue must get all events, as with the feature gate SchedulerQueueingHints.
func CheckOrder(sched *scheduler.Scheduler, gate, admission string) error {
	var problems []string
	for name, profile := range sched.Profiles {
		problems = append(problems, orderProblems(name, profile.ListPlugins(), gate, admission)...)
	}
	problems = append(problems, binderProblems(sched.Extenders, admission)...)
	if !utilfeature.DefaultFeatureGate.Enabled(features.SchedulerQueueingHints) {
		problems = append(problems, "the feature gate SchedulerQueueingHints is off: then pods that are bound or deleted do not pass the queue, and no gang that waits would learn of them; leave it on")
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return fmt.Errorf("%s:\n  %s", notWhole, strings.Join(problems, "\n  "))
}

const notWhole = "the scheduler configuration does not let gangs be admitted as a whole"

func binderProblems(extenders []fwk.Extender, admission string) []string {
	var problems []string
	for _, e := range extenders {
		if e.IsBinder() {
			problems = append(problems, fmt.Sprintf("extender %s binds pods: bindings of gangs have to pass %s; remove its bindVerb", e.Name(), admission))
		}
	}
	return problems
}

func orderProblems(profile string, plugins *config.Plugins, gate, admission string) []string {
	points := []struct {
		name string
		set  config.PluginSet
	}{
		{"preFilter", plugins.PreFilter}, {"filter", plugins.Filter}, {"postFilter", plugins.PostFilter},
		{"reserve", plugins.Reserve}, {"permit", plugins.Permit}, {"bind", plugins.Bind},
	}
	index := func(set config.PluginSet, name string) int {
		return slices.IndexFunc(set.Enabled, func(p config.Plugin) bool { return p.Name == name })
	}
	gated := index(plugins.PreEnqueue, gate) >= 0
	admits := slices.ContainsFunc(points, func(p struct {
		name string
		set  config.PluginSet
	}) bool {
		return index(p.set, admission) >= 0
	})
	if !gated && !admits {
		return nil // a profile without gangs
	}
	var problems []string
	if !gated {
		problems = append(problems, fmt.Sprintf("profile %s: %s is enabled without %s at preEnqueue", profile, admission, gate))
	}
	if index(plugins.QueueSort, admission) != 0 {
		problems = append(problems, fmt.Sprintf("profile %s: queueSort must be %s (and PrioritySort disabled)", profile, admission))
	}
	for _, p := range points {
		if i := index(p.set, admission); i != 0 {
			where := "is missing"
			if i > 0 {
				where = fmt.Sprintf("comes after %s", p.set.Enabled[i-1].Name)
			}
			problems = append(problems, fmt.Sprintf("profile %s: %s must be first at %s, but %s; name it under %s itself, not only under multiPoint", profile, admission, p.name, where, p.name))
		}
	}
	return problems
}
