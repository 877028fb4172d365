// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGraceOf(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	for name, tc := range map[string]struct {
		seconds *int64
		deleted time.Time // when it is to have ended; zero: it is not terminating
		want    time.Duration
	}{
		"the default":                        {nil, time.Time{}, 30 * time.Second},
		"none":                               {new(int64(0)), time.Time{}, 0},
		"an hour":                            {new(int64(3600)), time.Time{}, time.Hour},
		"negative":                           {new(int64(-3600)), time.Time{}, time.Second},
		"more than a Duration can represent": {new(int64(math.MaxInt64)), time.Time{}, longestGrace},
		"terminating":                        {new(int64(3600)), now.Add(time.Minute), time.Minute},
		"terminating for too long":           {new(int64(3600)), now.Add(-time.Minute), 0},
		"terminating without end":            {nil, time.Unix(math.MaxInt32*1000, 0), longestGrace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: tc.seconds}}
			if !tc.deleted.IsZero() {
				pod.DeletionTimestamp = &metav1.Time{Time: tc.deleted}
			}
			if got := GraceOf(pod, now); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
