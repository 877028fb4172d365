// SPDX-License-Identifier: Apache-2.0

package v2alpha2

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestSubGroupStatusIsALine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]SubGroupStatus{
		"decode-0: 3/4 bound, 4 exist":             {Name: "decode-0", Bound: 3, Required: 4, Created: 4},
		"decode-0: 3/4 bound, 4 exist, admitted":   {Name: "decode-0", Bound: 3, Required: 4, Created: 4, Admitted: true},
		"chat-0.x_y: 2/1 bound, 2 exist, admitted": {Name: "chat-0.x_y", Bound: 2, Required: 1, Created: 2, Satisfied: true, Admitted: true},
		"decode-0: 3/4 bound, 4 exist, on rack r7": {Name: "decode-0", Bound: 3, Required: 4, Created: 4, Placement: "rack r7"},
		"a: 1/1 bound, 1 exist, on rack admitted":  {Name: "a", Bound: 1, Required: 1, Created: 1, Satisfied: true, Placement: "rack admitted"},
		"a: 2/2 bound, 2 exist, on 2 racks (on, admitted), 1 node without rack, admitted": {
			Name: "a", Bound: 2, Required: 2, Created: 2, Satisfied: true, Admitted: true, Placement: "2 racks (on, admitted), 1 node without rack"},
		"lost: 0/0 bound, 0 exist, admitted":               {Name: "lost", Admitted: true},
		"large: 2147483647/2147483647 bound, 150000 exist": {Name: "large", Bound: 2147483647, Required: 2147483647, Created: 150000, Satisfied: true},
	} {
		data, err := json.Marshal(want)
		if err != nil || string(data) != `"`+text+`"` {
			t.Errorf("%+v is written as %s (%v), want %q", want, data, err, text)
		}
		var got SubGroupStatus
		if err := json.Unmarshal([]byte(`"`+text+`"`), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestSubGroupStatusOfAnotherForm: a text that a later version or a user has
// written does not prevent PodGroups from being listed.
func TestSubGroupStatusOfAnotherForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]SubGroupStatus{
		"":                              {},
		"decode":                        {Name: "decode"},
		"decode: x":                     {Name: "decode"},
		"decode: all is well, admitted": {Name: "decode", Admitted: true},
		"decode: 3/4 bound, 4 exist, 2 ready, admitted":  {Name: "decode", Bound: 3, Required: 4, Created: 4, Admitted: true},
		"decode: 99999999999/4 bound, 4 exist, admitted": {Name: "decode", Admitted: true},
		"decode: -1/4 bound, 4 exist":                    {Name: "decode"},
	} {
		var got SubGroupStatus
		if err := json.Unmarshal([]byte(`"`+text+`"`), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestFormerSubGroups: entries of an earlier version are read, and written with
// the same fields only.
func TestFormerSubGroups(t *testing.T) {
	t.Parallel()
	var s PodGroupStatus
	if err := json.Unmarshal([]byte(`{"subGroups":[{"name":"a","required":4,"created":4,"bound":3,"admitted":true},{"name":"b","required":1,"created":0,"bound":0,"admitted":false}]}`), &s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(PodGroupStatus{FormerSubGroups: []FormerSubGroupStatus{{Name: "a", Admitted: true}, {Name: "b"}}}, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSubGroupStatusThroughTheConverter: the converter that dynamic clients use
// keeps the lines, too.
func TestSubGroupStatusThroughTheConverter(t *testing.T) {
	t.Parallel()
	group := &PodGroup{Status: PodGroupStatus{SubGroups: []SubGroupStatus{{Name: "a", Bound: 1, Required: 2, Created: 2, Admitted: true}}}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(group)
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := unstructured.NestedStringSlice(content, "status", "tree")
	if diff := cmp.Diff([]string{"a: 1/2 bound, 2 exist, admitted"}, lines); err != nil || diff != "" {
		t.Errorf("(-want +got): %v\n%s", err, diff)
	}
	back := &PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(group, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
