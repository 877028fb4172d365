// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// install returns the objects that helm install creates in the namespace, by kind and name.
func install(out, namespace, valuesYAML string) (map[string]manifest, error) {
	rendered, err := renderChart(Release{Version: version, Out: out}.chartFile(), namespace, valuesYAML)
	if err != nil {
		return nil, err
	}
	objects := map[string]manifest{}
	for file, text := range rendered {
		if err := addManifests(objects, text, namespace); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return objects, nil
}

// normal drops empty lists and maps, and what only the chart has: an annotation each of CRDs and of muster-scheduler.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		result := map[string]any{}
		for key, of := range v {
			if of = normal(of); of != nil && key != "helm.sh/resource-policy" && key != "checksum/config" {
				result[key] = of
			}
		}
		if len(result) == 0 {
			return nil
		}
		return result
	case []any:
		var result []any
		for _, of := range v {
			result = append(result, normal(of))
		}
		if len(result) == 0 {
			return nil
		}
		return result
	}
	return v
}

// compareInstalled says where what the chart installs is not what the kustomizations have.
func compareInstalled(t *testing.T, got, want map[string]manifest) {
	t.Helper()
	delete(want, "Namespace/muster-system")
	for key := range maps.Keys(got) {
		if want[key] == nil {
			t.Errorf("%s is only in the chart", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !reflect.DeepEqual(normal(got[key]), normal(want[key])) {
			a, _ := yaml.Marshal(normal(got[key]))
			b, _ := yaml.Marshal(normal(want[key]))
			if len(a) > 3000 {
				a, b = a[:3000], b[:min(len(b), 3000)]
			}
			t.Errorf("%s differs; the chart:\n%s\nthe kustomization:\n%s", key, a, b)
		}
	}
}

func testChart(t *testing.T, out string) {
	r := release(t)
	kustomized := func(t *testing.T, k kustomization) map[string]manifest {
		t.Helper()
		r := r
		r.Out = t.TempDir()
		objects, err := r.manifests(k)
		if err != nil {
			t.Fatal(err)
		}
		return objects
	}
	for _, c := range []struct {
		name, values string
		kustomization
	}{
		{"by default", "", kustomization{folders: []string{"crds", "."}}},
		{"the scheduler alone", "controller: {enabled: false}\ncrds: {enabled: false}", kustomization{folders: []string{"scheduler"}}},
		{
			"with cert-manager", "certManager: {enabled: true}\ncrds: {enabled: false}",
			kustomization{folders: []string{"."}, components: []string{"components/cert-manager"}},
		},
		{
			"with all options", "certManager: {enabled: true}\nmonitoring: {enabled: true}\nnetworkPolicy: {enabled: true}\ncrds: {enabled: false}",
			kustomization{folders: []string{"."}, components: []string{"components/cert-manager", "components/monitoring", "components/networkpolicy"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := install(out, "muster-system", c.values)
			if err != nil {
				t.Fatal(err)
			}
			compareInstalled(t, got, kustomized(t, c.kustomization))
		})
	}

	t.Run("cert-manager replaces rules about secrets only", func(t *testing.T) {
		rules := func(k kustomization) []any { return kustomized(t, k)["Role/muster-controller"]["rules"].([]any) }
		want := slices.DeleteFunc(rules(kustomization{folders: []string{"."}}), func(rule any) bool {
			return reflect.DeepEqual(rule.(manifest)["resources"], []any{"secrets"})
		})
		got := rules(kustomization{folders: []string{"."}, components: []string{"components/cert-manager"}})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("rules of muster-controller: %v, want %v", got, want)
		}
	})

	t.Run("another namespace", func(t *testing.T) {
		got, err := install(out, "gpu", "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("muster-system")) {
			t.Error("something is still in muster-system")
		}
	})

	t.Run("values", func(t *testing.T) {
		got, err := install(out, "muster-system", `
registry: mirror.example.com
tag: v9
imagePullSecrets: [{name: mirror}]
userRoles: {enabled: false}
priorityClasses: [{name: training, value: 100, preemptionPolicy: Never}]
monitoring: {enabled: true, labels: {release: kube-prometheus-stack}}
scheduler:
  replicas: 3
  resources: {limits: {memory: 9Gi}}
  nodeSelector: {pool: control}
  tolerations: [{key: control, operator: Exists}]
  extraArgs: [-v=4]
  config: "kind: KubeSchedulerConfiguration\n"
`)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(map[string]any{
			"spec": got["Deployment/muster-scheduler"]["spec"], "class": got["PriorityClass/training"],
			"config": got["ConfigMap/muster-scheduler-config"]["data"], "view": got["ClusterRole/muster-view"],
			"labels": fieldAt(got["ServiceMonitor/muster-scheduler"], "metadata", "labels"),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"image: mirror.example.com/muster-scheduler:v9", "- name: mirror", "replicas: 3", "memory: 9Gi", "pool: control",
			"key: control", "- -v=4", "value: 100", "preemptionPolicy: Never", "kind: KubeSchedulerConfiguration", "view: null",
			"labels:\n  app.kubernetes.io/name: muster-scheduler\n  app.kubernetes.io/part-of: muster\n  release: kube-prometheus-stack\n",
		} {
			if !bytes.Contains(text, []byte(want)) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	})

	for name, values := range map[string]string{
		"a misspelled value":      "scheduler: {replica: 3}",
		"a value of another type": "scheduler: {replicas: three}",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := install(out, "muster-system", values); err == nil || !strings.Contains(err.Error(), "replica") {
				t.Errorf("error %v", err)
			}
		})
	}
}
