// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// large is a cluster of 5,000 nodes of 8 GPUs in racks of 16, 40,000 pods and 2,000 waiting gangs: 5,000 gangs of 7
// pods, one per node, of one GPU each run; of those that wait, a half needs whole nodes, and the others two GPUs per
// pod in one rack.
func large() *scene {
	const nodes, waiting = 5000, 2000
	s := (&scene{}).nodes(nodes, func(i int, w *wrappers.NodeWrapper) {
		w.Label("example.com/rack", fmt.Sprintf("r%03d", i/16))
		if i%100 == 99 {
			w.Unschedulable()
		}
	}).class("low", 100).class("high", 1000)
	for i := range nodes - 1000 {
		name := fmt.Sprintf("run-%04d", i)
		var on []string
		for range 7 {
			on = append(on, fmt.Sprintf("node-%04d", i))
		}
		s.gang(wrappers.MakePodGroup(name, "ml").UID(name).MinMember(7), members(name, 7, 1, on...)...)
	}
	for i := range 1000 { // whole nodes
		name := fmt.Sprintf("big-%04d", i)
		s.gang(wrappers.MakePodGroup(name, "ml").UID(name).MinMember(1), members(name, 1, 8, fmt.Sprintf("node-%04d", nodes-1000+i))...)
	}
	for i := range waiting {
		name := fmt.Sprintf("wait-%04d", i)
		group := wrappers.MakePodGroup(name, "ml").UID(name).MinMember(5)
		gpus := int64(8)
		if i%2 == 1 {
			gpus = 2
			group.Spec(func(spec *v2alpha2.PodGroupSpec) {
				spec.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "example.com/rack"}
			})
		}
		s.gang(group.Condition(v2alpha2.ConditionSatisfied, metav1.ConditionFalse, v2alpha2.ReasonInsufficientGPUs, "0 are free"), members(name, 5, gpus)...)
		written := s.objects[len(s.objects)-6].(*v2alpha2.PodGroup)
		written.Status.Reason, written.Status.ObservedGeneration = v2alpha2.ReasonInsufficientGPUs, 1
	}
	for len(s.objects) < nodes+40_000+2+7000 { // system pods
		i := len(s.objects) % nodes
		name := fmt.Sprintf("system-%d", len(s.objects))
		s.pods(wrappers.MakePod(name, "kube-system").UID(name).CPU("10m").Node(fmt.Sprintf("node-%04d", i)).SchedulerName(corev1.DefaultSchedulerName))
	}
	return s
}

// BenchmarkLarge measures whole commands on a snapshot of a large cluster, from the file to the text, and their CPU
// time.
func BenchmarkLarge(b *testing.B) {
	name := os.Getenv("SNAPSHOT") // where it is kept; "": nowhere
	if name == "" {
		name = filepath.Join(b.TempDir(), "large.json.gz")
	}
	if _, err := os.Stat(name); err != nil {
		start := time.Now()
		if err := writeFile(name, large().snapshot().Write); err != nil {
			b.Fatal(err)
		}
		b.Logf("written in %s", time.Since(start))
	}
	for _, args := range [][]string{
		{"why", "wait-0000"}, {"why", "wait-0001"}, {"why", "--all"}, {"tree", "run-0000"}, {"top"}, {"what-if", "--drain", "node-0000"},
	} {
		b.Run(fmt.Sprint(args), func(b *testing.B) {
			for b.Loop() {
				if code, _, errs := run(b, 120, append([]string{"-n", "ml", "--snapshot", name}, args...)...); code == exitError {
					b.Fatal(errs)
				}
			}
		})
	}
}
