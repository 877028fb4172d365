// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// CompositeKind is the kind of groups of PodGroups of Kubernetes.
const CompositeKind = "CompositePodGroup"

// nativeGroup is what is read of a PodGroup or CompositePodGroup of Kubernetes, of any version.
type nativeGroup struct {
	Spec struct {
		SchedulingPolicy struct {
			Gang *struct {
				MinCount      int32 `json:"minCount"`
				MinGroupCount int32 `json:"minGroupCount"`
			} `json:"gang"` // nil: basic
		} `json:"schedulingPolicy"`
		SchedulingConstraints struct {
			Topology []struct {
				Key string `json:"key"`
			} `json:"topology"`
		} `json:"schedulingConstraints"`
		ResourceClaims    []any  `json:"resourceClaims"`
		DisruptionMode    any    `json:"disruptionMode"` // of v1alpha2 a string, later an object with one key
		PriorityClassName string `json:"priorityClassName"`
		PreemptionPolicy  string `json:"preemptionPolicy"`
	} `json:"spec"`
}

// NativeGroups are the PodGroups and CompositePodGroups of Kubernetes in a namespace.
type NativeGroups struct {
	composites map[string]*unstructured.Unstructured
	children   map[string][]*unstructured.Unstructured // by the CompositePodGroup that they name, the oldest first
}

// NewNativeGroups returns the groups of a namespace.
func NewNativeGroups(groups ...*unstructured.Unstructured) *NativeGroups {
	n := &NativeGroups{composites: map[string]*unstructured.Unstructured{}, children: map[string][]*unstructured.Unstructured{}}
	for _, g := range groups {
		if g.GetKind() == CompositeKind {
			n.composites[g.GetName()] = g
		}
		if parent := ParentOf(g); parent != "" {
			n.children[parent] = append(n.children[parent], g)
		}
	}
	for _, children := range n.children {
		slices.SortFunc(children, func(a, b *unstructured.Unstructured) int {
			return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetKind(), b.GetKind()))
		})
	}
	return n
}

// ParentOf returns the CompositePodGroup that a group of Kubernetes is in, "" for none.
func ParentOf(group *unstructured.Unstructured) string {
	parent, _, _ := unstructured.NestedString(group.Object, "spec", "parentCompositePodGroupName")
	return parent
}

// maxNativeLevels is the depth of a tree of CompositePodGroups and their PodGroups.
const maxNativeLevels = 4

// RootOf returns the topmost CompositePodGroup of a group, "" if it is itself the topmost group. The error says why
// there is none.
func (n *NativeGroups) RootOf(group *unstructured.Unstructured) (string, error) {
	root, levels := "", 1
	for parent := ParentOf(group); parent != ""; levels++ {
		composite := n.composites[parent]
		switch {
		case composite == nil:
			return "", refuse("it is in %s %q, which does not exist: its pods wait; create it", CompositeKind, message.Truncate(parent, message.MaxName))
		case levels > len(n.composites):
			return "", refuse("the parents from %s %q on form a cycle: the pods below wait; a parent cannot be edited: create one of them again without it",
				CompositeKind, message.Truncate(parent, message.MaxName))
		}
		root, parent = parent, ParentOf(composite)
	}
	if levels > maxNativeLevels {
		return "", refuse("it is on level %d below %s %q, and Kubernetes has %d: its pods wait; use fewer levels", levels, CompositeKind,
			message.Truncate(root, message.MaxName), maxNativeLevels)
	}
	return root, nil
}

// PodGroupsIn returns the names of the PodGroups below a CompositePodGroup, which may be in a cycle of parents.
func (n *NativeGroups) PodGroupsIn(composite string) []string {
	var names []string
	seen := map[string]bool{composite: true}
	for next := []string{composite}; len(next) > 0; next = next[1:] {
		for _, child := range n.children[next[0]] {
			switch name := child.GetName(); {
			case child.GetKind() != CompositeKind:
				names = append(names, name)
			case !seen[name]:
				seen[name] = true
				next = append(next, name)
			}
		}
	}
	return names
}

