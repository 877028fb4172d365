// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

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
