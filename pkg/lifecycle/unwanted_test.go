// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnwanted(t *testing.T) {
	group := func(name string) Child { return Child{KindPodGroup, name} }
	clique := func(name string) Child { return Child{"PodClique", name} }
	owned := []OwnedChild{
		{Child: clique("a-0-x"), Replica: 0}, {Child: group("a-0"), Replica: 0},
		{Child: clique("a-1-x"), Replica: 1}, {Child: group("a-1"), Replica: 1}, {Child: clique("a-1-a"), Replica: 1},
		{Child: clique("a-2-x"), Replica: 2},
		{Child: clique("odd"), Replica: -1},
	}
	for name, tc := range map[string]struct {
		wanted      [][]Child
		terminating Child
		want        [][]Child
	}{
		"all children are wanted, except one without a replica": {
			wanted: [][]Child{{clique("a-0-x"), group("a-0")}, {clique("a-1-x"), clique("a-1-a"), group("a-1")}, {clique("a-2-x")}},
			want:   [][]Child{{clique("odd")}},
		},
		"the highest replica first, in it the PodGroup": {
			wanted: [][]Child{{clique("a-0-x"), group("a-0")}, {}},
			want:   [][]Child{{clique("a-2-x")}, {group("a-1"), clique("a-1-a"), clique("a-1-x")}, {clique("odd")}},
		},
		"a PodGroup with the same name as a wanted PodClique": {
			wanted: [][]Child{{clique("a-0-x"), clique("a-0")}, {clique("a-1-x"), clique("a-1-a"), group("a-1")}, {clique("a-2-x")}},
			want:   [][]Child{{group("a-0")}, {clique("odd")}},
		},
		"terminating children are left alone": {
			wanted:      [][]Child{{clique("a-0-x"), group("a-0")}, {clique("a-1-x"), clique("a-1-a"), group("a-1")}},
			terminating: clique("a-2-x"),
			want:        [][]Child{{clique("odd")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := append([]OwnedChild{}, owned...)
			for i := range facts {
				facts[i].Terminating = facts[i].Child == tc.terminating
			}
			for range 10 { // in any order of the facts
				rand.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
				if diff := cmp.Diff(tc.want, Unwanted(tc.wanted, facts)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
