// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/test/purity"
)

func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, "k8s.io/api/...", "k8s.io/apimachinery/...")
}

func TestTexts(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	for name, tc := range map[string]struct{ got, want string }{
		"one":                                             {message.Count(1, "pod"), "1 pod"},
		"none":                                            {message.Count(0, "pod"), "0 pods"},
		"a noun of two words":                             {message.Count(2, "bound pod"), "2 bound pods"},
		"one, and its verb":                               {message.CountAre(1, "pod"), "1 pod is"},
		"none, and their verb":                            {message.CountAre(0, "pod"), "0 pods are"},
		"three, and their verb":                           {message.CountAre(3, "replica"), "3 replicas are"},
		"the form of a word for one":                      {message.Plural(1, "has", "have"), "has"},
		"the form of a word for two":                      {message.Plural(2, "has", "have"), "have"},
		"the form of a word for none":                     {message.Plural(0, "has", "have"), "have"},
		"a list that is complete":                         {message.ListNames(names, 5, 3, ", "), "a, b, c"},
		"a list with more than shown":                     {message.ListNames(names, 2, 3, ", "), "a, b, and 1 more"},
		"a list with more than is known":                  {message.ListNames(names, 5, 10, "; "), "a; b; c; and 7 more"},
		"a text that fits":                                {message.Truncate("four", 4), "four"},
		"a text that is too long":                         {message.Truncate("fives", 4), "fiv…"},
		"characters, not bytes":                           {message.Truncate("äöüß", 4), "äöüß"},
		"clauses that fit":                                {message.Shorten("ab; cd", 6), "ab; cd"},
		"clauses are dropped whole":                       {message.Shorten("abcdefgh; ijkl; mnop", 17), "abcdefgh; ijkl; …"},
		"one character less":                              {message.Shorten("abcdefgh; ijkl; mnop", 16), "abcdefgh; …"},
		"clauses of which the second is most of the text": {message.Shorten("ab; cdefghijklmnop", 12), "ab; cdefghi…"},
		"a single clause":                                 {message.Shorten("abcdef", 4), "abc…"},
		"clauses by characters":                           {message.Shorten("äöüäöü; äöü; ä", 13), "äöüäöü; …"},
		"CPU":                                             {message.Quantity(corev1.ResourceCPU, 1500), "1500m"},
		"memory":                                          {message.Quantity(corev1.ResourceMemory, 4<<30), "4Gi"},
		"an extended resource":                            {message.Quantity("nvidia.com/gpu", 8), "8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.got != tc.want {
				t.Errorf("got %q, want %q", tc.got, tc.want)
			}
		})
	}
}

func TestFirstClause(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		"a":                        "a",
		"a; b":                     "a",
		"1 node (n0; 8 free) b; c": "1 node (n0; 8 free) b",
		"a) b; c":                  "a) b",
	} {
		if got := message.FirstClause(text); got != want {
			t.Errorf("FirstClause(%q) = %q, want %q", text, got, want)
		}
	}
}