// gangOfNative: a PodGroup, or a topmost CompositePodGroup with all that is in it, is a gang.
//
//	root                      minMember, or minSubGroup
//	├── <PodGroup>            minMember
//	├── composite_<name>      a CompositePodGroup: minSubGroup
//	│   └── ...
//	└── missing_<name>        no pod ever is in it: fewer groups exist than are needed, and the others are created later
//
// basic needs one: a pod or a group. The rest is above the minimum.
func gangOfNative(object *unstructured.Unstructured, in *NativeGroups) (map[string]v2alpha2.PodGroupSpec, error) {
	if in == nil {
		in = NewNativeGroups(object)
	}
	root, err := in.RootOf(object)
	if err != nil || root != "" {
		return nil, err
	}
	group, err := readNative(object)
	if err != nil {
		return nil, err
	}
	spec := v2alpha2.PodGroupSpec{
		PriorityClassName: group.Spec.PriorityClassName, TopologyConstraint: group.topology(), DisruptionMode: group.disruption()}
	if group.Spec.PreemptionPolicy == "Never" {
		spec.PreemptionDelay = &metav1.Duration{Duration: never}
	}
	if object.GetKind() != CompositeKind {
		spec.MinMember = ptr.To(group.minimum())
		return map[string]v2alpha2.PodGroupSpec{membership.Native.GroupName(object.GetName()): spec}, nil
	}
	if spec.SubGroups, spec.MinSubGroup, err = in.subGroups(object.GetName(), group, nil, 2); err != nil {
		return nil, err
	}
	if len(spec.SubGroups) > v2alpha2.MaxSubGroups {
		return nil, refuse("it has %d groups below it, and a PodGroup of Muster at most %d: their pods wait; use fewer", len(spec.SubGroups), v2alpha2.MaxSubGroups)
	}
	return map[string]v2alpha2.PodGroupSpec{membership.CompositeGroupName(object.GetName()): spec}, nil
}

// never is longer than any gang waits, in nanoseconds: 100 years.
const never = 100 * 365 * 24 * 3600 * 1_000_000_000

// subGroups returns the sub-groups of all that is in a CompositePodGroup, and its minimum; nil: all of its children,
// one of which never has a pod.
func (n *NativeGroups) subGroups(name string, composite nativeGroup, parent *string, level int) (subGroups []v2alpha2.SubGroup, minSubGroup *int32, err error) {
	children := n.children[name]
	for _, child := range children {
		if level > maxNativeLevels {
			return nil, nil, refuse("it has groups on level %d, as %s, and Kubernetes has %d: the pods wait; use fewer levels", level,
				message.Truncate(child.GetName(), message.MaxName), maxNativeLevels)
		}
		group, err := readNative(child)
		if err != nil {
			return nil, nil, err
		}
		sub := v2alpha2.SubGroup{Name: membership.NativeLeaf(child.GetName()), Parent: parent, TopologyConstraint: group.topology(), DisruptionMode: group.disruption()}
		if child.GetKind() != CompositeKind {
			sub.MinMember = ptr.To(group.minimum())
			subGroups = append(subGroups, sub)
			continue
		}
		sub.Name = membership.NativeLeaf("composite_" + child.GetName())
		below, minimum, err := n.subGroups(child.GetName(), group, &sub.Name, level+1)
		if err != nil {
			return nil, nil, err
		}
		sub.MinSubGroup = minimum
		subGroups = append(append(subGroups, sub), below...)
	}
	if minimum := composite.minimum(); minimum <= int32(len(children)) {
		return subGroups, &minimum, nil
	}
	missing := v2alpha2.SubGroup{Name: membership.NativeLeaf("missing_" + name), Parent: parent, MinMember: ptr.To[int32](1)}
	return append(subGroups, missing), nil, nil
}

func readNative(object *unstructured.Unstructured) (nativeGroup, error) {
	var group nativeGroup
	if err := convert(object, &group); err != nil {
		return group, err
	}
	if len(group.Spec.ResourceClaims) > 0 {
		return group, refuse("spec.resourceClaims of %s %s cannot be obeyed: its pods wait; name the claims in the pods", object.GetKind(), object.GetName())
	}
	return group, nil
}

// minimum returns how many pods or groups must start together.
func (g nativeGroup) minimum() int32 {
	if gang := g.Spec.SchedulingPolicy.Gang; gang != nil {
		return max(gang.MinCount, gang.MinGroupCount, 1)
	}
	return 1
}

func (g nativeGroup) topology() *v2alpha2.TopologyConstraint {
	if len(g.Spec.SchedulingConstraints.Topology) == 0 {
		return nil
	}
	return &v2alpha2.TopologyConstraint{RequiredTopologyLevel: g.Spec.SchedulingConstraints.Topology[0].Key}
}

