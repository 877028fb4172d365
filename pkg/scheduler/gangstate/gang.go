package gangstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/mark"
)

// memberState says how far a pod has come. "Assumed" is the scheduler's own belief, "posted" is a binding that the API
// server accepted, "bound" is what an informer has shown.
type memberState int

const (
	pending memberState = iota
	assumed
	posted
	bound
	succeeded
)

// member is one pod of a gang. Guarded by Registry.mu. After a change of it Registry.recount brings the gang's numbers up
// to date.
type member struct {
	pod   *corev1.Pod // newest version seen; never modified
	gang  *gangState
	leaf  string // "" for a PodGroup without sub-groups; meaningless if misplaced != ""
	class string // podgroup.ClassKey: equal for pods that the filters cannot tell apart
	state memberState
	gpus  int64  // that the pod requests
	node  string // planned, assumed or bound
	since time.Time

	misplaced string // why the pod counts towards no leaf, "carries sub-group ..."; "" = it has a leaf
	gate      string // why another plugin keeps it from the scheduling queue: "is gated by ..."; "" = none does
	leaving   bool   // bound, but released (partial.go): counts nowhere from that decision on
	parting   parting

	mark     mark.Mark // verified, or that of the plan whose binding was posted; zero = none
	markText string    // the annotation that mark was read from

	key      orderKey
	share    share // what the gang's numbers have of the member
	row      int   // 1 + its place in gangState.rows; 0: none
	inPool   *pool // where it waits; nil: it does not
	poolName string
	pooled   share // as which inPool has it
	inLeaf   int   // in its leafQueue
	inAge    int   // in one of pool.byAge
}

// gangState is one PodGroup with its pods. Guarded by Registry.mu.
type gangState struct {
	key     Key
	why     string             // what the log says about a held pod
	group   *v2alpha2.PodGroup // nil: does not exist (yet, or any more)
	tree    *gang.Tree         // nil if group is nil or treeErr is set
	treeErr error
	members map[types.UID]*member
	numbers *numbers
	rows    []row // the members that Facts and Begin ask about, in no order

	admitted       bool             // sticky: the minimum was bound once (docs/decisions, G11)
	admittedGroups sets.Set[string] // names of sub-groups that were admitted once
	waited         time.Time        // since when the pods could satisfy the tree, by the status of the PodGroup; zero = unknown
	vanished       int              // members in Registry.vanished
	plan           *Plan            // committed and not yet over; nil = none

	replacing bool // its PodGroup says that pods are being replaced

	victims map[*member]time.Time // those that are being preempted, since when; nil = none

	election
	attempt
	backoff
	yield
	partial
	indexed
}

// election is who speaks for the gang.
type election struct {
	leader     types.UID // "" = none elected
	seen       bool      // PreEnqueue has let the leader pass since it was elected; after a failed plan: its cycle has begun
	woken      time.Time // when it was last activated
	popped     bool      // its scheduling cycle has begun, and its attempt has not
	lost       int       // cycles in a row that failed before the attempt began
	task       Task      // what the leader is to plan
	completeAt time.Time // since when the pods can satisfy the tree; zero = they cannot
	gatedUntil time.Time // single surplus pods: units go first until then; zero = they do not
}

// attempt is what became of the last attempt to plan.
type attempt struct {
	verdict    podgroup.Refusal // why it failed
	refusedAt  time.Time        // when; zero = the last attempt was not refused
	generation uint64           // indices.cluster when it began
	changed    bool             // its own pods changed since it began
	parked     bool             // it was refused, and the next one has not begun
	ripe       bool             // parked, and what the refusal rested on may have gone
	missed     bool             // what an attempt that is being made rests on may have gone

	// Surplus sub-groups that were refused wait beside single pods.
	unitsTried   bool             // the gang's units were refused, and it is at its single pods
	unitsTriedAt uint64           // indices.cluster when that attempt began
	unitVerdict  podgroup.Refusal // why; At is when
}

// backoff is the pause after plans that failed on their way.
type backoff struct {
	failures  int       // plans aborted or half bound in a row
	notBefore time.Time // no leader before this time
	keepUntil time.Time // others let it go first until then, or until its next attempt
}

// yield is a gang that lets another go first.
type yield struct {
	yieldedTo *gangState // the gang that this one let go first; nil = none
	yieldedAt time.Time  // when it did so; of the first time since its last attempt
	yieldOver bool       // that gang was tried, or wants nothing more
	yielders  []*gangState
}

// partial is what is known of a gang that may be bound in part and never whole, see partial.go.
type partial struct {
	incompleteFor time.Duration // how long the gang has held what it cannot use
	proven        bool          // the marks prove it, as of the last look
	broken        bool          // a plan of this process was bound in part

	marked   int   // members with a verified mark; 0: the gang costs nothing here
	sequence int64 // the highest of the marks that were seen

	fresh      bool // the next two hold for the members as they are
	holds      bool // pods are bound by this scheduler for this PodGroup, and the gang is not admitted
	neverWhole bool // and it is proven that it never was whole
	known      bool // was proven, and nothing has happened since that this process could have missed
	proofs     int  // how often the members were looked at
}

// known reports whether the tree of the present group has been built or refused.
func (g *gangState) known() bool { return g.tree != nil || g.treeErr != nil }

// ownChange notes that the gang's own pods changed: what was refused may fit now.
func (g *gangState) ownChange() {
	g.changed = true
	g.unitsTried = false
}

// unpark ends the wait of a refused gang.
func (g *gangState) unpark() { g.parked, g.ripe, g.unitsTried = false, false, false }

// Task is what a leader's cycle has to plan.
type Task int

const (
	// Minimum: the smallest set of pods that makes the tree whole, all or nothing.
	Minimum Task = iota
	// Refill: a gang that was admitted lost pods of its minimum, or of another sub-group that it holds, or got a newly
	// required sub-group.
	Refill
	// SurplusUnit: one whole sub-group above minSubGroup.
	SurplusUnit
	// SurplusSingle: single pods above minMember.
	SurplusSingle
)

// isSurplus reports whether the task is for what a gang can do without.
func (t Task) isSurplus() bool { return t == SurplusUnit || t == SurplusSingle }

// String returns the task's name in metrics and logs.
func (t Task) String() string {
	switch t {
	case Minimum:
		return "minimum"
	case Refill:
		return "refill"
	case SurplusUnit:
		return "surplus-unit"
	default:
		return "surplus-single"
	}
}
