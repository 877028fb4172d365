package naming

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// In the signatures: set is the name of the PodCliqueSet, i the index of one of its replicas; group and clique are names
// as the set's template spells them; j is the index of a replica of a scaling group.

// PodGroup returns the name of the PodGroup of replica i of a set. Its Service has the same name, and so has the
// subdomain of its pods: they are different kinds.
func PodGroup(set string, i int) string { return set + "-" + strconv.Itoa(i) }

// HeadlessService returns the name of the Service that gives the pods of replica i of a set their host names.
func HeadlessService(set string, i int) string { return PodGroup(set, i) }

// ServiceAddress returns the DNS name of that Service. The cluster's domain is cluster.local, as in Grove.
func ServiceAddress(set string, i int, namespace string) string {
	return HeadlessService(set, i) + "." + namespace + ".svc.cluster.local"
}

// PodClique returns the name of a standalone PodClique, one that is in no scaling group.
func PodClique(set string, i int, clique string) string { return PodGroup(set, i) + "-" + clique }

// ScalingGroup returns the name of a PodCliqueScalingGroup.
func ScalingGroup(set string, i int, group string) string { return PodGroup(set, i) + "-" + group }

// GroupReplica returns the name of replica j of a scaling group: a node of the PodGroup's tree, not an object.
func GroupReplica(set string, i int, group string, j int) string {
	return ScalingGroup(set, i, group) + "-" + strconv.Itoa(j)
}

// MemberPodClique returns the name of the PodClique of a clique in replica j of a scaling group.
func MemberPodClique(set string, i int, group string, j int, clique string) string {
	return GroupReplica(set, i, group, j) + "-" + clique
}

// KindControllerRevision is the kind of the objects that keep the revisions of a set.
const KindControllerRevision = "ControllerRevision"

// Revision returns the name of the ControllerRevision that keeps the revision of a set with that hash.
func Revision(set, hash string) string { return set + "-" + hash }

// HPA returns the name of the HorizontalPodAutoscaler of a PodClique or PodCliqueScalingGroup of that full name.
func HPA(target string) string { return target }

// PodGang returns the value of the label grove.io/podgang on what belongs to replica j of a scaling group with that
// minAvailable, as Grove counts them: the first minAvailable replicas are of the base gang "<set>-<i>", the rest are
// numbered from 0 again. It names no object here.
func PodGang(set string, i int, group string, j, minAvailable int) (gang string, scaled bool) {
	if j < minAvailable {
		return PodGroup(set, i), false
	}
	return ScalingGroup(set, i, group) + "-" + strconv.Itoa(j-minAvailable), true
}

// StartRole returns the name of the Role, and of its RoleBinding, with which waiting containers of a set read PodCliques.
func StartRole(set string) string { return "grove.io:pcs:" + set }

// Hostname returns the host name of a pod of the PodClique of that full name.
func Hostname(podClique string, index int) string { return podClique + "-" + strconv.Itoa(index) }

// Pod returns the name of the pod with that index in a PodClique. template is the hash of what it is made from: pods of
// different templates have different names (docs/decisions, U8). replaced is the UID of the pod object of the same
// index that is still there when this one is made (its node is unreachable); "" if there is none, which is the rule.
//
// The name is a function of its arguments, so that a controller that does not see yet what it has made asks for the
// same name again and is refused: two pods for one need cannot come to be. The UID of the PodClique is in it, so that
// pods of a namesake that was deleted a moment ago are not in the way. Pods of different indices never share a name,
// whatever the hash: the index is spelled out.
func Pod(podClique, cliqueUID, template string, index int, replaced string) string {
	return Hostname(podClique, index) + "-" + suffix(cliqueUID, template, strconv.Itoa(index), replaced)
}

// PodIndex returns the index in a name that Pod has given; -1: there is none in it.
func PodIndex(name string) int {
	parts := strings.Split(name, "-")
	if len(parts) < 3 {
		return -1
	}
	index, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil {
		return -1
	}
	return index
}

// suffixLength is that of generated names in Kubernetes.
const suffixLength = 5

// suffix returns characters out of 27 that spell no words, made from the parts.
func suffix(parts ...string) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	n := h.Sum64()
	n ^= n >> 32 // the low bits of FNV alone mix badly
	b := make([]byte, suffixLength)
	for i := range b {
		b[i] = alphabet[n%uint64(len(alphabet))]
		n /= uint64(len(alphabet))
	}
	return string(b)
}
