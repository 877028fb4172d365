// SPDX-License-Identifier: Apache-2.0

package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

// replacingUpdate is the value of v2alpha2.ReplacingAnnotation while a replica is updated.
const replacingUpdate = "update"

// Children are the existing PodCliques (standalone and member ones) and PodCliqueScalingGroups of a set, by name. nil
// maps are empty.
type Children struct {
	Cliques map[string]*v1alpha1.PodClique
	Groups  map[string]*v1alpha1.PodCliqueScalingGroup
	// PodGroups are the existing PodGroups of the set's replicas that are not being deleted.
	PodGroups map[string]*v2alpha2.PodGroup
	// Topology is what the topology constraints of the set refer to.
	Topology Topology
}

// PodGroup returns the PodGroup of replica i of a set. nil if the replica needs none, because all of it is scaled to
// zero, has succeeded without leaving pods, or belongs to a Training workload that has failed. Source: docs/decisions,
// W1, W7, G9.
//
//	root                            every standalone clique and every scaling group
//	├── <standalone clique>         minMember: its minimum
//	└── <scaling group>             minSubGroup: its minAvailable
//	    └── <group replica>         every clique
//	        └── <member clique>     minMember: its minimum
//
// The nodes have the full names of the objects, in the order of the template. An existing child counts with its own
// replicas, a missing one with those that it will be created with. Objects that are scaled to zero are not in the
// tree. A scaling group with fewer replicas than an explicit minAvailable, which admission rejects, lists minAvailable
// replicas, so that it waits rather than run below its minimum.
//
// The topology constraint of the set is that of the PodGroup, the one of a scaling group that of each of its replicas,
// and the one of a clique that of its leaves. New nodes that require an unknown domain are left out. If the PodGroup
// itself is new, the caller has to wait (TopologyWait). The PodGroup lists the levels of the binding; an existing one
// keeps its list while a domain is unknown.
//
// The minimum of a leaf is the enforced one (lifecycle.Minimum.Enforced): scaling in lowers it here immediately, and
// it rises after the status of the PodClique. A PodClique that has succeeded is removed from the tree as long as
// others of the replica have not: the scheduler counts its pods only together with other pods of the same run, which
// may all be replaced. The PodGroup is valid for gang.Build, and not larger than allowed, if the template is valid.
func PodGroup(set *v1alpha1.PodCliqueSet, i int, live Children) *v2alpha2.PodGroup {
	if FailedReason(set) != "" {
		return nil
	}
	t := treeNodes{set: set, i: i, live: live, existing: live.PodGroups[naming.PodGroupName(set.Name, i)], attempt: SetAttempt(set, i).Set}
	t.listNodes()
	if t.addReplica(); len(t.nodes) == 0 { // no clique has pods left to run
		t.withFinished = true
		t.addReplica()
	}
	if len(t.nodes) == 0 {
		return nil
	}
	template := &set.Spec.Template
	constraint, known := t.constraint("", template.TopologyConstraint)
	if !known {
		return nil
	}
	name := naming.PodGroupName(set.Name, i)
	annotations := withAttempt(map[string]string{}, v1alpha1.AnnotationPodCliqueSetAttempt, ReplicaAttempt(set.Status.ReplicaAttempts, i))
	if len(template.TopologyConstraints()) > 0 && live.Topology.Binding != nil &&
		(t.existing == nil || len(live.Topology.unknownDomains(template, false)) == 0) {
		annotations[v2alpha2.TopologyLevelsAnnotation] = live.Topology.list()
	}
	if training := set.Spec.TrainingSpec; set.Spec.IsTraining() && training != nil && training.MaxRuntime != nil {
		annotations[v2alpha2.MaxRuntimeAnnotation] = training.MaxRuntime.Duration.String() // no pod of it runs longer
	}
	if IsCurrentlyUpdating(set, i) {
		annotations[v2alpha2.ReplacingAnnotation] = replacingUpdate // the scheduler keeps the room of a replaced pod for its successor
	}
	return &v2alpha2.PodGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: v2alpha2.SchemeGroupVersion.String(), Kind: "PodGroup"},
		ObjectMeta: objectMeta(set, v1alpha1.KindPodCliqueSet, name,
			naming.ReplicaLabels(set.Name, i, name, v1alpha1.ComponentPodGroup),
			annotations),
		Spec: v2alpha2.PodGroupSpec{SubGroups: t.nodes, PriorityClassName: template.PriorityClassName, TopologyConstraint: constraint},
	}
}

