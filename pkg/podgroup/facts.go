package podgroup

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
)

// Facts is what the scheduler knows of one PodGroup and its pods at one moment: the facts that status, events and pod
// conditions are written from. Read-only.
type Facts struct {
	Namespace, Name string
	// Group is the newest PodGroup seen. nil: pods name it, but it does not exist.
	Group *v2alpha2.PodGroup
	// Tree is nil if Group is nil or invalid; TreeErr says why it is invalid.
	Tree    *gang.Tree
	TreeErr error

	// Created counts pods that exist and have not failed, completions of the present run included; Usable those of them
	// that a plan may use or that are placed already; Bound those that are bound or counted as succeeded.
	Created, Usable, Bound gang.Counts

	// GPUs is how many GPUs the gang's pods request that exist and have not ended; HeldGPUs those of its bound pods, also of
	// pods that are being deleted.
	GPUs, HeldGPUs int64

	// Admitted: the minimum was bound once, and something of the gang is left (sticky). AdmittedGroups likewise for
	// sub-groups, below admitted parents only.
	Admitted       bool
	AdmittedGroups sets.Set[string]
	// Binding: a plan is in force whose pods are being assumed or bound.
	Binding bool
	// WaitingSince is since when the pods that exist can satisfy the tree of a gang that is not admitted; zero: they cannot,
	// or it is.
	WaitingSince time.Time
	// Pods is how many pods name the PodGroup, in whatever state.
	Pods int
	// NotOurs: there are pods, all of them name a scheduler that is not ours, and none the stock scheduler, which is what a
	// pod without a schedulerName gets. The PodGroup is another product's.
	NotOurs bool
	// Ended: every pod that is left has succeeded, and there is at least one.
	Ended bool

	// Refused is why the last attempt found no plan. Its Reason is "" if there was none, or it succeeded.
	Refused Refusal
	// RefusedSurplus: what was refused is surplus, which nobody needs; else it is the minimum (of a new gang, or of one
	// that has to be refilled).
	RefusedSurplus bool
	// Failures counts the plans in a row that were made and then aborted or bound only in part; the next attempt waits
	// for its back-off.
	Failures int

	// Misplaced are the waiting pods that count towards no leaf, by cause, the most frequent first. MisplacedTotal is their
	// number.
	Misplaced      []Misplaced
	MisplacedTotal int
	// Stray are the same of pods that are bound already.
	Stray      []Misplaced
	StrayTotal int
	// Leaving counts bound pods that are being deleted: they hold their room still, and count no more.
	Leaving int
	// Gated, Terminating, Foreign count waiting pods that a plan cannot use: scheduling gates, being deleted, of another
	// scheduler (ForeignNames are the schedulerNames, sorted).
	Gated, Terminating, Foreign int
	// GateNames are the names of the gated pods' own scheduling gates, sorted.
	GateNames []string
	// GatedBy is why a plugin gates one of the gated pods: "pod x is gated by plugin ...". "": gates of the pods' own.
	GatedBy      string
	ForeignNames []string
	// Profile is the schedulerName that the gang is planned with; "" if none of its waiting pods names one of ours.
	Profile string
	// BoundByOthers counts pods of the leaves that are bound and name a scheduler that is not ours: each was bound by itself.
	// OtherNames are those schedulerNames, sorted.
	BoundByOthers int
	OtherNames    []string
	// OurNames are the schedulerNames that this scheduler serves, sorted. Filled in only for a gang with pods of other
	// schedulers and no Profile.
	OurNames []string

	// NoSuchClass is the PriorityClass that the PodGroup names and that does not exist; "": there is none such.
	NoSuchClass string

	// Owners are the controllers of the pods that exist, of a gang that lacks pods; sorted by kind and name, at most 10.
	Owners []Owner
	// Failed is how many pods of the gang have failed and still have an object. Only filled in, by the reporter, for a gang
	// that has lacked pods for a while. So is Unclaimed: what names the PodGroup otherwise than pods have to.
	Failed    int
	Unclaimed []Unclaimed

	// Partial: bound in part, and provably never whole; it has been for PartialFor.
	Partial    bool
	PartialFor time.Duration

	// Waiting are the pods that are not bound, in no plan and not terminating, with what the scheduler wants from each.
	Waiting []WaitingPod
}

// Owner is a controller of pods of a gang.
type Owner struct {
	APIVersion, Kind, Name string
	UID                    types.UID
	// Leaf is where its pods count, "" for a PodGroup without sub-groups; Mixed: in several leaves, or in none.
	Leaf  string
	Mixed bool
	// Pods is how many of its pods exist, those that have ended or are being deleted left out.
	Pods int

	// Seen: its object was read, and the fields below are known. Unknown: it is of a kind that is not read.
	Seen, Unknown bool
	// Wants is how many pods it is to have at the same time.
	Wants int
	// Ordered: it makes a pod only when those before it are ready. Suspended: it makes none.
	Ordered, Suspended bool
}

// Unclaimed is a pod, or what makes pods, that names the PodGroup in a place where the name has no meaning.
type Unclaimed struct {
	// Kind is Pod, or that of the pods' controller; Names are the objects', sorted, at most 10; Total is how many they are.
	Kind  string
	Names []string
	Total int
	// Where is the place: "label pod-group-name".
	Where string
}

// Misplaced are pods that count towards no leaf for the same cause.
type Misplaced struct {
	// Why is said of one pod: "carries sub-group ...", "has no label ...".
	Why string
	// Pods are their names, sorted, at most 10; Total is how many they are.
	Pods  []string
	Total int
}

// Refusal is the outcome of an attempt that found no plan.
type Refusal struct {
	Reason  v2alpha2.Reason
	Message string
	At      time.Time
}

// WaitingPod is a pod of a gang that waits.
type WaitingPod struct {
	Pod *corev1.Pod
	// Since is when the scheduler came to know the pod.
	Since time.Time
	// Gated: it has scheduling gates.
	Gated bool
	// Misplaced is why it counts towards no leaf, "" if it has one: "carries sub-group ...".
	Misplaced string
	// NeedsCapacity: the last attempt was refused for want of nodes that another node could cure, and the pod is one of
	// those that the missing minimum, or a surplus sub-group as a unit, lacks (docs/decisions, G13).
	NeedsCapacity bool
}
