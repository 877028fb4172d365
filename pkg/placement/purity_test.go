// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// The pure core: the package imports only the tree and the standard library.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, purity.Module+"/pkg/gang")
}
