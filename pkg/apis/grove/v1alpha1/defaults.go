package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetDefaults fills in what a PodCliqueSet leaves unset and what means the same
// for every reader. Pods without schedulerName get the one given; "" means
// DefaultSchedulerName. Doing it twice changes nothing.
//
// Three things stay as they are, because unset says something: minAvailable (an
// explicit one is a floor, an unset one is not), a terminationDelay of
// Inference (unset is off), and replicas 0 of a clique (the CRD's default has
// made an omitted one 1; an explicit 0 is an error).
func SetDefaults(pcs *PodCliqueSet, schedulerName string) {
	template := &pcs.Spec.Template
	training := pcs.Spec.WorkloadType == WorkloadTypeTraining
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
		if clique == nil { // "- null" in a list: validation's affair
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

// SetPodCliqueDefaults fills in what a PodClique leaves unset, as SetDefaults
// does for a clique of a template of Inference. muster-controller makes
// PodCliques from a template with its defaults, which this leaves alone.
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

// setAutoScalingDefaults: an autoscaler scales in to the replicas of the
// template unless it is told otherwise. 0 replicas are left to validation.
func setAutoScalingDefaults(config *AutoScalingConfig, replicas int32) {
	if config != nil && config.MinReplicas == nil && replicas > 0 {
		config.MinReplicas = pointer(replicas)
	}
}

func pointer[T any](v T) *T { return &v }
