// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// In the signatures, set is the name of the PodCliqueSet and i the index of one of its replicas; group and clique are
// names in the set's template; j is the index of a replica of a scaling group.

// PodGroupName returns the name of the PodGroup of replica i of a set. The replica's Service and the subdomain of its
// pods have the same name.
func PodGroupName(set string, i int) string { return set + "-" + strconv.Itoa(i) }

// HeadlessService returns the name of the Service that provides the hostnames of the pods of replica i of a set.
func HeadlessService(set string, i int) string { return PodGroupName(set, i) }

// ServiceAddress returns the DNS name of that Service. The cluster's domain is cluster.local, as in Grove.
func ServiceAddress(set string, i int, namespace string) string {
	return HeadlessService(set, i) + "." + namespace + ".svc.cluster.local"
}

// PodCliqueName returns the name of a standalone PodClique, which belongs to no scaling group.
func PodCliqueName(set string, i int, clique string) string {
	return PodGroupName(set, i) + "-" + clique
}

// ScalingGroup returns the name of a PodCliqueScalingGroup.
func ScalingGroup(set string, i int, group string) string { return PodGroupName(set, i) + "-" + group }

// GroupReplica returns the name of replica j of a scaling group: a node of the PodGroup's tree, not an object.
func GroupReplica(set string, i int, group string, j int) string {
	return ScalingGroup(set, i, group) + "-" + strconv.Itoa(j)
}

// MemberPodClique returns the name of the PodClique of a clique in replica j of a scaling group.
func MemberPodClique(set string, i int, group string, j int, clique string) string {
	return GroupReplica(set, i, group, j) + "-" + clique
}

// KindControllerRevision is the kind of the objects that store the revisions of a set.
const KindControllerRevision = "ControllerRevision"

// RevisionName returns the name of the ControllerRevision that stores the revision of a set with the given hash.
func RevisionName(set, hash string) string { return set + "-" + hash }

// AutoscalerName returns the name of the HorizontalPodAutoscaler of the PodClique or PodCliqueScalingGroup with the
// given full name.
func AutoscalerName(target string) string { return target }

// PodGangLabel returns the value of the label grove.io/podgang on objects of replica j of a scaling group with the
// given minAvailable, numbered as in Grove: the first minAvailable replicas belong to the base gang "<set>-<i>", and
// the others are numbered from 0 again. No object of Muster has this name.
func PodGangLabel(set string, i int, group string, j, minAvailable int) (gang string, scaled bool) {
	if j < minAvailable {
		return PodGroupName(set, i), false
	}
	return ScalingGroup(set, i, group) + "-" + strconv.Itoa(j-minAvailable), true
}

// StartRoleName returns the name of the Role, and of its RoleBinding, that allows the waiting init containers of a set
// to read PodCliques.
func StartRoleName(set string) string { return "grove.io:pcs:" + set }

// PodHostname returns the hostname of a pod of the PodClique with the given full name.
func PodHostname(podClique string, index int) string { return podClique + "-" + strconv.Itoa(index) }

// PodName returns the name of the pod with the given index in a PodClique. template is the hash of the template that
// the pod is created from: pods of different templates have different names (docs/decisions, U8). replaced is the UID
// of the pod object with the same index that still exists when this pod is created, because its node is unreachable;
// usually it is "".
//
// The name is a function of its arguments. A controller that does not observe yet that it has created the pod requests
// the same name again and is rejected, so that no index gets two pods. The name depends on the UID of the PodClique,
// so that it does not conflict with pods of a PodClique of the same name that was deleted a moment ago. Pods of
// different indices never share a name, whatever the hash, because the name contains the index.
func PodName(podClique, cliqueUID, template string, index int, replaced string) string {
	return PodHostname(podClique, index) + "-" + hashSuffix(cliqueUID, template, strconv.Itoa(index), replaced)
}

// PodIndex returns the index in a name that PodName returned, -1 if the name contains none.
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

// suffixLength is the length of the suffix of generated names in Kubernetes.
const suffixLength = 5

// hashSuffix returns a suffix computed from the parts, out of 27 characters that do not form words.
func hashSuffix(parts ...string) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	n := h.Sum64()
	n ^= n >> 32 // the low bits of FNV alone are badly mixed
	b := make([]byte, suffixLength)
	for i := range b {
		b[i] = alphabet[n%uint64(len(alphabet))]
		n /= uint64(len(alphabet))
	}
	return string(b)
}
