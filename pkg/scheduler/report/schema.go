package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// ErrForeignSchema is the error of CheckSchema if PodGroups are not of the kind that Muster installs.
var ErrForeignSchema = errors.New("CustomResourceDefinition podgroups.scheduling.run.ai is not the one of this version of Muster")

// schemaFields are fields that Muster's CRD has, and the CRDs of the same name of other products or of earlier versions
// perhaps not. The API server prunes what a schema lacks without a word.
var schemaFields = []string{
	"spec.minSubGroup", "spec.subGroups.parent", "spec.subGroups.minSubGroup", "spec.preemptibility",
	"status.observedGeneration", "status.conditions", "status.reason", "status.scheduled", "status.needs", "status.gpus", "status.summary", "status.waitingSince",
	"status.tree",
}

// CheckSchema compares the schema that the API server has of PodGroups with what is read and written here. nil: it fits, or
// PodGroups are not known to the API server at all. ErrForeignSchema, wrapped with the fields that are missing: it does not.
// Any other error: the schema could not be read.
func (c *PodGroupClient) CheckSchema(ctx context.Context) error {
	path := "/openapi/v3/apis/" + v2alpha2.SchemeGroupVersion.String()
	document, err := c.rest.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		if err := c.rest.Get().Resource(podGroups).Param("limit", "1").Do(ctx).Error(); apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the schema of PodGroups is not published yet: %w", err)
	}
	if err != nil {
		return fmt.Errorf("reading the schema of PodGroups: %w", err)
	}
	missing, err := missingFields(document)
	if err != nil {
		return fmt.Errorf("reading the schema of PodGroups: %w", err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: it lacks %s", ErrForeignSchema, strings.Join(missing, ", "))
	}
	return nil
}

// openAPISchema is what is read of a schema in an OpenAPI v3 document.
type openAPISchema struct {
	Properties map[string]openAPISchema `json:"properties"`
	Items      *openAPISchema           `json:"items"`
	Preserves  bool                     `json:"x-kubernetes-preserve-unknown-fields"`
	Kinds      []struct {
		Kind string `json:"kind"`
	} `json:"x-kubernetes-group-version-kind"`
}

// missingFields returns those of schemaFields that the document of the API group does not have, and the status subresource.
func missingFields(document []byte) ([]string, error) {
	var doc struct {
		Paths      map[string]json.RawMessage `json:"paths"`
		Components struct {
			Schemas map[string]openAPISchema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	var missing []string
	for _, schema := range doc.Components.Schemas {
		if !slices.ContainsFunc(schema.Kinds, func(k struct {
			Kind string `json:"kind"`
		}) bool {
			return k.Kind == "PodGroup"
		}) {
			continue
		}
		for _, field := range schemaFields {
			if !schema.has(strings.Split(field, ".")) {
				missing = append(missing, field)
			}
		}
		if _, ok := doc.Paths["/apis/"+v2alpha2.SchemeGroupVersion.String()+"/namespaces/{namespace}/podgroups/{name}/status"]; !ok {
			missing = append(missing, "the subresource status")
		}
		return missing, nil
	}
	return []string{"the kind PodGroup of " + v2alpha2.SchemeGroupVersion.String()}, nil
}

// has reports whether the API server keeps a field.
func (s *openAPISchema) has(path []string) bool {
	if s.Items != nil {
		return s.Items.has(path)
	}
	if len(path) == 0 || s.Preserves {
		return true
	}
	field, ok := s.Properties[path[0]]
	return ok && field.has(path[1:])
}
