// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

const (
	group = types.UID("6f2c1f0e-7d43-4f0e-9a77-0c9f9b8f1a11")
	pod   = types.UID("0a9d5f6c-3f68-4b92-8a55-d1c5a2c8e001")
	other = types.UID("0a9d5f6c-3f68-4b92-8a55-d1c5a2c8e002")
)

func keys(t testing.TB, current string, ids ...string) *Keys {
	t.Helper()
	secrets := map[string][]byte{}
	for _, id := range ids {
		secrets[id] = []byte("secret of key " + id + ", long enough")
	}
	k, err := NewKeys(current, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sample() Mark {
	return Mark{GroupUID: group, PodCount: 16, TagSum: 0x0123456789abcdef, Generation: 3, Sequence: 2, NeverWhole: true,
		NextTags: []uint64{PodTag("a"), PodTag("b"), PodTag("c"), PodTag("d")}}
}

func TestVerifyReturnsWhatWasSigned(t *testing.T) {
	t.Parallel()
	k := keys(t, "k1", "k1")
	for name, want := range map[string]Mark{
		"a plan for a minimum":             sample(),
		"a plan of one pod names no other": {GroupUID: group, PodCount: 1, TagSum: 1, Generation: 1, Sequence: 1, NeverWhole: true},
		"a plan for surplus":               {GroupUID: group, PodCount: 20_000, TagSum: 1<<64 - 1, Generation: 1 << 40, Sequence: 1 << 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := k.SignMark(pod, want)
			got, ok := k.VerifyMark(pod, text)
			if diff := cmp.Diff(want, got); !ok || diff != "" {
				t.Errorf("verified: %t (-signed +verified):\n%s", ok, diff)
			}
			if len(text) > 230 {
				t.Errorf("the text has %d bytes: %s", len(text), text)
			}
		})
	}
}

func TestNothingButASignedTextVerifies(t *testing.T) {
	t.Parallel()
	k := keys(t, "k1", "k1")
	text := k.SignMark(pod, sample())
	last := strings.LastIndexByte(text, '/')
	tests := map[string]struct {
		pod  types.UID
		text string
	}{
		"no text":                                           {pod, ""},
		"a mark of another pod of the plan":                 {other, text},
		"a mark of a pod without a UID":                     {"", text},
		"another PodGroup":                                  {pod, strings.Replace(text, string(group), string(other), 1)},
		"another number of pods":                            {pod, strings.Replace(text, "/16/", "/17/", 1)},
		"another generation":                                {pod, strings.Replace(text, "/3/2/", "/4/2/", 1)},
		"a mark of a gang that was never admitted, changed": {pod, strings.Replace(text, "/n/", "/w/", 1)},
		"no signature":                                      {pod, text[:last+1]},
		"a shorter signature":                               {pod, text[:len(text)-4]},
		"a longer signature":                                {pod, text + "AAAA"},
		"a field more":                                      {pod, "x/" + text},
		"a field less":                                      {pod, text[strings.IndexByte(text, '/')+1:]},
		"the text of an unsigned mark":                      {pod, "group/4/0123456789abcdef"},
		"a text of 200 KiB":                                 {pod, strings.Repeat("a/", 100<<10)},
		"a signature of a key that is not known":            {pod, keys(t, "k2", "k2").SignMark(pod, sample())},
		"a key of the same id and another secret":           {pod, must(NewKeys("k1", map[string][]byte{"k1": []byte("0123456789abcdef")})).SignMark(pod, sample())},
		"the mark as bytes that decode to the same":         {pod, text[:len(text)-1] + next(text[len(text)-1])},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if m, ok := k.VerifyMark(tc.pod, tc.text); ok {
				t.Errorf("verified as %+v", m)
			}
		})
	}
	var none *Keys
	if _, ok := none.VerifyMark(pod, text); ok {
		t.Error("verified without a key")
	}
	if text := none.SignMark(pod, sample()); text != "" {
		t.Errorf("signed without a key: %s", text)
	}
	if text := k.SignMark(pod, Mark{}); text != "" {
		t.Errorf("signed no mark: %s", text)
	}
}

func must(k *Keys, err error) *Keys {
	if err != nil {
		panic(err)
	}
	return k
}

// next returns the character of base64url that differs only in the unused low bits.
func next(c byte) string { return string(c + 1) }

