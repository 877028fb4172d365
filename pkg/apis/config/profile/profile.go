// SPDX-License-Identifier: Apache-2.0

// Package profile contains the configuration that muster-scheduler uses if none is given: one profile,
// "muster-scheduler", with GangGate and GangAdmission before the stock plugins and the scores of GPUPacking. It is read from the ConfigMap in
// manifests/scheduler, so the compiled-in and the deployed configuration cannot differ.
package profile

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	kubescheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/manifests"
	_ "github.com/muster-project/muster/pkg/apis/config/scheme" // the arguments of GangAdmission
)

// SchedulerName is the spec.schedulerName of pods that are scheduled by the default profile.
const SchedulerName = "muster-scheduler"

// configMapKey is the key of the configuration file in the ConfigMap.
const configMapKey = "config.yaml"

// DefaultFile returns the built-in configuration as a KubeSchedulerConfiguration file, with the same bytes as in the
// shipped ConfigMap. An error means a broken build.
func DefaultFile() ([]byte, error) {
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict(manifests.SchedulerConfigMap, &cm); err != nil {
		return nil, fmt.Errorf("reading the built-in ConfigMap: %w", err)
	}
	file, ok := cm.Data[configMapKey]
	if !ok {
		return nil, fmt.Errorf("the built-in ConfigMap has no key %q", configMapKey)
	}
	return []byte(file), nil
}

// Default returns the built-in configuration, defaulted and converted as kube-scheduler does for a file given by
// --config. The caller owns it. An error means a broken build.
func Default() (*kubeconfig.KubeSchedulerConfiguration, error) {
	file, err := DefaultFile()
	if err != nil {
		return nil, err
	}
	cfg, err := Decode(file)
	if err != nil {
		return nil, fmt.Errorf("decoding the built-in configuration: %w", err)
	}
	return cfg, nil
}

// Decode returns the configuration of a file, decoded as kube-scheduler does, see
// cmd/kube-scheduler/app/options/configfile.go. An error is one with which muster-scheduler does not start.
func Decode(file []byte) (*kubeconfig.KubeSchedulerConfiguration, error) {
	obj, gvk, err := kubescheme.Codecs.UniversalDecoder().Decode(file, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := obj.(*kubeconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("want a KubeSchedulerConfiguration, got %s", gvk)
	}
	cfg.APIVersion = gvk.GroupVersion().String() // lost in the conversion to the internal type
	return cfg, nil
}

// With returns the configuration file (YAML) with a field set to a value; path is the path of the field, outermost
// name first. A missing parent is added. Comments are lost. Whether the field exists is not checked before the file
// is loaded.
func With(file []byte, value any, path ...string) ([]byte, error) {
	var fields map[string]any
	if err := yaml.UnmarshalStrict(file, &fields); err != nil {
		return nil, fmt.Errorf("reading a scheduler configuration: %w", err)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	if err := unstructured.SetNestedField(fields, value, path...); err != nil {
		return nil, fmt.Errorf("setting a field of a scheduler configuration: %w", err)
	}
	return yaml.Marshal(fields)
}
