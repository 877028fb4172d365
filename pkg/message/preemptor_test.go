// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"strings"
	"testing"

	"github.com/muster-project/muster/pkg/message"
)

func TestPreemptor(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63) + "/" + strings.Repeat("b", 253)
	for name, tc := range map[string]struct{ text, want string }{
		"the mark of a pod": {"muster-scheduler: preempting to accommodate a higher priority PodGroup, ml/urgent (priority 1000): PodGroup ml/train of priority 100 ends as a whole; plan 5a0c1b2d",
			"ml/urgent (priority 1000)"},
		"the condition of a PodGroup": {"preempted at 2026-03-01 10:31:35 UTC by default/chat-0.a (priority 1000 over -5): all 8 pods, because its minimum ends as a whole or not at all",
			"default/chat-0.a (priority 1000 over -5)"},
		"of two the first":              {"a/b (priority 1); c/d (priority 2)", "a/b (priority 1)"},
		"a preemptor that is gone":      {"muster-scheduler: preempting to accommodate a higher priority PodGroup, / (priority 0): its priority is lower; plan x", ""},
		"the stock scheduler":           {"default-scheduler: preempting to accommodate a higher priority pod", ""},
		"no text":                       {"", ""},
		"the longest names":             {"by " + long + " (priority -1000000000 over -2147483648): x", long + " (priority -1000000000 over -2147483648)"},
		"a name that is too long":       {"by ml/" + strings.Repeat("b", 254) + " (priority 1)", ""},
		"a very long text":              {strings.Repeat("x", 1<<15), ""},
		"control characters":            {"by ml/ur\x1b[31mgent (priority 1)", ""},
		"control characters around it":  {"\x1b[31m\nml/urgent (priority 1)\x00\u202e", "ml/urgent (priority 1)"},
		"letters that look alike":       {"by ml/urgеnt (priority 1)", ""}, // a Cyrillic е
		"a priority that is no number":  {"by ml/urgent (priority very high)", ""},
		"a priority without an end":     {"by ml/urgent (priority " + strings.Repeat("9", 1000), ""},
		"invalid UTF-8 before the name": {"\xff\xfeml/urgent (priority 1)", "ml/urgent (priority 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := message.Preemptor(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPreemption(t *testing.T) {
	t.Parallel()
	const surplus = "preempted at 2026-03-01 10:31:35 UTC by default/chat-0.a (priority 1000 over -5): 4 pods above its minimum"
	long := "preempted at 2026-03-01 10:31:35 UTC by " + strings.Repeat("a", 63) + "/" + strings.Repeat("b", 253) + " (priority -1000000000 over -2147483648): "
	for name, tc := range map[string]struct{ text, want string }{
		"pods above the minimum":         {surplus, surplus},
		"pods of it wait":                {surplus + "; pods of it wait for room", surplus},
		"control characters around it":   {"\x1b[31m\n" + surplus + "\x00\u202e", surplus},
		"a very long text after it":      {long + strings.Repeat("x", 1<<15), long + strings.Repeat("x", 100)},
		"a time that is none":            {strings.Replace(surplus, "2026-03-01", "yesterday", 1), ""},
		"nothing was lost":               {"preempted at 2026-03-01 10:31:35 UTC by default/chat (priority 1000 over 5): ", ""},
		"the preemptor is no PodGroup":   {strings.Replace(surplus, "/", " ", 1), ""},
		"control characters in the name": {strings.Replace(surplus, "chat", "ch\x1b[31mat", 1), ""},
		"the mark of a pod has no time":  {"preempted by ml/urgent (priority 1000): 4 pods above its minimum", ""},
		"no text":                        {"", ""},
		"of two the first":               {surplus + "; " + strings.Replace(surplus, "4 pods", "5 pods", 1), surplus},
		"letters that look alike":        {strings.Replace(surplus, "chat", "ch\u0430t", 1), ""},
		"what was lost ends with a letter that cannot be printed": {surplus + "\u0430", surplus},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := message.Preemption(tc.text)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if len(got) > 600 {
				t.Errorf("%d characters", len(got))
			}
		})
	}
}
