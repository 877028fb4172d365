// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/scheduler/evictions"
)

// transitions is a set of changes of phases of gangs, or of stages of evictions, "Elected -> Queued". Safe for
// concurrent use.
type transitions struct {
	table string // the file that documents them
	mu    sync.Mutex
	seen  sets.Set[string]
}

func newTransitions() *transitions { return &transitions{table: "doc.go", seen: sets.New[string]()} }

func newStageTransitions() *transitions {
	return &transitions{table: "../evictions/doc.go", seen: sets.New[string]()}
}

func (x *transitions) record(from, to Phase) {
	if from.hasLeader() && (to == Idle || to == Complete || to == Gated) {
		return // possible from all of them
	}
	x.insert(from, to)
}

func (x *transitions) recordStage(from, to evictions.Stage) { x.insert(from, to) }

func (x *transitions) insert(from, to fmt.Stringer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen.Insert(from.String() + " -> " + to.String())
}

// documentedTransitions reads a table.
func documentedTransitions(t *testing.T, table string) sets.Set[string] {
	t.Helper()
	f, err := os.Open(table)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := sets.New[string]()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		from, to, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "//"), "->")
		if !ok {
			continue
		}
		for phase := range strings.SplitSeq(to, ",") {
			out.Insert(strings.TrimSpace(from) + " -> " + strings.TrimSpace(phase))
		}
	}
	return out
}

// rare are changes that not every set of 2,000 seeds has: a gate that begins while surplus is planned.
var rare = sets.New("Gated -> Committed")

// check compares the changes with the table; all: each change of the table, but for rare ones, must have been
// seen.
func (x *transitions) check(t *testing.T, all bool) {
	t.Helper()
	documented := documentedTransitions(t, x.table)
	if others := x.seen.Difference(documented); len(others) > 0 {
		t.Errorf("changes that are not in the table of %s: %v", x.table, sets.List(others))
	}
	if missing := documented.Difference(x.seen).Difference(rare); all && len(missing) > 0 {
		t.Errorf("changes of the table of %s that were not seen: %v", x.table, sets.List(missing))
	}
}
