// SPDX-License-Identifier: Apache-2.0

// Package advice finds the smallest changes of a cluster, or of a gang, after which a gang that waits would start. Each
// is tried: the change is made in an Offline scheduler, the gang is planned there as in a scheduling cycle, and the
// change is taken back.
package advice

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// Kind is a kind of changes.
type Kind string

const (
	// NodesAvailable: nodes are uncordoned.
	NodesAvailable Kind = "NodesAvailable"
	// TaintRemoved: nodes lose a taint, or the pods tolerate it.
	TaintRemoved Kind = "TaintRemoved"
	// NodesAdded: there are more nodes like an existing one.
	NodesAdded Kind = "NodesAdded"
	// LevelRelaxed: a required topology level is only preferred.
	LevelRelaxed Kind = "LevelRelaxed"
	// MinimumLowered: fewer pods, or sub-groups, are needed.
	MinimumLowered Kind = "MinimumLowered"
	// PriorityRaised: the pods have another PriorityClass, and preempt.
	PriorityRaised Kind = "PriorityRaised"
	// GangEnds: another gang ends, with all of its pods.
	GangEnds Kind = "GangEnds"
)

// Change is a change after which the gang starts.
type Change struct {
	Kind Kind `json:"kind"`
	// Text says what is changed: "node-0006 is uncordoned".
	Text string `json:"text"`
	// Size is how large it is, in units of its kind: nodes, pods or sub-groups that the minimum has less, the priority,
	// GPUs that a gang holds.
	Size int64 `json:"size"`
	// Command does it, "" if it needs more than one.
	Command string `json:"command,omitempty"`
	// Preempts are the gangs, and pods without one, that would end for the gang then.
	Preempts []string `json:"preempts,omitempty"`
	// Put are the objects that the change adds or replaces, Delete those that it deletes.
	Put    []client.Object `json:"-"`
	Delete []client.Object `json:"-"`
}

// Cluster is the cluster in which changes are tried.
type Cluster struct {
	Offline *gangadmission.Offline
	// Pods are the pods on nodes by gang; the key of those without a gang is zero.
	Pods map[gangs.Key][]*corev1.Pod
	// Nodes are all nodes, by name.
	Nodes map[string]*corev1.Node
	// Classes are the PriorityClasses, by name.
	Classes map[string]*schedulingv1.PriorityClass
}

// make makes the change in the Offline, and returns what takes it back. An error means that the Offline must not be
// used any more.
func (c *Cluster) make(x *Change) (undo func() error, err error) {
	var undone []func() error
	undo = func() error {
		for i := len(undone) - 1; i >= 0; i-- {
			if err := undone[i](); err != nil {
				return fmt.Errorf("taking back %q: %w", x.Text, err)
			}
		}
		return nil
	}
	o := c.Offline
	for _, object := range x.Put {
		switch object := object.(type) {
		case *corev1.Node:
			if old := c.Nodes[object.Name]; old != nil {
				undone = append(undone, func() error { o.SetNode(old); return nil })
			} else {
				undone = append(undone, func() error { return o.RemoveNode(object) })
			}
			o.SetNode(object)
		case *v2alpha2.PodGroup:
			facts, _ := o.Facts(client.ObjectKeyFromObject(object))
			old := facts.Group
			setGroup(o, object)
			undone = append(undone, func() error { setGroup(o, old); return nil })
		}
	}
	replaced := map[types.UID]*corev1.Pod{}
	for _, pods := range c.waiting(x) {
		replaced[pods.UID] = pods
	}
	for _, object := range x.Put {
		if pod, ok := object.(*corev1.Pod); ok {
			if old := replaced[pod.UID]; old != nil {
				undone = append(undone, func() error { o.SetPod(old); return nil })
			}
			o.SetPod(pod)
		}
	}
	for _, object := range x.Delete {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			if err := o.FreeRoom(pod); err != nil {
				return undo, fmt.Errorf("trying %q: %w", x.Text, err)
			}
			undone = append(undone, func() error { return o.TakeRoom(pod) })
		}
	}
	return undo, nil
}

// waiting returns the waiting pods of the gangs whose pods a change replaces, as they are.
func (c *Cluster) waiting(x *Change) []*corev1.Pod {
	for _, object := range x.Put {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			continue
		}
		facts, _ := c.Offline.Facts(gangOf(pod))
		var pods []*corev1.Pod
		for _, w := range facts.Waiting {
			pods = append(pods, w.Pod)
		}
		return pods // a change replaces the pods of one gang
	}
	return nil
}

// setGroup replaces a PodGroup; its generation rises, so that it is tried again.
func setGroup(o *gangadmission.Offline, group *v2alpha2.PodGroup) {
	now, _ := o.Facts(client.ObjectKeyFromObject(group))
	group = group.DeepCopy()
	if now.Group != nil {
		group.Generation = now.Group.Generation + 1
	}
	o.SetGroup(group)
}

// prober tries changes for one gang until its time is over.
type prober struct {
	ctx     context.Context //nolint:containedctx // of the one call that it is made for
	cluster *Cluster
	gang    gangs.Key
	until   time.Time
	tried   int
	err     error // the first one; nothing is tried after it
}

// isOver reports whether nothing more is to be tried.
func (p *prober) isOver() bool {
	return p.err != nil || p.ctx.Err() != nil || p.cluster.Offline.Now().After(p.until)
}

// try returns what becomes of the gang after a change; nil: its time is over.
func (p *prober) try(x *Change, preempt bool) *gangadmission.Outcome {
	if p.isOver() {
		return nil
	}
	p.tried++
	undo, err := p.cluster.make(x)
	var out *gangadmission.Outcome
	if err == nil {
		out, err = p.cluster.Offline.Try(p.ctx, p.gang, gangadmission.Options{Preempt: preempt})
	}
	if undoErr := undo(); err == nil {
		err = undoErr
	}
	if p.err = err; err != nil {
		return nil
	}
	return out
}

// starts reports whether the gang has a plan after a change, without an eviction.
func (p *prober) starts(x *Change) bool {
	out := p.try(x, false)
	return out != nil && len(out.Placements) > 0
}

// smallest returns the change with the smallest n, of those from 1 to most, that starts the gang, by bisection; of
// returns the change of a size. nil: even the largest does not, or the time is over.
func (p *prober) smallest(most int, of func(n int) *Change) *Change {
	if most < 1 {
		return nil
	}
	best := of(most)
	if !p.starts(best) {
		return nil
	}
	for low := 0; most-low > 1; { // most starts it, low does not
		n := (low + most) / 2
		switch x := of(n); {
		case p.isOver():
			return best
		case p.starts(x):
			best, most = x, n
		default:
			low = n
		}
	}
	return best
}
