// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/grouping"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/test/wrappers"
)

// TestPodsOfWorkloads: pods of a LeaderWorkerSet, a JobSet and a RayCluster wait for the PodGroups that
// muster-controller makes. Where it makes none they start, and pods that ask for a gang themselves wait as before.
func TestPodsOfWorkloads(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"with muster-controller": false, "muster-scheduler alone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) { c.alone = alone })
			c.node(wrappers.MakeNode("n").GPUs(8)).run()
			c.pod(
				wrappers.MakePod("llm-0", "ml").Label("leaderworkerset.sigs.k8s.io/name", "llm").Label("leaderworkerset.sigs.k8s.io/group-index", "0").
					Label("leaderworkerset.sigs.k8s.io/worker-index", "0"),
				wrappers.MakePod("train-workers-0", "ml").Label("jobset.sigs.k8s.io/jobset-name", "train").Label("jobset.sigs.k8s.io/jobset-uid", "u").
					Label("jobset.sigs.k8s.io/replicatedjob-name", "workers").Label("jobset.sigs.k8s.io/job-index", "0"),
				wrappers.MakePod("ray-head", "ml").Label("ray.io/cluster", "ray").Label("ray.io/group", "headgroup").Controller("RayCluster", "ray", "u"),
				wrappers.MakePod("asks", "ml").Label(v2alpha2.MinMemberKey, "2"),
				wrappers.MakePod("named", "ml").Gang("g").Label("jobset.sigs.k8s.io/jobset-name", "train").Label("jobset.sigs.k8s.io/jobset-uid", "u"),
				wrappers.MakePod("plain", "ml"),
			)
			c.eventually("the pod without a gang is bound", c.isBound("plain"))
			if alone {
				c.eventually("the replica starts", c.isBound("llm-0")).eventually("the worker starts", c.isBound("train-workers-0")).eventually("the head starts", c.isBound("ray-head"))
			}
			for _, pod := range []string{"llm-0", "train-workers-0", "ray-head"} {
				if c.isBound(pod)() != alone {
					t.Errorf("%s is bound: %t", pod, !alone)
				}
			}
			for _, pod := range []string{"asks", "named"} {
				if c.isBound(pod)() {
					t.Errorf("%s started alone", pod)
				}
			}
		})
	}
}

// TestNoPodStartsWithoutItsShareOfAGPU: a pod without a gang that asks KAI for a share of a GPU waits, is told why, and
// preempts nobody.
func TestNoPodStartsWithoutItsShareOfAGPU(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n").GPUs(1)).run()
	c.pod(wrappers.MakePod("low", "ml").GPUs(1)).eventually("a pod runs", c.isBound("low"))
	c.pod(wrappers.MakePod("share", "ml").Priority(100).GPUs(1).Annotation("gpu-fraction", "0.5"))
	c.pod(wrappers.MakePod("plain", "ml")).eventually("a pod without a GPU runs", c.isBound("plain"))
	const why = "the pod asks for a share of a GPU by annotation gpu-fraction: it would get none, and waits"
	c.eventually("it is told", func() bool {
		return slices.ContainsFunc(c.eventsWith("FailedScheduling"), func(note string) bool { return strings.Contains(note, why) })
	})
	if c.isBound("share")() || !c.isBound("low")() {
		t.Errorf("the pod is bound: %t, and the other one runs: %t", c.isBound("share")(), c.isBound("low")())
	}
}

// TestEndedPodsKeepTheirLeaf: what is kept of a pod that has ended shows its gang and its leaf.
func TestEndedPodsKeepTheirLeaf(t *testing.T) {
	t.Parallel()
	ofJobSet := func(name string) *wrappers.PodWrapper {
		return wrappers.MakePod(name, "ml").Label("jobset.sigs.k8s.io/jobset-name", "train").Label("jobset.sigs.k8s.io/jobset-uid", "u").
			Label("jobset.sigs.k8s.io/replicatedjob-name", "workers").Label("jobset.sigs.k8s.io/job-index", "0")
	}
	for _, pod := range []*wrappers.PodWrapper{
		wrappers.MakePod("named", "ml").Gang("g").SubGroup("a"), ofJobSet("of-a-job"),
		ofJobSet("leader").Annotation("alpha.jobset.sigs.k8s.io/exclusive-topology", "rack").Annotation("batch.kubernetes.io/job-completion-index", "0"),
		ofJobSet("by-selectors").Annotation("alpha.jobset.sigs.k8s.io/exclusive-topology", "rack").Annotation("alpha.jobset.sigs.k8s.io/node-selector", "true"),
		wrappers.MakePod("native", "ml").NativeGroup("a"),
		wrappers.MakePod("in-a-tree", "ml").NativeGroup("a").Annotation(membership.CompositeAnnotation, "root"),
		wrappers.MakePod("asks", "ml").Annotation(v2alpha2.MinMemberKey, "2"), ofJobSet("out").Annotation(v2alpha2.GangKey, "false"),
	} {
		kept, err := stripEndedPod(pod.Obj())
		if err != nil {
			t.Fatal(err)
		}
		is, was := kept.(*corev1.Pod), pod.Obj()
		if membership.Group(is) != membership.Group(was) || membership.Leaf(is) != membership.Leaf(was) {
			t.Errorf("%s: %s/%s, was %s/%s", was.Name, membership.Group(is), membership.Leaf(is), membership.Group(was), membership.Leaf(was))
		}
	}
}

