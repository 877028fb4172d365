// SPDX-License-Identifier: Apache-2.0

package backfill

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

func TestPure(t *testing.T) {
	purity.Check(t, "time", purity.Module+"/pkg/placement")
}
