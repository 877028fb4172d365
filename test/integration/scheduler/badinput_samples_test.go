// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// The samples as users apply them, except for the namespace.
func TestSamples(t *testing.T) {
	for name, tc := range map[string]struct {
		file, group string
		nodes, pods int
		scheduled   string
		surplus     bool // there is more than the minimum
	}{
		"a Job":                {file: "job.yaml", group: "training", nodes: 1, pods: 8, scheduled: "8/8"},
		"a CronJob":            {file: "cronjob.yaml", group: "evaluation", nodes: 1, pods: 4, scheduled: "4/4"},
		"three of four of 8":   {file: "inference-service.yaml", group: "inference-service", nodes: 4, pods: 32, scheduled: "24/24", surplus: true},
		"a Job in one rack":    {file: "topology-job.yaml", group: "one-rack", nodes: 7, pods: 4, scheduled: "4/4"},
		"leaders with workers": {file: "training-job.yaml", group: "training-job", nodes: 2, pods: 10, scheduled: "10/10"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.nodes)
			for i, node := range c.nodes {
				c.setRack(node, min(i/3, 1)) // three nodes in r0, the others in r1
			}
			c.start()
			c.applySample(tc.file)
			c.until("all pods are bound", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, tc.group) == tc.pods })
			s := c.untilSatisfied(tc.group)
			if s.Scheduled != tc.scheduled || s.Phase != v2alpha2.PodGroupAdmitted {
				t.Errorf("status says %s, %s", s.Scheduled, s.Phase)
			}
			c.untilStatus(tc.group, "counts every sub-group as admitted", func(s v2Status) bool {
				for _, g := range s.SubGroups {
					if !g.Satisfied || !g.Admitted {
						return false
					}
				}
				return true
			})
			c.untilTold("PodGroup", tc.group, "GangAdmitted", "is bound")
			if racks := c.domainsOf(tc.group, rackLabel); tc.file == "topology-job.yaml" && !slices.Equal(racks, []string{"r1"}) {
				t.Errorf("the gang runs in racks %v, want the one with four nodes", racks)
			}
			c.stillSchedules()
		})
	}
}

// The service starts with any three replicas, and the fourth starts as a whole when there is room.
func TestSampleOfTheServiceWithRoomForThree(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	c.applySample("inference-service.yaml")
	c.untilBound("inference-service", 24)
	c.untilSatisfied("inference-service")
	c.stillSchedules()
	if n := c.boundNow("inference-service"); n != 24 {
		t.Errorf("%d pods are bound, room is for 24", n)
	}
	c.addNodes(1)
	c.untilBound("inference-service", 32)
}

// applySample applies a file of manifests/samples; of a CronJob it starts a run.
func (c *cluster) applySample(file string) {
	c.t.Helper()
	content, err := os.ReadFile("../../../manifests/samples/" + file)
	c.must(err, "reading a sample")
	objects, err := controlplane.ParseManifests(content)
	c.must(err, "reading a sample")
	c.t.Cleanup(func() {
		ctx := context.Background()
		background := metav1.DeletePropagationBackground
		options := metav1.DeleteOptions{PropagationPolicy: &background}
		_ = cp.Client().BatchV1().CronJobs(c.namespace).DeleteCollection(ctx, options, metav1.ListOptions{})
		_ = cp.Client().BatchV1().Jobs(c.namespace).DeleteCollection(ctx, options, metav1.ListOptions{})
		_ = cp.Client().AppsV1().StatefulSets(c.namespace).DeleteCollection(ctx, options, metav1.ListOptions{})
	})
	for _, o := range objects {
		if o.GetKind() == "Topology" {
			c.t.Cleanup(func() { c.deleteTopology(o.GetName()) })
			continue
		}
		o.SetNamespace(c.namespace)
	}
	c.must(cp.Apply(c.ctx, objects...), "applying a sample")
	for _, o := range objects {
		if o.GetKind() == "CronJob" {
			c.runCronJob(o.GetName(), o.GetName()+"-by-hand")
		}
	}
}

// runCronJob does what kubectl create job JOB --from=cronjob/NAME does.
func (c *cluster) runCronJob(name, job string) {
	c.t.Helper()
	cron, err := cp.Client().BatchV1().CronJobs(c.namespace).Get(c.ctx, name, metav1.GetOptions{})
	c.must(err, "reading a CronJob")
	_, err = cp.Client().BatchV1().Jobs(c.namespace).Create(c.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: job, Annotations: cron.Spec.JobTemplate.Annotations, Labels: cron.Spec.JobTemplate.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: cron.Spec.JobTemplate.Spec,
	}, metav1.CreateOptions{})
	c.must(err, "running a CronJob")
}