// TestJobsThatFollowCompletedOnes: the workers of a JobSet whose tree is the one of the grouper start as a whole after
// its initializer has completed, which counts for nothing then, and not one by one.
func TestJobsThatFollowCompletedOnes(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n").GPUs(8)).run()
	pod := func(job string, index int) *wrappers.PodWrapper {
		return wrappers.MakePod(fmt.Sprintf("train-%s-%d", job, index), "ml").GPUs(1).Label("jobset.sigs.k8s.io/jobset-name", "train").Label("jobset.sigs.k8s.io/jobset-uid", "u").
			Label("jobset.sigs.k8s.io/replicatedjob-name", job).Label("jobset.sigs.k8s.io/job-index", "0")
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
kind: JobSet
apiVersion: jobset.x-k8s.io/v1alpha2
metadata: {name: train, namespace: ml, uid: u}
spec:
  replicatedJobs:
  - {name: init, template: {spec: {template: {spec: {schedulerName: muster-scheduler}}}}}
  - {name: node, dependsOn: [{name: init, status: Complete}], template: {spec: {parallelism: 3, completions: 3, template: {spec: {schedulerName: muster-scheduler}}}}}
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	kinds, err := grouping.Select([]string{"JobSet"})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := kinds[0].PodGroups(object)
	if err != nil || len(groups) != 1 {
		t.Fatal(groups, err)
	}
	groups[0].UID, groups[0].Generation = "g", 1
	c.groups.Put(groups[0])
	c.pod(pod("init", 0)).eventually("the initializer is bound", c.isBound("train-init-0"))
	done, err := c.client.CoreV1().Pods("ml").Get(c.ctx, "train-init-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done.Status.Phase = corev1.PodSucceeded
	if _, err := c.client.CoreV1().Pods("ml").UpdateStatus(c.ctx, done, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.pod(pod("node", 0), pod("node", 1), wrappers.MakePod("plain", "ml")).eventually("a pod without a gang is bound", c.isBound("plain"))
	if bound := c.boundOf("train-node-"); len(bound) > 0 {
		t.Errorf("of three workers started alone: %v", bound)
	}
	c.pod(pod("node", 2)).eventually("the workers are bound", func() bool { return len(c.boundOf("train-node-")) == 3 })
}

// TestExclusiveJobs: the first pods of the Jobs of an exclusive JobSet start together, each in a rack of its own, as
// JobSet demands; the others are made when these are bound, and start together in the rack of their first one.
func TestExclusiveJobs(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(3, 3).run()
	pod := func(job, index int) *wrappers.PodWrapper {
		w := wrappers.MakePod(fmt.Sprintf("train-w-%d-%d", job, index), "ml").GPUs(1).Label("jobset.sigs.k8s.io/jobset-name", "train").Label("jobset.sigs.k8s.io/jobset-uid", "u").
			Label("jobset.sigs.k8s.io/replicatedjob-name", "w").Label("jobset.sigs.k8s.io/job-index", fmt.Sprint(job)).
			Label("jobset.sigs.k8s.io/job-key", fmt.Sprint(job)).Annotation("alpha.jobset.sigs.k8s.io/exclusive-topology", "rack").Annotation("batch.kubernetes.io/job-completion-index", fmt.Sprint(index))
		if index == 0 {
			w.ApartFrom("rack", "jobset.sigs.k8s.io/job-key", fmt.Sprint(1-job)) // as JobSet writes it
		}
		return w
	}
	one, rack := ptr.To[int32](1), &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
	c.groups.Put(wrappers.MakePodGroup(membership.Group(pod(0, 0).Obj()), "ml").UID("g").Generation(1).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.MinSubGroup, s.SubGroups = one, []v2alpha2.SubGroup{{Name: "w"}}
		for _, job := range []string{"w-0", "w-1"} {
			s.SubGroups = append(s.SubGroups, v2alpha2.SubGroup{Name: job, Parent: ptr.To("w"), MinSubGroup: one, TopologyConstraint: rack},
				v2alpha2.SubGroup{Name: job + ".leader", Parent: &job, MinMember: one}, v2alpha2.SubGroup{Name: job + ".workers", Parent: &job, MinMember: ptr.To[int32](2)})
		}
	}).Obj())
	c.pod(pod(0, 0))
	c.pod(wrappers.MakePod("plain", "ml")).eventually("a pod without a gang is bound", c.isBound("plain"))
	if c.isBound("train-w-0-0")() {
		t.Error("one of two first pods started alone")
	}
	c.pod(pod(1, 0)).eventually("the first pods are bound", func() bool { return len(c.boundOf("train-")) == 2 })
	c.inRacks("train", "r0", "r1")
	c.pod(pod(0, 1), pod(0, 2), pod(1, 1)).eventually("the other pods of the first Job are bound", func() bool { return len(c.boundOf("train-w-0-")) == 3 })
	if len(c.racksOf("train-w-0")) != 1 {
		t.Errorf("the first Job runs in racks %v", c.racksOf("train-w-0"))
	}
	if c.isBound("train-w-1-1")() {
		t.Error("one of two workers started alone")
	}
	c.pod(pod(1, 2)).eventually("all are bound", func() bool { return len(c.boundOf("train-")) == 6 })
	if len(c.racksOf("train-w-1")) != 1 {
		t.Errorf("the second Job runs in racks %v", c.racksOf("train-w-1"))
	}
}
