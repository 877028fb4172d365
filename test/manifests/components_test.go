// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// deployments returns those of the base by name.
func deployments(t *testing.T) map[string]*appsv1.Deployment {
	t.Helper()
	found := map[string]*appsv1.Deployment{}
	for _, o := range readBase(t) {
		if deployment, ok := o.Object.(*appsv1.Deployment); ok {
			found[deployment.Name] = deployment
		}
	}
	return found
}

// TestMetricsAreForThoseWhoMay: no Deployment has a flag by which everyone could read metrics and profiles. That the
// programs ask the API server without such a flag is shown in test/controlplane.
func TestMetricsAreForThoseWhoMay(t *testing.T) {
	t.Parallel()
	for name, deployment := range deployments(t) {
		for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
			for _, opens := range []string{"--authorization-", "--authentication-", "--metrics-", "--pprof", "--client-ca-file", "--secure-port", "--bind-address"} {
				if strings.HasPrefix(arg, opens) {
					t.Errorf("%s has the flag %s", name, arg)
				}
			}
		}
	}
}

// TestTheNetworkPolicyAdmitsWhatIsServed: a port that a program serves and no policy admits would be cut off, and
// another one open.
func TestTheNetworkPolicyAdmitsWhatIsServed(t *testing.T) {
	t.Parallel()
	served, admitted := map[string][]string{}, map[string][]string{}
	all := deployments(t)
	for name, deployment := range all {
		for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
			served[name] = append(served[name], port.Name)
		}
	}
	for _, o := range read(t, "components/networkpolicy/networkpolicy.yaml") {
		policy := o.Object.(*networkingv1.NetworkPolicy)
		for name, deployment := range all {
			if labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(deployment.Spec.Template.Labels)) {
				for _, port := range policy.Spec.Ingress[0].Ports {
					admitted[name] = append(admitted[name], port.Port.StrVal)
				}
			}
		}
	}
	if diff := cmp.Diff(served, admitted); diff != "" || len(served) != 2 {
		t.Errorf("ports (-served +admitted):\n%s", diff)
	}
}

// TestMetricsAreScraped follows Prometheus from a ServiceMonitor to the Service, the pods and the port.
func TestMetricsAreScraped(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "components/monitoring/servicemonitors.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	scraped := map[string]string{}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var monitor struct {
			Spec struct {
				Selector  struct{ MatchLabels map[string]string }
				Endpoints []struct{ Port, Scheme string }
			}
		}
		if err := yaml.Unmarshal([]byte(document), &monitor); err != nil {
			t.Fatal(err)
		}
		for _, o := range read(t, "components/monitoring/services.yaml") {
			service := o.Object.(*corev1.Service)
			if !labels.SelectorFromSet(monitor.Spec.Selector.MatchLabels).Matches(labels.Set(service.Labels)) {
				continue
			}
			for name, deployment := range deployments(t) {
				ports := deployment.Spec.Template.Spec.Containers[0].Ports
				if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(deployment.Spec.Template.Labels)) &&
					monitor.Spec.Endpoints[0].Port == service.Spec.Ports[0].Name &&
					slices.ContainsFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == service.Spec.Ports[0].TargetPort.StrVal }) {
					scraped[name] += monitor.Spec.Endpoints[0].Scheme
				}
			}
		}
	}
	want := map[string]string{"muster-scheduler": "https", "muster-controller": "https"}
	if diff := cmp.Diff(want, scraped); diff != "" {
		t.Errorf("scraped (-want +got):\n%s", diff)
	}
}

// TestPriorityClassesAreTheDocumentedOnes: the guide explains what the component has.
func TestPriorityClassesAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/preemption.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(guide), "## PriorityClasses")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	type class struct {
		Value    int32
		Policy   corev1.PreemptionPolicy
		Fallback bool
	}
	documented, shipped := map[string]class{}, map[string]class{}
	add := func(classes map[string]class, c *schedulingv1.PriorityClass) {
		classes[c.Name] = class{c.Value, ptr.Deref(c.PreemptionPolicy, corev1.PreemptLowerPriority), c.GlobalDefault}
	}
	for document := range strings.SplitSeq(text, "---\n") {
		c := &schedulingv1.PriorityClass{}
		if err := yaml.Unmarshal([]byte(document), c); err != nil {
			t.Fatal(err)
		}
		if c.Kind == "PriorityClass" {
			add(documented, c)
		}
	}
	for _, o := range read(t, "components/priority-classes/priorityclasses.yaml") {
		add(shipped, o.Object.(*schedulingv1.PriorityClass))
	}
	if diff := cmp.Diff(documented, shipped); diff != "" || len(shipped) != 3 {
		t.Errorf("PriorityClasses (-docs/preemption.md +component):\n%s", diff)
	}
}