// treeNodes collects the nodes of the PodGroup of replica i of a set.
type treeNodes struct {
	set      *v1alpha1.PodCliqueSet
	i        int
	live     Children
	existing *v2alpha2.PodGroup // the existing PodGroup; nil: it does not exist
	attempt  int32              // of the set replica
	// withFinished: cliques that have succeeded are listed as long as their pods exist; otherwise they are left out.
	withFinished bool
	nodes        []v2alpha2.SubGroup
	listed       map[string]*v2alpha2.TopologyConstraint // of existing, by node; "": the PodGroup
}

// listNodes fills listed.
func (t *treeNodes) listNodes() {
	if t.existing == nil {
		return
	}
	t.listed = map[string]*v2alpha2.TopologyConstraint{"": t.existing.Spec.TopologyConstraint}
	for i := range t.existing.Spec.SubGroups {
		t.listed[t.existing.Spec.SubGroups[i].Name] = t.existing.Spec.SubGroups[i].TopologyConstraint
	}
}

// constraint returns the constraint of a node and whether the node can be in the PodGroup: Topology.constraint.
func (t *treeNodes) constraint(node string, tc *v1alpha1.TopologyConstraint) (*v2alpha2.TopologyConstraint, bool) {
	existing, listed := t.listed[node]
	return t.live.Topology.constraint(tc, listed, existing)
}

// addReplica adds all nodes.
func (t *treeNodes) addReplica() {
	template := &t.set.Spec.Template
	for _, c := range template.StandaloneCliques() {
		name := naming.PodCliqueName(t.set.Name, t.i, c.Name)
		recorded := recordedScale(t.set, t.i, c.Name, c.Spec.Replicas, t.live.Cliques[name] != nil)
		t.addLeaf(name, "", t.leafMinimum(name, c, recorded), c.TopologyConstraint)
	}
	for k := range template.PodCliqueScalingGroupConfigs {
		t.addScalingGroup(&template.PodCliqueScalingGroupConfigs[k])
	}
}

// addLeaf adds a clique unless its minimum is 0 or it has to wait for its topology, and reports whether it did. parent
// "" is the root.
func (t *treeNodes) addLeaf(name, parent string, minMember int32, tc *v1alpha1.TopologyConstraint) bool {
	constraint, known := t.constraint(name, tc)
	if minMember <= 0 || !known {
		return false
	}
	node := t.addNode(name, parent)
	node.MinMember, node.TopologyConstraint = &minMember, constraint
	return true
}

func (t *treeNodes) addNode(name, parent string) *v2alpha2.SubGroup {
	node := v2alpha2.SubGroup{Name: name}
	if parent != "" {
		node.Parent = &parent
	}
	t.nodes = append(t.nodes, node)
	return &t.nodes[len(t.nodes)-1]
}

// addScalingGroup adds a scaling group and all nodes below it, unless there is no node below it.
func (t *treeNodes) addScalingGroup(config *v1alpha1.PodCliqueScalingGroupConfig) {
	name := naming.ScalingGroup(t.set.Name, t.i, config.Name)
	g := t.live.Groups[name]
	minAvailable, replicas := config.MinAvailable, recordedScale(t.set, t.i, config.Name, groupReplicas(config), g != nil).replicas
	if g != nil {
		minAvailable, replicas = g.Spec.MinAvailable, g.Spec.Replicas
	}
	needed := lifecycle.GroupMinimum(minAvailable, replicas)
	at := len(t.nodes)
	t.addNode(name, "")
	children, finished := int32(0), int32(0)
	for j := range int(max(replicas, needed)) {
		switch {
		case t.addGroupReplica(config, j):
			children++
		case t.groupReplicaSucceeded(config, j):
			finished++
		}
	}
	if children == 0 {
		t.nodes = t.nodes[:at]
		return
	}
	needed = min(max(needed-finished, 1), children) // without finished children; at least one has not finished
	t.nodes[at].MinSubGroup = &needed
}

