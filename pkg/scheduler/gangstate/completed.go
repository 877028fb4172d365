package gangstate

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/mark"
)

// completions are the succeeded pods of a gang, and which of them count. A pod counts if it belongs to the present run
// (docs/decisions, G9): its controller has a pod that has not ended, or a bound pod was bound by the same plan, or no
// pod is left that has not ended. An earlier run of a CronJob, or an earlier attempt, never counts for a later one.
//
// Pods that have the controller and the plan in common count together, so only buckets of them are looked at when a
// controller's last pod ends or a plan's last bound pod goes.
type completions struct {
	live    map[types.UID]int       // pods that have not ended and are not being deleted, by controller
	marks   map[mark.Plan]int       // bound pods, by plan
	owners  map[types.UID]bucketSet // by controller
	plans   map[mark.Plan]bucketSet // by plan; none without one
	changed func(leaf *gang.Group, n int)
}

type bucketSet map[bucketKey]*bucket

type bucketKey struct {
	controller types.UID
	mark       mark.Plan
}

// bucket holds the succeeded pods of one controller that were bound by one plan.
type bucket struct {
	key    bucketKey
	counts bool
	leaves map[*gang.Group]int
}

// newCompletions returns none. changed is called with every change of the number of succeeded pods that count.
func newCompletions(changed func(leaf *gang.Group, n int)) completions {
	return completions{live: map[types.UID]int{}, marks: map[mark.Plan]int{}, owners: map[types.UID]bucketSet{}, plans: map[mark.Plan]bucketSet{}, changed: changed}
}

// addLive counts pods of the controller that have not ended.
func (c *completions) addLive(controller types.UID, n int) {
	before := c.live[controller]
	if after := before + n; after != 0 {
		c.live[controller] = after
	} else {
		delete(c.live, controller)
	}
	if (before == 0) == (before+n == 0) {
		return
	}
	c.check(c.owners[controller])
	if before == 0 && len(c.live) == 1 || before != 0 && len(c.live) == 0 {
		// From "nothing is left to run" to "something is", or back: all other controllers' pods are concerned.
		for owner, buckets := range c.owners {
			if owner != controller {
				c.check(buckets)
			}
		}
	}
}

// addMark counts bound pods of a plan.
func (c *completions) addMark(plan mark.Plan, n int) {
	before := c.marks[plan]
	if after := before + n; after != 0 {
		c.marks[plan] = after
	} else {
		delete(c.marks, plan)
	}
	if (before == 0) != (before+n == 0) {
		c.check(c.plans[plan])
	}
}

// addDone counts succeeded pods.
func (c *completions) addDone(key bucketKey, leaf *gang.Group, n int) {
	b := c.owners[key.controller][key]
	if b == nil {
		b = &bucket{key: key, leaves: map[*gang.Group]int{}, counts: c.counts(key)}
		insert(c.owners, key.controller, b)
		if key.mark != (mark.Plan{}) {
			insert(c.plans, key.mark, b)
		}
	}
	if b.leaves[leaf] += n; b.leaves[leaf] == 0 {
		delete(b.leaves, leaf)
	}
	if b.counts {
		c.changed(leaf, n)
	}
	if len(b.leaves) == 0 {
		forget(c.owners, key.controller, key)
		forget(c.plans, key.mark, key)
	}
}

func insert[K comparable](sets map[K]bucketSet, k K, b *bucket) {
	if sets[k] == nil {
		sets[k] = bucketSet{}
	}
	sets[k][b.key] = b
}

func forget[K comparable](sets map[K]bucketSet, k K, key bucketKey) {
	if delete(sets[k], key); len(sets[k]) == 0 {
		delete(sets, k)
	}
}

// counts reports whether succeeded pods of the bucket belong to the present run.
func (c *completions) counts(key bucketKey) bool {
	return len(c.live) == 0 || c.live[key.controller] > 0 || c.marks[key.mark] > 0
}

func (c *completions) check(buckets bucketSet) {
	for key, b := range buckets {
		counts := c.counts(key)
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

// counted returns the buckets whose pods count.
func (c *completions) counted() []*bucket {
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
