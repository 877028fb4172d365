// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetDefaults sets fields that a PodCliqueSet leaves unset, if unset means the
// same to every reader. Pods without schedulerName get the given one; "" means
// DefaultSchedulerName. SetDefaults is idempotent.
//
// Three fields are not defaulted, because unset has a meaning: minAvailable (an
// explicit value limits scaling, an unset one does not), the terminationDelay
// of Inference (unset disables gang termination), and replicas 0 of a clique
// (the CRD's default has set an omitted value to 1; an explicit 0 is an error).
func SetDefaults(pcs *PodCliqueSet, schedulerName string) {
	template := &pcs.Spec.Template
	training := pcs.Spec.IsTraining()
	if pcs.Spec.UpdateStrategy != nil && pcs.Spec.UpdateStrategy.Type == "" {
		pcs.Spec.UpdateStrategy.Type = RollingRecreateStrategyType
	}
	if template.StartupType == nil {
		template.StartupType = pointer(CliqueStartupTypeAnyOrder)
	}
	if template.HeadlessServiceConfig == nil {
		template.HeadlessServiceConfig = &HeadlessServiceConfig{}
	}
	if template.HeadlessServiceConfig.PublishNotReadyAddresses == nil {
		template.HeadlessServiceConfig.PublishNotReadyAddresses = pointer(true)
	}
	if template.TerminationDelay == nil && training {
		template.TerminationDelay = &metav1.Duration{}
	}
	for _, clique := range template.Cliques {
		if clique == nil { // "- null" in a list: rejected by validation
			continue
		}
		if clique.Spec.RoleName == "" {
			clique.Spec.RoleName = clique.Name
		}
		setPodCliqueSpecDefaults(&clique.Spec, schedulerName, training)
	}
	for i := range template.PodCliqueScalingGroupConfigs {
		group := &template.PodCliqueScalingGroupConfigs[i]
		if group.Replicas == nil {
			group.Replicas = pointer(int32(1))
		}
		setAutoScalingDefaults(group.ScaleConfig, *group.Replicas)
	}
}

// SetPodCliqueDefaults sets fields that a PodClique leaves unset, as
// SetDefaults does for a clique in a template of Inference. It does not change
// PodCliques that muster-controller creates, because their template has been
// defaulted.
func SetPodCliqueDefaults(pclq *PodClique, schedulerName string) {
	setPodCliqueSpecDefaults(&pclq.Spec, schedulerName, false)
}

func setPodCliqueSpecDefaults(spec *PodCliqueSpec, schedulerName string, training bool) {
	if schedulerName == "" {
		schedulerName = DefaultSchedulerName
	}
	pod := &spec.PodSpec
	if pod.SchedulerName == "" {
		pod.SchedulerName = schedulerName
	}
	if pod.RestartPolicy == "" {
		pod.RestartPolicy = corev1.RestartPolicyAlways
		if training {
			pod.RestartPolicy = corev1.RestartPolicyNever
		}
	}
	if pod.TerminationGracePeriodSeconds == nil {
		pod.TerminationGracePeriodSeconds = pointer(DefaultTerminationGracePeriodSeconds)
	}
	setAutoScalingDefaults(spec.ScaleConfig, spec.Replicas)
}

// setAutoScalingDefaults sets minReplicas to the replicas of the template if it
// is unset. Validation rejects 0 replicas.
func setAutoScalingDefaults(config *AutoScalingConfig, replicas int32) {
	if config != nil && config.MinReplicas == nil && replicas > 0 {
		config.MinReplicas = pointer(replicas)
	}
}

func pointer[T any](v T) *T { return &v }
