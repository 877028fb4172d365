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
// Classes are numbered from 0, without gaps.
type World interface {
	// Place puts a pod of the class on the best node that takes it now, given all that was placed before, and returns
	// that node; domain "" is anywhere. false: no node takes it, or the World's time is over; nothing was placed.
	// It is asked often: what only an explanation needs belongs into Explain.
	Place(class int, domain string) (node string, ok bool)
	// Undo takes back the last n placements, newest first.
	Undo(n int)
	// Kind returns what the placing of pods may do to pods of the class. It does not change while a plan is made.
	Kind(class int) Kind
	// Domains returns, for a class of kind SharesDomain only, the topology domains to try, best first, with nothing of
	// this plan placed. need is, by class, how many pods the choice under way places in all, those placed already
	// included; a class beyond its end needs none. Domains into which all the pods of the class, and of the classes linked
	// to it (those that have to be in the same domain), fit come first. Domains that certainly cannot hold them are
	// left out. Empty: no domain can hold them.
	//
	// Two classes whose domains have names in common go to the same one where they can.
	Domains(class int, need []int) []string
	// Capacity returns how many nodes and pods of the class there is room for, with nothing of this plan placed.
	Capacity(class int) Capacity
	// Weight is the size of a pod of the class: of two classes with as many feasible nodes the larger is the harder.
	Weight(class int) int64
	// Explain returns why no node of the domain, "" is anywhere, takes one more pod of the class now, given all that is
	// placed. Never nil. It may cost a look at every node; it is asked for the final Shortfall only, once per class that
	// matters.
	Explain(class int, domain string) *Refusal
}

// Kind is what the placing of pods may do to pods of a class. The planner relies on it to ask each question only once.
type Kind int

const (
	// Independent: placing pods, of whatever class, never makes room for a pod of this class. Once refused it stays refused
	// until something is taken back.
	Independent Kind = iota
	// Dependent: placing pods may make room for others of this class (a hard topology spread constraint, affinity to
	// pods of another class). There are no domains to choose from: anywhere is the only one.
	Dependent
	// SharesDomain: the pods of the class have to share a topology domain (required pod affinity, an unbound claim that
	// they share). World.Domains lists those to try.
	SharesDomain
)

// Capacity is what a class could have of the cluster with nothing of the plan placed.
type Capacity struct {
	Nodes int // nodes that take one pod; fewer is harder
	Pods  int // upper bound of the pods that fit, over all nodes, if nothing else is placed
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

// Budget limits the search once the walk in order of preference has failed. That walk, and the one that explains a
// failure, ask for each pod once, or once per domain to try.
type Budget struct {
	Attempts   int // choices of children packed; 0: 64
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

// Shortfall says why there is no plan: what the walk in order of preference could not place.
type Shortfall struct {
	Groups    []GroupShortfall // needed groups above the leaves that miss their minimum: the root first, then spec order
	Leaves    []LeafShortfall  // leaves that were tried and miss their minimum, in spec order
	Attempts  int              // plans tried
	Exhausted bool             // every choice of children was tried; false: the budget ended the search
	Cut       bool             // the time was over: a further attempt with Budget.Skip = Tried may find a plan
	Tried     int              // choices of children packed, those left out because of Budget.Skip included
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
	pl := newPlanner(p, w, budget.Expired)
	root := p.Tree.Root()
	if pl.plan(root, budget) {
		return pl.placements(), nil
	}
	return nil, pl.explain(root)
}
