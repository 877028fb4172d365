// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/test/controlplane"
)

// The PodCliqueSets of the proposals (docs/decisions), which test/integration/workloadapi applies one by one, run: each
// reaches the pods that it describes, clique by clique.
func TestManifestsOfTheRequirementsRun(t *testing.T) {
	w := newWorld(t, 0)
	names, err := cp.CreateNodes(w.ctx, controlplane.NodeOptions{Count: 2, GPUs: 8, NamePrefix: w.namespace})
	w.must(err, "creating nodes")
	w.nodes = append(w.nodes, names...)
	for _, node := range names { // required by the node affinity of GREP-291's example
		_, err := cp.Client().CoreV1().Nodes().Patch(w.ctx, node, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"node.kubernetes.io/instance-type":"gpu-node"}}}`), metav1.PatchOptions{})
		w.must(err, "labelling a node")
	}
	manifests := map[string]map[string]int{
		"clique-minimum":       {"clique-minimum-0-worker": 4},
		"group-minimum":        {"group-minimum-0-inference-group-0-leader": 1, "group-minimum-0-inference-group-0-worker": 4, "group-minimum-0-inference-group-1-leader": 1, "group-minimum-0-inference-group-1-worker": 4},
		"ondelete-example":     {"training-workload-0-worker": 8},
		"termination-disabled": {"termination-disabled-0-worker": 4},
		"termination-enabled":  {"termination-enabled-0-worker": 4},
		"termination-null":     {"termination-null-0-worker": 4},
		"termination-override": {
			"termination-override-0-inference-group-0-leader": 1, "termination-override-0-inference-group-0-worker": 4,
			"termination-override-0-inference-group-1-leader": 1, "termination-override-0-inference-group-1-worker": 4,
			"termination-override-0-another-group-0-other-clique": 1, "termination-override-0-another-group-1-other-clique": 1,
			"termination-override-0-another-group-2-other-clique": 1,
		},
		"training":        {"training-0-worker": 8},
		"training-limits": {"training-limits-0-worker": 8},
	}
	files, err := filepath.Glob("../workloadapi/testdata/requirements/*.yaml")
	w.must(err, "looking for manifests")
	want := map[string]int{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if manifests[name] == nil {
			t.Errorf("%s is not in the table", file)
			continue
		}
		maps.Copy(want, manifests[name])
		w.kubectl("apply", "--server-side", "-f", file)
	}
	w.untilPods(want, true)
	w.checkIndices()
	for _, set := range w.names(sets) {
		w.untilAvailable(set)
	}
	if got := len(w.names(sets)); got != len(manifests) {
		t.Errorf("%d sets, want %d", got, len(manifests))
	}
}
