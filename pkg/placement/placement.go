package placement

import "github.com/muster-project/muster/pkg/gang"

// Pod is a pod that waits for a node.
type Pod struct {
	ID    string
	Class int // pods of one class are interchangeable to the World
}

// Problem is what is to be planned. It is not modified.
type Problem struct {
	Tree  *gang.Tree
	Have  gang.Counts      // per leaf: pods that count already: bound, assumed, succeeded
	Bound gang.Counts      // per leaf: of those, pods that are bound now; groups with bound pods are completed first
	Pods  map[string][]Pod // per leaf: waiting pods, the one to prefer first
}

// Placement is one decision of a plan.
type Placement struct {
	Pod  Pod
	Leaf string // "" for a PodGroup without sub-groups
	Node string
}

// Budget limits the search for a plan; zero fields take the defaults. What doc.go promises for like pods is found whatever
// Attempts and Placements are.
type Budget struct {
	Attempts   int // choices tried, those to skip included; 0: 64
	Placements int // calls of World.Place on top of four per waiting pod; 0: 4096
	// Skip is the number of choices, as counted by Shortfall.Tried, to leave out because an earlier attempt on the same
	// facts has tried them.
	Skip int
	// Expired reports whether the time for the plan is over. Once it has returned true the planner asks it no more, and
	// calls World.Place no more. It is asked before every call of World.Place and in the loops of the search. nil: there
	// is no time limit.
	Expired func() bool
}

const (
	defaultAttempts   = 64
	defaultPlacements = 4096
)

// Shortfall says why there is no plan: what a walk in order of preference could not place.
type Shortfall struct {
	Groups    []GroupShortfall // needed groups above the leaves that miss their minimum: the root first, then spec order
	Leaves    []LeafShortfall  // leaves that were tried and miss their minimum, in spec order
	Attempts  int              // choices tried; 0, and Exhausted: it is certain that there is no plan
	Exhausted bool             // every choice of children was tried; false: the budget, or the time, ended the search
	Cut       bool             // the time was over: a further attempt with Budget.Skip = Tried may find a plan
	Tried     int              // choices tried to their end, those left out because of Budget.Skip included
}

// GroupShortfall is a group that cannot have enough satisfied children.
type GroupShortfall struct {
	Group string // "" is the root
	Need  int    // children needed
	Can   int    // children that are satisfied or fit beside each other
}

// LeafShortfall is a leaf whose pods could not all be placed. Its pods are too few (Available < Need), or nodes refuse
// them (Refusal is set).
type LeafShortfall struct {
	Leaf      string
	Need      int      // pods missing to the leaf's minimum
	Available int      // waiting pods
	Placed    int      // of Need, pods that found a node in the best try; 0 if the pods are too few
	Class     int      // of the first pod refused; meaningful with Refusal
	Refusal   *Refusal // of pods of that class; nil: the pods are too few
}

// Minimum plans the smallest set of pods that makes the tree whole. Which children of a group that needs only some of
// them: satisfied ones, then those with bound pods, then any that can be placed, spec order among equals.
//
// A plan lists the pods in the order in which the World took them; it is empty if the tree is whole already. With a plan
// the World keeps the placements. Without one the World is as before, and the Shortfall is not nil.
func Minimum(p Problem, w World, budget Budget) ([]Placement, *Shortfall) {
	pl := newPlanner(p, w, budget.Expired)
	if pl.satisfied(root) {
		return nil, nil
	}
	pl.explains = true
	if !pl.mayFit() {
		pl.exhausted = true
		return nil, pl.explainByNumbers()
	}
	if pl.plan(root, budget) {
		return pl.placements(), nil
	}
	short := pl.explain()
	if short == nil { // the walk, which chooses domains otherwise than the search, found one
		return pl.placements(), nil
	}
	return nil, short
}
