// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// The pure core: the package imports only the tree, the planner and the standard library.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, purity.Module+"/pkg/gang", purity.Module+"/pkg/placement")
}
