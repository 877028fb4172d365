package placement

// World is the cluster as the planner sees it. It remembers what was placed, as a stack. Not safe for concurrent use.
// Classes are numbered from 0. Kind, Capacity and Weight of a class do not change while a plan is made.
type World interface {
	// Place puts a pod of the class on the best node that takes it now, given all that was placed before, and returns
	// that node; domain "" is anywhere. false: no node takes it, or the World's time is over; nothing was placed.
	// It is asked often: what only an explanation needs belongs into Explain.
	Place(class int, domain string) (node string, ok bool)
	// Undo takes back the last n placements, newest first.
	Undo(n int)
	// Kind returns what the placing of pods may do to pods of the class.
	Kind(class int) Kind
	// Domains returns, for a class of kind SharesDomain only, the topology domains to try, best first, with nothing of
	// this plan placed. need is, by class, how many pods the choice under way places in all, those placed already
	// included; a class beyond its end needs none. Domains into which all the pods of the class, and of the classes linked
	// to it (those with domains of the same key), fit come first. Domains that certainly cannot hold the pods of the class,
	// and of those that have to be with them, are left out. Empty: no domain can hold them.
	Domains(class int, need []int) []string
	// Capacity returns how many nodes and pods of the class there is room for, with nothing of this plan placed.
	Capacity(class int) Capacity
	// Weight is the size of a pod of the class: of two classes with as many feasible nodes the larger is the harder.
	Weight(class int) int64
	// Explain returns why no node of the domain, "" is anywhere, takes one more pod of the class now, given all that is
	// placed. Never nil. A node that would take one is not counted. It may cost a look at every node; it is asked for the
	// final Shortfall only, once per class and domain that matters.
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
	Pods  int // upper bound of the pods that fit, over all nodes, if nothing else is placed; used for Independent classes only
}

// Refusal says why no node took a pod.
type Refusal struct {
	Reasons map[string]int // filter reason -> nodes that gave it; empty: all nodes that matter had room, or were not asked
}
