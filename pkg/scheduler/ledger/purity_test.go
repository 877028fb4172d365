// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t)
}
