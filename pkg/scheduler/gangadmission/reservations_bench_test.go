// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

// BenchmarkReservationsEnd measures the end of a reservation, including the event of the pod that is bound in its place
// and the look of the next plain pod at what is left. All reservations end, one after another.
func BenchmarkReservationsEnd(b *testing.B) {
	for _, n := range []int{1024, 8192} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			now := time.Now()
			pod := func(kind string, i int) *wrappers.PodWrapper {
				name := fmt.Sprintf("%s-%d", kind, i)
				return wrappers.MakePod(name, "ml").UID(name).Gang(fmt.Sprint("g", i/1024)).GPUs(1).Node(fmt.Sprint("n", i/8))
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				g := New()
				r := g.registry
				r.Configure(gangs.Options{RepairTimeout: time.Minute, ReplacementTimeout: time.Hour})
				r.AddProfile(wrappers.SchedulerName)
				for gang := range n / 1024 {
					name := fmt.Sprint("g", gang)
					r.SetGroup(wrappers.MakePodGroup(name, "ml").UID(name).MinMember(1024).Annotation(v2alpha2.ReplacingAnnotation, "true").Obj(), now)
				}
				for i := range n {
					r.SetPod(pod("old", i).Obj(), now)
				}
				r.SetSynced(now)
				for i := range n {
					gone := pod("old", i).Obj()
					at := metav1.NewTime(now)
					gone.DeletionTimestamp = &at
					r.SetPod(gone, now)
				}
				if got := r.Reservations().Len(); got != n {
					b.Fatalf("%d reservations, want %d", got, n)
				}
				replacements := make([]*corev1.Pod, n)
				for i := range n {
					replacements[i] = pod("new", i).Obj()
				}
				b.StartTimer()
				for i := range n {
					r.SetPod(replacements[i], now)
					if got := r.Reservations().Len(); got != n-1-i {
						b.Fatalf("%d reservations, want %d", got, n-1-i)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/end")
		})
	}
}
