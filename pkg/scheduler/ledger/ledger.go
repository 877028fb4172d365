// SPDX-License-Identifier: Apache-2.0

// Package ledger says what the GPUs of a cluster are used for at one moment. It is pure: it has no clock, no client and
// no logger.
//
// Every allocatable GPU is in exactly one State, so the states of a resource sum to what is allocatable.
package ledger

// State is what a GPU is used for. The zero State is Working.
type State int

const (
	// Working: a ready pod has it, and the minimum of the pod's gang is ready.
	Working State = iota
	// Starting: a pod has it that is being bound or is not ready, or the minimum of whose gang is not.
	Starting
	// Partial: a pod has it whose gang never had its minimum, and nothing is planned for the gang.
	Partial
	// BelowMinimum: a pod has it whose gang has lost pods of its minimum.
	BelowMinimum
	// TornUnit: a pod has it of a sub-group that is not whole, above the minimum of the gang.
	TornUnit
	// Victim: a pod has it that ends because it was preempted.
	Victim
	// Terminating: a pod has it that ends for another reason.
	Terminating
	// KeptForReplacement: it is free, and kept for the replacement of a deleted pod.
	KeptForReplacement
	// KeptForPreemptor: it is free, and kept for those for whom pods were preempted.
	KeptForPreemptor
	// KeptForReservation: it is free, and kept for a gang that has waited for long.
	KeptForReservation
	// FreeUsable: it is free, and a pod that waits for room could use it, but its gang does not fit as a whole.
	FreeUsable
	// FreeUnusable: it is free, pods wait for such GPUs, and none of them fits on the node.
	FreeUnusable
	// FreeUnwanted: it is free, and no pod that waits for room needs such a GPU.
	FreeUnwanted

	// States is the number of states.
	States = iota
)

var stateNames = [States]string{
	"working", "starting", "partial", "below-minimum", "torn-unit", "terminating-victim", "terminating",
	"kept-for-replacement", "kept-for-preemptor", "kept-for-reservation", "free-usable", "free-unusable", "free-unwanted",
}

// String returns the name of the state in metrics.
func (s State) String() string { return stateNames[s] }

// StateOf returns the state of the GPUs of a pod on a node. gang is that of its gang: Working if the gang's minimum is
// ready, or the pod has no gang. ends: the pod is being deleted; evicted: because it was preempted.
func StateOf(gang State, ready, ends, evicted bool) State {
	switch {
	case ends && evicted:
		return Victim
	case ends:
		return Terminating
	case gang != Working:
		return gang
	case !ready:
		return Starting
	}
	return Working
}

// Use is a number of GPUs in a state.
type Use struct {
	State State
	GPUs  int64
}

// Room is what one node has of one resource.
type Room struct {
	Resource    string
	Allocatable int64
	// Used is what pods have that are bound to the node, or are about to be.
	Used []Use
	// Kept is what is kept of the rest.
	Kept []Use
	// Wanted is how many of the free GPUs pods that wait could use. Negative: no pod that waits needs the resource.
	Wanted int64
	// Open: pods without tolerations of their own may be bound to the node.
	Open bool
}

// Sizes are the numbers of GPUs of a pod for which Account.Startable is counted.
var Sizes = [...]int64{1, 2, 4, 8}

// Account is what the GPUs of one resource are used for.
type Account struct {
	// GPUs is their number by State.
	GPUs [States]int64
	// Startable is, by index of Sizes, how many pods of this size would find free GPUs now: the size of the largest
	// gang of such pods that would start. Nothing but GPUs is considered.
	Startable [len(Sizes)]int64
}

// Ledger is the accounts by resource.
type Ledger map[string]*Account

// Add adds a room. Of a node that has less than its pods use, because devices failed, what is used and kept counts in
// its order until nothing is left.
func (l Ledger) Add(r Room) {
	a := l[r.Resource]
	if a == nil {
		a = &Account{}
		l[r.Resource] = a
	}
	left := max(r.Allocatable, 0)
	for _, list := range [...][]Use{r.Used, r.Kept} {
		for _, u := range list {
			n := min(max(u.GPUs, 0), left)
			a.GPUs[u.State] += n
			left -= n
		}
	}
	if r.Wanted < 0 {
		a.GPUs[FreeUnwanted] += left
	} else {
		usable := min(r.Wanted, left)
		a.GPUs[FreeUsable] += usable
		a.GPUs[FreeUnusable] += left - usable
	}
	if r.Open {
		for i, size := range Sizes {
			a.Startable[i] += left / size
		}
	}
}
