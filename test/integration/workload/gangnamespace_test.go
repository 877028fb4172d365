// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// plainJob is a Job of a user who knows nothing of Muster.
const plainJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  parallelism: %d
  completions: %[2]d
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "registry.example/train:1", resources: {requests: {memory: %s}}}]
`

// TestNamespaceOfGangs: by the policy of the samples, and a label of their namespace, unchanged Jobs are gangs. Of two
// Jobs the one whose 2 pods fit starts; of the one of 1,000 pods, of which the nodes hold some, no pod is bound. It is
// not parallel: its pods would fit on the nodes of others.
func TestNamespaceOfGangs(t *testing.T) {
	w := newWorld(t, 2)
	w.kubectl("apply", "-f", "../../../manifests/samples/gang-namespace.yaml")
	defer w.kubectl("delete", "-f", "../../../manifests/samples/gang-namespace.yaml")
	w.kubectl("label", "namespace", w.namespace, v2alpha2.MinMemberKey+"=all")

	mark := func(manifest string, change func(*unstructured.Unstructured)) (value, scheduler string) {
		object := read(w, manifest)
		change(object)
		w.must(w.client.Create(w.ctx, object, client.DryRunAll), "creating a workload")
		value, _, _ = unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", v2alpha2.MinMemberKey)
		scheduler, _, _ = unstructured.NestedString(object.Object, "spec", "template", "spec", "schedulerName")
		return value, scheduler
	}
	unchanged := func(*unstructured.Unstructured) {}
	w.must(wait.PollUntilContextCancel(w.ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		value, _ := mark(fmt.Sprintf(plainJob, "probe", 1, "1Gi"), unchanged)
		return value == "all", nil
	}), "waiting until the policy holds")
	set := func(policy string) string {
		return `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {serviceName: s, ` + policy + `selector: {matchLabels: {app: s}}, template: {
			metadata: {labels: {app: s}}, spec: {containers: [{name: main, image: "registry.example/db:1"}]}}}}`
	}
	jobWith := func(template map[string]any) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			for path, value := range template {
				w.must(unstructured.SetNestedField(o.Object, value, "spec", "template", path), "changing a Job")
			}
		}
	}
	yes := true
	for what, tc := range map[string]struct {
		manifest         string
		change           func(*unstructured.Unstructured)
		value, scheduler string
	}{
		"a Job":                 {"", unchanged, "all", "muster-scheduler"},
		"a Job with a mark":     {"", jobWith(map[string]any{"metadata": map[string]any{"labels": map[string]any{v2alpha2.MinMemberKey: "2"}}}), "", "default-scheduler"},
		"a Job with a PodGroup": {"", jobWith(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v2alpha2.PodGroupAnnotation: "g"}}}), "", "default-scheduler"},
		"a Job with the PodGroup of Coscheduling": {"", jobWith(map[string]any{"metadata": map[string]any{"labels": map[string]any{"scheduling.x-k8s.io/pod-group": "g"}}}), "", "default-scheduler"},
		"a Job with the PodGroup of Volcano":      {"", jobWith(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"scheduling.k8s.io/group-name": "g"}}}), "", "default-scheduler"},
		"a Job of a JobSet": {"", func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "train", UID: "u", Controller: &yes}})
		}, "", "default-scheduler"},
		"a Job of a CronJob": {"", func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "nightly", UID: "u", Controller: &yes}})
		}, "all", "muster-scheduler"},
		"a StatefulSet that makes its pods in turn":     {set(""), unchanged, "", "default-scheduler"},
		"a StatefulSet that makes all pods at one time": {set("podManagementPolicy: Parallel, "), unchanged, "all", "muster-scheduler"},
	} {
		if tc.manifest == "" {
			tc.manifest = fmt.Sprintf(plainJob, "probe", 1, "1Gi")
		}
		if value, scheduler := mark(tc.manifest, tc.change); value != tc.value || scheduler != tc.scheduler {
			t.Errorf("%s: %q and %q, want %q and %q", what, value, scheduler, tc.value, tc.scheduler)
		}
	}

	w.setsOfTheNamespace()

	uids := map[string]types.UID{}
	for name, size := range map[string]struct {
		pods   int
		memory string // of a node's 1 Ti
	}{"large": {1000, "600Gi"}, "small": {2, "100Gi"}} {
		job := read(w, fmt.Sprintf(plainJob, name, size.pods, size.memory))
		w.must(w.client.Create(w.ctx, job), "creating a Job")
		uids[name] = job.GetUID()
	}
	w.until("the large gang is refused", podGroups, func(groups []*unstructured.Unstructured) bool {
		for _, g := range groups {
			if metav1.GetControllerOf(g).UID == uids["large"] {
				return conditionOf(g, v2alpha2.ConditionSatisfied, "reason") == string(v2alpha2.ReasonTooLarge)
			}
		}
		return false
	})
	boundOf := map[string]int{}
	w.must(controlplane.Until(w.ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		boundOf = map[string]int{}
		for _, p := range pods {
			if p.Spec.NodeName != "" {
				boundOf[p.Labels[batchv1.JobNameLabel]]++
			}
		}
		return len(pods) == 1002 && boundOf["small"] == 2
	}), "waiting for the small gang and for all pods")
	if n := boundOf["large"]; n > 0 {
		t.Errorf("%d pods of the large gang are bound", n)
	}
	for name := range uids {
		w.must(w.client.Delete(w.ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}, client.PropagationPolicy(background)), "deleting a Job")
	}
	w.untilGone()
}

// setsOfTheNamespace checks which JobSets, LeaderWorkerSets and RayClusters get the scheduler in all of their pod
// templates.
func (w *world) setsOfTheNamespace() {
	w.t.Helper()
	const (
		spec    = "spec: {containers: []}"
		others  = "spec: {schedulerName: volcano, containers: []}"
		grouped = "metadata: {annotations: {pod-group-name: mine}}, " + spec
		cosched = "metadata: {labels: {scheduling.x-k8s.io/pod-group: mine}}, " + spec
		volcano = "metadata: {annotations: {scheduling.k8s.io/group-name: mine}}, " + spec
		native  = "spec: {schedulingGroup: {podGroupName: mine}, containers: []}"
		set     = "apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s%s}, spec: {replicatedJobs: [{name: a, template: {spec: {template: {%s}}}}, {name: b, template: {spec: {template: {%s}}}}]}"
		lws     = "apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: s%s}, spec: {leaderWorkerTemplate: {%s workerTemplate: {%s}}}"
		ray     = "apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: s%s}, spec: {headGroupSpec: {template: {%s}}%s}"
		of      = ", ownerReferences: [{apiVersion: x/v1, kind: %s, name: o, uid: u, controller: true}]"
	)
	for _, kind := range [][3]string{{"jobset.x-k8s.io", "v1alpha2", "JobSet"}, {"leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"}, {"ray.io", "v1", "RayCluster"}} {
		crd := install(w, kind[0], kind[1], kind[2])
		defer func() {
			w.must(w.client.Delete(w.ctx, crd), "removing "+kind[2])
			w.must(wait.PollUntilContextCancel(w.ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
				err := w.client.Get(ctx, client.ObjectKeyFromObject(crd), crd)
				return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			}), "waiting until "+kind[2]+" is gone")
		}()
	}
	// created returns how many pod templates of a new workload are of muster-scheduler.
	created := func(manifest string) (int, error) {
		stored := read(w, "{"+manifest+"}")
		err := w.client.Create(w.ctx, stored, client.DryRunAll)
		return strings.Count(fmt.Sprint(stored.Object["spec"]), "schedulerName:muster-scheduler"), err
	}
	for _, manifest := range []string{fmt.Sprintf(set, "", spec, spec), fmt.Sprintf(lws, "", "", spec), fmt.Sprintf(ray, "", spec, "")} {
		w.must(wait.PollUntilContextCancel(w.ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
			n, err := created(manifest) // an error until the kind is served, and known to admission
			return n > 0 && err == nil, nil
		}), "waiting until the policy holds")
	}
	for what, tc := range map[string]struct {
		manifest string
		want     int // templates of Muster
	}{
		"a JobSet":                              {fmt.Sprintf(set, "", spec, spec), 2},
		"a JobSet of a TrainJob":                {fmt.Sprintf(set, fmt.Sprintf(of, "TrainJob"), spec, spec), 2},
		"a JobSet of another controller":        {fmt.Sprintf(set, fmt.Sprintf(of, "Other"), spec, spec), 0},
		"a JobSet with another scheduler":       {fmt.Sprintf(set, "", spec, others), 0},
		"a JobSet with a PodGroup":              {fmt.Sprintf(set, "", spec, grouped), 0},
		"a JobSet with one of Coscheduling":     {fmt.Sprintf(set, "", spec, cosched), 0},
		"a JobSet with one of Volcano":          {fmt.Sprintf(set, "", spec, volcano), 0},
		"a JobSet with a native one":            {fmt.Sprintf(set, "", spec, native), 0},
		"a LeaderWorkerSet":                     {fmt.Sprintf(lws, "", "", spec), 1},
		"a LeaderWorkerSet with leaders":        {fmt.Sprintf(lws, "", "leaderTemplate: {"+spec+"},", spec), 2},
		"a RayCluster without workers":          {fmt.Sprintf(ray, "", spec, ""), 1},
		"a RayCluster of a RayJob":              {fmt.Sprintf(ray, fmt.Sprintf(of, "RayJob"), spec, ", workerGroupSpecs: [{groupName: w, template: {"+spec+"}}]"), 2},
		"a RayCluster whose workers are others": {fmt.Sprintf(ray, "", spec, ", workerGroupSpecs: [{groupName: w, template: {"+others+"}}]"), 0},
	} {
		if got, err := created(tc.manifest); got != tc.want || err != nil {
			w.t.Errorf("%s: %d pod templates of muster-scheduler, want %d (%v)", what, got, tc.want, err)
		}
	}
}
