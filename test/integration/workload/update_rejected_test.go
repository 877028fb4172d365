// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// An update whose pods the API server rejects deletes nothing, says why, and goes on with a template that is accepted.
func TestRejectedTemplates(t *testing.T) {
	cpu := func(n string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
	}
	container := func(set *v1alpha1.PodCliqueSet, clique string) *corev1.Container {
		return &set.Spec.Template.Clique(clique).Spec.PodSpec.Containers[0]
	}
	rejected := func(w *world, r *rollout, text string) {
		w.t.Helper()
		w.untilProgressing(sets, "s", "True", v1alpha1.ReasonTemplateRejected)
		r.was(map[string]string{})
		w.toldOnce("s", v1alpha1.EventTemplateRejected)
		w.wantMessage("s", text)
	}
	repaired := func(w *world, r *rollout, repair func(*v1alpha1.PodCliqueSet)) {
		w.t.Helper()
		w.edit("s", repair)
		w.untilUpdated()
		r.was(map[string]string{"s-1-web": "-0 +0 -1 +1 -2 +2", "s-0-web": "-0 +0 -1 +1 -2 +2"})
	}
	tellStories(t, map[string]func(*world){
		"a request above its limit": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 2))
			w.edit("s", func(set *v1alpha1.PodCliqueSet) {
				container(set, "web").Resources = corev1.ResourceRequirements{Requests: cpu("2"), Limits: cpu("1")}
			})
			rejected(w, r, "must be less than or equal to cpu limit")
			repaired(w, r, func(set *v1alpha1.PodCliqueSet) { container(set, "web").Resources.Limits = cpu("2") })
		},
		"a LimitRange": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 2))
			w.must(w.client.Create(w.ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "small"},
				Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: cpu("1")}}}}), "creating a LimitRange")
			w.edit("s", func(set *v1alpha1.PodCliqueSet) {
				container(set, "web").Resources = corev1.ResourceRequirements{Requests: cpu("2"), Limits: cpu("2")}
			})
			rejected(w, r, "maximum cpu usage per Container is 1")
			repaired(w, r, func(set *v1alpha1.PodCliqueSet) {
				container(set, "web").Resources = corev1.ResourceRequirements{Requests: cpu("1"), Limits: cpu("1")}
			})
		},
		"a policy that is lifted": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			lift := w.forbidImage("registry.example/main:2")
			w.image(2, "worker")
			w.untilProgressing(sets, "s", "True", v1alpha1.ReasonTemplateRejected)
			r.was(map[string]string{})
			w.wantMessage("s", "clique worker: ")
			lift()
			w.untilUpdated()
			r.was(map[string]string{"s-0-g": "-0 +0 -1 +1"})
		},
		"a quota that is just full": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.fillQuota()
			w.image(2, "web", "worker")
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 +0 -1 +1 -2 +2", "s-0-g": "-0 +0 -1 +1"})
		},
		"a webhook that does not answer": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			fails := admissionregistrationv1.Fail
			none := admissionregistrationv1.SideEffectClassNoneOnDryRun
			webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
				Webhooks: []admissionregistrationv1.ValidatingWebhook{{
					Name: "nobody.example.com", FailurePolicy: &fails, SideEffects: &none, TimeoutSeconds: ptr.To(int32(1)), AdmissionReviewVersions: []string{"v1"},
					ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
					MatchConditions:   []admissionregistrationv1.MatchCondition{{Name: "dry-run", Expression: "request.dryRun"}},
					Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}}}
			w.must(w.client.Create(w.ctx, webhook), "creating a webhook configuration")
			w.t.Cleanup(func() { _ = w.client.Delete(w.ctx, webhook) })
			w.untilNoPod("the webhook is called", "registry.example/main:2")
			w.image(2, "web")
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-0 +0 -1 +1 -2 +2"})
			w.toldOnce("s", v1alpha1.EventTemplateUnchecked)
		},
	})
}

// wantMessage fails the test unless the message of Progressing of a set contains the text.
func (w *world) wantMessage(name, text string) {
	w.t.Helper()
	w.until("the update of "+name+" says "+text, sets, func(objects []*unstructured.Unstructured) bool {
		for _, o := range objects {
			if o.GetName() == name && strings.Contains(conditionOf(o, v1alpha1.ConditionProgressing, "message"), text) {
				return true
			}
		}
		return false
	})
}

// forbidImage forbids an image to pods of the namespace, and returns when that is in force.
func (w *world) forbidImage(image string) (lift func()) {
	w.t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
			Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("object.spec.containers.all(c, c.image != %q)", image)}}}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: w.namespace,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}}
	w.must(w.client.Create(w.ctx, policy), "creating a policy")
	w.must(w.client.Create(w.ctx, binding), "binding a policy")
	lift = func() {
		_ = w.client.Delete(w.ctx, binding)
		_ = w.client.Delete(w.ctx, policy)
	}
	w.t.Cleanup(lift)
	w.untilNoPod("the policy is in force", image)
	return lift
}

// untilNoPod waits until a pod with the image cannot be created with dry-run.
func (w *world) untilNoPod(what, image string) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "trial"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
	w.must(wait.PollUntilContextTimeout(w.ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return w.client.Create(ctx, pod.DeepCopy(), client.DryRunAll) != nil, nil
	}), "waiting until "+what)
}

// fillQuota creates a ResourceQuota for the pods that exist, and waits until they are counted.
func (w *world) fillQuota() {
	w.t.Helper()
	n := *resource.NewQuantity(int64(len(w.pods())), resource.DecimalSI)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "full"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: n}}}
	w.must(w.client.Create(w.ctx, quota), "creating the quota")
	w.until("the quota is full", corev1.SchemeGroupVersion.WithResource("resourcequotas"), func(objects []*unstructured.Unstructured) bool {
		used, _, _ := unstructured.NestedString(objects0(objects), "status", "used", "pods")
		return used == n.String()
	})
	w.untilNoPod("the quota is in force", "registry.example/main:1")
}
