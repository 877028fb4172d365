// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// TestBuildersStartFromAcceptedObjects: the API server, with the webhooks, accepts what the builders of test/wrappers
// start from.
func TestBuildersStartFromAcceptedObjects(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster)
	utilruntime.Must(v2alpha2.AddToScheme(u.Scheme()))
	for _, object := range []client.Object{
		wrappers.MakePodCliqueSet("svc", u.namespace).Obj(),
		wrappers.MakePodClique("svc", 0, "main", u.namespace).Obj(),
		wrappers.MakeMemberPodClique("svc", 0, "group", 0, "main", u.namespace).Obj(),
		wrappers.MakeScalingGroup("svc", 0, "group", u.namespace).Obj(),
		wrappers.MakePodGroup("group", u.namespace).Obj(),
		wrappers.MakePod("pod", u.namespace).Obj(),
		wrappers.MakeNode("builders-node").Obj(),
	} {
		if err := u.Create(t.Context(), object); err != nil {
			t.Errorf("%T %s: %v", object, object.GetName(), err)
		}
	}
}
