// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
	"github.com/muster-project/muster/test/wrappers"
)

// scalingGroup is svc-0-decode, of replica 0 of the set.
func scalingGroup() *v1alpha1.PodCliqueScalingGroup {
	return wrappers.MakeScalingGroup("svc", 0, "decode", "ns").Replicas(2).Cliques("leader", "worker").Obj()
}

// podClique is svc-0-frontend, standalone; memberPodClique is svc-0-decode-0-worker.
func podClique() *v1alpha1.PodClique {
	return wrappers.MakePodClique("svc", 0, "frontend", "ns").Replicas(3).Obj()
}

func memberPodClique() *v1alpha1.PodClique {
	return wrappers.MakeMemberPodClique("svc", 0, "decode", 0, "worker", "ns").Replicas(3).Obj()
}

func TestValidateNewChildren(t *testing.T) {
	for name, tc := range map[string]struct {
		group  func(*v1alpha1.PodCliqueScalingGroup)
		clique func(*v1alpha1.PodClique)
		want   []string
	}{
		"a scaling group":                    {group: func(*v1alpha1.PodCliqueScalingGroup) {}},
		"a scaling group of 0":               {group: func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 0 }},
		"a scaling group without an owner":   {group: func(g *v1alpha1.PodCliqueScalingGroup) { g.OwnerReferences = nil }, want: []string{"Required value: metadata.ownerReferences"}},
		"a scaling group of another owner":   {group: func(g *v1alpha1.PodCliqueScalingGroup) { g.OwnerReferences[0].APIVersion = "other/v1" }, want: []string{"Required value: metadata.ownerReferences"}},
		"a scaling group of a scaling group": {group: func(g *v1alpha1.PodCliqueScalingGroup) { g.OwnerReferences[0].Kind = "PodCliqueScalingGroup" }, want: []string{"Required value: metadata.ownerReferences"}},
		"a scaling group merely owned":       {group: func(g *v1alpha1.PodCliqueScalingGroup) { g.OwnerReferences[0].Controller = nil }, want: []string{"Required value: metadata.ownerReferences"}},
		"a broken scaling group": {group: func(g *v1alpha1.PodCliqueScalingGroup) {
			g.Spec = v1alpha1.PodCliqueScalingGroupSpec{Replicas: -1, MinAvailable: ptr(int32(0))}
		}, want: []string{"Invalid value: spec.replicas", "Invalid value: spec.minAvailable", "Required value: spec.cliqueNames"}},
		"a clique":                   {clique: func(*v1alpha1.PodClique) {}},
		"a member":                   {clique: func(c *v1alpha1.PodClique) { *c = *memberPodClique() }},
		"a clique of 0":              {clique: func(c *v1alpha1.PodClique) { c.Spec.Replicas = 0 }},
		"a clique without an owner":  {clique: func(c *v1alpha1.PodClique) { c.OwnerReferences = nil }, want: []string{"Required value: metadata.ownerReferences"}},
		"a clique of a pod":          {clique: func(c *v1alpha1.PodClique) { c.OwnerReferences[0].Kind = "Pod" }, want: []string{"Required value: metadata.ownerReferences"}},
		"a clique below its minimum": {clique: func(c *v1alpha1.PodClique) { c.Spec.MinAvailable = ptr(int32(4)) }, want: []string{"Invalid value: spec.replicas"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.group != nil {
				pcsg := scalingGroup()
				tc.group(pcsg)
				compare(t, validation.ValidatePodCliqueScalingGroup(pcsg), nil, tc.want, nil)
				return
			}
			pclq := podClique()
			tc.clique(pclq)
			compare(t, validation.ValidatePodClique(pclq), nil, tc.want, nil)
		})
	}
}

