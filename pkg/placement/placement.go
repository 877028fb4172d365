// SPDX-License-Identifier: Apache-2.0

package placement

import "github.com/muster-project/muster/pkg/gang"

// Pod is a pod that waits for a node.
type Pod struct {
	ID    string
	Index int // for the caller, not used by the planner
	Class int // pods of one class are interchangeable for the World
}

// Problem is the input of a plan. The planner does not modify it.
type Problem struct {
	Tree  *gang.Tree
	Have  gang.Counts      // per leaf: pods that count already: bound, assumed or succeeded
	Bound gang.Counts      // per leaf: of those, pods that are bound now; groups with bound pods are completed first
	Pods  map[string][]Pod // per leaf: waiting pods in order of preference
	// Required is, per group ("" is the root), the topology level of which one domain must hold all pods below it. A
	// level is one or more keys of node labels, the outermost first, separated by commas: nodes of one domain have the
	// same values of all of them.
	Required map[string]string
	// Preferred is likewise the level of which as few domains as possible should hold the pods below a group. If a
	// level with fewer of its keys, from the first on, has one domain that holds them, they are placed there. See
	// Budget.PreferencesExpired.
	Preferred map[string]string
	// Nodes are, per leaf, the nodes of the pods in Have that use one. They determine the domains of groups with a
	// required or preferred topology level, and may be omitted for leaves below no such group. Pods on nodes that the
	// World does not have are ignored if others of the group have a node; if none has, a group with a required level
	// gets no pod until the caller leaves them out.
	Nodes map[string][]string
}

// Placement is one decision of a plan.
type Placement struct {
	Pod  Pod
	Leaf string // "" for a PodGroup without sub-groups
	Node string
}

// Budget limits the search for a plan; zero fields take the defaults. The guarantee for equal pods in the package
// documentation holds for all values of Attempts and Placements. They bound the search in one domain of a group with a
// required level, not the number of domains, nor the choices and assignments of domains for equal pods: there only
// Expired does.
type Budget struct {
	Attempts   int // choices to try, including those skipped by Skip; 0: 64
	Placements int // calls of World.Place in addition to four per waiting pod; 0: 4096
	// Skip is the number of choices to leave out, as counted by Shortfall.Tried, because an earlier attempt on the
	// same facts has tried them. If there is no plan among the others, the search is to start over, with more time.
	Skip int
	// Expired reports whether the time for the plan is over. The planner calls it before every call of World.Place
	// and in the loops of the search. Once it has returned true, the planner calls neither Expired nor World.Place
	// again. nil: there is no time limit.
	Expired func() bool
	// PreferencesExpired reports whether the time that may be spent on Problem.Preferred is over. The planner calls it
	// as Expired, and continues without preferred levels once it has returned true. nil: preferred levels are ignored.
	PreferencesExpired func() bool
	// Unexplained: it is enough to know how the search ended. World.Explain is not called, and if it is certain that
	// there is no plan, the Shortfall names no groups and leaves.
	Unexplained bool
}

const (
	defaultAttempts   = 64
	defaultPlacements = 4096
)

// Shortfall describes why there is no plan: the groups and leaves that a walk in order of preference could not
// satisfy.
type Shortfall struct {
	Groups    []GroupShortfall // required groups above the leaves that miss their minimum: the root first, then in spec order
	Leaves    []LeafShortfall  // leaves that were tried and miss their minimum, in spec order
	Levels    []LevelShortfall // groups with a required topology level that were tried and miss their minimum, in spec order
	Attempts  int              // choices tried; 0 and Exhausted: it is certain that no plan exists
	Exhausted bool             // every choice of children was tried, and on all nodes if it has pods that depend on others; false: there may be a plan
	Cut       bool             // the time was over: a further attempt with Budget.Skip = Tried may find a plan
	Tried     int              // choices tried, including those left out because of Budget.Skip: completely, or domains for which the whole time was too short
}

// GroupShortfall describes a group that cannot have enough satisfied children.
type GroupShortfall struct {
	Group string // "" is the root
	Need  int    // children needed
	Can   int    // children that are satisfied or fit together
}

// LeafShortfall describes a leaf that cannot have its minimum. Either it has too few pods (Available < Need), or
// nodes refuse them (Refusal is set).
type LeafShortfall struct {
	Leaf      string
	Need      int      // pods that the leaf lacks for its minimum
	Available int      // waiting pods
	Placed    int      // of Need, pods that found a node in the best attempt; 0 if there are too few pods
	Class     int      // of the first pod that was refused; meaningful only with Refusal
	Refusal   *Refusal // of pods of Class; nil: there are too few pods
}

// LevelShortfall describes a group with a required topology level that has enough pods, but no domain for them.
type LevelShortfall struct {
	Group    string // "" is the root
	Level    string
	Pods     int          // the fewest pods that the group lacks
	Class    int          // of the heaviest pods among them
	Need     int          // pods of this class that the group lacks at least; 0: others can replace them
	Domains  []DomainRoom // the domains with the most room for the class, at most three; nil: no node is in one
	Others   int          // further domains
	Runs     bool         // pods of the group run in the only one of Domains: the others cannot leave it
	Confined int          // with Runs: Class within this domain, see World.Within
	Torn     bool         // pods of the group run in several domains, or in none: no pod can join them; Domains is empty
	Gone     bool         // all pods of the group that run are on nodes that do not exist; it waits until they are deleted; Domains is empty
}

// DomainRoom is how many pods of a class fit in a domain, beside those placed before.
type DomainRoom struct {
	Area Area
	Pods int
}

// Minimum plans the smallest set of pods that satisfies the tree. Of a group that needs only some of its children it
// takes satisfied children first, then those with bound pods, then any that can be placed; in spec order among
// equals.
//
// A plan lists the pods in the order in which the World placed them; it is empty if the tree is satisfied already. If
// there is a plan, its placements remain in the World. Otherwise the World is left unchanged and the Shortfall is not
// nil.
func Minimum(p Problem, w World, budget Budget) ([]Placement, *Shortfall) {
	pl := newPlanner(p, w, budget.Expired)
	if pl.satisfied(root) {
		return nil, nil
	}
	pl.explains = !budget.Unexplained
	if !pl.mayFit() {
		pl.exhausted = true
		return nil, pl.explainByNumbers()
	}
	if budget.usesPreferences(&p) && budget.Skip == 0 {
		if plan := planPreferring(p, w, budget); plan != nil {
			return plan, nil
		}
	}
	if pl.planGroup(root, budget) {
		return pl.placements(), nil
	}
	if budget.Unexplained && pl.exhausted && !pl.cut {
		return nil, pl.newExplanation().shortfall()
	}
	short := pl.explainByWalk()
	if short == nil { // the walk chooses domains differently than the search, and found a plan
		return pl.placements(), nil
	}
	return nil, short
}
