// SPDX-License-Identifier: Apache-2.0

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

// ErrForeignSchema is the error of CheckSchema if the CRD of PodGroups is not the one that Muster installs.
var ErrForeignSchema = errors.New("CustomResourceDefinition podgroups.scheduling.run.ai is not the one of this version of Muster")

// schemaFields are fields of Muster's CRD that may be missing in CRDs of the same name of other products or of
// earlier versions. The API server silently prunes fields that a schema lacks.
var schemaFields = []string{
	"spec.minSubGroup", "spec.subGroups.parent", "spec.subGroups.minSubGroup", "spec.preemptibility",
	"status.observedGeneration", "status.conditions", "status.reason", "status.scheduled", "status.needs", "status.gpus", "status.summary", "status.brief", "status.waitingSince",
	"status.tree", "status.placement",
}

// CheckSchema compares the schema of PodGroups in the API server with the fields that this program reads and writes.
// It returns nil if the schema is suitable, or the API server has no PodGroup resource; ErrForeignSchema, wrapped
// with the missing fields, if it is not suitable; and any other error if the schema could not be read.
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

// openAPISchema contains the relevant fields of a schema in an OpenAPI v3 document.
type openAPISchema struct {
	Properties map[string]openAPISchema `json:"properties"`
	Items      *openAPISchema           `json:"items"`
	Preserves  bool                     `json:"x-kubernetes-preserve-unknown-fields"`
	Kinds      []openAPIKind            `json:"x-kubernetes-group-version-kind"`
}

type openAPIKind struct {
	Kind string `json:"kind"`
}

// missingFields returns those of schemaFields that the document of the API group lacks, and the status subresource if
// it is missing.
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
		if !slices.Contains(schema.Kinds, openAPIKind{"PodGroup"}) {
			continue
		}
		for _, field := range schemaFields {
			if !schema.hasField(strings.Split(field, ".")) {
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

// hasField reports whether the API server preserves a field.
func (s *openAPISchema) hasField(path []string) bool {
	if s.Items != nil {
		return s.Items.hasField(path)
	}
	if len(path) == 0 || s.Preserves {
		return true
	}
	field, ok := s.Properties[path[0]]
	return ok && field.hasField(path[1:])
}
