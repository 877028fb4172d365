// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"encoding/binary"
	"slices"
)

// likeness numbers the groups by what distinguishes them for the World: groups with the same number can replace each
// other. A number is valid as long as no pod below the group is placed or removed.
type likeness struct {
	*planner
	numbers   []int32 // by group; 0: not known yet
	known     map[string]int32
	buffer    []byte
	dependent []bool // by number: the class of some pod below is not Independent
}

func (pl *planner) newLikeness() *likeness {
	return &likeness{planner: pl, numbers: make([]int32, len(pl.groups)), known: map[string]int32{}, dependent: make([]bool, 1)}
}

// numberOf returns the number of a group, at least 1.
func (l *likeness) numberOf(g int32) int32 {
	if n := l.numbers[g]; n > 0 {
		return n
	}
	at := &l.groups[g]
	dependent := false
	var children []int32
	for k := at.first; k < at.end; k++ {
		n := l.numberOf(k)
		dependent = dependent || l.dependent[n]
		children = append(children, n)
	}
	b := binary.AppendUvarint(l.buffer[:0], uint64(at.missing()))
	if at.isLeaf() {
		b = append(b, 'p')
		run, class := 0, int32(-1) // a run of consecutive equal pods is encoded as one entry
		for i := range int32(len(at.pods)) {
			if l.isTaken(g, i) {
				continue
			}
			if c := l.classOf(g, i); c != class {
				if run > 0 {
					b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(class)), uint64(run))
				}
				run, class = 0, c
				dependent = dependent || l.kinds[c].kind != Independent
			}
			run++
		}
		if run > 0 {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(class)), uint64(run))
		}
	} else {
		b = append(b, 'c')
		slices.Sort(children)
		for _, n := range children {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	if at.open {
		b = append(append(b, 'l'), at.required...)
	}
	l.buffer = b
	n, ok := l.known[string(b)]
	if !ok {
		n = int32(len(l.dependent))
		l.known[string(b)] = n
		l.dependent = append(l.dependent, dependent)
	}
	l.numbers[g] = n
	return n
}