func TestKeysAreReplacedOneAtATime(t *testing.T) {
	t.Parallel()
	before, both, after := keys(t, "k1", "k1"), keys(t, "k2", "k1", "k2"), keys(t, "k2", "k2")
	old, fresh := before.SignMark(pod, sample()), both.SignMark(pod, sample())
	type answer struct{ Verified, Unknown bool }
	ask := func(k *Keys, text string) answer {
		_, ok := k.VerifyMark(pod, text)
		return answer{ok, k.LacksKeyOf(text)}
	}
	for name, tc := range map[string]struct{ got, want answer }{
		"the old mark before":               {ask(before, old), answer{Verified: true}},
		"the new mark before":               {ask(before, fresh), answer{Unknown: true}},
		"the old mark with both keys":       {ask(both, old), answer{Verified: true}},
		"the new mark with both keys":       {ask(both, fresh), answer{Verified: true}},
		"the old mark with the new key":     {ask(after, old), answer{Unknown: true}},
		"the new mark with the new key":     {ask(after, fresh), answer{Verified: true}},
		"a mark without any key":            {ask(nil, old), answer{Unknown: true}},
		"a text without the form of a mark": {ask(nil, "group/4/0123456789abcdef"), answer{}},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, tc.got, tc.want)
		}
	}
}

func TestInvalidKeys(t *testing.T) {
	t.Parallel()
	good := []byte("0123456789abcdef")
	many := map[string][]byte{}
	for _, id := range strings.Split("abcdefghi", "") {
		many[id] = good
	}
	for name, tc := range map[string]struct {
		current string
		secrets map[string][]byte
	}{
		"no key":                    {"k1", nil},
		"the current key is absent": {"k2", map[string][]byte{"k1": good}},
		"a short secret":            {"k1", map[string][]byte{"k1": good[:15]}},
		"an empty id":               {"", map[string][]byte{"": good}},
		"an id with a slash":        {"a/b", map[string][]byte{"a/b": good}},
		"an id that is too long":    {"k1", map[string][]byte{"k1": good, strings.Repeat("k", 17): good}},
		"too many keys":             {"a", many},
	} {
		if _, err := NewKeys(tc.current, tc.secrets); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestPodsOfOnePlanAreOfOnePlan(t *testing.T) {
	t.Parallel()
	a, b := sample(), sample()
	b.NextTags = []uint64{1}
	c := sample()
	c.Sequence++
	if !a.IsOfSamePlan(&b) {
		t.Error("two pods of one plan are not of one plan")
	}
	if a.IsOfSamePlan(&c) {
		t.Error("two plans over the same pods are one")
	}
	if none := (Mark{}); none.IsOfSamePlan(&none) {
		t.Error("two pods without a mark are of one plan")
	}
}

// FuzzVerify: a text that is verified successfully is, byte for byte, the text that was signed for this pod.
func FuzzVerify(f *testing.F) {
	k := keys(f, "k2", "k1", "k2")
	f.Add("", string(pod))
	f.Add("group/4/0123456789abcdef", string(pod))
	f.Add(k.SignMark(pod, sample()), string(pod))
	f.Add(k.SignMark(pod, sample()), string(other))
	f.Add(keys(f, "k1", "k1").SignMark(pod, sample()), string(pod))
	f.Add(keys(f, "k3", "k3").SignMark(pod, sample()), string(pod))
	f.Add(strings.Repeat("/", 8), "")
	f.Fuzz(func(t *testing.T, text, uid string) {
		m, ok := k.VerifyMark(types.UID(uid), text)
		if !ok {
			if !m.IsZero() {
				t.Errorf("%q does not verify, and is %+v", text, m)
			}
			return
		}
		for _, signer := range []*Keys{k, keys(t, "k1", "k1")} {
			if signer.SignMark(types.UID(uid), m) == text {
				return
			}
		}
		t.Errorf("%q verifies for %q as %+v, and is not its text", text, uid, m)
	})
}

func BenchmarkVerify(b *testing.B) {
	k := keys(b, "k1", "k1")
	for name, text := range map[string]string{
		"signed":  k.SignMark(pod, sample()),
		"forged":  keys(b, "k2", "k2").SignMark(pod, sample()),
		"200 KiB": strings.Repeat("a/", 100<<10),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k.VerifyMark(pod, text)
			}
		})
	}
}
