// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryGPUIsInOneState(t *testing.T) {
	t.Parallel()
	const gpu = "nvidia.com/gpu"
	node := func(wanted int64, used, kept []Use) Room {
		return Room{Resource: gpu, Allocatable: 8, Used: used, Kept: kept, Wanted: wanted, Open: true}
	}
	tests := map[string]struct {
		rooms     []Room
		want      map[State]int64
		startable [len(Sizes)]int64
	}{
		"an empty node that nobody wants": {
			rooms: []Room{node(-1, nil, nil)}, want: map[State]int64{FreeUnwanted: 8}, startable: [...]int64{8, 4, 2, 1},
		},
		"an empty node that a waiting gang could use": {
			rooms: []Room{node(8, nil, nil)}, want: map[State]int64{FreeUsable: 8}, startable: [...]int64{8, 4, 2, 1},
		},
		"a waiting gang could use a part of what is free": {
			rooms: []Room{node(4, []Use{{Working, 2}}, nil)}, want: map[State]int64{Working: 2, FreeUsable: 4, FreeUnusable: 2}, startable: [...]int64{6, 3, 1, 0},
		},
		"no pod that waits fits": {
			rooms: []Room{node(0, []Use{{Working, 5}}, nil)}, want: map[State]int64{Working: 5, FreeUnusable: 3}, startable: [...]int64{3, 1, 0, 0},
		},
		"more is wanted than is free": {
			rooms: []Room{node(16, []Use{{Starting, 6}}, nil)}, want: map[State]int64{Starting: 6, FreeUsable: 2}, startable: [...]int64{2, 1, 0, 0},
		},
		"kept room is not free": {
			rooms: []Room{node(8, []Use{{Victim, 2}}, []Use{{KeptForPreemptor, 4}, {KeptForReplacement, 1}})},
			want:  map[State]int64{Victim: 2, KeptForPreemptor: 4, KeptForReplacement: 1, FreeUsable: 1}, startable: [...]int64{1, 0, 0, 0},
		},
		"two halves are no whole": {
			rooms:     []Room{node(0, []Use{{Working, 4}}, nil), node(0, []Use{{Working, 4}}, nil)},
			want:      map[State]int64{Working: 8, FreeUnusable: 8},
			startable: [...]int64{8, 4, 2, 0},
		},
		"a node that takes no pods": {
			rooms: []Room{{Resource: gpu, Allocatable: 8, Wanted: 0}}, want: map[State]int64{FreeUnusable: 8},
		},
		"devices of a full node failed": {
			rooms: []Room{{Resource: gpu, Allocatable: 6, Used: []Use{{Partial, 4}, {Working, 4}}, Kept: []Use{{KeptForReplacement, 4}}, Wanted: 8, Open: true}},
			want:  map[State]int64{Partial: 4, Working: 2},
		},
		"all devices failed": {
			rooms: []Room{{Resource: gpu, Used: []Use{{Working, 8}}, Wanted: 8, Open: true}}, want: map[State]int64{},
		},
		"negative amounts count as none": {
			rooms: []Room{{Resource: gpu, Allocatable: -2, Used: []Use{{Working, -3}}}, node(-1, []Use{{Working, -1}}, nil)},
			want:  map[State]int64{FreeUnwanted: 8}, startable: [...]int64{8, 4, 2, 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := Ledger{}
			for _, r := range tt.rooms {
				l.Add(r)
			}
			got := map[State]int64{}
			for s, n := range l[gpu].GPUs {
				if n != 0 {
					got[State(s)] = n
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("GPUs (-want +got):\n%s", diff)
			}
			if l[gpu].Startable != tt.startable {
				t.Errorf("pods of %v GPUs that would start: %v, want %v", Sizes, l[gpu].Startable, tt.startable)
			}
		})
	}
}

func TestStateOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		gang                 State
		ready, ends, evicted bool
		want                 State
	}{
		"a ready pod":                               {ready: true, want: Working},
		"a pod that is not ready":                   {want: Starting},
		"a ready pod of a gang that is not":         {gang: Starting, ready: true, want: Starting},
		"a ready pod of a partial gang":             {gang: Partial, ready: true, want: Partial},
		"a pod of a torn unit":                      {gang: TornUnit, want: TornUnit},
		"a pod that ends":                           {ready: true, ends: true, want: Terminating},
		"a victim that ends":                        {ready: true, ends: true, evicted: true, want: Victim},
		"a victim whose deletion was not requested": {ready: true, evicted: true, want: Working},
		"a victim of a gang below its minimum":      {gang: BelowMinimum, ends: true, evicted: true, want: Victim},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := StateOf(tt.gang, tt.ready, tt.ends, tt.evicted); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// Whatever nodes report, the states of each resource sum to what is allocatable.
func TestTheStatesSumToWhatIsAllocatable(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(1))
	for range 2000 {
		l, want := Ledger{}, map[string]int64{}
		for range rng.Intn(6) {
			r := Room{Resource: []string{"a", "b"}[rng.Intn(2)], Allocatable: int64(rng.Intn(17)), Wanted: int64(rng.Intn(20) - 2), Open: rng.Intn(2) > 0}
			for range rng.Intn(5) {
				r.Used = append(r.Used, Use{State(rng.Intn(int(KeptForReplacement))), int64(rng.Intn(8))})
			}
			for range rng.Intn(3) {
				r.Kept = append(r.Kept, Use{KeptForReplacement + State(rng.Intn(2)), int64(rng.Intn(8))})
			}
			l.Add(r)
			want[r.Resource] += r.Allocatable
		}
		got := map[string]int64{}
		for resource, a := range l {
			for _, n := range a.GPUs {
				got[resource] += n
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("allocatable (-want +got):\n%s", diff)
		}
	}
}
