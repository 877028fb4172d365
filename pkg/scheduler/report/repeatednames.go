// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
)

// repeatedNamesInterval is how long the answer for a level may be outdated: it visits all nodes, and labels rarely
// change.
const repeatedNamesInterval = 30 * time.Second

// repeatedNames knows of which levels two domains have the same value of their own label: racks r0 of two blocks.
type repeatedNames struct {
	Options
	mu    sync.Mutex
	known map[string]repeatedName // by labels of the levels, guarded by mu
}

type repeatedName struct {
	repeats bool
	at      time.Time
}

func newRepeatedNames(o Options) *repeatedNames {
	return &repeatedNames{Options: o, known: map[string]repeatedName{}}
}

// outerLabels returns Facts.OuterLabels.
func (r *repeatedNames) outerLabels(group *v2alpha2.PodGroup, now time.Time) map[podgroup.NamedLevel][]string {
	if !podgroup.HasTopologyLevel(&group.Spec) {
		return nil
	}
	outer := podgroup.OuterLabels(&group.Spec, podgroup.WithListed(group, r.LevelsOf))
	maps.DeleteFunc(outer, func(level podgroup.NamedLevel, above []string) bool { return !r.repeats(level.Label, above, now) })
	return outer
}

// repeats reports whether nodes with the same value of the label differ in the labels above it.
func (r *repeatedNames) repeats(label string, above []string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := strings.Join(above, ",") + "," + label
	if known, ok := r.known[key]; ok && now.Sub(known.at) < repeatedNamesInterval {
		return known.repeats
	}
	maps.DeleteFunc(r.known, func(_ string, known repeatedName) bool { return now.Sub(known.at) >= repeatedNamesInterval })
	nodes, _ := r.Nodes.List(labels.Everything()) // of a cache: there is no error
	around, repeats := map[string]string{}, false
	for _, node := range nodes {
		value, ok := node.Labels[label]
		if !ok {
			continue
		}
		var values []string
		for _, key := range above {
			if outer, ok := node.Labels[key]; ok {
				values = append(values, outer)
			}
		}
		if len(values) < len(above) { // in no domain
			continue
		}
		path := strings.Join(values, ",")
		before, seen := around[value]
		if around[value] = path; seen && before != path {
			repeats = true
			break
		}
	}
	r.known[key] = repeatedName{repeats, now}
	return repeats
}
