// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/test/wrappers"
)

// As long as PodGroups cannot be read, pods without a gang are scheduled, and tried again when room becomes free. They
// preempt as soon as it is known which pods belong to gangs (docs/decisions, G15).
func TestPlainPodsWhilePodGroupsCannotBeRead(t *testing.T) {
	t.Parallel()
	readable := make(chan struct{})
	c := newCluster(t, func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) { c.readable = readable })
	c.node(wrappers.MakeNode("n0").GPUs(1)).run()
	c.pod(wrappers.MakePod("first", "ml").GPUs(1)).eventually("the first runs", c.isBound("first"))
	failed := c.countFailures()
	c.pod(wrappers.MakePod("second", "ml").GPUs(1)).eventually("the second is refused", func() bool { return failed.Load() > 0 })
	c.deletePod("first")
	c.eventually("the second runs", c.isBound("second"))

	before := failed.Load()
	c.pod(wrappers.MakePod("high", "ml").GPUs(1).Priority(100)).eventually("one of a higher priority is refused", func() bool { return failed.Load() > before })
	if got := c.evicted(); len(got) > 0 {
		t.Errorf("%v end, and nobody knows whether they belong to a gang that is protected", got)
	}
	close(readable)
	c.eventually("it preempts", c.isBound("high"))
	if got := c.evicted(); !slices.Equal(got, []string{"second"}) {
		t.Errorf("%v end, want the second", got)
	}
}
