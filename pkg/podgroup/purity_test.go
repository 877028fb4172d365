// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// A translator: it converts API objects to facts, and facts and decisions to API objects.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, "time", "k8s.io/api/...", "k8s.io/apimachinery/...", purity.Module+"/pkg/apis/...",
		purity.Module+"/pkg/gang", purity.Module+"/pkg/membership", purity.Module+"/pkg/placement", purity.Module+"/pkg/message", purity.Module+"/pkg/topology")
}
