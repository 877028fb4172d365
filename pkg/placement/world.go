// SPDX-License-Identifier: Apache-2.0

package placement

// World is the cluster as the planner sees it. It records placements as a stack. Not safe for concurrent use. Classes
// are numbered from 0. Kind, Capacity, Weight and Rooms of a class do not change while a plan is made.
type World interface {
	// Place puts a pod of the class on the best node that takes it, given all pods placed before, and returns that
	// node. domain "" means anywhere. It returns false, and places nothing, if no node takes the pod or the World's
	// time is over. Place is called often; work that only an explanation needs belongs in Explain.
	Place(class int, domain string) (node string, ok bool)
	// Undo takes back the last n placements, newest first.
	Undo(n int)
	// Kind returns how placing other pods affects pods of the class.
	Kind(class int) Kind
	// Domains returns the topology domains to try, best first, assuming that no pod of this plan is placed. It is
	// called only for classes of kind SharesDomain or SeeksDomain. need is, by class, how many pods the current
	// choice places in all, including those placed already; classes beyond its end need none. Domains that can hold
	// all the pods of the class, and of the classes linked to it (those with domains of the same key), come first.
	// For SharesDomain, domains that certainly cannot hold the pods of the class, and those that must be with them,
	// are left out; empty: no domain can hold them.
	Domains(class int, need []int) []string
	// Open returns false if no pod of the class can go to the domain now, because it must be near a pod that is not
	// there, neither running nor placed. domain "" means anywhere. Called for the same classes as Domains.
	Open(class int, domain string) bool
	// Nodes returns the nodes that may take a pod of the class, best first: for each a domain that contains only this
	// node. It returns nil if there are more than most.
	Nodes(class, most int) []string
	// Capacity returns the number of nodes and pods of the class that there is room for, assuming that no pod of this
	// plan is placed.
	Capacity(class int) Capacity
	// Weight is the size of a pod of the class. Of two classes with the same number of feasible nodes the larger is
	// harder to place.
	Weight(class int) int64
	// Areas returns the domains of a topology level inside an area, in an order that depends on the facts alone: each
	// contains the nodes with the same value of every label of the level. Nodes that lack one of them are in none.
	Areas(level string, within Area) []Area
	// Rooms returns, for each of Areas(level, within), an upper bound of the pods of the class that fit there, as
	// Capacity.Pods does.
	Rooms(class int, level string, within Area) []int
	// Uses returns the amounts of resources that a pod of the class takes, for all classes in the same order.
	Uses(class int) []int64
	// FreeIn returns, for each of Areas(level, within), an upper bound of each resource in the order of Uses that is
	// left for the plan.
	FreeIn(level string, within Area) [][]int64
	// AreaOf returns which of Areas(level, within) contains the node, false if none does.
	AreaOf(level string, within Area, node string) (Area, bool)
	// HasNode reports whether there is a node with this name.
	HasNode(name string) bool
	// AreaAround returns which of Areas(level, within) contains all nodes of the inner area, false if none does.
	AreaAround(level string, within, inner Area) (Area, bool)
	// Within returns a class of pods that differ from those of the given class only in that they must be placed in the
	// area. It returns the class itself for area 0. The class must be one of the Problem, not one that Within returned.
	Within(class int, area Area) int
	// Explain returns why no node of the domain takes one more pod of the class, given all placed pods. domain "" means
	// anywhere. Never nil. Nodes that would take a pod are not counted, unless something that has no number keeps them
	// from taking as many as they have room for. It may inspect every node; the planner calls it only for the final
	// Shortfall, once per relevant class and domain.
	Explain(class int, domain string) *Refusal
}

// Area is a set of nodes: those of one domain of a topology level, or those that it has in common with the area in
// which it was looked for. 0: all nodes.
type Area int32

// Kind is how placing pods affects pods of a class. The planner relies on it to ask each question only once.
type Kind int

const (
	// Independent: placing pods of any class never makes room for a pod of this class. A refusal remains valid until
	// a placement is undone.
	Independent Kind = iota
	// Dependent: placing pods may make room for pods of this class (a hard topology spread constraint). There are no
	// domains to choose from; the only one is "".
	Dependent
	// SharesDomain: the pods of the class must share a topology domain (required pod affinity, an unbound claim that
	// they share), or there is only one. World.Domains lists the domains to try.
	SharesDomain
	// SeeksDomain: each pod of the class may have another domain, but the domain matters: for example workers that
	// must be near any of several leaders, and these leaders. World.Domains lists the domains to try.
	SeeksDomain
)

// hasDomains reports whether World.Domains lists domains for classes of this kind.
func (k Kind) hasDomains() bool { return k == SharesDomain || k == SeeksDomain }

// Capacity is the room in the cluster for pods of a class, assuming that no pod of the plan is placed.
type Capacity struct {
	Nodes int // nodes that take one pod; a class with fewer nodes is harder to place
	Pods  int // upper bound of the pods that fit on all nodes if nothing else is placed; used for Independent classes only
}

// Refusal describes why no node took a pod.
type Refusal struct {
	Reasons map[string]int // filter reason -> number of nodes that gave it; empty: all relevant nodes had room, or were not asked
}

// NoTopology implements the methods of a World about topology levels for a cluster whose nodes have no labels: no level
// has a domain. It is to be embedded.
type NoTopology struct{}

// Areas implements World.
func (NoTopology) Areas(string, Area) []Area { return nil }

// Rooms implements World.
func (NoTopology) Rooms(int, string, Area) []int { return nil }

// Uses implements World.
func (NoTopology) Uses(int) []int64 { return nil }

// FreeIn implements World.
func (NoTopology) FreeIn(string, Area) [][]int64 { return nil }

// AreaOf implements World.
func (NoTopology) AreaOf(string, Area, string) (Area, bool) { return 0, false }

// HasNode implements World.
func (NoTopology) HasNode(string) bool { return true }

// AreaAround implements World.
func (NoTopology) AreaAround(string, Area, Area) (Area, bool) { return 0, false }

// Within implements World.
func (NoTopology) Within(class int, _ Area) int { return class }
