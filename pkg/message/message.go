// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits of the sinks that a text goes to, in characters.
const (
	// MaxSummary is what the PodGroup CRD allows in status.summary.
	MaxSummary = 256
	// MaxBrief is what the PodGroup CRD allows in status.brief.
	MaxBrief = 60
	// MaxCondition is the longest message of a condition. It also fits the note of an event (1,024 bytes) in plain
	// text.
	MaxCondition = 900
	// MaxName is the longest name of an object. An annotation that is to name one may be of any length.
	MaxName = 253
)

// Count returns a number with its noun: "1 pod", "3 pods". The plural is the noun with an s.
func Count(n int, noun string) string {
	return strconv.Itoa(n) + " " + noun + Plural(n, "", "s")
}

// Plural returns the form of a word that a number goes with: one for 1, many for any other.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// CountAre returns a number with its noun and verb: "1 pod is", "3 pods are".
func CountAre(n int, noun string) string { return Count(n, noun) + Plural(n, " is", " are") }

// ListNames joins the first names, at most limit of them, and ends with how many more there are of the total: "a, b,
// and 3 more".
func ListNames(names []string, limit, total int, separator string) string {
	shown := names[:min(len(names), limit)]
	s := strings.Join(shown, separator)
	if more := total - len(shown); more > 0 {
		s += fmt.Sprintf("%sand %d more", separator, more)
	}
	return s
}

// Truncate returns at most limit characters of s, the last one an ellipsis if anything was left out.
func Truncate(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// Shorten returns at most limit characters of a text made of clauses that are separated by "; ": as many whole clauses
// as fit, and an ellipsis if any was left out. Where more than half of the limit would be lost it cuts inside a clause,
// as Truncate does.
func Shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	const rest = "; …"
	runes := []rune(s)
	whole := strings.LastIndex(string(runes[:limit-utf8.RuneCountInString(rest)+len("; ")]), "; ")
	if whole < 0 || utf8.RuneCountInString(s[:whole]) < limit/2 {
		return Truncate(s, limit)
	}
	return s[:whole] + rest
}

// FirstClause returns the first clause of a text made of clauses that are separated by "; ". A separator in parentheses
// separates nothing.
func FirstClause(s string) string {
	depth := 0
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth <= 0 && strings.HasPrefix(s[i:], "; "):
			return s[:i]
		}
	}
	return s
}

// Quantity returns an amount of a resource as users write it. CPU comes in millicores, memory and ephemeral storage in
// bytes, any other resource in units.
func Quantity(name corev1.ResourceName, n int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return fmt.Sprint(n)
}
