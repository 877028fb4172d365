package naming

const (
	// MaxLength is what Kubernetes allows for a host name and for a label value. The full name of a PodClique is both,
	// the former with a pod's index behind it.
	MaxLength = 63

	// MaxCombinedLength is the most characters that the names of a set, of a scaling group (if the clique is in one) and
	// of a clique may have together: Grove's budget. 63 characters leave 18 for what stands between them: at most five
	// dashes and thirteen digits of the three indices.
	MaxCombinedLength = 45
)

// Excess returns by how many characters the names of a set, of a scaling group ("" for a standalone clique) and of a
// clique are longer than they may be together. 0: they fit.
func Excess(set, group, clique string) int {
	return max(0, len(set)+len(group)+len(clique)-MaxCombinedLength)
}
