// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

func ptr[T any](v T) *T { return &v }

// podCliqueSet returns a valid PodCliqueSet, svc: a standalone clique frontend, and
// the scaling group decode of leader and worker.
func podCliqueSet() *v1alpha1.PodCliqueSet {
	return wrappers.MakePodCliqueSet("svc", "ns").Replicas(2).Clique("frontend", 3).Clique("leader", 1).Clique("worker", 4).
		ScalingGroup("decode", 2, 1, "leader", "worker").Obj()
}

func clique(name string, replicas int32) *v1alpha1.PodCliqueTemplateSpec {
	return wrappers.MakeClique(name, replicas)
}

func group(name string, replicas int32, cliques ...string) v1alpha1.PodCliqueScalingGroupConfig {
	return v1alpha1.PodCliqueScalingGroupConfig{Name: name, Replicas: &replicas, CliqueNames: cliques}
}

// template returns the change of a service's template as one of the service.
func template(change func(*v1alpha1.PodCliqueSetTemplateSpec)) func(*v1alpha1.PodCliqueSet) {
	return func(s *v1alpha1.PodCliqueSet) { change(&s.Spec.Template) }
}

// firstClique and firstGroup do the same for frontend and decode.
func firstClique(change func(*v1alpha1.PodCliqueTemplateSpec)) func(*v1alpha1.PodCliqueSet) {
	return func(s *v1alpha1.PodCliqueSet) { change(s.Spec.Template.Cliques[0]) }
}

func firstGroup(change func(*v1alpha1.PodCliqueScalingGroupConfig)) func(*v1alpha1.PodCliqueSet) {
	return func(s *v1alpha1.PodCliqueSet) { change(&s.Spec.Template.PodCliqueScalingGroupConfigs[0]) }
}

func training(s *v1alpha1.PodCliqueSet) { s.Spec.WorkloadType = v1alpha1.WorkloadTypeTraining }

