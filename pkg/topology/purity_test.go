// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// The pure core: the package imports only the standard library.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t)
}
