// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, "k8s.io/api/apps/v1", "k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/types",
		purity.Module+"/pkg/apis/scheduling/v2alpha2")
}