func TestValidatePodCliqueScalingGroupUpdate(t *testing.T) {
	other := scalingGroup()
	other.Name, other.Labels["grove.io/template-name"], other.Spec.Replicas = "svc-0-prefill", "prefill", 300
	large := podCliqueSet()
	large.Spec.Template.Cliques = append(large.Spec.Template.Cliques, clique("p", 1))
	large.Spec.Template.PodCliqueScalingGroupConfigs = append(large.Spec.Template.PodCliqueScalingGroupConfigs, group("prefill", 1, "p"))

	for name, tc := range map[string]struct {
		old      func(*v1alpha1.PodCliqueScalingGroup)
		replicas int32                                 // of an update and of a scale
		change   func(*v1alpha1.PodCliqueScalingGroup) // beside replicas; not for a scale
		owners   validation.OwnerContext
		want     []string
	}{
		"out":                       {replicas: 10, owners: validation.OwnerContext{Set: podCliqueSet()}},
		"to zero, no minimum given": {replicas: 0, owners: validation.OwnerContext{Set: podCliqueSet()}},
		"to the minimum":            {old: func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.MinAvailable = ptr(int32(1)) }, replicas: 1},
		"below the minimum":         {old: func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.MinAvailable = ptr(int32(1)) }, replicas: 0, want: []string{"Invalid value: spec.replicas"}},
		"negative":                  {replicas: -1, want: []string{"Invalid value: spec.replicas"}},
		"an orphan":                 {old: func(g *v1alpha1.PodCliqueScalingGroup) { g.OwnerReferences = nil }, replicas: 3},
		"a terminating one": {old: func(g *v1alpha1.PodCliqueScalingGroup) {
			g.DeletionTimestamp = &metav1.Time{}
			g.Spec.MinAvailable = ptr(int32(2))
		}, replicas: 0},
		"Training":                         {replicas: 3, owners: validation.OwnerContext{Set: trainingSet()}, want: []string{"Forbidden: spec.replicas"}},
		"the largest tree":                 {replicas: 340, owners: validation.OwnerContext{Set: podCliqueSet()}}, // 2 + 340*3
		"a tree too large":                 {replicas: 341, owners: validation.OwnerContext{Set: podCliqueSet()}, want: []string{"Invalid value: spec.replicas"}},
		"a tree too large with the others": {replicas: 200, owners: validation.OwnerContext{Set: large, Groups: []v1alpha1.PodCliqueScalingGroup{*other}}, want: []string{"Invalid value: spec.replicas"}},
		"the others as in the template":    {replicas: 200, owners: validation.OwnerContext{Set: large}},
		"in, though the tree is too large": {old: func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 400 }, replicas: 399, owners: validation.OwnerContext{Set: podCliqueSet()}},
		"what it has, though invalid":      {old: func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.MinAvailable = ptr(int32(9)) }, replicas: 2},
		"the minimum":                      {replicas: 2, change: func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.MinAvailable = ptr(int32(1)) }, want: []string{"Forbidden: spec.minAvailable"}},
		"the cliques":                      {replicas: 2, change: func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.CliqueNames = []string{"worker"} }, want: []string{"Forbidden: spec.cliqueNames"}},
		"when pods are available": {replicas: 2, change: func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.MinReadySeconds = 5 },
			owners: validation.OwnerContext{Set: podCliqueSet()}, want: []string{"Forbidden: spec.minReadySeconds"}},
		"when pods are available, as the template": {replicas: 2, change: func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.MinReadySeconds = 5 },
			owners: validation.OwnerContext{Set: groupReadyFor(5)}},
		"metadata": {replicas: 2, change: func(g *v1alpha1.PodCliqueScalingGroup) { g.OwnerReferences = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			old := scalingGroup()
			if tc.old != nil {
				tc.old(old)
			}
			pcsg := old.DeepCopy()
			pcsg.Spec.Replicas = tc.replicas
			if tc.change != nil {
				tc.change(pcsg)
			} else {
				compare(t, validation.ValidatePodCliqueScalingGroupScale(old, tc.replicas, tc.owners), nil, tc.want, nil)
			}
			compare(t, validation.ValidatePodCliqueScalingGroupUpdate(pcsg, old, tc.owners), nil, tc.want, nil)
		})
	}
}

// groupReadyFor returns the set with these minReadySeconds of its scaling group.
func groupReadyFor(seconds int32) *v1alpha1.PodCliqueSet {
	s := podCliqueSet()
	s.Spec.Template.PodCliqueScalingGroupConfigs[0].MinReadySeconds = seconds
	return s
}

func trainingSet() *v1alpha1.PodCliqueSet {
	s := podCliqueSet()
	training(s)
	return s
}

func TestValidatePodCliqueUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		old       *v1alpha1.PodClique
		replicas  int32
		change    func(*v1alpha1.PodClique)
		owners    validation.OwnerContext
		want      []string // of the update
		wantScale []string // of the scale, if it differs
	}{
		"out":                       {old: podClique(), replicas: 9, owners: validation.OwnerContext{Set: podCliqueSet()}},
		"to zero, no minimum given": {old: podClique(), replicas: 0, owners: validation.OwnerContext{Set: podCliqueSet()}},
		"to the minimum":            {old: withMinimum(podClique(), 2), replicas: 2},
		"below the minimum":         {old: withMinimum(podClique(), 2), replicas: 1, want: []string{"Invalid value: spec.replicas"}},
		"Training":                  {old: podClique(), replicas: 2, owners: validation.OwnerContext{Set: trainingSet()}, want: []string{"Forbidden: spec.replicas"}},
		"out beyond a cluster":      {old: podClique(), replicas: 1<<31 - 1, owners: validation.OwnerContext{Set: podCliqueSet()}, want: []string{"Invalid value: spec.replicas"}},
		"a member":                  {old: memberPodClique(), replicas: 5, owners: validation.OwnerContext{Set: podCliqueSet()}, want: []string{"Forbidden: spec.replicas"}},
		"a member, to the template": {old: memberPodClique(), replicas: 4, owners: validation.OwnerContext{Set: podCliqueSet()}, wantScale: []string{"Forbidden: spec.replicas"}},
		"a member without a set":    {old: memberPodClique(), replicas: 4, wantScale: []string{"Forbidden: spec.replicas"}},
		"a member, what it has":     {old: memberPodClique(), replicas: 3, owners: validation.OwnerContext{Set: podCliqueSet()}},
		"an orphan":                 {old: func() *v1alpha1.PodClique { c := memberPodClique(); c.OwnerReferences = nil; return c }(), replicas: 9},
		"a terminating one":         {old: func() *v1alpha1.PodClique { c := memberPodClique(); c.DeletionTimestamp = &metav1.Time{}; return c }(), replicas: 9, owners: validation.OwnerContext{Set: podCliqueSet()}},
		"the minimum":               {old: podClique(), replicas: 3, change: func(c *v1alpha1.PodClique) { c.Spec.MinAvailable = ptr(int32(1)) }, want: []string{"Forbidden: spec.minAvailable"}},
		"the role":                  {old: podClique(), replicas: 3, change: func(c *v1alpha1.PodClique) { c.Spec.RoleName = "x" }, want: []string{"Forbidden: spec.roleName"}},
		"what starts before":        {old: podClique(), replicas: 3, change: func(c *v1alpha1.PodClique) { c.Spec.StartsAfter = []string{"x"} }, want: []string{"Forbidden: spec.startsAfter"}},
		"the pods":                  {old: podClique(), replicas: 3, change: countTemplatePods("mine"), owners: validation.OwnerContext{Set: podCliqueSet()}, want: []string{"Forbidden: spec.podSpec"}},
		"the pods of a member":      {old: memberPodClique(), replicas: 3, change: countTemplatePods("mine"), owners: validation.OwnerContext{Set: podCliqueSet()}, want: []string{"Forbidden: spec.podSpec"}},
		"the pods, as the template": {old: podClique(), replicas: 3, change: countTemplatePods(wrappers.Image), owners: validation.OwnerContext{Set: podCliqueSet()}},
		"the pods, as the template of another clique": {old: podClique(), replicas: 3, change: countTemplatePods(wrappers.Image), owners: validation.OwnerContext{Set: func() *v1alpha1.PodCliqueSet {
			s := podCliqueSet()
			s.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "another"
			return s
		}()}, want: []string{"Forbidden: spec.podSpec"}},
		"the pods, with the priority class of the set": {old: podClique(), replicas: 3, change: func(c *v1alpha1.PodClique) {
			countTemplatePods(wrappers.Image)(c)
			c.Spec.PodSpec.PriorityClassName = "high"
		}, owners: validation.OwnerContext{Set: func() *v1alpha1.PodCliqueSet {
			s := podCliqueSet()
			s.Spec.Template.PriorityClassName = "high"
			return s
		}()}},
		"the pods of a clique that the template has not": {old: func() *v1alpha1.PodClique { c := podClique(); c.Labels = nil; return c }(), replicas: 3,
			change: countTemplatePods(wrappers.Image), owners: validation.OwnerContext{Set: podCliqueSet()}, want: []string{"Forbidden: spec.podSpec"}},
		"the pods of an orphan": {old: podClique(), replicas: 3, change: countTemplatePods("mine")},
		"the autoscaler": {old: podClique(), replicas: 3, change: func(c *v1alpha1.PodClique) { c.Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 9} },
			owners: validation.OwnerContext{Set: podCliqueSet()}, want: []string{"Forbidden: spec.autoScalingConfig"}},
		"the autoscaler, as the template": {old: podClique(), replicas: 3, change: func(c *v1alpha1.PodClique) {
			c.Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: ptr(int32(3)), MaxReplicas: 9}
		}, owners: validation.OwnerContext{Set: func() *v1alpha1.PodCliqueSet {
			s := podCliqueSet()
			s.Spec.Template.Cliques[0].Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 9}
			return s
		}()}},
		"when pods are available": {old: podClique(), replicas: 3, change: func(c *v1alpha1.PodClique) { c.Spec.MinReadySeconds = 5 },
			owners: validation.OwnerContext{Set: podCliqueSet()}, want: []string{"Forbidden: spec.minReadySeconds"}},
		"when pods of a member are available, as its group": {old: memberPodClique(), replicas: 3, change: func(c *v1alpha1.PodClique) { c.Spec.MinReadySeconds = 5 },
			owners: validation.OwnerContext{Set: groupReadyFor(5)}},
		"pods that differ from the template already": {old: func() *v1alpha1.PodClique { c := podClique(); countTemplatePods("mine")(c); return c }(), replicas: 9,
			owners: validation.OwnerContext{Set: podCliqueSet()}},
		"metadata": {old: withMinimum(podClique(), 9), replicas: 3, change: func(c *v1alpha1.PodClique) { c.OwnerReferences = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			pclq := tc.old.DeepCopy()
			pclq.Spec.Replicas = tc.replicas
			if tc.change != nil {
				tc.change(pclq)
			} else {
				if tc.wantScale == nil {
					tc.wantScale = tc.want
				}
				compare(t, validation.ValidatePodCliqueScale(tc.old, tc.replicas, tc.owners), nil, tc.wantScale, nil)
			}
			compare(t, validation.ValidatePodCliqueUpdate(pclq, tc.old, tc.owners), nil, tc.want, nil)
		})
	}
}

