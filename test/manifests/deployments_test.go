// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestPodsWaitForPodGroupsWhereTheyAreMade: muster-scheduler lets pods of LeaderWorkerSets and JobSets wait for
// PodGroups only where muster-controller is installed, too.
func TestPodsWaitForPodGroupsWhereTheyAreMade(t *testing.T) {
	t.Parallel()
	const flag = "--workload-gangs"
	patches := readKustomization(t, ".").Patches
	if len(patches) != 1 || patches[0].Target.Kind != "Deployment" || patches[0].Target.Name != "muster-scheduler" || !strings.HasSuffix(patches[0].Patch, "value: "+flag) {
		t.Errorf("the base does not give muster-scheduler %s: %v", flag, patches)
	}
	if args := find[*appsv1.Deployment](t, "muster-scheduler").Spec.Template.Spec.Containers[0].Args; slices.Contains(args, flag) {
		t.Errorf("muster-scheduler alone has %v", args)
	}
}

// TestADrainTakesOneReplicaAtATime: a drain leaves one replica of each program, which takes over. The last replica of a
// Deployment that was scaled in, or one that is not ready, does not block a drain.
func TestADrainTakesOneReplicaAtATime(t *testing.T) {
	t.Parallel()
	type disruption struct {
		Replicas, Budgets, Unavailable int
		Unhealthy                      policyv1.UnhealthyPodEvictionPolicyType
	}
	want := map[string]disruption{
		"muster-scheduler":  {Replicas: 2, Budgets: 1, Unavailable: 1, Unhealthy: policyv1.AlwaysAllow},
		"muster-controller": {Replicas: 2, Budgets: 1, Unavailable: 1, Unhealthy: policyv1.AlwaysAllow},
	}
	got := map[string]disruption{}
	base := readBase(t)
	for _, o := range base {
		deployment, ok := o.Object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		d := disruption{Replicas: int(*deployment.Spec.Replicas)}
		for _, o := range base {
			budget, ok := o.Object.(*policyv1.PodDisruptionBudget)
			if !ok || budget.Namespace != deployment.Namespace {
				continue
			}
			selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
			if err != nil {
				t.Fatalf("%s: %v", o, err)
			}
			if !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
				continue
			}
			d.Budgets++
			if n := budget.Spec.MaxUnavailable; n != nil && n.Type == intstr.Int && budget.Spec.MinAvailable == nil {
				d.Unavailable = n.IntValue()
			}
			if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil {
				d.Unhealthy = *policy
			}
		}
		got[deployment.Name] = d
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Deployments (-want +got):\n%s", diff)
	}
}
