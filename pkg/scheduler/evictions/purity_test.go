// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

func TestPure(t *testing.T) {
	purity.Check(t, "time", "k8s.io/api/core/v1")
}
