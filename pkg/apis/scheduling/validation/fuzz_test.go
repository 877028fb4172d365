// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"encoding/json"
	"testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
	"github.com/muster-project/muster/pkg/podgroup"
)

// FuzzValidatePodGroup: any object is validated without a panic, and the scheduler, which reads it again, agrees: a
// valid object has a tree, and a tree that cannot be built is invalid.
func FuzzValidatePodGroup(f *testing.F) {
	for _, spec := range []string{
		`{}`,
		`{"minMember":4}`,
		`{"minMember":0,"minSubGroup":1,"subGroups":[{"name":"a","minMember":2},{"name":"b","minMember":2}]}`,
		`{"minMember":3,"subGroups":[{"name":"a","minMember":2},{"name":"b","parent":"a","minMember":2}]}`,
		`{"minSubGroup":2,"subGroups":[{"name":"a","parent":"b"},{"name":"b","parent":"a"},{"name":"","minMember":-1}]}`,
		`{"priorityClassName":"x","preemptibility":"maybe","topologyConstraint":{"requiredTopologyLevel":"rack"},"backoffLimit":3}`,
	} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pg, old := &v2alpha2.PodGroup{}, &v2alpha2.PodGroup{}
		if json.Unmarshal(data, &pg.Spec) != nil {
			return // the API server reads it first
		}
		errs, _ := validation.ValidatePodGroup(pg)
		if len(errs) > 0 && validation.CombineErrors(errs).Error() == "" {
			t.Fatal("refused without a word")
		}
		updateErrs, _ := validation.ValidatePodGroupUpdate(pg, old)
		if len(updateErrs) < len(errs) {
			t.Fatalf("%v on create, %v on update", errs, updateErrs)
		}
		tree, err := podgroup.Tree(&pg.Spec)
		switch {
		case (tree == nil) == (err == nil):
			t.Fatalf("tree %v and error %v", tree, err)
		case (len(errs) == 0) != (err == nil):
			t.Fatalf("validation says %v, the scheduler %v", errs, err)
		case err == nil && tree.MinPods() < 1:
			t.Fatal("a gang of no pods")
		}
	})
}
