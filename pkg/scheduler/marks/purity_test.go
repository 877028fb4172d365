// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

func TestPure(t *testing.T) {
	purity.Check(t, "crypto/hmac", "crypto/sha256", "k8s.io/apimachinery/pkg/types", purity.Module+"/pkg/gang")
}