func TestValidatePodCliqueSet(t *testing.T) {
	delay := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	explicit := func(after map[string][]string) func(*v1alpha1.PodCliqueSet) {
		return template(func(s *v1alpha1.PodCliqueSetTemplateSpec) {
			s.StartupType = ptr(v1alpha1.CliqueStartupTypeExplicit)
			for _, c := range s.Cliques {
				c.Spec.StartsAfter = after[c.Name]
			}
		})
	}
	cliques := func(cliques ...*v1alpha1.PodCliqueTemplateSpec) func(*v1alpha1.PodCliqueSet) {
		return template(func(s *v1alpha1.PodCliqueSetTemplateSpec) {
			s.Cliques, s.PodCliqueScalingGroupConfigs = cliques, nil
		})
	}
	groups := func(groups ...v1alpha1.PodCliqueScalingGroupConfig) func(*v1alpha1.PodCliqueSet) {
		return template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.PodCliqueScalingGroupConfigs = groups })
	}
	both := func(changes ...func(*v1alpha1.PodCliqueSet)) func(*v1alpha1.PodCliqueSet) {
		return func(s *v1alpha1.PodCliqueSet) {
			for _, change := range changes {
				change(s)
			}
		}
	}
	minReady := func(clique, group int32) func(*v1alpha1.PodCliqueSet) {
		return template(func(s *v1alpha1.PodCliqueSetTemplateSpec) {
			s.Cliques[0].Spec.MinReadySeconds, s.PodCliqueScalingGroupConfigs[0].MinReadySeconds = clique, group
		})
	}
	const fits = "a-name-of-22-characters" // 23 with svc's 3 less than 45

	for name, tc := range map[string]struct {
		change       func(*v1alpha1.PodCliqueSet)
		want         []string // one "<type>: <field>" per error, in order
		wantWarnings []string // one "<field>: " per warning, in order
	}{
		"a service":                     {},
		"no replicas":                   {change: func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 0 }},
		"a clique alone":                {change: cliques(clique("a", 1))},
		"a name not made yet":           {change: func(s *v1alpha1.PodCliqueSet) { s.Name, s.GenerateName = "", "svc-" }},
		"every minimum unset":           {change: groups(v1alpha1.PodCliqueScalingGroupConfig{Name: "g", CliqueNames: []string{"worker"}})},
		"minimum equal to replicas":     {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.MinAvailable = ptr(int32(3)) })},
		"names that contain each other": {change: cliques(clique("worker", 1), clique("prefill-worker", 1))},
		"topology spread constraints": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Spec.PodSpec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{}}
		})},
		"another scheduler for all": {change: cliques(withScheduler(clique("a", 1), "kai-scheduler"), withScheduler(clique("b", 1), "kai-scheduler"))},
		"a diamond of startsAfter":  {change: explicit(map[string][]string{"leader": {"frontend"}, "worker": {"frontend", "leader"}})},
		"in order":                  {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.StartupType = ptr(v1alpha1.CliqueStartupTypeInOrder) })},
		"an autoscaler for a clique": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 3}
		})},
		"an autoscaler for a group": {change: firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) {
			g.ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: ptr(int32(1)), MaxReplicas: 5}
		})},
		"a terminationDelay":            {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.TerminationDelay = delay(time.Hour) })},
		"an unreachableGrace":           {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.UnreachableGrace = delay(0) })},
		"a terminationDelay of a group": {change: both(template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.TerminationDelay = delay(time.Hour) }), firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) { g.TerminationDelay = delay(time.Minute) }))},
		"Training":                      {change: training},
		"Training with limits, OnFailure": {change: both(training, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &v1alpha1.TrainingSpec{MaxRuntime: delay(time.Hour), MaxRestarts: ptr(int32(0))}
		}, firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.PodSpec.RestartPolicy = corev1.RestartPolicyOnFailure }))},
		"OnDelete": {change: func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
		}},
		"RollingRecreate": {change: func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType}
		}},
		"an update strategy without a type": {change: func(s *v1alpha1.PodCliqueSet) { s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{} }},
		"OnDelete of Training": {change: both(training, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
		}), wantWarnings: []string{"spec.updateStrategy.type: has no effect: "}},
		"paused at creation, a partition above replicas": {change: rolling(v1alpha1.RollingRecreateUpdateStrategy{Paused: true, Partition: ptr(int32(100))})},
		"rollingRecreate without a type": {change: both(rolling(v1alpha1.RollingRecreateUpdateStrategy{Partition: ptr(int32(0))}),
			func(s *v1alpha1.PodCliqueSet) { s.Spec.UpdateStrategy.Type = "" })},
		"rollingRecreate of Training": {change: both(training, rolling(v1alpha1.RollingRecreateUpdateStrategy{Paused: true})),
			wantWarnings: []string{"spec.updateStrategy.rollingRecreate: has no effect: "}},
		"minReadySeconds of a year": {change: minReady(365*24*60*60, 1)},
		"minReadySeconds of Training": {change: both(training, minReady(1, 1)),
			wantWarnings: []string{"spec.template.cliques[0].spec.minReadySeconds (and 1 more): has no effect: "}},
		"other fields that have no effect": {
			change: func(s *v1alpha1.PodCliqueSet) {
				s.Labels = map[string]string{"kai.scheduler/queue": "q"}
				s.Annotations = map[string]string{"grove.io/mnnvl-group": "g", "scheduling.grove.io/volcano-queue": "q"}
				s.Spec.Template.ResourceClaimTemplates = []v1alpha1.ResourceClaimTemplateConfig{{Name: "c"}}
				s.Spec.Template.ResourceSharing = []v1alpha1.PodCliqueSetResourceSharing{{ResourceSharing: v1alpha1.ResourceSharing{Name: "c", Scope: "AllReplicas"}}}
				c := s.Spec.Template.Cliques[0]
				c.Labels = map[string]string{"app.kubernetes.io/managed-by": "me", "mine": "x"}
				c.Annotations = map[string]string{"grove.io/mnnvl-group": "none"}
				c.Spec.StartsAfter = []string{"leader"}
				c.Spec.PodSpec.RestartPolicy = corev1.RestartPolicyNever
				c.Spec.PodSpec.Hostname, c.Spec.PodSpec.Subdomain = "h", "s"
				s.Spec.Template.PriorityClassName, c.Spec.PodSpec.PriorityClassName = "high", "low"
			},
			wantWarnings: []string{
				"metadata.labels[kai.scheduler/queue] (and 1 more): ",
				"metadata.annotations[grove.io/mnnvl-group]: ",
				"spec.template.resourceClaimTemplates (and 1 more): ",
				"spec.template.cliques[0].labels[app.kubernetes.io/managed-by]: ",
				"spec.template.cliques[0].spec.startsAfter: ",
				"spec.template.cliques[0].spec.podSpec.restartPolicy: ",
				"spec.template.cliques[0].spec.podSpec.priorityClassName: ",
				"spec.template.cliques[0].spec.podSpec.hostname: ",
				"spec.template.cliques[0].spec.podSpec.subdomain: ",
			},
		},

		"dots in the name":          {change: func(s *v1alpha1.PodCliqueSet) { s.Name = "a.b" }, want: []string{"Invalid value: metadata.name"}},
		"a digit first in the name": {change: func(s *v1alpha1.PodCliqueSet) { s.Name = "1a" }, want: []string{"Invalid value: metadata.name"}},
		"a bad generateName":        {change: func(s *v1alpha1.PodCliqueSet) { s.Name, s.GenerateName = "", "A" }, want: []string{"Invalid value: metadata.generateName"}},
		"negative replicas":         {change: func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = -1 }, want: []string{"Invalid value: spec.replicas"}},
		"unknown words": {change: func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: "X"}
			s.Spec.WorkloadType = "X"
			s.Spec.Template.StartupType = ptr(v1alpha1.CliqueStartupType("X"))
		}, want: []string{"Unsupported value: spec.updateStrategy.type", "Unsupported value: spec.workloadType", "Unsupported value: spec.template.cliqueStartupType"}},
		"rollingRecreate with OnDelete": {change: both(rolling(v1alpha1.RollingRecreateUpdateStrategy{}), func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategyType
		}), want: []string{"Forbidden: spec.updateStrategy.rollingRecreate"}},
		"a negative partition": {change: rolling(v1alpha1.RollingRecreateUpdateStrategy{Partition: ptr(int32(-1))}), want: []string{"Invalid value: spec.updateStrategy.rollingRecreate.partition"}},
		"negative minReadySeconds": {change: minReady(-1, -1), want: []string{
			"Invalid value: spec.template.cliques[0].spec.minReadySeconds", "Invalid value: spec.template.podCliqueScalingGroups[0].minReadySeconds"}},
		"no clique":                {change: cliques(), want: []string{"Required value: spec.template.cliques"}},
		"an empty clique":          {change: cliques(nil, clique("a", 1)), want: []string{"Required value: spec.template.cliques[0]"}},
		"two cliques of one name":  {change: cliques(clique("a", 1), clique("a", 1)), want: []string{"Duplicate value: spec.template.cliques[1].name"}},
		"no name":                  {change: cliques(clique("", 1)), want: []string{"Required value: spec.template.cliques[0].name"}},
		"names that are no labels": {change: cliques(clique("a.b", 1), clique("A", 1)), want: []string{"Invalid value: spec.template.cliques[0].name", "Invalid value: spec.template.cliques[1].name"}},
		"two cliques of one role":  {change: cliques(clique("a", 1), withRole(clique("b", 1), "a")), want: []string{"Duplicate value: spec.template.cliques[1].spec.roleName"}},
		"explicit replicas 0":      {change: cliques(clique("a", 0)), want: []string{"Invalid value: spec.template.cliques[0].spec.replicas"}},
		"negative clique replicas": {change: cliques(clique("a", -1)), want: []string{"Invalid value: spec.template.cliques[0].spec.replicas"}},
		"minAvailable 0":           {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.MinAvailable = ptr(int32(0)) }), want: []string{"Invalid value: spec.template.cliques[0].spec.minAvailable"}},
		"minAvailable above":       {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.MinAvailable = ptr(int32(4)) }), want: []string{"Invalid value: spec.template.cliques[0].spec.minAvailable"}},
		"group minAvailable 0":     {change: firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) { g.MinAvailable = ptr(int32(0)) }), want: []string{"Invalid value: spec.template.podCliqueScalingGroups[0].minAvailable"}},
		"group minAvailable above": {change: firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) { g.MinAvailable = ptr(int32(3)) }), want: []string{"Invalid value: spec.template.podCliqueScalingGroups[0].minAvailable"}},
		"group replicas 0":         {change: firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) { g.Replicas = ptr(int32(0)) }), want: []string{"Invalid value: spec.template.podCliqueScalingGroups[0].replicas"}},
		"labels that are none": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Labels, c.Annotations = map[string]string{"-": "x"}, map[string]string{"-": "x"}
		}), want: []string{"Invalid value: spec.template.cliques[0].labels", "Invalid value: spec.template.cliques[0].annotations"}},
		"no containers": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.PodSpec.Containers = nil }), want: []string{"Required value: spec.template.cliques[0].spec.podSpec.containers"}},
		"a node chosen": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.PodSpec.NodeName = "n" }), want: []string{"Forbidden: spec.template.cliques[0].spec.podSpec.nodeName"}},
		"the waiting container": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Spec.PodSpec.InitContainers = []corev1.Container{{Name: "grove-initc"}}
		}), want: []string{"Forbidden: spec.template.cliques[0].spec.podSpec.initContainers[0].name"}},
		"an unknown restartPolicy": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.PodSpec.RestartPolicy = "X" }), want: []string{"Unsupported value: spec.template.cliques[0].spec.podSpec.restartPolicy"}, wantWarnings: []string{"spec.template.cliques[0].spec.podSpec.restartPolicy: "}},
		"variables twice and bad": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Spec.PodSpec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}, {Name: "A"}, {Name: "="}}
		}), want: []string{"Duplicate value: spec.template.cliques[0].spec.podSpec.containers[0].env[1].name", "Invalid value: spec.template.cliques[0].spec.podSpec.containers[0].env[2].name"}},
		"two schedulers": {change: cliques(clique("a", 1), withScheduler(clique("b", 1), "other")), want: []string{"Invalid value: spec.template.cliques[1].spec.podSpec.schedulerName"}},
		"topology constraints of a stored set, also without a name": {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) {
			s.TopologyConstraint = &v1alpha1.TopologyConstraint{Pack: &v1alpha1.TopologyPackConstraint{Required: "rack"}}
			s.Cliques[1].TopologyConstraint = &v1alpha1.TopologyConstraint{PackDomain: "rack"}
			s.PodCliqueScalingGroupConfigs[0].TopologyConstraint = &v1alpha1.TopologyConstraint{}
		})},
		"claims without names": {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) {
			s.ResourceClaimTemplates = []v1alpha1.ResourceClaimTemplateConfig{{}, {Name: "a"}, {Name: "a"}}
			s.Cliques[0].ResourceSharing = []v1alpha1.ResourceSharing{{Name: "a", Scope: "X"}}
		}), want: []string{"Required value: spec.template.resourceClaimTemplates[0].name", "Duplicate value: spec.template.resourceClaimTemplates[2].name", "Unsupported value: spec.template.cliques[0].resourceSharing[0].scope"}, wantWarnings: []string{"spec.template.resourceClaimTemplates (and 1 more): "}},

		"a group without cliques":     {change: groups(group("g", 1)), want: []string{"Required value: spec.template.podCliqueScalingGroups[0].cliqueNames"}},
		"an unknown clique in it":     {change: groups(group("g", 1, "worker", "unknown")), want: []string{"Not found: spec.template.podCliqueScalingGroups[0].cliqueNames[1]"}},
		"a clique in two groups":      {change: groups(group("g", 1, "worker"), group("h", 1, "worker")), want: []string{"Duplicate value: spec.template.podCliqueScalingGroups[1].cliqueNames[0]"}},
		"a clique in one group twice": {change: groups(group("g", 1, "worker", "worker")), want: []string{"Duplicate value: spec.template.podCliqueScalingGroups[0].cliqueNames[1]"}},
		"two groups of one name":      {change: groups(group("g", 1, "worker"), group("g", 1, "leader")), want: []string{"Duplicate value: spec.template.podCliqueScalingGroups[1].name"}},

		"a clique and a group of one name":     {change: groups(group("worker", 1, "worker")), want: []string{"Invalid value: spec.template.cliques[2].name"}},
		"a clique like a group's replica":      {change: both(cliques(clique("g-0", 1), clique("w", 1)), groups(group("g", 1, "w"))), want: []string{"Invalid value: spec.template.podCliqueScalingGroups[0].name"}},
		"a clique like a later replica":        {change: both(cliques(clique("g-17", 1), clique("w", 1)), groups(group("g", 1, "w"))), want: []string{"Invalid value: spec.template.podCliqueScalingGroups[0].name"}},
		"a clique like no possible replica":    {change: both(cliques(clique("g-2024", 1), clique("g-00", 1), clique("g-x", 1), clique("w", 1)), groups(group("g", 1, "w")))},
		"a clique like a replica's clique":     {change: both(cliques(clique("g-3-w", 1), clique("w", 1)), groups(group("g", 1, "w"))), want: []string{"Invalid value: spec.template.podCliqueScalingGroups[0].name"}},
		"a group like a replica":               {change: both(cliques(clique("v", 1), clique("w", 1)), groups(group("g", 1, "w"), group("g-1", 1, "v"))), want: []string{"Invalid value: spec.template.podCliqueScalingGroups[1].name"}},
		"cliques of two groups":                {change: both(cliques(clique("0-w", 1), clique("w", 1)), groups(group("g", 1, "0-w"), group("g-5", 1, "w"))), want: []string{"Invalid value: spec.template.podCliqueScalingGroups[1].name"}},
		"a member clique like a replica of it": {change: both(cliques(clique("g-0", 1)), groups(group("g", 1, "g-0")))},

		"names that just fit":              {change: cliques(clique(fits+strings.Repeat("x", 42-len(fits)), 1))},
		"names that just do not fit":       {change: cliques(clique(fits+strings.Repeat("x", 43-len(fits)), 1)), want: []string{"Invalid value: spec.template.cliques[0].name"}},
		"names of a group that do not fit": {change: both(cliques(clique(strings.Repeat("c", 30), 1)), groups(group(strings.Repeat("g", 13), 1, strings.Repeat("c", 30)))), want: []string{"Invalid value: spec.template.cliques[0].name"}},
		"pods that no cluster runs":        {change: both(cliques(clique("a", 301)), func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 500 }), want: []string{"Invalid value: spec.replicas"}},
		"as many pods as a cluster runs":   {change: both(cliques(clique("a", 300)), func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 500 })},
		"the largest tree":                 {change: both(cliques(clique("w", 1)), groups(group("g", 511, "w")))},
		"a tree too large":                 {change: both(cliques(clique("a", 1), clique("b", 1), clique("w", 1)), groups(group("g", 511, "w"))), want: []string{"Invalid value: spec.template.podCliqueScalingGroups"}},
		"a tree that may become too large": {change: firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) {
			g.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 400}
		}), want: []string{"Invalid value: spec.template.podCliqueScalingGroups"}},
		"a tree too large for any number": {change: groups(group("g", 1<<31-1, "worker")), want: []string{"Invalid value: spec.template.podCliqueScalingGroups", "Invalid value: spec.replicas"}},

		"starts after itself, an unknown clique, a clique twice": {change: explicit(map[string][]string{"worker": {"worker", "unknown", "leader", "leader", ""}}), want: []string{"Invalid value: spec.template.cliques[2].spec.startsAfter[0]", "Not found: spec.template.cliques[2].spec.startsAfter[1]", "Duplicate value: spec.template.cliques[2].spec.startsAfter[3]", "Required value: spec.template.cliques[2].spec.startsAfter[4]"}},
		"a cycle of two":             {change: explicit(map[string][]string{"worker": {"leader"}, "leader": {"worker"}}), want: []string{"Invalid value: spec.template.cliques[1].spec.startsAfter"}},
		"a cycle of all":             {change: explicit(map[string][]string{"frontend": {"worker"}, "worker": {"leader"}, "leader": {"frontend"}}), want: []string{"Invalid value: spec.template.cliques[0].spec.startsAfter"}},
		"a cycle that has no effect": {change: both(explicit(map[string][]string{"worker": {"leader"}, "leader": {"worker"}}), template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.StartupType = nil })), wantWarnings: []string{"spec.template.cliques[1].spec.startsAfter (and 1 more): "}},

		"autoscaler below the minimum": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Spec.MinAvailable = ptr(int32(2))
			c.Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: ptr(int32(1)), MaxReplicas: 3}
		}), want: []string{"Invalid value: spec.template.cliques[0].spec.autoScalingConfig.minReplicas"}},
		"autoscaler to 0": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: ptr(int32(0)), MaxReplicas: 3}
		}), want: []string{"Invalid value: spec.template.cliques[0].spec.autoScalingConfig.minReplicas"}},
		"autoscaler upside down": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: ptr(int32(5)), MaxReplicas: 4}
		}), want: []string{"Invalid value: spec.template.cliques[0].spec.autoScalingConfig.maxReplicas"}},
		"autoscaler below replicas": {change: firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: ptr(int32(1)), MaxReplicas: 2}
		}), want: []string{"Invalid value: spec.template.cliques[0].spec.autoScalingConfig.maxReplicas"}},
		"autoscaler for a member": {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) {
			s.Cliques[1].Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 3}
		}), want: []string{"Forbidden: spec.template.cliques[1].spec.autoScalingConfig"}},
		"autoscaler of a group below its minimum": {change: firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) {
			g.MinAvailable = ptr(int32(2))
			g.ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: ptr(int32(1)), MaxReplicas: 3}
		}), want: []string{"Invalid value: spec.template.podCliqueScalingGroups[0].scaleConfig.minReplicas"}},

		"terminationDelay 0":          {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.TerminationDelay = delay(0) }), want: []string{"Invalid value: spec.template.terminationDelay"}},
		"a negative terminationDelay": {change: both(training, template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.TerminationDelay = delay(-1) })), want: []string{"Invalid value: spec.template.terminationDelay"}},
		"a negative unreachableGrace": {change: template(func(s *v1alpha1.PodCliqueSetTemplateSpec) { s.UnreachableGrace = delay(-1) }), want: []string{"Invalid value: spec.template.unreachableGrace"}},
		"a delay of a group alone":    {change: firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) { g.TerminationDelay = delay(time.Hour) }), want: []string{"Forbidden: spec.template.podCliqueScalingGroups[0].terminationDelay"}},
		"trainingSpec without Training": {change: func(s *v1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &v1alpha1.TrainingSpec{MaxRestarts: ptr(int32(-1)), MaxRuntime: delay(0)}
		}, want: []string{"Forbidden: spec.trainingSpec", "Invalid value: spec.trainingSpec.maxRestarts", "Invalid value: spec.trainingSpec.maxRuntime"}},
		"a time to live below 0": {change: both(training, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.TrainingSpec = &v1alpha1.TrainingSpec{TTLSecondsAfterFinished: ptr(int32(-1))}
		}), want: []string{"Invalid value: spec.trainingSpec.ttlSecondsAfterFinished"}},
		"suspended":                {change: both(training, func(s *v1alpha1.PodCliqueSet) { s.Spec.Suspend = ptr(true) }), want: []string{"Forbidden: spec.suspend"}},
		"not suspended":            {change: func(s *v1alpha1.PodCliqueSet) { s.Spec.Suspend = ptr(false) }},
		"Training that never ends": {change: both(training, firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) { c.Spec.PodSpec.RestartPolicy = corev1.RestartPolicyAlways })), want: []string{"Invalid value: spec.template.cliques[0].spec.podSpec.restartPolicy"}},
		"Training with autoscalers": {change: both(training, firstClique(func(c *v1alpha1.PodCliqueTemplateSpec) {
			c.Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 3}
		}), firstGroup(func(g *v1alpha1.PodCliqueScalingGroupConfig) {
			g.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 3}
		})), want: []string{"Forbidden: spec.template.cliques[0].spec.autoScalingConfig", "Forbidden: spec.template.podCliqueScalingGroups[0].scaleConfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pcs := podCliqueSet()
			if tc.change != nil {
				tc.change(pcs)
			}
			before := pcs.DeepCopy()
			errs, warnings := validation.ValidatePodCliqueSet(pcs)
			compare(t, errs, warnings, tc.want, tc.wantWarnings)
			if diff := cmp.Diff(before, pcs); diff != "" {
				t.Errorf("the object was changed: %s", diff)
			}
		})
	}
}

