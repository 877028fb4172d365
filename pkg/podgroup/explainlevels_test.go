// SPDX-License-Identifier: Apache-2.0

package podgroup

import "testing"

const rackLevel = "topology.example.com/rack"

func TestLevelName(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]string{
		"rack": "rack", rackLevel: "rack", "topology.kubernetes.io/zone": "zone", "kubernetes.io/hostname": "node",
		"topology.example.com/block," + rackLevel: "rack", "a,kubernetes.io/hostname": "node",
	} {
		if got := LevelName(level); got != want {
			t.Errorf("LevelName(%q) = %q, want %q", level, got, want)
		}
	}
}
