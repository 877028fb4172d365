// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A scheduler whose context has ended does not hold up whoever writes a claim.
func TestClaimIsSetAfterTheInformerHasStopped(t *testing.T) {
	t.Parallel()
	claims, _ := newOfflineClaims(nil)
	claims.watcher.Stop()
	for _, want := range []string{"1", "2"} {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "gpu", Namespace: "ml"}}
		if got := claims.set(claim).ResourceVersion; got != want {
			t.Errorf("version %s, want %s", got, want)
		}
	}
}
