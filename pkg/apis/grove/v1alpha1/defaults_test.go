// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaulted is what an empty PodCliqueSet with one clique becomes.
func defaulted() *PodCliqueSet {
	return &PodCliqueSet{Spec: PodCliqueSetSpec{Template: PodCliqueSetTemplateSpec{
		StartupType:           pointer(CliqueStartupTypeAnyOrder),
		HeadlessServiceConfig: &HeadlessServiceConfig{PublishNotReadyAddresses: pointer(true)},
		Cliques: []*PodCliqueTemplateSpec{{Name: "worker", Spec: PodCliqueSpec{
			RoleName: "worker",
			Replicas: 2,
			PodSpec: corev1.PodSpec{
				SchedulerName:                 "muster-scheduler",
				RestartPolicy:                 corev1.RestartPolicyAlways,
				TerminationGracePeriodSeconds: pointer(int64(30)),
			},
		}}},
	}}}
}

func TestSetDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		scheduler string
		given     func(*PodCliqueSet)
		want      func(*PodCliqueSet)
	}{
		"of almost nothing; minAvailable and terminationDelay stay unset": {},
		"with another scheduler configured": {
			scheduler: "other",
			want:      func(s *PodCliqueSet) { s.Spec.Template.Cliques[0].Spec.PodSpec.SchedulerName = "other" },
		},
		"replicas 0 of a clique is an error and stays": {
			given: func(s *PodCliqueSet) { s.Spec.Template.Cliques[0].Spec.Replicas = 0 },
			want:  func(s *PodCliqueSet) { s.Spec.Template.Cliques[0].Spec.Replicas = 0 },
		},
		"Training is terminated immediately and pods are not restarted in place": {
			given: func(s *PodCliqueSet) { s.Spec.WorkloadType = WorkloadTypeTraining },
			want: func(s *PodCliqueSet) {
				s.Spec.WorkloadType = WorkloadTypeTraining
				s.Spec.Template.TerminationDelay = &metav1.Duration{}
				s.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy = corev1.RestartPolicyNever
			},
		},
		"a terminationDelay of Training stays": {
			given: func(s *PodCliqueSet) {
				s.Spec.WorkloadType = WorkloadTypeTraining
				s.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Hour}
			},
			want: func(s *PodCliqueSet) {
				s.Spec.WorkloadType = WorkloadTypeTraining
				s.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Hour}
				s.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy = corev1.RestartPolicyNever
			},
		},
		"an update strategy without a type": {
			given: func(s *PodCliqueSet) { s.Spec.UpdateStrategy = &PodCliqueSetUpdateStrategy{} },
			want: func(s *PodCliqueSet) {
				s.Spec.UpdateStrategy = &PodCliqueSetUpdateStrategy{Type: RollingRecreateStrategyType}
			},
		},
		"autoscalers scale in to the template's replicas": {
			given: func(s *PodCliqueSet) {
				s.Spec.Template.Cliques[0].Spec.ScaleConfig = &AutoScalingConfig{MaxReplicas: 4}
				s.Spec.Template.PodCliqueScalingGroupConfigs = []PodCliqueScalingGroupConfig{
					{Name: "a", ScaleConfig: &AutoScalingConfig{MaxReplicas: 4}},
					{Name: "b", Replicas: pointer(int32(3)), ScaleConfig: &AutoScalingConfig{MaxReplicas: 4}},
					{Name: "c", Replicas: pointer(int32(3)), ScaleConfig: &AutoScalingConfig{MinReplicas: pointer(int32(2)), MaxReplicas: 4}},
				}
			},
			want: func(s *PodCliqueSet) {
				s.Spec.Template.Cliques[0].Spec.ScaleConfig = &AutoScalingConfig{MinReplicas: pointer(int32(2)), MaxReplicas: 4}
				s.Spec.Template.PodCliqueScalingGroupConfigs = []PodCliqueScalingGroupConfig{
					{Name: "a", Replicas: pointer(int32(1)), ScaleConfig: &AutoScalingConfig{MinReplicas: pointer(int32(1)), MaxReplicas: 4}},
					{Name: "b", Replicas: pointer(int32(3)), ScaleConfig: &AutoScalingConfig{MinReplicas: pointer(int32(3)), MaxReplicas: 4}},
					{Name: "c", Replicas: pointer(int32(3)), ScaleConfig: &AutoScalingConfig{MinReplicas: pointer(int32(2)), MaxReplicas: 4}},
				}
			},
		},
		"values that are set stay": {
			given: func(s *PodCliqueSet) {
				spec := &s.Spec.Template
				spec.StartupType = pointer(CliqueStartupTypeInOrder)
				spec.HeadlessServiceConfig = &HeadlessServiceConfig{PublishNotReadyAddresses: pointer(false)}
				clique := &spec.Cliques[0].Spec
				clique.RoleName, clique.PodSpec.SchedulerName = "role", "kai-scheduler"
				clique.PodSpec.RestartPolicy = corev1.RestartPolicyOnFailure
				clique.PodSpec.TerminationGracePeriodSeconds = pointer(int64(0))
				clique.MinAvailable = pointer(int32(1))
			},
			want: func(s *PodCliqueSet) {
				spec := &s.Spec.Template
				spec.StartupType = pointer(CliqueStartupTypeInOrder)
				spec.HeadlessServiceConfig = &HeadlessServiceConfig{PublishNotReadyAddresses: pointer(false)}
				clique := &spec.Cliques[0].Spec
				clique.RoleName, clique.PodSpec.SchedulerName = "role", "kai-scheduler"
				clique.PodSpec.RestartPolicy = corev1.RestartPolicyOnFailure
				clique.PodSpec.TerminationGracePeriodSeconds = pointer(int64(0))
				clique.MinAvailable = pointer(int32(1))
			},
		},
		"an empty clique in the list is left to validation": {
			given: func(s *PodCliqueSet) { s.Spec.Template.Cliques = append(s.Spec.Template.Cliques, nil) },
			want:  func(s *PodCliqueSet) { s.Spec.Template.Cliques = append(s.Spec.Template.Cliques, nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := &PodCliqueSet{Spec: PodCliqueSetSpec{Template: PodCliqueSetTemplateSpec{
				Cliques: []*PodCliqueTemplateSpec{{Name: "worker", Spec: PodCliqueSpec{Replicas: 2}}},
			}}}
			want := defaulted()
			if tc.given != nil {
				tc.given(got)
			}
			if tc.want != nil {
				tc.want(want)
			}
			SetDefaults(got, tc.scheduler)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			SetDefaults(got, tc.scheduler)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("a second time (-want +got)\n%s", diff)
			}
		})
	}
}

func TestSetPodCliqueDefaultsLeavesACliqueOfADefaultedTemplateAlone(t *testing.T) {
	for _, workload := range []WorkloadType{WorkloadTypeInference, WorkloadTypeTraining} {
		pcs := defaulted()
		pcs.Spec.WorkloadType = workload
		SetDefaults(pcs, "other")
		got := &PodClique{Spec: *pcs.Spec.Template.Cliques[0].Spec.DeepCopy()}
		SetPodCliqueDefaults(got, "configured since")
		if diff := cmp.Diff(pcs.Spec.Template.Cliques[0].Spec, got.Spec); diff != "" {
			t.Errorf("%s (-want +got)\n%s", workload, diff)
		}
	}
}
