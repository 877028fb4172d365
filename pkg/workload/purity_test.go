// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// The package translates between API objects, and facts and decisions.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, "time", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/component-helpers/resource", "k8s.io/utils/ptr",
		purity.Module+"/pkg/apis/...", purity.Module+"/pkg/lifecycle", purity.Module+"/pkg/message", purity.Module+"/pkg/naming", purity.Module+"/pkg/topology")
}
