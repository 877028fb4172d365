// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// teller writes the output of the demo.
type teller struct {
	painter
	out   io.Writer
	began time.Time

	stepBegan time.Time
	said      map[string]string // per gang, PodCliqueSet and unit, the last line about it
	told      bool              // a line about a change was written in this step
}

func (t *teller) line(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// text writes lines as they are.
func (t *teller) text(lines string) { fmt.Fprint(t.out, lines) }

func (t *teller) headline(number int, s step) {
	t.stepBegan, t.told = time.Now(), false
	t.line("\n%s", t.bold(fmt.Sprintf("%d. %s", number, s.title)))
	t.line("%s", wrap(s.why, "   ", "   "))
}

// tell writes one line for each gang, PodCliqueSet and unit whose state has changed.
func (t *teller) tell(s scene) {
	now := map[string]string{} // by what a line is about, in the order in which lines are written
	for i, name := range gangs {
		if g := s.group(name); g.Status.Phase != "" {
			more := ""
			if n := surplus(g); n > 0 {
				more = "and " + plural(n, "pod") + " above the minimum"
			}
			now[fmt.Sprintf("%02d", i)] = fmt.Sprintf("%-17s  %-9s  %-6s %s%s", name, g.Status.Phase, g.Status.Scheduled, g.Status.Reason, more)
		}
	}
	for _, set := range s.sets {
		if set.Status.Phase != "" {
			available := fmt.Sprintf("%d/%d", set.Status.AvailableReplicas, set.Spec.Replicas)
			now["PodCliqueSet/"+set.Name] = fmt.Sprintf("%-17s  %-9s  %-6s available%s", set.Name, set.Status.Phase, available, updateOf(set))
		}
	}
	for name, doing := range s.unitsOf() {
		now["Unit/"+name] = fmt.Sprintf("%-17s  %s", name, doing)
	}
	for _, about := range slices.Sorted(maps.Keys(now)) {
		if t.said[about] != now[about] {
			t.line("   %5.2f s  %s", time.Since(t.stepBegan).Seconds(), strings.TrimRight(now[about], " "))
			t.told = true
		}
	}
	t.said = now
}

// updateOf summarizes the progress of an update of the set in a few words; "" before the first update.
func updateOf(set *v1alpha1.PodCliqueSet) string {
	c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing)
	if c == nil || set.Status.UpdateProgress == nil {
		return ""
	}
	return fmt.Sprintf(", %d/%d updated, %s", set.Status.UpdatedReplicas, set.Spec.Replicas, c.Reason)
}

// unitsOf describes the unit that an update is replacing, for each PodClique and scaling group, by name.
func (s scene) unitsOf() map[string]string {
	units := map[string]string{}
	for _, group := range s.scalingGroups {
		if p := group.Status.UpdateProgress; p != nil && p.UpdateEndedAt == nil && p.ReadyReplicaIndicesSelectedToUpdate != nil && p.ReadyReplicaIndicesSelectedToUpdate.Current != nil {
			units[group.Name] = fmt.Sprintf("replacing replica %d", *p.ReadyReplicaIndicesSelectedToUpdate.Current)
		}
	}
	for _, clique := range s.cliques {
		if p := clique.Status.UpdateProgress; p != nil && p.UpdateEndedAt == nil && p.ReadyPodsSelectedToUpdate != nil {
			units[clique.Name] = fmt.Sprintf("replacing pod %s", p.ReadyPodsSelectedToUpdate.Current)
		}
	}
	return units
}

// outcome shows the cluster after a step, what commands said, and the claims that held.
func (t *teller) outcome(s scene, of step, said string) {
	if t.told {
		t.line("")
	}
	t.line("%s", picture(s, t.painter))
	if said != "" {
		t.line("%s", said)
	}
	for _, c := range of.throughout {
		t.line("    %s at every moment: %s", t.state(true, "ok"), c.text)
	}
	for _, c := range slices.Concat(of.first, of.claims) {
		t.line("    %s %s", t.state(true, "ok"), c.text)
	}
}

// Write implements io.Writer for the progress of the start: it indents each line and adds the time.
func (t *teller) Write(lines []byte) (int, error) {
	for line := range strings.Lines(string(lines)) {
		t.text(fmt.Sprintf("   %5.2f s  %s", time.Since(t.began).Seconds(), line))
	}
	return len(lines), nil
}
