// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/naming"
)

// templateKeys are the keys of the labels and annotations that a template set on an object. They are stored on the
// object, because otherwise a key that was removed from the template could not be distinguished from a key that
// another client added.
type templateKeys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// storeTemplateKeys stores the keys of a template's labels and annotations in the annotations of an object that is
// created from it, unless there are no keys.
func storeTemplateKeys(ours, labels, annotations map[string]string) {
	if len(labels) == 0 && len(annotations) == 0 {
		return
	}
	text, err := json.Marshal(templateKeys{slices.Sorted(maps.Keys(labels)), slices.Sorted(maps.Keys(annotations))})
	if err != nil { // cannot happen: strings can always be marshalled
		panic(fmt.Sprintf("keys of a template: %v", err))
	}
	ours[naming.AnnotationTemplateKeys] = string(text)
}

// StoreAnnotationKeys stores the keys of the annotations of a desired object on it, so that Updated takes away those
// that are not desired any more. What users add to the object is told apart by it.
func StoreAnnotationKeys(want metav1.Object) {
	if ours := maps.Clone(want.GetAnnotations()); len(ours) > 0 {
		storeTemplateKeys(ours, nil, want.GetAnnotations())
		want.SetAnnotations(ours)
	}
}

// storedTemplateKeys returns the keys that storeTemplateKeys has stored on an object, none if there are none, or they
// cannot be read.
func storedTemplateKeys(live metav1.Object) templateKeys {
	var given templateKeys
	if err := json.Unmarshal([]byte(live.GetAnnotations()[naming.AnnotationTemplateKeys]), &given); err != nil {
		return templateKeys{}
	}
	return given
}

// valuesOfTemplate returns the labels and annotations that an object has from its template; nil if their keys are not
// stored on it.
func valuesOfTemplate(live metav1.Object) (labels, annotations map[string]string) {
	given := storedTemplateKeys(live)
	of := func(keys []string, has map[string]string) map[string]string {
		var values map[string]string
		for _, key := range keys {
			if value, ok := has[key]; ok && !naming.IsInternalAnnotation(key) {
				if values == nil {
					values = map[string]string{}
				}
				values[key] = value
			}
		}
		return values
	}
	return of(given.Labels, live.GetLabels()), of(given.Annotations, live.GetAnnotations())
}

// keysTakenOut returns the keys that live has from its template and that are no longer desired. None if the keys of the
// template are not stored on live.
func keysTakenOut(live, want metav1.Object) templateKeys {
	given := storedTemplateKeys(live)
	gone := func(given []string, live, want map[string]string) []string {
		return slices.DeleteFunc(given, func(key string) bool {
			_, has := live[key]
			_, wanted := want[key]
			return !has || wanted || naming.IsInternalAnnotation(key)
		})
	}
	return templateKeys{
		gone(given.Labels, live.GetLabels(), want.GetLabels()),
		gone(given.Annotations, live.GetAnnotations(), want.GetAnnotations()),
	}
}
