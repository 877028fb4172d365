// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxNextTags is the maximum number of members in Mark.NextTags.
	MaxNextTags = 4
	// MaxTextLength is the maximum length of a text that is parsed, in bytes. A mark has at most 230 bytes if its
	// PodGroup has a UID of 36 bytes.
	MaxTextLength = 512
)

// Mark identifies the plan that bound a pod. The zero Mark means that there is no mark.
type Mark struct {
	// GroupUID is the UID of the PodGroup.
	GroupUID types.UID
	// PodCount is the number of pods in the plan.
	PodCount int
	// TagSum is the sum of the PodTags of the plan's pods. Together with GroupUID, PodCount and Sequence it identifies
	// the plan.
	TagSum uint64
	// Generation is the generation of the PodGroup whose tree was planned.
	Generation int64
	// Sequence orders the plans of one PodGroup. It is higher than the Sequence of every mark that was known when the
	// plan was made.
	Sequence int64
	// NeverWhole records that the plan is for the gang's minimum, and that at the time of the plan the gang provably
	// never had its minimum.
	NeverWhole bool
	// NextTags contains the PodTags of the members that are bound next after this pod, cyclically: at most MaxNextTags,
	// and only members without which the plan does not satisfy the tree. Empty unless NeverWhole.
	NextTags []uint64
}

// IsZero reports whether there is no mark.
func (m *Mark) IsZero() bool { return m.GroupUID == "" }

// IsOfSamePlan reports whether two marks belong to one plan. It returns false if one of them is the zero Mark.
func (m *Mark) IsOfSamePlan(o *Mark) bool { return !m.IsZero() && m.PlanID() == o.PlanID() }

// PlanID identifies a plan. It is comparable, and equal for all pods that one plan bound. The zero PlanID belongs to
// the zero Mark.
type PlanID struct {
	GroupUID types.UID
	PodCount int
	TagSum   uint64
	Sequence int64
}

// PlanID returns the identity of the plan.
func (m *Mark) PlanID() PlanID {
	return PlanID{GroupUID: m.GroupUID, PodCount: m.PodCount, TagSum: m.TagSum, Sequence: m.Sequence}
}

// PodTag returns a hash of a pod's UID. Sums of tags distinguish sets of pods. Sums of plain FNV hashes do not: those
// of "p1" and "p4" equal those of "p0" and "p5". The bits are therefore mixed (the finalizer of MurmurHash3).
func PodTag(uid types.UID) uint64 {
	f := fnv.New64a()
	f.Write([]byte(uid))
	h := f.Sum64()
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// fieldCount is the number of fields of the text, which are separated by slashes: the PodGroup's UID, the number of
// pods, the sum, the generation, the sequence, NeverWhole, the next members, the id of the key, the signature.
const fieldCount = 9

// bodyText returns the text up to the key's id.
func (m *Mark) bodyText() string {
	var b strings.Builder
	b.Grow(160)
	b.WriteString(string(m.GroupUID))
	b.WriteByte('/')
	b.WriteString(strconv.Itoa(m.PodCount))
	b.WriteByte('/')
	b.WriteString(strconv.FormatUint(m.TagSum, 16))
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
	next := make([]byte, 0, 8*MaxNextTags)
	for _, tag := range m.NextTags[:min(len(m.NextTags), MaxNextTags)] {
		next = binary.BigEndian.AppendUint64(next, tag)
	}
	b.WriteString(base64.RawURLEncoding.EncodeToString(next))
	return b.String()
}

// parseMark reads the fields of a body. The caller has verified the signature.
func parseMark(part []string) (Mark, bool) {
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
	if err != nil || len(next)%8 != 0 || len(next) > 8*MaxNextTags {
		return Mark{}, false
	}
	m := Mark{GroupUID: types.UID(part[0]), PodCount: pods, TagSum: sum, Generation: generation, Sequence: sequence, NeverWhole: part[5] == "n"}
	for ; len(next) > 0; next = next[8:] {
		m.NextTags = append(m.NextTags, binary.BigEndian.Uint64(next))
	}
	return m, !m.IsZero()
}
