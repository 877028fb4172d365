// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

func TestClassKey(t *testing.T) {
	pod := func() *wrappers.PodWrapper { return wrappers.MakePod("a", "ml").UID("a").GPUs(1).Claim("data-0") }
	base := podgroup.ClassKey(pod().Obj())
	for name, tc := range map[string]struct {
		pod  *wrappers.PodWrapper
		same bool
	}{
		"labels are looked at when a plan is made": {pod().Label("training.kubeflow.org/replica-index", "7"), true},
		"so are claims":                       {wrappers.MakePod("a", "ml").UID("a").GPUs(1).Claim("data-1"), true},
		"images matter to scores only":        {pod().Spec(func(s *corev1.PodSpec) { s.Containers[0].Image = "other" }), true},
		"names and annotations do not matter": {wrappers.MakePod("b", "ml").UID("b").GPUs(1).Claim("data-0").Annotation("x", "y"), true},
		"a claim or none":                     {wrappers.MakePod("a", "ml").UID("a").GPUs(1), false},
		"resources":                           {pod().GPUs(2), false},
		"priority":                            {pod().Priority(7), false},
		"host ports":                          {pod().HostPort(80), false},
		"node selection":                      {pod().NodeSelector("type", "x"), false},
		"tolerations":                         {pod().Toleration("x"), false},
		"affinity":                            {pod().ApartFrom("rack", "app", "a"), false},
		"another namespace":                   {wrappers.MakePod("a", "other").UID("a").GPUs(1).Claim("data-0"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podgroup.ClassKey(tc.pod.Obj()) == base; got != tc.same {
				t.Errorf("same class: %t, want %t", got, tc.same)
			}
		})
	}
}
