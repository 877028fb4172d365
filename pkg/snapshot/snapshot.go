// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads what muster-scheduler reads of a cluster, at one time, from an API server (Take) or from a
// file (Read), and writes it to a file (Snapshot.Write).
//
// The file is JSON, one object per line, compressed with gzip: a header, the objects as the API server has them,
// without what no decision depends on, and an end that says how many there are.
package snapshot

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Snapshot is what muster-scheduler reads of a cluster.
type Snapshot struct {
	// Taken is when the objects were read.
	Taken time.Time
	// Server is the version of the API server, "" if it is not known; By that of the program that took the snapshot.
	Server, By string
	// Unread are the kinds that could not be read.
	Unread []Unread
	// Objects are sorted by kind, in the order of Kinds, then as the API server has listed them.
	Objects []runtime.Object
}

// Unread is a kind of objects that could not be read.
type Unread struct {
	Resource string `json:"resource"` // "nodes", "podgroups.scheduling.run.ai"
	Why      string `json:"why"`      // "forbidden", "missing" (the API server does not know the kind), or the error
	Without  string `json:"without"`  // Kind.Without
}

const (
	// WhyForbidden is Unread.Why if the user may not list the objects.
	WhyForbidden = "forbidden"
	// WhyMissing is Unread.Why if the API server does not have the kind.
	WhyMissing = "missing"
)

// All returns the objects of a kind.
func All[T client.Object](s *Snapshot) []T {
	var all []T
	for _, object := range s.Objects {
		if o, ok := object.(T); ok {
			all = append(all, o)
		}
	}
	return all
}

// Names returns the names of the objects of a resource, "podgroups.scheduling.run.ai", in a namespace; "": in all.
func (s *Snapshot) Names(resource, namespace string) []string {
	kind := reflect.TypeOf(kindOf(resource).new())
	var names []string
	for _, object := range s.Objects {
		if o, ok := object.(client.Object); ok && reflect.TypeOf(object) == kind && (namespace == "" || o.GetNamespace() == namespace) {
			names = append(names, o.GetName())
		}
	}
	return names
}

// IsUnread returns why the objects of a kind could not be read. "": they were.
func (s *Snapshot) IsUnread(resource string) string {
	for _, u := range s.Unread {
		if u.Resource == resource {
			return u.Why
		}
	}
	return ""
}
