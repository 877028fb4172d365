// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import "testing"

// 500 pods on 100 nodes: most of the time the controllers bind their volumes.
func TestLargeGangWithVolumesBesidePlainPods(t *testing.T) {
	besidePlainPods{nodes: 100, onNode: 5, pods: 500}.run(t, 1)
}
