package desired

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// A template may come back: A, B, A. What followed A once and does not now must not say so.
func TestFollowedHashes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before       *string
		present      string
		current      bool
		want         *string
		wantTemplate *string
	}{
		"every pod follows":                          {nil, "b", true, ptr.To("b"), ptr.To("tpl-b")},
		"every pod follows the next":                 {ptr.To("a"), "b", true, ptr.To("b"), ptr.To("tpl-b")},
		"some do not: that of before":                {ptr.To("a"), "b", false, ptr.To("a"), ptr.To("tpl-a")},
		"that of before is back, and some have left": {ptr.To("a"), "a", false, nil, nil},
		"there is no hash yet":                       {ptr.To("a"), "", true, ptr.To("a"), ptr.To("tpl-a")},
	} {
		clique, group := &v1alpha1.PodClique{}, &v1alpha1.PodCliqueScalingGroup{}
		if tc.present != "" {
			clique.Annotations = map[string]string{v1alpha1.AnnotationGenerationHash: tc.present}
			clique.Labels = map[string]string{v1alpha1.LabelPodTemplateHash: "tpl-" + tc.present}
			group.Annotations = clique.Annotations
		}
		cliqueStatus := v1alpha1.PodCliqueStatus{CurrentPodCliqueSetGenerationHash: tc.before}
		if tc.before != nil {
			cliqueStatus.CurrentPodTemplateHash = ptr.To("tpl-" + *tc.before)
		}
		groupStatus := v1alpha1.PodCliqueScalingGroupStatus{CurrentPodCliqueSetGenerationHash: tc.before}
		setCliqueUpdate(clique, &cliqueStatus, &lifecycle.CliqueUpdateDecision{Current: tc.current}, now)
		setGroupUpdate(group, &groupStatus, &lifecycle.GroupUpdateDecision{Current: tc.current, Outdated: !tc.current, Known: true}, now)
		if got := cliqueStatus.CurrentPodCliqueSetGenerationHash; !ptr.Equal(got, tc.want) {
			t.Errorf("%s: the PodClique follows %q, want %q", name, ptr.Deref(got, ""), ptr.Deref(tc.want, ""))
		}
		if got := cliqueStatus.CurrentPodTemplateHash; !ptr.Equal(got, tc.wantTemplate) {
			t.Errorf("%s: the PodClique follows template %q, want %q", name, ptr.Deref(got, ""), ptr.Deref(tc.wantTemplate, ""))
		}
		if got := groupStatus.CurrentPodCliqueSetGenerationHash; !ptr.Equal(got, tc.want) {
			t.Errorf("%s: the scaling group follows %q, want %q", name, ptr.Deref(got, ""), ptr.Deref(tc.want, ""))
		}
	}
}
