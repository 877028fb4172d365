// SPDX-License-Identifier: Apache-2.0

package naming_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// The pure core: the label keys of the API, and the standard library.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, purity.Module+"/pkg/apis/grove/v1alpha1")
}
