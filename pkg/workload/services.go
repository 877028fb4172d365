// SPDX-License-Identifier: Apache-2.0

package workload

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/naming"
)

// Service returns the headless Service of replica i of a set, which provides the DNS names of its pods. Unless the
// template says otherwise, DNS returns pods before they are ready, because members of a gang look for each other in
// order to become ready.
func Service(set *v1alpha1.PodCliqueSet, i int) *corev1.Service {
	name := naming.HeadlessService(set.Name, i)
	publish := true
	if c := set.Spec.Template.HeadlessServiceConfig; c != nil && c.PublishNotReadyAddresses != nil {
		publish = *c.PublishNotReadyAddresses
	}
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: objectMeta(set, v1alpha1.KindPodCliqueSet, name,
			naming.ReplicaLabels(set.Name, i, name, v1alpha1.ComponentHeadlessService), nil),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 naming.OfSetReplica(set.Name, i),
			PublishNotReadyAddresses: publish,
		},
	}
}

// HPAs returns the HorizontalPodAutoscalers of replica i of a set: one per standalone clique and per scaling group
// with a scale config, in the order of the template. They scale the PodClique or PodCliqueScalingGroup of the same
// name. An autoscaler that is no longer in the template must be deleted.
func HPAs(set *v1alpha1.PodCliqueSet, i int) []*autoscalingv2.HorizontalPodAutoscaler {
	template := &set.Spec.Template
	var hpas []*autoscalingv2.HorizontalPodAutoscaler
	add := func(kind, target string, config *v1alpha1.AutoScalingConfig, replicas int32) {
		if config == nil {
			return
		}
		least := max(replicas, 1) // required by the API server
		if config.MinReplicas != nil {
			least = *config.MinReplicas
		}
		name := naming.AutoscalerName(target)
		hpa := &autoscalingv2.HorizontalPodAutoscaler{
			TypeMeta: metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: "HorizontalPodAutoscaler"},
			ObjectMeta: objectMeta(set, v1alpha1.KindPodCliqueSet, name,
				naming.ReplicaLabels(set.Name, i, name, v1alpha1.ComponentHPA), nil),
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
					APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: target,
				},
				MinReplicas: &least,
				MaxReplicas: config.MaxReplicas,
			},
		}
		for k := range config.Metrics {
			hpa.Spec.Metrics = append(hpa.Spec.Metrics, *config.Metrics[k].DeepCopy())
		}
		if len(hpa.Spec.Metrics) == 0 {
			hpa.Spec.Metrics = defaultMetrics()
		}
		hpas = append(hpas, hpa)
	}
	for _, c := range template.StandaloneCliques() {
		add(v1alpha1.KindPodClique, naming.PodCliqueName(set.Name, i, c.Name), c.Spec.ScaleConfig, c.Spec.Replicas)
	}
	for k := range template.PodCliqueScalingGroupConfigs {
		g := &template.PodCliqueScalingGroupConfigs[k]
		add(v1alpha1.KindPodCliqueScalingGroup, naming.ScalingGroup(set.Name, i, g.Name), g.ScaleConfig, groupReplicas(g))
	}
	return hpas
}

// defaultMetrics returns the default of the API server for an autoscaler without metrics: 80 % of the requested CPU.
// It is set here, so that metrics that are removed from a template are also removed from its autoscaler.
func defaultMetrics() []autoscalingv2.MetricSpec {
	percent := int32(80)
	return []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
	}}}
}
