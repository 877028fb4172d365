package validation_test

import (
	"testing"

	"github.com/muster-project/muster/test/purity"
)

// Objects in, errors out: the webhook, the scheduler and tests ask the same questions.
func TestPure(t *testing.T) {
	t.Parallel()
	purity.Check(t, "k8s.io/apimachinery/...", purity.Module+"/pkg/apis/scheduling/v2alpha2", purity.Module+"/pkg/gang")
}
