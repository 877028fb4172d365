// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// The package takes objects and returns errors, for the webhook, the scheduler and tests alike.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, "k8s.io/apimachinery/...", purity.Module+"/pkg/apis/scheduling/v2alpha2", purity.Module+"/pkg/gang", purity.Module+"/pkg/topology")
}
