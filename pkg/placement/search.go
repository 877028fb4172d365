package placement

import (
	"fmt"
	"strings"

	"github.com/muster-project/muster/pkg/gang"
)

// plan satisfies the group, or leaves everything as it was.
func (pl *planner) plan(g *gang.Group, budget Budget) bool {
	base := len(pl.stack)
	pl.attempts++
	if pl.fill(g, nil) {
		return true
	}
	pl.undo(base)
	return false
}

// signature describes the group as the World sees it: groups of one signature can stand in for each other. independent:
// no pod below the group has a class with domains.
func (pl *planner) signature(g *gang.Group) (signature string, independent bool) {
	var b strings.Builder
	independent = true
	var write func(g *gang.Group)
	write = func(g *gang.Group) {
		fmt.Fprintf(&b, "%d", pl.missing(g))
		if g.IsLeaf() {
			for _, s := range pl.waiting(g) {
				c := pl.class(s)
				independent = independent && pl.independent(c)
				fmt.Fprintf(&b, ",%d", c)
			}
			return
		}
		b.WriteByte('(')
		for _, child := range g.Children() {
			write(child)
			b.WriteByte(';')
		}
		b.WriteByte(')')
	}
	write(g)
	return b.String(), independent
}
