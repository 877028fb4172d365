// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/snapshot"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// randomScene is a cluster with gangs of several kinds; of each kind some run, and others wait.
func randomScene(t *testing.T, r *rand.Rand) *scene {
	t.Helper()
	s := (&scene{}).nodes(4+r.IntN(5), func(i int, w *wrappers.NodeWrapper) {
		w.Label("example.com/rack", fmt.Sprintf("rack-%d", i/3)).Label(corev1.LabelTopologyZone, fmt.Sprintf("zone-%d", i%2))
		switch r.IntN(6) {
		case 0:
			w.Unschedulable()
		case 1:
			w.Taint("dedicated", "research")
		}
	}).class("low", 100).class("high", 1000)
	free := map[string]int64{}
	for i := range 9 {
		free[fmt.Sprintf("node-%04d", i)] = 8
	}
	nodes := len(s.objects) - 2
	for n := range 3 + r.IntN(4) {
		name, gpus := fmt.Sprintf("squad-%c", 'b'+n), 1+r.IntN(6)
		template := fmt.Sprintf("template: {spec: {schedulerName: muster-scheduler, containers: [{name: c, image: registry.example/c:1, resources: {requests: {nvidia.com/gpu: %d}, limits: {nvidia.com/gpu: %d}}}]}}", gpus, gpus)
		marked := "template: {metadata: {annotations: {scheduling.run.ai/min-member: all}}, " + template[len("template: {"):]
		pods := 1 + r.IntN(4)
		object := []string{
			fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {parallelism: %d, completions: %d, %s}}", name, pods, pods, marked),
			fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: %d, %s}}", name, pods, marked),
			fmt.Sprintf("{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: %s}, spec: {replicas: 2, leaderWorkerTemplate: {size: %d, workerTemplate: %s}}}", name, pods, template[len("template: "):]),
			fmt.Sprintf("{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: %s}, spec: {replicatedJobs: [{name: driver, template: {spec: {%s}}}, {name: team, template: {spec: {parallelism: %d, completions: %d, %s}}}]}}",
				name, template, pods, pods, template),
		}[r.IntN(4)]
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(object), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace("ml")
		u.SetUID(uidOf(u.GetKind(), "ml", name))
		m := &manifest{}
		if err := m.addObject(u); err != nil {
			t.Fatal(err)
		}
		m.addMade()
		runs, priority, level := r.IntN(2) == 0, []int32{100, 1000}[r.IntN(2)], r.IntN(3) == 0
		for _, g := range m.groups {
			g.CreationTimestamp.Time = taken.Add(-time.Duration(100-n) * time.Minute)
			if level && !runs {
				g.Spec.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "example.com/rack"}
			}
			s.objects = append(s.objects, g)
		}
		for _, pod := range m.pods {
			pod.CreationTimestamp.Time = taken.Add(-time.Duration(100-n) * time.Minute)
			pod.Spec.Priority, pod.Status.Phase = &priority, corev1.PodPending
			pod.Labels["team"] = "vision"
			for i := range nodes {
				node := fmt.Sprintf("node-%04d", i)
				if runs && free[node] >= int64(gpus) {
					free[node] -= int64(gpus)
					pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
					break
				}
			}
			s.objects = append(s.objects, pod)
		}
	}
	return s
}

var (
	words  = regexp.MustCompile(`[A-Za-z0-9]+`)
	number = regexp.MustCompile(`^[0-9]{1,5}$`)
	clocks = regexp.MustCompile(`\d\d:\d\d:\d\d( UTC)?`)
)

// isomorphic reports whether two texts are the same but for words, of which the same always stand for the same.
func isomorphic(a, b string) string {
	a = strings.ReplaceAll(a, "node-", "host-") // node is a word of Kubernetes, too
	there, back := map[string]string{}, map[string]string{}
	x, y := words.FindAllString(a, -1), words.FindAllString(b, -1)
	if len(x) != len(y) || !slices.Equal(words.Split(a, -1), words.Split(b, -1)) {
		return "they have different forms"
	}
	for i := range x {
		if number.MatchString(x[i]) { // it stays, or not, by its place
			continue
		}
		if old, has := there[x[i]]; has && old != y[i] {
			return fmt.Sprintf("%s stands for %s and %s", x[i], old, y[i])
		}
		if old, has := back[y[i]]; has && old != x[i] {
			return fmt.Sprintf("%s stands for %s and %s", y[i], old, x[i])
		}
		there[x[i]], back[y[i]] = y[i], x[i]
	}
	return ""
}

