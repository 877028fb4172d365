// SPDX-License-Identifier: Apache-2.0

package count

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

func TestPure(t *testing.T) {
	purity.Check(t, "time", "k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/util/sets",
		purity.Module+"/pkg/gang", purity.Module+"/pkg/scheduler/marks")
}
