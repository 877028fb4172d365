// SPDX-License-Identifier: Apache-2.0

package naming

const (
	// MaxLength is the maximum length of a hostname and of a label value in Kubernetes. The full name of a PodClique
	// is used as both; in hostnames, with the index of a pod appended.
	MaxLength = 63

	// MaxCombinedLength is the maximum combined length of the names of a set, of a scaling group (if the clique
	// belongs to one) and of a clique, the same limit as in Grove. 63 characters leave 18 for the separators and
	// indices: at most five dashes and thirteen digits of the three indices.
	MaxCombinedLength = 45
)

// ExcessLength returns the number of characters by which the names of a set, of a scaling group ("" for a standalone
// clique) and of a clique exceed MaxCombinedLength, 0 if they fit.
func ExcessLength(set, group, clique string) int {
	return max(0, len(set)+len(group)+len(clique)-MaxCombinedLength)
}
