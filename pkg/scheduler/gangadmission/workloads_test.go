// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/test/wrappers"
)

// TestPodsOfWorkloads: pods of a LeaderWorkerSet, a JobSet and a RayCluster wait for the PodGroups that muster-controller makes. Where it
// makes none they start, and pods that ask for a gang themselves wait as before.
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

// TestExclusiveJobs: the first pods of the Jobs of an exclusive JobSet start together, each in a rack of its own, as JobSet
// demands; the others are made when these are bound, and start together in the rack of their first one.
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
