// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestWhomAReservationRestricts(t *testing.T) {
	t.Parallel()
	x := Reservation{Owner: ownerNamed("gx"), Priority: 10}
	for name, tc := range map[string]struct {
		asker Asker
		want  bool
	}{
		"a gang of the same priority":  {Asker{Gang: ownerNamed("h").Gang, Priority: 10}, true},
		"a gang of a lower priority":   {Asker{Gang: ownerNamed("h").Gang, Priority: 9}, true},
		"a gang of a higher priority":  {Asker{Gang: ownerNamed("h").Gang, Priority: 11}, false},
		"a pod without a gang":         {Asker{Priority: 10}, true},
		"a pod of a higher priority":   {Asker{Priority: 11}, false},
		"surplus of a higher priority": {Asker{Gang: ownerNamed("h").Gang, Priority: 11, Surplus: true}, false},
		"its own gang, which has less": {Asker{Gang: ownerNamed("g").Gang, Priority: 1}, false},
		"a pod that ends by itself":    {Asker{Priority: 10, Ends: time.Unix(1, 0)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := x.Restricts(tc.asker); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhoEndsBeforeAGangStarts(t *testing.T) {
	t.Parallel()
	starts := time.Unix(1000, 0)
	x := Reservation{Owner: ownerNamed("g" + EveryLeaf), Priority: 10, Starts: starts}
	for name, tc := range map[string]struct {
		ends time.Time
		want bool
	}{
		"does not say":       {time.Time{}, true},
		"before":             {starts.Add(-time.Second), false},
		"at this moment":     {starts, false},
		"afterwards":         {starts.Add(time.Nanosecond), true},
		"in a hundred years": {starts.AddDate(100, 0, 0), true},
		"has ended long ago": {starts.AddDate(-100, 0, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := x.Restricts(Asker{Priority: 10, Ends: tc.ends}); got != tc.want {
				t.Errorf("restricted: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	gpus := func(pods, n int64) Amount {
		return Amount{Pods: pods, Resources: map[corev1.ResourceName]int64{"gpu": n}}
	}
	var sum Amount
	sum.Add(gpus(1, 4), 1)
	sum.Add(gpus(1, 2), 1)
	sum.Add(gpus(1, 1), -1)
	if diff := cmp.Diff(gpus(1, 5), sum); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
	sum.AddRest(gpus(2, 6), gpus(1, 4))
	sum.AddRest(gpus(1, 1), gpus(2, 8))
	if diff := cmp.Diff(gpus(2, 7), sum); diff != "" {
		t.Errorf("with the rests (-want +got):\n%s", diff)
	}
	if empty := (Amount{}); !empty.IsEmpty() || sum.IsEmpty() {
		t.Error("an amount is empty if nothing was added")
	}
}
