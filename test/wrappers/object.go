// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// object sets the metadata of what a builder builds; W is the builder.
type object[W any] struct {
	builder W
	meta    *metav1.ObjectMeta
}

// UID sets metadata.uid.
func (o object[W]) UID(uid string) W {
	o.meta.UID = types.UID(uid)
	return o.builder
}

// Generation sets metadata.generation.
func (o object[W]) Generation(generation int64) W {
	o.meta.Generation = generation
	return o.builder
}

// CreationTimestamp sets metadata.creationTimestamp.
func (o object[W]) CreationTimestamp(t time.Time) W {
	o.meta.CreationTimestamp = metav1.NewTime(t)
	return o.builder
}

// Terminating sets a deletion timestamp, and the finalizer that such an object needs.
func (o object[W]) Terminating() W {
	now := metav1.Now()
	o.meta.DeletionTimestamp = &now
	o.meta.Finalizers = append(o.meta.Finalizers, "test/hold")
	return o.builder
}

// Label sets one label.
func (o object[W]) Label(key, value string) W {
	o.meta.Labels = with(o.meta.Labels, key, value)
	return o.builder
}

// Annotation sets one annotation.
func (o object[W]) Annotation(key, value string) W {
	o.meta.Annotations = with(o.meta.Annotations, key, value)
	return o.builder
}

// ControllerVersion sets the API version of the controller that was set before.
func (o object[W]) ControllerVersion(version string) W {
	o.meta.OwnerReferences[0].APIVersion = version
	return o.builder
}

func (o object[W]) controller(version, kind, name, uid string) W {
	yes := true
	o.meta.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: version, Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes, BlockOwnerDeletion: &yes}}
	return o.builder
}

// with returns m with one more entry; m may be nil.
func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
