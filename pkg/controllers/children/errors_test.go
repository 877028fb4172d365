package children

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

func TestTroubles(t *testing.T) {
	t.Parallel()
	foreign := func(message string) []metav1.Condition {
		return []metav1.Condition{
			{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Message: "told elsewhere"},
			{Type: v1alpha1.ConditionForeignObject, Status: metav1.ConditionTrue, Message: message},
		}
	}
	for name, tc := range map[string]struct {
		before, after []metav1.Condition
		want          []string // messages
	}{
		"none":                 {},
		"new":                  {nil, foreign("in the way"), []string{"in the way"}},
		"the same as before":   {foreign("in the way"), foreign("in the way"), nil},
		"with another message": {foreign("in the way"), foreign("another"), []string{"another"}},
		"gone":                 {foreign("in the way"), nil, nil},
		// A condition takes 1,024 characters and more, an event 1,024 bytes, and refuses the rest.
		"longer than an event may be": {nil, foreign(strings.Repeat("ä", 1024)), []string{strings.Repeat("ä", 510) + "..."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range Troubles(tc.before, tc.after) {
				got = append(got, c.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
