// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
)

func TestValidatePodCliqueSetUpdate(t *testing.T) {
	image := firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.PodSpec.Containers[0].Image = "other" })
	both := func(changes ...func(*v1alpha1.PodCliqueSet)) func(*v1alpha1.PodCliqueSet) {
		return func(s *v1alpha1.PodCliqueSet) {
			for _, change := range changes {
				change(s)
			}
		}
	}
	inOrder := template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.StartupType = ptr(v1alpha1.CliqueStartupTypeInOrder) })
	reordered := template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.Cliques[0], s.Cliques[1] = s.Cliques[1], s.Cliques[0] })

	priority := template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.PriorityClassName = "high" })

	for name, tc := range map[string]struct {
		old          func(*v1alpha1.PodCliqueSet) // of both
		change       func(*v1alpha1.PodCliqueSet) // of the new one
		want         []string
		wantWarnings []string
	}{
		"nothing": {change: func(*v1alpha1.PodCliqueSet) {}},
		"metadata of an invalid one": {
			old:    func(s *v1alpha1.PodCliqueSet) { s.Name = "a.b"; s.Spec.Replicas = -1 },
			change: func(s *v1alpha1.PodCliqueSet) { s.Finalizers = nil; s.Labels = map[string]string{"a": "b"} },
		},
		"a terminating one": {
			old:    func(s *v1alpha1.PodCliqueSet) { s.DeletionTimestamp = &metav1.Time{} },
			change: func(s *v1alpha1.PodCliqueSet) { s.Spec = v1alpha1.PodCliqueSetSpec{} },
		},
		"defaults that are written only now, of one that got past admission": {
			old:    func(*v1alpha1.PodCliqueSet) {},
			change: func(s *v1alpha1.PodCliqueSet) { v1alpha1.SetDefaults(s, "configured") },
		},
		"a spec that is invalid anew": {
			change: func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = -1 },
			want:   []string{"Invalid value: spec.replicas"},
		},
		"replicas of all kinds": {
			change: func(s *v1alpha1.PodCliqueSet) {
				s.Spec.Replicas = 7
				s.Spec.Template.Cliques[0].Spec.Replicas = 7
				s.Spec.Template.PodCliqueScalingGroupConfigs[0].Replicas = ptr(int32(7))
			},
			wantWarnings: []string{
				"spec.template.cliques[0].spec.replicas: applies to PodCliques that have not been scaled",
				"spec.template.podCliqueScalingGroups[0].replicas: applies to PodCliqueScalingGroups that have not been scaled",
			},
		},
		"what else is mutable": {
			change: func(s *v1alpha1.PodCliqueSet) {
				s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
				s.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Hour}
				s.Spec.Template.HeadlessServiceConfig = &v1alpha1.HeadlessServiceConfig{PublishNotReadyAddresses: ptr(false)}
				s.Spec.Template.Cliques[0].Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 5}
				s.Spec.Template.PodCliqueScalingGroupConfigs[0].ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 5}
				s.Spec.Template.PodCliqueScalingGroupConfigs[0].Annotations = map[string]string{"a": "b"}
			},
		},
		"paused, partition and minReadySeconds": {
			old: rolling(v1alpha1.RollingRecreateUpdateStrategy{Paused: true, Partition: ptr(int32(1))}),
			change: both(rolling(v1alpha1.RollingRecreateUpdateStrategy{Partition: ptr(int32(0))}), func(s *v1alpha1.PodCliqueSet) {
				s.Spec.Template.Cliques[0].Spec.MinReadySeconds, s.Spec.Template.PodCliqueScalingGroupConfigs[0].MinReadySeconds = 10, 20
			}),
		},
		"OnDelete, with the settings of RollingRecreate left in place": {
			old:    rolling(v1alpha1.RollingRecreateUpdateStrategy{Paused: true}),
			change: func(s *v1alpha1.PodCliqueSet) { s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategyType },
			want:   []string{"Forbidden: spec.updateStrategy.rollingRecreate"},
		},
		"the pods of a clique":           {change: image},
		"the pods of a clique, OnDelete": {old: strategy(v1alpha1.OnDeleteStrategyType), change: image, wantWarnings: []string{"spec.template.cliques[0].spec.podSpec: updateStrategy is OnDelete"}},
		"labels and annotations of one": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Labels = map[string]string{"a": "b"}
			c.Annotations = c.Labels
		})},
		"the priority class":                  {change: priority},
		"the order of cliques, in any order":  {change: reordered},
		"the order of cliques, in that order": {old: inOrder, change: reordered, want: []string{"Forbidden: spec.template.cliques"}},
		"the order of cliques, explicit":      {old: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.StartupType = ptr(v1alpha1.CliqueStartupTypeExplicit) }), change: reordered, want: []string{"Forbidden: spec.template.cliques"}},
		"one clique more":                     {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.Cliques = append(s.Cliques, clique("x", 1)) }), want: []string{"Forbidden: spec.template.cliques"}},
		"one clique less":                     {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.Cliques = s.Cliques[1:] }), want: []string{"Forbidden: spec.template.cliques"}},
		"another name":                        {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Name = "x"; c.Spec.RoleName = "frontend" }), want: []string{"Forbidden: spec.template.cliques"}},
		"one group less":                      {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.PodCliqueScalingGroupConfigs = nil }), want: []string{"Forbidden: spec.template.podCliqueScalingGroups"}},
		"the cliques of a group":              {change: firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) { g.CliqueNames = []string{"worker"} }), want: []string{"Forbidden: spec.template.podCliqueScalingGroups[0].cliqueNames"}},
		"the minimum of a group":              {change: firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) { g.MinAvailable = ptr(int32(2)) }), want: []string{"Forbidden: spec.template.podCliqueScalingGroups[0].minAvailable"}},
		"the minimum of a group, unset":       {change: firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) { g.MinAvailable = nil }), want: []string{"Forbidden: spec.template.podCliqueScalingGroups[0].minAvailable"}},
		"the minimum of a clique":             {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.MinAvailable = ptr(int32(2)) }), want: []string{"Forbidden: spec.template.cliques[0].spec.minAvailable"}},
		"the role":                            {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.RoleName = "x" }), want: []string{"Forbidden: spec.template.cliques[0].spec.roleName"}},
		"the start order":                     {change: both(inOrder, template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.Cliques[2].Spec.StartsAfter = []string{"leader"} })), want: []string{"Forbidden: spec.template.cliqueStartupType", "Forbidden: spec.template.cliques[2].spec.startsAfter"}, wantWarnings: []string{"spec.template.cliques[2].spec.startsAfter: "}},
		"the scheduler, though no pod is bound": {old: func(s *v1alpha1.PodCliqueSet) { v1alpha1.SetDefaults(s, "") }, change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) {
			for _, c := range s.Cliques {
				withScheduler(c, "x")
			}
		}), want: []string{"Forbidden: spec.template.cliques[0].spec.podSpec.schedulerName", "Forbidden: spec.template.cliques[1].spec.podSpec.schedulerName", "Forbidden: spec.template.cliques[2].spec.podSpec.schedulerName"}},
		"topology, claims and sharing": {
			change: func(s *v1alpha1.PodCliqueSet) {
				near := &v1alpha1.TopologyConstraint{Pack: &v1alpha1.TopologyPackConstraint{Preferred: "rack"}}
				sharing := v1alpha1.ResourceSharing{Name: "c", Scope: v1alpha1.ResourceSharingScopeAllReplicas}
				s.Spec.Template.TopologyConstraint = near
				s.Spec.Template.ResourceClaimTemplates = []v1alpha1.ResourceClaimTemplateConfig{{Name: "c"}}
				s.Spec.Template.ResourceSharing = []v1alpha1.PodCliqueSetResourceSharing{{ResourceSharing: sharing}}
				s.Spec.Template.Cliques[0].TopologyConstraint, s.Spec.Template.Cliques[0].ResourceSharing = near, []v1alpha1.ResourceSharing{sharing}
				group := &s.Spec.Template.PodCliqueScalingGroupConfigs[0]
				group.TopologyConstraint, group.ResourceSharing = near, []v1alpha1.PodCliqueScalingGroupResourceSharing{{ResourceSharing: sharing}}
				group.Annotations = map[string]string{"grove.io/mnnvl-group": "x"}
			},
			want: []string{
				"Forbidden: spec.template.topologyConstraint", "Forbidden: spec.template.resourceClaimTemplates", "Forbidden: spec.template.resourceSharing",
				"Forbidden: spec.template.cliques[0].topologyConstraint", "Forbidden: spec.template.cliques[0].resourceSharing",
				"Forbidden: spec.template.podCliqueScalingGroups[0].topologyConstraint", "Forbidden: spec.template.podCliqueScalingGroups[0].resourceSharing",
				"Forbidden: spec.template.podCliqueScalingGroups[0].annotations[grove.io/mnnvl-group]",
			},
			wantWarnings: []string{"spec.template.resourceClaimTemplates (and 3 more): ", "spec.template.podCliqueScalingGroups[0].annotations[grove.io/mnnvl-group]: "},
		},
		"the time to live of Training": {old: training, change: func(s *v1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &v1alpha1.TrainingSpec{TTLSecondsAfterFinished: ptr(int32(60))}
		}},
		"another workload type":         {change: both(training, template(func(s *v1alpha1.PodCliqueSetTemplateSpec) {})), want: []string{"Forbidden: spec.workloadType"}},
		"the workload type that it had": {change: func(s *v1alpha1.PodCliqueSet) { s.Spec.WorkloadType = v1alpha1.WorkloadTypeInference }},
		"the limits of Training": {old: training, change: func(s *v1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &v1alpha1.TrainingSpec{MaxRestarts: ptr(int32(3))}
		}, want: []string{"Forbidden: spec.trainingSpec"}},
		"no restarts, given or left out": {old: both(training, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &v1alpha1.TrainingSpec{}
		}), change: func(s *v1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &v1alpha1.TrainingSpec{MaxRestarts: ptr(int32(0))}
		}},
		"no limits of Training, given or left out": {old: both(training, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &v1alpha1.TrainingSpec{MaxRestarts: ptr(int32(0))}
		}), change: func(s *v1alpha1.PodCliqueSet) { s.Spec.TrainingSpec = nil }},
		"a runtime that was unlimited": {old: both(training, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &v1alpha1.TrainingSpec{MaxRestarts: ptr(int32(0))}
		}), change: func(s *v1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &v1alpha1.TrainingSpec{MaxRuntime: &metav1.Duration{Duration: time.Hour}}
		}, want: []string{"Forbidden: spec.trainingSpec"}},
		"replicas of all kinds of Training": {old: training, change: func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Replicas++
			s.Spec.Template.Cliques[0].Spec.Replicas++
			s.Spec.Template.PodCliqueScalingGroupConfigs[0].Replicas = ptr(int32(3))
		}, want: []string{"Forbidden: spec.replicas", "Forbidden: spec.template.cliques[0].spec.replicas", "Forbidden: spec.template.podCliqueScalingGroups[0].replicas"}, wantWarnings: []string{"spec.template.cliques[0].spec.replicas: ", "spec.template.podCliqueScalingGroups[0].replicas: "}},
		"the template of Training": {old: training, change: both(image, priority, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.Cliques[1].Labels = map[string]string{"a": "b"}
			s.Spec.Template.Cliques[1].Annotations = map[string]string{"a": "b"}
		}), want: []string{"Forbidden: spec.template.cliques[0].spec.podSpec", "Forbidden: spec.template.cliques[1].labels", "Forbidden: spec.template.cliques[1].annotations", "Forbidden: spec.template.priorityClassName"}},
		"the template of Training, OnDelete": {old: both(training, strategy(v1alpha1.OnDeleteStrategyType)), change: image,
			want: []string{"Forbidden: spec.template.cliques[0].spec.podSpec"}, wantWarnings: []string{"spec.updateStrategy.type: has no effect: "}},
		"the update strategy of Training":       {old: training, change: strategy(v1alpha1.OnDeleteStrategyType), wantWarnings: []string{"spec.updateStrategy.type: has no effect: "}},
		"the update strategy of Training, back": {old: both(training, strategy(v1alpha1.OnDeleteStrategyType)), change: strategy(v1alpha1.RollingRecreateStrategyType)},
		"several errors together": {
			change: func(s *v1alpha1.PodCliqueSet) {
				s.Spec.Replicas = -1
				s.Spec.Template.StartupType = ptr(v1alpha1.CliqueStartupTypeInOrder)
				s.Spec.Template.Cliques[0].Spec.MinAvailable = ptr(int32(9))
				s.Spec.Template.Cliques[2].Spec.PodSpec.HostNetwork = true
			},
			want: []string{
				"Invalid value: spec.replicas", "Invalid value: spec.template.cliques[0].spec.minAvailable",
				"Forbidden: spec.template.cliqueStartupType", "Forbidden: spec.template.cliques[0].spec.minAvailable",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := podCliqueSet()
			if tc.old != nil {
				tc.old(old)
			}
			pcs := old.DeepCopy()
			tc.change(pcs)
			errs, warnings := validation.ValidatePodCliqueSetUpdate(pcs, old)
			compare(t, errs, warnings, tc.want, tc.wantWarnings)
		})
	}
}

