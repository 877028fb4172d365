// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// writeChart writes the Helm chart, made from what the kustomizations render, so that the two cannot differ.
func (r Release) writeChart() error {
	files, err := r.chart()
	if err != nil {
		return err
	}
	var sorted []file
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sorted = append(sorted, file{"muster/" + name, 0o644, files[name]})
	}
	archive, err := r.archive(sorted)
	if err != nil {
		return err
	}
	return os.WriteFile(r.chartFile(), archive, 0o644)
}

func (r Release) chartFile() string { return filepath.Join(r.Out, "muster-"+r.chartVersion()+".tgz") }

// renderChart returns what helm install creates in the namespace with these values (YAML), by file of the chart.
func renderChart(file, namespace, values string) (map[string]string, error) {
	archive, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	chart, err := loader.LoadArchive(archive)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(chart, given, common.ReleaseOptions{Name: "muster", Namespace: namespace}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// chartVersion is the version as Helm wants it.
func (r Release) chartVersion() string { return strings.TrimPrefix(r.Version, "v") }

// manifest is one object as it is rendered.
type manifest = map[string]any

// manifests returns the objects of the kustomizations by kind and name.
func (r Release) manifests(k kustomization) (map[string]manifest, error) {
	rendered, err := r.render(k)
	if err != nil {
		return nil, err
	}
	objects := map[string]manifest{}
	return objects, addManifests(objects, string(rendered), "muster-system")
}

// addManifests adds the objects of a file by kind and name, and by namespace if it is another one than that of Muster.
func addManifests(objects map[string]manifest, file, namespace string) error {
	for document := range strings.SplitSeq("\n"+file, "\n---\n") {
		var object manifest
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return fmt.Errorf("%w in\n%s", err, document)
		}
		if len(object) == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%s", object["kind"], fieldAt(object, "metadata", "name"))
		if in, ok := fieldAt(object, "metadata", "namespace").(string); ok && in != namespace {
			key += "." + in
		}
		if objects[key] != nil {
			return fmt.Errorf("%s twice", key)
		}
		objects[key] = object
	}
	return nil
}

// components are those of manifests/components that the chart has, with the value that turns each of them on. Its
// PriorityClasses are a list.
var components = map[string]string{
	"cert-manager": "certManager.enabled", "monitoring": "monitoring.enabled", "networkpolicy": "networkPolicy.enabled",
}

// chart returns its files by name.
func (r Release) chart() (map[string][]byte, error) {
	crds, err := r.manifests(kustomization{folders: []string{"crds"}})
	if err != nil {
		return nil, err
	}
	whole, err := r.manifests(kustomization{folders: []string{"."}})
	if err != nil {
		return nil, err
	}
	alone, err := r.manifests(kustomization{folders: []string{"scheduler"}})
	if err != nil {
		return nil, err
	}
	all := map[string]manifest{}               // objects of the base and of all components
	optional := map[string]string{}            // the value that an object depends on
	for component, value := range components { // no two change the same object
		with, err := r.manifests(kustomization{folders: []string{"."}, components: []string{"components/" + component}})
		if err != nil {
			return nil, err
		}
		for key, object := range with {
			if !reflect.DeepEqual(object, whole[key]) {
				all[key], optional[key] = object, value
			} else if optional[key] == "" {
				all[key] = object
			}
		}
	}
	config, ok := fieldAt(whole["ConfigMap/muster-scheduler-config"], "data", "config.yaml").(string)
	if !ok {
		return nil, fmt.Errorf("the ConfigMap muster-scheduler-config has no config.yaml")
	}
	given := values(r.Registry, map[string]map[string]any{
		"scheduler":  whole["Deployment/muster-scheduler"],
		"controller": whole["Deployment/muster-controller"],
	}, strings.ReplaceAll(config, "muster-system", "{{ .Release.Namespace }}"))

	files := map[string][]byte{"templates/priorityclasses.yaml": []byte(priorityClasses)}
	for key, crd := range crds {
		text, err := template(crd)
		if err != nil {
			return nil, err
		}
		// A chart's folder crds/ is installed once and never upgraded.
		text = strings.Replace(text, "metadata:\n  annotations:\n",
			"metadata:\n  annotations:\n    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n", 1)
		files[fileOf(key)] = []byte("{{- if .Values.crds.enabled }}\n" + text + "{{- end }}\n")
	}
	for key, object := range all {
		if key == "Namespace/muster-system" {
			continue // helm install --namespace
		}
		text, err := template(object)
		if err != nil {
			return nil, err
		}
		if value := optional[key]; value != "" {
			if text, err = variant(text, whole[key], value); err != nil {
				return nil, err
			}
		}
		if whole[key] != nil || fieldAt(object, "metadata", "labels", "app.kubernetes.io/name") == "muster-controller" {
			if text, err = variant(text, alone[key], "controller.enabled"); err != nil {
				return nil, err
			}
		}
		if strings.HasPrefix(key, "ClusterRole/muster-view") || strings.HasPrefix(key, "ClusterRole/muster-edit") {
			text = "{{- if .Values.userRoles.enabled }}\n" + text + "{{- end }}\n"
		}
		files[fileOf(key)] = []byte(text)
	}

	if files["values.yaml"], err = valuesFile(given); err != nil {
		return nil, err
	}
	if files["values.schema.json"], err = valuesSchema(given); err != nil {
		return nil, err
	}
	table, err := valuesTable(given)
	if err != nil {
		return nil, err
	}
	files["README.md"] = fmt.Appendf(nil, chartReadme, table)
	files["Chart.yaml"] = fmt.Appendf(nil, chartFile, r.chartVersion(), r.Version)
	return files, nil
}

func fileOf(key string) string {
	return "templates/" + strings.ToLower(strings.ReplaceAll(key, "/", "-")) + ".yaml"
}

// variant returns the text if the condition holds, else that of the other object, or nothing without one.
func variant(text string, other manifest, condition string) (string, error) {
	if other == nil {
		return "{{- if .Values." + condition + " }}\n" + text + "{{- end }}\n", nil
	}
	otherwise, err := template(other)
	if err != nil || otherwise == text {
		return text, err
	}
	return "{{- if .Values." + condition + " }}\n" + text + "{{- else }}\n" + otherwise + "{{- end }}\n", nil
}

// template returns the object as a template: with the values where the object has the defaults of users.
func template(object manifest) (string, error) {
	object, err := copied(object)
	if err != nil {
		return "", err
	}
	blanks := map[string]string{} // text in the YAML -> template
	blank := func(of any, key, template string) {
		name := fmt.Sprintf("BLANK%dBLANK", len(blanks))
		of.(map[string]any)[key] = name
		blanks[name] = template
	}
	switch object["kind"] {
	case "Deployment":
		program := strings.TrimPrefix(fieldAt(object, "metadata", "name").(string), "muster-")
		value := ".Values." + program
		spec := fieldAt(object, "spec", "template", "spec")
		blank(object["spec"], "replicas", "{{ "+value+".replicas }}")
		blank(spec, "imagePullSecrets", "{{- toYaml .Values.imagePullSecrets | nindent 8 }}")
		blank(spec, "priorityClassName", "{{ "+value+".priorityClassName }}")
		for _, key := range []string{"nodeSelector", "tolerations", "affinity"} {
			blank(spec, key, "{{- toYaml "+value+"."+key+" | nindent 8 }}")
		}
		blank(container(spec), "resources", "{{- toYaml "+value+".resources | nindent 10 }}")
		blank(container(spec), "image",
			"{{ .Values.registry }}/muster-"+program+":{{ .Values.tag | default .Chart.AppVersion }}")
		args := fieldAt(container(spec), "args").([]any)
		for i, arg := range args {
			if strings.HasPrefix(arg.(string), "--wait-image=") {
				args[i] = "--wait-image=BLANK-WAIT"
				blanks["BLANK-WAIT"] = "{{ .Values.registry }}/muster-wait:{{ .Values.tag | default .Chart.AppVersion }}"
			}
		}
		container(spec).(map[string]any)["args"] = append(args, "BLANK-ARGS")
		blanks["- BLANK-ARGS"] = "{{- with " + value + ".extraArgs }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}"
		if program == "scheduler" { // its configuration is read at start
			annotations := map[string]any{}
			fieldAt(object, "spec", "template", "metadata").(map[string]any)["annotations"] = annotations
			blank(annotations, "checksum/config", "{{ .Values.scheduler.config | sha256sum | quote }}")
		}
	case "ConfigMap":
		if object["metadata"].(map[string]any)["name"] != "muster-scheduler-config" {
			break // dashboards
		}
		blank(object["data"], "config.yaml", "|{{- tpl .Values.scheduler.config . | nindent 4 }}")
	}
	if group, _, _ := strings.Cut(object["apiVersion"].(string), "/"); group == "monitoring.coreos.com" {
		fieldAt(object, "metadata", "labels").(map[string]any)["zz"] = "BLANK-LABELS" // the last one
		blanks["zz: BLANK-LABELS"] = "{{- with .Values.monitoring.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}"
	}

	data, err := yaml.Marshal(object)
	if err != nil {
		return "", err
	}
	text := braces.ReplaceAllStringFunc(string(data), func(s string) string { return "{{ `" + s + "` }}" })
	text = strings.ReplaceAll(text, "muster-system", "{{ .Release.Namespace }}")
	for name, template := range blanks {
		text = strings.ReplaceAll(text, name, template)
	}
	return text, nil
}

var braces = regexp.MustCompile(`\{\{|\}\}`)

func copied(object manifest) (manifest, error) {
	data, err := yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	var result manifest
	return result, yaml.Unmarshal(data, &result)
}

const chartFile = `apiVersion: v2
name: muster
description: Gang scheduling, topology, preemption and gang lifecycle for Kubernetes
type: application
version: %s
appVersion: %s
home: https://github.com/muster-project/muster
`

const chartReadme = `<!-- Written by "make docs" from hack/release. Do not edit. -->

# The Helm chart

` + "```" + `
helm install muster muster-VERSION.tgz --namespace muster-system --create-namespace
` + "```" + `

The chart has what install.yaml has. One Muster serves a cluster: the names of its roles and webhooks are fixed. A value that is misspelled,
or of another type, is refused.

%s`

const priorityClasses = `{{- range .Values.priorityClasses }}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: {{ .name }}
{{ toYaml (omit . "name") }}
{{- end }}
`
