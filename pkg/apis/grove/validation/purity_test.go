// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// The package takes objects and returns errors, for webhooks and tests alike.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, "time", "k8s.io/api/...", "k8s.io/apimachinery/...",
		purity.Module+"/pkg/apis/...", purity.Module+"/pkg/naming", purity.Module+"/pkg/topology")
}