// addGroupReplica adds replica j of a scaling group, and reports whether it contains a node.
func (t *treeNodes) addGroupReplica(config *v1alpha1.PodCliqueScalingGroupConfig, j int) bool {
	at := len(t.nodes)
	node := naming.GroupReplica(t.set.Name, t.i, config.Name, j)
	constraint, known := t.constraint(node, config.TopologyConstraint)
	if !known {
		return false
	}
	t.addNode(node, naming.ScalingGroup(t.set.Name, t.i, config.Name)).TopologyConstraint = constraint
	empty := true
	for _, clique := range config.CliqueNames {
		c := t.set.Spec.Template.Clique(clique)
		if c == nil {
			continue
		}
		name := naming.MemberPodClique(t.set.Name, t.i, config.Name, j, clique)
		if t.addLeaf(name, node, t.leafMinimum(name, c, templateScale(c.Spec.Replicas)), c.TopologyConstraint) {
			empty = false
		}
	}
	if empty {
		t.nodes = t.nodes[:at]
	}
	return !empty
}

// groupReplicaSucceeded reports whether every clique of replica j of a scaling group has succeeded.
func (t *treeNodes) groupReplicaSucceeded(config *v1alpha1.PodCliqueScalingGroupConfig, j int) bool {
	for _, clique := range config.CliqueNames {
		if !t.hasSucceeded(t.live.Cliques[naming.MemberPodClique(t.set.Name, t.i, config.Name, j, clique)]) {
			return false
		}
	}
	return true
}

// leafMinimum returns the minMember of the leaf of a clique: according to the PodClique if it exists, otherwise to the
// values that it will be created with.
func (t *treeNodes) leafMinimum(name string, template *v1alpha1.PodCliqueTemplateSpec, recorded scale) int32 {
	live := t.live.Cliques[name]
	if t.hasSucceeded(live) && !t.withFinished {
		return 0
	}
	m := lifecycle.Minimum{Explicit: template.Spec.MinAvailable, AtCreation: recorded.initial, Replicas: recorded.replicas}
	if live != nil {
		m = Minimum(live)
	}
	if t.existing == nil {
		return trainingLeaf(live, m.Leaf(nil))
	}
	listed, _ := LeafOf(t.existing, name)
	return trainingLeaf(live, m.Leaf(&listed))
}

// hasSucceeded reports whether a clique has succeeded. A PodClique of an earlier attempt, which may still be in the
// cache, has not. c may be nil.
func (t *treeNodes) hasSucceeded(c *v1alpha1.PodClique) bool {
	return c != nil && c.DeletionTimestamp == nil && Attempt(c).Set >= t.attempt && CliqueFacts(c).Finished
}

// LeafOf returns the minMember of the leaf of a PodGroup that a PodClique's pods count towards, and whether the
// PodGroup lists it. If pg is nil, no leaf is listed.
func LeafOf(pg *v2alpha2.PodGroup, podClique string) (minMember int32, listed bool) {
	if pg == nil {
		return 0, false
	}
	for i := range pg.Spec.SubGroups {
		if sg := &pg.Spec.SubGroups[i]; sg.Name == podClique {
			return ptr.Deref(sg.MinMember, 0), true
		}
	}
	return 0, false
}

// trainingLeaf returns the minMember of the leaf of a PodClique of a Training workload, given the minMember if no pod
// had succeeded. The scheduler counts pods that have succeeded as long as their objects exist; minMember is reduced by
// pods that can no longer be counted. A clique that has succeeded is listed only beside others that have, with a
// minMember that does not exceed its existing pods. A clique that has not succeeded needs at least one pod, because a
// pod of it may have to be replaced. Source: docs/decisions, G9.
func trainingLeaf(clique *v1alpha1.PodClique, minMember int32) int32 {
	if clique == nil || !IsTraining(clique) || minMember <= 0 {
		return minMember
	}
	s := &clique.Status
	if CliqueFacts(clique).Finished {
		return min(minMember, s.SucceededReplicas-s.RemovedSucceededReplicas)
	}
	return max(minMember-s.RemovedSucceededReplicas, 1)
}
