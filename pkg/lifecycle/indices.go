package lifecycle

import (
	"strconv"
	"strings"
)

// FormatIndices returns sorted indices without duplicates as text: ranges and single ones, as in 0-3,7. "" for none.
func FormatIndices(sorted []int) string {
	var b strings.Builder
	for i := 0; i < len(sorted); {
		end := i
		for end+1 < len(sorted) && sorted[end+1] == sorted[end]+1 {
			end++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(sorted[i]))
		if end > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(sorted[end]))
		}
		i = end + 1
	}
	return b.String()
}

// ContainsIndex reports whether the text of FormatIndices has an index. What cannot be read has none.
func ContainsIndex(text string, index int) bool {
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil {
				continue
			}
		}
		if from <= index && index <= to {
			return true
		}
	}
	return false
}
