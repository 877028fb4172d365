// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import "k8s.io/apimachinery/pkg/util/sets"

// RefusingPlugins returns the plugins that have refused a class, or a node for a class, in this plan.
func (w *Snapshot) RefusingPlugins() sets.Set[string] {
	plugins, seen := sets.New[string](), make([]bool, len(w.cache.reasons))
	for _, c := range w.classes {
		if c.refuse != nil {
			plugins.Insert(c.refuse.Plugin())
			continue
		}
		plugins = plugins.Union(c.refusedBy)
		if c.known == nil {
			continue
		}
		for _, reason := range c.known.reasons {
			seen[reason] = true
		}
	}
	for reason, is := range seen {
		if is {
			plugins.Insert(w.cache.reasons[reason].plugin)
		}
	}
	plugins.Delete("") // no plugin: it takes the pod, or an extender or the time refused it
	return plugins
}
