// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"time"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// statusDelay returns how long to wait before the status of recorded is written over that of clique; 0: write it now.
// It remembers when the status first differed: the beginning of the first pass that observed a difference. creating:
// this pass, which began at that time, has created pods, or waits to create them.
func (r *Reconciler) statusDelay(clique, recorded *v1alpha1.PodClique, pods []lifecycle.Pod, creating bool, began time.Time) time.Duration {
	change, differs := desired.PodCliqueStatusChange(&clique.Status, &recorded.Status, pods)
	if !differs {
		r.unwritten.Observe(string(clique.UID), began)
		return 0
	}
	change.Settling = change.Settling || creating
	change.Since = r.unwritten.Observe(string(clique.UID), began, children.Fact{})[0].Since
	return lifecycle.StatusDelay(change, r.clock.Now())
}
