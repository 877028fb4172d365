// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// gangState is one PodGroup with its pods. Guarded by Registry.mu.
type gangState struct {
	key     Key
	why     string             // reason in log messages why the gang's pods are gated
	group   *v2alpha2.PodGroup // nil: does not exist (yet, or any longer)
	tree    *gang.Tree         // nil if group is nil or treeErr is set
	treeErr error
	members map[types.UID]*member
	numbers *count.Numbers
	rows    []row // the members that Facts and BeginAttempt need, in no order

	placed *placedPods // nil: the gang names no topology level

	opts     *Options         // of the Registry; constant, like the profiles
	profiles sets.Set[string] // of the Registry

	admitted       bool             // sticky: the minimum was bound (docs/decisions, G11)
	admittedAt     time.Time        // when, until its minimum is ready; zero = it was, or this process did not admit it
	admittedGroups sets.Set[string] // names of sub-groups that were admitted
	lostGroups     sets.Set[string] // names of sub-groups below an admitted parent that were admitted and lost all of their pods since; nil = none
	waited         time.Time        // since when the pods could satisfy the tree, by the PodGroup's status; zero = unknown
	vanished       int              // members in Registry.vanished
	plan           *Plan            // committed and not finished; nil = none

	begun map[string]*begunUnit // surplus sub-groups that were begun and may be torn, by name (torn.go); nil = none

	replacing bool // its PodGroup reports that pods are being replaced

	lostFrom []LostPods // bound pods that the admitted gang has lost since its minimum was bound, the latest last; at most maxLost

	wholeWith int // pods of its minimum when this was bound last; 0 = it was not, as far as this process knows

	departing map[*member]*evictions.Eviction // see Registry.recordDeparting; nil = none

	preemption   *evictions.Eviction // by which the gang makes room for itself; nil = none
	hopeless     hopeless            // preemption would not help the gang
	abstention   abstention          // why the last attempt did not preempt
	wasted       int                 // consecutive preemptions after which the gang did not fit, or that could not mark its victims
	cuts         int                 // consecutive searches for victims that were cut short
	roomPriority int32               // of its last attempt: see Work.Asker
	running      runningPriority     // see evictionPriority
	arrivedAt    time.Time           // when this process saw a new pod of it last
	evictedAt    time.Time           // when a pod of it was evicted last; zero = it was not, as far as this process knows
	victimOf     *evictions.Eviction // by which it is to lose pods; nil = none, or all deletions were requested
	collected    int                 // 1 + its index in candidates.gangs, during a call of Candidates; 0 = no member was found yet
	preempted    *podgroup.Preempted // what it lost last; nil = nothing

	promise       *promise  // room that it is promised; nil = none
	promisedSince time.Time // since when an earlier process promised it room that is to be chosen again; zero = none is
	gaveUpAt      time.Time // when it gave up a promise last; zero = it did not, as far as this process knows
	promiseCuts   int       // consecutive searches for room for it for which the time did not suffice
	unfitUntil    time.Time // no room is chosen for it before, because it fitted nowhere, or this could not be told

	election
	attempt
	backoff
	partial
	runs
	indexed
}

// election is the state of the gang's leader.
type election struct {
	phase      Phase     // set by Registry.enterPhase only
	leader     types.UID // "" = none elected; see Phase.hasLeader
	woken      time.Time // when it was last activated
	retried    bool      // it was refused, and the cause may be gone, or it yielded, or is in the queue with a later rank: until its attempt has ended it claims the room that it needs, and gangs of lower rank let it go first
	yieldedAt  time.Time // when it let another gang go first since its last attempt; zero = it did not
	popped     any       // the Rank by which the queue has handed out the leader last; nil = unknown
	lost       int       // consecutive cycles that failed before the attempt began
	task       Task      // what the leader must plan
	completeAt time.Time // since when the pods can satisfy the tree; zero = they cannot, or nothing is to be planned
	gatedUntil time.Time // in phase Gated: sub-groups or minimums go first until then; zero = no wait
	gatedSince time.Time // since when surplus waits while room grows (waitsInGrowth); zero = it does not
}

// attempt is the result of the last attempt to plan.
type attempt struct {
	refusal   podgroup.Refusal // why the attempt failed
	refusedAt time.Time        // when; zero = the last attempt was not refused
	changed   bool             // the gang's own pods changed since the attempt began
	progress  Progress         // of attempts that were cut short
	seen      uint64           // Registry.mayHelp when the cycle of the leader began
	wait      *wait            // what it waits for, in phases of refused gangs and until the next attempt has ended; nil = nothing

	// State of surplus sub-groups that were refused while other surplus is tried.
	passed      Task             // the last such task: what follows it is tried now; 0: none
	unitRefusal podgroup.Refusal // why it was refused; At is when
}

// backoff is the pause after plans that were aborted or bound only in part.
type backoff struct {
	failures  int       // consecutive plans that were aborted or bound only in part
	failure   string    // why the last of them failed, as users are told
	failing   time.Time // when the first of them failed
	notBefore time.Time // no leader is elected before this time, unless an event may help
	newest    uint64    // Registry.planSeq when the cycle of the leader began last
}

// partial is the state of a gang that may be partially bound without ever having had its minimum, see partial.go.
type partial struct {
	incompleteFor time.Duration // how long the gang has occupied resources that it cannot use
	proven        bool          // the marks proved it when they were last examined
	broken        bool          // a plan of this process was bound only in part

	marked   int   // members with a verified mark; 0: the gang needs no examination
	sequence int64 // the highest sequence of the observed marks

	fresh      bool // the next two fields are up to date with the members
	holds      bool // pods are bound by this scheduler for this PodGroup, and the gang is not admitted
	neverWhole bool // also, it is proven that the gang never had its minimum
	known      bool // was proven, and since then no event occurred that this process could have missed
	proofs     int  // how often the members were examined
}

// hasMinimum reports whether the minimum is bound.
func (g *gangState) hasMinimum() bool {
	return g.tree != nil && g.numbers.Bound.Satisfied(g.tree.Root())
}

// hasTreeResult reports whether the tree of the current PodGroup has been built or rejected.
func (g *gangState) hasTreeResult() bool { return g.tree != nil || g.treeErr != nil }

// recordOwnChange records that the gang's own pods changed: a refused plan may fit now.
func (g *gangState) recordOwnChange() {
	g.changed = true
	g.passed = 0
	g.hopeless.until, g.hopeless.seen = time.Time{}, 0
}

// Task is what a leader's cycle must plan.
type Task int

const (
	// Minimum: the smallest set of pods that satisfies the tree, all or nothing.
	Minimum Task = iota
	// Refill: an admitted gang lost pods of its minimum, or of another admitted sub-group, or a further sub-group
	// became required.
	Refill
	// LostUnit: one whole sub-group above minSubGroup that was admitted before and lost all of its pods
	// (docs/decisions, G20).
	LostUnit
	// SurplusUnit: one whole sub-group above minSubGroup.
	SurplusUnit
	// SurplusSingle: single pods above minMember.
	SurplusSingle
)

// isSurplus reports whether the task is for pods that the gang does not need for its minimum.
func (t Task) isSurplus() bool { return t >= LostUnit }

// followsMinimums reports whether the task comes after the minimums of other gangs in the queue.
func (t Task) followsMinimums() bool { return t >= SurplusUnit }

// String returns the task's name in metrics and logs.
func (t Task) String() string {
	switch t {
	case Minimum:
		return "minimum"
	case Refill:
		return "refill"
	case LostUnit:
		return "lost-unit"
	case SurplusUnit:
		return "surplus-unit"
	default:
		return "surplus-single"
	}
}
