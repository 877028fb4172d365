// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	t.Parallel()
	runs := func(key string, values ...float64) (all []outcome) {
		for _, v := range values {
			var r outcome
			r.add(key, v)
			all = append(all, r)
		}
		return all
	}
	p := plan{
		shape: shape{targets: []target{
			{key: lastBind, contestant: stock, bound: 0.4},
			{key: lastBind, contestant: floor, bound: 3},
			{key: lastBind, contestant: coscheduling, bound: 1, atLeast: true},
			{key: lastBind, otherVariant: "flat", bound: 1, variant: ""},
			{key: lastBind, bound: 4},
			{key: lastBind, contestant: stock},
			{key: "first_bind_seconds", bound: 4},
		}},
		o: options{repeat: 3, contestants: []string{muster, coscheduling, stock, floor}, variants: []variant{{}}},
	}
	all := results{
		entry{"", muster}:       runs(lastBind, 3, 4, 5),
		entry{"", coscheduling}: {{unfinished: "nothing was bound for 1m0s"}},
		entry{"", stock}:        runs(lastBind, 10, 10, 10),
		entry{"", floor}:        runs(lastBind, 1, 1, 1),
		entry{"flat", muster}:   runs(lastBind, 3, 2),
	}
	var out bytes.Buffer
	report(&out, p, all)
	for _, want := range []string{
		"muster / stock, last_bind_seconds: 0.40 (0.30 to 0.50), to reach: at most 0.4: reached\n",
		"muster / floor, last_bind_seconds: 4.00 (3.00 to 5.00), to reach: at most 3: NOT reached\n",
		"muster / flat, last_bind_seconds: 1.50 (1.00 to 2.00), to reach: at most 1: NOT reached\n",
		"muster / stock, last_bind_seconds: 0.40 (0.30 to 0.50)\n",
		"muster, last_bind_seconds: 4.00 (3.00 to 5.00), to reach: at most 4: reached\n",
		"4.00 (3.00 to 5.00)",
		"coscheduling did not finish round 1: nothing was bound for 1m0s\n",
	} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	for _, unwanted := range []string{"muster / coscheduling", "first_bind"} {
		if bytes.Contains(out.Bytes(), []byte(unwanted)) {
			t.Errorf("the report has %q, of which nothing is known:\n%s", unwanted, out.String())
		}
	}
}

func TestTargetThatIsALeast(t *testing.T) {
	t.Parallel()
	var slow, fast outcome
	slow.add(podsPerSecond, 90)
	fast.add(podsPerSecond, 100)
	var out bytes.Buffer
	target{key: podsPerSecond, contestant: stock, bound: 0.95, atLeast: true}.print(&out, "",
		results{entry{"", muster}: {slow}, entry{"", stock}: {fast}})
	if want := "muster / stock, pods_per_second: 0.90, to reach: at least 0.95: NOT reached\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	got := []string{spread(nil), spread([]float64{2}), spread([]float64{3, 12.34, 1234.5})}
	if want := []string{"-", "2.00", "12.3 (3.00 to 1234)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "results")
	all, err := parse([]string{"-shape=big-gang", "-nodes=200", "-out=" + dir})
	if err != nil {
		t.Fatal(err)
	}
	p := all[0]
	var took outcome
	took.add(firstToLast, 3)
	now := time.Unix(1000, 5)
	for _, r := range []outcome{took, {unfinished: "slow"}} {
		r.variant = variant{name: "alike"}
		p.appendLine(now, floor, 0, r)
	}
	content, err := os.ReadFile(filepath.Join(dir, "results.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	line := func(rest string) string {
		return fmt.Sprintf(`{"time":"1970-01-01T00:16:40Z","shape":"big-gang","variant":"alike","contestant":"floor","round":1,"cpus":%d,`+
			`"nodes":200,"gpusPerNode":8,"gangs":1,"podsPerGang":1000,%s}`+"\n", runtime.NumCPU(), rest)
	}
	want := line(`"figures":{"first_to_last_bind_seconds":3}`) + line(`"unfinished":"slow","figures":{}`)
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Errorf("results.jsonl (-want +got):\n%s", diff)
	}
}