// rolling sets the update strategy RollingRecreate with these settings.
func rolling(settings v1alpha1.RollingRecreateUpdateStrategy) func(*v1alpha1.PodCliqueSet) {
	return func(s *v1alpha1.PodCliqueSet) {
		s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType, RollingRecreate: &settings}
	}
}

func withScheduler(c *v1alpha1.PodCliqueTemplateSpec, name string) *v1alpha1.PodCliqueTemplateSpec {
	c.Spec.PodSpec.SchedulerName = name
	return c
}

func withRole(c *v1alpha1.PodCliqueTemplateSpec, name string) *v1alpha1.PodCliqueTemplateSpec {
	c.Spec.RoleName = name
	return c
}

func compare(t *testing.T, errs field.ErrorList, warnings, want, wantWarnings []string) {
	t.Helper()
	var got, gotWarnings []string
	for _, e := range errs {
		got = append(got, fmt.Sprintf("%s: %s", e.Type, e.Field))
	}
	for i, w := range warnings {
		if i < len(wantWarnings) && strings.HasPrefix(w, wantWarnings[i]) {
			w = wantWarnings[i]
		}
		gotWarnings = append(gotWarnings, w)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got)\n%s\n%v", diff, errs.ToAggregate())
	}
	if diff := cmp.Diff(wantWarnings, gotWarnings); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
}

