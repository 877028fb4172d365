// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// Scheduler is a kube-scheduler that is set up and does not run yet. Other packages pass it to functions of this one.
type Scheduler = scheduler.Scheduler

// Profile is the framework of one profile of the scheduler: its plugins, and what they share. Other packages pass it to
// functions of this one.
type Profile = framework.Framework

// ProfileOf returns the profile behind the handle that a plugin factory receives. Its plugins are complete only after
// all factories have run.
func ProfileOf(handle fwk.Handle) (Profile, error) {
	f, ok := handle.(framework.Framework)
	if !ok {
		return nil, fmt.Errorf("the plugin handle (%T) is not the framework of kube-scheduler: planning needs its RunPreFilterPlugins; was the scheduler built from another Kubernetes minor?", handle)
	}
	return f, nil
}

// GateOfOthers returns the reason why a plugin other than the named one currently keeps the pod out of the scheduling
// queue. "": none does.
func GateOfOthers(ctx context.Context, profile Profile, pod *corev1.Pod, own string) string {
	for _, plugin := range profile.PreEnqueuePlugins() {
		if plugin.Name() == own || len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			return fmt.Sprintf("is gated by plugin %s: %s", plugin.Name(), status.Message())
		}
	}
	return ""
}

// PodOf returns the pod that is an entity of the queue. Panics if it is a group, which RefuseGates excludes.
func PodOf(entity fwk.QueuedEntityInfo) *corev1.Pod { return entity.(*framework.QueuedPodInfo).Pod }

// SkipsPreBind reports whether no plugin has anything to prepare before the pod is bound to the node.
func SkipsPreBind(ctx context.Context, profile Profile, state fwk.CycleState, pod *corev1.Pod, node string) bool {
	return profile.RunPreBindPreFlights(ctx, state, pod, node).IsSkip()
}

// CheckPluginOrder returns an error that lists the misplaced plugins of every profile with the admission plugin. The
// admission plugin must be first at every extension point, in particular before the default binder at Bind, and must
// not be enabled without the gate, and DefaultPreemption in none.
func CheckPluginOrder(sched *scheduler.Scheduler, gate, admission string) error {
	var problems []string
	for name, profile := range sched.Profiles {
		problems = append(problems, orderProblems(name, profile.ListPlugins(), gate, admission)...)
	}
	problems = append(problems, binderProblems(sched.Extenders, admission)...)
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return fmt.Errorf("%s:\n  %s", notWhole, strings.Join(problems, "\n  "))
}

const notWhole = "the scheduler configuration does not let gangs be admitted as a whole"

// ExtenderAdvice returns what to do if the cycle of a pod has failed because of an HTTP extender, as a clause. "": none
// can be the reason.
func ExtenderAdvice(profile Profile, pod *corev1.Pod) string {
	var names []string
	for _, x := range profile.Extenders() {
		if x.IsFilter() && !x.IsIgnorable() && x.IsInterested(pod) {
			names = append(names, x.Name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; if extender %s is the reason, repair or remove it, or set ignorable: true if pods may be placed without it", strings.Join(names, " or "))
}

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
	var problems []string
	if index(plugins.PostFilter, names.DefaultPreemption) >= 0 {
		problems = append(problems, fmt.Sprintf("profile %s: %s is enabled, which would preempt parts of gangs: %s preempts for pods without a gang, too; name %s under disabled of multiPoint, and nowhere under enabled", profile, names.DefaultPreemption, admission, names.DefaultPreemption))
	}
	if !gated && !admits {
		return problems // a profile without gangs
	}
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
