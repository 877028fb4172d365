// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/test/wrappers"
)

// podsOfJob returns pods of a controller, of which some are bound.
func podsOfJob(kind, name string, bound, waiting int) []*wrappers.PodWrapper {
	var pods []*wrappers.PodWrapper
	for i := range bound + waiting {
		w := wrappers.MakePod(fmt.Sprintf("%s-%d", name, i), namespace).UID(name+strconv.Itoa(i)).Controller(kind, name, name)
		if i < bound {
			w = w.Node("n")
		}
		pods = append(pods, w)
	}
	return pods
}

// A controller some of whose pods run while others have no room is told once that they are no gang; others are not.
func TestControllersOfLoosePodsAreToldOnce(t *testing.T) {
	t.Parallel()
	const told = "Normal StartsAlone PyTorchJob/bert: 4 of 6 pods of PyTorchJob bert run; without a PodGroup each starts alone (docs/workloads.md)"
	ended := podsOfJob("Job", "ended", 1, 1)
	ended[0].Status(func(s *corev1.PodStatus) { s.Phase = corev1.PodSucceeded })
	leaving := podsOfJob("Job", "leaving", 1, 1)
	leaving[0].Terminating()
	for name, tc := range map[string]struct {
		pods []*wrappers.PodWrapper
		want []string
	}{
		"some run, and some wait":       {podsOfJob("PyTorchJob", "bert", 4, 2), []string{told}},
		"none runs yet":                 {podsOfJob("PyTorchJob", "bert", 0, 6), nil},
		"all run by now":                {podsOfJob("PyTorchJob", "bert", 6, 0), nil},
		"of a StatefulSet":              {podsOfJob("StatefulSet", "llm", 1, 1), []string{"Normal StartsAlone StatefulSet/llm: 1 of 2 pods of StatefulSet llm run; without a PodGroup each starts alone (docs/workloads.md)"}},
		"of a DaemonSet":                {podsOfJob("DaemonSet", "agent", 4, 2), nil},
		"of a Deployment":               {podsOfJob("ReplicaSet", "web-6d5f", 4, 2), nil},
		"without a controller":          {[]*wrappers.PodWrapper{wrappers.MakePod("a", namespace).UID("a"), wrappers.MakePod("b", namespace).UID("b").Node("n")}, nil},
		"the others have succeeded":     {ended, nil},
		"the others are being deleted":  {leaving, nil},
		"pods of others do not count":   {append(podsOfJob("Job", "a", 0, 2), podsOfJob("Job", "b", 2, 0)...), nil},
		"each of several jobs is told":  {append(podsOfJob("PyTorchJob", "bert", 4, 2), podsOfJob("Job", "x", 0, 2)...), []string{told}},
		"one pod, which waits":          {podsOfJob("Job", "one", 0, 1), nil},
		"the pods are gone from memory": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			l := c.reporter.loose
			l.Pods = podLister(t, tc.pods...)
			refuse := func() {
				for _, w := range append(tc.pods, wrappers.MakePod("gone", namespace).UID("gone").Controller("Job", "gone", "gone")) {
					if pod := w.Obj(); pod.Spec.NodeName == "" {
						c.reporter.PodRefused(pod)
					}
				}
			}
			refuse()
			l.tellDue()
			if got := c.events.list(); len(got) > 0 {
				t.Errorf("told at once: %q", got)
			}
			c.clock.Step(aloneAfter)
			l.tellDue()
			refuse()
			c.clock.Step(time.Hour)
			l.tellDue()
			if diff := cmp.Diff(tc.want, c.events.list()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A controller of which no pod runs at first is told when some do.
func TestALateStartOfLoosePodsIsTold(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.reporter.loose.Pods = podLister(t, podsOfJob("Job", "a", 0, 2)...)
	c.reporter.PodRefused(podsOfJob("Job", "a", 0, 2)[1].Obj())
	for range 3 {
		c.clock.Step(aloneAfter)
		c.reporter.loose.tellDue()
	}
	c.reporter.loose.Pods = podLister(t, podsOfJob("Job", "a", 1, 1)...)
	c.reporter.loose.tellDue()
	if got := c.events.list(); len(got) != 1 {
		t.Errorf("events %q, want one", got)
	}
}

// Thousands of controllers of which no pod runs, such as jobs of one pod, keep no other one from being told.
func TestManyWaitingJobsHideNoOther(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := c.reporter.loose
	var pods []*wrappers.PodWrapper
	for i := range maxPending {
		pods = append(pods, podsOfJob("Job", "j"+strconv.Itoa(i), 0, 1)...)
		c.reporter.PodRefused(pods[i].Obj())
	}
	bert := podsOfJob("PyTorchJob", "bert", 4, 2)
	l.Pods = podLister(t, append(pods, bert...)...)
	for range 3 {
		c.reporter.PodRefused(bert[5].Obj())
		c.clock.Step(aloneAfter)
		l.tellDue()
	}
	if got := c.events.list(); len(got) != 1 {
		t.Errorf("events %q, want one about bert", got)
	}
}

func TestLoosePodsAreBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := c.reporter.loose
	for i := range 2 * maxPending {
		c.reporter.PodRefused(podsOfJob("Job", "j"+strconv.Itoa(i), 0, 1)[0].Obj())
	}
	if len(l.waits) != maxPending {
		t.Errorf("%d controllers, want %d", len(l.waits), maxPending)
	}
	l.Pods = podLister(t) // all pods are gone
	l.tellDue()
	if len(l.waits) != 0 || l.told.Len() != 0 {
		t.Errorf("%d controllers wait and %d were told, want none", len(l.waits), l.told.Len())
	}
}
