// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
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
)

// ReadManifests returns the objects of all .yaml files below root, in the order of the file names. Files of kustomize
// are skipped.
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
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 && !strings.HasPrefix(object.GetAPIVersion(), "kustomize.config.k8s.io/") {
			objects = append(objects, object)
		}
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
	rank := func(object *unstructured.Unstructured) int {
		return slices.Index([]string{"CustomResourceDefinition", "Namespace"}, object.GetKind())
	}
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(b) - rank(a) })
	for i, object := range objects {
		if err := applyObject(ctx, anything, object.DeepCopy()); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if rank(object) == 0 && (i+1 == len(objects) || rank(objects[i+1]) < 0) { // the last definition
			if err := cp.waitForDefinitions(ctx, objects[:i+1]); err != nil {
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
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("muster-controlplane"), client.ForceOwnership)
	})
}

// waitForDefinitions returns when all custom resource definitions among the objects are established.
func (cp *ControlPlane) waitForDefinitions(ctx context.Context, objects []*unstructured.Unstructured) error {
	client, err := apiextensions.NewForConfig(cp.admin)
	if err != nil {
		return err
	}
	return Until(ctx, client.ApiextensionsV1().CustomResourceDefinitions(), metav1.ListOptions{}, func(all []*apiextensionsv1.CustomResourceDefinition) bool {
		return !slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
			return object.GetKind() == "CustomResourceDefinition" && !slices.ContainsFunc(all, func(d *apiextensionsv1.CustomResourceDefinition) bool {
				return d.Name == object.GetName() && slices.ContainsFunc(d.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
					return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
				})
			})
		})
	})
}
