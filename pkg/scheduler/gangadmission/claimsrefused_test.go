// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/muster-project/muster/test/wrappers"
)

// The API server refuses a write to the claim of one member, because of a webhook for example. No part of the gang is
// bound, nothing stays allocated, the gang names the claim and the answer, other pods are scheduled, and the gang
// starts when the write is let through.
func TestWriteOfAClaimIsRefused(t *testing.T) {
	t.Parallel()
	denied := errors.New(`admission webhook "quota.example.com" denied the request`)
	resource := schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
	for name, tc := range map[string]struct {
		subresource string
		answer      error
	}{
		"the finalizer is denied":            {"", apierrors.NewForbidden(resource, "claim-1", denied)},
		"the devices are denied":             {"status", apierrors.NewForbidden(resource, "claim-1", denied)},
		"the webhook for the devices fails":  {"status", apierrors.NewInternalError(denied)},
		"the devices are always in conflict": {"status", apierrors.NewConflict(resource, "claim-1", denied)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).withDevices()
			c.gangs.refusals.KnownFor = 100 * time.Millisecond
			var letThrough atomic.Bool
			c.client.PrependReactor("update", "resourceclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
				claim, ok := a.(clienttesting.UpdateAction).GetObject().(interface{ GetName() string })
				if !ok || claim.GetName() != "claim-1" || a.GetSubresource() != tc.subresource || letThrough.Load() {
					return false, nil, nil
				}
				return true, nil, tc.answer
			})
			c.gangWithClaims().run().eventually("the gang says why", func() bool {
				f, _ := c.gangs.registry.Facts(key("a"))
				return strings.Contains(f.Failure, "claim-1") && strings.Contains(f.Failure, denied.Error())
			})
			c.eventually("all claims free", func() bool { return c.isQuiet() && len(c.inUse()) == 0 })
			c.pod(wrappers.MakePod("plain", "ml")).eventually("another pod is scheduled", func() bool { return len(c.boundOf("plain")) == 1 })
			if bound := c.boundOf("a-"); len(bound) > 0 {
				t.Fatalf("pods %v are bound without the devices of another", bound)
			}
			letThrough.Store(true)
			c.wholeOf("a", len(claimNames))
		})
	}
}
