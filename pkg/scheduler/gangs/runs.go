// SPDX-License-Identifier: Apache-2.0

package gangs

// A JobSet that restarts makes pods of a new run while those of the former one still end, and so does a LeaderWorkerSet
// whose leader is made again. If both counted, the new ones would start one by one, as replacements in a gang that
// runs. So only pods of the latest run count, of which a pod exists that tells (docs/decisions, G9). Of a former one,
// bound pods are like those whose sub-group was removed (docs/decisions, G12), others like pods being deleted.

// runs are those of the gang's workload.
type runs struct {
	latest   int // see membership.Run; 0: no member tells
	ofLatest int // the members that tell of it
}

// isFormer reports whether the member belongs to a former run.
func (m *member) isFormer() bool { return m.run > 0 && m.run < m.gang.latest }

// addToRun counts a new member in its run. If that begins, earlier pods count for nothing from now on, and their plan
// is aborted.
func (r *Registry) addToRun(m *member) {
	g := m.gang
	switch {
	case !m.beginsRun, m.run < g.latest:
	case m.run == g.latest:
		g.ofLatest++
	default:
		g.latest, g.ofLatest = m.run, 1
		if !g.hasFormer() {
			return
		}
		if g.plan != nil {
			r.abortPlan(g.plan, AbortChanged, "the workload was restarted")
		}
		r.recountRuns(g)
	}
}

func (g *gangState) hasFormer() bool {
	for _, m := range g.members {
		if m.isFormer() {
			return true
		}
	}
	return false
}

// removeFromRun is called after a member was removed. If it was the last one that told of its run, the latest of the
// others counts.
func (r *Registry) removeFromRun(m *member) {
	g := m.gang
	if !m.beginsRun || m.run != g.latest {
		return
	}
	if g.ofLatest--; g.ofLatest > 0 {
		return
	}
	g.latest = 0
	for _, other := range g.members {
		switch {
		case !other.beginsRun:
		case other.run > g.latest:
			g.latest, g.ofLatest = other.run, 1
		case other.run == g.latest:
			g.ofLatest++
		}
	}
	if len(g.members) > 0 {
		r.recountRuns(g)
	}
}

// recountRuns counts the members anew after another run has become the latest.
func (r *Registry) recountRuns(g *gangState) {
	protected := g.protectedUpTo()
	g.recountAll()
	r.recordVictimsChanged(g, protected)
	if r.synced { // else pods of the status may follow
		g.admitAllGroups()
	}
	g.recordOwnChange()
}