func (g nativeGroup) disruption() v2alpha2.DisruptionMode {
	mode := fmt.Sprint(g.Spec.DisruptionMode)
	if object, is := g.Spec.DisruptionMode.(map[string]any); is {
		for mode = range object {
			break
		}
	}
	if strings.EqualFold(mode, "all") || mode == PodGroupKind {
		return v2alpha2.DisruptAll
	}
	return ""
}

// Conditions of PodGroups of Kubernetes, and their reasons.
const (
	conditionScheduled  = "PodGroupInitiallyScheduled"
	conditionOf1_36     = "PodGroupScheduled" // of v1alpha2
	conditionDisruption = "DisruptionTarget"

	reasonScheduled     = "Scheduled"
	reasonUnschedulable = "Unschedulable"
	reasonError         = "SchedulerError"
	reasonPreempted     = "PreemptionByScheduler"
)

// NativeConditions returns the conditions of a PodGroup of Kubernetes, by that which was made of it or of the tree that
// it is in; nil: they stay. What is True once stays so, as does what is said of pods of other schedulers.
func NativeConditions(object *unstructured.Unstructured, made *v2alpha2.PodGroup, now metav1.Time) []metav1.Condition {
	var status struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &status); err != nil {
		return nil
	}
	scheduled := conditionScheduled
	if strings.HasSuffix(object.GetAPIVersion(), "/v1alpha2") {
		scheduled = conditionOf1_36
	}
	conditions, changed := status.Status.Conditions, false
	set := func(kind string, value metav1.ConditionStatus, reason, text string) {
		changed = meta.SetStatusCondition(&conditions, metav1.Condition{Type: kind, Status: value, Reason: reason, Message: text, LastTransitionTime: now}) || changed
	}
	more := "kubectl describe podgroups.scheduling.run.ai " + made.Name + " says more"
	preempted := meta.FindStatusCondition(made.Status.Conditions, v2alpha2.ConditionPreempted)
	gangPreempted := preempted != nil && preempted.Status == metav1.ConditionTrue && preempted.Reason == string(v2alpha2.ReasonGangPreempted)
	switch satisfied := meta.FindStatusCondition(made.Status.Conditions, v2alpha2.ConditionSatisfied); {
	case meta.IsStatusConditionTrue(conditions, scheduled):
	case hasStarted(made, object.GetName()), gangPreempted && len(made.Spec.SubGroups) == 0: // it ran, be it shorter than it was looked at
		set(scheduled, metav1.ConditionTrue, reasonScheduled, "")
	case satisfied == nil || satisfied.Status == metav1.ConditionTrue:
	default:
		switch reason := v2alpha2.Reason(satisfied.Reason); reason {
		case v2alpha2.ReasonWaitingForPods, v2alpha2.ReasonOtherScheduler, v2alpha2.ReasonGated, v2alpha2.ReasonBinding, v2alpha2.ReasonCompleted:
		case v2alpha2.ReasonSchedulerError, v2alpha2.ReasonBackingOff, v2alpha2.ReasonInvalid:
			set(scheduled, metav1.ConditionFalse, reasonError, string(reason)+": "+more)
		default:
			set(scheduled, metav1.ConditionFalse, reasonUnschedulable, string(reason)+": "+more)
		}
	}
	switch {
	case gangPreempted:
		set(conditionDisruption, metav1.ConditionTrue, reasonPreempted, more)
	case meta.IsStatusConditionTrue(conditions, conditionDisruption) && hasStarted(made, object.GetName()):
		set(conditionDisruption, metav1.ConditionFalse, reasonScheduled, "")
	}
	if !changed {
		return nil
	}
	return conditions
}

// hasStarted reports whether the minimum of a PodGroup of Kubernetes was bound.
func hasStarted(made *v2alpha2.PodGroup, name string) bool {
	if !meta.IsStatusConditionTrue(made.Status.Conditions, v2alpha2.ConditionAdmitted) {
		return false
	}
	i := slices.IndexFunc(made.Status.SubGroups, func(s v2alpha2.SubGroupStatus) bool { return s.Name == membership.NativeLeaf(name) })
	return len(made.Spec.SubGroups) == 0 || i >= 0 && made.Status.SubGroups[i].Admitted
}

// JoinTree returns the patch by which a pod finds the tree of its PodGroup of Kubernetes, nil if it needs none.
func JoinTree(pod *corev1.Pod, root string) []byte {
	if pod.Annotations[membership.CompositeAnnotation] == root || pod.DeletionTimestamp != nil {
		return nil
	}
	return fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, pod.UID, membership.CompositeAnnotation, root)
}