// TestAcceptedNamesNeverClash: with names that are accepted, no two children of a replica get the same name, and no
// hostname is too long.
func TestAcceptedNamesNeverClash(t *testing.T) {
	t.Parallel()
	words := []string{"a", "b", "0", "1", "a-0", "0-a", "a-b", "a-1-b", "1-b", "a-0-0", "b-0-a"}
	r := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 3000 * rounds.Number() {
		pcs := podCliqueSet()
		template := &pcs.Spec.Template
		template.Cliques, template.PodCliqueScalingGroupConfigs = nil, nil
		order := r.Perm(len(words))
		for _, i := range order[:2+r.IntN(3)] {
			template.Cliques = append(template.Cliques, clique(words[i], 2))
		}
		for k, c := range template.Cliques {
			if r.IntN(2) == 0 {
				template.PodCliqueScalingGroupConfigs = append(template.PodCliqueScalingGroupConfigs, group(words[order[len(order)-1-k]], 2, c.Name))
			}
		}
		if errs, _ := validation.ValidatePodCliqueSet(pcs); len(errs) > 0 {
			continue
		}
		accepted++
		seen := map[string]string{}
		add := func(name, what string) {
			if other, taken := seen[name]; taken {
				t.Fatalf("%s and %s are both called %s", what, other, name)
			}
			seen[name] = what
		}
		grouped := map[string]bool{}
		for _, g := range template.PodCliqueScalingGroupConfigs {
			add(naming.ScalingGroup(pcs.Name, 0, g.Name), "group "+g.Name)
			for j := range 3 {
				add(naming.GroupReplica(pcs.Name, 0, g.Name, j), fmt.Sprintf("replica %d of group %s", j, g.Name))
				for _, c := range g.CliqueNames {
					grouped[c] = true
					add(naming.MemberPodClique(pcs.Name, 0, g.Name, j, c), fmt.Sprintf("clique %s of replica %d of group %s", c, j, g.Name))
				}
			}
		}
		for _, c := range template.Cliques {
			if !grouped[c.Name] {
				add(naming.PodCliqueName(pcs.Name, 0, c.Name), "clique "+c.Name)
			}
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d of the names were accepted", accepted)
	}
}

func TestEveryCycleIsRefusedAndNoOther(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		n := 2 + r.IntN(6)
		pcs := podCliqueSet()
		pcs.Spec.Template.PodCliqueScalingGroupConfigs = nil
		pcs.Spec.Template.Cliques = nil
		pcs.Spec.Template.StartupType = ptr(v1alpha1.CliqueStartupTypeExplicit)
		after := make([][]bool, n)
		for i := range n {
			c := clique(fmt.Sprintf("c%d", i), 1)
			after[i] = make([]bool, n)
			for k := range n {
				if k != i && r.IntN(n) == 0 {
					after[i][k] = true
					c.Spec.StartsAfter = append(c.Spec.StartsAfter, fmt.Sprintf("c%d", k))
				}
			}
			pcs.Spec.Template.Cliques = append(pcs.Spec.Template.Cliques, c)
		}
		// Start what can start until nothing more can.
		started := make([]bool, n)
		for range n {
			for i := range n {
				ready := true
				for k := range n {
					ready = ready && (!after[i][k] || started[k])
				}
				started[i] = started[i] || ready
			}
		}
		all := true
		for _, s := range started {
			all = all && s
		}
		if errs, _ := validation.ValidatePodCliqueSet(pcs); (len(errs) == 0) != all {
			t.Fatalf("all can start: %t; errors: %v", all, errs)
		}
	}
}

