// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// value is one that users of the chart can set.
type value struct {
	path        string // "scheduler.replicas"
	description string
	byDefault   any
}

// values returns those of the chart; those of one section are beside each other. What the manifests say is the default:
// deployments has "scheduler" and "controller", config the configuration of muster-scheduler.
func values(registry string, deployments map[string]map[string]any, config string) []value {
	all := []value{
		{"registry", "Where the images are.", registry},
		{"tag", "Tag of the images. Empty: the version of the chart.", ""},
		{"imagePullSecrets", "Secrets with the credentials of the registry: [{name: ...}].", []any{}},
		{"crds.enabled", "Create and upgrade the CRDs.", true},
		{"crds.keep", "Leave them at uninstallation: with them, all workloads are deleted.", true},
		{"userRoles.enabled", "Let the roles view, edit and admin of the cluster read and change PodGroups and PodCliqueSets.", true},
		{"priorityClasses", "PriorityClasses to create: [{name: ..., value: ..., preemptionPolicy: ..., globalDefault: ...}].", []any{}},
		{"networkPolicy.enabled", "Let pods of the programs be reached on the ports only that they serve.", false},
		{"monitoring.enabled", "ServiceMonitors and alerts for Prometheus' operator, dashboards for Grafana, and the roles muster-metrics-reader.", false},
		{"monitoring.labels", "Further labels of the ServiceMonitors and of the PrometheusRule, as {release: kube-prometheus-stack}, by which Prometheus' operator selects them.", map[string]any{}},
		{"certManager.enabled", "Let cert-manager make the certificate of the webhooks. False: muster-controller does.", false},
	}
	for _, program := range []string{"scheduler", "controller"} {
		if program == "controller" {
			all = append(all, value{"controller.enabled", "False: muster-scheduler alone, without PodCliqueSets and webhooks.", true})
		}
		template := fieldAt(deployments[program], "spec", "template", "spec")
		all = append(all,
			value{program + ".replicas", "One leads, the others wait.", fieldAt(deployments[program], "spec", "replicas")},
			value{program + ".resources", "Of its container.", fieldAt(container(template), "resources")},
			value{program + ".priorityClassName", "", fieldAt(template, "priorityClassName")},
			value{program + ".nodeSelector", "", map[string]any{}},
			value{program + ".tolerations", "", []any{}},
			value{program + ".affinity", "", fieldAt(template, "affinity")},
			value{program + ".extraArgs", "Flags behind those of the chart; the last one counts.", []any{}},
		)
		if program == "scheduler" {
			all = append(all, value{"scheduler.config", "The KubeSchedulerConfiguration: docs/configuration.md.", config})
		}
	}
	return all
}

// fieldAt returns what is at the path of an object, nil if there is nothing.
func fieldAt(object any, path ...string) any {
	for _, key := range path {
		fields, _ := object.(map[string]any)
		object = fields[key]
	}
	return object
}

func container(template any) any { return fieldAt(template, "containers").([]any)[0] }

// valuesFile returns values.yaml, with the descriptions as comments.
func valuesFile(all []value) ([]byte, error) {
	var out strings.Builder
	out.WriteString("# Values of the chart; README.md has them in a table.\n")
	last := ""
	for _, v := range all {
		section, name, nested := strings.Cut(v.path, ".")
		indent := ""
		if !nested {
			name = section
		} else {
			if section != last {
				fmt.Fprintf(&out, "%s:\n", section)
			}
			last, indent = section, "  "
		}
		if v.description != "" {
			fmt.Fprintf(&out, "%s# %s\n", indent, v.description)
		}
		data, err := yaml.Marshal(map[string]any{name: v.byDefault})
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			out.WriteString(indent + line)
		}
	}
	return []byte(out.String()), nil
}

// valuesSchema returns the JSON schema of the values: a misspelled one is refused.
func valuesSchema(all []value) ([]byte, error) {
	type schema map[string]any
	root := schema{"type": "object", "additionalProperties": false, "properties": schema{}}
	properties := root["properties"].(schema)
	properties["global"] = schema{"type": "object"} // charts that contain this one
	for _, v := range all {
		target, name := properties, v.path
		if section, rest, nested := strings.Cut(v.path, "."); nested {
			if target[section] == nil {
				target[section] = schema{"type": "object", "additionalProperties": false, "properties": schema{}}
			}
			target, name = target[section].(schema)["properties"].(schema), rest
		}
		target[name] = schema{"type": typeOf(v.byDefault), "description": v.description}
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	return json.MarshalIndent(root, "", "  ")
}

func typeOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	default:
		return "integer"
	}
}

// valuesTable returns the table of the values in Markdown.
func valuesTable(all []value) (string, error) {
	var out strings.Builder
	out.WriteString("| value | default | |\n|---|---|---|\n")
	for _, v := range all {
		byDefault, err := json.Marshal(v.byDefault)
		if err != nil {
			return "", err
		}
		text := "`" + string(byDefault) + "`"
		if len(text) > 60 {
			text = "see values.yaml"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", v.path, text, v.description)
	}
	return out.String(), nil
}
