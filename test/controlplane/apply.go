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
	"os"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// fieldManager owns what Apply writes.
const fieldManager = "muster-controlplane"

// ApplyManifests reads the YAML files of the directories and their subdirectories, and applies the objects; see Apply.
// Files of kustomize are skipped.
func (cp *ControlPlane) ApplyManifests(ctx context.Context, dirs ...string) error {
	var objects []*unstructured.Unstructured
	for _, dir := range dirs {
		read, err := ReadManifests(os.DirFS(dir), ".")
		if err != nil {
			return fmt.Errorf("reading manifests of %s: %w", dir, err)
		}
		objects = append(objects, read...)
	}
	return cp.Apply(ctx, objects...)
}

// ReadManifests returns the objects of all .yaml files below root, in the order of the file names.
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

// Apply applies the objects server-side: namespaces first, then custom resource definitions, then, when these are
// established, the others in the given order. Objects of namespaced kinds without a namespace are applied to "default".
func (cp *ControlPlane) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(cp.admin)
	if err != nil {
		return err
	}
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })

	kinds := kindFinder{cp: cp}
	established := true
	for _, object := range objects {
		if rank(object) > rankDefinition && !established {
			if err := cp.waitForDefinitions(ctx, objects); err != nil {
				return err
			}
			established = true
		}
		if rank(object) == rankDefinition {
			established = false
		}
		mapping, err := kinds.find(ctx, object)
		if err != nil {
			return err
		}
		resource := dynamic.ResourceInterface(client.Resource(mapping.Resource))
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace := object.GetNamespace()
			if namespace == "" {
				namespace = metav1.NamespaceDefault
			}
			resource = client.Resource(mapping.Resource).Namespace(namespace)
		}
		if _, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if !established {
		return cp.waitForDefinitions(ctx, objects)
	}
	return nil
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

// kindFinder finds the resource of a kind. It reads discovery once, and again for each unknown kind.
type kindFinder struct {
	cp     *ControlPlane
	mapper meta.RESTMapper // nil before the first lookup
}

func (f *kindFinder) find(ctx context.Context, object *unstructured.Unstructured) (*meta.RESTMapping, error) {
	kind := object.GroupVersionKind()
	// Discovery has a new custom resource a moment after it is established, and sends no event.
	deadline := time.Now().Add(10 * time.Second)
	for {
		if f.mapper != nil {
			mapping, err := f.mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err == nil || !meta.IsNoMatchError(err) || time.Now().After(deadline) || ctx.Err() != nil {
				return mapping, err
			}
			time.Sleep(20 * time.Millisecond)
		}
		groups, err := restmapper.GetAPIGroupResources(f.cp.client.Discovery())
		if err != nil {
			return nil, err
		}
		f.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	}
}