// strategy sets the update strategy; "": none is given.
func strategy(t v1alpha1.UpdateStrategyType) func(*v1alpha1.PodCliqueSet) {
	return func(s *v1alpha1.PodCliqueSet) {
		s.Spec.UpdateStrategy = nil
		if t != "" {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: t}
		}
	}
}

// TestWarningsOfUpdateStrategies: every edit is allowed under every strategy and with every switch of the strategy; a
// change that is not applied to running pods gives a warning.
func TestWarningsOfUpdateStrategies(t *testing.T) {
	const none, rolling, onDelete = v1alpha1.UpdateStrategyType(""), v1alpha1.RollingRecreateStrategyType, v1alpha1.OnDeleteStrategyType
	const nothing = ": updateStrategy is OnDelete, so nothing is replaced: delete pods or PodCliques to replace them"
	const earlier = "spec.updateStrategy.type: replaces nothing by itself: pods of earlier templates, if there are any, stay until the next change of the template"
	running := func(replicas int32) func(*v1alpha1.PodCliqueSet) {
		return func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = replicas }
	}
	setClass := func(name string) func(*v1alpha1.PodCliqueSet) {
		return func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.PriorityClassName = name }
	}
	class := func(i int, name string) func(*v1alpha1.PodCliqueSet) {
		return func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.Cliques[i].Spec.PodSpec.PriorityClassName = name }
	}
	limits := func(cpu string) func(*v1alpha1.PodCliqueSet) {
		return firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Spec.PodSpec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		})
	}
	for name, tc := range map[string]struct {
		old, change  []func(*v1alpha1.PodCliqueSet)
		wantOnDelete string // the one warning if the new strategy is OnDelete
		wantSwitched string // if it was and is no longer
	}{
		"nothing else": {wantSwitched: earlier},
		"labels": {change: []func(*v1alpha1.PodCliqueSet){firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Labels = map[string]string{"a": "b"} })},
			wantOnDelete: "spec.template.cliques[0].labels" + nothing},
		"annotations of a member": {change: []func(*v1alpha1.PodCliqueSet){template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.Cliques[2].Annotations = map[string]string{"a": "b"} })},
			wantOnDelete: "spec.template.cliques[2].annotations" + nothing},
		"the pods": {change: []func(*v1alpha1.PodCliqueSet){limits("2")}, wantOnDelete: "spec.template.cliques[0].spec.podSpec" + nothing},
		"the priority class": {change: []func(*v1alpha1.PodCliqueSet){template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.PriorityClassName = "high" })},
			wantOnDelete: "spec.template.priorityClassName" + nothing},
		"the priority class, which one clique has already": {old: []func(*v1alpha1.PodCliqueSet){class(0, "high")}, change: []func(*v1alpha1.PodCliqueSet){setClass("high")},
			wantOnDelete: "spec.template.priorityClassName" + nothing},
		"the priority class, which all cliques have already": {old: []func(*v1alpha1.PodCliqueSet){class(0, "high"), class(1, "high"), class(2, "high")},
			change: []func(*v1alpha1.PodCliqueSet){setClass("high")}, wantSwitched: earlier},
		"the priority class moved to the set": {old: []func(*v1alpha1.PodCliqueSet){class(0, "high"), class(1, "high"), class(2, "high")},
			change: []func(*v1alpha1.PodCliqueSet){class(0, ""), class(1, ""), class(2, ""), setClass("high")}, wantSwitched: earlier},
		"the priority class of a clique": {change: []func(*v1alpha1.PodCliqueSet){class(0, "high")}, wantOnDelete: "spec.template.cliques[0].spec.podSpec" + nothing},
		"several fields": {change: []func(*v1alpha1.PodCliqueSet){limits("2"), template(func(s *v1alpha1.PodCliqueSetTemplateSpec) {
			s.Cliques[1].Labels, s.PriorityClassName = map[string]string{"a": "b"}, "high"
		})}, wantOnDelete: "spec.template.cliques[0].spec.podSpec (and 2 more)" + nothing},
		"the pods of a clique that has another place now": {change: []func(*v1alpha1.PodCliqueSet){limits("2"), template(func(s *v1alpha1.PodCliqueSetTemplateSpec) {
			s.Cliques[0], s.Cliques[1] = s.Cliques[1], s.Cliques[0]
		})}, wantOnDelete: "spec.template.cliques[1].spec.podSpec" + nothing},
		"the pods, written otherwise": {old: []func(*v1alpha1.PodCliqueSet){limits("2")}, change: []func(*v1alpha1.PodCliqueSet){limits("2000m")}, wantSwitched: earlier},
		"no labels, left out or empty": {change: []func(*v1alpha1.PodCliqueSet){firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Labels = map[string]string{} })},
			wantSwitched: earlier},
		"defaults that are written only now":      {change: []func(*v1alpha1.PodCliqueSet){func(s *v1alpha1.PodCliqueSet) { v1alpha1.SetDefaults(s, "configured") }}, wantSwitched: earlier},
		"what needs no replacement":               {change: []func(*v1alpha1.PodCliqueSet){template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.TerminationDelay = &metav1.Duration{Duration: time.Hour} })}, wantSwitched: earlier},
		"the pods, at zero replicas":              {old: []func(*v1alpha1.PodCliqueSet){running(0)}, change: []func(*v1alpha1.PodCliqueSet){limits("2")}},
		"the pods, scaled out from zero replicas": {old: []func(*v1alpha1.PodCliqueSet){running(0)}, change: []func(*v1alpha1.PodCliqueSet){limits("2"), running(2)}},
		"the pods, scaled in to zero replicas":    {change: []func(*v1alpha1.PodCliqueSet){limits("2"), running(0)}},
	} {
		for _, before := range []v1alpha1.UpdateStrategyType{none, rolling, onDelete} {
			for _, now := range []v1alpha1.UpdateStrategyType{none, rolling, onDelete} {
				t.Run(fmt.Sprintf("%s, from %q to %q", name, before, now), func(t *testing.T) {
					old := podCliqueSet()
					for _, change := range append(tc.old, strategy(before)) {
						change(old)
					}
					pcs := old.DeepCopy()
					for _, change := range append(tc.change, strategy(now)) {
						change(pcs)
					}
					var want []string
					switch {
					case now == onDelete && tc.wantOnDelete != "":
						want = []string{tc.wantOnDelete}
					case now != onDelete && before == onDelete && tc.wantSwitched != "":
						want = []string{tc.wantSwitched}
					}
					errs, warnings := validation.ValidatePodCliqueSetUpdate(pcs, old)
					if diff := cmp.Diff(want, warnings); diff != "" || len(errs) > 0 {
						t.Errorf("warnings (-want +got)\n%s\nerrors: %v", diff, errs.ToAggregate())
					}
				})
			}
		}
	}
}