// All commands answer the same about an anonymized snapshot, in other words.
func TestAnonymizedAnswers(t *testing.T) {
	t.Parallel()
	compared := 0
	for seed := range 3 * rounds.Number() {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		s := randomScene(t, r)
		plain := s.file(t)
		hidden := s.snapshot()
		hidden.Anonymize([32]byte{byte(seed)})
		file := filepath.Join(t.TempDir(), "hidden.json.gz")
		if err := writeFile(file, hidden.Write); err != nil {
			t.Fatal(err)
		}
		names := map[int]string{}
		for i, object := range s.objects {
			if g, ok := object.(*v2alpha2.PodGroup); ok {
				names[i] = g.Name
			}
		}
		compare := func(args, hiddenArgs []string) {
			more := []string{"--limit", "1m"}
			if args[0] != "why" {
				more = nil
			}
			code, out, errs := run(t, 100, slices.Concat(args, more, []string{"--snapshot", plain})...)
			gotCode, got, gotErrs := run(t, 100, slices.Concat(hiddenArgs, more, []string{"--snapshot", file})...)
			out, got = clocks.ReplaceAllString(out, ""), clocks.ReplaceAllString(got, "")
			if why := isomorphic(out+errs, got+gotErrs); code != gotCode || why != "" {
				t.Errorf("seed %d, %v: exit codes %d and %d, %s:\n%s%s\nanonymized:\n%s%s", seed, args, code, gotCode, why, out, errs, got, gotErrs)
			}
			compared++
		}
		for i, name := range names {
			g := hidden.Objects[i].(*v2alpha2.PodGroup)
			compare([]string{"why", name, "-n", "ml", "-o", "json"}, []string{"why", g.Name, "-n", g.Namespace, "-o", "json"})
			compare([]string{"tree", name, "-n", "ml", "-o", "json"}, []string{"tree", g.Name, "-n", g.Namespace, "-o", "json"})
		}
		compare([]string{"top", "-o", "json"}, []string{"top", "-o", "json"})
		compare([]string{"doctor", "-o", "json"}, []string{"doctor", "-o", "json"})
		compare([]string{"why", "--all", "-o", "json"}, []string{"why", "--all", "-o", "json"})
		node := snapshot.All[*corev1.Node](hidden)[0].Name
		compare([]string{"what-if", "--drain", "node-0000", "-o", "json"}, []string{"what-if", "--drain", node, "-o", "json"})
	}
	t.Logf("%d answers were compared", compared)
}

// The command anonymizes a file, each time by other words, and leaves none of the old ones.
func TestAnonymizeCommand(t *testing.T) {
	t.Parallel()
	plain := randomScene(t, rand.New(rand.NewPCG(1, 7))).file(t)
	var texts []string
	for range 2 {
		file := filepath.Join(t.TempDir(), "hidden.json.gz")
		if code, _, errs := run(t, 80, "snapshot", file, "--anonymize", "--snapshot", plain); code != exitFine || errs != "" {
			t.Fatalf("exit code %d, %q", code, errs)
		}
		if code, out, errs := run(t, 80, "top", "--snapshot", file); code != exitFine || errs != "" || !strings.Contains(out, "GPUs ") {
			t.Errorf("top of the file: exit code %d, %q, %q", code, out, errs)
		}
		packed, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		zip, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(zip)
		if err != nil {
			t.Fatal(err)
		}
		_ = packed.Close()
		texts = append(texts, string(text))
		for _, word := range []string{"squad", "rack", "zone-", "node-0", "research", "dedicated", "vision", "example", "registry", "driver-", "\"ml\"", "\"low\"", "\"high\""} {
			if strings.Contains(string(text), word) {
				t.Errorf("the file has %q", word)
			}
		}
	}
	if texts[0] == texts[1] {
		t.Error("the words are the same in two files")
	}
}