// countTemplatePods changes a PodClique's pods to those of the service's template, with the defaults of admission, but for their image.
func countTemplatePods(image string) func(*v1alpha1.PodClique) {
	return func(c *v1alpha1.PodClique) {
		c.Spec.PodSpec = corev1.PodSpec{SchedulerName: "configured", RestartPolicy: corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: ptr(v1alpha1.DefaultTerminationGracePeriodSeconds),
			Containers:                    []corev1.Container{{Name: "main", Image: image}}}
	}
}

// TestPodsFollowTheTemplate: the pod spec of a PodClique can always be changed to that of the current template, which
// is what muster-controller does in an update. A change to anything else is rejected, also to an earlier template or
// to a part of the new one.
func TestPodsFollowTheTemplate(t *testing.T) {
	set := func(changes ...func(*v1alpha1.PodCliqueSet)) *v1alpha1.PodCliqueSet {
		s := podCliqueSet()
		for _, change := range changes {
			change(s)
		}
		return s
	}
	images := func(image string) func(*v1alpha1.PodCliqueSet) {
		return func(s *v1alpha1.PodCliqueSet) {
			for _, c := range s.Spec.Template.Cliques {
				c.Spec.PodSpec.Containers[0].Image = image
			}
		}
	}
	setClass := func(name string) func(*v1alpha1.PodCliqueSet) {
		return func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.PriorityClassName = name }
	}
	ownClass := func(name string) func(*v1alpha1.PodCliqueSet) {
		return func(s *v1alpha1.PodCliqueSet) {
			for _, c := range s.Spec.Template.Cliques {
				c.Spec.PodSpec.PriorityClassName = name
			}
		}
	}
	given := func(image, class string) func(*v1alpha1.PodClique) {
		return func(c *v1alpha1.PodClique) {
			countTemplatePods(image)(c)
			c.Spec.PodSpec.PriorityClassName = class
		}
	}
	for name, tc := range map[string]struct {
		set    *v1alpha1.PodCliqueSet
		before func(*v1alpha1.PodClique)
		now    func(*v1alpha1.PodClique)
		refuse bool
	}{
		"to the new template":                       {set: set(images("2")), before: given("1", ""), now: given("2", "")},
		"back to the old template":                  {set: set(images("2")), before: given("2", ""), now: given("1", ""), refuse: true},
		"to a template between":                     {set: set(images("3")), before: given("1", ""), now: given("2", ""), refuse: true},
		"past a template between":                   {set: set(images("3")), before: given("1", ""), now: given("3", "")},
		"back, after the template went back":        {set: set(images("1")), before: given("2", ""), now: given("1", "")},
		"ahead, after the template went back":       {set: set(images("1")), before: given("1", ""), now: given("2", ""), refuse: true},
		"to a template that is not there yet":       {set: set(images("1")), before: given("1", ""), now: given("2", ""), refuse: true},
		"to the set's new priority class":           {set: set(images("1"), setClass("high")), before: given("1", "low"), now: given("1", "high")},
		"to the set's first priority class":         {set: set(images("1"), setClass("high")), before: given("1", ""), now: given("1", "high")},
		"back to the set's old priority class":      {set: set(images("1"), setClass("high")), before: given("1", "high"), now: given("1", "low"), refuse: true},
		"to no priority class, while the set's is":  {set: set(images("1"), setClass("high")), before: given("1", "high"), now: given("1", ""), refuse: true},
		"to no priority class":                      {set: set(images("1")), before: given("1", "high"), now: given("1", "")},
		"to its own priority class, the set's gone": {set: set(images("1"), ownClass("low")), before: given("1", "high"), now: given("1", "low")},
		"to its own priority class, beside the set's": {set: set(images("1"), ownClass("low"), setClass("high")), before: given("1", "high"),
			now: given("1", "low"), refuse: true},
		"to the new image without the new priority class": {set: set(images("2"), setClass("high")), before: given("1", "low"), now: given("2", "low"), refuse: true},
		"to the new priority class without the new image": {set: set(images("2"), setClass("high")), before: given("1", "low"), now: given("1", "high"), refuse: true},
		"to both":                             {set: set(images("2"), setClass("high")), before: given("1", "low"), now: given("2", "high")},
		"to the template, under OnDelete":     {set: set(images("2"), strategy(v1alpha1.OnDeleteStrategyType)), before: given("1", ""), now: given("2", "")},
		"to the old template, under OnDelete": {set: set(images("2"), strategy(v1alpha1.OnDeleteStrategyType)), before: given("2", ""), now: given("1", ""), refuse: true},
	} {
		for kind, old := range map[string]*v1alpha1.PodClique{"standalone": podClique(), "member": memberPodClique()} {
			t.Run(name+", "+kind, func(t *testing.T) {
				if kind == "member" {
					old.Spec.Replicas = 4
				}
				tc.before(old)
				pclq := old.DeepCopy()
				tc.now(pclq)
				var want []string
				if tc.refuse {
					want = []string{"Forbidden: spec.podSpec"}
				}
				compare(t, validation.ValidatePodCliqueUpdate(pclq, old, validation.OwnerContext{Set: tc.set}), nil, want, nil)
			})
		}
	}
}

// TestARefusalNamesTheTemplate: the error for a changed PodClique names the field to change instead.
func TestARefusalNamesTheTemplate(t *testing.T) {
	old := memberPodClique()
	pclq := old.DeepCopy()
	countTemplatePods("mine")(pclq)
	errs := validation.ValidatePodCliqueUpdate(pclq, old, validation.OwnerContext{Set: podCliqueSet()})
	want := `spec.podSpec: Forbidden: is set by the template of the PodCliqueSet: change spec.template.cliques[2].spec.podSpec of PodCliqueSet svc instead`
	if got := errs.ToAggregate().Error(); got != want {
		t.Errorf("refusal %q, want %q", got, want)
	}
}

func withMinimum(pclq *v1alpha1.PodClique, n int32) *v1alpha1.PodClique {
	pclq.Spec.MinAvailable = &n
	return pclq
}