// TestTheLongestListsAreJudgedInTime: the worst input that the CRD accepts, a mistake in the longest lists, is
// validated long before the API server's timeout for the webhook, with few errors.
func TestTheLongestListsAreJudgedInTime(t *testing.T) {
	const patience = 4 * time.Second // the API server has 5
	pcs := podCliqueSet()
	template := &pcs.Spec.Template
	template.Cliques, template.PodCliqueScalingGroupConfigs = nil, nil
	var names []string
	for i := range 256 {
		names = append(names, fmt.Sprint(256+i))
		template.Cliques = append(template.Cliques, clique(names[i], 1))
	}
	for i := range 256 {
		template.PodCliqueScalingGroupConfigs = append(template.PodCliqueScalingGroupConfigs, group(fmt.Sprint(i), 1, names...))
	}
	began := time.Now()
	errs, _ := validation.ValidatePodCliqueSet(pcs)
	if took := time.Since(began); took > patience {
		t.Errorf("took %s", took)
	}
	if len(errs) != 33 || errs[32].Type != field.ErrorTypeTooMany {
		t.Errorf("%d errors, the last: %v", len(errs), errs[len(errs)-1])
	}

	template.PodCliqueScalingGroupConfigs = nil
	template.StartupType = ptr(v1alpha1.CliqueStartupTypeExplicit)
	for i, c := range template.Cliques { // each after all others
		c.Spec.StartsAfter = slices.Concat(names[:i], names[i+1:])
	}
	began = time.Now()
	errs, _ = validation.ValidatePodCliqueSet(pcs)
	if took := time.Since(began); took > patience {
		t.Errorf("cycles took %s", took)
	}
	if text := errs.ToAggregate().Error(); len(errs) != 8 || len(text) > 20_000 {
		t.Errorf("%d errors in %d characters: %.1000s", len(errs), len(text), text)
	}
	for i, c := range template.Cliques { // each after the next
		c.Spec.StartsAfter = []string{names[(i+1)%len(names)]}
	}
	errs, _ = validation.ValidatePodCliqueSet(pcs)
	if text := errs.ToAggregate().Error(); len(errs) != 1 || !strings.HasSuffix(text, "262 -> 263 -> (248 more) -> 256") {
		t.Errorf("%d errors: %s", len(errs), text)
	}
}

