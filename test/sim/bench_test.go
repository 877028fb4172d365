// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// BenchmarkStory starts a set of 8 pods and deletes it, in the fixed order: a minute and a half of virtual time.
func BenchmarkStory(b *testing.B) {
	b.ReportAllocs()
	steps := 0
	for b.Loop() {
		c := New(b, Options{Nodes: Nodes(3, 4)})
		c.Create(podCliqueSet())
		c.Advance(time.Minute)
		c.Delete(podCliqueSet())
		c.Advance(30 * time.Second)
		wantNothing(c)
		steps += c.Steps
	}
	b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
}
