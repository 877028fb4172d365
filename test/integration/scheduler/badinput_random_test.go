// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// Random disturbances: pods of four gangs are created, deleted, created again under the same name, finish, change their
// sub-group, their gang and their gates, PodGroups are edited and deleted, nodes are cordoned. Undisturbed gangs are
// created pod by pod meanwhile. In the end, with room for all and every mistake corrected, every gang must be
// satisfied, and no undisturbed gang may ever have been released.
func TestRandomDisturbances(t *testing.T) {
	const disturbed, steps = 4, 150
	c := newCluster(t, 4)
	c.startQuick()
	o := c.observe()
	for round := range rounds.Number() {
		random := rand.New(rand.NewPCG(uint64(round), 17))
		d := &disturber{c: c, random: random, round: round}
		var quiet []string
		var missing []*wrappers.PodWrapper // pods of undisturbed gangs that are not created yet
		for step := range steps {
			if step%25 == 0 {
				name := fmt.Sprintf("quiet-%d-%d", round, len(quiet))
				quiet = append(quiet, name)
				o.expect(name, 4)
				c.apply(c.group(name).MinMember(4))
				for _, n := range numbered(name, 4) {
					missing = append(missing, c.pod(n, name, 2))
				}
			}
			if len(missing) > 0 && random.IntN(4) == 0 {
				i := random.IntN(len(missing))
				c.create(missing[i])
				missing = slices.Delete(missing, i, i+1)
			}
			d.disturb(fmt.Sprintf("g-%d-%d", round, random.IntN(disturbed)))
		}
		for _, w := range missing {
			c.create(w)
		}

		// Every mistake is corrected, and there is room.
		for _, n := range c.nodes {
			d.cordon(n, false)
		}
		extra := c.addNodes(24) // 3 GPUs for every pod that may be there
		var all []string
		for i := range disturbed {
			name := fmt.Sprintf("g-%d-%d", round, i)
			all = append(all, name)
			c.apply(c.group(name).MinMember(3))
			for _, n := range numbered(name+"-final", 3) {
				c.create(c.pod(n, name, 1))
			}
		}
		for _, name := range append(all, quiet...) {
			c.untilSatisfied(name)
		}
		for _, name := range quiet {
			c.untilBound(name, 4)
		}
		t.Logf("round %d: %d steps, %v", round, steps, d.did)
		for _, name := range append(all, quiet...) {
			o.forget(name)
			c.deleteGang(name)
		}
		for _, p := range c.pods() {
			c.delete(p.Name)
		}
		for _, n := range extra {
			c.deleteNode(n)
		}
		c.nodes = slices.DeleteFunc(c.nodes, func(n string) bool { return slices.Contains(extra, n) })
	}
	partials, _ := o.stop()
	released(t, partials)
	t.Logf("undisturbed gangs were seen bound in part %d times, at the longest for %s", len(partials), longest(partials).Round(time.Millisecond))
	c.stillSchedules()
}

// disturber performs random actions of users and controllers on gangs.
type disturber struct {
	c      *cluster
	random *rand.Rand
	round  int
	pods   int
	did    map[string]int
}

var disturbedLeaves = []string{"a", "b", "c", "inner", "nowhere", ""}

func (d *disturber) disturb(group string) {
	c := d.c
	c.t.Helper()
	what := ""
	switch d.random.IntN(16) {
	case 0, 1, 2, 3, 4, 5:
		what = "create"
		d.pods++
		d.create(fmt.Sprintf("%s-p%d", group, d.pods), group)
	case 6, 7:
		what = "recreate"
		if p := d.any(group, nil); p != nil {
			c.delete(p.Name)
			d.create(p.Name, group)
		}
	case 8:
		what = "delete"
		if p := d.any(group, nil); p != nil {
			c.delete(p.Name)
		}
	case 9, 10:
		what = "edit"
		c.apply(d.tree(group))
	case 11:
		what = "delete PodGroup"
		if err := c.dynamic.Resource(podGroups).Namespace(c.namespace).Delete(c.ctx, group, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			c.must(err, "deleting a PodGroup")
		}
	case 12:
		what = "relabel"
		if p := d.any(group, nil); p != nil {
			c.label(p.Name, disturbedLeaves[d.random.IntN(len(disturbedLeaves))])
		}
	case 13:
		what = "lift gates"
		if p := d.any(group, func(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }); p != nil {
			c.patchPod(p.Name, map[string]any{"spec": map[string]any{"schedulingGates": []any{}}})
		}
	case 14:
		what = "end"
		if p := d.any(group, func(p *corev1.Pod) bool { return p.Spec.NodeName != "" && p.Status.Phase == corev1.PodPending }); p != nil {
			c.must(cp.ExitPod(c.ctx, c.namespace, p.Name, d.random.IntN(2)), "ending a pod")
		}
	default:
		what = "cordon"
		d.cordon(c.nodes[d.random.IntN(len(c.nodes))], d.random.IntN(2) == 0)
	}
	if d.did == nil {
		d.did = map[string]int{}
	}
	d.did[what]++
}

func (d *disturber) create(name, group string) {
	w := d.c.pod(name, group, int64(1+d.random.IntN(3)))
	if leaf := disturbedLeaves[d.random.IntN(len(disturbedLeaves))]; leaf != "" {
		w.SubGroup(leaf)
	}
	if d.random.IntN(6) == 0 {
		w.SchedulingGate("example.com/gate")
	}
	d.c.create(w)
}

// tree draws a PodGroup.
func (d *disturber) tree(group string) *wrappers.PodGroupWrapper {
	pg := d.c.group(group)
	switch d.random.IntN(4) {
	case 0:
		return pg.MinMember(int32(1 + d.random.IntN(4)))
	case 1:
		return pg.MinSubGroup(2).SubGroup("a", 1).SubGroup("b", 2).SubGroup("c", 1)
	case 2:
		return pg.Inner("", "inner", 1).SubGroupOf("inner", "a", 2).SubGroupOf("inner", "b", 1).SubGroup("c", 1)
	default:
		return pg.SubGroup("a", int32(1+d.random.IntN(3)))
	}
}

// any draws one of the gang's pods, nil if there is none of that kind.
func (d *disturber) any(group string, kind func(*corev1.Pod) bool) *corev1.Pod {
	var of []corev1.Pod
	for _, p := range d.c.pods() {
		if p.Annotations[v2alpha2.PodGroupAnnotation] == group && (kind == nil || kind(&p)) {
			of = append(of, p)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return &of[d.random.IntN(len(of))]
}

func (d *disturber) cordon(node string, cordoned bool) {
	d.c.change(node, func(n *corev1.Node) { n.Spec.Unschedulable = cordoned })
}
