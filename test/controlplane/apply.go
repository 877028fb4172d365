// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// fieldManager owns what Apply writes.
const fieldManager = "muster-controlplane"

// ReadManifests returns the objects of all .yaml files below root, in the order of the file names. Files of kustomize are skipped.
func ReadManifests(files fs.FS, root string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := fs.WalkDir(files, root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		read, err := ParseManifests(content)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		objects = append(objects, read...)
		return nil
	})
	return objects, err
}

// ParseManifests returns the objects of one YAML file, which may have several documents.
func ParseManifests(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) == 0 || strings.HasPrefix(object.GetAPIVersion(), "kustomize.config.k8s.io/") {
			continue
		}
		objects = append(objects, object)
	}
}

// ApplyYAML applies the objects of one YAML file; see Apply.
func (cp *ControlPlane) ApplyYAML(ctx context.Context, content string) error {
	objects, err := ParseManifests([]byte(content))
	if err != nil {
		return err
	}
	return cp.Apply(ctx, objects...)
}

// Apply applies the objects server-side: namespaces first, then custom resource definitions, then, when these are
// established, the others in the given order. Objects of namespaced kinds without a namespace are applied to "default".
func (cp *ControlPlane) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	config := cp.Admin()
	config.WarningHandler = rest.WarningLogger{}
	anything, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	for i, object := range objects {
		if err := applyObject(ctx, anything, object.DeepCopy()); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if rank(object) == rankDefinition && (i+1 == len(objects) || rank(objects[i+1]) == rankOther) { // the last of them
			if err := cp.waitForDefinitions(ctx, objects); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyObject retries for as long as the kind is unknown: discovery has a new custom resource a moment after it is
// established, and sends no event.
func applyObject(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	unknown := func(err error) bool { return meta.IsNoMatchError(err) && ctx.Err() == nil }
	return retry.OnError(wait.Backoff{Duration: 20 * time.Millisecond, Steps: 500}, unknown, func() error {
		namespaced, err := c.IsObjectNamespaced(object)
		if err != nil {
			return err
		}
		if namespaced && object.GetNamespace() == "" {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership)
	})
}

const (
	rankNamespace = iota
	rankDefinition
	rankOther
)

func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace":
		return rankNamespace
	case "CustomResourceDefinition":
		return rankDefinition
	default:
		return rankOther
	}
}

// waitForDefinitions returns when all custom resource definitions among the objects are established.
func (cp *ControlPlane) waitForDefinitions(ctx context.Context, objects []*unstructured.Unstructured) error {
	client, err := apiextensions.NewForConfig(cp.admin)
	if err != nil {
		return err
	}
	waiting := map[string]bool{}
	for _, object := range objects {
		if rank(object) == rankDefinition {
			waiting[object.GetName()] = true
		}
	}
	return Until(ctx, client.ApiextensionsV1().CustomResourceDefinitions(), metav1.ListOptions{},
		func(definitions []*apiextensionsv1.CustomResourceDefinition) bool {
			established := 0
			for _, definition := range definitions {
				for _, condition := range definition.Status.Conditions {
					if waiting[definition.Name] && condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
						established++
					}
				}
			}
			return established == len(waiting)
		})
}
