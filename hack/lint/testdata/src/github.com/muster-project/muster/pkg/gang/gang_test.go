package gang

import (
	"os"
	"testing"
	"time"

	"github.com/muster-project/muster/test/sim"
)

func TestFree(t *testing.T) { t.Log(os.Args, time.Now(), sim.Steps) }
