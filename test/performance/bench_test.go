// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInTurn(t *testing.T) {
	t.Parallel()
	var got [][]string
	for round := range 3 {
		got = append(got, inTurn([]string{"floor", "muster", "stock"}, round))
	}
	want := [][]string{{"muster", "stock", "floor"}, {"stock", "muster", "floor"}, {"muster", "stock", "floor"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inTurn (-want +got):\n%s", diff)
	}
}

func TestEveryRoundBeginsWithAnotherVariant(t *testing.T) {
	t.Parallel()
	var got [][]string
	for round := range 4 {
		got = append(got, rotated([]string{"trees", "whole", "flat"}, round))
	}
	want := [][]string{{"trees", "whole", "flat"}, {"whole", "flat", "trees"}, {"flat", "trees", "whole"}, {"trees", "whole", "flat"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rotated (-want +got):\n%s", diff)
	}
	if got := rotated([]string{}, 1); len(got) != 0 {
		t.Errorf("rotated returns %v for an empty list", got)
	}
}

func TestTheFloorHasNoPartWhereNothingIsBound(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"drain-1000": true, "drain-5000": true, "small-gangs": true, "trees": true, "plain": true, "big-gang": true, "huge-gang": true,
		"refused": false, "waiting": false, "throughput": false, "restart": false,
	} {
		found, err := plans(name, options{repeat: 1, gpus: 8, contestants: []string{muster, floor}})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(found[0].inTurn(0), floor); got != want {
			t.Errorf("%s: the floor takes part: %v, want %v", name, got, want)
		}
	}
}
