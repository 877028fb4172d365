// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// ServesSet reports whether the muster-controller of a class serves a PodCliqueSet with these annotations, in a
// namespace with these labels, beside the Lease of Grove's operator, nil: there is none. If not, it returns the reason,
// as a clause.
//
// An expired Lease counts, too: an operator that is being updated comes back, and what it has created must not be taken
// for that of another. Source: docs/decisions, W12.
func ServesSet(class string, annotations, namespaceLabels map[string]string, grove *coordinationv1.Lease) (served bool, reason string) {
	if named := annotations[v1alpha1.ControllerClass]; named != "" {
		return named == class, unlessServed(named == class, "its annotation %s is %q", v1alpha1.ControllerClass, named)
	}
	if named := namespaceLabels[v1alpha1.ControllerClass]; named != "" {
		return named == class, unlessServed(named == class, "the label %s of its namespace is %q", v1alpha1.ControllerClass, named)
	}
	if grove != nil {
		return false, fmt.Sprintf("it names no class, and Grove's operator has the Lease %s/%s", grove.Namespace, grove.Name)
	}
	return true, ""
}

func unlessServed(served bool, format string, args ...any) string {
	if served {
		return ""
	}
	return fmt.Sprintf(format, args...)
}
