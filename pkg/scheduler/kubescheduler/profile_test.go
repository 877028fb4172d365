// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/muster-project/muster/test/wrappers"
)

func TestOrderProblems(t *testing.T) {
	set := func(names ...string) config.PluginSet {
		var s config.PluginSet
		for _, n := range names {
			s.Enabled = append(s.Enabled, config.Plugin{Name: n})
		}
		return s
	}
	right := func() *config.Plugins {
		return &config.Plugins{
			PreEnqueue: set("SchedulingGates", "Gate"), QueueSort: set("Admission"),
			PreFilter: set("Admission", "NodePorts"), Filter: set("Admission", "NodePorts"), PostFilter: set("Admission", "DynamicResources"),
			Reserve: set("Admission", "VolumeBinding"), Permit: set("Admission"), Bind: set("Admission", "DefaultBinder"),
		}
	}
	for name, tc := range map[string]struct {
		edit func(p *config.Plugins)
		want []string
	}{
		"a correct profile": {edit: func(*config.Plugins) {}},
		"a profile without gangs is not checked": {edit: func(p *config.Plugins) {
			*p = config.Plugins{QueueSort: set("PrioritySort"), Bind: set("DefaultBinder")}
		}},
		"after the default binder": {
			edit: func(p *config.Plugins) { p.Bind = set("DefaultBinder", "Admission") },
			want: []string{"profile x: Admission must be first at bind, but comes after DefaultBinder; name it under bind itself, not only under multiPoint"},
		},
		"DefaultPreemption left in place": {
			edit: func(p *config.Plugins) { p.PostFilter = set("Admission", "DefaultPreemption") },
			want: []string{"profile x: DefaultPreemption is enabled, which would preempt parts of gangs: Admission preempts for pods without a gang, too; name DefaultPreemption under disabled of multiPoint, and nowhere under enabled"},
		},
		"DefaultPreemption in a profile without gangs": {
			edit: func(p *config.Plugins) {
				*p = config.Plugins{QueueSort: set("PrioritySort"), PostFilter: set("DefaultPreemption"), Bind: set("DefaultBinder")}
			},
			want: []string{"profile x: DefaultPreemption is enabled, which would preempt parts of gangs: Admission preempts for pods without a gang, too; name DefaultPreemption under disabled of multiPoint, and nowhere under enabled"},
		},
		"after another plugin": {
			edit: func(p *config.Plugins) { p.PostFilter = set("DynamicResources", "Other", "Admission") },
			want: []string{"profile x: Admission must be first at postFilter, but comes after Other; name it under postFilter itself, not only under multiPoint"},
		},
		"missing at permit and filter": {
			edit: func(p *config.Plugins) { p.Permit, p.Filter = set(), set("NodePorts") },
			want: []string{
				"profile x: Admission must be first at filter, but is missing; name it under filter itself, not only under multiPoint",
				"profile x: Admission must be first at permit, but is missing; name it under permit itself, not only under multiPoint",
			},
		},
		"without the gate": {
			edit: func(p *config.Plugins) { p.PreEnqueue = set("SchedulingGates") },
			want: []string{"profile x: Admission is enabled without Gate at preEnqueue"},
		},
		"PrioritySort left in place": {
			edit: func(p *config.Plugins) { p.QueueSort = set("PrioritySort") },
			want: []string{"profile x: queueSort must be Admission (and PrioritySort disabled)"},
		},
		"the gate alone": {
			edit: func(p *config.Plugins) { *p = config.Plugins{PreEnqueue: set("Gate"), QueueSort: set("Admission")} },
			want: []string{
				"profile x: Admission must be first at preFilter, but is missing; name it under preFilter itself, not only under multiPoint",
				"profile x: Admission must be first at filter, but is missing; name it under filter itself, not only under multiPoint",
				"profile x: Admission must be first at postFilter, but is missing; name it under postFilter itself, not only under multiPoint",
				"profile x: Admission must be first at reserve, but is missing; name it under reserve itself, not only under multiPoint",
				"profile x: Admission must be first at permit, but is missing; name it under permit itself, not only under multiPoint",
				"profile x: Admission must be first at bind, but is missing; name it under bind itself, not only under multiPoint",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := right()
			tc.edit(p)
			if diff := cmp.Diff(tc.want, orderProblems("x", p, "Gate", "Admission")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// binder is an extender that may bind.
type binder struct {
	fwk.Extender
	binds bool
}

func (binder) Name() string     { return "http://127.0.0.1/binder" }
func (b binder) IsBinder() bool { return b.binds }

func TestAnExtenderThatBindsIsRefused(t *testing.T) {
	t.Parallel()
	if err := CheckPluginOrder(&scheduler.Scheduler{Extenders: []fwk.Extender{binder{}}}, "Gate", "Admission"); err != nil {
		t.Errorf("an extender that does not bind: %v", err)
	}
	err := CheckPluginOrder(&scheduler.Scheduler{Extenders: []fwk.Extender{binder{}, binder{binds: true}}}, "Gate", "Admission")
	want := `the scheduler configuration does not let gangs be admitted as a whole:
  extender http://127.0.0.1/binder binds pods: bindings of gangs have to pass Admission; remove its bindVerb`
	if err == nil || err.Error() != want {
		t.Errorf("error (-want +got):\n%s", cmp.Diff(want, fmt.Sprint(err)))
	}
}

// failing is an extender that a pod with the label is asked about.
type failing struct {
	fwk.Extender
	name              string
	filter, ignorable bool
}

func (f failing) Name() string                      { return f.name }
func (f failing) IsFilter() bool                    { return f.filter }
func (f failing) IsIgnorable() bool                 { return f.ignorable }
func (f failing) IsInterested(pod *corev1.Pod) bool { return pod.Labels["app"] != "other" }

type extendedProfile struct {
	Profile
	list []fwk.Extender
}

func (p extendedProfile) Extenders() []fwk.Extender { return p.list }

func TestExtenderAdvice(t *testing.T) {
	t.Parallel()
	pod, other := wrappers.MakePod("p", "ml").Obj(), wrappers.MakePod("o", "ml").Label("app", "other").Obj()
	profile := extendedProfile{list: []fwk.Extender{
		failing{name: "http://a", filter: true}, failing{name: "http://b", filter: true, ignorable: true}, failing{name: "http://c"}, failing{name: "http://d", filter: true},
	}}
	want := "; if extender http://a or http://d is the reason, repair or remove it, or set ignorable: true if pods may be placed without it"
	if diff := cmp.Diff(want, ExtenderAdvice(profile, pod)); diff != "" {
		t.Errorf("advice (-want +got):\n%s", diff)
	}
	if got := ExtenderAdvice(profile, other); got != "" {
		t.Errorf("advice for a pod that no extender knows: %q", got)
	}
}
