// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// The package is part of the pure core: names and times are arguments.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, "time", purity.Module+"/pkg/message", purity.Module+"/pkg/naming")
}