// TestTheTemplateOfTrainingIsImmutable: the error names the strategies that it applies to, and what to do instead.
func TestTheTemplateOfTrainingIsImmutable(t *testing.T) {
	old := podCliqueSet()
	training(old)
	pcs := old.DeepCopy()
	pcs.Spec.Template.PriorityClassName = "high"
	const want = "spec.template.priorityClassName: Forbidden: the template of a Training workload is immutable under either update strategy: " +
		"a rolling change would restart the job; create a new PodCliqueSet, with workloadType Inference and update strategy OnDelete if its template is to change while it runs"
	errs, _ := validation.ValidatePodCliqueSetUpdate(pcs, old)
	if len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("refused with %v, want %s", errs.ToAggregate(), want)
	}
}

func TestValidatePodCliqueSetScale(t *testing.T) {
	for name, tc := range map[string]struct {
		set      func(*v1alpha1.PodCliqueSet)
		replicas int32
		want     []string
	}{
		"out":                        {replicas: 500},
		"to zero":                    {replicas: 0},
		"negative":                   {replicas: -1, want: []string{"Invalid value: spec.replicas"}},
		"Training":                   {set: training, replicas: 3, want: []string{"Forbidden: spec.replicas"}},
		"Training, to what it has":   {set: training, replicas: 2},
		"a terminating one":          {set: func(s *v1alpha1.PodCliqueSet) { training(s); s.DeletionTimestamp = &metav1.Time{} }, replicas: 0},
		"out beyond a cluster":       {replicas: 1<<31 - 1, want: []string{"Invalid value: spec.replicas"}},
		"in, beyond a cluster still": {set: func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 1<<31 - 1 }, replicas: 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			pcs := podCliqueSet()
			if tc.set != nil {
				tc.set(pcs)
			}
			compare(t, validation.ValidatePodCliqueSetScale(pcs, tc.replicas), nil, tc.want, nil)
		})
	}
}
