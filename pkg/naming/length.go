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

// LongestHostname returns the longest host name that a pod of the clique gets with these numbers of replicas. group ""
// means a standalone clique; groupReplicas is not read then. Numbers below 1 count as 1.
func LongestHostname(set string, setReplicas int32, group string, groupReplicas int32, clique string, replicas int32) string {
	last := func(n int32) int { return int(max(n, 1)) - 1 }
	name := PodClique(set, last(setReplicas), clique)
	if group != "" {
		name = MemberPodClique(set, last(setReplicas), group, last(groupReplicas), clique)
	}
	return Hostname(name, last(replicas))
}
