package gang_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// The pure core: the standard library alone.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t)
}
