// SPDX-License-Identifier: Apache-2.0

// Package startorder implements the init container that delays the start of a pod: it watches the PodCliques of its
// replica of a PodCliqueSet and returns when the cliques that must start before have started.
//
// It watches PodCliques, not pods: there is one object for each clique, which reports how many of its pods are ready.
// lifecycle.Unmet decides when a parent has started, as everywhere else.
package startorder
