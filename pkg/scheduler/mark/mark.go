// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxNext is the maximum number of members in Mark.Next.
	MaxNext = 4
	// MaxLength is the maximum length of a text that is parsed, in bytes. A mark has at most 230 bytes if its
	// PodGroup has a UID of 36 bytes.
	MaxLength = 512
)

// Mark identifies the plan that bound a pod. The zero Mark means that there is no mark.
type Mark struct {
	// Group is the UID of the PodGroup.
	Group types.UID
	// Pods is the number of pods in the plan.
	Pods int
	// Sum is the sum of the Tags of the plan's pods. Together with Group, Pods and Sequence it identifies the plan.
	Sum uint64
	// Generation is the generation of the PodGroup whose tree was planned.
	Generation int64
	// Sequence orders the plans of one PodGroup. It is higher than the Sequence of every mark that was known when the
	// plan was made.
	Sequence int64
	// NeverWhole records that the plan is for the gang's minimum, and that at the time of the plan the gang provably
	// never had its minimum.
	NeverWhole bool
	// Next contains the Tags of the members that are bound next after this pod, cyclically: at most MaxNext, and only
	// members without which the plan does not satisfy the tree. Empty unless NeverWhole.
	Next []uint64
}

// IsZero reports whether there is no mark.
func (m *Mark) IsZero() bool { return m.Group == "" }

// SamePlan reports whether two marks belong to one plan. It returns false if one of them is the zero Mark.
func (m *Mark) SamePlan(o *Mark) bool { return !m.IsZero() && m.Plan() == o.Plan() }

// Plan identifies a plan. It is comparable, and equal for all pods that one plan bound. The zero Plan belongs to the
// zero Mark.
type Plan struct {
	Group    types.UID
	Pods     int
	Sum      uint64
	Sequence int64
}

// Plan returns the identity of the plan.
func (m *Mark) Plan() Plan {
	return Plan{Group: m.Group, Pods: m.Pods, Sum: m.Sum, Sequence: m.Sequence}
}

// Tag returns a hash of a pod's UID. Sums of tags distinguish sets of pods. Sums of plain FNV hashes do not: those of
// "p1" and "p4" equal those of "p0" and "p5". The bits are therefore mixed (the finalizer of MurmurHash3).
func Tag(uid types.UID) uint64 {
	f := fnv.New64a()
	f.Write([]byte(uid))
	h := f.Sum64()
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// fields is the number of fields of the text, which are separated by slashes: the PodGroup's UID, the number of pods,
// the sum, the generation, the sequence, NeverWhole, the next members, the id of the key, the signature.
const fields = 9

// body returns the text up to the key's id.
func (m *Mark) body() string {
	var b strings.Builder
	b.Grow(160)
	b.WriteString(string(m.Group))
	b.WriteByte('/')
	b.WriteString(strconv.Itoa(m.Pods))
	b.WriteByte('/')
	b.WriteString(strconv.FormatUint(m.Sum, 16))
	b.WriteByte('/')
	b.WriteString(strconv.FormatInt(m.Generation, 10))
	b.WriteByte('/')
	b.WriteString(strconv.FormatInt(m.Sequence, 10))
	b.WriteByte('/')
	if m.NeverWhole {
		b.WriteByte('n')
	} else {
		b.WriteByte('w')
	}
	b.WriteByte('/')
	next := make([]byte, 0, 8*MaxNext)
	for _, tag := range m.Next[:min(len(m.Next), MaxNext)] {
		next = binary.BigEndian.AppendUint64(next, tag)
	}
	b.WriteString(base64.RawURLEncoding.EncodeToString(next))
	return b.String()
}

// parse reads the fields of a body. The caller has verified the signature.
func parse(part []string) (Mark, bool) {
	pods, err := strconv.Atoi(part[1])
	if err != nil {
		return Mark{}, false
	}
	sum, err := strconv.ParseUint(part[2], 16, 64)
	if err != nil {
		return Mark{}, false
	}
	generation, err := strconv.ParseInt(part[3], 10, 64)
	if err != nil {
		return Mark{}, false
	}
	sequence, err := strconv.ParseInt(part[4], 10, 64)
	if err != nil {
		return Mark{}, false
	}
	next, err := base64.RawURLEncoding.DecodeString(part[6])
	if err != nil || len(next)%8 != 0 || len(next) > 8*MaxNext {
		return Mark{}, false
	}
	m := Mark{Group: types.UID(part[0]), Pods: pods, Sum: sum, Generation: generation, Sequence: sequence, NeverWhole: part[5] == "n"}
	for ; len(next) > 0; next = next[8:] {
		m.Next = append(m.Next, binary.BigEndian.Uint64(next))
	}
	return m, !m.IsZero()
}
