// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// writeChart writes the Helm chart, made from what the kustomizations render, so that the two cannot differ.
func (r Release) writeChart() error {
	files, err := r.chart()
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	zip := gzip.NewWriter(&archive)
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := tar.Header{
			Typeflag: tar.TypeReg, Name: "muster/" + name, Mode: 0o644, Size: int64(len(files[name])), ModTime: r.Created,
		}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := w.Write(files[name]); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, "muster-"+r.chartVersion()+".tgz"), archive.Bytes(), 0o644)
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
	certified, err := r.manifests(kustomization{folders: []string{"."}, components: []string{"samples/cert-manager"}})
	if err != nil {
		return nil, err
	}
	config, ok := fieldAt(whole["ConfigMap/muster-scheduler-config"], "data", "config.yaml").(string)
	if !ok {
		return nil, fmt.Errorf("the ConfigMap muster-scheduler-config has no config.yaml")
	}
	all := values(r.Registry, map[string]map[string]any{
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
	for key, object := range certified { // it has all objects of the others
		if key == "Namespace/muster-system" {
			continue // helm install --namespace
		}
		text, err := template(object)
		if err != nil {
			return nil, err
		}
		if text, err = variant(text, whole[key], "certManager.enabled"); err != nil {
			return nil, err
		}
		if text, err = variant(text, alone[key], "controller.enabled"); err != nil {
			return nil, err
		}
		if strings.HasPrefix(key, "ClusterRole/muster-view") || strings.HasPrefix(key, "ClusterRole/muster-edit") {
			text = "{{- if .Values.userRoles.enabled }}\n" + text + "{{- end }}\n"
		}
		files[fileOf(key)] = []byte(text)
	}

	if files["values.yaml"], err = valuesFile(all); err != nil {
		return nil, err
	}
	if files["values.schema.json"], err = valuesSchema(all); err != nil {
		return nil, err
	}
	table, err := valuesTable(all)
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
		blank(object["data"], "config.yaml", "|{{- tpl .Values.scheduler.config . | nindent 4 }}")
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

const chartReadme = `# Muster

    helm install muster muster-VERSION.tgz --namespace muster-system --create-namespace

One Muster serves a cluster: the names of its roles and webhooks are fixed.

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