// TestAnUnknownUpdateStrategy: the error lists the supported values.
func TestAnUnknownUpdateStrategy(t *testing.T) {
	for _, unknown := range []v1alpha1.UpdateStrategyType{"RollingUpdate", "Recreate", "onDelete", "ondelete ", "None"} {
		pcs := podCliqueSet()
		pcs.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: unknown}
		want := fmt.Sprintf(`spec.updateStrategy.type: Unsupported value: %q: supported values: "RollingRecreate", "OnDelete"`, unknown)
		errs, _ := validation.ValidatePodCliqueSet(pcs)
		if len(errs) != 1 || errs[0].Error() != want {
			t.Errorf("created: %v, want %s", errs.ToAggregate(), want)
		}
		errs, _ = validation.ValidatePodCliqueSetUpdate(pcs, podCliqueSet())
		if len(errs) != 1 || errs[0].Error() != want {
			t.Errorf("updated: %v, want %s", errs.ToAggregate(), want)
		}
	}
}

// FuzzValidate: any JSON that decodes is validated without a panic, and a valid object stays valid when nothing
// changes.
func FuzzValidate(f *testing.F) {
	for _, seed := range []string{`{}`, `{"spec":{"template":{"cliques":[null]}}}`,
		`{"metadata":{"name":"a"},"spec":{"replicas":1,"template":{"cliques":[{"name":"w","spec":{"replicas":1,"podSpec":{"containers":[{"name":"c"}]}}}],"podCliqueScalingGroups":[{"name":"g","cliqueNames":["w"]}]}}}`,
		`{"spec":{"template":{"cliqueStartupType":"CliqueStartupTypeExplicit","cliques":[{"name":"a","spec":{"startsAfter":["b"]}},{"name":"b","spec":{"startsAfter":["a",""]}},null]}}}`,
	} {
		f.Add([]byte(seed), []byte(`{}`))
	}
	f.Fuzz(func(t *testing.T, now, before []byte) {
		pcs, old := &v1alpha1.PodCliqueSet{}, &v1alpha1.PodCliqueSet{}
		if json.Unmarshal(now, pcs) != nil || json.Unmarshal(before, old) != nil {
			return
		}
		errs, _ := validation.ValidatePodCliqueSet(pcs)
		for _, e := range errs {
			if e.Field == "" {
				t.Errorf("an error without a field: %v", e)
			}
		}
		validation.ValidatePodCliqueSetUpdate(pcs, old)
		validation.ValidatePodCliqueSetScale(pcs, old.Spec.Replicas)
		if errs, _ := validation.ValidatePodCliqueSetUpdate(pcs, pcs); len(errs) > 0 {
			t.Errorf("no change is refused: %v", errs)
		}
	})
}
