// SPDX-License-Identifier: Apache-2.0

package grouping_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/utils/ptr", "github.com/google/cel-go/...", "sigs.k8s.io/yaml",
		purity.Module+"/pkg/apis/scheduling/v2alpha2", purity.Module+"/pkg/membership", purity.Module+"/pkg/message")
}
