// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAttempt(t *testing.T) {
	t.Parallel()
	slow := errors.New("slow")
	after := false
	err := attempt(func() {
		if got := got(7, nil); got != 7 {
			t.Errorf("got returns %d, want 7", got)
		}
		must(fmt.Errorf("a step: %w", unfinished{slow}))
		after = true
	})
	var late unfinished
	if !errors.As(err, &late) || err.Error() != "a step: slow" || after {
		t.Errorf("attempt returns %v, and goes on: %v", err, after)
	}
	if err := attempt(func() { must(nil) }); err != nil {
		t.Errorf("attempt returns %v without an error", err)
	}
	defer func() {
		if r := recover(); r != "a fault" {
			t.Errorf("a panic comes out of attempt as %v", r)
		}
	}()
	_ = attempt(func() { panic("a fault") })
}

func TestInTurn(t *testing.T) {
	t.Parallel()
	var got [][]string
	for round := range 3 {
		got = append(got, plan{o: options{contestants: []string{"floor", "muster", "stock"}}}.inTurn(round))
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
		"refused": false, "waiting": false, "throughput": false, "restart": false, "preempt": false, "workload": true,
	} {
		found, err := parse([]string{"-shape=" + name, "-contestants=muster,floor"})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(found[0].inTurn(0), floor); got != want {
			t.Errorf("%s: the floor takes part: %v, want %v", name, got, want)
		}
	}
}
