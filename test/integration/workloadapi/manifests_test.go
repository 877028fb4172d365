// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// TestManifestsApplyUnchanged applies the examples of the requirements (complete ones unchanged, fragments completed)
// and manifests of Grove's shape, server-side. Applying them again changes nothing, and every field is kept.
func TestManifestsApplyUnchanged(t *testing.T) {
	t.Parallel()
	admin := newUser(t, cluster)
	if _, err := admin.apply(admin.read(`
apiVersion: grove.io/v1alpha1
kind: ClusterTopologyBinding
metadata: {name: dc}
spec:
  levels: [{domain: zone, key: topology.kubernetes.io/zone}, {domain: rack, key: example.com/rack}, {domain: host, key: kubernetes.io/hostname}]`)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]struct {
		warnings []string
		check    func(*testing.T, *v1alpha1.PodCliqueSet)
	}{
		"requirements/ondelete-example.yaml": {
			check: func(t *testing.T, pcs *v1alpha1.PodCliqueSet) {
				if worker := pcs.Spec.Template.Cliques[0].Spec; worker.MinAvailable != nil || worker.Replicas != 8 {
					t.Errorf("minAvailable %v, replicas %d", worker.MinAvailable, worker.Replicas)
				}
			},
		},
		"requirements/termination-enabled.yaml": {},
		"requirements/termination-disabled.yaml": {
			check: func(t *testing.T, pcs *v1alpha1.PodCliqueSet) {
				if pcs.Spec.Template.TerminationDelay != nil {
					t.Error("a terminationDelay was filled in")
				}
			},
		},
		"requirements/termination-null.yaml": {
			check: func(t *testing.T, pcs *v1alpha1.PodCliqueSet) {
				if pcs.Spec.Template.TerminationDelay != nil {
					t.Error("a terminationDelay was filled in")
				}
			},
		},
		"requirements/termination-override.yaml": {},
		"requirements/group-minimum.yaml":        {},
		"requirements/training.yaml": {
			check: func(t *testing.T, pcs *v1alpha1.PodCliqueSet) {
				if d := pcs.Spec.Template.TerminationDelay; d == nil || d.Duration != 0 {
					t.Errorf("terminationDelay %v", d)
				}
				if p := pcs.Spec.Template.Cliques[0].Spec.PodSpec.RestartPolicy; p != "Never" {
					t.Errorf("restartPolicy %s", p)
				}
			},
		},
		"requirements/training-limits.yaml": {},
		"grove/simple.yaml": {
			warnings: []string{
				"spec.template.cliques[1].labels[kai.scheduler/queue]: stored, but has no effect",
			},
			check: func(t *testing.T, pcs *v1alpha1.PodCliqueSet) {
				pca := pcs.Spec.Template.Cliques[0].Spec
				if pca.PodSpec.SchedulerName != "configured" || *pca.ScaleConfig.MinReplicas != 3 {
					t.Errorf("scheduler %q, minReplicas %d", pca.PodSpec.SchedulerName, *pca.ScaleConfig.MinReplicas)
				}
			},
		},
		"grove/disaggregated.yaml": {},
		"grove/topology.yaml":      {},
		"grove/kept.yaml": {warnings: []string{
			"metadata.annotations[kai.scheduler/queue]: stored, but has no effect",
			"metadata.annotations[grove.io/mnnvl-group] (and 1 more): stored, but has no effect",
			"spec.template.resourceClaimTemplates (and 3 more): stored, but has no effect",
		}},
	} {
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) {
			t.Parallel()
			u := newUser(t, cluster)
			content, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			manifest := u.read(string(content))
			if _, err := u.apply(manifest); err != nil {
				t.Fatal(err)
			}
			warnings := u.warnings.Take()
			for _, warning := range want.warnings {
				if !strings.Contains(warnings, warning) {
					t.Errorf("no warning %q", warning)
				}
			}
			if n := len(strings.Split(warnings, "\n")); warnings != "" && n != len(want.warnings) || warnings == "" && len(want.warnings) > 0 {
				t.Errorf("%d warnings, want %d:\n%s", n, len(want.warnings), warnings)
			}

			applied := &unstructured.Unstructured{}
			applied.SetGroupVersionKind(manifest.GroupVersionKind())
			if err := u.Get(t.Context(), client.ObjectKeyFromObject(manifest), applied); err != nil {
				t.Fatal(err)
			}
			contains(t, "", manifest.Object, applied.Object)
			if want.check != nil {
				pcs := &v1alpha1.PodCliqueSet{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, pcs); err != nil {
					t.Fatal(err)
				}
				want.check(t, pcs)
			}

			if _, err := u.apply(manifest); err != nil {
				t.Fatalf("applied again: %v", err)
			}
			again := &unstructured.Unstructured{}
			again.SetGroupVersionKind(manifest.GroupVersionKind())
			if err := u.Get(t.Context(), client.ObjectKeyFromObject(manifest), again); err != nil {
				t.Fatal(err)
			}
			if applied.GetResourceVersion() != again.GetResourceVersion() {
				t.Errorf("applied again it changed:\n%s", cmp.Diff(applied.Object, again.Object))
			}
		})
	}
}

// contains checks that everything in want is in got, recursively; null is nothing.
func contains(t *testing.T, path string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case nil:
	case map[string]any:
		got, _ := got.(map[string]any)
		for key := range want {
			contains(t, path+"."+key, want[key], got[key])
		}
	case []any:
		got, _ := got.([]any)
		if len(got) != len(want) {
			t.Errorf("%s: %d entries, want %d", path, len(got), len(want))
			return
		}
		for i := range want {
			contains(t, path, want[i], got[i])
		}
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) { // as text: YAML has numbers of one kind, JSON of two
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
