// SPDX-License-Identifier: Apache-2.0

package count

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// completions stores the succeeded pods of a gang and which of them count. A succeeded pod counts if it belongs to
// the current run (docs/decisions, G9): its controller has a pod that has not finished, or a bound pod was bound by
// the same plan, or no unfinished pod is left. Pods of an earlier run of a CronJob, or of an earlier attempt, never
// count for a later one.
//
// Pods with the same controller and the same plan count or do not count together. When the last unfinished pod of a
// controller, or the last bound pod of a plan, is removed, only the buckets of that controller or plan are checked.
type completions struct {
	live    map[types.UID]int          // unfinished pods that are not being deleted, by controller
	marks   map[marks.PlanID]int       // bound pods, by plan
	owners  map[types.UID]bucketSet    // by controller
	plans   map[marks.PlanID]bucketSet // by plan; pods without a plan are not included
	changed func(leaf *gang.Group, n int)
}

type bucketSet map[bucketKey]*bucket

type bucketKey struct {
	controller types.UID
	mark       marks.PlanID
}

// bucket contains the succeeded pods of one controller that were bound by one plan.
type bucket struct {
	key    bucketKey
	counts bool
	leaves map[*gang.Group]int
}

// newCompletions returns an empty completions. changed is called for every change of the number of succeeded pods
// that count.
func newCompletions(changed func(leaf *gang.Group, n int)) completions {
	return completions{live: map[types.UID]int{}, marks: map[marks.PlanID]int{}, owners: map[types.UID]bucketSet{}, plans: map[marks.PlanID]bucketSet{}, changed: changed}
}

// addLive adds n unfinished pods of the controller.
func (c *completions) addLive(controller types.UID, n int) {
	before := c.live[controller]
	addTo(c.live, controller, n)
	if (before == 0) == (before+n == 0) {
		return
	}
	c.recheckBuckets(c.owners[controller])
	if before == 0 && len(c.live) == 1 || before != 0 && len(c.live) == 0 {
		// The first unfinished pod of the gang appeared, or the last one is gone: this affects the pods of all other
		// controllers.
		for owner, buckets := range c.owners {
			if owner != controller {
				c.recheckBuckets(buckets)
			}
		}
	}
}

// addMark adds n bound pods of a plan.
func (c *completions) addMark(plan marks.PlanID, n int) {
	before := c.marks[plan]
	addTo(c.marks, plan, n)
	if (before == 0) != (before+n == 0) {
		c.recheckBuckets(c.plans[plan])
	}
}

// addDone adds n succeeded pods.
func (c *completions) addDone(key bucketKey, leaf *gang.Group, n int) {
	b := c.owners[key.controller][key]
	if b == nil {
		b = &bucket{key: key, leaves: map[*gang.Group]int{}, counts: c.countsBucket(key)}
		insertBucket(c.owners, key.controller, b)
		if key.mark != (marks.PlanID{}) {
			insertBucket(c.plans, key.mark, b)
		}
	}
	addTo(b.leaves, leaf, n)
	if b.counts {
		c.changed(leaf, n)
	}
	if len(b.leaves) == 0 {
		removeBucket(c.owners, key.controller, key)
		removeBucket(c.plans, key.mark, key)
	}
}

func insertBucket[K comparable](sets map[K]bucketSet, k K, b *bucket) {
	if sets[k] == nil {
		sets[k] = bucketSet{}
	}
	sets[k][b.key] = b
}

func removeBucket[K comparable](sets map[K]bucketSet, k K, key bucketKey) {
	if delete(sets[k], key); len(sets[k]) == 0 {
		delete(sets, k)
	}
}

// countsBucket reports whether succeeded pods of the bucket belong to the current run.
func (c *completions) countsBucket(key bucketKey) bool {
	return len(c.live) == 0 || c.live[key.controller] > 0 || c.marks[key.mark] > 0
}

func (c *completions) recheckBuckets(buckets bucketSet) {
	for key, b := range buckets {
		counts := c.countsBucket(key)
		if counts == b.counts {
			continue
		}
		b.counts = counts
		for leaf, n := range b.leaves {
			if !counts {
				n = -n
			}
			c.changed(leaf, n)
		}
	}
}

// countedBuckets returns the buckets whose pods count.
func (c *completions) countedBuckets() []*bucket {
	var out []*bucket
	for _, buckets := range c.owners {
		for _, b := range buckets {
			if b.counts {
				out = append(out, b)
			}
		}
	}
	return out
}
