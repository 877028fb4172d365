package podclique

import (
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/scheduler/report" // want `imports github.com/muster-project/muster/pkg/scheduler/report: controllers and scheduler meet in API objects`
	"github.com/muster-project/muster/test/sim"
)

func TestFree(t *testing.T) { t.Log(time.Now(), sim.Steps, report.Leaf) }
