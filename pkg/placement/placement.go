package placement

import "github.com/muster-project/muster/pkg/gang"

// Pod is a pod that waits for a node.
type Pod struct {
	ID    string
	Class int // pods of one class are interchangeable to the World
}

// Problem is what is to be planned. It is not modified.
type Problem struct {
	Tree *gang.Tree
	Have gang.Counts      // per leaf: pods that count already: bound, assumed, succeeded
	Held gang.Counts      // per leaf: of those, pods that are bound now; groups with held pods are completed first
	Pods map[string][]Pod // per leaf: waiting pods, the one to prefer first
}

// World is the cluster as the planner sees it. It remembers what was placed, as a stack. Not safe for concurrent use.
//
// Of a class without domains the planner assumes that placing one pod never makes room for another: once refused, such
// a class is asked for again only after something was taken back.
type World interface {
	// Place puts a pod of the class on the best node that takes it now, given all that was placed before, and returns
	// that node; domain "" is anywhere. If no node takes it, nothing is placed and the refusal, never nil then, says why.
	Place(class int, domain string) (node string, refusal *Refusal)
	// Undo takes back the last n placements, newest first.
	Undo(n int)
	// Domains returns, for a class whose pods must share a topology domain (required pod affinity), the domains to try,
	// best first. nil: the class has no such constraint, and its pods do not depend on where the gang's others are.
	// A class that does depend on them, but not by sharing a domain, returns one "", anywhere.
	Domains(class int) []string
	// Feasible returns how many nodes could take one pod of the class with nothing of this plan placed; fewer is harder.
	Feasible(class int) int
	// Weight is the size of a pod of the class: of two classes with as many feasible nodes the larger is the harder.
	Weight(class int) int64
}

// Refusal says why no node took a pod.
type Refusal struct {
	Reasons map[string]int // filter reason -> nodes that gave it
}

// Placement is one decision of a plan.
type Placement struct {
	Pod  Pod
	Leaf string // "" for a PodGroup without sub-groups
	Node string
}

// Budget limits the search once the walk in order of preference has failed; zero fields take the defaults. That walk, and
// the one that explains a failure, ask for each pod once, or once per domain to try.
type Budget struct {
	Attempts   int // choices of children packed; default 64
	Placements int // calls of World.Place on top of four per waiting pod; default 4096
}

const (
	defaultAttempts   = 64
	defaultPlacements = 4096
)

// Shortfall says why there is no plan: what the walk in order of preference could not place.
type Shortfall struct {
	Groups    []GroupShortfall // needed groups above the leaves that miss their minimum: the root first, then spec order
	Leaves    []LeafShortfall  // leaves that were tried and miss their minimum, in spec order
	Attempts  int              // plans tried
	Exhausted bool             // every choice of children was tried; false: the budget ended the search
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
	Refusal   *Refusal // of that pod; nil: the pods are too few
}

// Minimum plans the smallest set of pods that makes the tree whole. Which children of a group that needs only some of
// them: satisfied ones, then those with held pods, then any that can be placed, spec order among equals.
//
// A plan lists the pods in the order in which the World took them; it is empty if the tree is whole already. With a plan
// the World keeps the placements. Without one the World is as before, and the Shortfall is not nil.
func Minimum(p Problem, w World, budget Budget) ([]Placement, *Shortfall) {
	pl := newPlanner(p, w)
	root := p.Tree.Root()
	if pl.plan(root, budget) {
		return pl.placements(), nil
	}
	return nil, pl.explain(root)
}
