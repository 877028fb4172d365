// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// publish returns the part of an API server's document for a CRD that is read here.
func publish(t *testing.T, edit func(crd *apiextensionsv1.CustomResourceDefinition)) []byte {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	file, err := os.ReadFile("../../../manifests/crds/scheduling.run.ai_podgroups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(file, &crd); err != nil {
		t.Fatal(err)
	}
	edit(&crd)
	data, err := json.Marshal(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	schema["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": "scheduling.run.ai", "kind": "PodGroup", "version": "v2alpha2"}}
	paths := map[string]any{"/apis/scheduling.run.ai/v2alpha2/namespaces/{namespace}/podgroups/{name}": map[string]any{}}
	if sub := crd.Spec.Versions[0].Subresources; sub != nil && sub.Status != nil {
		paths["/apis/scheduling.run.ai/v2alpha2/namespaces/{namespace}/podgroups/{name}/status"] = map[string]any{}
	}
	document, err := json.Marshal(map[string]any{"paths": paths, "components": map[string]any{"schemas": map[string]any{
		"ai.run.scheduling.v2alpha2.PodGroup": schema,
		"ai.run.scheduling.v2alpha2.PodGroupList": map[string]any{
			"x-kubernetes-group-version-kind": []any{map[string]any{"group": "scheduling.run.ai", "kind": "PodGroupList", "version": "v2alpha2"}},
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestCheckSchema(t *testing.T) {
	t.Parallel()
	spec := func(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
		s := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		return &s
	}
	for name, tc := range map[string]struct {
		edit   func(crd *apiextensionsv1.CustomResourceDefinition)
		status int // of the answer about the schema
		known  bool
		lacks  []string // nil: the schema is suitable
		unread bool
	}{
		"Muster's own": {edit: func(*apiextensionsv1.CustomResourceDefinition) {}},
		"one without minSubGroup": {
			edit: func(crd *apiextensionsv1.CustomResourceDefinition) { delete(spec(crd).Properties, "minSubGroup") }, lacks: []string{"spec.minSubGroup"},
		},
		"one whose sub-groups have no parents": {
			edit: func(crd *apiextensionsv1.CustomResourceDefinition) {
				delete(spec(crd).Properties["subGroups"].Items.Schema.Properties, "parent")
			}, lacks: []string{"spec.subGroups.parent"},
		},
		"one of an earlier version, without a field that is written again and again": {
			edit: func(crd *apiextensionsv1.CustomResourceDefinition) {
				status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
				delete(status.Properties, "needs")
				delete(status.Properties, "gpus")
			}, lacks: []string{"status.needs", "status.gpus"},
		},
		"one of another product": {
			edit: func(crd *apiextensionsv1.CustomResourceDefinition) {
				schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
				schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"minMember": {Type: "integer"}}}
				delete(schema.Properties, "status")
				crd.Spec.Versions[0].Subresources = nil
			}, lacks: []string{"spec.minSubGroup", "status.summary", "the subresource status"},
		},
		"one that preserves unknown fields": {
			edit: func(crd *apiextensionsv1.CustomResourceDefinition) {
				keep := true
				schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
				for _, field := range []string{"spec", "status"} {
					schema.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
				}
			},
		},
		"none: the CRD is to be installed later":    {status: http.StatusNotFound},
		"none yet, of a CRD that is new":            {status: http.StatusNotFound, known: true, unread: true},
		"one that may not be read yields no result": {status: http.StatusForbidden, unread: true},
		"one that is not there after a restart is":  {status: http.StatusServiceUnavailable, unread: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case strings.HasPrefix(r.URL.Path, "/openapi/") && tc.status == 0:
					_, _ = w.Write(publish(t, tc.edit))
				case strings.HasPrefix(r.URL.Path, "/openapi/"):
					w.WriteHeader(tc.status)
				case tc.known:
					_, _ = w.Write([]byte(`{"apiVersion":"scheduling.run.ai/v2alpha2","kind":"PodGroupList","items":[]}`))
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			defer server.Close()
			client, err := NewPodGroupClient(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			err = client.CheckSchema(context.Background())
			if foreign := errors.Is(err, ErrForeignSchema); foreign != (len(tc.lacks) > 0) || (err != nil) != (foreign || tc.unread) {
				t.Fatalf("got %v", err)
			}
			for _, field := range tc.lacks {
				if !strings.Contains(err.Error(), field) {
					t.Errorf("%q does not name %s", err, field)
				}
			}
		})
	}
}
