// Package startorder is what the waiting container does: it looks at the PodCliques of its replica of a PodCliqueSet until
// those that must be started before have started, and returns then.
//
// It watches PodCliques, not pods: one object for each clique, which says how many of its pods are ready. When a parent
// has started is decided by lifecycle.Unmet, as everywhere else.
package startorder
